"""Frames of a source with their real numbers and times, the interface of all sources, and the queue of those that wait."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from roadaware.arrays import Pixels
from roadaware.online.frame_stats import Ending, Outcomes


@dataclass(frozen=True, eq=False)
class SourceFrame:
    """An image of a source.

    Args:
        number: counts from 0; numbers that are missing belong to frames that did not arrive.
        t_s: when it is shown, in seconds after the first frame; later than that of the frame before.
        picture: (H, W, 3) uint8, red first.
        arrived_s: when it came, on the clock of the watch.
    """

    number: int
    t_s: float
    picture: Pixels
    arrived_s: float


class Source(Protocol):
    """A source of frames."""

    @property
    def name(self) -> str:
        """For people and tables."""

    @property
    def live(self) -> bool:
        """Whether the source is live: frames that are not taken in time are lost."""

    @property
    def fps(self) -> float | None:
        """Frames per second by their times; None where unknown."""

    @property
    def n_frames(self) -> int | None:
        """Number of frames; None where unknown."""

    @property
    def path(self) -> str | None:
        """The file; None where it is none."""

    @property
    def start_s(self) -> float:
        """Time of the first frame on the file's own clock."""

    @property
    def outcomes(self) -> Outcomes:
        """Counts of incidents."""

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame to process; None if none came in time, or the source has ended (see `ending`).

        Args:
            patience_s: of a live source's waiting frames those older than this are dropped, but for the
                newest; others ignore it.
            wait_s: how long to wait for one.
        """

    @property
    def ending(self) -> Ending | None:
        """Why the source ended; None while it is open."""

    def close(self) -> None:
        """Let go of the source."""


# The clock that everything live goes by, handed in so that tests decide what time it is.


class Clock(Protocol):
    """Seconds that never go back, and the way to wait for them."""

    def now_s(self) -> float:
        """Seconds since some moment."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The clock of the machine; setting its date does not move it."""

    def now_s(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(max(0.0, seconds))


# A longer queue of a live source holds frames that are stale when their turn comes.
ROOM = 2
"""How many frames wait at most."""


class Waiting:
    """A queue between the thread that a camera fills and the one that watches; the oldest is dropped.

    Args:
        clock: measures how old a frame is.
        outcomes: counts what is dropped.
    """

    def __init__(self, clock: Clock, outcomes: Outcomes) -> None:
        self._clock, self._outcomes = clock, outcomes
        self._frames: deque[SourceFrame] = deque()
        self._changed = threading.Condition()
        self._ending: Ending | None = None

    def put(self, frame: SourceFrame) -> None:
        """Add the newest frame."""
        with self._changed:
            if len(self._frames) >= ROOM:
                self._frames.popleft()
                self._outcomes.count("dropped")
            self._frames.append(frame)
            self._changed.notify()

    def end(self, ending: Ending) -> None:
        """Close the queue: no more frames are added."""
        with self._changed:
            self._ending = self._ending or ending
            self._changed.notify()

    @property
    def ending(self) -> Ending | None:
        """Why the source ended, once all frames were taken."""
        with self._changed:
            return None if self._frames else self._ending

    def take(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The oldest frame that is not older than `patience_s`, else the newest; None if there is none.

        Args:
            patience_s: what is older is dropped.
            wait_s: how long to wait for a frame.
        """
        with self._changed:
            if not self._frames and self._ending is None and wait_s > 0:
                self._changed.wait(wait_s)
            if not self._frames:
                return None
            oldest_s = self._clock.now_s() - patience_s
            while len(self._frames) > 1 and self._frames[0].arrived_s < oldest_s:
                self._frames.popleft()
                self._outcomes.count("dropped")
            return self._frames.popleft()
