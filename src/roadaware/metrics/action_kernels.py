"""The loops of judging actions: the heap that keeps the best rows of a frame, and matching with ground truth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.geometry.compiled import kernel

NOBODY, ABSORBED = -1, -2


@kernel
def assign_heap_slots(start: Ints, rows: Floats, capacity: int) -> Ints:
    """(n,) the slot of each row in the heap of its frame, -1 where it was pushed out or not added.

    A full heap takes a row only if its score is higher than the lowest; the least row then leaves. Rows are
    sifted as Python's heapq does it, on which the places depend.

    Args:
        start: (F + 1,) where the rows of each frame start.
        rows: (n, 6) score, label id, y1, x1, y2, x2, which are compared in this order.
        capacity: how many rows a heap holds; 0 for all.
    """
    place = np.full(len(rows), -1, dtype=np.int64)
    heap = np.empty(len(rows), dtype=np.int64)
    for f in range(len(start) - 1):
        size = 0
        for row in range(start[f], start[f + 1]):
            if capacity == 0 or size < capacity:
                size += 1
                _rise(heap, row, size - 1, rows)
            elif rows[row, 0] > rows[heap[0], 0]:
                _rise(heap, row, _hole(heap, size, rows), rows)
        for at in range(size):
            place[heap[at]] = at
    return place


@kernel
def _before(a: int, b: int, rows: Floats) -> bool:
    """Whether row a is less than row b."""
    for c in range(rows.shape[1]):
        if rows[a, c] != rows[b, c]:
            return bool(rows[a, c] < rows[b, c])
    return False


@kernel
def _rise(heap: Ints, row: int, at: int, rows: Floats) -> None:
    """Put a row where it belongs on the way from a free place to the top."""
    while at > 0:
        parent = (at - 1) >> 1
        if not _before(row, heap[parent], rows):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = row


@kernel
def _hole(heap: Ints, size: int, rows: Floats) -> int:
    """Take the least row off the top and let the lesser children rise; the leaf that this leaves free."""
    at, child = 0, 1
    while child < size:
        right = child + 1
        # Of equal children the right one rises, as in heapq.
        if right < size and not _before(heap[child], heap[right], rows):
            child = right
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    return at


@kernel
def match_rows(
    start: Ints,
    cls: npt.NDArray[np.int32],
    box: Floats,
    truth_start: Ints,
    truth_cls: npt.NDArray[np.int32],
    truth_box: Floats,
    ignored: npt.NDArray[np.bool_],
    min_iou: float,
    greedy: bool,
    single: bool,
) -> tuple[Ints, Ints, Floats]:
    """For each prediction the ground-truth row it meets, the one it overlaps most (-1 for none) and how much.

    It meets NOBODY where it is wrong, and ABSORBED where it counts neither way.

    Args:
        start: (F + 1,) where the predictions of each frame start.
        cls: (n,) class of each prediction, in the order in which those of a frame choose.
        box: (n, 4) x1, y1, x2, y2.
        truth_start: (F + 1,) where the ground-truth rows of each frame start.
        truth_cls: (m,) their classes.
        truth_box: (m, 4) their boxes; the first of those with equal overlap is met.
        ignored: (m,) whether predictions on it count neither way.
        min_iou: the smallest overlap of a hit.
        greedy: whether a prediction takes the best ground-truth row that is free, not the best alone.
        single: whether differences, areas and their sums are rounded to single precision.
    """
    n = len(cls)
    met, nearest, overlap = np.full(n, NOBODY), np.full(n, -1), np.zeros(n)
    taken = np.zeros(len(truth_cls), dtype=np.bool_)
    for f in range(len(start) - 1):
        for d in range(start[f], start[f + 1]):
            free, most, absorbed = -1, 0.0, False
            for j in range(truth_start[f], truth_start[f + 1]):
                if truth_cls[j] != cls[d]:
                    continue
                shared = _overlap(box[d], truth_box[j], single)
                if nearest[d] < 0 or shared > overlap[d]:
                    nearest[d], overlap[d] = j, shared
                if greedy and shared >= min_iou:
                    if ignored[j]:
                        absorbed = True
                    elif not taken[j] and shared > most:
                        free, most = j, shared
            if not greedy and nearest[d] >= 0 and overlap[d] >= min_iou:
                absorbed = ignored[nearest[d]]
                free = -1 if taken[nearest[d]] or absorbed else nearest[d]
            if free >= 0:
                met[d] = free
                taken[free] = True
            elif absorbed:
                met[d] = ABSORBED
    return met, nearest, overlap


@kernel
def find_nearest_boxes(
    start: Ints, box: Floats, truth_start: Ints, truth_box: Floats, single: bool
) -> tuple[Ints, Floats]:
    """For each prediction the ground-truth row of any class that it overlaps most, -1 for none, and how much.

    Args:
        start: (F + 1,) where the predictions of each frame start.
        box: (n, 4) x1, y1, x2, y2.
        truth_start: (F + 1,) where the ground-truth rows of each frame start.
        truth_box: (m, 4) their boxes; the first of those with equal overlap counts.
        single: as in `match_rows`.
    """
    nearest, overlap = np.full(len(box), -1), np.zeros(len(box))
    for f in range(len(start) - 1):
        for d in range(start[f], start[f + 1]):
            for j in range(truth_start[f], truth_start[f + 1]):
                shared = _overlap(box[d], truth_box[j], single)
                if shared > overlap[d]:
                    nearest[d], overlap[d] = j, shared
    return nearest, overlap


@kernel
def _overlap(a: Floats, b: Floats, single: bool) -> float:
    """IoU of two boxes; 0 where both are without area.

    In single precision what numpy makes of arrays of such corners: widths, areas and the sum of two areas
    are rounded, the intersection is a product of numbers in double precision.
    """
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    if single:
        width, height = np.float64(np.float32(width)), np.float64(np.float32(height))
        both = np.float64(np.float32(_single_area(a) + _single_area(b)))
    inter = max(width, 0.0) * max(height, 0.0)
    union = both - inter
    return inter / union if union != 0.0 else 0.0


@kernel
def _single_area(box: Floats) -> float:
    """The area of a box, with each step in single precision."""
    width, height = np.float64(np.float32(box[2] - box[0])), np.float64(np.float32(box[3] - box[1]))
    return np.float64(np.float32(width * height))
