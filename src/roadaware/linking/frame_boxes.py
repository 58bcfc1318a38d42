"""Detections of a set as flat arrays, frame by frame, for the steps between a detector and the linker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions

_NOTE = "after_detector"


@dataclass(frozen=True)
class FrameBoxes:
    """All boxes of a set of detections, in the row order of the table.

    Args:
        group: (n,) the frame each box is in, numbered in the order in which frames first appear.
        corners: (n, 4) x1, y1, x2, y2 in pixels.
        score: (n,) agentness.
    """

    group: Ints
    corners: Floats
    score: Floats


def extract_frame_boxes(predictions: Predictions) -> FrameBoxes:
    """The detections of a set that is not linked yet.

    Raises:
        InputError: if there are tubes already, or a box has no score.
    """
    boxes = predictions.boxes
    linked = "tube" in boxes.columns and boxes["tube"].null_count() < len(boxes)
    if linked or not predictions.tubes.is_empty():
        raise InputError(
            "the detections are linked to tubes already, and taking boxes away would break them",
            hint="do this before linking",
        )
    if "score" not in boxes.columns or boxes["score"].null_count():
        raise InputError("every box needs its agentness in boxes.score")
    corners = np.stack([boxes[side].to_numpy() for side in CORNERS], axis=1).astype(np.float64)
    group = assign_frame_numbers(boxes.select(pl.col("video").cast(pl.String), "frame"))
    return FrameBoxes(group, np.ascontiguousarray(corners), boxes["score"].to_numpy().astype(np.float64))


def assign_frame_numbers(rows: pl.DataFrame) -> Ints:
    """A number for each (video, frame), in the order of first appearance.

    Args:
        rows: (n) with video and frame.
    """
    first = rows.with_row_index("row").select(pl.col("row").min().over("video", "frame")).to_series()
    return np.unique(first.to_numpy(), return_inverse=True)[1].astype(np.int64)


def replace_boxes(predictions: Predictions, boxes: pl.DataFrame, meta: Meta) -> Predictions:
    """The predictions with other boxes; labels of boxes that are gone go with them."""
    labels = predictions.labels
    if not labels.is_empty():
        labels = labels.filter(pl.col("box").is_in(boxes["box"].implode()))
    return predictions.with_tables(boxes=boxes, labels=labels, meta=meta)


def add_step_note(meta: Meta, step: str, config: Any, **counts: int) -> Meta:
    """The meta with one more step recorded in `notes["after_detector"]`."""
    done = [*meta.notes.get(_NOTE, []), {"step": step, "config": to_dict(config), **counts}]
    return replace(meta, notes={**meta.notes, _NOTE: done})


def list_steps(tables: Predictions) -> list[dict[str, Any]]:
    """What was done to detections, in its order: each step with its settings and counts, as the notes have it."""
    return list(tables.meta.notes.get(_NOTE, []))
