"""Gaps of linked tubes filled between their detections, and tubes that are too short taken away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.linking.frame_boxes import add_step_note, replace_boxes
from roadaware.scenes.dense_scores import convert_to_matrix
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions

_SPANS = pl.List(pl.List(pl.Int64))


@dataclass(frozen=True)
class InterpolationConfig:
    """Which gaps are interpolated, and the minimum length of a tube.

    Args:
        max_gap: the longest run of missed frames that is filled; None for any.
        min_length: boxes that a path needs, filled ones included, and frames that a labelled tube needs.
    """

    max_gap: int | None = None
    min_length: int = 1

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a number is out of range.
        """
        if self.max_gap is not None and self.max_gap < 0:
            raise UsageError(f"max_gap is a number of frames from 0 on, or None; got {self.max_gap}")
        if self.min_length < 1:
            raise UsageError(f"min_length is a number of boxes from 1 on; got {self.min_length}")


def interpolate_tubes(predictions: Predictions, config: InterpolationConfig | None = None) -> Predictions:
    """The predictions with boxes put into the gaps of paths, and without short paths and tubes.

    Corners, agentness and class scores run linearly from the detection before a gap to the one after it.
    New boxes stand behind the others, by path and frame, with `interpolated` true. Spans of labelled tubes on
    both sides of a filled gap become one. Detections of a path that is taken away stay, without tube.

    Args:
        predictions: linked, with one box per path and frame.
        config: how.

    Raises:
        InputError: if tubes are assigned to consecutive frames whatever frames their boxes were found in,
            or a path has two boxes in a frame.

    Source: gap filling and minimum length of the released tube builder of 3D-RetinaNet, which throws its
    result away, and of the winners of the ROAD challenge.
    """
    config = config or InterpolationConfig()
    tubes = predictions.tubes
    if "consecutive" in tubes.columns and tubes["consecutive"].any():
        raise InputError(
            "the tubes are predicted for consecutive frames, so no frame of theirs is missing",
            hint="link with the gaps kept, as LinkerConfig.default does or with gaps='keep'",
        )
    filled, gaps = _fill_gaps(predictions.boxes, config)
    tubes = _merge_spans(tubes, gaps)
    # The numbers of tubes that are too short, and of those cut from them.
    lengths = filled.filter(pl.col("tube").is_not_null()).group_by("tube").len("length")
    table = tubes.join(lengths, on="tube", how="left", maintain_order="left")
    own = pl.col("length") < config.min_length
    if not {"parent", "spans"} <= set(tubes.columns):
        short = table.filter(own.fill_null(value=False))["tube"]
    else:
        covered = pl.col("spans").list.eval(pl.element().list.get(1) - pl.element().list.get(0)).list.sum()
        cut = pl.col("parent").is_not_null() & (covered < config.min_length)
        gone = table.filter(own)["tube"]
        orphaned = pl.col("parent").is_in(gone.implode())
        short = table.filter(pl.any_horizontal(own, cut, orphaned))["tube"]
    kept = tubes.filter(~pl.col("tube").is_in(short.implode()))
    boxes = _drop_short_tubes(filled, short)
    made = len(boxes) - len(predictions.boxes)
    meta = add_step_note(
        predictions.meta, "interpolated", config, boxes_made=made, tubes=len(tubes), tubes_kept=len(kept)
    )
    labels = predictions.tube_labels.filter(~pl.col("tube").is_in(short.implode()))
    bare = predictions.with_tables(boxes=boxes.with_columns(tube=pl.lit(None, pl.Int64)), tubes=tubes.clear())
    whole = replace_boxes(bare, boxes, meta)
    return whole.with_tables(tubes=kept, tube_labels=labels)


def _fill_gaps(boxes: pl.DataFrame, config: InterpolationConfig) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The boxes with those of the gaps behind them, and the gaps: tube, low and high (half open)."""
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    boxes = boxes.with_columns(
        pl.col("interpolated").fill_null(value=False)
        if "interpolated" in boxes.columns
        else pl.lit(value=False).alias("interpolated")
    )
    owned = boxes.with_row_index("row").filter(pl.col("tube").is_not_null()).sort("tube", "frame")
    tube, frame, row = (owned[c].to_numpy().astype(np.int64) for c in ("tube", "frame", "row"))
    same = tube[1:] == tube[:-1]
    missed = np.diff(frame) - 1
    if (same & (missed < 0)).any():
        at = int(np.flatnonzero(same & (missed < 0))[0])
        raise InputError(f"tube {tube[at]} has two boxes in frame {frame[at]}")
    longest = missed.max(initial=0) if config.max_gap is None else config.max_gap
    before = np.flatnonzero(same & (missed > 0) & (missed <= longest))
    count = missed[before]
    gaps = pl.DataFrame({"tube": tube[before], "low": frame[before] + 1, "high": frame[before + 1]})
    step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + 1
    # A gap of m frames has m + 1 steps from the detection before it to the one behind.
    share = step / np.repeat(count + 1, count)
    left, right = np.repeat(row[before], count), np.repeat(row[before + 1], count)
    # New boxes on the way from one detection to another.
    old, new = boxes[left], boxes[right]
    largest: Any = boxes["box"].max()
    # Behind the largest number, so that no label points to a new box.
    first = 0 if largest is None else int(largest) + 1
    made = old.select("video", "tube").with_columns(
        pl.Series("box", np.arange(first, first + len(left))),
        pl.Series("frame", old["frame"].to_numpy() + step),
        interpolated=pl.lit(value=True),
    )
    numbers = [*CORNERS, *(["score"] if "score" in boxes.columns else [])]
    for name in numbers:
        a, b = old[name].to_numpy().astype(np.float64), new[name].to_numpy().astype(np.float64)
        made = made.with_columns(pl.Series(name, a + (b - a) * share, dtype=boxes.schema[name]))
    if "scores" in boxes.columns and len(left):
        made = made.with_columns(_dense(old["scores"], new["scores"], share))
    return pl.concat([boxes, made], how="diagonal_relaxed"), gaps


def _dense(old: pl.Series, new: pl.Series, share: Any) -> pl.Series:
    """Rows of class scores on the way from one to another."""
    width = len(old[0])
    a, b = (convert_to_matrix(each, width).astype(np.float64) for each in (old, new))
    values = (a + (b - a) * np.asarray(share)[:, None]).astype(np.float32)
    return pl.Series("scores", values, dtype=pl.Array(pl.Float32, width)).cast(old.dtype)


def _merge_spans(tubes: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """The tubes with spans joined over filled gaps."""
    if "spans" not in tubes.columns or gaps.is_empty() or not tubes["spans"].list.len().sum():
        return tubes
    owner = pl.coalesce("parent", "tube") if "parent" in tubes.columns else pl.col("tube")
    pieces = (
        tubes.filter(pl.col("spans").list.len() > 0)
        .select("tube", owner=owner, span="spans")
        .explode("span")
        .with_columns(low=pl.col("span").list.get(0), high=pl.col("span").list.get(1))
        .with_columns(before=pl.col("high").shift(1).over("tube"))
    )
    known = gaps.select(owner="tube", before="low", low="high", bridged=pl.lit(value=True))
    # Half open: the gap between two spans begins at the end of one and ends at the start of the next.
    pieces = pieces.join(known, on=["owner", "before", "low"], how="left", maintain_order="left")
    run = pl.col("bridged").is_null().cum_sum()
    joined = pieces.group_by("tube", run=run, maintain_order=True).agg(
        pl.col("low").first(), pl.col("high").last()
    )
    spans = joined.group_by("tube", maintain_order=True).agg(spans=pl.concat_list("low", "high"))
    fresh = tubes.select("tube").join(spans, on="tube", how="left", maintain_order="left")["spans"]
    return tubes.with_columns(fresh.cast(_SPANS).fill_null(tubes["spans"]))


def _drop_short_tubes(boxes: pl.DataFrame, short: pl.Series) -> pl.DataFrame:
    """The boxes without those interpolated for short tubes; their detections belong to none."""
    gone = pl.col("tube").is_in(short.implode()).fill_null(value=False)
    kept = boxes.filter(~(gone & pl.col("interpolated")))
    return kept.with_columns(tube=pl.when(~gone).then("tube"))
