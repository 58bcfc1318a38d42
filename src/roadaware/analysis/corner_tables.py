"""Tables of corner cases: what sets are made of, results of detectors, what ablations change, and the step
that lost each object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import DROPS, FAR, FEW, KEPT, Geometry, Proposals
from roadaware.geometry.boxes import iou
from roadaware.metrics.corner_cases.evaluate import IN_SLICES
from roadaware.metrics.corner_cases.matching import GROUPS, KIND, SUPER
from roadaware.metrics.metric_state import SceneResult
from roadaware.protocols.coda import (
    TRAINING_SETS,
    Version,
    get_scene_shares,
    label_truth,
    map_training_sets,
    select_printed_knobs,
)
from roadaware.protocols.coda import load_composition as printed_composition
from roadaware.protocols.copg_ablation import METRICS, Cell, GridFound, Score
from roadaware.scenes.tables import Scenes

ENDS = ("", "_low", "_high")
CAUTION = "_caution"
COLUMNS: dict[str, Any] = {
    "config": pl.String,
    "knob": pl.String,
    "value": pl.String,
    "unchanged": pl.Boolean,
    "proposals": pl.Int64,
    "pictures": pl.Int64,
    **{f"{metric}{end}": pl.Float64 for metric in METRICS for end in ENDS},
    **{f"{metric}_gain{end}": pl.Float64 for metric in METRICS for end in ENDS},
    **{f"{metric}{gain}{CAUTION}": pl.String for metric in METRICS for gain in ("", "_gain")},
    "printed_ap": pl.Float64,
    "printed_ar": pl.Float64,
    "printed_proposals": pl.Int64,
    "printed_scenes": pl.Int64,
    "doubt": pl.String,
}
"""`pictures` are those with a proposal; `_gain` is over the configuration as it is; printed in fractions."""


def build_ablation_table(
    rows: Sequence[Cell], places: Sequence[int], found: GridFound, scores: Sequence[Score] | None
) -> pl.DataFrame:
    """One row for each cell, in the columns of `COLUMNS`.

    Args:
        rows: the cells.
        places: for each, its variant.
        found: the proposals of all variants.
        scores: of all variants; None where there is no ground truth.
    """
    unchanged = {row.base: place for row, place in zip(rows, places, strict=True) if row.unchanged}
    lines = []
    for row, place in zip(rows, places, strict=True):
        line: dict[str, Any] = dict.fromkeys(COLUMNS)
        line |= {
            "config": row.base,
            "knob": row.knob,
            "value": format_parameter(row.value),
            "unchanged": row.unchanged,
        }
        line |= {"proposals": found.counts[place], "pictures": found.with_one[place]}
        if scores is not None:
            mine, own = scores[place], scores[unchanged[row.base]]
            gains = mine.over(own)
            for name in METRICS:
                line |= _ends(name, mine.values[name])
                line |= {} if row.unchanged else _ends(f"{name}_gain", gains[name])
        lines.append(line | _get_printed(row))
    return pl.DataFrame(lines, schema=COLUMNS)


def format_parameter(value: Any) -> str:
    """A parameter's value as words.

    Args:
        value: of a field of `CopgConfig`.

    >>> format_parameter(8.0), format_parameter(None), format_parameter("box"), format_parameter(("road", "sky"))
    ('8', 'null', 'box', 'road,sky')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, int | float) else json.dumps(value)


def _ends(name: str, value: Any) -> dict[str, Any]:
    ends = dict(zip((f"{name}{end}" for end in ENDS), (value.value, value.low, value.high), strict=True))
    return {**ends, f"{name}{CAUTION}": value.caution}


def _get_printed(row: Cell) -> dict[str, Any]:
    """The printed row for a parameter's value."""
    if isinstance(row.value, bool) or not isinstance(row.value, int | float):
        return {}
    rows = select_printed_knobs(row.knob, float(row.value)).to_dicts()
    if not rows:
        return {}
    printed = rows[0]
    return {
        "printed_ap": printed["ap"] / 100,
        "printed_ar": printed["ar"] / 100,
        "printed_proposals": printed["proposals"],
        "printed_scenes": printed["scenes"],
        "doubt": printed["doubt"],
    }


# Results on corner cases as the tables that compare detectors: groups in rows, recalls in columns.

DETECTOR_COLUMNS = {
    "AR": "ar",
    "AR50": "ar50",
    "AR75": "ar75",
    "AR30": "ar30",
    "AR1": "ar1",
    "AR10": "ar10",
    "ARs": "ar_small",
    "ARm": "ar_medium",
    "ARl": "ar_large",
    "AP": "ap",
}
"""Headings of the field to the ends of our metrics' names, at the usual numbers of predictions."""
PRINTED = ("AR", "AR50", "AR75", "AR1", "AR10", "ARs", "ARm", "ARl")
PREDICTIONS = "predictions"
_PROPOSALS = {"AR50m": "ar50_medium", "AR50l": "ar50_large", "AR30m": "ar30_medium", "AR30l": "ar30_large"}


@dataclass(frozen=True)
class Line:
    """One answer in one group.

    Args:
        group: what was asked for.
        answer: `predictions`, or the name of a trivial answer.
        rows: heading to the metric's row of a summary, or to a row of its `value` alone.
    """

    group: str
    answer: str
    rows: Mapping[str, Mapping[str, Any] | None]


def list_groups(result: SceneResult) -> list[str]:
    """The groups of objects, in the order of the result."""
    held = {row["metric"].partition("_")[0] for row in result.whole()}
    return [group for group in result.config["groups"] if group in held and group in GROUPS]


def select_columns(result: SceneResult) -> dict[str, str]:
    """The headings for which the result has values."""
    few, some, _ = result.config["max_detections"]
    names = dict(zip(DETECTOR_COLUMNS, DETECTOR_COLUMNS.values(), strict=True))
    found = {}
    for heading, end in names.items():
        if end in ("ar1", "ar10"):
            number = few if end == "ar1" else some
            heading, end = f"AR{number}", f"ar{number}"
        found[heading] = end
    known = {row["metric"] for row in result.whole() if row["valid"]}
    if not any(f"{group}_ap" in known for group in list_groups(result)):
        found.pop("AP")
    return found


def build_lines(result: SceneResult) -> list[Line]:
    """The predictions and the trivial answers, group by group."""
    rows = {row["metric"]: row for row in result.whole()}
    columns = select_columns(result)
    found = []
    for group in list_groups(result):
        held = {heading: rows.get(f"{group}_{end}") for heading, end in columns.items()}
        found.append(Line(group, PREDICTIONS, held))
        for name, values in result.baselines.items():
            trivial = {
                heading: {"value": values[f"{group}_{end}"]} if f"{group}_{end}" in values else None
                for heading, end in columns.items()
            }
            found.append(Line(group, name, trivial))
    return found


def build_slice_lines(result: SceneResult) -> list[tuple[str, int, list[Mapping[str, Any] | None]]]:
    """Each slice: its name, its images, and for each group the recall of the predictions, then trivial ones."""
    sizes = {row["group"]: row["items"] for row in result.counts.iter_rows(named=True)}
    trivial = result.facts.get(IN_SLICES, {})
    found = []
    for name in result.groups:
        rows = {row["metric"]: row for row in result.of_group(name).iter_rows(named=True)}
        cells: list[Mapping[str, Any] | None] = []
        for group in list_groups(result):
            cells.append(rows.get(f"{group}_ar"))
            answers = trivial.get(name, {})
            cells += [{"value": answers.get(which, {}).get(f"{group}_ar")} for which in result.baselines]
        found.append((name, sizes[name], cells))
    return found


def build_slice_header(result: SceneResult) -> list[str]:
    """The headings over the cells of `build_slice_lines`."""
    return [
        text for group in list_groups(result) for text in (f"{group} AR", *(f"{b}" for b in result.baselines))
    ]


def build_printed_lines(
    result: SceneResult, printed: list[dict[str, Any]]
) -> list[tuple[str, list[float | None]]]:
    """Printed numbers of a paper as fractions, under the headings of `select_printed_columns`; our own values come first."""
    ends = select_printed_columns(result, printed)
    rows = {row["metric"]: row["value"] for row in result.whole()}
    found: list[tuple[str, list[float | None]]] = [(PREDICTIONS, [rows.get(end) for end in ends.values()])]
    for row in printed:
        uncertainty = " (doubtful)" if row.get("doubts") else ""
        values = [row["values"].get(end) for end in ends.values()]
        found.append((f"{row['row']}, {row['trained_on'] or 'not said'}{uncertainty}", values))
    return found


def select_printed_columns(result: SceneResult, printed: list[dict[str, Any]]) -> dict[str, str]:
    """Heading to metric, of what is printed about the groups that were judged."""
    said = {metric for row in printed for metric in row["values"]}
    columns = {**{heading: DETECTOR_COLUMNS[heading] for heading in PRINTED}, **_PROPOSALS}
    return {
        f"{group} {heading}": f"{group}_{end}"
        for group in list_groups(result)
        for heading, end in columns.items()
        if f"{group}_{end}" in said
    }


def build_class_lines(
    result: SceneResult,
) -> tuple[list[str], list[str], list[tuple[str, list[int | None], list[Mapping[str, Any] | None]]]]:
    """Classes and super-classes, where a word can be both, with objects of their own in each group.

    Returns:
        the groups that have classes; the metrics; each word with its objects in each of those groups (None
        where it is no class of it) and with its row under each metric.
    """
    held = result.classes()
    metrics = list(dict.fromkeys(metric for rows in held.values() for metric in rows))
    groups = list(dict.fromkeys(metric.partition("_")[0] for metric in metrics))
    found: list[tuple[str, list[int | None], list[Mapping[str, Any] | None]]] = []
    for label, rows in held.items():
        counts = {metric.partition("_")[0]: int(row["n"]) for metric, row in rows.items()}
        found.append((label, [counts.get(group) for group in groups], [rows.get(each) for each in metrics]))
    return groups, metrics, found


def group_undefined(result: SceneResult) -> dict[str, list[str]]:
    """Why metrics of the whole are undefined, with their names."""
    found: dict[str, list[str]] = {}
    for row in result.whole():
        if not row["valid"]:
            found.setdefault(row["reason"] or "undefined", []).append(row["metric"])
    return found


def select_plain_facts(result: SceneResult) -> dict[str, Any]:
    """The facts that are reported line by line."""
    return {name: value for name, value in result.facts.items() if name != IN_SLICES}


# Losses: which step of the proposals lost each corner case that nothing meets, where returns are known.

Ints = npt.NDArray[np.integer]

MET_FROM = 0.5
"""The overlap from which on a box meets an object."""
LOSSES = {
    "met": "a final proposal overlaps it by half",
    "few returns": "the sweep has fewer usable returns of it than the least of a cluster",
    "ground": "with the ground, so many were removed that fewer are left",
    "too far": "its nearest return is beyond the limit",
    "split": "no kept cluster has half of its returns",
    "shape": "its cluster is too wide, too tall or too low",
    "merged": "most returns of its cluster are of other things",
    "box": "its cluster is right, the box around it is not",
    "background": "a box that fits was removed as background",
    "common": "a box that fits was suppressed as a common object",
    "ranked": "a box that fits was taken for a copy of a better one, or ranked beyond the most",
}
"""What can become of an object, to what that means, in the order of the steps."""


def assign_losses(
    found: Proposals,
    boxes: Floats,
    numbers: Sequence[int],
    instances: Ints,
    config: CopgConfig,
) -> list[str]:
    """The step that lost each object: a name in `LOSSES`.

    An object that a fitting initial box had is lost by the step that removed that box; of any other, the
    first step is named after which it could not have had one.

    Args:
        found: proposals of the image.
        boxes: (k, 4) corners of the objects in pixels.
        numbers: (k,) of their instances.
        instances: (n,) instance of each return.
        config: the proposals were made by.
    """
    if not len(boxes):
        return []
    fits = np.zeros((len(boxes), len(found.boxes)), dtype=np.bool_)
    if len(found.boxes):
        fits = iou(boxes, found.boxes.edges) >= MET_FROM
    lines = []
    for place, number in enumerate(numbers):
        mine = fits[place]
        if (mine & found.final).any():
            lines.append("met")
        elif mine.any():
            lines.append(_name_drop(found, mine))
        else:
            # Of several ways to cluster, the one that came farthest says what was missing.
            reasons = [_without_box(each, instances == number, config) for each in found.geometry.hypotheses]
            lines.append(max(reasons, key=list(LOSSES).index))
    return lines


def _name_drop(found: Proposals, fits: Bools) -> str:
    """The last step that a box which fits an object has come to."""
    if found.dropped is None:
        return "common" if (fits & found.intermediate).any() else "background"
    steps = {DROPS[code] for code in found.dropped[fits].tolist()}
    if steps & {"copy", "beyond the most"}:
        return "ranked"
    return "common" if "common object" in steps else "background"


def _without_box(geometry: Geometry, own: Bools, config: CopgConfig) -> str:
    """Why no initial box fits an object.

    Args:
        geometry: what the returns say.
        own: (n,) which returns are the object's.
        config: the parameters.
    """
    usable = own & geometry.checked.usable
    if usable.sum() < config.min_points:
        return "few returns"
    solid = usable & ~geometry.ground.removed
    if solid.sum() < config.min_points:
        return "ground"
    members = np.bincount(geometry.clusters.of_return[solid], minlength=len(geometry.clusters) + 1)
    members[0] = 0
    cluster = int(members.argmax())
    limited = int(geometry.limited[cluster - 1]) if members[cluster] else FEW
    if limited == FAR:
        return "too far"
    if limited == FEW or 2 * members[cluster] < solid.sum():
        return "split"
    if limited != KEPT:
        return "shape"
    return "merged" if 2 * members[cluster] < geometry.clusters.counts[cluster - 1] else "box"


# What a set of corner cases is made of: scenes, classes, weather and period, beside print.

ALL, UNNAMED = "all", "no class"
_TOP = 4
_TAGS = ("weather", "period")
_PRINTED = {"kitti": "CODA-KITTI", "nuscenes": "CODA-nuScenes", "once": "CODA-ONCE", ALL: "CODA"}
_ALSO = {"overcast": "cloudy", "sunny": "clear", "rain": "rainy"}


@dataclass(frozen=True, eq=False)
class Composition:
    """Composition of a set: domains, classes, instances, weather and period.

    Args:
        parts: one row per domain and for all: `part`, `scenes`, `classes`, `instances`, `weather`, `period`
            (how many values), and `printed_scenes`, `printed_classes`, `printed_instances` (Table 1).
        classes: one row per class, the most frequent first: `label`, `super_class`, `objects`,
            `corner_cases`, `share`, `common` (null for novel classes), and whether each training set names it
            (Fig. 3).
        top: the four most frequent classes of each domain: `part`, `rank`, `label`, `objects`, `share`
            (Fig. 4).
        tags: `tag`, `value`, `scenes`, `share` and `printed_share` of weather and period (section 3).
        facts: `novel_share` of objects, `objects_per_scene`, and `zipf_slope`, how the logarithm of frequency
            falls with that of rank (about -1 by Zipf's law; null below three classes).
    """

    parts: pl.DataFrame
    classes: pl.DataFrame
    top: pl.DataFrame
    tags: pl.DataFrame
    facts: dict[str, float | None]


def compute_composition(scenes: Scenes, version: Version = "base") -> Composition:
    """The composition of a set; where boxes say whether they are corner cases, `instances` are those alone.

    Args:
        scenes: boxes with labels of the kind `corner`, videos or frames with period, weather and domain as
            far as known.
        version: which classes are common.

    Source: Li et al., ECCV 2022 (CODA), section 3, Table 1, Figures 3 and 4.
    """
    # One row per annotated image with weather, period and domain.
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=False))
    wanted = (*_TAGS, "domain")
    held = [name for name in wanted if name in frames.columns]
    missing = [name for name in wanted if name in scenes.videos.columns and name not in held]
    videos = scenes.videos.select(pl.col("video").cast(pl.String), *missing)
    table = frames.select("video", "frame", *held).join(videos, on="video", how="left", maintain_order="left")
    blank = [pl.lit(None, dtype=pl.String).alias(name) for name in wanted if name not in (*held, *missing)]
    images = table.with_columns(*blank).with_columns(pl.col(*wanted).cast(pl.String))
    objects = _objects(label_truth(scenes, version))
    placed = objects.join(images, on=["video", "frame"], how="inner", maintain_order="left")
    named = placed.filter(pl.col("label").is_not_null())
    corner = placed.filter("corner_case")
    domains = images["domain"].drop_nulls().unique().sort().to_list()
    return Composition(
        parts=_parts(images, corner, domains),
        classes=_classes(named),
        top=_top(named.filter("corner_case"), domains),
        tags=pl.concat([_tag(images, tag) for tag in _TAGS]),
        facts={
            "novel_share": _share(placed["common"].is_null()),
            "objects_per_scene": len(placed) / len(images) if len(images) else None,
            "zipf_slope": _slope(named["label"].value_counts()["count"].to_numpy()),
        },
    )


def _objects(scenes: Scenes) -> pl.DataFrame:
    """One row per box with its class, super-class, and whether it is common and a corner case."""
    boxes = scenes.boxes.with_columns(pl.col("video").cast(pl.String))
    if "corner_case" not in boxes.columns:
        boxes = boxes.with_columns(corner_case=pl.lit(value=True))
    table = boxes.select("box", "video", "frame", "common", pl.col("corner_case").fill_null(value=False))
    for name, kind in (("label", KIND), ("super_class", SUPER)):
        words = dict(enumerate(scenes.meta.vocabularies.get(kind, ())))
        rows = scenes.labels.filter(pl.col("kind").cast(pl.String) == kind).unique("box", keep="first")
        said = pl.col("label").cast(pl.Int64).replace_strict(words, default=None, return_dtype=pl.String)
        table = table.join(rows.select("box", said.alias(name)), on="box", how="left", maintain_order="left")
    return table


def _parts(images: pl.DataFrame, corner: pl.DataFrame, domains: list[str]) -> pl.DataFrame:
    """Table 1."""
    print_of = {row["row"]: row for row in printed_composition().iter_rows(named=True)}
    rows = []
    for part in (*domains, ALL):
        of = pl.lit(value=True) if part == ALL else pl.col("domain") == part
        seen, held = images.filter(of), corner.filter(of)
        theirs = print_of.get(_PRINTED.get(part, ""), {})
        rows.append(
            {
                "part": part,
                "scenes": len(seen),
                "classes": held["label"].drop_nulls().n_unique(),
                "instances": len(held),
                **{tag: seen[tag].drop_nulls().n_unique() for tag in _TAGS},
                **{f"printed_{name}": theirs.get(name) for name in ("scenes", "classes", "instances")},
            }
        )
    numbers = dict.fromkeys(list(rows[0])[1:], pl.Int64)
    return pl.DataFrame(rows, schema={"part": pl.String, **numbers})


def _classes(named: pl.DataFrame) -> pl.DataFrame:
    """Figure 3."""
    counted = named.group_by("label", maintain_order=True).agg(
        pl.col("super_class").first(),
        pl.len().cast(pl.Int64).alias("objects"),
        pl.col("corner_case").sum().cast(pl.Int64).alias("corner_cases"),
        (pl.len() / max(1, len(named))).alias("share"),
        pl.col("common").first(),
    )
    counted = counted.sort("objects", "label", descending=[True, False])
    coverage = [map_training_sets(label) for label in counted["label"]]
    sets = [pl.Series(name, [each[name] for each in coverage], dtype=pl.Boolean) for name in TRAINING_SETS]
    return counted.with_columns(*sets)


def _top(named: pl.DataFrame, domains: list[str]) -> pl.DataFrame:
    """Figure 4."""
    schema = {
        "part": pl.String,
        "rank": pl.Int64,
        "label": pl.String,
        "objects": pl.Int64,
        "share": pl.Float64,
    }
    rows = []
    for part in (*domains, ALL):
        held = named if part == ALL else named.filter(pl.col("domain") == part)
        counted = held.group_by("label").len("objects").sort("objects", "label", descending=[True, False])
        for rank, (label, objects) in enumerate(counted.head(_TOP).iter_rows(), 1):
            rows.append((part, rank, label, objects, objects / len(held)))
    return pl.DataFrame(rows, schema=schema, orient="row")


def _tag(images: pl.DataFrame, tag: str) -> pl.DataFrame:
    """How many scenes have each weather or period."""
    shares = get_scene_shares()[tag]
    known = images.filter(pl.col(tag).is_not_null())
    counted = (
        known.group_by(pl.col(tag).alias("value"))
        .len("scenes")
        .sort("scenes", "value", descending=[True, False])
    )
    theirs = [shares.get(_ALSO.get(value.lower(), value.lower())) for value in counted["value"]]
    return counted.select(
        tag=pl.lit(tag),
        value="value",
        scenes=pl.col("scenes").cast(pl.Int64),
        share=pl.col("scenes") / max(1, len(known)),
        printed_share=pl.Series(theirs, dtype=pl.Float64),
    )


def _share(marks: pl.Series) -> float | None:
    return float(marks.sum()) / len(marks) if len(marks) else None


def _slope(counts: np.ndarray) -> float | None:
    """How log frequency falls with log rank, by least squares."""
    # Two points lie on a line whatever they are.
    if len(counts) < 3:
        return None
    falling = np.sort(counts.astype(np.float64))[::-1]
    return float(np.polyfit(np.log(np.arange(1, len(falling) + 1)), np.log(falling), 1)[0])
