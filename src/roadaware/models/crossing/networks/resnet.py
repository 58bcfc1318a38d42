"""ResNet50, and the network that reads it on the last frame; imports torch."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from roadaware.models.crossing.entries.stills import RESNET50, ResNet50Config
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.pictures import Normalise, PictureNet, relu_start

_GROWS = 4
"""A block ends with four times the channels of its middle."""


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 to four times the width, beside the input.

    Args:
        inputs, width: channels before and inside.
        stride: of the block.
        early: stride in the first convolution, as He et al. and Keras; else in the 3x3, as torchvision.
    """

    def __init__(self, inputs: int, width: int, stride: int, early: bool) -> None:
        super().__init__()
        first, second = (stride, 1) if early else (1, stride)
        outputs = width * _GROWS
        self.conv1 = nn.Conv2d(inputs, width, 1, first, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, second, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            if stride != 1 or inputs != outputs
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, H, W) to (B, 4 width, H / stride, W / stride)."""
        beside = x if self.downsample is None else self.downsample(x)
        x = self.bn1(self.conv1(x)).relu()
        x = self.bn2(self.conv2(x)).relu()
        out: Tensor = (self.bn3(self.conv3(x)) + beside).relu()
        return out


class ResNet50Trunk(nn.Module):
    """ResNet50 with the names of torchvision: (B, 3, H, W) to means over the picture (B, `width`).

    Args:
        width: channels of the stem; the stages have 1, 2, 4 and 8 times as many inside.
        blocks: of each stage.
        early: see `Bottleneck`.

    Source:
        He et al., CVPR 2016, Table 1.
    """

    def __init__(self, width: int, blocks: Sequence[int], early: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        self.stages = len(blocks)
        before = width
        for stage, count in enumerate(blocks):
            inside = width * 2**stage
            layer = nn.Sequential()
            for block in range(count):
                stride = 2 if stage and block == 0 else 1
                layer.append(Bottleneck(before, inside, stride, early))
                before = inside * _GROWS
            setattr(self, f"layer{stage + 1}", layer)
        self.width = before
        relu_start(self)

    def forward(self, picture: Tensor) -> Tensor:
        """(B, `width`)."""
        x = self.maxpool(self.bn1(self.conv1(picture)).relu())
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        out: Tensor = x.mean((-2, -1))
        return out


class ResNet50Net(PictureNet):
    """The last frame through ResNet50."""

    entry = RESNET50
    config: ResNet50Config

    def build(self) -> int:
        """The trunk."""
        self.clip_shape()
        self.normalise = Normalise(self.config.pixels, self.config.swapped)
        self.trunk = ResNet50Trunk(self.config.stem, self.config.blocks, self.config.early_stride)
        self.dropout = nn.Dropout(self.config.dropout)
        return self.trunk.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """Features of the last frame."""
        last = self.normalise(self.clip(x)[:, -1])
        return Looked(self.dropout(self.trunk(last)), {})
