"""A small network that sees things and people on the road ahead in single images; imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from roadaware.arrays import Floats32, Pixels
from roadaware.errors import DamagedError
from roadaware.models.tensor_files import read_safetensors

CLASSES = ("thing", "person")
"""What it tells apart: what is no road user and lies or stands on the road, and people on foot wherever they are."""
WIDTH_PX = 320
"""Of images as it sees them."""
TOP = 0.38
"""Share of the image that is left out at the top: what stands on the road hardly reaches it."""
HIGHEST_PX = 800
"""Of what it sees of an image: of those more than four times as high as wide, which show no road, it sees fewer columns."""
STRIDE = 4
"""Pixels between two places that are told about."""
_LEAST, _OVERLAP = 0.05, 0.4


def cut_strip(picture: Pixels) -> Pixels:
    """(h, w, 3) what the network sees of an image: all but its top, made small; w is `WIDTH_PX`, or h is `HIGHEST_PX`.

    Args:
        picture: (H, W, 3) uint8, red first.
    """
    height, width = picture.shape[:2]
    top = round(TOP * height)
    size = WIDTH_PX, max(16, round((height - top) * WIDTH_PX / width))
    if size[1] > HIGHEST_PX:
        size = max(16, round(width * HIGHEST_PX / (height - top))), HIGHEST_PX
    return np.asarray(Image.fromarray(picture[top:]).resize(size, Image.Resampling.BOX))


class _Layer(nn.Sequential):
    """Convolution, normalisation, and no negative values."""

    def __init__(self, given: int, out: int, stride: int = 1, reach: int = 1) -> None:
        super().__init__(
            nn.Conv2d(given, out, 3, stride, reach, reach, bias=False), nn.BatchNorm2d(out), nn.ReLU()
        )

    def fold(self) -> None:
        """Let the convolution do the normalisation, too; only in `eval` mode."""
        one, other = cast(nn.Conv2d, self[0]), cast(nn.BatchNorm2d, self[1])
        self[0], self[1] = fuse_conv_bn_eval(one, other), nn.Identity()


class ObstacleNetwork(nn.Module):
    """Logits of `CLASSES` and logarithms of the ways in pixels to the left, upper, right and lower side of the box, every
    `STRIDE` pixels; 165,000 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.fine = nn.ModuleList([_Layer(3, 16, 2), _Layer(16, 32, 2), _Layer(32, 32), _Layer(32, 32)])
        # Context: whether the road is around, and whose wheel it is.
        self.coarse = nn.ModuleList([_Layer(32, 64, 2), *(_Layer(64, 64, reach=k) for k in (1, 2, 4))])
        self.narrow = nn.Conv2d(64, 32, 1)
        self.joined = _Layer(32, 32)
        self.last = nn.Conv2d(32, len(CLASSES) + 4, 1)
        nn.init.constant_(self.last.bias[: len(CLASSES)], -4.0)  # type: ignore[index]

    def forward(self, images: Tensor) -> Tensor:
        """(n, 6, h / 4, w / 4) of (n, 3, h, w) images in [0, 1]; h and w are multiples of 8."""
        x = images * 4 - 2
        for k, layer in enumerate(self.fine):
            x = layer(x) + (x if k > 1 else 0)
        y = x
        for k, layer in enumerate(self.coarse):
            y = layer(y) + (y if k > 0 else 0)
        y = functional.interpolate(self.narrow(y), scale_factor=2.0, mode="bilinear", align_corners=False)
        found: Tensor = self.last(self.joined(x + y[..., : x.shape[2], : x.shape[3]]))
        return found


def open_obstacle_network(path: Path) -> ObstacleNetwork:
    """The network of a file of safetensors, in `eval` mode, to look with and not to learn further.

    Raises:
        InputError, DamagedError: if the file is none of such a network, or not whole.
    """
    tensors, _ = read_safetensors(path)
    network = ObstacleNetwork()
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        # The first line names the class alone.
        why = " ".join(line.strip() for line in str(error).splitlines()[1:2])
        raise DamagedError(f"no network of obstacles: {why[:300]}", where=str(path)) from error
    network.eval()
    for layer in network.modules():
        if isinstance(layer, _Layer):
            layer.fold()
    # A third faster on processors
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


@torch.no_grad()
def detect_obstacles(network: ObstacleNetwork, pictures: list[Pixels]) -> list[Floats32]:
    """Of each image (n, 6): x1, y1, x2, y2 in pixels of the image, score, and place in `CLASSES`; the surest first.

    Args:
        network: in `eval` mode.
        pictures: (H, W, 3) uint8, red first; all of one size.
    """
    strips = np.stack([cut_strip(picture) for picture in pictures])
    height, width = pictures[0].shape[:2]
    (low, wide), top = strips.shape[1:3], round(TOP * height)
    images = torch.from_numpy(strips).permute(0, 3, 1, 2).float() / 255
    padded = functional.pad(images, (0, -wide % 8, 0, -low % 8), mode="replicate")
    maps = network(padded.contiguous(memory_format=torch.channels_last))
    scores = maps[:, : len(CLASSES)].sigmoid()
    peaks = (scores == functional.max_pool2d(scores, 3, 1, 1)) & (scores >= _LEAST)
    found = []
    for k in range(len(pictures)):
        kind, row, column = torch.nonzero(peaks[k], as_tuple=True)
        reach = maps[k, len(CLASSES) :, row, column].exp().clamp(max=4 * WIDTH_PX)
        x, y = (column + 0.5) * STRIDE, (row + 0.5) * STRIDE
        boxes = torch.stack([x - reach[0], y - reach[1], x + reach[2], y + reach[3]], dim=1).numpy()
        boxes[:, 0::2] = boxes[:, 0::2].clip(0, wide) * (width / wide)
        boxes[:, 1::2] = boxes[:, 1::2].clip(0, low) * ((height - top) / low) + top
        rows = np.column_stack([boxes, scores[k, kind, row, column].numpy(), kind.numpy()])
        found.append(_suppress(rows[np.argsort(-rows[:, 4], kind="stable")].astype(np.float32)))
    return found


def _suppress(rows: Floats32) -> Floats32:
    """The boxes that overlap no surer one of their class by more than `_OVERLAP`, nor lie in one by most of their area."""
    kept: list[int] = []
    for k, (x1, y1, x2, y2, _, kind) in enumerate(rows.tolist()):
        if x2 - x1 < 2 or y2 - y1 < 2:
            continue
        others = rows[kept]
        others = others[others[:, 5] == kind]
        wide = np.minimum(others[:, 2], x2) - np.maximum(others[:, 0], x1)
        high = np.minimum(others[:, 3], y2) - np.maximum(others[:, 1], y1)
        shared = np.maximum(wide, 0) * np.maximum(high, 0)
        area, theirs = (x2 - x1) * (y2 - y1), (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
        if not (
            (shared > _OVERLAP * (area + theirs - shared)) | (shared > 0.7 * np.minimum(area, theirs))
        ).any():
            kept.append(k)
    return rows[kept]
