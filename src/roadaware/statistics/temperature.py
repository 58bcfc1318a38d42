"""One temperature that logits are divided by, so that probabilities mean what they say."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from roadaware.arrays import Floats, Ints

LOWEST, HIGHEST = 0.01, 100.0
"""Ends of what is searched; where every answer is right, the best temperature is 0."""
_STEPS = 41


def log_loss(logits: npt.ArrayLike, truth: npt.ArrayLike, temperature: float = 1.0) -> float:
    """Mean of -ln(probability of the true label), in [0, inf), lower is better.

    Args:
        logits: (n, k), or (m, n, k) of m passes whose probabilities are averaged; k = 1 with two labels.
        truth: (n) labels.
        temperature: what logits are divided by.

    Raises:
        ValueError: if shapes differ, n is 0, a logit is not finite or a label does not occur among k.

    >>> round(log_loss([[0.0], [0.0]], [0, 1]), 4)
    0.6931
    """
    passes, labels = _checked(logits, truth)
    return _loss(passes, labels, temperature)


def best_temperature(logits: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """The temperature with the smallest log loss, within [`LOWEST`, `HIGHEST`].

    The loss of one pass is convex in 1 / temperature, and so has one minimum; that of several passes is
    looked for in the best of 41 intervals.

    Args:
        logits: (n, k) or (m, n, k), as `log_loss` takes them.
        truth: (n) labels.

    Raises:
        ValueError: as `log_loss` does.

    Source: Guo et al., ICML 2017, section 4.2.
    """
    passes, labels = _checked(logits, truth)
    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), _STEPS)
    place = int(np.argmin([_loss(passes, labels, float(np.exp(at))) for at in grid]))
    ends = (grid[max(place - 1, 0)], grid[min(place + 1, _STEPS - 1)])
    found = minimize_scalar(
        lambda at: _loss(passes, labels, float(np.exp(at))),
        bounds=ends,
        method="bounded",
        options={"xatol": 1e-7},
    )
    return float(np.exp(found.x))


def _loss(passes: Floats, labels: Ints, temperature: float) -> float:
    told = log_softmax(passes / temperature, axis=2)[:, np.arange(len(labels)), labels]
    return float(-(logsumexp(told, axis=0) - np.log(len(passes))).mean())


def _checked(logits: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Floats, Ints]:
    """(m, n, labels) logits, and labels."""
    values, labels = np.asarray(logits, dtype=np.float64), np.asarray(truth, dtype=np.int64)
    passes = values[None] if values.ndim == 2 else values
    if passes.ndim != 3 or labels.shape != (passes.shape[1],) or not passes.size:
        raise ValueError(f"logits {values.shape} and truth {labels.shape} should be (n, k) and (n), n > 0")
    if not np.isfinite(passes).all():
        raise ValueError("a logit is not finite")
    if passes.shape[2] == 1:
        passes = np.concatenate([np.zeros_like(passes), passes], axis=2)
    if not (labels.min() >= 0 and labels.max() < passes.shape[2]):
        raise ValueError(
            f"labels should lie in [0, {passes.shape[2]}); they run {labels.min()}..{labels.max()}"
        )
    return passes, labels
