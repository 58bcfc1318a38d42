"""The check of annotations in one or two rounds: each item with its status, reasons and differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.quality.agreement import build_agreement_table, label_agreement_table
from roadaware.analysis.quality.config import Dictionary, QualityConfig, chaotic_world
from roadaware.analysis.quality.differences import (
    EDGES,
    FINDING,
    KEY,
    RULES,
    WHATS,
    ForbiddenWords,
    add_differences,
    apply_rules,
    build_items,
    find_differences,
    find_same_reviewers,
)
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.geometry.boxes import iou
from roadaware.scenes.tables import Scenes

# Which item of one file is which of another: by key, then by place and time where keys are equal.

_NUMBERED = (*KEY, "occurrence")
_Floats = npt.NDArray[np.float64]


def match_items(files: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All items of all files, one row each, with the columns of file k under `<name>_<k>`.

    Args:
        files: what `build_items` gave, in the order of the rounds.

    Returns:
        `KEY`, `occurrence` and for each file its columns and `present_<k>`; sorted by what, video, name,
        frame.
    """
    # Frame numbers as the first file counts, where a video has another frame rate in a later one
    first = files[0].select("video", "fps").unique("video").rename({"fps": "asked"})
    scaled = [files[0]]
    for file in files[1:]:
        rows = file.join(first, on="video", how="left", maintain_order="left")
        factor = pl.col("asked") / pl.col("fps")
        moved = (pl.col("frame") * factor).round().cast(pl.Int64)
        differs = (pl.col("frame") >= 0) & (factor != 1)
        rows = rows.with_columns(pl.when(differs).then(moved).otherwise("frame").alias("frame"))
        scaled.append(rows.drop("asked"))
    # The files with `occurrence`: equal numbers under one key mean the same item.
    keys = list(KEY)
    several = pl.concat(
        [file.filter(pl.struct(keys).is_duplicated()).select(keys) for file in scaled]
    ).unique()
    if several.is_empty():
        numbered = [file.with_columns(occurrence=pl.lit(0, dtype=pl.Int64)) for file in scaled]
    else:
        groups = several.sort(keys).with_row_index("group")
        tagged = [file.join(groups, on=keys, how="left", maintain_order="left") for file in scaled]
        numbered = [
            file.drop("group").with_columns(pl.Series("occurrence", numbers))
            for file, numbers in zip(tagged, _occurrences(tagged), strict=True)
        ]
    wide: pl.DataFrame | None = None
    for place, file in enumerate(numbered):
        own = [name for name in file.columns if name not in _NUMBERED]
        named = file.rename({name: f"{name}_{place}" for name in own})
        named = named.with_columns(pl.lit(value=True).alias(f"present_{place}"))
        wide = (
            named
            if wide is None
            else wide.join(named, on=list(_NUMBERED), how="full", coalesce=True, maintain_order="left_right")
        )
    if wide is None:
        raise ValueError("nothing to align")
    present = [pl.col(f"present_{place}").fill_null(value=False) for place in range(len(files))]
    return wide.with_columns(present).sort(_NUMBERED, maintain_order=True).with_row_index("item")


def _occurrences(files: Sequence[pl.DataFrame]) -> list[npt.NDArray[np.int64]]:
    """The number of each row of each file within its group; 0 outside of groups."""
    numbers = [np.zeros(len(file), dtype=np.int64) for file in files]
    measures = [_measure_items(file) for file in files]
    members: dict[int, list[npt.NDArray[np.int64]]] = {}
    for place, file in enumerate(files):
        group = file["group"].fill_null(-1).cast(pl.Int64).to_numpy()
        # Stable: within a group rows keep the order of the file, which decides ties.
        order = np.argsort(group, kind="stable")
        held, starts = np.unique(group[order], return_index=True)
        for one, rows in zip(held, np.split(order, starts[1:]), strict=True):
            if one >= 0:
                members.setdefault(int(one), [np.empty(0, np.int64)] * len(files))[place] = rows
    for of_files in members.values():
        _number_group(of_files, measures, numbers)
    return numbers


def _number_group(
    members: Sequence[npt.NDArray[np.int64]],
    measures: Sequence[tuple[_Floats, _Floats]],
    numbers: Sequence[npt.NDArray[np.int64]],
) -> None:
    """Number the rows of one key: each as its partner in the latest earlier file, others anew."""
    following = 0
    for place, rows in enumerate(members):
        free = np.arange(len(rows))
        taken: set[int] = set()
        for before in range(place - 1, -1, -1):
            open_rows = [row for row in members[before] if int(numbers[before][row]) not in taken]
            costs = _costs(measures[place], rows[free], measures[before], np.array(open_rows, np.int64))
            pairs = assign_greedily(costs)
            for a, b in pairs:
                number = int(numbers[before][open_rows[b]])
                numbers[place][rows[free[a]]] = number
                taken.add(number)
            free = np.delete(free, [a for a, _ in pairs])
        numbers[place][rows[free]] = following + np.arange(len(free))
        highest = [int(numbers[k][row]) for k in range(place + 1) for row in members[k]]
        following = max(highest, default=-1) + 1


def assign_greedily(costs: _Floats) -> list[tuple[int, int]]:
    """Pairs of row and column, the cheapest first, each used once; infinite costs are no pairs.

    >>> assign_greedily(np.array([[1.0, 0.5], [0.2, 0.1]]))
    [(1, 1), (0, 0)]
    """
    pairs: list[tuple[int, int]] = []
    rows, columns = set[int](), set[int]()
    # Ties go to the first row and column, so that a file that is compared twice gives the same pairs.
    for place in np.argsort(costs, axis=None, kind="stable"):
        row, column = divmod(int(place), costs.shape[1])
        if row not in rows and column not in columns and np.isfinite(costs[row, column]):
            pairs.append((row, column))
            rows.add(row)
            columns.add(column)
    return pairs


def _measure_items(file: pl.DataFrame) -> tuple[_Floats, _Floats]:
    """(n, 4) edges and (n, 2) start and end in the units of the limits, NaN where unknown."""
    scales = [pl.col("scale_x"), pl.col("scale_y")] * 2
    edges: Any = file.select(pl.col(edge) * scale for edge, scale in zip(EDGES, scales, strict=True))
    times: Any = file.select(pl.col(name) * pl.col("scale_t") for name in ("start", "end"))
    return edges.to_numpy().astype(np.float64), times.to_numpy().astype(np.float64)


def _costs(
    one: tuple[_Floats, _Floats],
    rows: npt.NDArray[np.int64],
    other: tuple[_Floats, _Floats],
    columns: npt.NDArray[np.int64],
) -> _Floats:
    """How unlike rows and columns are: boxes by overlap, never without any; all else by start and end."""
    if not len(rows) or not len(columns):
        return np.empty((len(rows), len(columns)))
    a, b = one[0][rows], other[0][columns]
    if np.isfinite(a).all() and np.isfinite(b).all():
        shares = iou(a, b)
        # Boxes without an area overlap with nothing, not even with themselves.
        equal = (a[:, None] == b[None]).all(axis=2)
        return np.where((shares > 0) | equal, 1.0 - shares, np.inf)
    gaps = np.abs(one[1][rows][:, None] - other[1][columns][None])
    found: _Floats = np.nan_to_num(gaps, nan=0.0).sum(axis=2)
    return found


FILES = ("original", "round 1", "round 2")
STATUSES = ("pass", "fail", "disputed")
_OF_ROUND_2 = ("round 2", "round 1 to round 2")


@dataclass(frozen=True, eq=False)
class Quality:
    """Result of a check of annotations.

    Args:
        items: one row per item of any file: what, video, name, object, predicate, frame (null where it
            does not apply), status (pass, fail, disputed), round1 (pass, fail), round2 (pass, disputed,
            null without a second round), rules, reasons, max_edge_diff_px (pixels of the file),
            max_edge_diff_ref_px (at the resolution of the limits), frame_diff (frames of the file), iou,
            and the edges, times, labels and text in every file, in pixels and frames of the first.
        findings: item, stage, rule and says, one row per reason.
        agreement: how alike the annotators are in place and time; see `build_agreement_table`.
        labels: how alike they are in labels; see `label_agreement_table`.
        config: the limits.
        facts: what was compared, and what could not be.
    """

    items: pl.DataFrame
    findings: pl.DataFrame
    agreement: pl.DataFrame
    labels: pl.DataFrame
    config: QualityConfig
    facts: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Items by status, in all and by what they are, and findings by rule."""
        counts = self.items["status"].value_counts().rows()
        held = {status: dict(counts).get(status, 0) for status in STATUSES}
        kinds = self.items.group_by("what", maintain_order=True).agg(
            pl.len().alias("items"),
            *((pl.col("status") == status).sum().alias(status) for status in STATUSES),
        )
        rules = dict(self.findings.group_by("rule").agg(pl.col("item").n_unique()).iter_rows())
        return {
            "items": len(self.items),
            **held,
            "by_kind": {row.pop("what"): row for row in kinds.to_dicts()},
            "by_rule": {rule: rules[rule] for rule in RULES if rule in rules},
        }

    def to_dict(self, most: int = 100_000) -> dict[str, Any]:
        """Everything as JSON-ready data; of more than `most` items only those that did not pass."""
        shown = self.items if len(self.items) <= most else self.items.filter(pl.col("status") != "pass")
        return {
            "summary": self.summary(),
            "config": to_dict(self.config),
            "facts": self.facts,
            "agreement": self.agreement.to_dicts(),
            "label_agreement": self.labels.to_dicts(),
            "items": shown.to_dicts(),
            "items_left_out": len(self.items) - len(shown),
        }


def check(
    original: Scenes,
    round1: Scenes,
    round2: Scenes | None = None,
    *,
    config: QualityConfig | None = None,
    dictionary: Dictionary | None = None,
    words: ForbiddenWords | None = None,
) -> Quality:
    """Compare annotations with those of one or two rounds of checking.

    Round 1 checks the original and updates it: what differs by at most the limits passes, what differs by
    more, or breaks a rule in either, fails. Round 2 assesses round 1 on its own: what differs between the
    two by more, or breaks a rule in either, is disputed and needs two further annotators. An item's
    status is `disputed` if round 2 disputes it, else that of round 1.

    Args:
        original: as first annotated.
        round1: as the first reviewer left it.
        round2: as the second reviewer would have it.
        config: the limits (default: those of the paper).
        dictionary: the allowed labels (default: those of Chaotic World).
        words: words that no description may hold.

    Raises:
        InputError: if a file has no items, or two have none in common.

    Source: Chaotic World, ICCV 2023, supplementary material, section 1.
    """
    config, dictionary = config or QualityConfig(), dictionary or chaotic_world()
    scenes = [original, round1, *([round2] if round2 is not None else [])]
    tables = [build_items(each, config, dictionary) for each in scenes]
    # Stop where files have nothing to compare.
    for name, table in zip(FILES, tables, strict=False):
        if table.filter(pl.col("what") != "video").is_empty():
            raise InputError(f"the {name} holds no box, person, relation, sentence or sound to check")
    for (name, one), (other_name, other) in zip(
        zip(FILES, tables, strict=False), zip(FILES[1:], tables[1:], strict=False), strict=False
    ):
        if one.join(other, on="video", how="semi").is_empty():
            videos = [sorted(table["video"].unique().to_list())[:3] for table in (one, other)]
            raise InputError(
                f"{name} and {other_name} have no video in common: {videos[0]} against {videos[1]}",
                hint="Both should be the same clips under the same names; rename the videos of one.",
            )
    wide = match_items(tables)
    pairs = [(k, k + 1) for k in range(len(scenes) - 1)]
    for a, b in [*pairs, *([(0, 2)] if len(scenes) == 3 else [])]:
        wide = add_differences(wide, a, b, config)
    found = [apply_rules(wide, k, FILES[k], config, dictionary, words) for k in range(len(scenes))]
    for a, b in pairs:
        stage = f"{FILES[a]} to {FILES[b]}"
        found.append(find_differences(wide, a, b, stage, config))
        found.append(find_same_reviewers(wide, b, stage, config))
    wide, refused = _with_refused(wide, scenes)
    findings = pl.concat([*found, refused]).sort("item", maintain_order=True)
    items = _assign_status(wide, findings, len(scenes))
    return Quality(
        items,
        findings,
        build_agreement_table(wide, len(scenes)),
        label_agreement_table(wide, len(scenes)),
        config,
        {
            **_facts(scenes, tables, dictionary, words),
            "hints": _hints(wide, findings, dictionary, len(scenes)),
        },
    )


def _with_refused(wide: pl.DataFrame, scenes: Sequence[Scenes]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rejected rows of the readers, as failed items."""
    numbers: dict[tuple[str, str], int] = {}
    findings = []
    for stage, each in zip(FILES, scenes, strict=False):
        for row in each.rejected.iter_rows(named=True):
            line, named = row.get("line"), row.get("item")  # the schema lets a table lack both
            place = f"{row['file']}{f':{line}' if line else ''}"
            key = (f"{place} {named or ''}".strip(), f"{row['table']}: {row['reason']}")
            item = numbers.setdefault(key, len(wide) + len(numbers))
            findings.append((item, stage, "refused", key[1]))
    items = [(item, "refused row", "", name, "", "", -1) for (name, _), item in numbers.items()]
    schema: dict[str, Any] = {"item": pl.UInt32, **{name: wide.schema[name] for name in KEY}}
    rows = pl.DataFrame(items, schema=schema, orient="row")
    table = pl.DataFrame(findings, schema=FINDING, orient="row")
    return pl.concat([wide, rows], how="diagonal"), table


def _assign_status(wide: pl.DataFrame, findings: pl.DataFrame, count: int) -> pl.DataFrame:
    """The items with their status, sorted by what they are, video, name and frame."""
    same = findings.group_by("item", "rule", "says", maintain_order=True).agg("stage")
    reason = pl.format("{}: {} ({})", "rule", "says", pl.col("stage").list.join(", "))
    stages = pl.col("stage").explode()
    table = same.group_by("item", maintain_order=True).agg(
        failed=(~stages.is_in(_OF_ROUND_2)).any(),
        doubted=stages.is_in(["round 1", *_OF_ROUND_2]).any(),
        rules=pl.col("rule").unique(maintain_order=True),
        reasons=reason,
    )
    rows = wide.join(table, on="item", how="left", maintain_order="left")
    failed, doubted = (pl.col(name).fill_null(value=False) for name in ("failed", "doubted"))
    second = pl.lit(count == 3) & doubted
    words = {"pass": pl.lit("pass"), "fail": pl.lit("fail"), "disputed": pl.lit("disputed")}
    rows = rows.with_columns(
        round1=pl.when(failed).then(words["fail"]).otherwise(words["pass"]),
        round2=pl.when(second).then(words["disputed"]).when(pl.lit(count == 3)).then(words["pass"]),
        status=pl.when(second)
        .then(words["disputed"])
        .when(failed)
        .then(words["fail"])
        .otherwise(words["pass"]),
        order=pl.col("what").replace_strict(
            {what: k for k, what in enumerate(WHATS)}, default=len(WHATS), return_dtype=pl.Int64
        ),
    )
    rows = rows.sort(
        "order", "video", "name", "object", "predicate", "frame", "occurrence", maintain_order=True
    )
    # The columns of the result, in reading order.
    pairs = ["_01", *(["_12"] if count == 3 else [])]
    greatest = {
        "max_edge_diff_px": "edge_px",
        "max_edge_diff_ref_px": "edge_ref",
        "frame_diff": "frame_diff",
    }
    own = [column for k in range(count) for column in _select_file_columns(k, count)]
    return rows.select(
        [
            pl.col("item"),
            pl.col("what"),
            *(pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in KEY[1:5]),
            pl.when(pl.col("frame") >= 0).then(pl.col("frame")).alias("frame"),
            pl.col("status", "round1", "round2"),
            pl.col("rules").fill_null([]),
            pl.col("reasons").fill_null([]),
            *(
                pl.max_horizontal(f"{name}{pair}" for pair in pairs).alias(as_)
                for as_, name in greatest.items()
            ),
            pl.min_horizontal(f"iou{pair}" for pair in pairs).alias("iou"),
            pl.coalesce(f"width_{k}" for k in range(count)).alias("width_px"),
            pl.coalesce(f"height_{k}" for k in range(count)).alias("height_px"),
            *own,
        ]
    )


def _select_file_columns(k: int, count: int) -> list[pl.Expr]:
    """Values of an item in file k, in the pixels and frames of the first file that has it."""
    name, columns = FILES[k].replace(" ", ""), []
    scales = {**dict(zip(EDGES, ("x", "y", "x", "y"), strict=True)), "start": "t", "end": "t"}
    for column, axis in scales.items():
        value, own = pl.col(f"{column}_{k}"), pl.col(f"scale_{axis}_{k}")
        asked = pl.coalesce(f"scale_{axis}_{j}" for j in range(count))
        brought = pl.when(own == asked).then(value).otherwise(value * own / asked)
        columns.append(brought.alias(f"{name}_{column}"))
    return columns + [pl.col(f"{column}_{k}").alias(f"{name}_{column}") for column in ("labels", "text")]


def _hints(wide: pl.DataFrame, findings: pl.DataFrame, dictionary: Dictionary, count: int) -> list[str]:
    """Hints where the files do not fit each other or the dictionary."""
    hints = []
    for a, b in ((0, 1), (1, 2))[: count - 1]:
        for what in WHATS:
            one, two = (pl.col("what") == what) & pl.col(f"present_{a}"), pl.col(f"present_{b}")
            held, both = wide.filter(one), wide.filter(one, two)
            other = wide.filter(pl.col("what") == what, two)
            if len(held) and len(other) and both.is_empty():
                names = f"'{held['name'][0]}' against '{other['name'][0]}'"
                hints.append(
                    f"no {what} of the {FILES[a]} is in {FILES[b]} ({len(held)} against {len(other)}); "
                    f"do names, videos or frame numbers differ? The first are {names}"
                )
    unknown = findings.filter(pl.col("rule") == "label unknown")["item"].n_unique()
    labelled = wide.filter(pl.any_horizontal(pl.col(f"labels_{k}").list.len() > 0 for k in range(count)))
    if 2 * unknown > len(labelled):
        hints.append(
            f"most labels are not in the dictionary of {dictionary.title}: name your own, or none at all"
        )
    return hints


def _facts(
    scenes: Sequence[Scenes],
    tables: Sequence[pl.DataFrame],
    dictionary: Dictionary,
    words: ForbiddenWords | None,
) -> dict[str, Any]:
    """Counts of compared and not comparable items."""
    labels = pl.concat([table.select("labels").explode("labels").unique() for table in tables])
    kinds = {shown.split(": ", 1)[0] for shown in labels["labels"].drop_nulls()}
    videos = pl.concat([table.select("video", "width", "fps").unique("video") for table in tables])
    return {
        "files": {
            name: {"dataset": each.meta.dataset, "items": len(table), "refused": len(each.rejected)}
            for name, each, table in zip(FILES, scenes, tables, strict=False)
        },
        "dictionary": dictionary.title,
        "kinds_not_looked_up": sorted(kinds - set(dictionary.kinds)),
        "forbidden_words": None if words is None else len(words.words),
        "annotators_known": any(table["annotator"].is_not_null().any() for table in tables),
        "videos_of_unknown_size": videos.filter(pl.col("width").is_null())["video"].n_unique(),
        "videos_of_unknown_rate": videos.filter(pl.col("fps").is_null())["video"].n_unique(),
    }
