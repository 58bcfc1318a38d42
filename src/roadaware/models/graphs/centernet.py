"""Boxes from the maps of a CenterNet: peaks of the heat are centres, whose sides stand in a second map."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats32


def peaks(heat: Floats32, sides: Floats32, floor: float, stride: int) -> tuple[Floats32, Floats32]:
    """Boxes and scores of all centres: places whose heat no neighbour of the same class exceeds.

    Args:
        heat: (c, h, w) in [0, 1], a map for each class.
        sides: (4, h, w) distance of the left, upper, right and lower side from the centre, in pixels.
        floor: heat that a centre has more of.
        stride: pixels of the picture for each place of the maps.

    Returns:
        (n, 4) x1, y1, x2, y2 in pixels, and (n, c) the heat of every class at the centre; a place that is the
        centre of several classes stands once, and one whose sides leave no area is left out.

    Source: Zhou et al., Objects as Points, 2019; sides to four directions as in TTFNet, 2020.
    """
    classes, height, width = heat.shape
    c, y, x = np.nonzero(heat > floor)
    padded = np.full((classes, height + 2, width + 2), -1, np.float32)
    padded[:, 1:-1, 1:-1] = heat
    value, highest = heat[c, y, x], np.full(len(c), -1, np.float32)
    for down in range(3):
        for right in range(3):
            np.maximum(highest, padded[c, y + down, x + right], out=highest)
    top = value >= highest
    place = np.unique(y[top].astype(np.int64) * width + x[top])
    y, x = place // width, place % width
    left, upper, right_side, lower = sides[:, y, x]
    boxes = np.stack(
        [x * stride - left, y * stride - upper, x * stride + right_side, y * stride + lower], axis=1
    )
    whole = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)  # a network may answer with sides below 0
    return boxes[whole].astype(np.float32), np.ascontiguousarray(heat[:, y, x].T[whole])
