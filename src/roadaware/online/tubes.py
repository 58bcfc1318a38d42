"""Live tubes: smoothed labels and state of each live path of the linker."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.errors import UsageError
from roadaware.geometry.boxes import paired_iou
from roadaware.linking.linker import Update
from roadaware.models.detector import Expected, FrameDetections
from roadaware.online.forecast_event import Outlook
from roadaware.online.frames import SourceFrame
from roadaware.scenes.dense_scores import Layout

# Labels that do not flicker: smoothed scores, and thresholds that depend on what was said before.

Confirmed = dict[str, dict[str, float]]
"""Kind to label to score."""


@dataclass(frozen=True)
class LabelRule:
    """Thresholds of reported labels.

    Args:
        on: a label begins to be reported at this smoothed score.
        off: and is no longer reported below this one.
        margin: a label that is reported gives way to a better one only if that is better by this much.
        most: labels reported at once of a kind.
        single: kinds of which only one label is reported at once.
        smooth_s: seconds in which an old score loses all but a third of its weight; 0 for no smoothing.
        lasting: kinds that a thing keeps as long as it is seen: all its moments have a vote, so that a van
            does not become a car and a truck in turn.
        lasting_s: as `smooth_s`, of these, once a thing has been seen for longer: a tube may have gone over
            to somebody else.
    """

    on: float = 0.3
    off: float = 0.2
    margin: float = 0.1
    most: int = 2
    single: tuple[str, ...] = ("agent", "duplex", "event", "av_action")
    smooth_s: float = 0.4
    lasting: tuple[str, ...] = ("agent",)
    lasting_s: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a number is out of range.
        """
        if not 0 <= self.off <= self.on <= 1 or not 0 <= self.margin <= 1:
            raise UsageError("label thresholds: 0 <= off <= on <= 1, and margin from 0 to 1")
        if self.most < 1 or not all(0 <= each < math.inf for each in (self.smooth_s, self.lasting_s)):
            raise UsageError("at least one label is told of a kind, and smoothing takes 0 s or more")

    def of(self, kind: str) -> int:
        """How many labels of a kind are reported at once."""
        return 1 if kind in self.single else self.most


def select_current_labels(scores: Floats32, before: Bools, most: int, rule: LabelRule) -> Bools:
    """Labels of one kind that are reported now, for several tubes at once.

    Args:
        scores: (n, c) smoothed scores of n things.
        before: (n, c) the labels reported before.
        most: at most so many of each; of equals the first.
        rule: the thresholds.

    Returns:
        (n, c).

    >>> rule = LabelRule(on=0.5, off=0.3, margin=0.1)
    >>> before = np.array([[True, False], [True, False]])
    >>> select_current_labels(np.array([[0.4, 0.45], [0.4, 0.55]]), before, 1, rule).tolist()
    [[True, False], [False, True]]
    """
    fit = scores >= np.where(before, rule.off, rule.on)
    # Only labels that are reported already get the margin: that is the hysteresis.
    worth = np.where(fit, scores + rule.margin * before, -np.inf)
    # Stable: of equal scores the first label, in every run.
    order = np.argsort(-worth, axis=1, kind="stable")[:, :most]
    now = np.zeros_like(fit)
    np.put_along_axis(now, order, np.take_along_axis(fit, order, axis=1), axis=1)
    return now


class SmoothedTable:
    """Smoothed scores and reported labels of many tubes over time, a row of arrays each.

    Args:
        kinds: what the scores stand for.
        rule: which labels are reported.
        room: rows at first; doubled as needed.
    """

    def __init__(self, kinds: Layout, rule: LabelRule, room: int = 16) -> None:
        self.kinds, self.rule = kinds, rule
        self.scores: Floats32 = np.zeros((room, kinds.width), np.float32)
        self.shown: Bools = np.zeros((room, kinds.width), np.bool_)
        self._t_s = np.full(room, np.nan)
        self._count = np.zeros(room, np.int64)
        # Backwards, since rows are taken from the end: the first ones are used first.
        self._free = list(range(room))[::-1]

    def begin(self) -> Smoothed:
        """Begin an empty row."""
        if not self._free:
            room = len(self._t_s)
            self.scores, self.shown = (
                np.concatenate([held, np.zeros_like(held)]) for held in (self.scores, self.shown)
            )
            self._t_s = np.concatenate([self._t_s, np.full(room, np.nan)])
            self._count = np.concatenate([self._count, np.zeros(room, np.int64)])
            self._free = list(range(room, 2 * room))[::-1]
        return Smoothed(self.kinds, self.rule, self, self._free.pop())

    def end(self, row: int) -> Smoothed:
        """The values of a row by itself; the row is free again."""
        alone = Smoothed(self.kinds, self.rule)
        table = alone.table
        table.scores[0], table.shown[0], table._t_s[0] = self.scores[row], self.shown[row], self._t_s[row]
        table._count[0] = self._count[row]
        self.shown[row], self._t_s[row], self._count[row] = False, np.nan, 0
        self._free.append(row)
        return alone

    def add(self, rows: Ints, scores: Floats32, t_s: float) -> Bools:
        """Take the scores of a moment, all in one operation.

        Args:
            rows: (n,) whose they are, each once.
            scores: (n, width).
            t_s: later than before.

        Returns:
            (n,) whether other labels are reported for it now.
        """
        scores = np.asarray(scores, np.float32)
        weight = np.ones((len(rows), self.kinds.width), np.float32)
        if self.rule.smooth_s:
            known = ~np.isnan(self._t_s[rows])
            past_s = t_s - self._t_s[rows[known]]
            # By time and not by frame: gaps and other rates smooth alike.
            weight[known] = (1.0 - np.exp(-past_s / self.rule.smooth_s))[:, None]
            self._vote(weight, rows, known, past_s)
        # First scores are taken as they are: old + (new - old) would round, and old is another tube's.
        old = self.scores[rows]
        now = np.where(weight == 1, scores, old + weight * (scores - old))
        before, labelled = self.shown[rows], np.zeros((len(rows), self.kinds.width), np.bool_)
        for kind in self.kinds.kinds:
            part = self.kinds.columns(kind)
            labelled[:, part] = select_current_labels(
                now[:, part], before[:, part], self.rule.of(kind), self.rule
            )
        self.scores[rows], self.shown[rows], self._t_s[rows] = now, labelled, t_s
        self._count[rows] += 1
        return np.asarray((labelled != before).any(axis=1))

    def _vote(self, weight: Floats32, rows: Ints, known: Bools, past_s: npt.NDArray[np.float64]) -> None:
        """Set the weights of kinds that last: the mean of all moments, which in the end fades slowly."""
        fading = 1.0 - np.exp(-past_s / self.rule.lasting_s) if self.rule.lasting_s else np.ones(len(past_s))
        # 1 / (n + 1) makes the running mean of all moments.
        share = np.maximum(1.0 / (self._count[rows[known]] + 1), fading)
        for kind in self.rule.lasting:
            if kind in self.kinds.kinds:
                weight[known, self.kinds.columns(kind)] = share[:, None]


class Smoothed:
    """Smoothed scores and reported labels of one tube over time.

    Args:
        kinds: what the scores stand for.
        rule: which labels are reported.
        table: that holds them, where it is one of many.
        row: which.
    """

    def __init__(
        self, kinds: Layout, rule: LabelRule, table: SmoothedTable | None = None, row: int = 0
    ) -> None:
        self.table, self.row = table or SmoothedTable(kinds, rule, 1), row

    @property
    def scores(self) -> Floats32:
        """(width,) smoothed."""
        scores: Floats32 = self.table.scores[self.row]
        return scores

    def add(self, scores: Floats32, t_s: float) -> bool:
        """Take the scores of a moment; whether other labels are reported now.

        Args:
            scores: (width,).
            t_s: later than before.
        """
        return bool(self.table.add(np.array([self.row]), scores[None], t_s)[0])

    def confirmed(self) -> Confirmed:
        """Kind to its labels with their scores, best first; kinds without are left out."""
        found: Confirmed = {}
        scores, labelled = self.scores, self.table.shown[self.row]
        for kind, names in self.table.kinds.kinds.items():
            part = self.table.kinds.columns(kind)
            labels = np.flatnonzero(labelled[part])
            if len(labels):
                ranked = labels[np.argsort(-scores[part][labels], kind="stable")]
                found[kind] = {names[k]: round(float(scores[part][k]), 4) for k in ranked.tolist()}
        return found

    def tells(self, kind: str, names: tuple[str, ...]) -> bool:
        """Whether one of some labels of a kind is reported.

        Args:
            kind: such as agent.
            names: labels of it; those that there are not are never reported.
        """
        known = self.table.kinds.kinds.get(kind, ())
        if not known:
            return False
        labelled = self.table.shown[self.row, self.table.kinds.columns(kind)]
        return any(labelled[known.index(name)] for name in names if name in known)

    def every(self, kind: str) -> Mapping[str, float]:
        """All labels of a kind with their smoothed scores."""
        part = self.scores[self.table.kinds.columns(kind)]
        return dict(zip(self.table.kinds.kinds[kind], part.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class ExpectedTube:
    """What is expected of a tube some seconds ahead.

    Args:
        said: of all detections of the frame.
        row: of the tube's detection.
        rule: which labels are reported.
    """

    said: Expected
    row: int
    rule: LabelRule

    @property
    def ahead_s(self) -> float:
        """How far ahead, in seconds."""
        return self.said.ahead_s

    @property
    def present(self) -> float:
        """Probability that it is still seen then."""
        return float(self.said.present[self.row])

    @property
    def box(self) -> Floats:
        """(4,) x1, y1, x2, y2 where it is expected, in pixels; beyond the image where it leaves."""
        box: Floats = self.said.boxes[self.row]
        return box

    def labels(self) -> Confirmed:
        """Kind to the labels that are expected, best first: those as probable as a label that begins to be reported."""
        found: Confirmed = {}
        for kind, (names, table) in self.said.labels.items():
            scores = table[self.row]
            order = np.argsort(-scores, kind="stable")[: self.rule.of(kind)].tolist()
            chosen = {names[k]: round(float(scores[k]), 4) for k in order if scores[k] >= self.rule.on}
            if chosen:
                found[kind] = chosen
        return found

    def changes(self) -> Confirmed:
        """The likeliest label of each kind where it is another one than that of now, by the same head."""
        found: Confirmed = {}
        for kind, labels in self.labels().items():
            best, score = next(iter(labels.items()))
            names = self.said.labels[kind][0]
            if names[int(self.said.now[kind][self.row].argmax())] != best:
                found[kind] = {best: score}
        return found

    def fields(self) -> dict[str, Any]:
        """JSON-ready, as events have it."""
        box = [round(float(side), 1) for side in self.box]
        said = {"in_s": self.ahead_s, "seen": round(self.present, 4), "box": box, "labels": self.labels()}
        return {"expected": said}


class ExpectationTally:
    """What came of expectations: overlap of expected boxes with those that were found when their time had come.

    Beside it stands the overlap where constant velocity, and where standing still, would have had them. Only tubes that
    were found then count.
    """

    def __init__(self) -> None:
        self.count = 0
        self.ahead_s: float | None = None
        self._sums = np.zeros(3)
        self._waiting: deque[tuple[float, dict[int, int], Floats]] = deque()
        self._before_s = -np.inf

    def add(
        self, t_s: float, numbers: Sequence[int], boxes: Floats, said: Expected, rows: Sequence[int]
    ) -> None:
        """Judge the expectations that are due, and note those of a frame.

        Args:
            t_s: its time, later than those before.
            numbers: n tubes that are proven.
            boxes: (n, 4) where they are.
            said: what is expected of the detections of the frame.
            rows: n detections of the tubes.
        """
        self.ahead_s = said.ahead_s
        # Of two frames near its time the nearer one judges it: the next is taken to come as soon as this one did.
        early = min(_DUE_S, (t_s - self._before_s) / 2)
        self._before_s = t_s
        while self._waiting and self._waiting[0][0] <= t_s + early:
            due_s, places, three = self._waiting.popleft()
            both = [(places[number], k) for k, number in enumerate(numbers) if number in places]
            if both and due_s >= t_s - _DUE_S:
                then, now = (np.array(each) for each in zip(*both, strict=True))
                for way in range(3):
                    self._sums[way] += paired_iou(three[then, way], boxes[now]).sum()
                self.count += len(both)
        chosen = list(rows)
        three = np.stack([said.boxes[chosen], said.velocity[chosen], boxes], axis=1)
        held = {number: k for k, number in enumerate(numbers) if said.known[chosen[k]]}
        self._waiting.append((t_s + said.ahead_s, held, three))

    def summary(self) -> dict[str, Any] | None:
        """Boxes that were judged, and their mean overlaps; None where nothing was expected."""
        if self.ahead_s is None:
            return None
        means = [round(float(each), 4) for each in self._sums / self.count] if self.count else [None] * 3
        names = ("iou", "iou_constant_velocity", "iou_standing_still")
        return {"ahead_s": self.ahead_s, "boxes": self.count, **dict(zip(names, means, strict=True))}


_DUE_S = 0.06
"""An expectation is judged by frames that lie at most so far from the time it was for."""


@dataclass(eq=False)
class LiveTube:
    """One tube up to now.

    Args:
        number: never used again.
        first_frame: where it began.
        first_t_s: when.
        labels: its smoothed scores and the labels reported for it.
        last_frame: where it was last found.
        last_t_s: when.
        box: (4,) x1, y1, x2, y2 where it was last found.
        count: detections so far that count, see `LiveTubes`.
        strong: of those, the ones at or above the threshold.
        proven: whether they are enough.
        total: of their agentness.
        reported: whether its beginning was reported.
        notes: what annotators say of it, in numbers.
        outlook: what is expected of a pedestrian; None of all others, and where nothing can be said.
        asked: whether it was ever taken for a pedestrian, once proven.
        answered: whether something could then be said of it.
        expected: what is expected of it in a second, by the newest box; None where nobody asks.
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
    reported: bool = False
    notes: dict[str, float] = field(default_factory=dict)
    outlook: Outlook | None = None
    asked: bool = False
    answered: bool = False
    expected: ExpectedTube | None = None

    @property
    def score(self) -> float:
        """Mean agentness."""
        return self.total / max(1, self.count)


class Annotator(Protocol):
    """Adds notes to live tubes, such as whether a pedestrian is about to cross.

    Asked once in every frame, also in those without tubes. What it writes into `notes` and `outlook` of the
    tubes stands in the events and on the video.
    """

    def __call__(self, tubes: Sequence[LiveTube], frame: SourceFrame) -> Iterable[tuple[LiveTube, str]]:
        """The tubes of which there is news, and the word that the event has for it; mostly none.

        Args:
            tubes: those that were found in this frame, by their numbers, also those that are not reported yet:
                of them news is reported by their `begin`.
            frame: with its image.
        """


class LiveTubes:
    """The live tubes: paths of the linker that are proven.

    A detector fills every frame with weak boxes, and the linker makes paths of all of them, as metrics that
    rank want it. Here a path needs boxes at or above a score to be followed. Once `proof` of them were found
    it is proven, and from then on `keep` suffices, so that a tube does not flicker.

    Args:
        kinds: what class scores stand for.
        rule: which labels are reported.
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
        self._rule, self.tally = rule, ExpectationTally()

    def __len__(self) -> int:
        return len(self._tubes)

    @property
    def probable(self) -> int:
        """How many of the reported pedestrians will probably cross."""
        return sum(
            tube.reported and tube.outlook is not None and tube.outlook.probable
            for tube in self._tubes.values()
        )

    def update(
        self, frame: SourceFrame, found: FrameDetections, update: Update
    ) -> tuple[list[tuple[LiveTube, bool]], list[LiveTube]]:
        """The tubes that a frame began, changed and ended.

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
                said = found.expected
                known = said is not None and said.known[row]
                tube.expected = ExpectedTube(said, row, self._rule) if said is not None and known else None
        if found.expected is not None:
            proven = [k for k, tube in enumerate(tubes) if tube.proven]
            boxes = np.array([tubes[k].box for k in proven]).reshape(-1, 4)
            numbers = [tubes[k].number for k in proven]
            self.tally.add(frame.t_s, numbers, boxes, found.expected, [rows[k] for k in proven])
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
