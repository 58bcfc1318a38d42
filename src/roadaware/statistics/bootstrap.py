"""Resampling of whole clusters: how often each occurs in a draw, and the interval that the draws give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int32]

PERCENTILES = (2.5, 97.5)
MIN_VALID_SHARE = 0.95
_BLOCK = 1 << 21
"""Counts that are made at once: 16 MiB of 64-bit numbers."""


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


def multiplicities(n_clusters: int, draws: int, seed: int, at_once: int) -> Iterator[Counts]:
    """How often each cluster occurs in each of `draws` resamples with replacement, some draws at a time.

    Args:
        n_clusters: number of clusters; each draw takes as many.
        draws: number of resamples.
        seed: of numpy's default generator; equal seeds give equal draws, however many come at once.
        at_once: how many draws come at once, at least 1.

    Yields:
        (at_once or fewer, n_clusters) counts, at least one time; each row sums to n_clusters.

    Source: Efron, Annals of Statistics 1979; clusters instead of samples because the samples of one
    pedestrian, and the pedestrians of one video, are not independent.

    >>> [counts.sum(axis=1) for counts in multiplicities(3, 2, seed=0, at_once=1)]
    [array([3]), array([3])]
    """
    generator = np.random.default_rng(seed)
    for start in range(0, max(1, draws), at_once):
        rows = min(at_once, draws - start)
        if not n_clusters or not rows:
            yield np.zeros((rows, n_clusters), dtype=np.int32)
            continue
        picked = generator.integers(0, n_clusters, size=(rows, n_clusters))
        picked += np.arange(rows)[:, None] * n_clusters
        counts = np.bincount(picked.ravel(), minlength=rows * n_clusters)
        yield counts.reshape(rows, n_clusters).astype(np.int32)


def resamples(unit: npt.NDArray[np.generic], draws: int, seed: int) -> Iterator[Counts] | None:
    """How often each item occurs when whole units of items are drawn; None below two units.

    Args:
        unit: (n,) the unit of each item; equal units and seeds give equal draws.
        draws: number of resamples; each takes as many units as there are.
        seed: of the draws.

    Returns:
        (some draws, n) counts, as many times as it takes, so that memory does not grow with the draws.

    >>> next(resamples(np.array(["v1", "v1", "v2"]), 4, seed=0))
    array([[0, 0, 2],
           [1, 1, 1],
           [2, 2, 0],
           [2, 2, 0]], dtype=int32)
    """
    names, which = np.unique(unit, return_inverse=True)
    if len(names) < 2:
        return None
    at_once = max(1, _BLOCK // len(unit))
    return (counts[:, which] for counts in multiplicities(len(names), draws, seed, at_once))


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
