"""Compiled loops that match predicted boxes and tubes with ground truth and name the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.geometry.compiled import inner_kernel, kernel
from roadaware.geometry.kernels import single_iou

# Six digits of 11 bits cover 64 bits, and 2,048 counters (16 KiB) fit the first cache of a processor core.
_BITS = 11
_ASKED, _ABSORBS = 1, 2
NOBODY, ABSORBED = -1, -2


@kernel
def sort_keys(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """(n,) the places of rising keys, equal ones in their order; digits that all share are passed over."""
    n, size, digits = len(keys), 1 << _BITS, 6
    counts = np.zeros((digits, size), dtype=np.int64)
    for key in keys:
        for digit in range(digits):
            counts[digit, (key >> np.uint64(_BITS * digit)) & np.uint64(size - 1)] += 1
    order, other = np.arange(n), np.empty(n, dtype=np.int64)
    for digit in range(digits):
        place, total, shared = np.empty(size, dtype=np.int64), 0, False
        for value in range(size):
            place[value] = total
            total += counts[digit, value]
            shared = shared or counts[digit, value] == n
        if shared:
            continue
        shift = np.uint64(_BITS * digit)
        for row in order:
            held = (keys[row] >> shift) & np.uint64(size - 1)
            other[place[held]] = row
            place[held] += 1
        order, other = other, order
    return order


@kernel
def compute_frame_overlaps(
    boxes: npt.NDArray[np.float64],
    frame: npt.NDArray[np.int64],
    truth: npt.NDArray[np.float64],
    frame_start: npt.NDArray[np.int64],
    pixel_offset: float,
    single: bool,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Where the pairs of each prediction start, (n + 1,), and the IoU of each prediction with each ground truth of its frame.

    Args:
        boxes: (n, 4) predicted boxes.
        frame: (n,) the frame of each.
        truth: (m, 4) ground-truth boxes by frame.
        frame_start: (F + 1,) where those of each frame start.
        pixel_offset: added to widths and heights.
        single: whether boxes, which 32 bits then hold, are compared in 32-bit arithmetic.
    """
    start = np.zeros(len(boxes) + 1, dtype=np.int64)
    for d in range(len(boxes)):
        start[d + 1] = start[d] + frame_start[frame[d] + 1] - frame_start[frame[d]]
    overlap = np.empty(start[-1])
    for d in range(len(boxes)):
        x1, y1, x2, y2 = boxes[d, 0], boxes[d, 1], boxes[d, 2], boxes[d, 3]
        area = (x2 - x1 + pixel_offset) * (y2 - y1 + pixel_offset)
        first = frame_start[frame[d]]
        for j in range(first, frame_start[frame[d] + 1]):
            if single:
                overlap[start[d] + j - first] = single_iou(boxes[d], truth[j], pixel_offset)
                continue
            wide = min(x2, truth[j, 2]) - max(x1, truth[j, 0]) + pixel_offset
            high = min(y2, truth[j, 3]) - max(y1, truth[j, 1]) + pixel_offset
            inter = max(wide, 0.0) * max(high, 0.0)
            width, height = truth[j, 2] - truth[j, 0], truth[j, 3] - truth[j, 1]
            union = area + (width + pixel_offset) * (height + pixel_offset) - inter
            overlap[start[d] + j - first] = inter / union if union != 0.0 else 0.0
    return start, overlap


@kernel
def keep_top_per_frame(
    ranked: npt.NDArray[np.int64], frame: npt.NDArray[np.int64], n_frames: int, most: int
) -> npt.NDArray[np.int64]:
    """The ranks of the first `most` predictions of each frame."""
    taken = np.zeros(n_frames, dtype=np.int64)
    kept = np.empty_like(ranked)
    n = 0
    for rank in range(len(ranked)):
        of = frame[ranked[rank]]
        if taken[of] < most:
            taken[of] += 1
            kept[n] = rank
            n += 1
    return kept[:n]


@kernel
def match_class(
    ranked: npt.NDArray[np.int64],
    frame: npt.NDArray[np.int64],
    frame_start: npt.NDArray[np.int64],
    pair_start: npt.NDArray[np.int64],
    overlap: npt.NDArray[np.float64],
    role: npt.NDArray[np.uint8],
    used: npt.NDArray[np.uint8],
    thresholds: npt.NDArray[np.float64],
) -> npt.NDArray[np.int32]:
    """(k, T) the ground-truth box that each prediction of a class meets; NOBODY, or ABSORBED by what is not asked for.

    A prediction takes the box of its frame and class with the greatest overlap among those that no better prediction
    took, the first of equals, where that is at least the threshold.

    Args:
        ranked: (k,) the predictions of the class by falling score.
        frame: (n,) frame of each prediction.
        frame_start: (F + 1,) where the ground-truth boxes of each frame start.
        pair_start: (n + 1,) where the overlaps of each prediction start.
        overlap: of each prediction with each ground-truth box of its frame.
        role: (m,) 1 where a ground-truth box is asked for, 2 where it absorbs predictions, 0 for other classes.
        used: (T, m) zeros; what is taken is marked.
        thresholds: (T,) smallest overlaps.
    """
    met = np.full((len(ranked), len(thresholds)), NOBODY, dtype=np.int32)
    for k in range(len(ranked)):
        d = ranked[k]
        first, end = frame_start[frame[d]], frame_start[frame[d] + 1]
        shift = pair_start[d] - first
        top, absorbed = -1.0, -1.0
        for j in range(first, end):
            if role[j] == _ASKED:
                top = max(top, overlap[shift + j])
            elif role[j] == _ABSORBS:
                absorbed = max(absorbed, overlap[shift + j])
        for t in range(len(thresholds)):
            if absorbed >= thresholds[t]:
                # Written first: what meets an object that is asked for is a hit all the same.
                met[k, t] = ABSORBED
            # Nothing of the class overlaps enough here, taken or not.
            if top < thresholds[t]:
                continue
            best, which = -1.0, -1
            for j in range(first, end):
                if role[j] == _ASKED and used[t, j] == 0 and overlap[shift + j] > best:
                    best, which = overlap[shift + j], j
            if which >= 0 and best >= thresholds[t]:
                met[k, t] = which
                used[t, which] = 1
    return met


RIGHT, DUPLICATE, SPACE, TIME, SPACE_TIME, CLASS, CLASS_AND_PLACE, BACKGROUND = range(8)
TEMPORAL, SPATIAL = 0, 1


@inner_kernel
def _met(
    of: int,
    first: int,
    end: int,
    pair_object: Ints,
    overlap: Floats,
    instance_offsets: Ints,
    instance_cls: Ints,
    found: Any,
    threshold: float,
) -> Any:
    """What a prediction of class `of` overlaps most among the pairs from `first` to `end`.

    Returns:
        instance and pair, -1 for none, of its class and free at the threshold, of its class, and of others.
    """
    best = np.full((3, 2), -1, dtype=np.int64)
    # Ties: strictly more than the best so far, so the first of equals; but exactly the threshold is enough.
    most = np.array([threshold, 0.0, 0.0])
    for pair in range(first, end):
        begin, stop = instance_offsets[pair_object[pair]], instance_offsets[pair_object[pair] + 1]
        own = -1
        for k in range(begin, stop):
            if instance_cls[k] == of:
                own = k
        if own < 0:
            if stop > begin and overlap[pair] > most[2]:
                best[2, 0], best[2, 1], most[2] = begin, pair, overlap[pair]
            continue
        if overlap[pair] > most[1]:
            best[1, 0], best[1, 1], most[1] = own, pair, overlap[pair]
        better = overlap[pair] > most[0] or (best[0, 0] < 0 and overlap[pair] >= threshold)
        if better and not found[own]:
            best[0, 0], best[0, 1], most[0] = own, pair, overlap[pair]
    return best


@kernel
def assign_error_types(
    cls: Ints,
    thing: Ints,
    pair_offsets: Ints,
    pair_object: Ints,
    overlap: Floats,
    parts: Floats,
    instance_offsets: Ints,
    instance_cls: Ints,
    threshold: float,
    floor: float,
) -> Any:
    """Match predictions to ground truth in their order and name the fault of those that match none.

    Args:
        cls: (n,) class of each prediction; predictions by class and falling score.
        thing: (n,) the box or tube that is predicted to be of the class.
        pair_offsets: (things + 1,) where the pairs of each thing begin.
        pair_object: (p,) the ground-truth object of each pair.
        overlap: (p,) of each pair.
        parts: (p, 2) temporal and spatial part of the overlap.
        instance_offsets: (objects + 1,) where the labels of each object begin.
        instance_cls: (i,) the class of each label: an object with two labels is two instances.
        threshold: smallest overlap of a hit.
        floor: smallest overlap of a prediction that is meant for an object.

    Returns:
        fault (n,), instance that the prediction met or was meant for (n,), -1 if none, and its pair (n,).
    """
    fault = np.full(len(cls), BACKGROUND, dtype=np.int64)
    seen = np.full((len(cls), 2), -1, dtype=np.int64)
    found = np.zeros(len(instance_cls), dtype=np.bool_)
    for i in range(len(cls)):
        first, end = pair_offsets[thing[i]], pair_offsets[thing[i] + 1]
        best = _met(
            cls[i], first, end, pair_object, overlap, instance_offsets, instance_cls, found, threshold
        )
        own, other = best[1, 1], best[2, 1]
        if best[0, 0] >= 0:
            found[best[0, 0]] = True
            fault[i], seen[i] = RIGHT, best[0]
        elif own >= 0 and overlap[own] >= floor:
            fault[i], seen[i] = SPACE_TIME, best[1]
            if overlap[own] >= threshold:
                fault[i] = DUPLICATE
            elif parts[own, TEMPORAL] >= threshold:
                fault[i] = SPACE
            elif parts[own, SPATIAL] >= threshold:
                fault[i] = TIME
        elif other >= 0 and overlap[other] >= floor:
            fault[i], seen[i] = CLASS_AND_PLACE, best[2]
            if overlap[other] >= threshold:
                fault[i] = CLASS
    return fault, seen[:, 0].copy(), seen[:, 1].copy()


@kernel
def count_shared_frames(
    first: Ints, second: Ints, frames_a: Ints, start_a: Ints, frames_b: Ints, start_b: Ints
) -> Any:
    """(p, 3) first and last frame that both tubes of each pair have, and how many; -1, -1, 0 for none.

    Args:
        first: (p,) tube of the one set.
        second: (p,) tube of the other.
        frames_a: frames of the tubes of the one set, rising in each.
        start_a: (n + 1,) where those of each tube begin.
        frames_b: the same of the other set.
        start_b: the same of the other set.
    """
    shared = np.full((len(first), 3), -1, dtype=np.int64)
    for pair in range(len(first)):
        i, j = start_a[first[pair]], start_b[second[pair]]
        count = 0
        while i < start_a[first[pair] + 1] and j < start_b[second[pair] + 1]:
            if frames_a[i] == frames_b[j]:
                if count == 0:
                    shared[pair, 0] = frames_a[i]
                shared[pair, 1] = frames_a[i]
                count += 1
            behind = frames_a[i] - frames_b[j]
            i += 1 if behind <= 0 else 0
            j += 1 if behind >= 0 else 0
        shared[pair, 2] = count
    return shared


@kernel
def match_corrected(order: Ints, mended: Any, meant: Ints, taken: Any) -> Any:
    """Which of the corrected predictions meet ground truth that no better prediction has met.

    Args:
        order: (n,) predictions by falling score, over all classes.
        mended: (n,) whether the prediction's error is corrected.
        meant: (n,) the instance that it is meant for.
        taken: (i,) instances that are met already; not changed.

    Returns:
        (n,) whether the corrected prediction is a hit.
    """
    hit = np.zeros(len(meant), dtype=np.bool_)
    met = taken.copy()
    for i in order:
        if mended[i] and meant[i] >= 0 and not met[meant[i]]:
            met[meant[i]] = True
            hit[i] = True
    return hit


@kernel
def assign_tubes(
    order: Ints,
    extent: Ints,
    cls: Ints,
    pairs: Ints,
    second: Ints,
    overlap: Floats,
    held: Ints,
    truth: Ints,
    truth_cls: Ints,
    thresholds: Floats,
) -> Ints:
    """The ground-truth tube that each prediction takes at each threshold, -1 where it takes none.

    A prediction looks at the ground-truth tubes of its class that no prediction before it took, and takes the one of
    greatest overlap, the first of equals, if the overlap is at least the threshold.

    Args:
        order: (n,) the predictions, best first.
        extent: (n,) extent of each prediction.
        cls: (n,) class of each prediction.
        pairs: (extents + 1,) where the pairs of each predicted extent begin.
        second: (p,) the ground-truth extent of each pair.
        overlap: (p,) of each pair.
        held: (ground-truth extents + 1,) where the tubes of each ground-truth extent begin in `truth`.
        truth: (m,) ground-truth tubes by extent.
        truth_cls: (m,) class of each ground-truth tube.
        thresholds: (T,).
    """
    n, levels = len(order), len(thresholds)
    taken = np.zeros((len(truth), levels), dtype=np.bool_)
    result = np.full((n, levels), -1, dtype=np.int64)
    best = np.empty(levels)
    for prediction in order:
        best[:] = 0.0
        for p in range(pairs[extent[prediction]], pairs[extent[prediction] + 1]):
            for k in range(held[second[p]], held[second[p] + 1]):
                t = truth[k]
                if truth_cls[t] != cls[prediction]:
                    continue
                for level in range(levels):
                    found = result[prediction, level]
                    # Of equals the first in the table, whatever the order of the extents.
                    better = overlap[p] > best[level] or (overlap[p] == best[level] and t < found)
                    if better and not taken[t, level]:
                        best[level] = overlap[p]
                        result[prediction, level] = t
        for level in range(levels):
            if best[level] < thresholds[level]:
                result[prediction, level] = -1
            elif result[prediction, level] >= 0:
                taken[result[prediction, level], level] = True
    return result


@kernel
def find_nearest_tubes(
    extent: Ints,
    group: Ints,
    pairs: Ints,
    second: Ints,
    overlap: Floats,
    held: Ints,
    truth: Ints,
    truth_group: Ints,
) -> tuple[Ints, Ints]:
    """The pair and the ground-truth tube of greatest overlap of each prediction within its group, -1 where none meets it.

    Args:
        extent: (n,) extent of each prediction.
        group: (n,) group of each prediction: its class, or its kind.
        pairs: as in `assign_tubes`, like the next five.
        second: (p,).
        overlap: (p,).
        held: (ground-truth extents + 1,).
        truth: (m,).
        truth_group: (m,) group of each ground-truth tube.
    """
    n = len(extent)
    pair, tube = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    for prediction in range(n):
        best = 0.0
        for p in range(pairs[extent[prediction]], pairs[extent[prediction] + 1]):
            for k in range(held[second[p]], held[second[p] + 1]):
                t = truth[k]
                if truth_group[t] != group[prediction] or overlap[p] <= 0:
                    continue
                if overlap[p] > best or (overlap[p] == best and t < tube[prediction]):
                    best, pair[prediction], tube[prediction] = overlap[p], p, t
    return pair, tube
