"""Pictures as the network wants them, and boxes back to pixels of the original picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from roadaware.arrays import Pixels
from roadaware.errors import InputError
from roadaware.models.retinanet3d.config import RetinaNetConfig

_WANTED = "pictures are (H, W, 3) arrays of uint8, red first"


@dataclass(frozen=True)
class Fit:
    """Resizes a picture so that its short side has a length, normalises it and pads it with zeros.

    Args:
        short_side_px: of the resized picture; its long side is cut down to a whole pixel.
        multiple_px: right and bottom are padded up to a multiple.
        mean, std: of the channels, red first, of pictures in [0, 1].

    Source: the released code of 3D-RetinaNet: bilinear, with antialiasing.
    """

    short_side_px: int = 512
    multiple_px: int = 32
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)

    @classmethod
    def of(cls, config: RetinaNetConfig) -> Fit:
        """As a network was made for."""
        return cls(config.short_side_px, config.multiple_px, config.mean, config.std)

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of a picture once it is resized, not yet padded."""
        short = self.short_side_px
        if width < height:
            return int(short * height / width), short
        return short, int(short * width / height)

    def fit(self, picture: Pixels) -> tuple[Tensor, float, float]:
        """One picture.

        Args:
            picture: (H, W, 3) uint8, red first.

        Returns:
            (3, h, w) float32, and by how much its width and its height were scaled.

        Raises:
            InputError: if it is no such array or has no pixels.
        """
        batch, scale_x, scale_y = self.fit_all([picture])
        return batch[:, 0], scale_x, scale_y

    def fit_all(self, pictures: Sequence[Pixels]) -> tuple[Tensor, float, float]:
        """Frames of one video.

        Args:
            pictures: of (H, W, 3) uint8, all of the same size.

        Returns:
            (3, T, h, w) float32, as a clip of the network, and by how much width and height were scaled.

        Raises:
            InputError: if one is no such array, none is given, or their sizes differ.
        """
        if not len(pictures):
            raise InputError("at least one picture is needed", hint=_WANTED)
        for picture in pictures:
            checked(picture, pictures[0].shape)
        height, width = pictures[0].shape[:2]
        new = self.size(height, width)
        wide = [-(-n // self.multiple_px) * self.multiple_px for n in new]
        clip = torch.zeros(3, len(pictures), *wide)
        mean = torch.tensor(self.mean).mul(255).view(3, 1, 1)
        factor = torch.tensor(self.std).mul(255).reciprocal().view(3, 1, 1)
        for frame, picture in enumerate(pictures):
            inside = clip[:, frame, : new[0], : new[1]]
            inside.copy_(_resized(picture, new)).sub_(mean).mul_(factor)
        return clip, new[1] / width, new[0] / height

    def back(self, boxes: Tensor, height: int, width: int) -> Tensor:
        """Boxes of the network in pixels of the original picture, clipped to it.

        Args:
            boxes: (..., 4) x1, y1, x2, y2 in pixels of what `fit` gave.
            height, width: of the original picture.

        Returns:
            (..., 4).
        """
        new = self.size(height, width)
        x, y = width / new[1], height / new[0]
        limits = boxes.new_tensor([width, height, width, height])
        scaled = boxes * boxes.new_tensor([x, y, x, y])
        return torch.minimum(scaled.clamp(min=0), limits)


def checked(picture: Pixels, like: tuple[int, ...] | None = None) -> Pixels:
    """The same picture, if it is one, and if it has the size of the others.

    Args:
        picture: (H, W, 3) uint8.
        like: the shape of the pictures before it.

    Raises:
        InputError: if it is none, or of another size.
    """
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or 0 in picture.shape:
        raise InputError(f"got an array of {picture.dtype} with shape {picture.shape}", hint=_WANTED)
    if like is not None and picture.shape != like:
        was, now = (f"{shape[1]}x{shape[0]}" for shape in (like, picture.shape))
        raise InputError(
            f"pictures of {was} are followed by one of {now}",
            hint="all pictures of a stream have one size: resize them, or begin another stream",
        )
    return picture


def _resized(picture: Pixels, size: tuple[int, int]) -> Tensor:
    """(3, h, w) uint8."""
    owned = picture if picture.flags.writeable and picture.flags.c_contiguous else picture.copy()
    tensor = torch.from_numpy(owned).permute(2, 0, 1)
    if tuple(tensor.shape[1:]) == size:
        return tensor
    return functional.interpolate(tensor[None], size=size, mode="bilinear", antialias=True)[0]
