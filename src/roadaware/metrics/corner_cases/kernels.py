"""The match of predictions with objects, image by image and class by class, as COCO's evaluator makes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bytes, Floats, Ints
from roadaware.geometry.compiled import inner_kernel, kernel

MISSED = -1


@kernel
def match_cells(
    prediction_start: Ints,
    predictions: Floats,
    prediction_area: Floats,
    object_start: Ints,
    objects: Floats,
    sides: Floats,
    area: Floats,
    ignored: Bytes,
    crowd: Bytes,
    thresholds: Floats,
    bounds: Floats,
    most: int,
    rank: npt.NDArray[np.int16],
    hit: npt.NDArray[np.uint16],
    passed: npt.NDArray[np.uint16],
    best: Floats,
) -> None:
    """Fill `rank`, `hit`, `passed` and `best`.

    In each cell, an image and a class, predictions come by falling score. At each threshold and size a prediction
    meets the object that it overlaps most, the last of equals, among those that no better prediction met: first
    among those asked for, then among those that are ignored or of another size, of which crowds can be met
    again. A crowd is overlapped by the part of the prediction that lies in it.

    Args:
        prediction_start: (cells + 1,) where the predictions of each cell start.
        predictions: (n, 4) corners.
        prediction_area: (n,) of their boxes.
        object_start: (cells + 1,) where the objects of each cell start.
        objects: (m, 4) corners.
        sides: (m,) width times height.
        area: (m,) from which the size class follows.
        ignored: (m,) 1 where not asked for.
        crowd: (m,) 1 for crowds, which are ignored.
        thresholds: (T,) at most 16.
        bounds: (A, 2) smallest and largest area of each size.
        most: predictions that are taken from each cell.
        rank: (m, A, T) of the prediction that met an object that is asked for, from 0; comes as MISSED.
        hit: (n, A) bit t is set where a prediction met one; comes as zeros.
        passed: (n, A) bit t is set where a prediction does not count; comes as zeros.
        best: (m,) the greatest overlap with a prediction; comes as zeros.
    """
    for cell in range(len(prediction_start) - 1):
        first, g0, g1 = prediction_start[cell], object_start[cell], object_start[cell + 1]
        end = min(prediction_start[cell + 1], first + most)
        if first < end:
            overlap = np.empty((end - first, g1 - g0))
            top = np.zeros(end - first)
            aside, beyond = np.empty(g1 - g0, dtype=np.uint8), np.empty(end - first, dtype=np.bool_)
            _fill(overlap, top, predictions, prediction_area, first, objects, sides, crowd, g0, best)
            for a in range(len(bounds)):
                low, high = bounds[a, 0], bounds[a, 1]
                # One by one: numba compiles a loop faster than sums of arrays.
                for k in range(g1 - g0):
                    g = g0 + k
                    aside[k] = 1 if ignored[g] == 1 or area[g] < low or area[g] > high else 0
                for d in range(end - first):
                    beyond[d] = prediction_area[first + d] < low or prediction_area[first + d] > high
                marks = hit[first:end, a], passed[first:end, a]
                _match(overlap, top, aside, beyond, crowd[g0:g1], thresholds, rank[g0:g1, a], marks)


@inner_kernel
def _fill(
    overlap: Any,
    top: Any,
    predictions: Any,
    prediction_area: Any,
    first: int,
    objects: Any,
    sides: Any,
    crowd: Any,
    g0: int,
    best: Any,
) -> None:
    """The overlaps of the predictions and objects of a cell, and the greatest of each prediction and object."""
    for d in range(overlap.shape[0]):
        for k in range(overlap.shape[1]):
            g = g0 + k
            found = _overlap(
                predictions[first + d], prediction_area[first + d], objects[g], sides[g], crowd[g]
            )
            overlap[d, k] = found
            top[d] = max(top[d], found)
            best[g] = max(best[g], found)


@inner_kernel
def _match(
    overlap: Any, top: Any, aside: Any, beyond: Any, crowd: Any, thresholds: Any, rank: Any, marks: Any
) -> None:
    """The match of one cell among objects of one size, at every threshold."""
    hit, passed = marks
    for t in range(len(thresholds)):
        # As pycocotools: an overlap of 1 may come out a rounding below it.
        least = min(thresholds[t], 1 - 1e-10)
        bit = np.uint16(1 << t)
        used = np.zeros(len(aside), dtype=np.uint8)
        for d in range(len(top)):
            met = _met(overlap[d], least, aside, used, crowd) if top[d] >= least else -1
            if met < 0:
                if beyond[d]:
                    # An unmatched prediction of another size says nothing of objects of this one.
                    passed[d] |= bit
                continue
            used[met] = 1
            if aside[met]:
                passed[d] |= bit
            else:
                hit[d] |= bit
                rank[met, t] = d


@inner_kernel
def _met(overlap: Any, least: float, aside: Any, used: Any, crowd: Any) -> int:
    """The object that a prediction meets, -1 where it meets none."""
    for kind in range(2):
        met, most = -1, least
        for g in range(len(overlap)):
            if aside[g] == kind and (used[g] == 0 or crowd[g]) and overlap[g] >= most:
                met, most = g, overlap[g]
        if met >= 0:
            return met
    return -1


@inner_kernel
def _overlap(prediction: Any, prediction_area: float, box: Any, sides: float, crowd: int) -> float:
    """Intersection over union, or over the prediction where the object is a crowd."""
    wide = min(prediction[2], box[2]) - max(prediction[0], box[0])
    if wide <= 0:
        return 0.0
    high = min(prediction[3], box[3]) - max(prediction[1], box[1])
    if high <= 0:
        return 0.0
    shared = wide * high
    whole = prediction_area if crowd else prediction_area + sides - shared
    return float(shared / whole)
