"""Numbers of continual learning, read off the matrix of what was known after each experience."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats


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
