"""Live tubes: what is known of each path of the linker while it lives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from roadaware.linking.linker import Update
from roadaware.models.detector import FrameDetections
from roadaware.online.frames import SourceFrame
from roadaware.online.labels import LabelRule, Smoothed
from roadaware.online.outlook import Outlook
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
        notes: what annotators say of it, in numbers.
        outlook: what is expected of a pedestrian; None of all others, and where nothing can be said.
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
    outlook: Outlook | None = None

    @property
    def score(self) -> float:
        """Mean agentness."""
        return self.total / max(1, self.count)


class Annotator(Protocol):
    """Says more of live tubes, such as whether a pedestrian is about to cross.

    Asked once in every frame, also in those without tubes. What it writes into `notes` and `outlook` of the
    tubes stands in the events and on the film.
    """

    def __call__(self, tubes: Sequence[LiveTube], frame: SourceFrame) -> Iterable[tuple[LiveTube, str]]:
        """The tubes of which there is news, and the word that the event has for it; mostly none.

        Args:
            tubes: those that were found in this frame, by their numbers, also those that are not told yet:
                of them news is told by their `begin`.
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

    @property
    def probable(self) -> int:
        """How many pedestrians that were told of will probably cross."""
        return sum(
            tube.told and tube.outlook is not None and tube.outlook.probable for tube in self._tubes.values()
        )

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
