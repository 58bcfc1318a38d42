"""Crossing: every pedestrian of a stream gets a probability of crossing and a risk region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.config import to_dict
from roadaware.online.camera_motion import HEIGHT, SHAKE, MotionEstimator, PixelMotion, Steadiness
from roadaware.online.forecast_event import (
    SHAKING,
    SHORT,
    SMALL,
    TURNING,
    UNKNOWN,
    Answers,
    Outlook,
    OutlookRule,
    list_changes,
)
from roadaware.online.frames import Clock, Latency, SourceFrame, SystemClock
from roadaware.online.tubes import LiveTube
from roadaware.tasks.resampling import Pace, Paced

if TYPE_CHECKING:
    from roadaware.online.crossing_forecaster import Foresight

_ROOM = 16


@dataclass(eq=False)
class _Followed:
    """One pedestrian who is followed."""

    row: int
    paced: Paced
    outlook: Outlook | None = None
    smoothed: Floats | None = None
    t_s: float = 0.0

    def forget(self) -> None:
        """Begin anew."""
        self.outlook = self.smoothed = None


@dataclass(eq=False)
class Follower:
    """Follows the pedestrians of one stream by their boxes, all of a frame together.

    What is remembered of somebody is forgotten once so much time has passed that the past would be begun
    anew, so that memory is that of the pedestrians in sight.

    Args:
        foresight: is grown as needed; of this stream alone.
        rule: what is reported.
    """

    foresight: Foresight
    rule: OutlookRule = field(default_factory=OutlookRule)

    def __post_init__(self) -> None:
        """Start without pedestrians."""
        self._pace = Pace(self.foresight.rate_fps, self.rule.bridge_s, steady_s=self.rule.steady_s)
        self._followed: dict[int, _Followed] = {}
        self._free = list(range(len(self.foresight)))[::-1]

    def __len__(self) -> int:
        return len(self._followed)

    def look(
        self,
        numbers: Sequence[int],
        boxes: Floats,
        t_s: float,
        size_px: tuple[int, int],
        shift_px: tuple[float, float] = (0.0, 0.0),
    ) -> list[Outlook | None]:
        """Crossing forecasts of the pedestrians of one frame; None for those not seen for long enough.

        Args:
            numbers: (n) theirs, each once.
            boxes: (n, 4) x1, y1, x2, y2 in pixels.
            t_s: time of the frame.
            size_px: width and height of the image.
            shift_px: how far a turn of the camera moved the image since the frame before, to the right and
                down: the past of all is moved with it, so that only what they did themselves is left.
        """
        self._forget(t_s)
        self._shift(shift_px)
        if not numbers:
            return []
        people = [self._known(number) for number in numbers]
        rows = np.array([each.row for each in people])
        added = [each.paced.add(t_s, box) for each, box in zip(people, boxes, strict=True)]
        anew = np.array([begun for _, begun in added])
        self.foresight.begin(rows[anew])
        self.foresight.follow(rows, [frames for frames, _ in added], size_px)
        ready = self.foresight.ready(rows)
        found = self.foresight.ask(rows[ready], size_px) if ready.any() else Answers()
        place = np.cumsum(ready) - 1
        for each, asked, begun, at in zip(people, ready, anew, place, strict=True):
            if begun:
                each.forget()
            if asked:
                self._tell(each, found, int(at), t_s)
        return [each.outlook for each in people]

    def _known(self, number: int) -> _Followed:
        held = self._followed.get(number)
        if held is None:
            held = self._followed[number] = _Followed(self._row(), Paced(self._pace))
        return held

    def _row(self) -> int:
        if not self._free:
            before = len(self.foresight)
            self.foresight.grow(max(_ROOM, 2 * before))
            self._free = list(range(before, len(self.foresight)))[::-1]
        return self._free.pop()

    def _shift(self, by_px: tuple[float, float]) -> None:
        """Move the past of all who are followed."""
        if not any(by_px) or not self._followed:
            return
        for each in self._followed.values():
            each.paced.shift(np.array([*by_px, *by_px]))
        self.foresight.shift(np.array([each.row for each in self._followed.values()]), by_px)

    def _forget(self, t_s: float) -> None:
        gone = [number for number, each in self._followed.items() if not each.paced.goes_on(t_s)]
        self._free += [self._followed.pop(number).row for number in gone]

    def _tell(self, who: _Followed, found: Answers, at: int, t_s: float) -> None:
        """Set the forecast of a tube.

        Args:
            who: is given it.
            found: of all who were asked about.
            at: which of them.
            t_s: time of the frame.
        """
        before = who.outlook or Outlook()
        crossing, low, high = (
            None if held is None else float(held[at]) for held in (found.crossing, found.low, found.high)
        )
        regions = () if found.regions is None else tuple(found.regions[at].tolist())
        now = np.array([0.0 if crossing is None else crossing, *regions])
        who.smoothed = self.rule.smooth(now, who.smoothed, t_s - who.t_s)
        who.t_s, smoothed = t_s, None if crossing is None else float(who.smoothed[0])
        within, seconds = (
            None if held is None or np.isnan(held[at]) else float(held[at])
            for held in (found.within_2s, found.seconds)
        )
        who.outlook = Outlook(
            crossing=crossing,
            low=low,
            high=high,
            smoothed=smoothed,
            probable=smoothed is not None and self.rule.probable(smoothed, before.probable),
            regions=regions,
            region=self.rule.region(who.smoothed[1:], before.region) if regions else None,
            words=self.foresight.regions,
            within_2s=within,
            seconds=seconds,
        )


class CrossingAnnotator:
    """An annotator of one watch that gives pedestrians an outlook.

    The turning of the camera is taken out of the past of each pedestrian. Nothing is said of those who are
    smaller, and while the camera shakes more, than what the predictors learnt from.

    Args:
        foresight: of this watch alone.
        rule: what is reported, and who is a pedestrian.
        clock: says how long it takes.
        motion: says how the camera moved; by default seen in the pixels.
    """

    def __init__(
        self,
        foresight: Foresight,
        rule: OutlookRule | None = None,
        clock: Clock | None = None,
        motion: MotionEstimator | None = None,
    ) -> None:
        self.foresight, self.rule = foresight, rule or OutlookRule()
        self._clock = clock or SystemClock()
        self._motion = motion or PixelMotion()
        self._limits = foresight.limits
        self._steadiness = Steadiness(foresight.frames / foresight.rate_fps, self._limits.get(SHAKE))
        self._follower = Follower(foresight, self.rule)
        self._latency, self._spent_s = Latency(), 0.0
        self._asked = self._answers = 0
        self._people = self._answered = 0
        self._unknown = dict.fromkeys(UNKNOWN, 0)

    def __call__(self, tubes: Sequence[LiveTube], frame: SourceFrame) -> list[tuple[LiveTube, str]]:
        """Give each pedestrian of a frame an outlook; the tubes of which there is news, and what it is."""
        begin_s = self._clock.now_s()
        people = [tube for tube in tubes if self._is_pedestrian(tube)]
        height, width = frame.picture.shape[:2]
        every = np.array([tube.box for tube in tubes], np.float64).reshape(-1, 4)
        motion = self._motion.step(frame.picture, every)
        shift_px = self._steadiness.add(frame.t_s, motion, (width, height))
        boxes = np.array([tube.box for tube in people], np.float64).reshape(-1, 4)
        boxes -= np.tile(self._steadiness.turned_px, 2)
        numbers = [tube.number for tube in people]
        found = self._follower.look(numbers, boxes, frame.t_s, (width, height), shift_px)
        said = {
            tube.number: self._said(tube, outlook, height)
            for tube, outlook in zip(people, found, strict=True)
        }
        news = []
        for tube in tubes:
            before, tube.outlook = tube.outlook, said.get(tube.number)
            news += [(tube, what) for what in list_changes(before, tube.outlook)]
        if people:
            self._count(people, self._clock.now_s() - begin_s)
        return news

    def _is_pedestrian(self, tube: LiveTube) -> bool:
        """Whether a tube is predicted to be one, with the probability that the rule asks for."""
        if not tube.labels.tells("agent", self.rule.agents):
            return False
        scores = tube.labels.every("agent")
        likely = sum(scores.get(name, 0.0) for name in self.rule.agents)
        return likely >= self.rule.probability * sum(scores.values())

    def _said(self, tube: LiveTube, outlook: Outlook | None, height_px: int) -> Outlook | None:
        """The forecast of a pedestrian, or the reason why there is none; None if not seen for long enough."""
        if outlook is None:
            return None
        if tube.box[3] - tube.box[1] < self._limits.get(HEIGHT, 0.0) * height_px:
            return Outlook(unknown=SMALL)
        if self._steadiness.shaking:
            return Outlook(unknown=SHAKING)
        return Outlook(unknown=TURNING) if self._steadiness.turned_away else outlook

    def _count(self, people: Sequence[LiveTube], spent_s: float) -> None:
        self._latency.add(spent_s)
        self._spent_s += spent_s
        self._asked += len(people)
        for tube in people:
            why = SHORT if tube.outlook is None else tube.outlook.unknown
            if why is None:
                self._answers += 1
            else:
                self._unknown[why] += 1
            if tube.proven:
                self._people, tube.asked = self._people + (not tube.asked), True
            if tube.proven and why is None:
                self._answered, tube.answered = self._answered + (not tube.answered), True

    def summary(self) -> dict[str, Any]:
        """JSON-ready summary of the forecasts: predictors, rule, pedestrians and counts.

        `pedestrians` counts the tubes that were proven and taken for pedestrians, and `answered` those of
        them of which something could be said: people, where no tube broke. `pedestrian_frames` counts each
        in each frame, `answers` those of these that were answered for, and `unknown` the others by why.
        """
        return {
            "predictors": self.foresight.about(),
            "rule": to_dict(self.rule),
            "pedestrians": self._people,
            "answered": self._answered,
            "pedestrian_frames": self._asked,
            "answers": self._answers,
            "unknown": {
                why: {"count": self._unknown[why], "meaning": meaning} for why, meaning in UNKNOWN.items()
            },
        }

    def speed(self) -> dict[str, Any]:
        """JSON-ready: how long it took.

        `ms_per_pedestrian_frame` is the time for each pedestrian of a frame, answered for or not, and
        `ms_per_frame` that of a frame with pedestrians.
        """
        shares = {"p50": self._latency.percentile_s(50), "p99": self._latency.percentile_s(99)}
        each = self._spent_s / self._asked if self._asked else None
        return {
            "ms_per_frame": {name: _ms(value) for name, value in shares.items()},
            "ms_per_pedestrian_frame": _ms(each),
        }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 4)
