"""How alike annotators are in place and time: overlap of boxes, starts and ends, by kind, label and video."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.quality.config import QualityConfig

PAIRS = {(0, 1): "original, round 1", (1, 2): "round 1, round 2", (0, 2): "original, round 2"}
LEVELS = ("all", "kind", "label", "video")


def agreement_table(wide: pl.DataFrame, config: QualityConfig, count: int) -> pl.DataFrame:
    """Agreement of each pair of files over the whole, by kind of item, by label and by video.

    Args:
        wide: the aligned items with the differences of all pairs.
        config: the limits.
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
            held = _of_pair(items, a, b)
            parts += [_grouped(held, level).with_columns(pair=pl.lit(name)) for level in LEVELS]
    rows = pl.concat(parts)
    order = pl.col("level").replace_strict({level: k for k, level in enumerate(LEVELS)})
    columns = [
        "level",
        "group",
        "pair",
        *(name for name in rows.columns if name not in ("level", "group", "pair")),
    ]
    return rows.sort(order, "group", maintain_order=True).select(columns)


def _of_pair(items: pl.DataFrame, a: int, b: int) -> pl.DataFrame:
    """The columns of one pair under short names."""
    pair = f"_{a}{b}"
    union = pl.col(f"labels_{a}").fill_null([]).list.set_union(pl.col(f"labels_{b}").fill_null([]))
    return items.select(
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


def _grouped(held: pl.DataFrame, level: str) -> pl.DataFrame:
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
