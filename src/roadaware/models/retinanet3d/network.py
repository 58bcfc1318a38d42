"""RetinaNet3D: images in, boxes with class scores and the own vehicle's actions out; imports torch."""

from __future__ import annotations

import math
from importlib import import_module
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.retinanet3d.anchors import Anchors, decode
from roadaware.models.retinanet3d.config import RetinaNetConfig
from roadaware.models.retinanet3d.layers import (
    Conv,
    TimeRepeat,
    build_space_convolution,
    resize_like,
    to_channels_last,
)

# Heads over the pyramid: boxes, class scores and the actions of the own vehicle; imports torch.


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
        """The output layer."""
        layer = self[len(self) - 1]
        if not isinstance(layer, LevelConv):
            raise TypeError(f"a head ends in a LevelConv, not {type(layer).__name__}")
        return layer


def build_head(config: RetinaNetConfig, outputs: int) -> Head:
    """A head with `outputs` numbers for each anchor; its last weights are drawn with deviation 0.01.

    The inner ones are drawn likewise, or after He et al. (ICCV 2015, eq. 10), as `config.head_start` says.
    """
    inputs = config.width
    layers: list[nn.Module] = []
    for _ in range(config.head_layers):
        width = config.head_width or config.width
        layers += [build_space_convolution(inputs, width, bias=True), nn.ReLU(inplace=True)]
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


def build_ego_head(config: RetinaNetConfig, n_av: int) -> Conv:
    """Three frames of the feature of the own vehicle to its actions."""
    layer = Conv(config.width, n_av, (3, 1, 1), padding=(1, 0, 0), causal=config.causal)
    start_at(layer, config.prior)
    return layer


def start_at(layer: nn.Conv3d, prior: float) -> None:
    """Set the bias so that scores begin at a probability."""
    if layer.bias is not None:
        # Lin et al., ICCV 2017: else the loss of all the background drowns the rest in the first steps.
        nn.init.constant_(layer.bias, -math.log((1 - prior) / prior))


# The feature pyramid over a trunk, with the feature of the own vehicle; imports torch.


class Features(NamedTuple):
    """Feature maps for the heads.

    Args:
        maps: of each level, finest first, (B, width, T, H, W).
        ego: (B, width, T) the mean of the coarsest map.
    """

    maps: list[Tensor]
    ego: Tensor


class Pyramid(nn.Module):
    """A trunk with its pyramid: a subclass adds the layers of the trunk and gives its maps as `stages`.

    Lateral convolutions, sums from coarse to fine, and coarser maps from the last one of the trunk.

    Its parameters lie beside those of the trunk, under one name, as released; `ego_lateral` is among them
    there though nothing uses it. With fewer than five anchor sizes the coarsest levels are left out.

    Args:
        config: of the network.
        channels: of the maps of the trunk with strides 8, 16 and 32.
        pooled: the trunk gives half of the frames, which are then shown twice.

    Source: Lin et al., CVPR 2017 (feature pyramid); released code, models/resnetFPN.py.
    """

    def __init__(self, config: RetinaNetConfig, channels: tuple[int, int, int], *, pooled: bool) -> None:
        super().__init__()
        width, self.levels = config.width, config.levels
        self.lateral_layer1 = build_space_convolution(channels[2], width, 1)
        self.lateral_layer2 = build_space_convolution(channels[1], width, 1)
        self.lateral_layer3 = build_space_convolution(channels[0], width, 1)
        for number, level in ((1, 2), (2, 1), (3, 0)):
            if self.levels > level:
                self.add_module(f"corr_layer{number}", build_space_convolution(width, width))
        if self.levels > 3:
            self.conv6 = build_space_convolution(channels[2], width, stride=2)
        if self.levels > 4:
            self.conv7 = build_space_convolution(width, width, stride=2)
        if config.dead_weights:
            self.ego_lateral = build_space_convolution(8 * 4 * config.base_width, width, stride=2)
            # Several devices wait for the gradient of whatever asks for one, and none will come.
            self.ego_lateral.requires_grad_(False)
        for layer in self.children():
            if isinstance(layer, nn.Conv3d):
                # Xavier's rule for uniform numbers, as Detectron draws its pyramids.
                nn.init.kaiming_uniform_(layer.weight, a=1)
        self.repeats = nn.ModuleList(TimeRepeat() for _ in range(self.levels + 1)) if pooled else None

    def stages(self, input: Tensor) -> list[Tensor]:
        """(B, 3, T, H, W) to three maps (B, C, T', H', W') with strides 8, 16 and 32, T' halved if pooled."""
        raise NotImplementedError

    def forward(self, input: Tensor) -> Features:
        """The levels of (B, 3, T, H, W) images, normalised and padded."""
        stages = self.stages(to_channels_last(input))
        coarse = self.lateral_layer1(stages[2])
        middle = self.lateral_layer2(stages[1]) + resize_like(coarse, stages[1])
        fine = self.lateral_layer3(stages[0]) + resize_like(middle, stages[0])
        sums = (fine, middle, coarse)
        maps = [
            self.get_submodule(f"corr_layer{3 - level}")(sums[level]) for level in range(min(self.levels, 3))
        ]
        if self.levels > 3:
            maps.append(self.conv6(stages[2]))
        if self.levels > 4:
            # From P6, rectified, while P6 itself comes from the trunk, as in RetinaNet.
            maps.append(self.conv7(functional.relu(maps[3])))
        ego = maps[-1].mean(dim=(3, 4), keepdim=True)
        if self.repeats is None:
            return Features(maps, ego.flatten(2))
        frames = input.shape[2]
        shown = [repeat(map, frames) for repeat, map in zip(self.repeats, [*maps, ego], strict=True)]
        return Features(shown[:-1], shown[-1].flatten(2))


_BACKBONES = {
    "slowfast": "roadaware.models.retinanet3d.trunks:SlowFast",
    "compact": "roadaware.models.retinanet3d.trunks:Compact",
    "transformers": "roadaware.models.retinanet3d.trunks:LibraryTrunk",
}


class Outputs(NamedTuple):
    """Network outputs for B clips of T frames with N anchors.

    Args:
        boxes: (B, T, N, 4) corners in pixels of the network's image, not clipped to it.
        class_logits: (B, T, N, C) agentness first; before the sigmoid.
        av_logits: (B, T, V) of the own vehicle's actions; before the sigmoid.
        anchors: (N, 4) corners in pixels: levels P3 to P7, row by row, anchors of a cell.
        offsets: (B, T, N, 4) of the boxes from the anchors, as the loss wants them.
    """

    boxes: Tensor
    class_logits: Tensor
    av_logits: Tensor
    anchors: Tensor
    offsets: Tensor


class RetinaNet3D(nn.Module):
    """Trunk, pyramid and heads; parameters are named as released.

    Args:
        config: what the network is.
        n_classes: agentness and all labels of all kinds.
        n_av: actions of the own vehicle.

    Raises:
        UsageError: if there is no class, or the trunk of transformers cannot be made.

    Source: Singh et al., TPAMI 2022, section 4.1; released code, models/retinanet.py.
    """

    def __init__(self, config: RetinaNetConfig, n_classes: int, n_av: int) -> None:
        super().__init__()
        if n_classes < 1 or n_av < 0:
            raise UsageError(
                f"n_classes counts agentness, so at least 1, not {n_classes}; n_av is at least 0"
            )
        self.config, self.n_classes, self.n_av = config, n_classes, n_av
        module, _, name = _BACKBONES.get(
            config.backbone, "roadaware.models.retinanet3d.trunks:ResNet"
        ).partition(":")
        self.anchors = Anchors(config)
        self.backbone: Pyramid = getattr(import_module(module), name)(config)
        self.reg_heads = build_head(config, 4)
        self.cls_heads = build_head(config, n_classes)
        start_at(self.cls_heads.end, config.prior)
        self.ego_head = build_ego_head(config, n_av) if n_av else None

    def forward(self, x: Tensor) -> Outputs:
        """Boxes and scores of every frame.

        Args:
            x: (B, 3, T, H, W) normalised images, padded to `multiple_px`; T is even where frames are
                pooled and the network is not causal.

        Raises:
            UsageError: if T is odd and may not be.
        """
        return self.heads(self.features(x))

    def features(self, x: Tensor) -> Features:
        """The maps of the pyramid and the feature of the own vehicle."""
        config = self.config
        if config.backbone == "i3d" and config.time_pool and not config.causal and x.shape[2] % 2:
            raise UsageError(f"a clip of {x.shape[2]} frames: give an even number, since frames are pooled")
        features: Features = self.backbone(x)
        return features

    def heads(self, features: Features) -> Outputs:
        """Boxes and scores over the maps of the pyramid."""
        offsets = self._flat(self.reg_heads, features.maps, 4)
        anchors = self.anchors_for(features.maps)
        return Outputs(
            boxes=decode(offsets, anchors, self.config),
            class_logits=self._flat(self.cls_heads, features.maps, self.n_classes),
            av_logits=self.av_logits(features.ego),
            anchors=anchors,
            offsets=offsets,
        )

    def anchors_for(self, maps: list[Tensor]) -> Tensor:
        """(N, 4) the anchors of maps with these heights and widths."""
        anchors: Tensor = self.anchors([(map.shape[-2], map.shape[-1]) for map in maps])
        return anchors

    def av_logits(self, ego: Tensor) -> Tensor:
        """(B, T, V) of the feature (B, width, T) of the own vehicle."""
        if self.ego_head is None:
            return ego.new_zeros(ego.shape[0], ego.shape[2], 0)
        logits: Tensor = self.ego_head(ego[..., None, None]).flatten(2).transpose(1, 2)
        return logits

    @staticmethod
    def _flat(head: nn.Module, maps: list[Tensor], numbers: int) -> Tensor:
        """(B, T, N, numbers) of all levels one after another."""
        levels = []
        for level, map in enumerate(maps):
            shown = head(map, level).permute(0, 2, 3, 4, 1)
            levels.append(shown.reshape(*shown.shape[:2], -1, numbers))
        return torch.cat(levels, dim=2)
