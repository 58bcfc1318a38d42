"""Cells of 60 pixels: where in the image a pedestrian is, as the number of a cell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from roadaware.arrays import Floats
from roadaware.tasks.crossing_inputs.observations import Observations

NEEDS = "boxes with tubes, and width_px and height_px of the videos"
COLUMNS, ROWS = 32, 18
CELLS = COLUMNS * ROWS
"""Cells of 60 pixels in an image of 1920 x 1080; other images have as many, of another size."""


def assign_grid_number(corners_px: Floats, size_px: Floats) -> Floats:
    """(...) number of the cell that holds the centre of a box, row by row from 0.

    A centre off the image counts to the nearest cell.

    Args:
        corners_px: (..., 4) x1, y1, x2, y2.
        size_px: (..., 2) width and height of the image.

    Source: Rasouli et al., ICCV 2021 (BiPed).
    """
    column, row = np.moveaxis(np.floor(_places(corners_px, size_px)), -1, 0)
    return np.asarray(np.clip(row, 0, ROWS - 1) * COLUMNS + np.clip(column, 0, COLUMNS - 1))


def encode_grid(seen: Observations) -> Floats:
    """(n, t, 1) the cell of each box, 0 to 575."""
    return assign_grid_number(seen.corners_px, seen.size_px[:, None])[..., None]


def encode_rounded_grid(seen: Observations) -> Floats:
    """(n, t, 1) the cell as the published code has it, 0 to 608: the centre is rounded, not cut off.

    Cells are shifted by half a cell, and the last column of a row is the first of the next.
    """
    column, row = np.moveaxis(np.round(_places(seen.corners_px, seen.size_px[:, None])), -1, 0)
    return np.asarray(np.clip(row, 0, ROWS) * COLUMNS + np.clip(column, 0, COLUMNS))[..., None]


def _places(corners_px: Floats, size_px: Floats) -> Floats:
    """(..., 2) the centre in cells."""
    centre = (corners_px[..., :2] + corners_px[..., 2:]) / 2
    return np.asarray(centre / size_px * (COLUMNS, ROWS))


FORMS: dict[str, tuple[Callable[[Observations], Floats], str]] = {
    "grid": (encode_grid, NEEDS),
    "grid:rounded": (encode_rounded_grid, NEEDS),
}
"""Name to what makes it and the tables it reads."""
