"""Polygons of the ground as triangles."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats


def ear_clipped(corners: Floats) -> Floats:
    """(n - 2, 3, 2) a polygon without holes as triangles, counter-clockwise.

    Args:
        corners: (n, 2) counter-clockwise, in metres.
    """
    left = list(range(len(corners)))
    found = []
    while len(left) > 3:
        place = _ear(corners, left)
        n = len(left)
        found.append([left[place - 1], left[place], left[(place + 1) % n]])
        left.pop(place)
    found.append(left)
    triangles: Floats = corners[np.array(found)]
    return triangles


def _ear(corners: Floats, left: list[int]) -> int:
    """The place of a corner that can be cut off: the fattest of those that hold no other corner."""
    now = corners[left]
    before, after = np.roll(now, 1, axis=0), np.roll(now, -1, axis=0)
    area = _cross(now - before, after - now)
    best, found = -np.inf, int(area.argmax())
    for place in np.argsort(-area):
        if area[place] <= 0 or area[place] <= best:
            break
        a, b, c = before[place], now[place], after[place]
        inside = (
            (_cross(b - a, now - a) > 1e-9)
            & (_cross(c - b, now - b) > 1e-9)
            & (_cross(a - c, now - c) > 1e-9)
        )
        if not inside.any():
            best, found = float(area[place]), int(place)
    return found


def _cross(a: Floats, b: Floats) -> Floats:
    product: Floats = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


def halves(quads: Floats) -> Floats:
    """(2 n, 3, d) quadrilaterals as triangles.

    Args:
        quads: (n, 4, d).
    """
    return quads[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, quads.shape[-1])
