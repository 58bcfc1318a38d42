"""SPI-Net: distances between joints, and joints as a picture; imports torch."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import skeletal as entries
from roadaware.models.crossing.entry import Entry
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.joints import ChannelDropout, PoseNet, as_picture, distances


class SpiNet(PoseNet):
    """Linear layers on distances and other sequences, convolutions on the picture of joints."""

    entry: ClassVar[Entry] = entries.SPI_NET
    config: entries.SpiNetConfig

    def build(self) -> int:
        """The two branches.

        Raises:
            UsageError: if there is no pose, or the picture of joints is too small to be halved so often.
        """
        self._others, c = self.find_pose(), self.config
        frames, least = self.frames_of(self.pose), 2**c.convolutions
        if min(frames, self.joints) < least:
            raise UsageError(
                f"spi-net halves a picture of {frames} frames and {self.joints} joints {c.convolutions} "
                f"times; it needs {least} of each"
            )
        layers: list[nn.Module] = []
        width = frames * self.pairs + sum(frames * self.shapes[name][1] for name in self._others)
        for units in c.geometry:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.geometry = nn.Sequential(*layers)
        self.high, self.low = self._stack(7), self._stack(3)
        self.average = nn.Sequential(*(nn.AvgPool2d(2) for _ in range(c.convolutions)))
        channels = 2 * c.filters
        self.behind = nn.Sequential(*self._conv(2 * channels + 2, 3), *self._conv(channels, 3))
        self.dense = nn.Sequential(*self._dense(channels), *self._dense(c.dense))
        return width + c.dense

    def look(self, x: dict[str, Tensor]) -> Looked:
        """Both branches side by side."""
        flat = [distances(x[self.pose]), *(x[name] for name in self._others)]
        geometry = self.geometry(torch.cat([values.flatten(1) for values in flat], -1))
        picture = as_picture(x[self.pose])
        seen = torch.cat([self.high(picture), self.low(picture), self.average(picture)], 1)
        return Looked(torch.cat([geometry, self.dense(self.behind(seen).mean((-2, -1)))], -1), {})

    def _stack(self, kernel: int) -> nn.Sequential:
        channels, layers = 2, list[nn.Module]()
        for _ in range(self.config.convolutions):
            layers += [*self._conv(channels, kernel), nn.AvgPool2d(2)]
            channels = 2 * self.config.filters
        return nn.Sequential(*layers)

    def _conv(self, before: int, kernel: int) -> list[nn.Module]:
        channels, c = 2 * self.config.filters, self.config
        conv = nn.Conv2d(before, channels, kernel, padding=kernel // 2, bias=False)
        nn.init.kaiming_uniform_(conv.weight, nonlinearity="relu")
        act = nn.LeakyReLU(c.slope)
        return [conv, nn.BatchNorm2d(channels), act, ChannelDropout(c.dropout_channels)]

    def _dense(self, before: int) -> list[nn.Module]:
        units, c = self.config.dense, self.config
        linear = nn.Linear(before, units, bias=False)
        return [linear, nn.BatchNorm1d(units), nn.LeakyReLU(c.slope), nn.Dropout(c.dropout)]
