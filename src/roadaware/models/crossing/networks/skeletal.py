"""Networks on poses: SPI-Net and TrouSPI-Net; imports torch."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing import entries
from roadaware.models.crossing.entries import Entry
from roadaware.models.crossing.networks.base import CrossingNet, Looked, select_inputs_by_kind
from roadaware.models.crossing.networks.recurrent import LastAttention


class PoseNet(CrossingNet):
    """A network that needs a pose, and takes other sequences beside it."""

    def find_pose(self) -> list[str]:
        """Set `pose`, its name, `joints` and `pairs`; the other sequences.

        Raises:
            UsageError: if there is no pose of x and y of joints, or an input is no sequence.
        """
        name, poses = self.entry.card.name, select_inputs_by_kind(self.shapes, "pose")
        odd = [given for given in self.shapes if given not in self.sequences]
        if len(poses) != 1 or odd:
            raise UsageError(f"{name} needs one pose, and sequences beside it, not {', '.join(self.shapes)}")
        self.pose = poses[0]
        numbers = self.shapes[self.pose][1]
        if numbers % 2 or numbers < 4:
            raise UsageError(f"{name} takes a pose as x and y of two joints or more, not {numbers} numbers")
        self.joints = numbers // 2
        self.pairs = self.joints * (self.joints - 1) // 2
        return [given for given in self.sequences if given != self.pose]

    def standardise(self, name: str, mean: Tensor, spread: Tensor) -> None:
        """As every network, but a pose stays as it is: distances need both axes in one unit."""
        if name != self.pose:
            super().standardise(name, mean, spread)


def as_picture(pose: Tensor) -> Tensor:
    """(B, 2, T, joints) of x and y of each joint in turn (B, T, 2 joints)."""
    return _each(pose).permute(0, 3, 1, 2)


def compute_joint_distances(pose: Tensor) -> Tensor:
    """(B, T, joints (joints - 1) / 2) between all pairs of joints of a frame, (0, 1), (0, 2) .. in turn."""
    at = _each(pose)
    one, other = torch.triu_indices(at.shape[-2], at.shape[-2], 1, device=pose.device)
    # a distance of 0 has no slope, hence the least one
    return (at[..., one, :] - at[..., other, :]).square().sum(-1).clamp_min(1e-12).sqrt()


def _each(pose: Tensor) -> Tensor:
    """(B, T, joints, 2)."""
    return pose.reshape(*pose.shape[:-1], -1, 2)


class ChannelDropout(nn.Module):
    """Dropout of whole channels of (B, C, H, W), drawn by `nn.Dropout` so that it is found where that is."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(self, image: Tensor) -> Tensor:
        """The image without some channels."""
        kept: Tensor = self.drop(image.new_ones(*image.shape[:2], 1, 1))
        return image * kept


# SPI-Net: distances between joints, and joints as an image; imports torch.


class SpiNet(PoseNet):
    """Linear layers on distances and other sequences, convolutions on the image of joints."""

    entry: ClassVar[Entry] = entries.SPI_NET
    config: entries.SpiNetConfig

    def build(self) -> int:
        """The two branches.

        Raises:
            UsageError: if there is no pose, or the image of joints is too small to be halved so often.
        """
        self._others, c = self.find_pose(), self.config
        frames, least = self.frames_of(self.pose), 2**c.convolutions
        if min(frames, self.joints) < least:
            raise UsageError(
                f"spi-net halves an image of {frames} frames and {self.joints} joints {c.convolutions} "
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
        flat = [compute_joint_distances(x[self.pose]), *(x[name] for name in self._others)]
        geometry = self.geometry(torch.cat([values.flatten(1) for values in flat], -1))
        image = as_picture(x[self.pose])
        seen = torch.cat([self.high(image), self.low(image), self.average(image)], 1)
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


# TrouSPI-Net: atrous convolutions on an image of joints, U-GRUs on sequences; imports torch.


class UGRU(nn.Module):
    """A GRU from last to first, then one from first to last that also reads the states of the former.

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
        # Turned back, so that each state stands beside its frame.
        ahead = self.backward_gru(sequence.flip(1))[0].flip(1)
        states: Tensor = self.forward_gru(torch.cat([sequence, ahead], -1))[0]
        return states


class PlaceAttention(nn.Module):
    """An image weighted by channel, then by place, each weight in (0, 1).

    Args:
        channels: of the image.
        reduction: how much narrower it is between the two layers over channels.

    Source:
        Woo et al., CBAM: Convolutional Block Attention Module, ECCV 2018, Equations 2 and 3.
    """

    def __init__(self, channels: int, reduction: int) -> None:
        super().__init__()
        inner = max(1, channels // reduction)
        self.of_channels = nn.Sequential(nn.Linear(channels, inner), nn.ReLU(), nn.Linear(inner, channels))
        # Of 7 x 7 cells as in the paper.
        self.of_places = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, image: Tensor) -> Tensor:
        """(B, C, H, W)."""
        # Mean and maximum go through the same layers, as in Equation 2.
        channels = self.of_channels(image.mean((-2, -1))) + self.of_channels(image.amax((-2, -1)))
        image = image * channels.sigmoid()[..., None, None]
        places = torch.stack([image.mean(1), image.amax(1)], 1)
        weighted: Tensor = image * self.of_places(places).sigmoid()
        return weighted


class TrouSpiNet(PoseNet):
    """One branch on the image of joints, one on their distances and one on each other sequence."""

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
        image = as_picture(x[self.pose])
        seen = torch.cat([branch(image).mean((-2, -1)) for branch in self.branches], -1)
        features = [self.seen(seen).relu()]
        sequences = [compute_joint_distances(x[self.pose]), *(x[name] for name in self._others)]
        for gru, attention, sequence in zip(self.grus, self.over_time, sequences, strict=True):
            features.append(self.drop(attention(gru(sequence))))
        return Looked(self.over_inputs(torch.stack(features, 1)), {})

    def _branch(self, rate: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        before = 2
        for _ in range(2):
            conv = nn.Conv2d(before, self.config.filters, 3, padding=rate, dilation=rate, bias=False)
            layers += [conv, nn.BatchNorm2d(self.config.filters), nn.ReLU()]
            before = self.config.filters
        return nn.Sequential(*layers, PlaceAttention(before, self.config.reduction))
