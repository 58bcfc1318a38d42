"""Which predicted actions are right: rows in the order in which they are judged, and the ground truth each meets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Floats, Ints
from roadaware.metrics.actions.config import ActionConfig
from roadaware.metrics.actions.frames import (
    build_item_table,
    mask_counted_frames,
    mask_evaluated_frames,
    rank_frames,
)
from roadaware.metrics.actions.inputs import Actions, Rows
from roadaware.metrics.actions.state import JudgedActions
from roadaware.metrics.detection.frame import sort_descending

ABSORBED = -2
"""In the place of a ground-truth row: the prediction counts neither way, as in `kernels`, which imports numba."""
_YXYX = (1, 0, 3, 2)


@dataclass(frozen=True, eq=False)
class Judgement:
    """Ground truth and predictions of the judged frames, and their matches.

    Args:
        actions: everything that was read.
        config: how it was judged.
        truth: the ground-truth rows of judged frames, frame after frame; the first of equal overlap is met.
        truth_start: (F + 1,) where those of each frame start, in the order in which frames are ranked.
        claims: the predictions that are judged, frame after frame; those of a frame in the order in which they
            choose.
        claim_start: (F + 1,) where those of each frame start.
        met: (n,) the ground-truth row that each prediction meets, -1 where it is wrong, ABSORBED where it counts neither
            way.
        nearest: (n,) the ground-truth row of its class and frame that it overlaps most, -1 where there is none.
        overlap: (n,) the IoU with that, 0 where there is none.
        over_capacity: how many predictions the capacity of their frame kept out.
        flat: how many predictions were dropped because they have no area.
    """

    actions: Actions
    config: ActionConfig
    truth: Rows
    truth_start: Ints
    claims: Rows
    claim_start: Ints
    met: Ints
    nearest: Ints
    overlap: Floats
    over_capacity: int
    flat: int

    def state(self) -> JudgedActions:
        """What the metrics are made from."""
        counted = mask_counted_frames(self.actions.frames, self.config)
        item = (np.cumsum(counted) - 1).astype(np.int32)
        truth = self.actions.truth.take(counted[self.actions.truth.frame] & ~self.actions.truth.ignored)
        kept = np.flatnonzero(self.met != ABSORBED)
        score = self.claims.score[kept]
        return JudgedActions(
            build_item_table(self.actions.frames, counted),
            self.config,
            self.actions.classes,
            self.claims.cls[kept],
            cast_to_single(score) if self.config.numbers == "single" else score,
            item[self.claims.frame[kept]],
            kept,
            self.met[kept] >= 0,
            item[truth.frame],
            truth.cls,
        ).ranked()


def match_actions(actions: Actions, config: ActionConfig) -> Judgement:
    """Match the predictions of judged frames with their ground truth.

    Source: Gu et al., CVPR 2018, section 5; the evaluators named in `config`.
    """
    from roadaware.metrics.actions.kernels import match_rows

    judged, rank = mask_evaluated_frames(actions.frames, config), rank_frames(actions, config)
    truth, claims = (rows.take(judged[rows.frame]) for rows in (actions.truth, actions.claims))
    person = truth.score if config.truth_by_person else np.zeros(len(truth))
    truth = truth.take(_in_order(truth, person, rank, actions.label_ids, config, None))
    order = _in_order(claims, claims.score, rank, actions.label_ids, config, config.per_frame_capacity)
    over, claims = len(claims) - len(order), claims.take(order)
    flat = _flat(claims.corners) & (config.zero_area_claims == "dropped")
    claims = claims.take(~flat) if flat.any() else claims
    single = config.numbers == "single"
    starts = [_starts(rank[rows.frame], len(rank)) for rows in (claims, truth)]
    boxes = [cast_to_single(rows.corners) if single else rows.corners for rows in (claims, truth)]
    met, nearest, overlap = match_rows(
        starts[0],
        claims.cls,
        boxes[0],
        starts[1],
        truth.cls,
        boxes[1],
        truth.ignored,
        float(config.min_iou),
        config.match == "greedy",
        single,
    )
    return Judgement(
        actions, config, truth, starts[1], claims, starts[0], met, nearest, overlap, over, int(flat.sum())
    )


def _in_order(
    rows: Rows, score: Floats, rank: Ints, label_ids: Ints, config: ActionConfig, capacity: int | None
) -> Ints:
    """The rows that are judged, by rank of the frame, falling score and `row_order`.

    Args:
        rows: (n,) in the order of the file.
        score: (n,) what they are ordered by.
        rank: (F,) of each frame.
        label_ids: (C,) native numbers of the classes.
        config: with `row_order`.
        capacity: how many rows of a frame are judged; None for all.
    """
    at, held = rank[rows.frame], np.arange(len(rows))
    if config.row_order == "heap":
        held = _select_heap_rows(rows, score, at, label_ids, len(rank), capacity or 0)
    order = held[sort_descending(score[held])]
    order = order[_rising(at[order])]
    if capacity is None or config.row_order == "heap":
        return order
    starts = _starts(at[order], len(rank))
    return order[np.arange(len(order)) - starts[at[order]] < capacity]


def _select_heap_rows(
    rows: Rows, score: Floats, at: Ints, label_ids: Ints, n_frames: int, capacity: int
) -> Ints:
    """The rows that the heaps of their frames keep, frame after frame, as the heaps hold them."""
    from roadaware.metrics.actions.kernels import assign_heap_slots

    order = _rising(at)
    start = _starts(at[order], n_frames)
    keys = np.empty((len(rows), 6))
    keys[:, 0], keys[:, 1], keys[:, 2:] = (
        score[order],
        label_ids[rows.cls[order]],
        rows.corners[order][:, _YXYX],
    )
    place = assign_heap_slots(start, keys, capacity)
    held = np.full(len(rows), -1)
    kept = place >= 0
    held[start[at[order[kept]]] + place[kept]] = order[kept]
    return held[held >= 0]


def _rising(values: Ints) -> Ints:
    """(n,) the places of rising numbers of 0 and more, equal ones in their order."""
    from roadaware.metrics.detection.frame_kernels import sort_keys

    return sort_keys(values.astype(np.uint64))


def _starts(values: Ints, n: int) -> Ints:
    """(n + 1,) where each of 0 to n starts among rising numbers."""
    return np.searchsorted(values, np.arange(n + 1))


def _flat(corners: Floats) -> Bools:
    """(n,) whether a box has no area."""
    flat: Bools = (corners[:, 0] >= corners[:, 2]) | (corners[:, 1] >= corners[:, 3])
    return flat


def cast_to_single(numbers: Floats) -> Floats:
    """The numbers rounded to single precision."""
    return numbers.astype(np.float32).astype(np.float64)
