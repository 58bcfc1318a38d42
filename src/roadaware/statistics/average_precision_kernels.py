# Places in AP_RULES; 1, the envelope, is the case that is left.
"""The walk over ranked predictions, from the last to the first, that gives the areas of many resamples at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.geometry.compiled import inner_kernel, kernel

_TRAPEZOID, _INTERP101, _RAW, _COCO = 0, 2, 3, 4


@kernel
def accumulate_precision_areas(
    starts: npt.NDArray[np.int64],
    video: npt.NDArray[np.int32],
    hit: npt.NDArray[np.uint8],
    ignored: npt.NDArray[np.uint8],
    n_truth: npt.NDArray[np.int64],
    weights: npt.NDArray[np.int32],
    rule: int,
    area: npt.NDArray[np.float64],
) -> None:
    """Fill `area`, which is (classes, thresholds, resamples) zeros, with sums that have yet to be divided.

    Backwards, because the best precision at a recall or beyond is then a running maximum. What comes after
    the last hit of a class changes no area and is not walked.

    Args:
        starts: (C + 1,) where the predictions of each class start, and n.
        video: (n,) video of each prediction; predictions by class and falling score.
        hit: (n, T) 1 where right.
        ignored: (n, T) 1 where passed over; (0, T) where nothing is.
        n_truth: (C, resamples) how much truth there is.
        weights: (V, resamples) how often each video is drawn.
        rule: index in AP_RULES.
        area: (C, T, resamples) the trapezoids' areas; sums over recalls of precision for other rules.
    """
    n_thresholds, resamples = hit.shape[1], weights.shape[1]
    kept = ignored.shape[0] == 0
    # Without ignored predictions, how many come before a prediction is the same at all thresholds.
    seen = np.empty((1 if kept else n_thresholds, resamples), dtype=np.int32)
    found = np.empty((n_thresholds, resamples), dtype=np.int32)
    best = np.empty((n_thresholds, resamples))
    for c in range(len(starts) - 1):
        last = _last_hit(hit, starts[c], starts[c + 1])
        if last < starts[c]:
            continue
        seen[:] = 0
        found[:] = 0
        best[:] = 0.0
        for row in range(starts[c], last + 1):
            _count(seen, weights, video[row], ignored, row, 1)
            for t in range(n_thresholds):
                if hit[row, t]:
                    for d in range(resamples):
                        found[t, d] += weights[video[row], d]
        # A wrong prediction lowers precision at the same recall and encloses no area: only hits add any.
        for row in range(last, starts[c] - 1, -1):
            for t in range(n_thresholds):
                if hit[row, t]:
                    before = seen[0] if kept else seen[t]
                    _add_hits(weights[video[row]], before, found[t], best[t], n_truth[c], rule, area[c, t])
            _count(seen, weights, video[row], ignored, row, -1)


@inner_kernel
def _count(seen: Any, weights: Any, video: int, ignored: Any, row: int, step: int) -> None:
    """Add a prediction to those seen, or take it off, where it is not passed over."""
    kept = ignored.shape[0] == 0
    for t in range(seen.shape[0]):
        if kept or ignored[row, t] == 0:
            for d in range(seen.shape[1]):
                seen[t, d] += step * weights[video, d]


@inner_kernel
def _last_hit(hit: npt.NDArray[np.uint8], start: int, end: int) -> int:
    """The last row with a hit at any threshold, `start - 1` where there is none."""
    for row in range(end - 1, start - 1, -1):
        for t in range(hit.shape[1]):
            if hit[row, t]:
                return row
    return start - 1


@inner_kernel
def _add_hits(weight: Any, seen: Any, found: Any, best: Any, n_truth: Any, rule: int, area: Any) -> None:
    """Add what the copies of one right prediction give in each draw, and take them off `found`."""
    for d in range(len(weight)):
        # Of 64 bits from the start, as they are once something is taken off.
        tp: Any = np.int64(found[d])
        n: Any = np.int64(seen[d])
        for _ in range(weight[d]):
            precision = tp / n
            if rule == _TRAPEZOID:
                area[d] += _trapezium(tp, n, n_truth[d])
            elif rule == _RAW:
                area[d] += precision
            else:
                best[d] = max(best[d], precision)
                if rule == _INTERP101:
                    # In whole numbers: how many of the recalls 0.01, ..., 1 this hit is the first to reach.
                    steps = (100 * tp) // n_truth[d] - (100 * (tp - 1)) // n_truth[d]
                    area[d] += best[d] * (steps + (tp == 1))  # the first hit reaches the recall 0 too
                elif rule == _COCO:
                    # pycocotools compares k * 0.01 with tp / n as doubles, which k / 100 may miss.
                    steps = _count_reached_recalls(tp, n_truth[d]) - _count_reached_recalls(
                        tp - 1, n_truth[d]
                    )
                    area[d] += best[d] * (steps + (tp == 1))
                else:
                    area[d] += best[d]
            tp -= 1
            n -= 1
        found[d] = tp


@inner_kernel
def _count_reached_recalls(tp: int, n_truth: int) -> int:
    """How many of the recalls 0.01, ..., 1 are reached, as products in double precision."""
    step = (100 * tp) // n_truth
    return step if step * 0.01 <= tp / n_truth else step - 1


@inner_kernel
def _trapezium(tp: int, n: int, n_truth: int) -> float:
    """The area between the points before and after a hit, each number rounded as the published code does."""
    step = np.float32(tp / n_truth) - np.float32((tp - 1) / n_truth)
    # The published polyline begins at precision 1 and recall 0: the point before a first prediction.
    before = np.float32((tp - 1) / (n - 1)) if n > 1 else np.float32(1.0)
    heights = np.float32(tp / n) + before
    return float(step * heights * np.float32(0.5))
