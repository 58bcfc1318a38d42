"""Warnings about odd captures that are used all the same, as texts to be counted."""

from __future__ import annotations

import numpy as np

from roadaware.corner_cases.captures import Camera, Capture, SemanticMap
from roadaware.corner_cases.copg import Geometry
from roadaware.corner_cases.range_image import BEAMS, BINS
from roadaware.errors import InputError

NO_GROUND = "no ground was found, and none was removed"
NO_RETURNS = "no return of the sweep can be used"
LEFT_OUT = "some returns are not finite or beyond 10 km, and were left out"
NO_RINGS = "neither rings nor an order of returns that tells them: rows of the range image are guessed"
OFF_CENTRE = "the calibration's middle lies far from the image's: it may belong to another size of image"
NO_NAMES = (
    "more than a fifth of a mask's pixels have numbers without a name: check classes.json beside the masks"
)
NOT_TOLD = "the detections tell nothing of the video, so that nothing common is suppressed in it"
_STANDS_M = (1.0, 3.5)
"""How high LiDARs on cars and vans stand above the road; the search for the ground is more generous."""
# Some pixels may have no class, such as those of the own bonnet; with other classes' names most may.
_UNNAMED = 0.2
# The middle is near 1/2; a calibration of half the size puts it at 1/4, one of double the size at 1.
_USUAL = (0.3, 0.7)


def collect_warnings(capture: Capture, geometry: Geometry) -> list[str]:
    """Warnings about a capture; equal texts but for numbers for the same problem.

    Args:
        capture: what was seen.
        geometry: of its sweep.
    """
    counts = geometry.checked.counts
    found = []
    if not counts.get("usable"):
        found.append(NO_RETURNS)
    elif geometry.ground.plane is None:
        found.append(NO_GROUND)
    elif not _STANDS_M[0] <= geometry.ground.plane[3] <= _STANDS_M[1]:
        found.append(format_lidar_height(float(geometry.ground.plane[3])))
    if counts.get("not finite") or counts.get("beyond 10 km"):
        found.append(LEFT_OUT)
    if counts.get("usable") and geometry.grid.how in (BEAMS, BINS):
        found.append(NO_RINGS)
    if not all(_USUAL[0] <= share <= _USUAL[1] for share in get_principal_point(capture.camera)):
        found.append(OFF_CENTRE)
    if capture.semantics is not None and compute_unnamed_fraction(capture.semantics) > _UNNAMED:
        found.append(NO_NAMES)
    if capture.common is not None and not capture.common.told:
        found.append(NOT_TOLD)
    return found


def format_lidar_height(height_m: float) -> str:
    """The warning that a LiDAR stands at a height that no car has.

    Args:
        height_m: above the ground that was found.
    """
    usual = f"{_STANDS_M[0]} to {_STANDS_M[1]} m are usual"
    return f"the LiDAR stands {height_m:.1f} m above the ground found, {usual}: check unit and axes of sweeps"


def compute_unnamed_fraction(shown: SemanticMap) -> float:
    """Share of the pixels of a semantic map whose number has no name.

    Args:
        shown: of an image.
    """
    codes = shown.classes
    outside = np.count_nonzero(codes >= len(shown.names)) + np.count_nonzero(codes < 0)
    return float(outside) / max(codes.size, 1)


def get_principal_point(camera: Camera) -> tuple[float, float]:
    """The principal point as shares of the image's width and height.

    Args:
        camera: whose matrix may belong to an image of another size.
    """
    lens = camera.intrinsics
    return float(lens[0, 2]) / camera.width_px, float(lens[1, 2]) / camera.height_px


def validate_principal_point(camera: Camera) -> None:
    """Refuse a camera matrix that cannot belong to the image.

    Args:
        camera: that took it.

    Raises:
        InputError: if the middle of the calibration lies outside the image.
    """
    across, down = get_principal_point(camera)
    if not (0 <= across <= 1 and 0 <= down <= 1):
        size = f"{camera.width_px}x{camera.height_px}"
        message = f"the middle of the calibration lies outside the image of {size} pixels"
        raise InputError(message, hint="scale the camera matrix with the image, or take the original one")
