"""From raw scores to probabilities: the sigmoid for two labels, the softmax for more."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from roadaware.arrays import Floats


def probabilities(raw: Floats, n_scores: int) -> Floats:
    """(n, n_scores) probabilities: the sigmoid of the one raw score, or the softmax over all of them."""
    if n_scores == 1:
        return np.asarray(expit(raw), dtype=np.float64)
    grown = np.exp(np.asarray(raw, dtype=np.float64) - raw.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))
