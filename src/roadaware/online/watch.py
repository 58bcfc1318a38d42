"""The watch: frames from a source through the watcher to an output, until there are no more."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from PIL import Image

from roadaware.arrays import Pixels
from roadaware.errors import DiskError, InputError
from roadaware.models.detector import Detector
from roadaware.online.config import WatchConfig
from roadaware.online.events import Event
from roadaware.online.frame_stats import Ending, Latency, Sparing
from roadaware.online.frames import Clock, Source, SourceFrame
from roadaware.online.tubes import Annotator
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
        busy_s: of those in the detector and behind it.
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
    busy_s: float = 0.0
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
        self.progress.busy_s += spent_s
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
