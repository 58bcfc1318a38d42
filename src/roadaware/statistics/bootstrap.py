"""Resampling of whole clusters: how often each occurs in a draw, and the percentiles of the draws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roadaware.arrays import Floats, Ints32

PERCENTILES = (2.5, 97.5)
MIN_VALID_SHARE = 0.95


def multiplicities(n_clusters: int, draws: int, seed: int, at_once: int) -> Iterator[Ints32]:
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
        picked = generator.integers(0, n_clusters, size=(rows, n_clusters))
        picked += np.arange(rows)[:, None] * n_clusters
        counts = np.bincount(picked.ravel(), minlength=rows * n_clusters)
        yield counts.reshape(rows, n_clusters).astype(np.int32)


def percentile_ends(values: Floats) -> tuple[float, float] | None:
    """The 2.5 and 97.5 percentiles of draws; undefined draws (NaN) are dropped.

    They are given only when at least 95 in 100 draws are defined: with more of them missing, they would speak
    of the easy resamples alone.

    Args:
        values: (draws,) the metric in each draw, NaN where undefined.

    >>> percentile_ends(np.linspace(0, 1, 101))
    (0.025, 0.975)
    """
    valid = values[~np.isnan(values)]
    if not len(valid) or len(valid) < MIN_VALID_SHARE * len(values):
        return None
    low, high = np.percentile(valid, PERCENTILES)
    return float(low), float(high)
