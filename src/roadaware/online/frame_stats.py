"""Incidents of frames on their way, by name: always counted, reported when they are new."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from roadaware.addresses import mask_secrets

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
        """The message for an incident; None where it is not shown.

        Args:
            happening: the news.
            now_s: on any clock that goes on.
        """
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
