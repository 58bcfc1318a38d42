"""PCPA: attention over time in each input, then attention over the inputs; imports torch."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import pcpa as entries
from roadaware.models.crossing.entry import Entry
from roadaware.models.crossing.inputs import named
from roadaware.models.crossing.networks.attention import LastAttention
from roadaware.models.crossing.networks.base import CrossingNet, Looked
from roadaware.models.crossing.networks.c3d import C3DFeatures
from roadaware.models.crossing.networks.pictures import Normalise


class PCPA(CrossingNet):
    """C3D on crops and a GRU with attention for each sequence, joined by attention."""

    entry: ClassVar[Entry] = entries.PCPA
    config: entries.PcpaConfig

    def build(self) -> int:
        """Add the branches.

        Raises:
            UsageError: if there are two kinds of crops, or an input that is neither crop nor sequence.
        """
        crops = [name for name in self.pictures if named(name).kind == "crop"]
        odd = [name for name in self.shapes if name not in crops + self.sequences]
        if len(crops) > 1 or odd:
            raise UsageError(f"pcpa reads one kind of crops and sequences, not {', '.join([*crops, *odd])}")
        self._crops, width = crops, self.config.width
        for name in crops:
            frames, rows, columns, _ = self.shapes[name]
            self.normalise = Normalise(self.config.pixels)
            self.c3d = C3DFeatures((frames, rows, columns), self.config.filters)
            self.seen = nn.Linear(self.c3d.width, width)
        self.grus = nn.ModuleList(
            nn.GRU(self.shapes[name][1], width, batch_first=True) for name in self.sequences
        )
        self.over_time = nn.ModuleList(LastAttention(width, width) for _ in self.sequences)
        self.drop = nn.Dropout(self.config.dropout)
        if len(self.shapes) > 1:
            self.over_inputs = LastAttention(width, width)
        return width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The answer of the last attention."""
        clips = [self.normalise(x[name]).transpose(1, 2) for name in self._crops]
        told = [self.seen(self.c3d(clip)).sigmoid() for clip in clips]
        for name, gru, attention in zip(self.sequences, self.grus, self.over_time, strict=True):
            told.append(self.drop(attention(gru(x[name])[0])))
        if len(told) == 1:
            return Looked(told[0], {})
        return Looked(self.over_inputs(torch.stack(told, 1)), {})
