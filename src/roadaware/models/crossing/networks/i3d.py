"""I3D: Inception-v1 with its kernels inflated over time; imports torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crossing.entries.clips import I3D, I3DConfig
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.pictures import Normalise, PictureNet, relu_start

Sides = tuple[int, int, int]
_POOLED = (2, 7, 7)
"""Frames, rows and columns that the last pool averages."""


def bordered(x: Tensor, kernel: Sides, stride: Sides) -> Tensor:
    """Zeros around (B, C, T, H, W), so that each side becomes its length over the stride, rounded up.

    Where the zeros are odd in number the one more is behind, as in TensorFlow, where the weights come from.
    """
    edges: list[int] = []
    for length, side, step in zip(x.shape[:1:-1], kernel[::-1], stride[::-1], strict=True):
        lacking = max((-(-length // step) - 1) * step + side - length, 0)
        edges += [lacking // 2, lacking - lacking // 2]
    return functional.pad(x, edges) if any(edges) else x


def same_pool(x: Tensor, kernel: Sides, stride: Sides) -> Tensor:
    """The most of each window of what a ReLU left, so that zeros around it change nothing."""
    return functional.max_pool3d(bordered(x, kernel, stride), kernel, stride)


class ShiftNorm(nn.BatchNorm3d):
    """Batch norm that learns a shift and no scale; the scale of loaded weights is kept as it is."""

    def __init__(self, channels: int, momentum: float) -> None:
        super().__init__(channels, eps=0.001, momentum=momentum)
        del self.weight
        self.register_buffer("weight", torch.ones(channels))


class Unit3D(nn.Module):
    """Convolution without bias, batch norm and ReLU, with zeros around as TensorFlow sets them."""

    def __init__(
        self, inputs: int, outputs: int, kernel: Sides, momentum: float, stride: Sides = (1, 1, 1)
    ) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.conv3d = nn.Conv3d(inputs, outputs, kernel, stride, bias=False)
        self.bn = ShiftNorm(outputs, momentum)

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, T, H, W) to (B, outputs, T / stride, ...)."""
        found: Tensor = self.bn(self.conv3d(bordered(x, self.kernel, self.stride)))
        return found.relu()


class Mixed(nn.Module):
    """Four branches side by side: 1; 1 then 3; 1 then 3; max pool then 1.

    Args:
        inputs: channels.
        widths: of the first branch; first and second convolution of the second and third; of the fourth.
        momentum: of the batch norms.
    """

    def __init__(self, inputs: int, widths: Sequence[int], momentum: float) -> None:
        super().__init__()
        one, three = (1, 1, 1), (3, 3, 3)
        w0, w1a, w1b, w2a, w2b, w3 = widths
        self.b0 = Unit3D(inputs, w0, one, momentum)
        self.b1a, self.b1b = Unit3D(inputs, w1a, one, momentum), Unit3D(w1a, w1b, three, momentum)
        self.b2a, self.b2b = Unit3D(inputs, w2a, one, momentum), Unit3D(w2a, w2b, three, momentum)
        self.b3b = Unit3D(inputs, w3, one, momentum)
        self.width = w0 + w1b + w2b + w3

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, T, H, W) to (B, `width`, T, H, W)."""
        pooled = same_pool(x, (3, 3, 3), (1, 1, 1))
        branches = [self.b0(x), self.b1b(self.b1a(x)), self.b2b(self.b2a(x)), self.b3b(pooled)]
        return torch.cat(branches, 1)


class I3DTrunk(nn.Module):
    """The convolutions of I3D by the names of its port to torch: an 8th of the frames, a 32nd of the sides.

    Args:
        config: its widths.

    Source:
        Carreira and Zisserman, CVPR 2017, Figure 3.
    """

    def __init__(self, config: I3DConfig) -> None:
        super().__init__()
        stem, inner, behind = config.stem
        momentum = config.momentum
        self.Conv3d_1a_7x7 = Unit3D(3, stem, (7, 7, 7), momentum, (2, 2, 2))
        self.Conv3d_2b_1x1 = Unit3D(stem, inner, (1, 1, 1), momentum)
        self.Conv3d_2c_3x3 = Unit3D(inner, behind, (3, 3, 3), momentum)
        self.width = behind
        self.names: list[str] = []
        for name, widths in zip(MIXED, config.mixed, strict=True):
            block = Mixed(self.width, widths, momentum)
            setattr(self, name, block)
            self.names.append(name)
            self.width = block.width
        relu_start(self)

    def forward(self, clip: Tensor) -> Tensor:
        """What the last block gives."""
        x = same_pool(self.Conv3d_1a_7x7(clip), (1, 3, 3), (1, 2, 2))
        x = same_pool(self.Conv3d_2c_3x3(self.Conv3d_2b_1x1(x)), (1, 3, 3), (1, 2, 2))
        for name in self.names:
            if name in _BEFORE:
                x = same_pool(x, *_BEFORE[name])
            x = getattr(self, name)(x)
        return x


MIXED = (
    "Mixed_3b",
    "Mixed_3c",
    "Mixed_4b",
    "Mixed_4c",
    "Mixed_4d",
    "Mixed_4e",
    "Mixed_4f",
    "Mixed_5b",
    "Mixed_5c",
)
_BEFORE: dict[str, tuple[Sides, Sides]] = {
    "Mixed_4b": ((3, 3, 3), (2, 2, 2)),
    "Mixed_5b": ((2, 2, 2), (2, 2, 2)),
}
"""Pools before a block."""


class I3DNet(PictureNet):
    """I3D, averaged; its last 1x1x1 convolution and mean over time are one linear layer on that average."""

    entry = I3D
    config: I3DConfig

    def build(self) -> int:
        """The trunk."""
        _, rows, columns = self.clip_shape()
        if min(rows, columns) < 32:
            raise UsageError(f"I3D halves a picture five times; {rows} x {columns} pixels are too few")
        self.normalise = Normalise(self.config.pixels, self.config.swapped)
        self.trunk = I3DTrunk(self.config)
        self.dropout = nn.Dropout(self.config.dropout)
        return self.trunk.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """Means over two frames and the picture, with dropout, averaged over what is left of them."""
        found = self.trunk(self.normalise(self.clip(x)).transpose(1, 2))
        return Looked(self.dropout(average(found)).mean((-3, -2, -1)), {})


def average(found: Tensor) -> Tensor:
    """Means over 2 frames and 7 x 7 positions, or over as many as there are, of (B, C, T, H, W)."""
    sides = [min(side, length) for side, length in zip(_POOLED, found.shape[2:], strict=True)]
    return functional.avg_pool3d(found, sides, stride=1)
