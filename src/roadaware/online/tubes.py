"""Live tubes: what is known of each path of the linker while it lives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from roadaware.arrays import Floats
from roadaware.linking.linker import Update
from roadaware.models.detector import FrameDetections
from roadaware.online.frames import SourceFrame
from roadaware.online.labels import LabelRule, Smoothed, SmoothedTable
from roadaware.online.outlook import Outlook
from roadaware.scenes.dense import Layout


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
        count: detections so far that count, see `LiveTubes`.
        strong: of those, the ones at or above the threshold.
        proven: whether they are enough.
        total: of their agentness.
        told: whether its beginning was told.
        notes: what annotators say of it, in numbers.
        outlook: what is expected of a pedestrian; None of all others, and where nothing can be said.
        asked: whether it was ever taken for a pedestrian, once proven.
        answered: whether something could then be said of it.
    """

    number: int
    first_frame: int
    first_t_s: float
    labels: Smoothed
    last_frame: int = -1
    last_t_s: float = 0.0
    box: Floats = field(default_factory=lambda: np.zeros(4))
    count: int = 0
    strong: int = 0
    proven: bool = False
    total: float = 0.0
    told: bool = False
    notes: dict[str, float] = field(default_factory=dict)
    outlook: Outlook | None = None
    asked: bool = False
    answered: bool = False

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
    """The tubes that live, of those paths of the linker that show that somebody is there.

    A detector fills every frame with weak boxes, and the linker makes paths of all of them, as metrics that
    rank want it. Here a path needs boxes at or above a score to be followed. Once `proof` of them were found
    it is proven, and from then on `keep` suffices, so that a tube does not flicker.

    Args:
        kinds: what class scores stand for.
        rule: which labels are told.
        least: agentness that a box needs.
        keep: that it needs where its path is proven; at most `least`.
        proof: boxes that prove a path.
    """

    def __init__(
        self, kinds: Layout, rule: LabelRule, least: float = 0.0, keep: float = 0.0, proof: int = 1
    ) -> None:
        self._smoothed = SmoothedTable(kinds, rule)
        # Scores are in single precision: a box that is at the threshold as printed is at it.
        self._least, self._keep, self._proof = np.float32(least), np.float32(keep), proof
        self._tubes: dict[int, LiveTube] = {}
        self._begun: dict[int, tuple[int, float]] = {}

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
        self._begun |= dict.fromkeys(update.began, (frame.number, frame.t_s))
        tubes, rows = [], []
        agentness = np.asarray(found.agentness, np.float32)
        for row in np.flatnonzero((update.numbers >= 0) & (agentness >= self._keep)).tolist():
            tube = self._followed(int(update.numbers[row]), strong=bool(agentness[row] >= self._least))
            if tube is not None:
                tube.last_frame, tube.last_t_s = frame.number, frame.t_s
                tube.box = np.asarray(found.boxes[row], np.float64)
                tube.count, tube.total = tube.count + 1, tube.total + float(agentness[row])
                tubes.append(tube)
                rows.append(row)
        places = np.array([tube.labels.row for tube in tubes], np.int64)
        changed = self._smoothed.add(places, found.scores[rows], frame.t_s).tolist()
        seen = sorted(zip(tubes, changed, strict=True), key=lambda item: item[0].number)
        return seen, self.end(path.number for path in update.ended)

    def _followed(self, number: int, *, strong: bool) -> LiveTube | None:
        """The tube of a path in which a box was found; None where it shows nothing yet."""
        tube = self._tubes.get(number)
        if not strong and (tube is None or not tube.proven):
            return None
        if tube is None:
            tube = LiveTube(number, *self._begun[number], self._smoothed.begin())
            self._tubes[number] = tube
        tube.strong += strong
        tube.proven = tube.strong >= self._proof
        return tube

    def end(self, numbers: Iterable[int]) -> list[LiveTube]:
        """Take tubes away that are over."""
        over = []
        for number in numbers:
            self._begun.pop(number, None)
            tube = self._tubes.pop(number, None)
            if tube is not None:
                tube.labels = self._smoothed.end(tube.labels.row)
                over.append(tube)
        return over
