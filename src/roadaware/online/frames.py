"""Frames of a source with their real numbers and times, and the interface of all sources."""

from __future__ import annotations

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
