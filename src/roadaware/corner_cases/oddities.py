"""Oddities: what is strange about a capture whose proposals are made all the same, in words to be counted."""

from __future__ import annotations

from roadaware.corner_cases.captures import Camera, Capture
from roadaware.corner_cases.copg import Geometry
from roadaware.corner_cases.range_image import BEAMS, BINS
from roadaware.errors import InputError

NO_GROUND = "no ground was found, and none was removed"
NO_RETURNS = "no return of the sweep can be used"
LEFT_OUT = "some returns are not finite or beyond 10 km, and were left out"
NO_RINGS = "neither rings nor an order of returns that tells them: rows of the range image are guessed"
OFF_CENTRE = "the calibration's middle lies far from the picture's: it may belong to another size of picture"
_USUAL = (0.3, 0.7)


def oddities(capture: Capture, geometry: Geometry) -> list[str]:
    """What is strange, each the same words for every capture of which it is true.

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
    if counts.get("not finite") or counts.get("beyond 10 km"):
        found.append(LEFT_OUT)
    if counts.get("usable") and geometry.grid.how in (BEAMS, BINS):
        found.append(NO_RINGS)
    if not all(_USUAL[0] <= share <= _USUAL[1] for share in middle_of(capture.camera)):
        found.append(OFF_CENTRE)
    return found


def middle_of(camera: Camera) -> tuple[float, float]:
    """Where the camera looks straight ahead, as shares of the picture's width and height.

    Args:
        camera: whose matrix may belong to a picture of another size.
    """
    lens = camera.intrinsics
    return float(lens[0, 2]) / camera.width_px, float(lens[1, 2]) / camera.height_px


def require_middle(camera: Camera) -> None:
    """Refuse a camera matrix that cannot belong to the picture.

    Args:
        camera: that took it.

    Raises:
        InputError: if the middle of the calibration lies outside the picture.
    """
    across, down = middle_of(camera)
    if not (0 <= across <= 1 and 0 <= down <= 1):
        size = f"{camera.width_px}x{camera.height_px}"
        message = f"the middle of the calibration lies outside the picture of {size} pixels"
        raise InputError(message, hint="scale the camera matrix with the picture, or take the original one")
