"""How alike annotators are in place and time: overlap of boxes, starts and ends, by kind, label and video."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints

PAIRS = {(0, 1): "original, round 1", (1, 2): "round 1, round 2", (0, 2): "original, round 2"}
LEVELS = ("all", "kind", "label", "video")


def build_agreement_table(wide: pl.DataFrame, count: int) -> pl.DataFrame:
    """Agreement of each pair of files over the whole, by kind of item, by label and by video.

    Args:
        wide: the aligned items with the differences of all pairs.
        count: number of files.

    Returns:
        level (all, kind, label, video), group, pair, items (in either), both, only_first, only_second;
        boxes (in both), mean_iou, share_edges (of boxes within the limit, in [0, 1]), mean_edge_px (at the
        resolution of the limits); spans (in both), share_times, mean_start and mean_end (mean absolute
        differences in frames at the rate of the limits).
    """
    items = wide.filter(pl.col("what") != "refused row")
    parts = []
    for (a, b), name in PAIRS.items():
        if max(a, b) < count:
            # The columns of one pair under short names.
            pair = f"_{a}{b}"
            union = pl.col(f"labels_{a}").fill_null([]).list.set_union(pl.col(f"labels_{b}").fill_null([]))
            held = items.select(
                "what",
                "video",
                first=pl.col(f"present_{a}"),
                second=pl.col(f"present_{b}"),
                label=union.list.sort(),
                iou=f"iou{pair}",
                edge=f"edge_ref{pair}",
                edge_over=f"edge_over{pair}",
                start=pl.col(f"start_ref{pair}").abs(),
                end=pl.col(f"end_ref{pair}").abs(),
                time_over=f"time_over{pair}",
            ).filter(pl.col("first") | pl.col("second"))
            parts += [_group_items(held, level).with_columns(pair=pl.lit(name)) for level in LEVELS]
    rows = pl.concat(parts)
    order = pl.col("level").replace_strict({level: k for k, level in enumerate(LEVELS)})
    columns = [
        "level",
        "group",
        "pair",
        *(name for name in rows.columns if name not in ("level", "group", "pair")),
    ]
    return rows.sort(order, "group", maintain_order=True).select(columns)


def _group_items(held: pl.DataFrame, level: str) -> pl.DataFrame:
    if level == "all":
        held = held.with_columns(group=pl.lit(None, dtype=pl.String))
    elif level == "label":
        held = held.explode("label").drop_nulls("label").with_columns(group=pl.col("label"))
    else:
        held = held.with_columns(group=pl.col("what" if level == "kind" else "video"))
    timed = pl.max_horizontal("start", "end").is_not_null()
    rows = held.group_by("group", maintain_order=True).agg(
        items=pl.len(),
        both=(pl.col("first") & pl.col("second")).sum(),
        only_first=(~pl.col("second")).sum(),
        only_second=(~pl.col("first")).sum(),
        boxes=pl.col("iou").count(),
        mean_iou=pl.col("iou").mean(),
        share_edges=(~pl.col("edge_over")).mean(),
        mean_edge_px=pl.col("edge").mean(),
        spans=timed.sum(),
        share_times=(~pl.col("time_over").filter(timed)).mean(),
        mean_start=pl.col("start").mean(),
        mean_end=pl.col("end").mean(),
    )
    return rows.with_columns(level=pl.lit(level))


# Agreement beyond chance on nominal labels: Cohen's kappa of two annotators, Krippendorff's alpha of any.


def cohen_kappa(
    first: npt.ArrayLike, second: npt.ArrayLike, times: npt.ArrayLike | None = None
) -> float | None:
    """How far two annotators agree beyond chance.

    kappa = (p_o - p_e) / (1 - p_e), in [-1, 1], higher is better; p_o is the share of equal labels, p_e
    the share expected if both drew from their own frequencies.

    Args:
        first: (n,) labels as whole numbers.
        second: (n,) labels of the same items.
        times: (n,) how many items each row stands for (default: one).

    Returns:
        None where it is undefined: no items, or both always give one and the same label.

    Source: Cohen, Educational and Psychological Measurement 20, 1960.

    >>> cohen_kappa([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """
    one, two = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    weight = _weights(times, len(one))
    whole = int(weight.sum())
    if not whole:
        return None
    classes = int(max(one.max(), two.max())) + 1
    a, b = (np.bincount(labels, weight, minlength=classes) for labels in (one, two))
    # Whole numbers until the last step: a single answer everywhere is exactly undefined.
    expected = float(a @ b)
    if expected >= whole**2:
        return None
    equal = float(weight[one == two].sum())
    return (equal * whole - expected) / (whole**2 - expected)


def krippendorff_alpha(raters: Sequence[npt.ArrayLike], times: npt.ArrayLike | None = None) -> float | None:
    """How far any number of annotators agree beyond chance, on nominal labels, with gaps.

    alpha = 1 - D_o / D_e, at most 1, higher is better: observed over expected disagreement, each pair of
    labels within an item weighing 1 / (labels of the item - 1).

    Args:
        raters: (n,) labels of each annotator as whole numbers, -1 where he gave none.
        times: (n,) how many items each row stands for (default: one).

    Returns:
        None where it is undefined: no item with two labels, or one and the same label everywhere.

    Source: Krippendorff, Content Analysis, 2004, chapter 11.

    >>> round(krippendorff_alpha([[0, 0, 1, 1], [0, 1, 1, 1]]), 4)
    0.5333
    """
    observed, counts = compute_disagreements(raters)
    weight = _weights(times, len(observed))
    return compute_alpha(float(weight @ observed), weight @ counts)


def compute_disagreements(raters: Sequence[npt.ArrayLike]) -> tuple[Floats, Floats]:
    """(n,) observed disagreement and (n, c) counts of the labels of each item; zeros below two labels.

    They add up over items, so that alpha of any part or resample is `compute_alpha` of sums.

    Args:
        raters: (n,) labels of each annotator as whole numbers, -1 where he gave none.
    """
    table = np.array([np.asarray(labels, dtype=np.int64) for labels in raters]).T
    if not table.size or table.max() < 0:
        return np.zeros(len(table)), np.zeros((len(table), 1))
    counts = np.stack([(table == label).sum(axis=1) for label in range(int(table.max()) + 1)], axis=1)
    given = counts.sum(axis=1).astype(np.float64)
    # One label alone agrees and disagrees with nobody: it is no part of alpha.
    found = np.where((given >= 2)[:, None], counts, 0).astype(np.float64)
    observed = np.where(given >= 2, given**2 - (found**2).sum(axis=1), 0.0)
    shares: Floats = observed / np.maximum(given - 1.0, 1.0)
    return shares, found


def compute_alpha(observed: float, frequencies: Floats) -> float | None:
    """Krippendorff's alpha of sums over items.

    Args:
        observed: disagreement.
        frequencies: (c,) of the labels.

    Returns:
        None where it is undefined: no labels, or one and the same everywhere.
    """
    whole = float(frequencies.sum())
    # Expected disagreement is over pairs of labels, and divides by whole - 1.
    if whole <= 1.0:
        return None
    expected = (whole**2 - float((frequencies**2).sum())) / (whole - 1.0)
    return 1.0 - observed / expected if expected > 0 else None


def _weights(times: npt.ArrayLike | None, count: int) -> npt.NDArray[np.float64]:
    return np.ones(count) if times is None else np.asarray(times, dtype=np.float64)


# How alike annotators are in labels: equal sets, Cohen's kappa, Krippendorff's alpha, by label and video.

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

    Returns:
        level (all, label, video), kind, group, pair, units, equal (share of equal answers, in [0, 1]), kappa
        (Cohen, of the pair) and alpha (Krippendorff, of all annotators; the same in every row of a group).
    """
    units = _units(wide, count)
    rows: list[tuple[object, ...]] = []
    for (kind,), held in units.group_by("kind", maintain_order=True):
        sets, given = _encode_labels(held, count)
        times, name = held["times"].to_numpy(), str(kind)
        rows += _compute_rows("all", name, None, given, times)
        for label in sorted({label for labels in sets for label in labels}):
            has = np.array([label in labels for labels in sets], dtype=np.int64)
            binary = [np.where(codes >= 0, has[codes], -1) for codes in given]
            rows += _compute_rows("label", name, label, binary, times)
        order = held["video"].arg_sort().to_numpy()
        videos, starts = np.unique(held["video"].gather(order).to_numpy(), return_index=True)
        for video, part in zip(videos, np.split(order, starts[1:]), strict=True):
            rows += _compute_rows("video", name, str(video), [codes[part] for codes in given], times[part])
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _encode_labels(units: pl.DataFrame, count: int) -> tuple[list[tuple[str, ...]], list[Ints]]:
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


def _compute_rows(
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
