"""From raw scores to probabilities: the sigmoid for two labels, the softmax for more."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

Array = npt.NDArray[np.float64]


def probabilities(raw: Array, n_scores: int) -> Array:
    """(n, n_scores) probabilities: the sigmoid of the one raw score, or the softmax over all of them."""
    return np.asarray(expit(raw) if n_scores == 1 else softmax(raw, axis=1), dtype=np.float64)
