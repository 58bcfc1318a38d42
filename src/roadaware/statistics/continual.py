"""Continual learning: a uniform sample of a stream, and numbers read off the matrix of what was known when."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints


def choose_slots(seen: npt.ArrayLike, capacity: int, rng: np.random.Generator) -> Ints:
    """(n,) the slot that each new item takes, in place of what is there; -1 where it is let go.

    With every item of a stream given once, each of the first t has been in the reservoir with probability
    min(1, capacity / t) after t of them, and every set of that size is as likely.

    Args:
        seen: (n,) how many items of its stream came before each item; several streams have a reservoir each.
        capacity: slots of a reservoir, 1 or more.
        rng: where chance comes from; one number is drawn for each item, whether it is needed or not.

    Raises:
        ValueError: if there is no slot, or a count is negative.

    Source: Vitter, ACM Transactions on Mathematical Software 1985 (algorithm R, there of Waterman).

    >>> choose_slots([0, 1, 2], 3, np.random.default_rng(0))
    array([0, 1, 2])
    """
    before = np.asarray(seen, np.int64)
    if capacity < 1:
        raise ValueError(f"a reservoir has 1 slot or more, not {capacity}")
    if (before < 0).any():
        raise ValueError("counts of items that came before are 0 or more")
    drawn = rng.integers(0, before + 1)
    return np.where(before < capacity, before, np.where(drawn < capacity, drawn, -1)).astype(np.int64)


def average_accuracy(accuracy: npt.ArrayLike) -> Floats:
    """(...) mean accuracy on all experiences after the last one.

    Args:
        accuracy: (..., T + 1, T) on the test set of each experience (column): row 0 before anything was learnt, row t
            after experience t.

    Source: Lopez-Paz and Ranzato, NeurIPS 2017 (ACC).

    >>> float(average_accuracy([[0.1, 0.1], [0.9, 0.2], [0.5, 0.7]]))
    0.6
    """
    return np.asarray(_check(accuracy)[..., -1, :].mean(axis=-1))


def forgetting(accuracy: npt.ArrayLike) -> Floats:
    """(...) mean fall of accuracy from its best after any earlier experience to after the last one; all but the last.

    Negative where learning on has helped. NaN of one experience alone.

    Args:
        accuracy: as of `average_accuracy`.

    Source: Chaudhry et al., ECCV 2018 (forgetting measure).

    >>> round(float(forgetting([[0.1, 0.1], [0.9, 0.2], [0.5, 0.7]])), 3)
    0.4
    """
    known = _check(accuracy)
    if known.shape[-1] < 2:
        return np.full(known.shape[:-2], np.nan)
    best = known[..., 1:-1, :-1].max(axis=-2)
    return np.asarray((best - known[..., -1, :-1]).mean(axis=-1))


def backward_transfer(accuracy: npt.ArrayLike) -> Floats:
    """(...) mean change of accuracy from just after each experience to after the last one; all but the last.

    Args:
        accuracy: as of `average_accuracy`.

    Source: Lopez-Paz and Ranzato, NeurIPS 2017 (BWT).

    >>> round(float(backward_transfer([[0.1, 0.1], [0.9, 0.2], [0.5, 0.7]])), 3)
    -0.4
    """
    known = _check(accuracy)
    count = known.shape[-1]
    if count < 2:
        return np.full(known.shape[:-2], np.nan)
    own = np.diagonal(known[..., 1:, :], axis1=-2, axis2=-1)
    return np.asarray((known[..., -1, :-1] - own[..., :-1]).mean(axis=-1))


def forward_transfer(accuracy: npt.ArrayLike) -> Floats:
    """(...) mean gain of accuracy on each experience from those before it, over accuracy before anything; all but the first.

    Args:
        accuracy: as of `average_accuracy`.

    Source: Lopez-Paz and Ranzato, NeurIPS 2017 (FWT).

    >>> round(float(forward_transfer([[0.1, 0.1], [0.9, 0.2], [0.5, 0.7]])), 3)
    0.1
    """
    known = _check(accuracy)
    count = known.shape[-1]
    if count < 2:
        return np.full(known.shape[:-2], np.nan)
    before = np.diagonal(known[..., :-1, :], axis1=-2, axis2=-1)
    return np.asarray((before[..., 1:] - known[..., 0, 1:]).mean(axis=-1))


def _check(accuracy: npt.ArrayLike) -> Floats:
    known = np.asarray(accuracy, np.float64)
    if known.ndim < 2 or known.shape[-1] < 1 or known.shape[-2] != known.shape[-1] + 1:
        raise ValueError(
            f"accuracy of T experiences is (..., T + 1, T), before the first and after each; got {known.shape}"
        )
    return known
