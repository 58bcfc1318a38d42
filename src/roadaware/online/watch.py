"""The watch: frames from a source through the watcher to an output or to whoever iterates, until the last."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from PIL import Image

from roadaware.arrays import Floats, Pixels
from roadaware.errors import DiskError, InputError
from roadaware.models.detector import Detector
from roadaware.online.cameras import Camera
from roadaware.online.config import WatchConfig
from roadaware.online.events import Event
from roadaware.online.frames import Clock, Ending, Latency, Source, SourceFrame, Sparing
from roadaware.online.tubes import Annotator, LiveTube
from roadaware.online.watcher import Last, Seen, Watcher

_LOG = logging.getLogger("roadaware")
# How long a request to stop waits at most while no frame comes.
_WAIT_S = 0.25
_FOREVER_S = 1e9


_QUICK_FPS, _MANY_ANEW = 8.0, 0.35
_BLACK = 24
"""Of 255: brighter than what a codec makes of black."""
_CIRCLES = 8
"""Frames from the first on that must be circles before it is said."""
_FISHEYE = (
    "images are circles, as of a fisheye lens; own motion, actions, places and crossing are made for lenses "
    "that keep lines straight: rectify the video first"
)
_JUMPS = (
    "of what is found continues nothing of the frame before: if this video plays faster than it was recorded, say "
    "at how many frames a second that was (--recorded-fps)"
)


class Output(Protocol):
    """Receives the results frame by frame, in order."""

    def add(self, seen: Seen) -> None:
        """Receive the results of a frame.

        Raises:
            DiskError: if it cannot be written.
        """

    def add_events(self, events: Sequence[Event]) -> None:
        """Events that belong to no frame.

        Raises:
            DiskError: if they cannot be written.
        """

    def end(self, last: Last) -> None:
        """Receive the last results when the stream ends.

        Raises:
            DiskError: if it cannot be written.
        """


@dataclass(eq=False)
class Progress:
    """How far a watch is.

    Args:
        frames: that were processed.
        t_s: time of the newest.
        size: (height, width) of the first.
        last_number: of the newest.
        spent_s: since the watch began.
        latency: of its frames.
        tubes: the reported ones that were found in the newest frame.
        begun: tubes that were reported.
        probable: pedestrians who live and will probably cross.
        ending: why it is over; None while it goes on.
        expected: at the end, what came of what was expected, see `ExpectationTally`; None where nothing was.
    """

    frames: int = 0
    t_s: float = 0.0
    size: tuple[int, int] | None = None
    last_number: int = -1
    spent_s: float = 0.0
    latency: Latency = field(default_factory=Latency)
    tubes: int = 0
    begun: int = 0
    probable: int = 0
    ending: Ending | None = None
    expected: dict[str, Any] | None = None


def watch(
    source: Source,
    detector: Detector,
    config: WatchConfig,
    output: Output,
    *,
    clock: Clock,
    stopped: Callable[[], bool] = lambda: False,
    tick: Callable[[Progress], None] | None = None,
    annotators: Sequence[Annotator] = (),
) -> Progress:
    """Run detector and linker on a source to its end; whatever ends it, all results are given to the output.

    Args:
        source: is not closed.
        detector: is reset.
        config: how.
        output: is ended, but where it fails itself.
        clock: of the source too.
        stopped: asked between frames whether to stop.
        tick: called after each frame, and while none comes.
        annotators: say more of live tubes.

    Returns:
        How far it came, and why it ended; faults of source and disk are reported there. Any other fault is raised
        once the output is ended.
    """
    steps = follow_source(
        source, detector, config, output, clock=clock, stopped=stopped, tick=tick, annotators=annotators
    )
    # Runs the steps to their end and keeps the last.
    return deque(steps, maxlen=1)[0]


def follow_source(
    source: Source,
    detector: Detector,
    config: WatchConfig,
    output: Output,
    *,
    clock: Clock,
    stopped: Callable[[], bool] = lambda: False,
    tick: Callable[[Progress], None] | None = None,
    annotators: Sequence[Annotator] = (),
) -> Iterator[Progress]:
    """What `watch` does, step by step: after each frame, or wait for one, how far it is; last once all is given.

    Whoever stops asking leaves the output as it is: neither what the detector owes nor the ends of tubes are
    given.

    Args:
        source, detector, config, output, clock, stopped, tick, annotators: see `watch`.
    """
    linker = config.linker_at(source.fps)
    watcher = Watcher(detector, config, linker, clock, annotators, source.fps)
    run = _Run(source, watcher, output, clock)
    begin_s = clock.now_s()
    while run.progress.ending is None:
        try:
            if stopped():
                ending = Ending("stopped")
            elif config.seconds is not None and max(run.progress.t_s, 0.0) >= config.seconds > 0:
                ending = Ending("time")
            else:
                ending = None
            run.progress.ending = ending or run.step(config)
            run.progress.spent_s = clock.now_s() - begin_s
            if tick is not None:
                tick(run.progress)
        except Exception as error:
            run.progress.ending = Ending("failed", f"{type(error).__name__}: {error}")
            run.end(owed=False)
            raise
        if run.progress.ending is None:
            yield run.progress
    run.end()
    yield run.progress


class _Run:
    """One watch while it goes on."""

    def __init__(self, source: Source, watcher: Watcher, output: Output, clock: Clock) -> None:
        self.source, self.watcher, self.output, self.clock = source, watcher, output, clock
        self.progress = Progress()
        self._usual_s = 0.0
        self._sparing = Sparing()
        self._jumps_reported = False
        self._circles = 0

    def step(self, config: WatchConfig) -> Ending | None:
        """One frame, or a short wait; why there are no more."""
        try:
            return self._step(config)
        except DiskError as error:
            return Ending("disk", str(error))
        except InputError as error:
            return Ending("failed", str(error))

    def end(self, *, owed: bool = True) -> None:
        """Give the last results to the output.

        Args:
            owed: ask the detector for the frames that it still owes.
        """
        ending = self.progress.ending
        faulty = ending is not None and ending.reason in ("disk", "failed")
        try:
            if owed and not faulty:
                for seen in self.watcher.rest():
                    self._take(seen)
                self._tell()
        except (DiskError, InputError) as error:
            self.progress.ending = Ending("disk" if isinstance(error, DiskError) else "failed", str(error))
        self.progress.expected = self.watcher.tubes.tally.summary()
        try:
            self.output.end(self.watcher.end())
        except DiskError as error:
            self.progress.ending = Ending("disk", str(error))

    def _step(self, config: WatchConfig) -> Ending | None:
        frame = self.source.next(self._patience_s(config), _WAIT_S)
        self._tell()
        if frame is None:
            return self.source.ending
        fitted = self._fitted(frame, config)
        if fitted is None:
            was, now = self.progress.size or (0, 0), frame.picture.shape
            sizes = f"{was[1]}x{was[0]} are followed by one of {now[1]}x{now[0]}"
            return Ending("resized", f"images of {sizes} at frame {frame.number}")
        before = self.progress.last_number
        linker = self.watcher.linker_config
        late = frame.t_s - self.progress.t_s > linker.jump_gap_s
        if before >= 0 and frame.number - before > linker.jump_gap and late:
            self.source.outcomes.count("gap")
        begin_s = self.clock.now_s()
        for seen in self.watcher.step(fitted):
            self._take(seen)
        spent_s = self.clock.now_s() - begin_s
        self._notice_jumps()
        self._notice_fisheye(frame.picture)
        # A moving mean: one slow frame must not have the next ones dropped.
        self._usual_s = spent_s if not self.progress.frames else 0.8 * self._usual_s + 0.2 * spent_s
        self.progress.frames += 1
        self.progress.t_s, self.progress.last_number = frame.t_s, frame.number
        return None

    def _patience_s(self, config: WatchConfig) -> float:
        """How old a waiting frame may be: so that it can be answered within the budget."""
        if not self.source.live:
            return _FOREVER_S
        return 0.0 if config.budget_s is None else max(0.0, config.budget_s - self._usual_s)

    def _fitted(self, frame: SourceFrame, config: WatchConfig) -> SourceFrame | None:
        """The frame in the size of the first; None if it has another and that is not asked for."""
        size = frame.picture.shape[:2]
        if self.progress.size is None:
            self.progress.size = (size[0], size[1])
        if size == self.progress.size:
            return frame
        if not config.rescale:
            return None
        self.source.outcomes.count("rescaled")
        image = Image.fromarray(frame.picture).resize(
            (self.progress.size[1], self.progress.size[0]), Image.Resampling.BILINEAR
        )
        return replace(frame, picture=np.asarray(image))

    def _take(self, seen: Seen) -> None:
        self.output.add(seen)
        self.progress.latency.add(seen.latency_s)
        self.progress.tubes, self.progress.begun = len(seen.tubes), self.watcher.begun
        self.progress.probable = self.watcher.tubes.probable

    def _notice_jumps(self) -> None:
        """Report once a video in which hardly anything is found again in the next frame."""
        share, fps = self.watcher.share_anew, self.source.fps
        if self._jumps_reported or self.source.live or fps is None or fps < _QUICK_FPS:
            return
        if share is not None and share > _MANY_ANEW:
            self._jumps_reported = True
            self.source.outcomes.tell("jumps", 1, f"{share:.0%} {_JUMPS}")

    def _notice_fisheye(self, image: Pixels) -> None:
        """Report once, when the first frames have all been circles."""
        if self._circles == self.progress.frames < _CIRCLES and is_circular(image):
            self._circles += 1
            if self._circles == _CIRCLES:
                self.source.outcomes.tell("fisheye", 1, _FISHEYE)

    def _tell(self) -> None:
        """Log what happened to the source, and write all of it into the events."""
        news = self.source.outcomes.news()
        for happening in news:
            words = self._sparing.words(happening, self.clock.now_s())
            if words is not None:
                _LOG.warning("%s: %s", self.source.name, words)
        if news:
            self.output.add_events(self.watcher.report_source(news))


def is_circular(image: Pixels) -> bool:
    """Whether an image is a circle on black, as many fisheye lenses give, whole or cut at its sides.

    The black at both ends of a row shrinks from the uppermost rows to the middle one and grows again to the lowest;
    bars of a cinema film or of an upright one have the same black in each row.

    Args:
        image: (h, w, 3) RGB.

    >>> y, x = np.mgrid[-60:60, -80:80]
    >>> bright = np.full((120, 160, 3), 90, np.uint8)
    >>> is_circular(bright), is_circular(np.where((x**2 + y**2 < 78**2)[..., None], bright, 0).astype(np.uint8))
    (False, True)
    """
    light = image.max(axis=2) > _BLACK
    rows = np.flatnonzero(light.any(axis=1))
    height, width = light.shape
    middle = image[height * 2 // 5 : height * 3 // 5, width * 2 // 5 : width * 3 // 5]
    if len(rows) < 20 or middle.mean() < 2 * _BLACK:
        return False
    # At the top, a quarter, the middle, three quarters and the bottom of what is not black.
    asked = light[
        rows[[len(rows) // 50, len(rows) // 5, len(rows) // 2, -len(rows) // 5, -1 - len(rows) // 50]]
    ]
    for black in (asked.argmax(axis=1), asked[:, ::-1].argmax(axis=1)):
        top, upper, half, lower, bottom = (black / width).tolist()
        if not (top > upper >= half <= lower < bottom and min(top, bottom) > half + 0.06):
            return False
    return True


@dataclass(frozen=True, eq=False)
class WatchedTube:
    """A tube as it stands in one frame.

    Args:
        number: of the tube, never used again in this watch.
        box: (4,) x1, y1, x2, y2 in pixels of the frame.
        score: mean agentness of its boxes so far, in [0, 1].
        labels: kind to label to smoothed score, best first; kinds without a label are left out.
        first_frame: number of the frame in which it began.
        crossing: of a pedestrian, what is expected: `probability` and others, as events have it; None where
            nobody was asked.
        risk: of a pedestrian, the `region` of the image that is at risk, and its `probability`; None where
            nobody was asked.
        expected: what is expected of it: `in_s` seconds ahead, `seen` (the probability that it still is), `box` in pixels
            and `labels`; None where nobody asks.
    """

    number: int
    box: Floats
    score: float
    labels: Mapping[str, Mapping[str, float]]
    first_frame: int
    crossing: Mapping[str, Any] | None = None
    risk: Mapping[str, Any] | None = None
    expected: Mapping[str, Any] | None = None

    @property
    def agent(self) -> str | None:
        """What it is, such as `Ped` or `Car`; None where no agent is told of it."""
        return next(iter(self.labels.get("agent", {})), None)


@dataclass(frozen=True, eq=False)
class WatchedFrame:
    """A frame and what became known by it.

    Args:
        number: counts from 0; numbers that are missing belong to frames that did not arrive or were dropped.
        t_s: when it is shown, in seconds after the first frame.
        image: (H, W, 3) uint8, red first.
        tubes: those that were found in it and are proven, by their numbers.
        events: what changed, in order, as lines of `events.jsonl` have it.
        vehicle: actions of the own vehicle with their smoothed scores; empty where the detector tells none.
    """

    number: int
    t_s: float
    image: Pixels = field(repr=False)
    tubes: tuple[WatchedTube, ...] = ()
    events: tuple[Event, ...] = ()
    vehicle: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        said = f"{len(self.tubes)} tubes, {len(self.events)} events"
        return f"WatchedFrame({self.number} at {self.t_s:.2f} s: {said})"


class Watch(Iterator[WatchedFrame]):
    """The frames of a source, looked at as they are asked for; a context manager that closes it.

    It closes itself after the last frame, at an error, and when nobody holds it any more.

    Args:
        source: is closed with it.
        detector: that looks; of this watch alone as long as it goes on.
        config: how.
        clock: of the source too.
        annotators: say more of live tubes.
        close: what else is done when it is closed.
    """

    def __init__(
        self,
        source: Source,
        detector: Detector,
        config: WatchConfig,
        clock: Clock,
        annotators: Sequence[Annotator] = (),
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._source, self._close = source, close
        self._closed = False
        # No method of its own: a generator that held the watch would keep it alive.
        self._frames = _iterate_frames(source, detector, config, clock, annotators)

    @property
    def name(self) -> str:
        """What is watched: the name of a file, or an address without its secrets."""
        return self._source.name

    @property
    def fps(self) -> float | None:
        """Frames a second of the source; None where that is not known."""
        return self._source.fps

    @property
    def closed(self) -> bool:
        """Whether the source was let go of."""
        return self._closed

    def __next__(self) -> WatchedFrame:
        """The next frame.

        Raises:
            InputError: if the source failed before its end; all frames until then were given.
        """
        if self._closed:
            raise StopIteration
        try:
            return next(self._frames)
        except BaseException:  # its end too
            self.close()
            raise

    def close(self) -> None:
        """Let go of the source; no frames follow."""
        if self._closed:
            return
        self._closed = True
        try:
            self._frames.close()
        finally:
            try:
                self._source.close()
            finally:
                self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            with suppress(Exception):  # nobody is there to be told, and the interpreter may be ending
                self.close()

    def __repr__(self) -> str:
        return f"Watch({self.name}{', closed' if self._closed else ''})"


class _Collected:
    """An output of a watch that holds what was seen until somebody takes it."""

    def __init__(self) -> None:
        self.frames: list[WatchedFrame] = []
        self.loose: list[Event] = []

    def add(self, seen: Seen) -> None:
        """What a frame brought, behind the events since the frame before it."""
        before, self.loose = self.loose, []
        self.frames.append(
            WatchedFrame(
                seen.frame.number,
                seen.frame.t_s,
                seen.frame.picture,
                tuple(_copy_tube(tube) for tube in seen.tubes),
                (*before, *seen.events),
                dict(seen.vehicle),
            )
        )

    def add_events(self, events: Sequence[Event]) -> None:
        """Events that belong to no frame."""
        self.loose += events

    def end(self, last: Last) -> None:
        """The ends of tubes."""
        self.loose += last.events

    def take(self) -> list[WatchedFrame]:
        """The frames that came since it was asked."""
        found, self.frames = self.frames, []
        return found


def _copy_tube(tube: LiveTube) -> WatchedTube:
    """A live tube as it is now; the tube itself goes on changing."""
    expected = {} if tube.outlook is None else tube.outlook.fields()
    return WatchedTube(
        tube.number,
        tube.box.copy(),
        tube.score,
        tube.labels.confirmed(),
        tube.first_frame,
        expected.get("crossing"),
        expected.get("risk"),
        None if tube.expected is None else tube.expected.fields()["expected"],
    )


def _iterate_frames(
    source: Source, detector: Detector, config: WatchConfig, clock: Clock, annotators: Sequence[Annotator]
) -> Generator[WatchedFrame, None, None]:
    """The frames; the last one of a video has the events of the end, behind a live one they follow by themselves.

    Raises:
        InputError: if the source failed before its end.
    """
    if isinstance(source, Camera):
        source.refresh()  # what nobody read while everything was opened is stale
    output = _Collected()
    newest: WatchedFrame | None = None
    ending = None
    for progress in follow_source(source, detector, config, output, clock=clock, annotators=annotators):
        ending = progress.ending
        for frame in output.take():
            # A video can wait: its newest frame is held until it is known whether another one follows.
            if source.live:
                yield frame
            elif newest is not None:
                yield newest
            newest = frame
    rest = tuple(output.loose)
    if newest is not None and not source.live:
        yield replace(newest, events=(*newest.events, *rest))
    elif newest is not None and rest:
        yield replace(newest, tubes=(), events=rest)
    if ending is not None and not ending.whole:
        hint = "all frames until then were given" if newest is not None else None
        raise InputError(ending.message, where=source.name, hint=hint)
