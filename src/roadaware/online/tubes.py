"""Live tubes: what is known of each path of the linker while it lives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from roadaware.linking.linker import Update
from roadaware.models.detector import FrameDetections
from roadaware.online.frames import SourceFrame
from roadaware.online.labels import LabelRule, Smoothed
from roadaware.scenes.dense import Layout

Floats = npt.NDArray[np.float64]


@dataclass(eq=False)
class LiveTube:
    """One tube as far as it has come.

    Args:
        number: never used again.
        first_frame: where it began.
        first_t_s: when.
        labels: its smoothed scores and the labels told of it.
        last_frame: where it was last found.
        last_t_s: when.
        box: (4,) x1, y1, x2, y2 where it was last found.
        count: detections so far.
        total: of their agentness.
        told: whether its beginning was told.
        notes: what annotators say of it.
    """

    number: int
    first_frame: int
    first_t_s: float
    labels: Smoothed
    last_frame: int = -1
    last_t_s: float = 0.0
    box: Floats = field(default_factory=lambda: np.zeros(4))
    count: int = 0
    total: float = 0.0
    told: bool = False
    notes: dict[str, float] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """Mean agentness."""
        return self.total / max(1, self.count)


class Annotator(Protocol):
    """Says more of live tubes, such as whether a pedestrian is about to cross.

    Asked of every live tube in every frame in which it is found, in the order of their numbers, also of those
    that are not told yet. What it says stands in `LiveTube.notes`, in the events and on the film.
    """

    def __call__(self, tube: LiveTube, frame: SourceFrame) -> Mapping[str, float]:
        """Name to number of what it has to say; nothing where it has nothing to say.

        Args:
            tube: with the box of this frame.
            frame: with its picture.
        """


class LiveTubes:
    """The tubes that live.

    Args:
        kinds: what class scores stand for.
        rule: which labels are told.
    """

    def __init__(self, kinds: Layout, rule: LabelRule) -> None:
        self._kinds, self._rule = kinds, rule
        self._tubes: dict[int, LiveTube] = {}

    def __len__(self) -> int:
        return len(self._tubes)

    def update(
        self, frame: SourceFrame, found: FrameDetections, update: Update
    ) -> tuple[list[tuple[LiveTube, bool]], list[LiveTube]]:
        """What a frame did.

        Args:
            frame: with its number and time.
            found: its detections.
            update: what the linker made of them.

        Returns:
            The tubes found in it by their numbers, each with whether its labels changed;
            and those that ended.
        """
        seen = []
        for row in np.flatnonzero(update.numbers >= 0).tolist():
            number = int(update.numbers[row])
            tube = self._tubes.get(number)
            if tube is None:
                labels = Smoothed(self._kinds, self._rule)
                tube = self._tubes[number] = LiveTube(number, frame.number, frame.t_s, labels)
            tube.last_frame, tube.last_t_s = frame.number, frame.t_s
            tube.box = np.asarray(found.boxes[row], np.float64)
            tube.count, tube.total = tube.count + 1, tube.total + float(found.agentness[row])
            seen.append((tube, tube.labels.add(found.scores[row], frame.t_s)))
        seen.sort(key=lambda item: item[0].number)
        return seen, self.end(path.number for path in update.ended)

    def end(self, numbers: Iterable[int]) -> list[LiveTube]:
        """Take tubes away that are over."""
        return [tube for number in numbers if (tube := self._tubes.pop(number, None)) is not None]
