"""The feature pyramid over a trunk, with the feature of the own vehicle; imports torch."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.retinanet3d.config import RetinaNetConfig
from roadaware.models.retinanet3d.layers import channels_last, resized, space
from roadaware.models.retinanet3d.temporal import TimeRepeat


class Features(NamedTuple):
    """What heads look at.

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
        self.lateral_layer1 = space(channels[2], width, 1)
        self.lateral_layer2 = space(channels[1], width, 1)
        self.lateral_layer3 = space(channels[0], width, 1)
        for number, level in ((1, 2), (2, 1), (3, 0)):
            if self.levels > level:
                self.add_module(f"corr_layer{number}", space(width, width))
        if self.levels > 3:
            self.conv6 = space(channels[2], width, stride=2)
        if self.levels > 4:
            self.conv7 = space(width, width, stride=2)
        if config.dead_weights:
            self.ego_lateral = space(8 * 4 * config.base_width, width, stride=2)
            # Several devices wait for the gradient of whatever asks for one, and none will come.
            self.ego_lateral.requires_grad_(False)
        for layer in self.children():
            if isinstance(layer, nn.Conv3d):
                nn.init.kaiming_uniform_(layer.weight, a=1)
        self.repeats = nn.ModuleList(TimeRepeat() for _ in range(self.levels + 1)) if pooled else None

    def stages(self, input: Tensor) -> list[Tensor]:
        """(B, 3, T, H, W) to three maps (B, C, T', H', W') with strides 8, 16 and 32, T' halved if pooled."""
        raise NotImplementedError

    def forward(self, input: Tensor) -> Features:
        """The levels of (B, 3, T, H, W) pictures, normalised and padded."""
        stages = self.stages(channels_last(input))
        coarse = self.lateral_layer1(stages[2])
        middle = self.lateral_layer2(stages[1]) + resized(coarse, stages[1])
        fine = self.lateral_layer3(stages[0]) + resized(middle, stages[0])
        sums = (fine, middle, coarse)
        maps = [
            self.get_submodule(f"corr_layer{3 - level}")(sums[level]) for level in range(min(self.levels, 3))
        ]
        if self.levels > 3:
            maps.append(self.conv6(stages[2]))
        if self.levels > 4:
            maps.append(self.conv7(functional.relu(maps[3])))
        ego = maps[-1].mean(dim=(3, 4), keepdim=True)
        if self.repeats is None:
            return Features(maps, ego.flatten(2))
        frames = input.shape[2]
        shown = [repeat(map, frames) for repeat, map in zip(self.repeats, [*maps, ego], strict=True)]
        return Features(shown[:-1], shown[-1].flatten(2))
