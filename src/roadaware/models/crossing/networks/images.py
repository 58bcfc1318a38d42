"""What the networks on crops share: inputs of images in the numbers their weights expect, and features of
each frame; imports torch.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import IMAGENET_MEAN, IMAGENET_SPREAD, KERAS_MEAN_BGR, Pixels
from roadaware.models.crossing.networks.base import CrossingNet


class PictureNet(CrossingNet):
    """A network on the crops of a pedestrian, and on nothing else."""

    def clip_shape(self) -> tuple[int, int, int]:
        """(frames, height, width) of its one input.

        Raises:
            UsageError: if it is given other inputs than one of images.
        """
        if list(self.shapes) != self.pictures or len(self.pictures) != 1:
            name, usual = self.entry.card.name, ", ".join(self.entry.reads)
            raise UsageError(
                f"{name} looks at the crops of one input and at nothing else, such as {usual}; "
                f"given are {', '.join(self.shapes)}"
            )
        frames, rows, columns, _ = self.shapes[self.pictures[0]]
        return frames, rows, columns

    def clip(self, x: dict[str, Tensor]) -> Tensor:
        """Its one input (B, T, 3, H, W), in [0, 1]."""
        return x[self.pictures[0]]


class Normalise(nn.Module):
    """Colours in [0, 1] as the numbers that image weights were trained on.

    Args:
        pixels: which numbers; see `entries.pixels.Pixels`.
        swapped: the image comes in with blue first although the rule takes red to be first.
    """

    def __init__(self, pixels: Pixels, swapped: bool = False) -> None:
        super().__init__()
        scale, offset, order = _rule(pixels)
        if swapped:
            order = order[::-1]
        self.order = None if order == [0, 1, 2] else order
        # not among the saved weights: the config says which rule it is
        self.register_buffer("scale", scale[:, None, None], persistent=False)
        self.register_buffer("offset", offset[:, None, None], persistent=False)

    def forward(self, picture: Tensor) -> Tensor:
        """Images (..., 3, H, W) in the same shape."""
        if self.order is not None:
            picture = picture[..., self.order, :, :]
        return picture * cast(Tensor, self.scale) + cast(Tensor, self.offset)


def _rule(pixels: Pixels) -> tuple[Tensor, Tensor, list[int]]:
    """Factor and offset of each channel as the network sees them, and which colour each is."""
    ones = torch.ones(3)
    if pixels == "imagenet":
        mean, spread = torch.tensor(IMAGENET_MEAN), torch.tensor(IMAGENET_SPREAD)
        return 1 / spread, -mean / spread, [0, 1, 2]
    if pixels == "keras":
        return 255 * ones, -torch.tensor(KERAS_MEAN_BGR), [2, 1, 0]
    if pixels == "signed":
        return 2 * ones, -ones, [0, 1, 2]
    if pixels == "bytes":
        return 255 * ones, 0 * ones, [0, 1, 2]
    raise UsageError(f"pixels are imagenet, keras, signed or bytes, not '{pixels}'")


@torch.no_grad()
def normalize_initial_weights(trunk: nn.Module, pictures: Tensor) -> None:
    """Scale and shift first weights so that each channel of each convolution has mean 0 and deviation 1.

    Gates behind a trunk stay shut for good where its features are large and all alike, as those of dark
    images are in a deep stack of ReLUs.

    Args:
        trunk: convolutions, one after another.
        pictures: (B, C, H, W) as the trunk takes them.

    Source: Krähenbühl et al., "Data-dependent initializations of convolutional neural networks", ICLR 2016.
    """

    def settle(layer: nn.Module, _: tuple[Tensor, ...], found: Tensor) -> Tensor:
        convolution = cast(nn.Conv2d, layer)
        # A channel that is the same everywhere has no deviation to divide by.
        mean, spread = found.mean((0, 2, 3)), found.std((0, 2, 3)).clamp_min(1e-6)
        convolution.weight /= spread[:, None, None, None]
        bias = cast(Tensor, convolution.bias)
        bias.copy_((bias - mean) / spread)
        # What a hook returns goes on, so that deeper layers settle on what this one gives from now on.
        return (found - mean[:, None, None]) / spread[:, None, None]

    layers = [layer for layer in trunk.modules() if isinstance(layer, nn.Conv2d)]
    hooks = [layer.register_forward_hook(settle) for layer in layers]
    try:
        trunk(pictures)
    finally:
        for hook in hooks:
            hook.remove()


def initialize_relu_weights(module: nn.Module) -> None:
    """Draw weights so that deep stacks of ReLUs neither fade nor grow: He et al., ICCV 2015, Equation 10."""
    for layer in module.modules():
        # On the meta device there are no weights to draw.
        if isinstance(layer, nn.Conv2d | nn.Conv3d | nn.Linear) and not layer.weight.is_meta:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
