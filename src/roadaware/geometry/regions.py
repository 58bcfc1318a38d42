"""Regions of equal width that an image is divided into, from left to right."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def place_in_regions(
    x_px: npt.NDArray[np.float64], width_px: npt.NDArray[Any], regions: int
) -> npt.NDArray[np.float64]:
    """(n,) how many regions lie left of a point; its whole part is the region that holds the point.

    A region is as wide as whole pixels allow; what remains on the right belongs to the last. Points left of
    the image have negative places, and those in the remainder have places of `regions` and more.

    Args:
        x_px: (n,) horizontal coordinates in pixels.
        width_px: (n,) widths of the images in pixels, whole and at least `regions`.
        regions: how many regions.

    Source: the published code of Rasouli and Kotseruba, IV 2024, whose regions are width // regions wide.

    >>> place_in_regions(np.array([106.0, 159.0, -53.0]), np.array([1280, 1280, 1280]), 12)
    array([ 1. ,  1.5, -0.5])
    """
    place: npt.NDArray[np.float64] = x_px / (width_px // regions)
    return place
