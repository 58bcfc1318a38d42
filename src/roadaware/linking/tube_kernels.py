"""Compiled steps around the linker: checks of input, walks along paths, tube suppression; imports numba."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.geometry.compiled import kernel
from roadaware.linking.candidates import BEFORE


@kernel
def fault(boxes: Floats, agentness: Floats, scores: Floats32) -> tuple[int, int]:
    """What is wrong with the first wrong detection, and which it is: (0, 0) if nothing is.

    1 stands for a box that is not finite, 2 for one with a negative side, 3 and 4 for an agentness and a
    class score outside [0, 1].
    """
    for i in range(boxes.shape[0]):
        for side in range(4):
            if not np.isfinite(boxes[i, side]):
                return 1, i
        if boxes[i, 0] > boxes[i, 2] or boxes[i, 1] > boxes[i, 3]:
            return 2, i
        if not (agentness[i] >= 0 and agentness[i] <= 1):
            return 3, i
        for c in range(scores.shape[1]):
            if not (scores[i, c] >= 0 and scores[i, c] <= 1):
                return 4, i
    return 0, 0


@kernel
def trace(last: int, found: Ints) -> Ints:
    """The places of a path's detections, first to last."""
    n, place = 0, last
    while place >= 0:
        n += 1
        place = found[place, BEFORE]
    places, place = np.empty(n, np.int64), last
    for i in range(n - 1, -1, -1):
        places[i] = place
        place = found[place, BEFORE]
    return places


@kernel
def suppress_tubes(
    boxes: Floats,
    rows: Ints,
    frames: Ints,
    starts: Ints,
    stops: Ints,
    order: Ints,
    group: Ints,
    overlap: float,
    offset: float,
) -> Bools:
    """Which tubes (t,) stay: in each group those that no better one overlaps by more than `overlap`.

    The overlap of two tubes is the mean IoU over the frames that both have, times their temporal IoU.

    Args:
        boxes: (r, 4) of all detections.
        rows: (n,) detections, path after path.
        frames: (n,) the frames they are claimed for.
        starts: (t,) where each tube starts in `rows`.
        stops: (t,) where it ends.
        order: (t,) tubes group by group, the best first.
        group: (t,) of each tube.
        overlap: see above.
        offset: what is added to the width and height of boxes.
    """
    kept = np.ones(order.shape[0], np.bool_)
    for i in range(order.shape[0]):
        better = order[i]
        for j in range(i + 1, order.shape[0]):
            other = order[j]
            if group[other] != group[better] or not kept[better]:
                break
            if not kept[other]:
                continue
            a, b, shared, total = starts[better], starts[other], 0, 0.0
            while a < stops[better] and b < stops[other]:
                if frames[a] != frames[b]:
                    a, b = (a + 1, b) if frames[a] < frames[b] else (a, b + 1)
                    continue
                one, two = rows[a], rows[b]
                width = min(boxes[one, 2], boxes[two, 2]) - max(boxes[one, 0], boxes[two, 0]) + offset
                height = min(boxes[one, 3], boxes[two, 3]) - max(boxes[one, 1], boxes[two, 1]) + offset
                inter = max(0.0, width) * max(0.0, height)
                area = (boxes[one, 2] - boxes[one, 0] + offset) * (boxes[one, 3] - boxes[one, 1] + offset)
                area += (boxes[two, 2] - boxes[two, 0] + offset) * (boxes[two, 3] - boxes[two, 1] + offset)
                total += inter / (area - inter) if area > inter else 0.0
                shared, a, b = shared + 1, a + 1, b + 1
            length = stops[better] - starts[better] + stops[other] - starts[other] - shared
            kept[other] = total / length <= overlap
    return kept
