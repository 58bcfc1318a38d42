"""The loops of frame matching: ranking, overlaps of the boxes of a frame, and the greedy match of a class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.geometry.compiled import kernel
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
