"""Networks that predict path, cell and label at once, and our own causal one; imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crossing import entries
from roadaware.models.crossing.entries import LEAST, LOG_WIDTHS, Entry
from roadaware.models.crossing.inputs import parse_input_name
from roadaware.models.crossing.networks.recurrent import Attending, Thinking, encode_positions
from roadaware.models.crossing.networks.stills import Categories, CrossingNet, Looked, select_inputs_by_kind

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


State = tuple[Tensor, ...]
"""What each convolution remembers: (B, (kernel - 1) dilation, width) of the frames before, oldest first."""


class _LookingBack(nn.Module):
    """One causal convolution, added to what came in: a linear layer on this frame and some before it."""

    def __init__(self, config: entries.SteadyConfig, dilation: int) -> None:
        super().__init__()
        self.kernel, self.dilation = config.kernel, dilation
        self.past = (config.kernel - 1) * dilation
        self.norm = nn.LayerNorm(config.width)
        self.mix = nn.Sequential(
            nn.Linear(config.kernel * config.width, config.width), nn.GELU(), nn.Dropout(config.dropout)
        )

    def forward(self, x: Tensor, valid: Tensor | None) -> Tensor:
        """(B, T, width) of a clip, before which there is nothing.

        Args:
            x: (B, T, width).
            valid: (B, T, 1) 1 where there is a frame, else 0.
        """
        read = self.norm(x) if valid is None else self.norm(x) * valid
        # Zeros before the clip: what a stream begins with too.
        padded, frames = nn.functional.pad(read, (0, 0, self.past, 0)), x.shape[1]
        starts = range(0, self.past + 1, self.dilation)
        mixed: Tensor = self.mix(torch.cat([padded[:, at : at + frames] for at in starts], -1))
        return x + mixed

    def at(self, x: Tensor, taps: Tensor, kept: Tensor) -> Tensor:
        """(B, P, width) at some frames only.

        Args:
            x: (B, Q, width) the frames that are needed.
            taps: (P kernel) which of them are joined, oldest first.
            kept: (P) which of them are answered.
        """
        read = self.norm(x).index_select(1, taps)
        mixed: Tensor = self.mix(read.reshape(len(x), len(kept), -1))
        return x.index_select(1, kept) + mixed

    def backs(self) -> range:
        """Dilations: how far back the joined frames lie, farthest first."""
        return range(self.past, -1, -self.dilation)

    def step(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """(B, width) of one frame, and the new state."""
        seen = torch.cat([before, self.norm(x)[:, None]], 1)
        mixed: Tensor = self.mix(seen[:, :: self.dilation].flatten(1))
        return x + mixed, seen[:, 1:]


class Steady(CrossingNet):
    """A small causal temporal convolution network: the output at each frame depends on past frames only."""

    entry: ClassVar[Entry] = entries.STEADY
    config: entries.SteadyConfig

    def build(self) -> int:
        """The layers.

        Raises:
            UsageError: if an input is no sequence, or its frames depend on later ones.
        """
        odd = [name for name in self.shapes if name not in self.sequences]
        ahead = [name for name in self.shapes if parse_input_name(name).form in ("first", "last", "filtered")]
        if odd or ahead:
            why = "are no sequences" if odd else "depend on where the observation begins or ends"
            raise UsageError(
                f"steady gives the same answer in a clip and in a stream; {', '.join(odd or ahead)} {why}; "
                f"use {', '.join(self.entry.reads)}"
            )
        width, drop = self.config.width, self.config.dropout
        self.enter = nn.Sequential(
            nn.Linear(sum(self.shapes[name][1] for name in self.sequences), width),
            nn.GELU(),
            nn.Dropout(drop),
            nn.Linear(width, width),
        )
        self.back = nn.ModuleList(_LookingBack(self.config, dilation) for dilation in self.config.dilations)
        self.norm = nn.LayerNorm(width)
        self._find_needed()
        if not self.config.places:
            return width
        if self.labels < 3 or "centre" not in self.shapes:
            raise UsageError("places answer regions of the image, more than two, and need the input centre")
        self.ahead = Whereabouts(width, self.labels, self.config.places)
        return width + self.labels

    def begin(self) -> None:
        """Initialise the last layer to use the location head alone."""
        if self.config.places:
            with torch.no_grad():
                self.last.bias.zero_()
                self.last.weight.zero_()
                self.last.weight[:, self.config.width :].copy_(torch.eye(self.labels))

    def _find_needed(self) -> None:
        """Which frames an answer needs in each layer, since most of them are seen through few taps only."""
        needed = [0]  # frames before the one that is answered
        for at, layer in reversed(list(enumerate(self._layers()))):
            read = {frame + back for frame in needed for back in layer.backs()}
            below = sorted(read if at else range(self.config.frames), reverse=True)
            taps = [below.index(frame + back) for frame in needed for back in layer.backs()]
            self.register_buffer(f"taps_{at}", torch.tensor(taps), persistent=False)
            kept = torch.tensor([below.index(frame) for frame in needed])
            self.register_buffer(f"kept_{at}", kept, persistent=False)
            needed = below

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The last frame, from what it needs of the others."""
        entered, frames = self._entered(x), self.config.frames
        if entered.shape[1] < frames:
            return Looked(self._join_features(self._frames(entered, None)[:, -1], x, -1), {})
        entered = entered[:, -frames:]
        for at, layer in enumerate(self._layers()):
            entered = layer.at(entered, self.get_buffer(f"taps_{at}"), self.get_buffer(f"kept_{at}"))
        return Looked(self._join_features(self.norm(entered[:, 0]), x, -1), {})

    def every_frame(self, x: Mapping[str, Tensor], valid: Tensor | None = None) -> Tensor:
        """(B, T, n_scores) the answer at each frame, from that frame and those before it.

        Args:
            x: by name, (B, T, d); may hold NaN, which becomes the mean of training.
            valid: (B, T) whether there is such a frame; a shorter history stands at the end, and the answers
                at missing frames mean nothing. All of them if None.
        """
        frames = {name: self._standard(name, x[name]) for name in self.shapes}
        answers: Tensor = self.last(
            self._join_features(self._frames(self._entered(frames), valid), frames, None)
        )
        return answers

    def start(self, pedestrians: int) -> State:
        """Initial state of new pedestrians."""
        like, width = next(self.enter.parameters()), self.config.width
        return tuple(like.new_zeros(pedestrians, layer.past, width) for layer in self._layers())

    def step(self, state: State, frame: Mapping[str, Tensor]) -> tuple[State, Tensor]:
        """The new state, and (B, n_scores) outputs at one more frame.

        Args:
            state: of `start` or of the step before, a row for each pedestrian.
            frame: by name, (B, d); may hold NaN.
        """
        state, embedding = self.follow(state, frame)
        answers: Tensor = self.last(embedding)
        return state, answers

    def follow(self, state: State, frame: Mapping[str, Tensor]) -> tuple[State, Tensor]:
        """The new state, and (B, width of the last layer) its input at one more frame; as `step`."""
        given = {name: self._standard(name, frame[name]) for name in self.shapes}
        x, after = self._entered(given), []
        for layer, before in zip(self._layers(), state, strict=True):
            x, kept = layer.step(x, before)
            after.append(kept)
        return tuple(after), self._join_features(self.norm(x), given, None)

    def _join_features(self, embedding: Tensor, x: Mapping[str, Tensor], frame: int | None) -> Tensor:
        """The embedding, followed by the whereabouts where they are asked for.

        Args:
            embedding: (..., width).
            x: standardised inputs, (..., d) or, where a frame is named, (B, T, d).
            frame: the one the embedding is of.
        """
        if not self.config.places:
            return embedding
        centre = x["centre"] if frame is None else x["centre"][:, frame]
        mean, spread = self.get_buffer("mean_centre"), self.get_buffer("spread_centre")
        place = centre[..., 0] * spread[0] + mean[0]
        return torch.cat([embedding, self.ahead(embedding, place)], -1)

    def _layers(self) -> list[_LookingBack]:
        return cast(list[_LookingBack], list(self.back))

    def _entered(self, x: Mapping[str, Tensor]) -> Tensor:
        """(.., width) of standardised numbers (.., d)."""
        entered: Tensor = self.enter(torch.cat([x[name] for name in self.sequences], -1))
        return entered

    def _frames(self, frames: Tensor, valid: Tensor | None) -> Tensor:
        """(B, T, width) of entered frames."""
        there = None if valid is None else valid[..., None].to(frames.dtype)
        for layer in self._layers():
            frames = layer(frames, there)
        answer: Tensor = self.norm(frames)
        return answer
