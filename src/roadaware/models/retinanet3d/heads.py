"""Heads over the pyramid: boxes, class scores and the actions of the own vehicle; imports torch."""

from __future__ import annotations

import math

from torch import Tensor, nn

from roadaware.models.retinanet3d.config import RetinaNetConfig
from roadaware.models.retinanet3d.layers import Conv, space


class LevelConv(Conv):
    """A convolution that all levels share, with a memory for each of them."""

    def __init__(self, *args: int | tuple[int, int, int], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.kept_of: dict[int, tuple[Tensor, ...]] = {}

    def forget(self) -> None:
        """Begin a new stream at every level."""
        super().forget()
        self.kept_of = {}

    def forward(self, input: Tensor, level: int = 0) -> Tensor:
        """(B, C, T, H, W) to (B, C', T, H, W).

        Args:
            input: (B, C, T, H, W).
            level: whose past comes before it on a stream.
        """
        if not self.streaming:
            return super().forward(input)
        self.kept = self.kept_of.get(level, ())
        shown = super().forward(input)
        self.kept_of[level] = self.kept
        return shown


class Head(nn.Sequential):
    """Convolutions over space with rectifiers, then one over space and time."""

    def forward(self, input: Tensor, level: int = 0) -> Tensor:
        """(B, width, T, H, W) to (B, A * k, T, H, W), the anchors of a cell one after another."""
        return self.last(self.inner(input), level)

    def inner(self, input: Tensor) -> Tensor:
        """All but the last convolution; it sees single frames."""
        for layer in list(self)[:-1]:
            input = layer(input)
        return input

    def last(self, input: Tensor, level: int = 0) -> Tensor:
        """The last convolution."""
        shown: Tensor = self.end(input, level)
        return shown

    @property
    def end(self) -> LevelConv:
        """The layer that tells."""
        layer = self[len(self) - 1]
        if not isinstance(layer, LevelConv):
            raise TypeError(f"a head ends in a LevelConv, not {type(layer).__name__}")
        return layer


def head(config: RetinaNetConfig, outputs: int) -> Head:
    """A head with `outputs` numbers for each anchor; its last weights are drawn with deviation 0.01.

    The inner ones are drawn likewise, or after He et al. (ICCV 2015, eq. 10), as `config.head_start` says.
    """
    inputs = config.width
    layers: list[nn.Module] = []
    for _ in range(config.head_layers):
        width = config.head_width or config.width
        layers += [space(inputs, width, bias=True), nn.ReLU(inplace=True)]
        inputs = width
    taps = config.head_time
    layers.append(
        LevelConv(
            inputs,
            config.n_anchors * outputs,
            (taps, 3, 3),
            padding=(taps // 2, 1, 1),
            causal=config.causal,
        )
    )
    for layer in layers:
        if isinstance(layer, nn.Conv3d):
            if config.head_start == "kept" and layer is not layers[-1]:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            else:
                nn.init.normal_(layer.weight, std=0.01)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return Head(*layers)


def ego_head(config: RetinaNetConfig, n_av: int) -> Conv:
    """Three frames of the feature of the own vehicle to its actions."""
    layer = Conv(config.width, n_av, (3, 1, 1), padding=(1, 0, 0), causal=config.causal)
    start_at(layer, config.prior)
    return layer


def start_at(layer: nn.Conv3d, prior: float) -> None:
    """Set the bias so that scores begin at a probability."""
    if layer.bias is not None:
        nn.init.constant_(layer.bias, -math.log((1 - prior) / prior))
