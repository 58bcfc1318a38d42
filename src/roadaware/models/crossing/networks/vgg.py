"""VGG16, and the network that reads it on the last frame; imports torch."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries.stills import VGG16, VGG16Config
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.pictures import Normalise, PictureNet, relu_start

REPEATS = (2, 2, 3, 3, 3)
"""Convolutions before each pool."""


class VGG16Trunk(nn.Module):
    """VGG16 with the names of torchvision: pictures (B, C, H, W) to features.

    Args:
        filters: channels of the five stages.
        hidden: widths of two fully connected layers behind them; empty to average over the picture instead.
        size: (height, width) of the picture, needed if there are fully connected layers.
        channels: of the picture.
        dropout: behind each fully connected layer.

    Source:
        Simonyan and Zisserman, ICLR 2015, Table 1, column D.
    """

    def __init__(
        self,
        filters: Sequence[int],
        hidden: Sequence[int] = (),
        size: tuple[int, int] = (224, 224),
        channels: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if min(size) < 2 ** len(REPEATS):
            raise UsageError(f"VGG16 halves a picture five times; {size[0]} x {size[1]} pixels are too few")
        layers: list[nn.Module] = []
        for repeats, width in zip(REPEATS, filters, strict=True):
            for _ in range(repeats):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.width = channels
        self.classifier = nn.Sequential() if hidden else None
        if self.classifier is not None:
            self.width = channels * (size[0] // 32) * (size[1] // 32)
            for width in hidden:
                self.classifier.extend([nn.Linear(self.width, width), nn.ReLU(), nn.Dropout(dropout)])
                self.width = width
        relu_start(self)

    def forward(self, picture: Tensor) -> Tensor:
        """(B, `width`)."""
        found: Tensor = self.features(picture)
        if self.classifier is None:
            return found.mean((-2, -1))
        behind: Tensor = self.classifier(found.flatten(1))
        return behind


class VGG16Net(PictureNet):
    """The last frame through VGG16, averaged over the picture."""

    entry = VGG16
    config: VGG16Config

    def build(self) -> int:
        """The trunk."""
        _, *size = self.clip_shape()
        self.normalise = Normalise(self.config.pixels, self.config.swapped)
        self.trunk = VGG16Trunk(self.config.filters, size=(size[0], size[1]))
        self.dropout = nn.Dropout(self.config.dropout)
        return self.trunk.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """Features of the last frame."""
        last = self.normalise(self.clip(x)[:, -1])
        return Looked(self.dropout(self.trunk(last)), {})
