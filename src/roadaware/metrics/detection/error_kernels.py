"""Compiled loops that say of every claim whether it is right and, if not, what is wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.geometry.compiled import kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

RIGHT, DUPLICATE, SPACE, TIME, SPACE_TIME, CLASS, CLASS_AND_PLACE, BACKGROUND = range(8)
TEMPORAL, SPATIAL = 0, 1


@kernel
def classify(
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
    """Match claims to truth in their order and name the fault of those that match none.

    Args:
        cls: (n,) class of each claim; claims by class and falling score.
        thing: (n,) the box or tube that is claimed to be of the class.
        pair_offsets: (things + 1,) where the pairs of each thing begin.
        pair_object: (p,) the true object of each pair.
        overlap: (p,) of each pair.
        parts: (p, 2) temporal and spatial part of the overlap.
        instance_offsets: (objects + 1,) where the labels of each object begin.
        instance_cls: (i,) the class of each label: an object with two labels is two instances.
        threshold: smallest overlap of a hit.
        floor: smallest overlap of a claim that is meant for an object.

    Returns:
        fault (n,), instance that the claim met or was meant for (n,), -1 if none, and its pair (n,).
    """
    n = len(cls)
    fault = np.full(n, BACKGROUND, dtype=np.int64)
    meant = np.full(n, -1, dtype=np.int64)
    with_pair = np.full(n, -1, dtype=np.int64)
    found = np.zeros(len(instance_cls), dtype=np.bool_)
    for i in range(n):
        free, free_pair, free_best = -1, -1, threshold
        same, same_pair, same_best = -1, -1, 0.0
        other, other_pair, other_best = -1, -1, 0.0
        for pair in range(pair_offsets[thing[i]], pair_offsets[thing[i] + 1]):
            obj = pair_object[pair]
            instance = -1
            for k in range(instance_offsets[obj], instance_offsets[obj + 1]):
                if instance_cls[k] == cls[i]:
                    instance = k
            if instance >= 0:
                if overlap[pair] > same_best:
                    same, same_pair, same_best = instance, pair, overlap[pair]
                better = overlap[pair] > free_best or (free < 0 and overlap[pair] >= threshold)
                if not found[instance] and better:
                    free, free_pair, free_best = instance, pair, overlap[pair]
            elif instance_offsets[obj + 1] > instance_offsets[obj] and overlap[pair] > other_best:
                other, other_pair, other_best = instance_offsets[obj], pair, overlap[pair]
        if free >= 0:
            found[free] = True
            fault[i], meant[i], with_pair[i] = RIGHT, free, free_pair
        elif same >= 0 and same_best >= threshold:
            fault[i], meant[i], with_pair[i] = DUPLICATE, same, same_pair
        elif same >= 0 and same_best >= floor:
            meant[i], with_pair[i] = same, same_pair
            fault[i] = SPACE_TIME
            if parts[same_pair, TEMPORAL] >= threshold:
                fault[i] = SPACE
            elif parts[same_pair, SPATIAL] >= threshold:
                fault[i] = TIME
        elif other >= 0 and other_best >= threshold:
            fault[i], meant[i], with_pair[i] = CLASS, other, other_pair
        elif other >= 0 and other_best >= floor:
            fault[i], meant[i], with_pair[i] = CLASS_AND_PLACE, other, other_pair
    return fault, meant, with_pair


@kernel
def mend(order: Ints, mended: Any, meant: Ints, taken: Any) -> Any:
    """Which of the mended claims meet truth that no better claim has met.

    Args:
        order: (n,) claims by falling score, over all classes.
        mended: (n,) whether the claim's fault is mended.
        meant: (n,) the instance that it is meant for.
        taken: (i,) instances that are met already; not changed.

    Returns:
        (n,) whether the mended claim is a hit.
    """
    hit = np.zeros(len(meant), dtype=np.bool_)
    met = taken.copy()
    for i in order:
        if mended[i] and meant[i] >= 0 and not met[meant[i]]:
            met[meant[i]] = True
            hit[i] = True
    return hit
