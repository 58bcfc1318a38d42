"""Regions of an image, at their edges."""

import numpy as np
import pytest

from roadaware.geometry.boxes import compute_region_position


@pytest.mark.parametrize(("width", "edge"), [(1920, 160), (1280, 106), (13, 1)])
def test_a_region_is_as_wide_as_whole_pixels_allow(width, edge):
    first = np.arange(12) * float(edge)
    whole = np.full(12, width)
    np.testing.assert_array_equal(compute_region_position(first, whole, 12), np.arange(12))
    np.testing.assert_array_equal(
        np.floor(compute_region_position(first + edge - 0.01, whole, 12)), np.arange(12)
    )
