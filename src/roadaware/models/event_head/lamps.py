"""Colour of a traffic light in its box: how much of what glows there is red, amber or green."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats32, Pixels

LIGHTS = ("Red", "Amber", "Green", "Black")
_LEAST_PX = 6
_GLOWS = 110.0
"""Grey levels that the brightest channel of a lamp reaches at least."""
_SATURATED = 0.35
_HUES_DEG = ((0.0, 24.0), (40.0, 20.0), (150.0, 55.0))
"""Middle and width of red, amber and green; lamps of signals are bluish green, at 130 to 190 degrees."""


def light_colours(picture: Pixels, boxes: npt.ArrayLike) -> Floats32:
    """(n, 4) shares of red, amber, green, and of nothing that glows; all 0 where a box is too small.

    Args:
        picture: (H, W, 3) uint8, red first.
        boxes: (n, 4) x1, y1, x2, y2 in pixels.
    """
    sides = np.asarray(boxes, np.float64).reshape(-1, 4)
    found = np.zeros((len(sides), len(LIGHTS)), np.float32)
    height, width = picture.shape[:2]
    for row, (x1, y1, x2, y2) in zip(found, sides, strict=True):
        left, right = max(int(x1), 0), min(int(np.ceil(x2)), width)
        top, bottom = max(int(y1), 0), min(int(np.ceil(y2)), height)
        if bottom - top >= _LEAST_PX and right - left >= 2:
            row[:] = _shares(picture[top:bottom, left:right])
    return found


def _shares(crop: Pixels) -> Floats32:
    """(4,) of one crop, of whose width only the middle counts: sky stands beside the lamps."""
    wide = crop.shape[1]
    crop = crop[:, wide // 6 : wide - wide // 6] if wide > 5 else crop
    colours = crop.reshape(-1, 3).astype(np.float32)
    most, least = colours.max(axis=1), colours.min(axis=1)
    spread = most - least
    glows = (most >= _GLOWS) & (spread >= _SATURATED * most)
    if not glows.any():
        return np.array([0, 0, 0, 1], np.float32)
    red, green, blue = colours[glows].T
    top, range_ = most[glows], np.maximum(spread[glows], 1e-3)
    hue = np.where(
        top == red,
        ((green - blue) / range_) % 6,
        np.where(top == green, (blue - red) / range_ + 2, (red - green) / range_ + 4),
    )
    degrees, weight = 60.0 * hue, (range_ / 255.0) ** 2
    sums = []
    for middle, reach in _HUES_DEG:
        apart = np.abs((degrees - middle + 180.0) % 360.0 - 180.0)
        sums.append(float((weight * np.clip(1.5 - apart / reach, 0, 1)).sum()))
    total = sum(sums)
    dark = 0.02 * len(colours) ** 0.5
    return np.array([*sums, dark], np.float32) / np.float32(total + dark)
