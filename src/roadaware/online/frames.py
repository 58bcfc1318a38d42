"""Frames of a source with their numbers and times, the queue of those that wait, and incidents on their way."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np

from roadaware.addresses import mask_secrets
from roadaware.arrays import Pixels


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


OUTCOMES = MappingProxyType(
    {
        "dropped": "frames passed over because a newer one was there",
        "thinned": "frames passed over because fewer a second were asked for",
        "lost": "frames that never arrived",
        "gap": "times the next frame lay further away than a path may miss: all tubes ended there",
        "undecodable": "frames that could not be decoded",
        "orientation": "images whose EXIF or XMP does not say which way up they are; taken as they lie",
        "doubtful": "frames decoded from damaged data, or after it up to the next key frame",
        "late": "frames left out because they came out of order",
        "duplicate": "frames left out because they had the time of the one before",
        "untimed": "frames that came without a time and got one",
        "silent": "sound tracks that cannot be read, or not from some time on: the video is silent there",
        "rescaled": "frames of another size, scaled to that of the first",
        "rate": "the source states another rate than its times show",
        "jumps": "things are elsewhere in every frame: the video may be faster than it was recorded",
        "fisheye": "the images are circles, as of a fisheye lens: what moves how, and where, is made for straight lenses",
        "clock": "jumps of the source's clock",
        "reconnected": "times the connection was made anew",
    }
)
"""Each outcome with its meaning."""

_ASKED = {"thinned", "rescaled"}

Reason = Literal["end", "time", "stopped", "short", "broken", "gone", "resized", "empty", "disk", "failed"]


@dataclass(frozen=True)
class Ending:
    """Why the source ended.

    Args:
        reason: `end`: all was seen; `time`: as long as asked; `stopped`: somebody stopped it; the others are
            faults: the file ends before its content does (`short`) or is broken (`broken`), the camera is
            `gone`, images changed their size (`resized`), there was none (`empty`), the output could not be
            written (`disk`), the program `failed`.
        message: for people.
    """

    reason: Reason
    message: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", mask_secrets(self.message))

    @property
    def whole(self) -> bool:
        """Whether nothing went wrong."""
        return self.reason in ("end", "time", "stopped")


@dataclass(frozen=True)
class Happening:
    """News of a source.

    Args:
        what: one of `OUTCOMES`.
        count: of frames or times.
        message: for people.
    """

    what: str
    count: int
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", mask_secrets(self.message))


class Outcomes:
    """Counts of incidents; may be called from any thread.

    >>> outcomes = Outcomes()
    >>> outcomes.tell("lost", 3, "3 frames did not arrive")
    >>> outcomes.counts(), [happening.count for happening in outcomes.news()], outcomes.news()
    ({'lost': 3}, [3], [])
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._news: deque[Happening] = deque(maxlen=256)

    def count(self, what: str, n: int = 1) -> None:
        """Count an incident and report it the first time only; incidents that were requested are not reported.

        Args:
            what: one of `OUTCOMES`.
            n: how many more.
        """
        with self._lock:
            if what not in self._counts and what not in _ASKED:
                self._news.append(Happening(what, n, OUTCOMES[what]))
            self._counts[what] = self._counts.get(what, 0) + n

    def tell(self, what: str, n: int, message: str) -> None:
        """Count an incident and report it.

        Args:
            what: one of `OUTCOMES`.
            n: how many more.
            message: for people.
        """
        with self._lock:
            self._counts[what] = self._counts.get(what, 0) + n
            self._news.append(Happening(what, n, message))

    def counts(self) -> dict[str, int]:
        """How often each has happened so far, in the order of `OUTCOMES`."""
        with self._lock:
            return {what: self._counts[what] for what in OUTCOMES if what in self._counts}

    def news(self) -> list[Happening]:
        """The incidents reported since the last call."""
        with self._lock:
            news = list(self._news)
            self._news.clear()
        return news


class Sparing:
    """Rate limit of messages: the first few of each kind, then one from time to time.

    >>> sparing, lost = Sparing(), Happening("lost", 3, "3 frames did not arrive")
    >>> [sparing.words(lost, now_s) for now_s in (0, 1, 2, 3, 3.1, 15)][3:]
    [None, None, '3 frames did not arrive (and 2 times more since this was last said)']
    """

    FEW, EVERY_S = 3, 10.0

    def __init__(self) -> None:
        self._said: dict[str, tuple[int, float, int]] = {}

    def words(self, happening: Happening, now_s: float) -> str | None:
        """The message for an incident; None where it is not shown."""
        times, last_s, unsaid = self._said.get(happening.what, (0, now_s, 0))
        if times >= self.FEW and now_s - last_s < self.EVERY_S:
            self._said[happening.what] = (times, last_s, unsaid + 1)
            return None
        self._said[happening.what] = (times + 1, now_s, 0)
        return happening.message + (f" (and {unsaid} times more since this was last said)" if unsaid else "")


# Latency in little memory: the exact percentiles of the last frames, however many there were.

_KEPT = 1 << 16


class Latency:
    """How long frames took from their arrival until their events were out.

    >>> latency = Latency()
    >>> for n in range(1, 101): latency.add(n / 100)
    >>> latency.percentile_s(50), latency.percentile_s(99)
    (0.5, 0.99)
    """

    def __init__(self) -> None:
        self._held = np.zeros(256)
        self.count, self.longest_s = 0, 0.0

    def add(self, seconds: float) -> None:
        """One more frame."""
        if self.count == len(self._held) < _KEPT:
            self._held = np.concatenate([self._held, np.zeros(len(self._held))])
        self._held[self.count % len(self._held)] = seconds
        self.count, self.longest_s = self.count + 1, max(self.longest_s, seconds)

    def percentile_s(self, share: float) -> float | None:
        """The latency that so many per cent of the last 65,536 frames did not exceed; None before the first.

        Args:
            share: from 0 to 100.
        """
        held = self._held[: min(self.count, len(self._held))]
        if not len(held):
            return None
        # inverted_cdf gives a latency that occurred, not one between two.
        return float(np.percentile(held, share, method="inverted_cdf"))
