"""Average precision as COCO's evaluator reads it, over thresholds, sizes and classes, for many draws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.statistics.average_precision import drawn_precision

_HALF, _THREE_QUARTERS = 0, 5
_SIZES = ("ap_small", "ap_medium", "ap_large")


def precisions(
    video: Ints,
    kind: Ints,
    score: Floats,
    hit: npt.NDArray[np.uint16],
    passed: npt.NDArray[np.uint16],
    n_kinds: int,
    object_video: Ints,
    object_kind: Ints,
    asked: Bools,
    weights: npt.NDArray[np.int32],
    n_steps: int,
) -> dict[str, Floats]:
    """`ap`, `ap50`, `ap75`, `ap_small`, `ap_medium`, `ap_large`, each (draws,), NaN where there is no object.

    Args:
        video: (n,) of each claim; claims by picture, by falling score within each class of a picture.
        kind: (n,) class of each.
        score: (n,) of each.
        hit: (n, A) bit t is set where it met an object.
        passed: (n, A) bit t is set where it does not count.
        n_kinds: how many classes there are.
        object_video: (m,) of each object.
        object_kind: (m,) class of each.
        asked: (m, A) whether it is asked for among objects of each size.
        weights: (draws, videos) how often each video counts.
        n_steps: bits of `hit`; the first is of the threshold below COCO's, and left away.

    Source: Lin et al., ECCV 2014 (COCO), and its evaluator.
    """
    order = np.lexsort((-score, kind))
    starts = np.searchsorted(kind[order], np.arange(n_kinds + 1))
    bits = np.uint16(1) << np.arange(1, n_steps, dtype=np.uint16)
    by_area = []
    for a in range(hit.shape[1]):
        n_truth = _counts(object_video[asked[:, a]], object_kind[asked[:, a]], n_kinds, weights)
        marks = (hit[order, a, None] & bits) > 0
        away = (passed[order, a, None] & bits) > 0
        areas = drawn_precision(
            *(starts, video[order].astype(np.int32), marks, n_truth, weights, "coco"), ignored=away
        )
        areas[n_truth == 0] = np.nan
        by_area.append(areas)
    found = {
        "ap": _mean(by_area[0].mean(axis=2)),
        "ap50": _mean(by_area[0][:, :, _HALF]),
        "ap75": _mean(by_area[0][:, :, _THREE_QUARTERS]),
    }
    return found | {name: _mean(areas.mean(axis=2)) for name, areas in zip(_SIZES, by_area[1:], strict=True)}


def _counts(video: Ints, kind: Ints, n_kinds: int, weights: npt.NDArray[np.int32]) -> Ints:
    """(draws, classes) how many objects there are."""
    n_videos = weights.shape[1]
    held = np.bincount(kind * n_videos + video, minlength=n_kinds * n_videos).reshape(n_kinds, n_videos)
    found: Ints = weights.astype(np.int64) @ held.T
    return found


def _mean(values: Floats) -> Floats:
    """(draws,) mean over the classes that have objects.

    Args:
        values: (draws, classes) NaN where there is none.
    """
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1)
    found: Floats = np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0)
    return found
