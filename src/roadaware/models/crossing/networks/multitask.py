"""Networks that predict path, cell and label at once: BiPed, PedFormer, and what they share; imports
torch.
"""

from __future__ import annotations

from itertools import permutations
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crossing import entries
from roadaware.models.crossing.entries import LEAST, LOG_WIDTHS, Entry
from roadaware.models.crossing.inputs import parse_input_name
from roadaware.models.crossing.networks.base import CrossingNet, Looked, select_inputs_by_kind
from roadaware.models.crossing.networks.recurrent import Attending, Thinking, encode_positions
from roadaware.models.crossing.networks.stills import Categories

CELLS = 609
"""Numbers that a cell can have: 0 to 575, or 0 to 608 where centres are rounded."""


class CellEmbedding(nn.Module):
    """Learned numbers of each cell: (B, T, 1) the cell, as a float, to (B, T, width).

    Args:
        width: of the answer.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(CELLS, width)

    def forward(self, cell: Tensor) -> Tensor:
        """What is known of the cells; beyond the last one is the last."""
        found: Tensor = self.table(cell[..., 0].round().long().clamp(0, CELLS - 1))
        return found


class MultiTaskNet(CrossingNet):
    """A network on sequences, among them the cell, and at most one input of semantic maps."""

    def read(self, width: int) -> list[int]:
        """Set `maps`, the names of the semantic maps, and add what reads cells; the widths of the sequences.

        Args:
            width: of what is learned of a cell.

        Raises:
            UsageError: if there are several maps, no sequence, or an input that is neither.
        """
        self.maps = select_inputs_by_kind(self.shapes, "maps")
        odd = [given for given in self.shapes if given not in self.maps + self.sequences]
        if len(self.maps) > 1 or odd or not self.sequences:
            raise UsageError(
                f"{self.entry.card.name} reads sequences and at most one input of semantic maps, "
                f"not {', '.join(self.shapes)}"
            )
        self._cells = select_inputs_by_kind(self.shapes, "grid")
        self.cells = nn.ModuleList(CellEmbedding(width) for _ in self._cells)
        return [width if name in self._cells else self.shapes[name][1] for name in self.sequences]

    def numbers(self, x: dict[str, Tensor]) -> list[Tensor]:
        """The sequences, each (B, T, its width)."""
        known = {name: table(x[name]) for name, table in zip(self._cells, self.cells, strict=True)}
        return [known[name] if name in known else x[name] for name in self.sequences]

    def standardise(self, name: str, mean: Tensor, spread: Tensor) -> None:
        """As every network, but the number of a cell stays as it is."""
        if parse_input_name(name).kind != "grid":
            super().standardise(name, mean, spread)


# Prediction of where a pedestrian goes: boxes ahead and a cell of the image; imports torch.


class PathDecoder(nn.Module):
    """An LSTM that is shown the same context at each frame ahead: (B, d) to boxes (B, horizon, 4).

    Boxes are shares of the image less those of the last observed box. What comes out of the last layer is
    in units of `spread` (4), the deviations of the sides on train, which training sets.

    Args:
        context: d.
        width: units of the LSTM.
        horizon: frames ahead.
    """

    spread: Tensor

    def __init__(self, context: int, width: int, horizon: int) -> None:
        super().__init__()
        self.horizon = horizon
        self.lstm = nn.LSTM(context, width, batch_first=True)
        self.box = nn.Linear(width, 4)
        self.register_buffer("spread", torch.ones(4))

    def forward(self, context: Tensor) -> Tensor:
        """The boxes."""
        states = self.lstm(context[:, None].expand(-1, self.horizon, -1))[0]
        boxes: Tensor = self.box(states) * self.spread
        return boxes


def build_cell_head(context: int, width: int, cells: int) -> nn.Module:
    """(B, d) to the logits (B, cells) of where the centre will be."""
    return nn.Sequential(nn.Linear(context, width), nn.ReLU(), nn.Linear(width, cells))


# BiPed: each input alone and all together, encoded and decoded; imports torch.


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
            # All categories count the same at the beginning.
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
            self.own_cell = build_cell_head(context, width, self.tasks["grid"])
            self.shared_cell = nn.Linear(width, self.tasks["grid"])
        return 2 * width

    def context(self, x: dict[str, Tensor]) -> Tensor:
        """(B, context) final outputs of all encoders."""
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
        """Outputs of the label's own and the shared layer; path and cell."""
        context = self.context(x)
        shared, extra = self.shared(context).relu(), {}
        if "trajectory" in self.tasks:
            extra["trajectory"] = (self.own_path(context) + self.shared_path(shared)) / 2
        if "grid" in self.tasks:
            extra["grid"] = (self.own_cell(context) + self.shared_cell(shared)) / 2
        return Looked(torch.cat([self.own(context).relu(), shared], -1), extra)


# PedFormer: every input attends to every other, gates share experts among tasks; imports torch.


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
        entered = entered + encode_positions(entered)
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
            self.cell = build_cell_head(c.width, c.width, self.tasks["grid"])
        return c.width

    def context(self, x: dict[str, Tensor]) -> Tensor:
        """(B, T, context) of every observed frame."""
        encoded = [encoder(one) for encoder, one in zip(self.encoders, self.numbers(x), strict=True)]
        pairs = zip(self.across, self._pairs, strict=True)
        attended = [across(encoded[one], encoded[other]) for across, (one, other) in pairs]
        # One input alone makes no pairs and stands for itself.
        joined = self.join(torch.cat(attended or encoded, -1)).relu()
        motion = torch.cat([one[:, -1] for one in encoded], -1)
        around = [self.around(x[name], motion)[:, None].expand_as(joined) for name in self.maps]
        return torch.cat([joined, *around], -1)

    def look(self, x: dict[str, Tensor]) -> Looked:
        """State of the label's decoder; path and cell."""
        context = self.context(x)
        experts = torch.stack([expert(context).relu() for expert in self.experts], 2)
        extra = {}
        if "trajectory" in self.tasks:
            extra["trajectory"] = self.boxes(self.path(context, experts))
        if "grid" in self.tasks:
            extra["grid"] = self.cell(self.place(context, experts))
        return Looked(self.label(context, experts), extra)


# Whereabouts: how likely somebody will be in each region of the image; imports torch.


class Whereabouts(nn.Module):
    """A mixture of logistic distributions over where a pedestrian will be across the image.

    Each component lies as far from where the pedestrian is now as an embedding says, and is as wide as it
    says. What lies beyond an edge of the image belongs to the region at that edge.

    Args:
        width: of embeddings.
        regions: of equal width, from left to right.
        places: components.
    """

    def __init__(self, width: int, regions: int, places: int) -> None:
        super().__init__()
        self.regions, self.places = regions, places
        self.tell = nn.Linear(width, 3 * places)
        # At first, components stand side by side around the pedestrian, whatever the embedding is.
        with torch.no_grad():
            self.tell.weight.zero_()
            self.tell.bias.zero_()
            self.tell.bias[places : 2 * places] = torch.linspace(-0.3, 0.3, places)
            self.tell.bias[2 * places :] = -2.5

    def forward(self, embedding: Tensor, place: Tensor) -> Tensor:
        """(..., regions) log probabilities.

        Args:
            embedding: (..., width).
            place: (...) where the centre of the box is now, in widths of the image.
        """
        weight, offset, spread = self.tell(embedding).unflatten(-1, (3, self.places)).unbind(-2)
        centre, width = place[..., None] + offset, spread.clamp(*LOG_WIDTHS).exp()
        edges = torch.arange(1, self.regions, device=centre.device) / self.regions
        below = torch.sigmoid((edges[:, None] - centre[..., None, :]) / width[..., None, :])
        share = functional.pad(below, (0, 0, 0, 1), value=1.0).diff(
            dim=-2, prepend=torch.zeros_like(below[..., :1, :])
        )
        found: Tensor = (share * weight.softmax(-1)[..., None, :]).sum(-1)
        return (found + LEAST).log()
