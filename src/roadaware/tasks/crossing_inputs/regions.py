"""Which part of a picture is cut out for a box, in whole pixels."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats, Ints


def own(corners_px: Floats, size_px: Floats) -> Ints:
    """(n, 4) the box itself, cut off to whole pixels and to the picture, at least one pixel of it.

    Args:
        corners_px: (n, 4) x1, y1, x2, y2.
        size_px: (n, 2) width and height of the picture.
    """
    return _whole(corners_px, size_px)


def context(corners_px: Floats, size_px: Floats, enlarge: float) -> Ints:
    """(n, 4) the box and what is around it: grown, cut to the picture, and widened to a square.

    Every side moves out by half of `enlarge` times the shorter side of the box, whole pixels. The square
    has the height of what results; where it leaves the picture on the left it is cut off, on the right it
    is shifted back.

    Args:
        corners_px: (n, 4) x1, y1, x2, y2.
        size_px: (n, 2) width and height of the picture.
        enlarge: at least 0.

    Source: Kotseruba et al., WACV 2021 (`enlarge` with 1.5, then `squarify` to 1).
    """
    shorter = (corners_px[:, 2:] - corners_px[:, :2]).min(axis=1)
    out = np.floor(enlarge * shorter / 2)[:, None]
    low = np.maximum(corners_px[:, :2] - out, 0.0)
    high = np.minimum(corners_px[:, 2:] + out, size_px - 1)
    middle, half = (low[:, 0] + high[:, 0]) / 2, np.abs(high[:, 1] - low[:, 1]) / 2
    left, right = np.maximum(middle - half, 0.0), middle + half
    beyond = np.maximum(right - size_px[:, 0], 0.0)
    grown = np.stack([left - beyond, low[:, 1], right - beyond, high[:, 1]], axis=1)
    return _whole(grown, size_px)


def _whole(corners_px: Floats, size_px: Floats) -> Ints:
    """(n, 4) corners cut off to whole pixels inside the picture, with at least one pixel between them."""
    most = np.tile(size_px, 2)
    corners = np.clip(np.trunc(corners_px), 0, most)
    low = np.minimum(corners[:, :2], size_px - 1)
    high = np.maximum(corners[:, 2:], low + 1)
    return np.concatenate([low, high], axis=1).astype(np.int64)
