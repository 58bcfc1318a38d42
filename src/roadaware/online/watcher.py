"""Watcher: images go through detector and linker, and changes come out as events."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import build_closed_paths
from roadaware.linking.linker import Linker, Path, Update
from roadaware.models.detector import Detector, FrameDetections, TimedDetector
from roadaware.online.config import WatchConfig
from roadaware.online.events import Event, make_source_event, make_tube_event, make_vehicle_event
from roadaware.online.frames import Clock, Happening, SourceFrame
from roadaware.online.tubes import Annotator, LiveTube, LiveTubes, Smoothed
from roadaware.scenes.dense_scores import Layout
from roadaware.tasks.road_events import AV_ACTION

# Warming up: what is done once in a process is done before the first frame, so that no frame waits for it.

_PICTURE_PX = (240, 320, 3)
_ENOUGH_BOXES = 30
"""From so many on it is said what share of them continues no path."""


def warm_up_linker(config: LinkerConfig, kinds: Layout) -> None:
    """Link a box that is not there in two frames, and close its path.

    Args:
        config: of the linker.
        kinds: what the class scores of the stream stand for.
    """
    linker = Linker(config, kinds.width)
    scores = np.full((1, kinds.width), 0.5)
    for frame in range(2):
        linker.update(frame, [[0.0, 0.0, 9.0, 9.0]], [0.9], scores, t_s=float(frame))
    build_closed_paths(linker.finish(), config, kinds)


def warm_up_detector(detector: Detector) -> None:
    """Show a detector a black image, and have it answer even if it would wait for more.

    Args:
        detector: is reset before and after.
    """
    detector.reset()
    detector.step(np.zeros(_PICTURE_PX, np.uint8))
    detector.finish()
    detector.reset()


@dataclass(frozen=True, eq=False)
class Seen:
    """The results of a frame.

    Args:
        frame: the frame.
        time_s: its time as the tables and the linker have it, in single precision.
        found: its detections.
        numbers: (n,) number of the tube that each belongs to, -1 for none.
        ended: the paths that closed.
        tubes: those found in it and reported, by their numbers.
        vehicle: all actions of the own vehicle with their smoothed scores; empty where there are none.
        doing: those of them that are reported.
        events: in order.
        ready_s: when all this was known, in seconds of the stream.
    """

    frame: SourceFrame
    time_s: float
    found: FrameDetections
    numbers: npt.NDArray[np.int64]
    ended: tuple[Path, ...]
    tubes: Sequence[LiveTube]
    vehicle: Mapping[str, float]
    doing: Sequence[str]
    events: Sequence[Event]
    ready_s: float

    @property
    def latency_s(self) -> float:
        """Seconds from the time of the frame until its events were known, by the clock of the stream."""
        return self.ready_s - self.frame.t_s


@dataclass(eq=False)
class Last:
    """The last results when the stream ended.

    Args:
        ended: the paths that lived.
        events: the ends of tubes.
    """

    ended: tuple[Path, ...] = ()
    events: list[Event] = field(default_factory=list)


class Watcher:
    """Watches one stream.

    Args:
        detector: is reset.
        config: how.
        linker: the linker's config, which depends on the rate of the source.
        clock: measures how long the detector took.
        annotators: say more of live tubes.
        fps: frames per second of the source; None where it is not known.
    """

    def __init__(
        self,
        detector: Detector,
        config: WatchConfig,
        linker: LinkerConfig,
        clock: Clock,
        annotators: Sequence[Annotator] = (),
        fps: float | None = None,
    ) -> None:
        self.detector, self.config, self.linker_config = detector, config, linker
        self._clock, self._annotators = clock, annotators
        kinds = Layout(dict(detector.kinds))
        first = len(next(iter(kinds.kinds.values()), ()))
        self._linker = Linker(linker, kinds.width, l2_columns=first)
        warm_up_linker(linker, kinds)  # neither a frame nor the end of a path should wait for it
        least = config.begin_score
        proof = config.begin_after_at(fps)
        self.tubes = LiveTubes(kinds, config.labels, least, least * config.keep_share, proof)
        actions = {AV_ACTION: detector.av_labels} if detector.av_labels else {}
        self._vehicle, self._vehicle_reported = Smoothed(Layout(actions), config.labels), False
        self._given: deque[SourceFrame] = deque()
        self._time_s: float | None = None
        self._now: tuple[int, float] = (0, 0.0)
        self.begun = 0
        self._strong = self._anew = 0
        detector.reset()

    def step(self, frame: SourceFrame) -> list[Seen]:
        """Give an image to the detector; returns the results that it completes, frame by frame.

        Args:
            frame: later than all before, of the same size.

        Raises:
            InputError: as the detector.
        """
        self._given.append(frame)
        if isinstance(self.detector, TimedDetector):
            self.detector.tell_moment(frame.number, frame.t_s)
        answers = self.detector.step(frame.picture)
        return [self._seen(found, frame) for found in answers]

    def rest(self) -> list[Seen]:
        """The frames that the detector still owes; none follow."""
        newest = self._given[-1] if self._given else None
        return [self._seen(found, newest) for found in self.detector.finish()] if newest else []

    def end(self) -> Last:
        """Close every tube."""
        paths = self._linker.finish()
        events = [
            self._end(tube, "ended") for tube in self.tubes.end(p.number for p in paths) if tube.reported
        ]
        if self._vehicle_reported:
            events.append(make_vehicle_event("end", self._vehicle.confirmed(), *self._now))
        return Last(paths, events)

    def report_source(self, happenings: Sequence[Happening]) -> list[Event]:
        """Events of incidents of the source, at the newest frame."""
        return [make_source_event(happening, *self._now) for happening in happenings]

    def _seen(self, found: FrameDetections, newest: SourceFrame) -> Seen:
        frame = self._given.popleft()
        time_s = self._single(frame.t_s)
        update = self._linker.update(frame.number, found.boxes, found.agentness, found.scores, t_s=time_s)
        seen, over = self.tubes.update(frame, found, update)
        self._count_anew(found, update)
        found_tubes = [tube for tube, _ in seen]
        news = [each for annotator in self._annotators for each in annotator(found_tubes, frame)]
        news = [(tube, what) for tube, what in news if tube.reported]
        # Taken as late as can be, so that it holds everything but writing the events down.
        ready_s = newest.t_s + max(0.0, self._clock.now_s() - newest.arrived_s)
        self._now = (frame.number, frame.t_s)
        events = [self._end(tube, "lost") for tube in over if tube.reported]
        events += [event for tube, changed in seen if (event := self._tube(tube, changed)) is not None]
        events += [make_tube_event(what, tube, *self._now) for tube, what in news]
        events += self._drive(found)
        return Seen(
            frame=frame,
            time_s=time_s,
            found=found,
            numbers=update.numbers,
            ended=update.ended,
            tubes=[tube for tube in found_tubes if tube.reported],
            vehicle=self._vehicle.every(AV_ACTION) if len(found.av) else {},
            doing=list(self._vehicle.confirmed().get(AV_ACTION, ())),
            events=events,
            ready_s=ready_s,
        )

    @property
    def share_anew(self) -> float | None:
        """Share of the strong boxes behind the first frame that continue no path; None of too few."""
        return self._anew / self._strong if self._strong >= _ENOUGH_BOXES else None

    def _count_anew(self, found: FrameDetections, update: Update) -> None:
        if update.frame:
            strong = found.agentness >= self.config.begin_score
            self._strong += int(strong.sum())
            self._anew += int((strong & np.isin(update.numbers, update.began)).sum())

    def _single(self, t_s: float) -> float:
        """A time in single precision, as tables hold it, but later than the one before: so a linker that
        reads the tables does the same, and a stream of days still goes on.
        """
        time = np.float32(t_s)
        if self._time_s is not None and time <= np.float32(self._time_s):
            time = np.nextafter(np.float32(self._time_s), np.float32(np.inf))
        self._time_s = float(time)
        return self._time_s

    def _tube(self, tube: LiveTube, changed: bool) -> Event | None:
        if tube.reported:
            return make_tube_event("update", tube, *self._now) if changed else None
        if not tube.proven:
            return None
        tube.reported, self.begun = True, self.begun + 1
        return make_tube_event("begin", tube, *self._now)

    def _end(self, tube: LiveTube, why: str) -> Event:
        return make_tube_event("end", tube, *self._now, why=why)

    def _drive(self, found: FrameDetections) -> list[Event]:
        """Events of the own vehicle."""
        if not len(found.av):
            return []
        changed = self._vehicle.add(found.av, self._now[1])
        if not self._vehicle_reported:
            self._vehicle_reported = bool(self._vehicle.confirmed())
            return (
                [make_vehicle_event("begin", self._vehicle.confirmed(), *self._now)]
                if self._vehicle_reported
                else []
            )
        return [make_vehicle_event("update", self._vehicle.confirmed(), *self._now)] if changed else []
