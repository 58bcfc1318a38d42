"""BiPed: each input alone and all together, encoded and decoded; imports torch."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from roadaware.models.crossing.entries import multitask as entries
from roadaware.models.crossing.entry import Entry
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.heads import PathDecoder, cell_head
from roadaware.models.crossing.networks.maps import Categories
from roadaware.models.crossing.networks.multitask import MultiTaskNet


class BiPed(MultiTaskNet):
    """Independent and joint encoders of the sequences, semantic maps, independent and joint decoders."""

    entry: ClassVar[Entry] = entries.BIPED
    config: entries.BiPedConfig

    def build(self) -> int:
        """Encoders, then decoders.

        Raises:
            UsageError: if the inputs are not sequences and at most one of semantic maps.
        """
        c, widths = self.config, self.read(self.config.embed)
        self.alone = nn.ModuleList(nn.LSTM(width, c.width, batch_first=True) for width in widths)
        self.embed = nn.ModuleList(nn.Linear(width, c.embed) for width in widths)
        self.together = nn.LSTM(c.embed * len(widths), c.width, batch_first=True)
        for name in self.maps:
            self.categories = Categories(self.shapes[name][1], c.filters)
            self.merge = nn.Parameter(torch.zeros(self.categories.categories))
            self.around = nn.LSTM(self.categories.width, c.width, batch_first=True)
        self.drop = nn.Dropout(c.dropout)
        return self._decoders(c.width * (len(widths) + 1 + len(self.maps)))

    def _decoders(self, context: int) -> int:
        width = self.config.decode
        self.own = nn.Linear(context, width)
        self.shared = nn.Linear(context, width)
        if "trajectory" in self.tasks:
            horizon = self.tasks["trajectory"]
            self.own_path = PathDecoder(context, width, horizon)
            self.shared_path = PathDecoder(width, width, horizon)
        if "grid" in self.tasks:
            self.own_cell = cell_head(context, width, self.tasks["grid"])
            self.shared_cell = nn.Linear(width, self.tasks["grid"])
        return 2 * width

    def context(self, x: dict[str, Tensor]) -> Tensor:
        """(B, context) what all encoders say in the end."""
        sequences = self.numbers(x)
        said = [lstm(one)[0][:, -1] for lstm, one in zip(self.alone, sequences, strict=True)]
        embedded = [embed(one).relu() for embed, one in zip(self.embed, sequences, strict=True)]
        said.append(self.together(torch.cat(embedded, -1))[0][:, -1])
        for name in self.maps:
            merged = torch.einsum("btcf,c->btf", self.categories(x[name]), self.merge.softmax(0))
            said.append(self.around(merged)[0][:, -1])
        answer: Tensor = self.drop(torch.cat(said, -1))
        return answer

    def look(self, x: dict[str, Tensor]) -> Looked:
        """What the label's own and the shared layer say; path and cell."""
        context = self.context(x)
        shared, extra = self.shared(context).relu(), {}
        if "trajectory" in self.tasks:
            extra["trajectory"] = (self.own_path(context) + self.shared_path(shared)) / 2
        if "grid" in self.tasks:
            extra["grid"] = (self.own_cell(context) + self.shared_cell(shared)) / 2
        return Looked(torch.cat([self.own(context).relu(), shared], -1), extra)
