"""Two streams: VGG16 on pictures, and VGG16 on how they move; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor

from roadaware.errors import UsageError
from roadaware.models.crossing.entries.clips import TWO_STREAM, TwoStreamConfig
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.flow import grey, lucas_kanade
from roadaware.models.crossing.networks.pictures import Normalise, PictureNet
from roadaware.models.crossing.networks.vgg import VGG16Trunk


class TwoStreamNet(PictureNet):
    """VGG16 on single crops beside VGG16 on stacks of flow between them."""

    entry = TWO_STREAM
    config: TwoStreamConfig

    def build(self) -> int:
        """Both streams."""
        config = self.config
        frames, rows, columns = self.clip_shape()
        if frames <= config.stack:
            raise UsageError(
                f"stacks of {config.stack} flows need at least {config.stack + 1} frames, not {frames}"
            )
        self.normalise = Normalise(config.pixels, config.swapped)
        size, hidden = (rows, columns), config.hidden
        self.trunk = VGG16Trunk(config.filters, hidden, size, dropout=config.dropout)
        self.motion = VGG16Trunk(config.filters, hidden, size, 2 * config.stack, config.dropout)
        return self.trunk.width + self.motion.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The features of both streams, each averaged over the stacks."""
        clip = self.clip(x)
        stacks = stacked(self.flow(clip), self.config.stack)
        start = (self.config.stack - 1) // 2
        pictures = self.normalise(clip[:, start : start + stacks.shape[1]])
        streams = ((self.trunk, pictures), (self.motion, stacks))
        found = [trunk(seen.flatten(0, 1)).reshape(*seen.shape[:2], -1).mean(1) for trunk, seen in streams]
        return Looked(torch.cat(found, 1), {})

    @torch.no_grad()
    def flow(self, clip: Tensor) -> Tensor:
        """(B, T - 1, 2, H, W) pixels from each frame of (B, T, 3, H, W) to the next."""
        config, brightness = self.config, grey(clip)
        first, second = brightness[:, :-1].flatten(0, 1), brightness[:, 1:].flatten(0, 1)
        found = lucas_kanade(first, second, config.flow_levels, config.flow_window, config.flow_rounds)
        found = found.clamp(-config.flow_limit, config.flow_limit)
        return found.reshape(len(clip), -1, *found.shape[1:])


def stacked(flow: Tensor, length: int) -> Tensor:
    """(B, T - length + 1, 2 length, H, W): each run of flows in (B, T, 2, H, W), side by side as channels."""
    runs = flow.unfold(1, length, 1).movedim(-1, 2)
    return runs.flatten(2, 3)
