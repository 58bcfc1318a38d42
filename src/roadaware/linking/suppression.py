"""Non-maximum suppression of detections: by agentness, or for each class on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.frame_boxes import FrameBoxes, add_step_note, extract_frame_boxes, replace_boxes
from roadaware.linking.labelling import Segments
from roadaware.linking.paths import Detections, Paths
from roadaware.scenes.dense_scores import Layout, convert_to_matrix, get_score_layout
from roadaware.scenes.tables import Predictions


@dataclass(frozen=True)
class NmsConfig:
    """Options of non-maximum suppression; the defaults are those that the detections of the published detector are made with.

    Args:
        by: `agentness`, boxes that overlap a box of more agentness are taken away; `class`, a box stays and
            its score of a class becomes 0 where it overlaps a box with more of it.
        iou: the greatest overlap that is borne.
        min_score: scores must be above this: boxes of less agentness are taken away, class scores below
            it are left as they are and suppress nothing.
        top: boxes that a frame keeps, those of most agentness; None for all.
        kinds: whose classes are suppressed (default: all but agentness).
    """

    by: Literal["agentness", "class"] = "agentness"
    iou: float = 0.5
    min_score: float = 0.025
    top: int | None = 100
    kinds: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a choice is unknown or a number is out of range.
        """
        if self.by not in ("agentness", "class"):
            raise UsageError(f"suppression goes by agentness or by class, not by {self.by!r}")
        if not (0 <= self.iou <= 1 and 0 <= self.min_score <= 1):
            raise UsageError(f"iou and min_score lie in [0, 1]; got {self.iou} and {self.min_score}")
        if self.top is not None and self.top < 1:
            raise UsageError(f"top is a number of boxes from 1 on, or None; got {self.top}")


def suppress_overlaps(predictions: Predictions, config: NmsConfig | None = None) -> Predictions:
    """The detections without those that a better one of the same frame overlaps.

    Of equal scores the earlier row is the better one. By agentness the boxes of a frame come out by falling
    agentness, as the linker and the published files have them, frames in the order in which they first
    appear; by class their order is kept.

    Args:
        predictions: detections with `score`, and for suppression by class dense `scores`; not linked.
        config: how.

    Raises:
        InputError: if the detections are linked already or have no scores.

    Source: the ROAD paper, section 4.1; the released detector keeps agentness above 0.025, suppresses at an
    IoU of 0.5, and writes the best 100.
    """
    config = config or NmsConfig()
    flat = extract_frame_boxes(predictions)
    before = len(predictions.boxes)
    if config.by == "class":
        # The boxes with suppressed class scores set to 0, and how many were.
        columns = get_score_layout(predictions.meta, "boxes")
        kinds = config.kinds or tuple(kind for kind in columns.kinds if kind != "agentness")
        boxes = predictions.boxes
        if "scores" not in boxes.columns or not columns.width:
            raise UsageError("suppression by class needs dense class scores; these detections have none")
        scores = convert_to_matrix(boxes["scores"], columns.width)
        result = scores.copy()
        for column in _columns(columns, kinds):
            # On the original scores: what one class suppresses does not change another's order.
            values = scores[:, column].astype(np.float64)
            looked_at = values > config.min_score
            looked_at[_greedy(flat, values, config)] = False
            result[looked_at, column] = 0.0
        made = pl.Series("scores", result, dtype=pl.Array(pl.Float32, columns.width))
        boxes, zeroed = boxes.with_columns(made), int((result != scores).sum())
        meta = add_step_note(predictions.meta, "suppressed", config, boxes=before, scores_zeroed=zeroed)
        return predictions.with_tables(boxes=boxes, meta=meta)
    boxes = predictions.boxes[_by_agentness(flat, config)]
    meta = add_step_note(predictions.meta, "suppressed", config, boxes=before, kept=len(boxes))
    return replace_boxes(predictions, boxes, meta)


def _by_agentness(flat: FrameBoxes, config: NmsConfig) -> Ints:
    """Rows that stay, frame by frame, the best first."""
    kept = _greedy(flat, flat.score, config)
    if config.top is None:
        return kept
    group = flat.group[kept]
    # Frames lie side by side: the place of a number's first occurrence is where its frame begins.
    begins = np.searchsorted(group, group)
    return kept[np.arange(len(kept)) - begins < config.top]


def _columns(columns: Layout, kinds: tuple[str, ...]) -> list[int]:
    return [index for kind in kinds for index in range(columns.width)[columns.columns(kind)]]


def _greedy(flat: FrameBoxes, score: Floats, config: NmsConfig) -> Ints:
    """Rows that stay when `score` decides, frame by frame, the best first."""
    from roadaware.linking.kernels import suppress

    rows = np.flatnonzero(score > config.min_score)
    order = rows[np.lexsort((-score[rows], flat.group[rows]))]
    return order[suppress(flat.corners, order, flat.group, config.iou)]


# Tube suppression: of tubes with the same label, those that overlap a better one are dropped.


def suppress_overlapping_tubes(
    found: Segments, paths: Paths, detections: Detections, config: LinkerConfig
) -> Segments:
    """The tubes of one kind that stay, in their order; of equal scores the later tube is the better one.

    Overlap is the mean IoU over the shared frames times the temporal IoU.

    Args:
        found: labelled tubes.
        paths: theirs.
        detections: theirs.
        config: `tube_nms`, `tube_nms_pixel_offset`, `gaps`.

    Source: written in the released code of 3D-RetinaNet (with 0.6) and switched off there.
    """
    if config.tube_nms is None or not len(found):
        return found
    from roadaware.linking.kernels import suppress_tubes

    frames = detections.frame[paths.rows]
    if config.gaps == "squeeze":
        # Squeezed tubes meet in the frames that they are assigned to, not in those where they were found.
        frames = np.arange(len(frames)) + np.repeat(frames[paths.ends[:-1]] - paths.ends[:-1], paths.lengths)
    video = detections.video[paths.firsts[found.path]]
    group = video * (int(found.label.max()) + 1) + found.label
    kept = suppress_tubes(
        detections.boxes,
        paths.rows,
        frames,
        paths.ends[found.path] + found.first,
        paths.ends[found.path] + found.last + 1,
        # The last key counts first: group, then falling score, then the later tube.
        np.lexsort((-np.arange(len(found)), -found.score, group)),
        group,
        float(config.tube_nms),
        float(config.tube_nms_pixel_offset),
    )
    return found.only(kept)
