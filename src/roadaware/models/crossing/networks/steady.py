"""Our own network: causal convolutions over frames, the same in a clip and in a stream; imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import steady as entries
from roadaware.models.crossing.entry import Entry
from roadaware.models.crossing.inputs import named
from roadaware.models.crossing.networks.base import CrossingNet, Looked

State = tuple[Tensor, ...]
"""What each convolution remembers: (B, (kernel - 1) dilation, width) of the frames before, oldest first."""


class _LookingBack(nn.Module):
    """One convolution over this frame and earlier ones, added to what came in."""

    def __init__(self, config: entries.SteadyConfig, dilation: int) -> None:
        super().__init__()
        self.past = (config.kernel - 1) * dilation
        self.norm = nn.LayerNorm(config.width)
        self.conv = nn.Conv1d(config.width, config.width, config.kernel, dilation=dilation)
        self.act, self.drop = nn.GELU(), nn.Dropout(config.dropout)

    def forward(self, x: Tensor, valid: Tensor | None) -> Tensor:
        """(B, T, width) of a clip, before which there is nothing.

        Args:
            x: (B, T, width).
            valid: (B, T, 1) 1 where there is a frame, else 0.
        """
        read = self.norm(x) if valid is None else self.norm(x) * valid
        return x + self._joined(nn.functional.pad(read, (0, 0, self.past, 0)))

    def step(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 1, width) of one frame, and what to remember."""
        seen = torch.cat([before, self.norm(x)], 1)
        return x + self._joined(seen), seen[:, 1:]

    def _joined(self, seen: Tensor) -> Tensor:
        found: Tensor = self.drop(self.act(self.conv(seen.transpose(1, 2)))).transpose(1, 2)
        return found


class Steady(CrossingNet):
    """A small network whose answer at each frame looks back only."""

    entry: ClassVar[Entry] = entries.STEADY
    config: entries.SteadyConfig

    def build(self) -> int:
        """The layers.

        Raises:
            UsageError: if an input is no sequence, or its frames tell of later ones.
        """
        odd = [name for name in self.shapes if name not in self.sequences]
        ahead = [name for name in self.shapes if named(name).form in ("first", "last", "filtered")]
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
        return width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The last frame."""
        return Looked(self._frames(x, None)[:, -1], {})

    def every_frame(self, x: Mapping[str, Tensor], valid: Tensor | None = None) -> Tensor:
        """(B, T, n_scores) the answer at each frame, from that frame and those before it.

        Args:
            x: by name, (B, T, d); may hold NaN, which becomes the mean of training.
            valid: (B, T) whether there is such a frame; a shorter history stands at the end, and the answers
                at missing frames mean nothing. All of them if None.
        """
        frames = {name: self._standard(name, x[name]) for name in self.shapes}
        answers: Tensor = self.last(self._frames(frames, valid))
        return answers

    def start(self, pedestrians: int) -> State:
        """What is remembered of pedestrians of whom nothing has been seen."""
        like, width = next(self.enter.parameters()), self.config.width
        return tuple(like.new_zeros(pedestrians, layer.past, width) for layer in self._layers())

    def step(self, state: State, frame: Mapping[str, Tensor]) -> tuple[State, Tensor]:
        """What to remember, and (B, n_scores) the answers at one more frame.

        Args:
            state: of `start` or of the step before, a row for each pedestrian.
            frame: by name, (B, d); may hold NaN.
        """
        numbers = [self._standard(name, frame[name]) for name in self.shapes]
        x, after = self.enter(torch.cat(numbers, -1))[:, None], []
        for layer, before in zip(self._layers(), state, strict=True):
            x, kept = layer.step(x, before)
            after.append(kept)
        answers: Tensor = self.last(self.norm(x[:, 0]))
        return tuple(after), answers

    def _layers(self) -> list[_LookingBack]:
        return cast(list[_LookingBack], list(self.back))

    def _frames(self, x: Mapping[str, Tensor], valid: Tensor | None) -> Tensor:
        """(B, T, width) of standardised sequences."""
        frames: Tensor = self.enter(torch.cat([x[name] for name in self.sequences], -1))
        there = None if valid is None else valid[..., None].to(frames.dtype)
        for layer in self.back:
            frames = layer(frames, there)
        answer: Tensor = self.norm(frames)
        return answer
