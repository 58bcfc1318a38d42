"""Boxes as inputs of networks: position, reference and units, and the cell of 60 pixels that a pedestrian is in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roadaware.arrays import Floats
from roadaware.tasks.crossing_inputs.observations import Observations

NEEDS = "boxes with tubes, and width_px and height_px of the videos"
PIXELS_NEED = "boxes with tubes"
LEAST_ASPECT = 0.34
"""A box counts as at least this wide for its height when its area scales it."""
PUBLISHED_HEIGHT_PX = 1080
"""Height of the images that areas are counted in, whatever size a video has."""
CENTRE = ("x", "y", "log_width", "log_height", "x_velocity", "y_velocity", "width_growth", "height_growth")


class Boxes(Protocol):
    """Boxes of n pedestrians over t frames, of samples of tables or of a stream."""

    @property
    def corners_px(self) -> Floats:
        """(n, t, 4) x1, y1, x2, y2 in pixels."""

    @property
    def size_px(self) -> Floats:
        """(n, 2) width and height of each image; (1, 2) where all have the same."""

    @property
    def steps_frames(self) -> Floats:
        """(n, t) frames from the box before; NaN where there is none to look back to."""


@dataclass(frozen=True, eq=False)
class GivenBoxes:
    """Boxes given as arrays rather than tables.

    Args:
        corners_px: (n, t, 4) x1, y1, x2, y2.
        size_px: (n, 2) width and height of each image; (1, 2) where all have the same.
        steps_frames: (n, t) frames from the box before; NaN where there is none to look back to.
    """

    corners_px: Floats
    size_px: Floats
    steps_frames: Floats


def normalize_corners(seen: Boxes) -> Floats:
    """(n, t, 4) x1, y1, x2, y2 as shares of the image's width and height.

    A box that leaves the image has shares below 0 or above 1.
    """
    points = seen.corners_px.reshape(*seen.corners_px.shape[:2], 2, 2)
    return np.asarray((points / seen.size_px[:, None, None]).reshape(seen.corners_px.shape))


def get_pixel_boxes(seen: Boxes) -> Floats:
    """(n, t, 4) x1, y1, x2, y2 in pixels of the original image.

    Source: Kotseruba et al., WACV 2021; PCPA and C3D are given absolute boxes.
    """
    return seen.corners_px


def from_first(seen: Boxes) -> Floats:
    """(n, t, 4) shares less those of the first observed box; the first step is 0.

    The published code drops that first step of every input; here it stays, so that all inputs have the
    same frames.

    Source: Kotseruba et al., WACV 2021 (`normalize_boxes`).
    """
    held = normalize_corners(seen)
    return np.asarray(held - held[:, :1])


def from_last(seen: Boxes) -> Floats:
    """(n, t, 4) shares less those of the last observed box; the last step is 0.

    Source: Rasouli and Kotseruba, IV 2024 (`norm_bbox`).
    """
    held = normalize_corners(seen)
    return np.asarray(held - held[:, -1:])


def scale_by_area(seen: Boxes) -> Floats:
    """(n, t, 4) corners over the area of the box, in 1 / pixel of an image 1080 high: a cue of depth.

    A box narrower than 0.34 of its height counts as that wide, and no box as smaller than a pixel.

    Source: Rasouli and Kotseruba, IV 2024 (`scaled_bbox`).
    """
    corners = seen.corners_px * (PUBLISHED_HEIGHT_PX / seen.size_px[:, 1])[:, None, None]
    height = np.maximum(corners[..., 3] - corners[..., 1], 1.0)
    width = np.maximum(corners[..., 2] - corners[..., 0], LEAST_ASPECT * height)
    return np.asarray(corners / (width * height)[..., None])


def encode_centre(seen: Boxes) -> Floats:
    """(n, t, 8) centre in shares, log of width and height in shares, and the change of each per frame.

    Velocities look back to the box before, over as many frames as lie between. At the first observed box,
    and where a tube has ended and its last box is repeated, they are NaN. A box thinner than a pixel counts
    as one pixel.
    """
    first, last, size = seen.corners_px[..., :2], seen.corners_px[..., 2:], seen.size_px[:, None]
    held = np.zeros((*first.shape[:2], len(CENTRE)))
    here, change = held[..., :4], held[..., 4:]
    here[..., :2] = (first + last) / (2 * size)
    # Logarithms: coming nearer by a tenth is the same change for small and large boxes.
    here[..., 2:] = np.log(np.maximum(last - first, 1.0) / size)
    change[:, 1:] = here[:, 1:] - here[:, :-1]
    change /= seen.steps_frames[..., None]
    return held


def compute_motion(seen: Boxes) -> Floats:
    """(n, t, 3) velocity to the right, downwards and towards the middle, in own heights a frame.

    Somebody who walks at one speed has one velocity in own heights, near and far. It looks back as `encode_centre`
    does and is NaN where that is; in the middle of the image the third is the velocity to the right. A box
    lower than a pixel counts as one pixel.
    """
    x1, y1, x2, y2 = (seen.corners_px[..., side] for side in range(4))
    here = np.stack([(x1 + x2) / 2, (y1 + y2) / 2], axis=-1)
    change = np.diff(here, axis=1, prepend=here[:, :1]) / seen.steps_frames[..., None]
    change = change / np.maximum(y2 - y1, 1.0)[..., None]
    inwards = np.where(here[..., 0] > seen.size_px[:, :1] / 2, -1.0, 1.0) * change[..., 0]
    return np.concatenate([change, inwards[..., None]], axis=-1)


FORMS: dict[str, tuple[Callable[[Boxes], Floats], str]] = {
    "boxes": (normalize_corners, NEEDS),
    "boxes:pixels": (get_pixel_boxes, PIXELS_NEED),
    "boxes:first": (from_first, NEEDS),
    "boxes:last": (from_last, NEEDS),
    "boxes:scaled": (scale_by_area, NEEDS),
    "centre": (encode_centre, NEEDS),
    "motion": (compute_motion, NEEDS),
}
"""Name to what makes it and the tables it reads."""


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


GRID_FORMS: dict[str, tuple[Callable[[Observations], Floats], str]] = {
    "grid": (encode_grid, NEEDS),
    "grid:rounded": (encode_rounded_grid, NEEDS),
}
"""Name to what makes it and the tables it reads."""
