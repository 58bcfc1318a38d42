"""Inputs as numbers of each frame: sequences as they are, crops through VGG16; imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import Pixels
from roadaware.models.crossing.inputs import parse_input_name
from roadaware.models.crossing.networks.base import Shapes
from roadaware.models.crossing.networks.images import Normalise, normalize_initial_weights
from roadaware.models.crossing.networks.stills import VGG16Trunk


class FrameReader(nn.Module):
    """All inputs as sequences (B, T, width), all kinds of crops through the same VGG16.

    Args:
        name: of the network, for messages.
        shapes: of one sample of each input.
        filters: channels of VGG16's five stages.
        pixels: which numbers the colours become.
        swapped: whether blue is taken for red.

    Raises:
        UsageError: if an input is neither a sequence nor a crop, or the inputs differ in frames.
    """

    def __init__(
        self, name: str, shapes: Shapes, filters: Sequence[int], pixels: Pixels, swapped: bool = False
    ) -> None:
        super().__init__()
        crops = [given for given in shapes if parse_input_name(given).kind == "crop"]
        odd = [given for given, shape in shapes.items() if given not in crops and len(shape) != 2]
        if odd:
            raise UsageError(f"{name} reads sequences and crops, not {', '.join(odd)}")
        frames = {given: shape[0] for given, shape in shapes.items()}
        if len(set(frames.values())) > 1:
            raise UsageError(f"the inputs of {name} should show the same frames, not {frames}")
        self._crops = crops
        if crops:
            rows, columns = min(shapes[given][1:3] for given in crops)
            self.normalise = Normalise(pixels, swapped)
            self.trunk = VGG16Trunk(filters, size=(rows, columns))
        self.widths = {
            given: self.trunk.width if given in crops else shape[1] for given, shape in shapes.items()
        }

    def forward(self, x: dict[str, Tensor]) -> list[Tensor]:
        """The sequences, in the order of the shapes."""
        return [self._seen(x[name]) if name in self._crops else x[name] for name in self.widths]

    def settle(self, x: Mapping[str, Tensor]) -> None:
        """Let VGG16 begin with channels of mean 0 and deviation 1 on some crops; see `normalize_initial_weights`."""
        if self._crops:
            with torch.no_grad():
                normalize_initial_weights(
                    self.trunk, self.normalise(torch.cat([x[name][:, -1] for name in self._crops]))
                )

    def _seen(self, pictures: Tensor) -> Tensor:
        """(B, T, width) of images (B, T, 3, H, W)."""
        found: Tensor = self.trunk(self.normalise(pictures.flatten(0, 1)))
        return found.reshape(*pictures.shape[:2], -1)
