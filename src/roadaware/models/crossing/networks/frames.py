"""Inputs as numbers of each frame: sequences as they are, crops through convolutions; imports torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.networks.base import Shapes

_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Pictures(nn.Module):
    """VGG's convolutions on each picture: (B, T, 3, H, W) in [0, 1] to means over it, (B, T, channels).

    `trunk` numbers its layers as published weights do.

    Args:
        blocks: (layers, channels) of each block; a pool that halves the picture follows each.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, blocks: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for times, channels in blocks:
            for _ in range(times):
                layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU()]
                before = channels
            layers.append(nn.MaxPool2d(2))
        self.trunk = nn.Sequential(*layers)
        self.width = before
        self.register_buffer("mean", torch.tensor(_MEAN).reshape(3, 1, 1))
        self.register_buffer("deviation", torch.tensor(_DEVIATION).reshape(3, 1, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        """The features of each frame."""
        batch, frames = pictures.shape[:2]
        seen: Tensor = self.trunk((pictures.flatten(0, 1) - self.mean) / self.deviation)
        return seen.mean((-2, -1)).reshape(batch, frames, -1)


class FrameReader(nn.Module):
    """All inputs as sequences (B, T, width), crops through the same convolutions.

    Args:
        name: of the network, for messages.
        shapes: of one sample of each input.
        blocks: of `Pictures`.

    Raises:
        UsageError: if an input is neither a sequence nor a crop, or the inputs differ in frames.
    """

    def __init__(self, name: str, shapes: Shapes, blocks: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        odd = [given for given, shape in shapes.items() if len(shape) not in (2, 4) or _is_map(given)]
        if odd:
            raise UsageError(f"{name} reads sequences and crops, not {', '.join(odd)}")
        frames = {given: shape[0] for given, shape in shapes.items()}
        if len(set(frames.values())) > 1:
            raise UsageError(f"the inputs of {name} should show the same frames, not {frames}")
        self._crops = [given for given, shape in shapes.items() if len(shape) == 4]
        if self._crops:
            self.pictures = Pictures(blocks)
        self.widths = {
            given: self.pictures.width if given in self._crops else shape[1]
            for given, shape in shapes.items()
        }

    def forward(self, x: dict[str, Tensor]) -> list[Tensor]:
        """The sequences, in the order of the shapes."""
        return [self.pictures(x[name]) if name in self._crops else x[name] for name in self.widths]


def _is_map(name: str) -> bool:
    return name.startswith("maps")
