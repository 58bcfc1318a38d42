"""Limits: which clusters are neither too small nor too far to be an object in the way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.corner_cases.clusters import Clusters

KEPT, FEW, FAR, WIDE, TALL, LOW = range(6)
REASONS = ("kept", "few returns", "too far", "too wide", "too tall", "too low")


def limit(
    clusters: Clusters,
    *,
    min_points: int = 10,
    max_distance_m: float = 50.0,
    max_width_m: float | None = None,
    max_height_m: float | None = None,
    min_height_m: float = 0.0,
) -> npt.NDArray[np.uint8]:
    """(k,) uint8 what each cluster is, a place in `REASONS`: 0 where it is kept.

    Where the ground is not known, heights drop nothing.

    Args:
        clusters: (k) of `clusters.find_clusters`.
        min_points: fewer returns are no object.
        max_distance_m: to the nearest return.
        max_width_m: widest cluster; None for any.
        max_height_m: of the highest return above the ground; None for any.
        min_height_m: at least so high must the highest return be.

    Source: CODA (ECCV 2022), section 4.2 and Table 5, for the first two.
    """
    found = np.full(len(clusters), KEPT, dtype=np.uint8)
    head = clusters.head_m
    if max_width_m is not None:
        found[clusters.width_m > max_width_m] = WIDE
    if max_height_m is not None:
        found[head > max_height_m] = TALL
    found[head < min_height_m] = LOW
    found[clusters.nearest_m > max_distance_m] = FAR
    found[clusters.counts < min_points] = FEW
    return found
