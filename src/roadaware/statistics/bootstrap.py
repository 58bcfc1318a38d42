"""Resampling of whole clusters: how often each occurs in a draw, and the interval that the draws give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PERCENTILES = (2.5, 97.5)
MIN_VALID_SHARE = 0.95


@dataclass(frozen=True)
class Interval:
    """The 2.5 and 97.5 percentiles of a metric over draws, and how many of the draws were defined.

    Args:
        low: lower end, None where no interval can be given.
        high: upper end, None where no interval can be given.
        n_valid: draws in which the metric was defined.
        n_draws: draws made.
    """

    low: float | None
    high: float | None
    n_valid: int
    n_draws: int

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 lies outside it."""
        return self.low is not None and self.high is not None and not self.low <= 0.0 <= self.high


def multiplicities(n_clusters: int, draws: int, seed: int) -> npt.NDArray[np.int32]:
    """How often each cluster occurs in each of `draws` resamples with replacement.

    Args:
        n_clusters: number of clusters; each draw takes as many.
        draws: number of resamples.
        seed: of numpy's default generator; equal seeds give equal draws.

    Returns:
        (draws, n_clusters) counts; each row sums to n_clusters.

    Source: Efron, Annals of Statistics 1979; clusters instead of samples because the samples of one
    pedestrian, and the pedestrians of one video, are not independent.

    >>> multiplicities(3, 2, seed=0).sum(axis=1)
    array([3, 3])
    """
    if n_clusters == 0:
        return np.zeros((draws, 0), dtype=np.int32)
    picked = np.random.default_rng(seed).integers(0, n_clusters, size=(draws, n_clusters))
    picked += np.arange(draws)[:, None] * n_clusters
    counts = np.bincount(picked.ravel(), minlength=draws * n_clusters)
    return counts.reshape(draws, n_clusters).astype(np.int32)


def resamples(unit: npt.NDArray[np.generic], draws: int, seed: int) -> npt.NDArray[np.int32] | None:
    """How often each item occurs when whole units of items are drawn; None below two units.

    Args:
        unit: (n,) the unit of each item; equal units and seeds give equal draws.
        draws: number of resamples; each takes as many units as there are.
        seed: of the draws.

    Returns:
        (draws, n) counts.

    >>> resamples(np.array(["v1", "v1", "v2"]), 4, seed=0)
    array([[0, 0, 2],
           [1, 1, 1],
           [2, 2, 0],
           [2, 2, 0]], dtype=int32)
    """
    names, which = np.unique(unit, return_inverse=True)
    return multiplicities(len(names), draws, seed)[:, which] if len(names) > 1 else None


def percentile_interval(values: Floats) -> Interval:
    """The percentile interval of draws; undefined draws (NaN) are dropped and counted.

    An interval is given only when at least 95 in 100 draws are defined: with more of them missing, it
    would speak of the easy resamples alone.

    Args:
        values: (draws,) the metric in each draw, NaN where undefined.

    >>> percentile_interval(np.linspace(0, 1, 101)).low
    0.025
    """
    valid = values[~np.isnan(values)]
    if not len(valid) or len(valid) < MIN_VALID_SHARE * len(values):
        return Interval(None, None, len(valid), len(values))
    low, high = np.percentile(valid, PERCENTILES)
    return Interval(float(low), float(high), len(valid), len(values))
