"""Recurrent state of predictors for the pedestrians that they follow; imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.models.crossing.features import convert_to_probabilities
from roadaware.models.crossing.inputs import Held, InputSet
from roadaware.models.crossing.networks.causal_tcn import Steady
from roadaware.models.crossing.predictor import Predictor
from roadaware.models.crossing.streaming_inference import Stepper
from roadaware.models.uncertainty.passes import sample_last_weights
from roadaware.tasks.crossing_inputs.boxes import FORMS, GivenBoxes


class Memory(Protocol):
    """Follows pedestrians for some predictors; each pedestrian has a row, which is used again."""

    members: tuple[Predictor, ...]

    def grow(self, rows: int) -> None:
        """Make room for so many pedestrians; those that are there stay."""

    def begin(self, rows: Ints) -> None:
        """Reset some rows."""

    def follow(self, rows: Ints, before: Floats, frames: Floats, known: Bools, size_px: Floats) -> None:
        """Take some more frames of some pedestrians.

        Args:
            rows: (n,) theirs, each once.
            before: (n, 4) the box before these; anything where there is none.
            frames: (n, k, 4) corners in pixels, oldest first.
            known: (n,) whether there is a box before.
            size_px: (2,) width and height of the image.
        """

    def passes(self, rows: Ints, size_px: Floats) -> list[Floats]:
        """Of each member (p, n, k) the probabilities of all its passes for some pedestrians.

        Args:
            rows: (n,) theirs.
            size_px: (2,) width and height of the image.
        """


@dataclass(eq=False)
class Stepping:
    """Networks that remember: a frame costs the same however long a pedestrian has been followed.

    What is remembered makes the answer depend on exactly the newest T frames, T being what the network looks
    back, and, where the change of a box is an input, on the box before these too. It is `Steady.every_frame`
    of the whole past. A window that is cut out of it differs in one thing: the change of its first box is
    unknown there, and stands at the mean of training.

    Args:
        members: of the same sizes, that read the same.
    """

    members: tuple[Predictor, ...]

    def __post_init__(self) -> None:
        """Take the weights."""
        networks = [cast("Steady", member.network) for member in self.members]
        self._steps = Stepper(networks)
        self._state = self._steps.start(0)
        self._last = [_extract_last_layer(member) for member in self.members]

    def grow(self, rows: int) -> None:
        """Make room."""
        self._state = self._state.and_more(self._steps.start(rows - len(self._state.place)))

    def begin(self, rows: Ints) -> None:
        """Forget."""
        self._state.forget(rows)

    def follow(self, rows: Ints, before: Floats, frames: Floats, known: Bools, size_px: Floats) -> None:
        """Go on."""
        corners = np.concatenate([before[:, None], frames], axis=1)
        steps = np.ones(corners.shape[:2])
        steps[:, 0] = np.nan
        steps[~known, 1] = np.nan
        seen = GivenBoxes(corners, size_px[None], steps)
        read = [FORMS[name][0](seen)[:, 1:] for name in self._steps.names]
        self._steps.follow(self._state, rows, np.concatenate(read, axis=2, dtype=np.float32))

    def passes(self, rows: Ints, size_px: Floats) -> list[Floats]:
        """Forward passes of the last layers on the recurrent state."""
        seen = self._steps.embeddings(self._state, rows)
        return [last.passes(each) for last, each in zip(self._last, seen, strict=True)]


@dataclass(eq=False)
class Windows:
    """A network that is shown the newest T frames anew each time, as in training.

    Args:
        member: the predictor.
    """

    member: Predictor

    def __post_init__(self) -> None:
        """Nothing is remembered yet."""
        self.members: tuple[Predictor, ...] = (self.member,)
        self._frames = next(iter(self.member.network.shapes.values()))[0]
        self._held: Floats = np.zeros((0, self._frames, 4))

    def grow(self, rows: int) -> None:
        """Make room."""
        more = np.zeros((rows - len(self._held), self._frames, 4))
        self._held = np.concatenate([self._held, more])

    def begin(self, rows: Ints) -> None:
        """Start rows; frames before the first are never read."""

    def follow(self, rows: Ints, before: Floats, frames: Floats, known: Bools, size_px: Floats) -> None:
        """Keep the newest."""
        self._held[rows] = np.concatenate([self._held[rows], frames], axis=1)[:, -self._frames :]

    def passes(self, rows: Ints, size_px: Floats) -> list[Floats]:
        """The network's."""
        given = build_window_inputs(self._held[rows], size_px, self.member.inputs)
        return [self.member.passes(given, count_passes(self.member))]


def build_window_inputs(corners_px: Floats, size_px: Floats, names: Sequence[str]) -> InputSet:
    """Inputs of predictors from windows of boxes, frame after frame, equal to those of samples in tables.

    Args:
        corners_px: (n, t, 4).
        size_px: (2,) width and height of the image.
        names: of inputs, as `crossing_inputs.boxes.FORMS` has them.
    """
    n, frames = corners_px.shape[:2]
    steps = np.ones((n, frames))
    steps[:, 0] = np.nan
    seen = GivenBoxes(corners_px, size_px[None], steps)
    columns = {name: Held(FORMS[name][0](seen).astype(np.float32)) for name in names}
    return InputSet(columns, n)


def count_passes(member: Predictor) -> int:
    """Number of forward passes of a predictor for one forecast."""
    return member.doubt.passes if member.doubt.draws else 1


def build_memories(members: Sequence[Predictor], *, window: bool = False) -> list[Memory]:
    """Build the state of some predictors: recurrent where the network allows it, else windows of frames.

    Args:
        members: that read boxes alone.
        window: show all of them windows.
    """
    together: dict[object, list[Predictor]] = {}
    apart: list[Memory] = []
    for member in members:
        network = member.network
        if not window and isinstance(network, Steady) and _remembers(network, member):
            sizes = network.config.width, network.config.kernel, network.config.dilations
            together.setdefault((sizes, tuple(network.shapes.items())), []).append(member)
        else:
            apart.append(Windows(member))
    return [*(Stepping(tuple(held)) for held in together.values()), *apart]


def _remembers(network: Steady, member: Predictor) -> bool:
    """Whether steps give what windows would: nothing is dropped on the way, and no more frames are seen."""
    return member.doubt.kind != "dropout" and network.config.frames <= network.frames_of(member.inputs[0])


@dataclass(frozen=True, eq=False)
class _Last:
    """The last layer of a predictor in all its passes, over its temperature.

    Args:
        weight: (width, p k).
        bias: (k,).
    """

    weight: Floats32
    bias: Floats

    def passes(self, seen: Floats32) -> Floats:
        """(p, n, k) probabilities of (n, width) embeddings."""
        n, k = len(seen), len(self.bias)
        logits = (seen @ self.weight).reshape(-1, k) + self.bias
        return convert_to_probabilities(logits, k).reshape(n, -1, k).transpose(1, 0, 2)


def _extract_last_layer(member: Predictor) -> _Last:
    drawn = (
        sample_last_weights(member.network, member.doubt, count_passes(member)).double() / member.temperature
    )
    bias = member.network.last.bias.detach().double().numpy() / member.temperature
    weight = np.ascontiguousarray(drawn.flatten(0, 1).T.numpy())
    return _Last(weight.astype(np.float32), bias)
