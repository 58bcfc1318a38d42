"""Boxes as arrays of x1, y1, x2, y2: their areas, and how much each of some overlaps each of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats


def areas(boxes: npt.ArrayLike, *, pixel_offset: float = 0.0) -> Floats:
    """(n,) widths times heights, in square pixels.

    Args:
        boxes: (n, 4) x1, y1, x2, y2 in pixels.
        pixel_offset: added to widths and heights; 1 where x2 and y2 are the last pixels inside.

    >>> areas([[0, 0, 9, 4]], pixel_offset=1.0)
    array([50.])
    """
    edges = _edges(boxes)
    found: Floats = (edges[:, 2] - edges[:, 0] + pixel_offset) * (edges[:, 3] - edges[:, 1] + pixel_offset)
    return found


def iou(a: npt.ArrayLike, b: npt.ArrayLike, *, pixel_offset: float = 0.0, clamped: bool = True) -> Floats:
    """(n, m) intersection over union of each box of `a` with each of `b`; 0 where both are empty.

    Args:
        a: (n, 4) x1, y1, x2, y2 in pixels.
        b: (m, 4) the same.
        pixel_offset: added to widths and heights; 1 where x2 and y2 are the last pixels inside.
        clamped: whether the sides of an intersection are at least 0. The published tube builder does
            without: boxes that are apart in both directions then have a positive "intersection", and
            values are not bounded.

    Source: Everingham et al., IJCV 2010, eq. 3.

    >>> iou([[0, 0, 2, 2]], [[1, 0, 3, 2], [4, 4, 6, 6]]).round(4)
    array([[0.3333, 0.    ]])
    >>> iou([[0, 0, 2, 2]], [[4, 4, 6, 6]], clamped=False)
    array([[1.]])
    """
    one, other = _edges(a)[:, None], _edges(b)[None]
    sides = np.minimum(one[..., 2:], other[..., 2:]) - np.maximum(one[..., :2], other[..., :2]) + pixel_offset
    if clamped:
        sides = np.maximum(sides, 0.0)
    inter = sides[..., 0] * sides[..., 1]
    union = areas(a, pixel_offset=pixel_offset)[:, None] + areas(b, pixel_offset=pixel_offset) - inter
    # Unclamped, a union may be negative as well; the published tube builder divides by it all the same.
    shares: Floats = np.divide(inter, union, out=np.zeros_like(inter), where=union != 0)
    return shares


def paired_iou(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """(n,) intersection over union of the i-th boxes of both; 0 where both are empty or one is upside down.

    Args:
        a: (n, 4) x1, y1, x2, y2 in pixels.
        b: (n, 4) the same.

    >>> paired_iou([[0, 0, 2, 2], [0, 0, 2, 2]], [[1, 0, 3, 2], [4, 4, 6, 6]]).round(4)
    array([0.3333, 0.    ])
    """
    one, other = _edges(a), _edges(b)
    sides = np.maximum(np.minimum(one[:, 2:], other[:, 2:]) - np.maximum(one[:, :2], other[:, :2]), 0.0)
    inter = sides[:, 0] * sides[:, 1]
    union = areas(one) + areas(other) - inter
    shares: Floats = np.divide(inter, union, out=np.zeros_like(inter), where=union > 0)
    return shares


def _edges(boxes: npt.ArrayLike) -> Floats:
    """(n, 4) numbers, also of an empty list."""
    edges = np.asarray(boxes, dtype=np.float64)
    return edges.reshape(0, 4) if not edges.size else edges


# Regions of equal width that an image is divided into, from left to right.


def compute_region_position(
    x_px: npt.NDArray[np.float64], width_px: npt.NDArray[Any], regions: int
) -> npt.NDArray[np.float64]:
    """(n,) position of a point in units of regions; its whole part is the region of the point.

    A region is as wide as whole pixels allow; what remains on the right belongs to the last. Points left of
    the image have negative places, and those in the remainder have places of `regions` and more.

    Args:
        x_px: (n,) horizontal coordinates in pixels.
        width_px: (n,) widths of the images in pixels, whole and at least `regions`.
        regions: how many regions.

    Source: the published code of Rasouli and Kotseruba, IV 2024, whose regions are width // regions wide.

    >>> compute_region_position(np.array([106.0, 159.0, -53.0]), np.array([1280, 1280, 1280]), 12)
    array([ 1. ,  1.5, -0.5])
    """
    # Whole pixels: 1280 // 12 = 106 leaves 8 px, which the published code gives to the last region.
    place: npt.NDArray[np.float64] = x_px / (width_px // regions)
    return place
