"""Joints of people drawn into their figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

BONES = (
    (0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7), (7, 9), (6, 8), (8, 10), (5, 11), (6, 12), (11, 12),
    (11, 13), (13, 15), (12, 14), (14, 16),
)  # fmt: skip
"""Pairs of COCO's 17 joints; odd ones are those of the left side."""
_LEFT, _RIGHT, _MIDDLE, _BOX = (60, 220, 60), (240, 80, 60), (250, 220, 60), (120, 170, 255)


def draw_joints(
    picture: npt.NDArray[np.uint8],
    joints: Sequence[npt.NDArray[np.floating]],
    boxes: Sequence[npt.NDArray[np.floating]],
) -> Image.Image:
    """The image with boxes and bones; green on the person's left, red on the right.

    Args:
        picture: (H, W, 3) uint8.
        joints: of each person (17, 3) x, y in pixels and a score, 0 for one that is not seen.
        boxes: of each person x1, y1, x2, y2.
    """
    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    for person, box in zip(joints, boxes, strict=True):
        pen.rectangle([float(side) for side in box], outline=_BOX)
        for one, other in BONES:
            if min(person[one, 2], person[other, 2]) > 0:
                ends = [tuple(map(float, person[joint, :2])) for joint in (one, other)]
                same = one % 2 == other % 2 and one > 0
                pen.line(ends, fill=(_LEFT if one % 2 else _RIGHT) if same else _MIDDLE, width=2)
    return image
