"""How far several answers to the same question differ: spread, entropy, mutual information."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from roadaware.arrays import Floats


def expand_binary_probabilities(probability: npt.ArrayLike) -> Floats:
    """(..., labels) probabilities, those of label 0 put before where only label 1 is given.

    Args:
        probability: (..., k); k = 1 is that of label 1.
    """
    values = np.asarray(probability, dtype=np.float64)
    return np.concatenate([1 - values, values], axis=-1) if values.shape[-1] == 1 else values


def entropy(probability: npt.ArrayLike) -> Floats:
    """(...) -sum_k p_k ln p_k, in [0, ln labels] nats.

    Args:
        probability: (..., k); k = 1 is that of label 1.

    >>> float(entropy([[1.0]])[0])
    0.0
    """
    values = expand_binary_probabilities(probability)
    # + 0.0 makes 0 of -0, the entropy of a certain answer.
    return np.asarray(-xlogy(values, values).sum(axis=-1) + 0.0)


def standard_deviation(passes: npt.ArrayLike) -> Floats:
    """(n, k) standard deviation of probabilities between passes.

    Args:
        passes: (m, n, k).
    """
    return np.asarray(np.std(np.asarray(passes, dtype=np.float64), axis=0))


def mutual_information(passes: npt.ArrayLike) -> Floats:
    """(n) mutual information between the answer and the pass: H(mean) - mean H, in [0, ln labels] nats.

    It is 0 where all passes agree, however unsure each of them is.

    Args:
        passes: (m, n, k) probabilities.

    Source: Houlsby et al., 2011 (arXiv 1112.5745), eq. 2.
    """
    values = np.asarray(passes, dtype=np.float64)
    # Where all passes agree, rounding may leave the difference just below 0.
    return np.asarray(np.maximum(entropy(values.mean(axis=0)) - entropy(values).mean(axis=0), 0.0))


def compute_quantile_interval(
    passes: npt.ArrayLike, weight: npt.ArrayLike, within: float
) -> tuple[Floats, Floats]:
    """(n) the values that (1 - within) / 2 of the passes, and all but that, do not exceed.

    Each is a value of a pass: the smallest up to which so much weight lies.

    Args:
        passes: (m, n).
        weight: (m) what each pass counts, together 1.
        within: share of the passes between the two, in (0, 1).

    >>> low, high = compute_quantile_interval([[0.1], [0.5], [0.2]], [1 / 3] * 3, within=0.9)
    >>> float(low[0]), float(high[0])
    (0.1, 0.5)
    """
    values, share = np.asarray(passes, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    tail = (1 - within) / 2
    # Sums of weights may end a rounding short of what they should reach exactly.
    ends = np.array([tail, 1 - tail]) - 1e-9
    if (share == share[0]).all():
        # As much weight is reached whichever pass comes first; searching finds the first to reach an end.
        low, high = np.searchsorted(np.cumsum(share), ends)
        ranked = np.sort(values, axis=0)
        return ranked[low], ranked[high]
    order, columns = np.argsort(values, axis=0, kind="stable"), np.arange(values.shape[1])
    ranked, reached = values[order, columns], np.cumsum(share[order], axis=0)
    low, high = ((reached >= end).argmax(axis=0) for end in ends)
    return ranked[low, columns], ranked[high, columns]
