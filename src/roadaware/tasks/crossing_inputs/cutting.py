"""What is cut out of one picture: pixels of a pedestrian, or shares of categories of a mask."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bytes, Floats, Ints
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.tasks.crossing_inputs.media import CropConfig
from roadaware.tasks.crossing_inputs.regions import context, own

CATEGORIES = ("pedestrians", "vehicles", "road", "pavement", "signals", "other")
"""What maps tell apart; vegetation, buildings, sky and what has no class are other."""
_SIMULATOR = {
    "pedestrians": (12, 13),
    "vehicles": range(14, 19),
    "road": (1, 20),
    "pavement": (2,),
    "signals": (7, 8),
}
_CITYSCAPES = {
    "pedestrians": (11, 12),
    "vehicles": range(13, 19),
    "road": (0,),
    "pavement": (1,),
    "signals": (6, 7),
}


class Cutter(Protocol):
    """Makes one array of bytes of a picture and a box."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what is cut out."""

    @property
    def key(self) -> dict[str, Any]:
        """Plain data that changes whenever it would cut another thing."""

    def regions(self, corners_px: Floats, size_px: Floats) -> Ints:
        """(m, 8) in whole pixels: what to cut out, and where the box is.

        Args:
            corners_px: (m, 4) boxes.
            size_px: (m, 2) of the pictures.
        """

    def cut(self, picture: npt.NDArray[Any], region: Ints) -> Bytes:
        """(*shape) bytes.

        Args:
            picture: (h, w) or (h, w, 3) the whole frame.
            region: (8,) a row of `regions`.
        """


class Crop:
    """Pixels of the box, its context, or its surround without the box itself; padded with black to a square.

    Args:
        form: box, context or surround.
        side: of the square, in pixels.
        config: how it is cut.
    """

    def __init__(self, form: str, side: int, config: CropConfig) -> None:
        self.form, self.side, self.config = form, side, config

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a crop: (side, side, 3), RGB."""
        return (self.side, self.side, 3)

    @property
    def key(self) -> dict[str, Any]:
        """What decides the pixels."""
        return {"crop": self.form, "side": self.side, **to_dict(self.config)}

    def regions(self, corners_px: Floats, size_px: Floats) -> Ints:
        """(m, 8) in whole pixels: what to cut out, and where the box is."""
        box = own(corners_px, size_px)
        around = box if self.form == "box" else context(corners_px, size_px, self.config.enlarge)
        return np.concatenate([around, box], axis=1)

    def cut(self, picture: npt.NDArray[Any], region: Ints) -> Bytes:
        """(side, side, 3) of a picture (h, w, 3)."""
        x1, y1, x2, y2, *box = region.tolist()
        held = picture[y1:y2, x1:x2]
        if self.form == "surround":
            held = held.copy()
            # The box may reach out of what is cut, where that was cut off at an edge.
            left, top, right, bottom = (
                max(0, v) for v in (box[0] - x1, box[1] - y1, box[2] - x1, box[3] - y1)
            )
            held[top:bottom, left:right] = self.config.paint
        return squared(held, self.side, self.config.resample)


class CategoryMap:
    """The share that each of CATEGORIES has in every cell of the context of a box; zeros outside of it.

    Args:
        side: cells in a row.
        classes: what the numbers in masks are: simulator or cityscapes.
        enlarge: as for crops.
    """

    def __init__(self, side: int, classes: str, enlarge: float) -> None:
        self.side, self.classes, self.enlarge = side, classes, enlarge
        self._category = np.full(256, CATEGORIES.index("other"), dtype=np.uint8)
        for name, numbers in (_SIMULATOR if classes == "simulator" else _CITYSCAPES).items():
            self._category[list(numbers)] = CATEGORIES.index(name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a map: (categories, side, side)."""
        return (len(CATEGORIES), self.side, self.side)

    @property
    def key(self) -> dict[str, Any]:
        """What decides the shares."""
        return {"maps": CATEGORIES, "side": self.side, "classes": self.classes, "enlarge": self.enlarge}

    def regions(self, corners_px: Floats, size_px: Floats) -> Ints:
        """(m, 8) in whole pixels: what to cut out, and where the box is."""
        around = context(corners_px, size_px, self.enlarge)
        return np.concatenate([around, own(corners_px, size_px)], axis=1)

    def cut(self, picture: npt.NDArray[Any], region: Ints) -> Bytes:
        """(categories, side, side) shares times 255 of a mask (h, w)."""
        if picture.ndim != 2 or picture.dtype != np.uint8:
            raise InputError(f"expected a mask of 8 bits, found {picture.dtype} {picture.shape}")
        x1, y1, x2, y2 = region[:4].tolist()
        held = self._category[picture[y1:y2, x1:x2]]
        planes = [
            squared(np.where(held == k, np.uint8(255), np.uint8(0)), self.side, "box")
            for k in range(len(CATEGORIES))
        ]
        return np.stack(planes)


def squared(held: Bytes, side: int, resample: str) -> Bytes:
    """(side, side[, 3]) a picture whose longer edge is `side`, in the middle of zeros.

    Args:
        held: (h, w[, 3]) of any size.
        side: in pixels.
        resample: bilinear with antialiasing, nearest, or the mean of a `box`.
    """
    from PIL import Image

    ways = {
        "bilinear": Image.Resampling.BILINEAR,
        "nearest": Image.Resampling.NEAREST,
        "box": Image.Resampling.BOX,
    }
    height, width = held.shape[:2]
    ratio = side / max(height, width)
    size = max(1, int(width * ratio)), max(1, int(height * ratio))
    small = np.asarray(Image.fromarray(np.ascontiguousarray(held)).resize(size, ways[resample]))
    made = np.zeros((side, side, *held.shape[2:]), dtype=np.uint8)
    left, top = (side - size[0]) // 2, (side - size[1]) // 2
    made[top : top + size[1], left : left + size[0]] = small
    return made
