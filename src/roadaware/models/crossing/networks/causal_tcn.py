"""Our own network: causal convolutions over frames, the same in a clip and in a stream; imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing import entries
from roadaware.models.crossing.entries import Entry
from roadaware.models.crossing.inputs import parse_input_name
from roadaware.models.crossing.networks.base import CrossingNet, Looked
from roadaware.models.crossing.networks.multitask import Whereabouts

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
