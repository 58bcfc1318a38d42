"""Differences of two annotation rounds: edges of boxes, starts and ends, labels, missing and added items."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.quality.config import QualityConfig
from roadaware.analysis.quality.items import EDGES

_AXES = ("x", "y", "x", "y")
_TIME_SLACK = 1e-3
_EXCUSED = "excused"
FINDING = {"item": pl.UInt32, "stage": pl.String, "rule": pl.String, "says": pl.String}


def add_differences(wide: pl.DataFrame, a: int, b: int, config: QualityConfig) -> pl.DataFrame:
    """Add what two files differ by, null where an item is not in both.

    Args:
        wide: what `aligned` gave.
        a: the earlier file.
        b: the later file.
        config: the limits.

    Returns:
        With the suffix `_<a><b>`: edge_ref (greatest difference of an edge, at the resolution of the
        limits), worst_edge, edge_px (the same in pixels of file a), start_ref and end_ref (differences at the
        frame rate of the limits), frame_diff (the greater, in frames of file a), iou; and whether they
        exceed: edge_over, time_over.
    """
    pair = f"_{a}{b}"
    edges = [
        (
            pl.col(f"{edge}_{a}") * pl.col(f"scale_{axis}_{a}")
            - pl.col(f"{edge}_{b}") * pl.col(f"scale_{axis}_{b}")
        )
        .abs()
        .alias(f"{edge}{pair}")
        for edge, axis in zip(EDGES, _AXES, strict=True)
    ]
    times = [
        (
            pl.col(f"{name}_{b}") * pl.col(f"scale_t_{b}") - pl.col(f"{name}_{a}") * pl.col(f"scale_t_{a}")
        ).alias(f"{name}_ref{pair}")
        for name in ("start", "end")
    ]
    rows = wide.with_columns(*edges, *times, _iou(a, b).alias(f"iou{pair}"))
    names = [f"{edge}{pair}" for edge in EDGES]
    late = pl.max_horizontal(pl.col(f"start_ref{pair}").abs(), pl.col(f"end_ref{pair}").abs())
    worst = pl.concat_list(names).list.arg_max().replace_strict(dict(enumerate(EDGES)), default=None)
    rows = rows.with_columns(
        pl.max_horizontal(names).alias(f"edge_ref{pair}"),
        pl.when(pl.col(names[0]).is_not_null()).then(worst).alias(f"worst_edge{pair}"),
        # What is a whole number of frames stays one.
        (late / pl.col(f"scale_t_{a}")).round(6).alias(f"frame_diff{pair}"),
    )
    across = pl.col(f"worst_edge{pair}").str.starts_with("x")
    scale = pl.when(across).then(pl.col(f"scale_x_{a}")).otherwise(f"scale_y_{a}")
    rows = rows.with_columns((pl.col(f"edge_ref{pair}") / scale).alias(f"edge_px{pair}"))
    slack = pl.max_horizontal(f"slack_px_{a}", f"slack_px_{b}")
    return rows.with_columns(
        (pl.col(f"edge_ref{pair}") > config.edge_px + slack).alias(f"edge_over{pair}"),
        (late > config.frames + _TIME_SLACK).alias(f"time_over{pair}"),
    ).drop(names)


def find_differences(wide: pl.DataFrame, a: int, b: int, stage: str, config: QualityConfig) -> pl.DataFrame:
    """Find differences of two files beyond the limits.

    Args:
        wide: with the differences of the pair.
        a: the earlier file.
        b: the later file.
        stage: what the comparison is called.
        config: the limits.
    """
    pair = f"_{a}{b}"
    here, there = pl.col(f"present_{a}"), pl.col(f"present_{b}")
    limit_x = config.edge_px / pl.col(f"scale_x_{a}")
    axis = pl.col(f"worst_edge{pair}").str.starts_with("x")
    limit = pl.when(axis).then(limit_x).otherwise(config.edge_px / pl.col(f"scale_y_{a}"))
    at = f"{config.resolution[0]}x{config.resolution[1]}"
    moved = pl.format(
        f"{{}} differs by {{}}{{}}, at most {{}} pass ({{}} px against {config.edge_px:g} at {at})",
        f"worst_edge{pair}",
        format_digits(pl.col(f"edge_px{pair}")),
        format_unit(a),
        format_digits(limit),
        format_digits(pl.col(f"edge_ref{pair}")),
    )
    unit = (
        "frames of the file" if config.frame_rate is None else f"frames at {config.frame_rate:g} per second"
    )
    late = pl.format(
        f"start by {{}}, end by {{}} {unit}, at most {config.frames:g} pass",
        *(_format_signed(pl.col(f"{name}_ref{pair}")) for name in ("start", "end")),
    )
    both = here & there
    label_a, label_b = pl.col(f"labels_{a}"), pl.col(f"labels_{b}")
    changed = both & (label_a.list.set_symmetric_difference(label_b).list.len() > 0)
    relabelled = pl.format("{} became {}", _list(label_a), _list(label_b))
    wide = wide.with_columns(_within_tolerance(wide, a, b))
    asked = ~pl.col(_EXCUSED)
    parts = [
        select_findings(wide, here & ~there & asked, stage, "missing", pl.lit("is not there any more")),
        select_findings(wide, there & ~here & asked, stage, "added", pl.lit("was not there before")),
        select_findings(wide, pl.col(f"edge_over{pair}"), stage, "box moved", moved),
        select_findings(wide, pl.col(f"time_over{pair}"), stage, "time moved", late),
        select_findings(wide, changed, stage, "label changed", relabelled),
    ]
    return pl.concat(parts)


def _within_tolerance(wide: pl.DataFrame, a: int, b: int) -> pl.Series:
    """Which boxes are in one file only because their person starts or ends within the limit of time."""
    key = ["video", "name"]
    persons = wide.filter(
        (pl.col("what") == "person")
        & pl.col(f"present_{a}")
        & pl.col(f"present_{b}")
        & ~pl.col(f"time_over_{a}{b}").fill_null(value=True)
    )
    shared = persons.select(
        *key,
        low=pl.max_horizontal(f"start_{a}", f"start_{b}"),
        high=pl.min_horizontal(f"end_{a}", f"end_{b}"),
    ).unique(key, keep="first", maintain_order=True)
    beside = wide.select(*key, "what", "frame").join(shared, on=key, how="left", maintain_order="left")
    outside = (pl.col("frame") < pl.col("low")) | (pl.col("frame") >= pl.col("high"))
    excused = (pl.col("what") == "box") & outside.fill_null(value=False)
    return beside.select(excused.alias(_EXCUSED)).to_series()


def select_findings(wide: pl.DataFrame, wrong: pl.Expr, stage: str, rule: str, says: pl.Expr) -> pl.DataFrame:
    """One row per item for which a condition holds.

    Args:
        wide: the items.
        wrong: the condition; null as false.
        stage: where it was seen.
        rule: the rule that is broken.
        says: the text for each.
    """
    held = wide.filter(wrong.fill_null(value=False))
    rows = held.select("item", stage=pl.lit(stage), rule=pl.lit(rule), says=says.cast(pl.String))
    return rows.cast(pl.Schema(FINDING))


def format_digits(value: pl.Expr) -> pl.Expr:
    """The text of a number with at most four significant digits, whole where it is whole."""
    return value.round_sig_figs(4).cast(pl.String).str.strip_suffix(".0")


def format_unit(k: int) -> pl.Expr:
    """The unit of the edges of a video of file k, in words."""
    return pl.when(pl.col(f"width_{k}") == 1).then(pl.lit(" of the image")).otherwise(pl.lit(" px"))


def _iou(a: int, b: int) -> pl.Expr:
    """Intersection over union of the boxes of two files, each brought to one resolution."""
    one, two = _edges(a), _edges(b)
    sides = [
        (pl.min_horizontal(one[k + 2], two[k + 2]) - pl.max_horizontal(one[k], two[k])).clip(lower_bound=0)
        for k in (0, 1)
    ]
    known = one[0].is_not_null() & two[0].is_not_null()
    inter = sides[0] * sides[1]
    union = (
        sum(((edges[2] - edges[0]) * (edges[3] - edges[1]) for edges in (one, two)), start=pl.lit(0.0))
        - inter
    )
    return pl.when(known & (union > 0)).then(inter / union).when(known).then(0.0)


def _edges(k: int) -> list[pl.Expr]:
    return [
        pl.col(f"{edge}_{k}") * pl.col(f"scale_{axis}_{k}") for edge, axis in zip(EDGES, _AXES, strict=True)
    ]


def _list(labels: pl.Expr) -> pl.Expr:
    return pl.when(labels.list.len() > 0).then(labels.list.join(", ")).otherwise(pl.lit("no label"))


def _format_signed(value: pl.Expr) -> pl.Expr:
    shown = format_digits(value.fill_null(0.0) + 0.0)
    return pl.when(value > 0).then(pl.format("+{}", shown)).otherwise(shown)
