"""Recurrent networks that differ in how they put inputs together; imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from roadaware.models.crossing.entries import recurrent as entries
from roadaware.models.crossing.entry import Entry
from roadaware.models.crossing.inputs import named
from roadaware.models.crossing.networks.base import CrossingNet, Looked
from roadaware.models.crossing.networks.frames import FrameReader


class _Recurrent(CrossingNet):
    """A network whose inputs become one sequence each."""

    config: entries.RecurrentConfig

    def build(self) -> int:
        """Read the inputs, then what the network does with them."""
        name, c = self.entry.card.name, self.config
        self.reader = FrameReader(name, self.shapes, c.filters, c.pixels, c.swapped)
        return self.join([self.reader.widths[name] for name in self.order()])

    def order(self) -> list[str]:
        """The inputs as the network takes them."""
        return list(self.shapes)

    def join(self, widths: list[int]) -> int:
        """Add the recurrent layers; the width of the embedding."""
        raise NotImplementedError

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """(B, width) of sequences (B, T, d)."""
        raise NotImplementedError

    def settle(self, some: Callable[[], Mapping[str, Tensor]]) -> None:
        """Settle VGG16 on some crops, if the config says so."""
        if self.config.settled and self.pictures:
            self.reader.settle(some())

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The last state."""
        read = dict(zip(self.shapes, self.reader(x), strict=True))
        return Looked(self.joined([read[name] for name in self.order()]), {})

    def _gru(self, width: int, layers: int = 1) -> nn.GRU:
        return nn.GRU(width, self.config.width, layers, batch_first=True)


class SingleRNN(_Recurrent):
    """All inputs side by side through one GRU."""

    entry: ClassVar[Entry] = entries.SINGLE_RNN

    def join(self, widths: list[int]) -> int:
        """One GRU."""
        self.gru = self._gru(sum(widths))
        return self.config.width

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """Its last state."""
        states: Tensor = self.gru(torch.cat(inputs, -1))[0]
        return states[:, -1]


class StackedRNN(SingleRNN):
    """All inputs side by side through a stack of GRUs."""

    entry: ClassVar[Entry] = entries.STACKED_RNN

    def join(self, widths: list[int]) -> int:
        """As many GRUs as inputs, each on the states of the one below."""
        self.gru = self._gru(sum(widths), len(widths))
        return self.config.width


class MultiRNN(_Recurrent):
    """One GRU for each input."""

    entry: ClassVar[Entry] = entries.MULTI_RNN

    def join(self, widths: list[int]) -> int:
        """A GRU for each input."""
        self.grus = nn.ModuleList(self._gru(width) for width in widths)
        return self.config.width * len(widths)

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """Their last states side by side."""
        return torch.cat([gru(part)[0][:, -1] for gru, part in zip(self.grus, inputs, strict=True)], -1)


class HierarchicalRNN(_Recurrent):
    """One GRU for each input, and one on all their states."""

    entry: ClassVar[Entry] = entries.HIERARCHICAL_RNN

    def join(self, widths: list[int]) -> int:
        """A GRU for each input, and the upper one."""
        self.grus = nn.ModuleList(self._gru(width) for width in widths)
        self.upper = self._gru(self.config.width * len(widths))
        return self.config.width

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """The last state of the upper one."""
        below = torch.cat([gru(part)[0] for gru, part in zip(self.grus, inputs, strict=True)], -1)
        states: Tensor = self.upper(below)[0]
        return states[:, -1]


class SFRNN(_Recurrent):
    """A tower of GRUs into which one input after the other is fed, the first at the bottom."""

    entry: ClassVar[Entry] = entries.SFRNN

    def join(self, widths: list[int]) -> int:
        """A GRU for each input; all but the lowest also read the states below."""
        lowest, *others = widths
        self.grus = nn.ModuleList(
            [self._gru(lowest), *(self._gru(self.config.width + width) for width in others)]
        )
        return self.config.width

    def joined(self, inputs: list[Tensor]) -> Tensor:
        """The last state of the topmost."""
        states: Tensor = self.grus[0](inputs[0])[0]
        for gru, part in zip(self.grus[1:], inputs[1:], strict=True):
            states = gru(torch.cat([states, part], -1))[0]
        return states[:, -1]


class SFGRU(SFRNN):
    """The tower in the order of the authors' code; inputs that they did not have come last."""

    entry: ClassVar[Entry] = entries.SFGRU

    def order(self) -> list[str]:
        """Crops of the box, crops around it, pose, boxes, the own vehicle, then the rest."""
        ranks = ["crop:box", "crop:context", "crop:surround", "pose", "boxes", "ego"]

        def rank(name: str) -> int:
            parts = named(name)
            known = [
                at for at, what in enumerate(ranks) if what in (parts.kind, f"{parts.kind}:{parts.form}")
            ]
            return known[0] if known else len(ranks)

        return sorted(self.shapes, key=rank)
