"""RetinaNet3D: pictures in, boxes with class scores and the own vehicle's actions out; imports torch."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.retinanet3d.anchors import Anchors
from roadaware.models.retinanet3d.coding import decode
from roadaware.models.retinanet3d.config import RetinaNetConfig
from roadaware.models.retinanet3d.heads import ego_head, head, start_at
from roadaware.models.retinanet3d.pyramid import Features, Pyramid

_PACKAGE = "roadaware.models.retinanet3d"
_BACKBONES = {
    "slowfast": f"{_PACKAGE}.slowfast:SlowFast",
    "compact": f"{_PACKAGE}.compact:Compact",
    "transformers": f"{_PACKAGE}.trunk:LibraryTrunk",
}


class Outputs(NamedTuple):
    """What the network says of B clips of T frames with N anchors.

    Args:
        boxes: (B, T, N, 4) corners in pixels of the network's picture, not clipped to it.
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
        module, _, name = _BACKBONES.get(config.backbone, f"{_PACKAGE}.resnet:ResNet").partition(":")
        self.anchors = Anchors(config)
        self.backbone: Pyramid = getattr(import_module(module), name)(config)
        self.reg_heads = head(config, 4)
        self.cls_heads = head(config, n_classes)
        start_at(self.cls_heads.end, config.prior)
        self.ego_head = ego_head(config, n_av) if n_av else None

    def forward(self, x: Tensor) -> Outputs:
        """Boxes and scores of every frame.

        Args:
            x: (B, 3, T, H, W) normalised pictures, padded to `multiple_px`; T is even where frames are
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
