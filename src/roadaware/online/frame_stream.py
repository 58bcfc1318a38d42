"""A watch as an iterator: frames with their tubes and events, one after another, and the source let go of."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from roadaware.arrays import Floats, Pixels
from roadaware.errors import InputError
from roadaware.models.detector import Detector
from roadaware.online.cameras import Camera
from roadaware.online.config import WatchConfig
from roadaware.online.events import Event
from roadaware.online.frames import Clock, Source
from roadaware.online.tubes import Annotator, LiveTube
from roadaware.online.watch import follow_source
from roadaware.online.watcher import Last, Seen


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
