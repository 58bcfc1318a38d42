"""Short queue of frames to be processed; old frames of a live source are dropped."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Protocol

from roadaware.online.frame_stats import Ending, Outcomes
from roadaware.online.frames import SourceFrame

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
