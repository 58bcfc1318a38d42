"""The overlap of two boxes for compiled loops; imports numba."""

from __future__ import annotations

from roadaware.arrays import Floats
from roadaware.geometry.arithmetic import round_to_single
from roadaware.geometry.compiled import inner_kernel, kernel


@kernel
def box_iou(a: Floats, b: Floats, extra: float) -> float:
    """Intersection over union of two boxes in double precision; 0 where they are apart or have no area.

    The union is the sum of both areas less the intersection, in this order, which published evaluators share:
    their numbers are repeated to the last digit. Loops that round between the steps as a published program
    did, that divide by something else, or that know the areas beforehand have an overlap of their own.

    Args:
        a: (4,) x1, y1, x2, y2 in pixels.
        b: (4,) the same.
        extra: added to widths and heights.
    """
    width = min(a[2], b[2]) - max(a[0], b[0]) + extra
    height = min(a[3], b[3]) - max(a[1], b[1]) + extra
    # Each side by itself: two negative ones, of boxes apart in both directions, have a positive product.
    if width <= 0 or height <= 0:
        return 0.0
    common = width * height
    union = (a[2] - a[0] + extra) * (a[3] - a[1] + extra) + (b[2] - b[0] + extra) * (b[3] - b[1] + extra)
    return float(common / (union - common))


@inner_kernel
def single_iou(a: Floats, b: Floats, extra: float) -> float:
    """The same in 32-bit arithmetic, with `extra` added to right and lower sides before they are compared.

    Args:
        a: (4,) x1, y1, x2, y2 in pixels, which 32 bits hold.
        b: (4,) the same.
        extra: added to widths and heights.
    """
    # Rounded after each step, and added before the minimum: another order may differ in the last bit.
    width = round_to_single(
        min(round_to_single(a[2] + extra, True), round_to_single(b[2] + extra, True)) - max(a[0], b[0]), True
    )
    height = round_to_single(
        min(round_to_single(a[3] + extra, True), round_to_single(b[3] + extra, True)) - max(a[1], b[1]), True
    )
    if width <= 0 or height <= 0:
        return 0.0
    common = round_to_single(width * height, True)
    both = round_to_single(single_area(a, extra) + single_area(b, extra), True)
    return round_to_single(common / round_to_single(both - common, True), True)


@inner_kernel
def single_area(box: Floats, extra: float) -> float:
    """Width times height in 32-bit arithmetic."""
    width = round_to_single(round_to_single(box[2] - box[0], True) + extra, True)
    height = round_to_single(round_to_single(box[3] - box[1], True) + extra, True)
    return round_to_single(width * height, True)
