"""Common classes: how much each box overlaps an object that a detector knows already."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.corner_cases.captures import CommonObjects
from roadaware.geometry.boxes import iou


def common_overlaps(edges: Floats, common: CommonObjects, *, min_score: float = 0.0) -> Floats:
    """(m,) greatest overlap of each box with a detected common object, 0 where there is none.

    Args:
        edges: (m, 4) x1, y1, x2, y2 in pixels.
        common: what was detected.
        min_score: detections below it do not count.

    Source: CODA (ECCV 2022), section 4.2, common-class suppression.
    """
    certain = np.asarray(common.boxes, dtype=np.float64)[np.asarray(common.scores) >= min_score]
    if not len(edges) or not len(certain):
        return np.zeros(len(edges))
    best: Floats = iou(edges, certain).max(axis=1)
    return best
