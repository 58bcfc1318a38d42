"""Frames of a source with their real numbers and times, and what every source answers."""

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
    """Where frames come from."""

    @property
    def name(self) -> str:
        """For people and tables."""

    @property
    def live(self) -> bool:
        """Whether frames come by themselves, and are lost if nobody takes them."""

    @property
    def fps(self) -> float | None:
        """Frames per second as their times show; None where that is not known."""

    @property
    def n_frames(self) -> int | None:
        """How many there are; None where that is not known."""

    @property
    def path(self) -> str | None:
        """The file; None where it is none."""

    @property
    def start_s(self) -> float:
        """Time of the first frame on the file's own clock."""

    @property
    def outcomes(self) -> Outcomes:
        """What happened to frames."""

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame to look at; None if none came in time, or none will come (see `ending`).

        Args:
            patience_s: of a live source's waiting frames those older than this are dropped, but for the
                newest; others ignore it.
            wait_s: how long to wait for one.
        """

    @property
    def ending(self) -> Ending | None:
        """Why no more frames come; None while some may."""

    def close(self) -> None:
        """Let go of the source."""
