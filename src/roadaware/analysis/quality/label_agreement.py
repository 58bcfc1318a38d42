"""How alike annotators are in labels: equal sets, Cohen's kappa, Krippendorff's alpha, by label and video."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from roadaware.analysis.quality.agreement import PAIRS
from roadaware.analysis.quality.kappa import cohen_kappa, krippendorff_alpha

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
        rows += _measured("all", str(kind), None, held, count)
        labels = {label for k in range(count) for label in _labels(held[f"given_{k}"])}
        for label in sorted(labels):
            binary = held.with_columns(_has(f"given_{k}", label) for k in range(count))
            rows += _measured("label", str(kind), label, binary, count)
        for (video,), part in held.group_by("video", maintain_order=True):
            rows += _measured("video", str(kind), str(video), part, count)
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _labels(given: pl.Series) -> list[str]:
    sets = given.drop_nulls().unique()
    return sets.filter(sets != "").str.split(_BETWEEN).explode().unique().to_list()


def _has(name: str, label: str) -> pl.Expr:
    """`1` or `0` for whether a label is in the set, null where the annotator gave none."""
    held = pl.col(name).str.split(_BETWEEN).list.contains(label)
    return pl.when(held).then(pl.lit("1")).when(~held).then(pl.lit("0")).alias(name)


def _measured(
    level: str, kind: str, group: str | None, units: pl.DataFrame, count: int
) -> list[tuple[object, ...]]:
    """One row per pair of files."""
    columns = [f"given_{k}" for k in range(count)]
    known = sorted({text for name in columns for text in units[name].drop_nulls().unique()})
    codes = {text: code for code, text in enumerate(known)}
    given = [
        units[name].replace_strict(codes, default=-1, return_dtype=pl.Int64).fill_null(-1).to_numpy()
        for name in columns
    ]
    alpha = krippendorff_alpha(given)
    rows: list[tuple[object, ...]] = []
    for (a, b), pair in PAIRS.items():
        if max(a, b) < count:
            both = (given[a] >= 0) & (given[b] >= 0)
            one, two = given[a][both], given[b][both]
            equal = float(np.mean(one == two)) if len(one) else None
            rows.append((level, kind, group, pair, len(one), equal, cohen_kappa(one, two), alpha))
    return rows


def _units(wide: pl.DataFrame, count: int) -> pl.DataFrame:
    """kind, video and `given_<k>`: the sorted labels of the kind, empty for none, null without the item."""
    held = wide.filter(~pl.col("what").is_in(["relation", "refused row"]))
    long = pl.concat(
        [
            held.select("item", "what", shown=pl.col(f"labels_{k}")).explode("shown").drop_nulls()
            for k in range(count)
        ]
    ).unique(maintain_order=True)
    parts = [pl.col("shown").str.split_exact(": ", 1).struct.field("field_0").alias("kind")]
    kinds = long.with_columns(parts).select("what", "kind").unique(maintain_order=True)
    rows = held.join(kinds, on="what", maintain_order="left")
    given = [_set_of_kind(f"labels_{k}", f"given_{k}") for k in range(count)]
    own = rows.select("kind", "video", *given)
    return pl.concat([own, _pairs(wide, count)]).sort("kind", maintain_order=True)


def _set_of_kind(source: str, name: str) -> pl.Expr:
    prefix = pl.format("{}: ", "kind")
    shown = pl.col(source).list.join(_BETWEEN)
    return _only_kind(shown, prefix).alias(name)


def _only_kind(shown: pl.Expr, prefix: pl.Expr) -> pl.Expr:
    """Of labels of several kinds in one text those of one, without the name of the kind."""
    return pl.struct(shown=shown, prefix=prefix).map_batches(
        lambda rows: pl.Series(
            [
                None if text is None else _stripped(text.split(_BETWEEN), start)
                for text, start in zip(rows.struct.field("shown"), rows.struct.field("prefix"), strict=True)
            ],
            dtype=pl.String,
        ),
        return_dtype=pl.String,
    )


def _stripped(labels: Sequence[str], prefix: str) -> str:
    return _BETWEEN.join(sorted(label[len(prefix) :] for label in labels if label.startswith(prefix)))


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
    return rows.select(pl.lit("predicate").alias("kind"), "video", *given)
