"""Compiled loops that match predicted tubes with ground-truth ones; imports numba."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.geometry.compiled import kernel


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
    for claim in order:
        best[:] = 0.0
        for p in range(pairs[extent[claim]], pairs[extent[claim] + 1]):
            for k in range(held[second[p]], held[second[p] + 1]):
                t = truth[k]
                if truth_cls[t] != cls[claim]:
                    continue
                for level in range(levels):
                    found = result[claim, level]
                    # Of equals the first in the table, whatever the order of the extents.
                    better = overlap[p] > best[level] or (overlap[p] == best[level] and t < found)
                    if better and not taken[t, level]:
                        best[level] = overlap[p]
                        result[claim, level] = t
        for level in range(levels):
            if best[level] < thresholds[level]:
                result[claim, level] = -1
            elif result[claim, level] >= 0:
                taken[result[claim, level], level] = True
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
    for claim in range(n):
        best = 0.0
        for p in range(pairs[extent[claim]], pairs[extent[claim] + 1]):
            for k in range(held[second[p]], held[second[p] + 1]):
                t = truth[k]
                if truth_group[t] != group[claim] or overlap[p] <= 0:
                    continue
                if overlap[p] > best or (overlap[p] == best and t < tube[claim]):
                    best, pair[claim], tube[claim] = overlap[p], p, t
    return pair, tube
