"""Views: which parts of an image a network is shown, and in which size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from roadaware.arrays import Floats32, Pixels
from roadaware.errors import UsageError

MULTIPLE_PX = 32
SMALLEST_PX, LARGEST_PX = 128, 4096
TILE_PX, TILE_SHARE = 640, 0.45
"""Longer side of a tile as it is shown, and its share of the image's sides. Of shares from .35 to .5, on
labelled images of streets, larger ones find vehicles better and smaller ones people."""
_GREY = 114
"""What pads an image: the middle of what the network learnt from."""


@dataclass(frozen=True)
class Views:
    """How an image is shown.

    Args:
        size_px: the longer side of the whole image as it is shown, a multiple of 32; the shape is kept, and
            padded to a multiple.
        tiles: besides the whole image, three parts of it, in 640 pixels or `size_px` if that is less: for
            what is far.

    Raises:
        UsageError: if the size is none.
    """

    size_px: int = 640
    tiles: bool = False

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.size_px % MULTIPLE_PX or not SMALLEST_PX <= self.size_px <= LARGEST_PX:
            raise UsageError(
                f"the size of images is a multiple of {MULTIPLE_PX} from {SMALLEST_PX} to {LARGEST_PX}, "
                f"not {self.size_px}"
            )

    def regions(self, width: int, height: int) -> list[tuple[int, int, int, int]]:
        """The parts of an image that are shown, as x1, y1, x2, y2: the whole one first.

        Tiles have the shape of the image. They lie side by side at half height, where far things are. Small
        images have them, too: the network finds more of what is enlarged.
        """
        found = [(0, 0, width, height)]
        return [*found, *_tiles(width, height)] if self.tiles else found

    def shown_px(self, place: int) -> int:
        """The longer side of a region as it is shown.

        Args:
            place: of the region; 0 for the whole image.
        """
        return self.size_px if place == 0 else min(self.size_px, TILE_PX)


def _tiles(width: int, height: int) -> list[tuple[int, int, int, int]]:
    wide, high = round(width * TILE_SHARE), round(height * TILE_SHARE)
    top = (height - high) // 2
    return [(left, top, left + wide, top + high) for left in (0, (width - wide) // 2, width - wide)]


def resize_region(
    picture: Pixels, region: tuple[int, int, int, int], size_px: int
) -> tuple[npt.NDArray[np.float32], float]:
    """(3, h, w) of a part of an image, padded right and below, and by how much it was scaled.

    Args:
        picture: (H, W, 3) uint8, red first.
        region: x1, y1, x2, y2 of the part.
        size_px: the longer side of the answer.
    """
    x1, y1, x2, y2 = region
    scale = size_px / max(x2 - x1, y2 - y1)
    width, height = (max(1, round(n * scale)) for n in (x2 - x1, y2 - y1))
    image = Image.fromarray(np.ascontiguousarray(picture[y1:y2, x1:x2]))
    if image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    padded = [-(-n // MULTIPLE_PX) * MULTIPLE_PX for n in (height, width)]
    found = np.full((3, *padded), _GREY, np.float32)
    found[:, :height, :width] = np.asarray(image).transpose(2, 0, 1)
    return found, scale


# Boxes from the maps of a CenterNet: peaks of the heat are centres, whose sides stand in a second map.


def find_peaks(heat: Floats32, sides: Floats32, floor: float, stride: int) -> tuple[Floats32, Floats32]:
    """Boxes and scores of all centres: places whose heat no neighbour of the same class exceeds.

    Args:
        heat: (c, h, w) in [0, 1], a map for each class.
        sides: (4, h, w) distance of the left, upper, right and lower side from the centre, in pixels.
        floor: heat that a centre has more of.
        stride: pixels of the image for each place of the maps.

    Returns:
        (n, 4) x1, y1, x2, y2 in pixels, and (n, c) the heat of every class at the centre; a place that is the
        centre of several classes stands once, and one whose sides leave no area is left out.

    Source: Zhou et al., Objects as Points, 2019; sides to four directions as in TTFNet, 2020.
    """
    classes, height, width = heat.shape
    c, y, x = np.nonzero(heat > floor)
    # -1 is below any heat: a cell at the edge has no neighbour there.
    padded = np.full((classes, height + 2, width + 2), -1, np.float32)
    padded[:, 1:-1, 1:-1] = heat
    value, highest = heat[c, y, x], np.full(len(c), -1, np.float32)
    for down in range(3):
        for right in range(3):
            np.maximum(highest, padded[c, y + down, x + right], out=highest)
    top = value >= highest
    # A cell gives one box, however many classes have their peak in it.
    place = np.unique(y[top].astype(np.int64) * width + x[top])
    y, x = place // width, place % width
    left, upper, right_side, lower = sides[:, y, x]
    boxes = np.stack(
        [x * stride - left, y * stride - upper, x * stride + right_side, y * stride + lower], axis=1
    )
    whole = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)  # a network may answer with sides below 0
    return boxes[whole].astype(np.float32), np.ascontiguousarray(heat[:, y, x].T[whole])
