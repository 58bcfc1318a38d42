"""DBSCAN as a baseline for the range image, on the same returns without ground."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadaware.corner_cases.captures import Capture
from roadaware.corner_cases.clusters import measure_clusters
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import Geometry, apply_cluster_limits, extract_geometry
from roadaware.errors import UsageError

LEAST_RETURNS = 5
"""Returns within reach that make one a core; scikit-learn's default."""


def extract_dbscan_geometry(
    capture: Capture, config: CopgConfig | None = None, *, eps_m: float = 0.5
) -> Geometry:
    """The steps before the image with clusters of DBSCAN; ground and limits are those of the proposals.

    Args:
        capture: what was seen; its camera is not asked.
        config: the parameters; those of the range image do nothing.
        eps_m: how far neighbours lie from each other at most, in space.

    Raises:
        UsageError: if the reach is not positive.
        InputError: if returns are in another unit or frame, or rings do not fit them.

    Source: Ester et al., "A density-based algorithm for discovering clusters", KDD 1996.
    """
    from sklearn.cluster import DBSCAN

    if not eps_m > 0:
        raise UsageError(f"neighbours are some way apart: eps_m should be positive, not {eps_m!r}")
    config = config or CopgConfig()
    found = extract_geometry(capture, config)
    solid = found.checked.usable & ~found.ground.removed
    numbers = np.zeros(len(found.points), dtype=np.int32)
    if solid.any():
        grouped = DBSCAN(eps=eps_m, min_samples=LEAST_RETURNS).fit(found.points[solid].astype(np.float64))
        # scikit-learn counts clusters from 0 and calls noise -1; here they count from 1, and noise is 0.
        numbers[solid] = grouped.labels_ + 1
    labels = np.zeros(found.grid.shape, dtype=np.int32)
    inside = (numbers > 0) & (found.grid.row >= 0)
    labels[found.grid.row[inside], found.grid.column[inside]] = numbers[inside]
    count = int(numbers.max(initial=0))
    heights = found.ground.heights
    clusters = measure_clusters(found.points, found.grid, labels, numbers, count, heights=heights)
    return replace(found, clusters=clusters, limited=apply_cluster_limits(clusters, config))
