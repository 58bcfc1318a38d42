"""Scores: which proposals come first, since a set of boxes alone cannot be ranked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats

HALF_RETURNS = 20.0
"""Returns of which a cluster is as likely a thing as not, as far as their number tells."""


def scores(
    counts: npt.ArrayLike,
    nearest_m: npt.ArrayLike,
    *,
    max_distance_m: float,
    background: Floats | None = None,
    overlap: Floats | None = None,
) -> Floats:
    """(m,) a score in [0, 1] for each proposal: the product of what speaks for it.

    - the returns that it is made of, n / (n + 20): more returns are a more certain thing;
    - its nearness, 1 - distance / (2 max_distance_m): from 1 at the LiDAR to 1/2 at the limit;
    - where a semantic map is given, the share that is no background: of its returns, or, with
      `background_by="box"`, of the pixels of its box;
    - where detections are given, 1 less its greatest overlap with a common object.

    The published method gives no score; this order is ours, and no probability.

    Args:
        counts: (m,) returns of each.
        nearest_m: (m,) to its nearest return.
        max_distance_m: farthest proposal.
        background: (m,) share that is background, as `copg.background_of` gives it.
        overlap: (m,) greatest with a common object.
    """
    returns = np.asarray(counts, dtype=np.float64)
    far = np.asarray(nearest_m, dtype=np.float64)
    found: Floats = returns / (returns + HALF_RETURNS) * np.clip(1 - far / (2 * max_distance_m), 0, 1)
    if background is not None:
        found = found * (1 - background)
    if overlap is not None:
        found = found * (1 - overlap)
    return found
