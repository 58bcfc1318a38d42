"""How alike annotators are in labels: equal sets, Cohen's kappa, Krippendorff's alpha, by label and video."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.quality.agreement import PAIRS
from roadaware.analysis.quality.kappa import cohen_kappa, krippendorff_alpha
from roadaware.arrays import Ints

_SCHEMA = {
    "level": pl.String,
    "kind": pl.String,
    "group": pl.String,
    "pair": pl.String,
    "units": pl.UInt32,
    "equal": pl.Float64,
    "kappa": pl.Float64,
    "alpha": pl.Float64,
}
_BETWEEN = "\x1f"


def label_agreement_table(wide: pl.DataFrame, count: int) -> pl.DataFrame:
    """Agreement on labels of each kind over the whole, by label and by video.

    A unit is an item that both annotators have; for predicates it is an ordered pair of persons, so that
    a relation which one of them did not see counts. Over the whole and by video, the set of an item's
    labels is compared as one (the usual kappa where an item has one label); by label, whether it was given.

    Args:
        wide: the aligned items.
        count: number of files.

    Returns:
        level (all, label, video), kind, group, pair, units, equal (share of equal answers, in [0, 1]), kappa
        (Cohen, of the pair) and alpha (Krippendorff, of all annotators; the same in every row of a group).
    """
    units = _units(wide, count)
    rows: list[tuple[object, ...]] = []
    for (kind,), held in units.group_by("kind", maintain_order=True):
        sets, given = _coded(held, count)
        times, name = held["times"].to_numpy(), str(kind)
        rows += _measured("all", name, None, given, times)
        for label in sorted({label for labels in sets for label in labels}):
            has = np.array([label in labels for labels in sets], dtype=np.int64)
            binary = [np.where(codes >= 0, has[codes], -1) for codes in given]
            rows += _measured("label", name, label, binary, times)
        order = held["video"].arg_sort().to_numpy()
        videos, starts = np.unique(held["video"].gather(order).to_numpy(), return_index=True)
        for video, part in zip(videos, np.split(order, starts[1:]), strict=True):
            rows += _measured("video", name, str(video), [codes[part] for codes in given], times[part])
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _coded(units: pl.DataFrame, count: int) -> tuple[list[tuple[str, ...]], list[Ints]]:
    """The different sets of labels, and for each file the place of each unit's set, -1 without the item."""
    columns = [units[f"given_{k}"] for k in range(count)]
    known = sorted({text for column in columns for text in column.drop_nulls()})
    place = {text: n for n, text in enumerate(known)}
    given = [
        np.array([-1 if text is None else place[text] for text in column], np.int64) for column in columns
    ]
    return [tuple(text.split(_BETWEEN)) if text else () for text in known], given


def _labels(given: pl.Series) -> list[str]:
    sets = given.drop_nulls().unique()
    return sets.filter(sets != "").str.split(_BETWEEN).explode().unique().to_list()


def _measured(
    level: str, kind: str, group: str | None, given: Sequence[Ints], times: npt.NDArray[np.integer]
) -> list[tuple[object, ...]]:
    """One row per pair of files.

    Args:
        level: of the rows.
        kind: of the labels.
        group: the label or video.
        given: (n,) answer of each file, -1 for none.
        times: (n,) how many units each row stands for.
    """
    alpha = krippendorff_alpha(given, times)
    rows: list[tuple[object, ...]] = []
    for (a, b), pair in PAIRS.items():
        if max(a, b) < len(given):
            both = (given[a] >= 0) & (given[b] >= 0)
            one, two, alike = given[a][both], given[b][both], times[both]
            whole = int(alike.sum())
            equal = float(alike[one == two].sum() / whole) if whole else None
            rows.append((level, kind, group, pair, whole, equal, cohen_kappa(one, two, alike), alpha))
    return rows


def _units(wide: pl.DataFrame, count: int) -> pl.DataFrame:
    """kind, video, `given_<k>` and `times`: so many units of the video have these sets of labels.

    A set is the sorted labels of the kind as one text, empty for none, null where the item is absent.
    """
    held = wide.filter(~pl.col("what").is_in(["relation", "refused row"]))
    names = [f"given_{k}" for k in range(count)]
    sets = [pl.col(f"labels_{k}").list.join(_BETWEEN).alias(name) for k, name in enumerate(names)]
    alike = held.group_by("what", "video", *sets, maintain_order=True).agg(times=pl.len())
    rows: list[tuple[object, ...]] = []
    for (_,), part in alike.group_by("what", maintain_order=True):
        kinds = sorted({label.split(": ", 1)[0] for name in names for label in _labels(part[name])})
        for video, *given, times in part.select("video", *names, "times").iter_rows():
            rows += [(kind, video, *(_of_kind(text, kind) for text in given), times) for kind in kinds]
    schema = {"kind": pl.String, "video": pl.String, **dict.fromkeys(names, pl.String), "times": pl.Int64}
    own = pl.DataFrame(rows, schema=schema, orient="row")
    every = pl.concat([own, _pairs(wide, count)])
    counted = every.group_by("kind", "video", *names, maintain_order=True).agg(pl.col("times").sum())
    return counted.sort("kind", maintain_order=True)


def _of_kind(text: str | None, kind: str) -> str | None:
    """Of labels of several kinds in one text those of one, without the name of the kind."""
    if text is None:
        return None
    start = f"{kind}: "
    labels = (label for label in text.split(_BETWEEN) if label.startswith(start))
    return _BETWEEN.join(sorted(label.removeprefix(start) for label in labels))


def _pairs(wide: pl.DataFrame, count: int) -> pl.DataFrame:
    """The ordered pairs of persons with the set of predicates that each annotator saw between them."""
    held = wide.filter(pl.col("what") == "relation")
    videos = wide.filter(pl.col("what") == "video").select(
        "video", *(pl.col(f"present_{k}").alias(f"seen_{k}") for k in range(count))
    )
    sets = [
        pl.col("predicate")
        .filter(pl.col(f"present_{k}"))
        .unique()
        .sort()
        .str.join(_BETWEEN)
        .alias(f"given_{k}")
        for k in range(count)
    ]
    rows = held.group_by("video", "name", "object", maintain_order=True).agg(sets)
    rows = rows.join(videos, on="video", how="left", maintain_order="left")
    given = [
        pl.when(pl.col(f"seen_{k}")).then(pl.col(f"given_{k}").fill_null("")).alias(f"given_{k}")
        for k in range(count)
    ]
    return rows.select(pl.lit("predicate").alias("kind"), "video", *given, times=pl.lit(1, dtype=pl.Int64))
