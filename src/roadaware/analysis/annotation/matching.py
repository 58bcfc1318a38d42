"""Matching of the boxes of several annotators in one image: pairs, and groups that are one object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadaware.arrays import Floats
from roadaware.geometry.boxes import iou

LEAST_IOU = 0.5
"""Boxes that overlap less are of different things."""


def match_annotators(a: Floats, b: Floats, least: float = LEAST_IOU) -> list[tuple[int, int, float]]:
    """Match boxes of two annotators one to one; returns the pairs and their overlap.

    The pairs are those with the greatest sum of overlaps, none of which is below `least`.

    Args:
        a: (n, 4) x1, y1, x2, y2 in pixels.
        b: (m, 4) the same.
        least: smallest overlap of a pair, above 0.

    Source: Kuhn, Naval Research Logistics 1955.

    >>> match_annotators(np.array([[0.0, 0, 4, 4]]), np.array([[9.0, 9, 11, 11], [0, 0, 4, 3]]))
    [(0, 1, 0.75)]
    """
    from scipy.optimize import linear_sum_assignment

    if not len(a) or not len(b):
        return []
    shares = iou(a, b)
    # Pairs below the bound gain nothing, and are dropped afterwards: the assignment always fills all it can.
    gains = np.where(shares >= least, shares, 0.0)
    rows, columns = linear_sum_assignment(gains, maximize=True)
    return [
        (int(row), int(column), float(shares[row, column]))
        for row, column in zip(rows, columns, strict=True)
        if gains[row, column] > 0
    ]


def group_annotations(boxes: Sequence[Floats], least: float = LEAST_IOU) -> list[dict[int, int]]:
    """Group boxes of several annotators into objects: annotator to the number of its box, at most one of each.

    Every two annotators' boxes are paired; pairs are joined from the greatest overlap down, where that puts
    no two boxes of one annotator into one group. Each box is in exactly one group.

    Args:
        boxes: (n, 4) of each annotator.
        least: smallest overlap of a pair.
    """
    group: dict[tuple[int, int], dict[int, int]] = {
        (who, number): {who: number} for who, held in enumerate(boxes) for number in range(len(held))
    }
    joins = [
        (-share, one, row, other, column)
        for one in range(len(boxes))
        for other in range(one + 1, len(boxes))
        for row, column, share in match_annotators(boxes[one], boxes[other], least)
    ]
    for _, one, row, other, column in sorted(joins):
        first, second = group[one, row], group[other, column]
        if first is not second and not first.keys() & second.keys():
            first |= second
            for member in second.items():
                group[member] = first
    found = {id(each): each for each in group.values()}
    return [dict(sorted(each.items())) for each in found.values()]
