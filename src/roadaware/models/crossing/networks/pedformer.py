"""PedFormer: every input attends to every other, gates share experts among tasks; imports torch."""

from __future__ import annotations

from itertools import permutations
from typing import ClassVar

import torch
from torch import Tensor, nn

from roadaware.models.crossing.entries import multitask as entries
from roadaware.models.crossing.entry import Entry
from roadaware.models.crossing.networks.attention import Attending, Thinking, places
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.heads import PathDecoder, cell_head
from roadaware.models.crossing.networks.maps import Categories
from roadaware.models.crossing.networks.multitask import MultiTaskNet


class _Encoder(nn.Module):
    """One input as a sequence that has attended to itself."""

    def __init__(self, inputs: int, config: entries.PedFormerConfig) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, config.width)
        self.among = Attending(config.width, config.heads, config.dropout)
        self.thinks = Thinking(config.width, config.inner, config.dropout)

    def forward(self, sequence: Tensor) -> Tensor:
        """(B, T, width)."""
        entered: Tensor = self.enter(sequence)
        entered = entered + places(entered)
        answer: Tensor = self.thinks(self.among(entered, entered))
        return answer


class _Around(nn.Module):
    """Semantic maps, asked by what is known of the motion: (B, width)."""

    def __init__(self, categories: int, asking: int, config: entries.PedFormerConfig) -> None:
        super().__init__()
        self.categories = Categories(categories, config.filters)
        self.lstm = nn.LSTM(categories * self.categories.width, config.width, batch_first=True)
        self.ask = nn.Linear(asking, config.width)
        self.attending = Attending(config.width, config.heads, config.dropout)

    def forward(self, maps: Tensor, motion: Tensor) -> Tensor:
        """The answer."""
        states = self.lstm(self.categories(maps).flatten(2))[0]
        answer: Tensor = self.attending(self.ask(motion)[:, None], states)[:, 0]
        return answer


class _Task(nn.Module):
    """What one task takes from the experts of each frame, and remembers: (B, width)."""

    def __init__(self, context: int, config: entries.PedFormerConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(context, config.experts)
        self.lstm = nn.LSTM(config.width, config.width, batch_first=True)

    def forward(self, context: Tensor, experts: Tensor) -> Tensor:
        """The last state.

        Args:
            context: (B, T, d).
            experts: (B, T, experts, width).
        """
        gated = torch.einsum("bte,btew->btw", self.gate(context).sigmoid(), experts)
        states: Tensor = self.lstm(gated)[0]
        return states[:, -1]


class PedFormer(MultiTaskNet):
    """Attention within and between the sequences, maps asked by motion, gated experts, a decoder a task."""

    entry: ClassVar[Entry] = entries.PEDFORMER
    config: entries.PedFormerConfig

    def build(self) -> int:
        """Encoders, then experts and decoders.

        Raises:
            UsageError: if the inputs are not sequences and at most one of semantic maps.
        """
        c, n = self.config, len(self.sequences)
        self.encoders = nn.ModuleList(_Encoder(width, c) for width in self.read(c.width))
        self._pairs = list(permutations(range(n), 2))
        self.across = nn.ModuleList(Attending(c.width, c.heads, c.dropout) for _ in self._pairs)
        self.join = nn.Linear(c.width * (len(self._pairs) or 1), c.width)
        context = c.width
        for name in self.maps:
            self.around = _Around(self.shapes[name][1], n * c.width, c)
            context += c.width
        self.experts = nn.ModuleList(nn.Linear(context, c.width) for _ in range(c.experts))
        self.label = _Task(context, c)
        if "trajectory" in self.tasks:
            self.path = _Task(context, c)
            self.boxes = PathDecoder(c.width, c.width, self.tasks["trajectory"])
        if "grid" in self.tasks:
            self.place = _Task(context, c)
            self.cell = cell_head(c.width, c.width, self.tasks["grid"])
        return c.width

    def context(self, x: dict[str, Tensor]) -> Tensor:
        """(B, T, context) of every observed frame."""
        encoded = [encoder(one) for encoder, one in zip(self.encoders, self.numbers(x), strict=True)]
        pairs = zip(self.across, self._pairs, strict=True)
        told = [across(encoded[one], encoded[other]) for across, (one, other) in pairs]
        joined = self.join(torch.cat(told or encoded, -1)).relu()
        motion = torch.cat([one[:, -1] for one in encoded], -1)
        around = [self.around(x[name], motion)[:, None].expand_as(joined) for name in self.maps]
        return torch.cat([joined, *around], -1)

    def look(self, x: dict[str, Tensor]) -> Looked:
        """What the label's decoder remembers; path and cell."""
        context = self.context(x)
        experts = torch.stack([expert(context).relu() for expert in self.experts], 2)
        extra = {}
        if "trajectory" in self.tasks:
            extra["trajectory"] = self.boxes(self.path(context, experts))
        if "grid" in self.tasks:
            extra["grid"] = self.cell(self.place(context, experts))
        return Looked(self.label(context, experts), extra)
