"""Compiled loops that assign each prediction a hit or an error type."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.geometry.compiled import inner_kernel, kernel

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
