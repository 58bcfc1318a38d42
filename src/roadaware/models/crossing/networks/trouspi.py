"""TrouSPI-Net: atrous convolutions on a picture of joints, U-GRUs on sequences; imports torch."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from roadaware.models.crossing.entries import skeletal as entries
from roadaware.models.crossing.entry import Entry
from roadaware.models.crossing.networks.attention import LastAttention
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.joints import PoseNet, as_picture, distances


class UGRU(nn.Module):
    """A GRU from last to first, then one from first to last that is also told the states of the former.

    Args:
        inputs: numbers of a frame.
        width: units of each.

    Source:
        Rozenberg et al., Asymmetrical Bi-RNN for pedestrian trajectory encoding, arXiv 2106.04419.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.backward_gru = nn.GRU(inputs, width, batch_first=True)
        self.forward_gru = nn.GRU(inputs + width, width, batch_first=True)

    def forward(self, sequence: Tensor) -> Tensor:
        """(B, T, width) of (B, T, inputs); every state knows all frames."""
        ahead = self.backward_gru(sequence.flip(1))[0].flip(1)
        states: Tensor = self.forward_gru(torch.cat([sequence, ahead], -1))[0]
        return states


class PlaceAttention(nn.Module):
    """A picture weighted by channel, then by place, each weight in (0, 1).

    Args:
        channels: of the picture.
        reduction: how much narrower it is between the two layers over channels.

    Source:
        Woo et al., CBAM: Convolutional Block Attention Module, ECCV 2018, Equations 2 and 3.
    """

    def __init__(self, channels: int, reduction: int) -> None:
        super().__init__()
        inner = max(1, channels // reduction)
        self.of_channels = nn.Sequential(nn.Linear(channels, inner), nn.ReLU(), nn.Linear(inner, channels))
        self.of_places = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, picture: Tensor) -> Tensor:
        """(B, C, H, W)."""
        channels = self.of_channels(picture.mean((-2, -1))) + self.of_channels(picture.amax((-2, -1)))
        picture = picture * channels.sigmoid()[..., None, None]
        places = torch.stack([picture.mean(1), picture.amax(1)], 1)
        weighted: Tensor = picture * self.of_places(places).sigmoid()
        return weighted


class TrouSpiNet(PoseNet):
    """One branch on the picture of joints, one on their distances and one on each other sequence."""

    entry: ClassVar[Entry] = entries.TROUSPI_NET
    config: entries.TrouSpiNetConfig

    def build(self) -> int:
        """The branches.

        Raises:
            UsageError: if there is no pose, or an input is no sequence.
        """
        self._others, c = self.find_pose(), self.config
        self.branches = nn.ModuleList(self._branch(rate) for rate in c.rates)
        self.seen = nn.Linear(len(c.rates) * c.filters, c.width)
        widths = [self.pairs, *(self.shapes[name][1] for name in self._others)]
        self.grus = nn.ModuleList(UGRU(width, c.width) for width in widths)
        self.over_time = nn.ModuleList(LastAttention(c.width, c.width) for _ in widths)
        self.over_inputs = LastAttention(c.width, c.width)
        self.drop = nn.Dropout(c.dropout)
        return c.width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The answer of the last attention."""
        picture = as_picture(x[self.pose])
        seen = torch.cat([branch(picture).mean((-2, -1)) for branch in self.branches], -1)
        told = [self.seen(seen).relu()]
        sequences = [distances(x[self.pose]), *(x[name] for name in self._others)]
        for gru, attention, sequence in zip(self.grus, self.over_time, sequences, strict=True):
            told.append(self.drop(attention(gru(sequence))))
        return Looked(self.over_inputs(torch.stack(told, 1)), {})

    def _branch(self, rate: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        before = 2
        for _ in range(2):
            conv = nn.Conv2d(before, self.config.filters, 3, padding=rate, dilation=rate, bias=False)
            layers += [conv, nn.BatchNorm2d(self.config.filters), nn.ReLU()]
            before = self.config.filters
        return nn.Sequential(*layers, PlaceAttention(before, self.config.reduction))
