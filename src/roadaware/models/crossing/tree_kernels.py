"""The sum over boosted trees, compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats
from roadaware.geometry.compiled import kernel


@kernel
def add_leaves(
    feature: npt.NDArray[np.int32],
    threshold: Floats,
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    missing_left: Bools,
    value: Floats,
    depth: int,
    x: Floats,
    raw: Floats,
) -> None:
    """Add to each score the value of the leaf that each sample falls into, tree by tree.

    Args:
        feature, threshold, left, right, missing_left, value: (rounds, k, nodes), see `tabular.export`; nothing is
            checked.
        depth: of the longest path: a damaged tree that leads in a circle ends too.
        x: (n, f), NaN where unknown.
        raw: (n, k), added to.
    """
    rounds, scores, _ = feature.shape
    for row in range(len(x)):
        for r in range(rounds):
            for k in range(scores):
                node = 0
                for _ in range(depth):
                    seen = x[row, feature[r, k, node]]
                    # Where scikit-learn sends NaN was learnt with the split.
                    goes_left = missing_left[r, k, node] if np.isnan(seen) else seen <= threshold[r, k, node]
                    node = left[r, k, node] if goes_left else right[r, k, node]
                raw[row, k] += value[r, k, node]
