"""Pacing: boxes of a stream, at whatever times they came, at the even rate that a predictor learnt from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.errors import UsageError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pace:
    """How boxes are brought to an even rate.

    Args:
        rate_fps: frames per second of the predictor.
        bridge_s: two boxes of a pedestrian that are no further apart are joined by a straight line; beyond
            that nothing is known of the time between, and the past is begun anew.
        snap: a box no further than this share of a frame from where an even frame lies is taken for it, and
            even frames are counted from it on. So a film of that rate, or of 29.97 for 30, gives its own
            boxes, whatever its time stamps are rounded to.

    Raises:
        UsageError: if a number has no meaning.
    """

    rate_fps: float = 30.0
    bridge_s: float = 0.5
    snap: float = 0.1

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if not (0 < self.rate_fps <= 1000 and 0 <= self.bridge_s <= 60 and 0 <= self.snap < 0.5):
            raise UsageError(
                "a pace needs a rate up to 1000 frames a second, a bridge up to 60 s, and snap below 0.5; "
                f"got {self.rate_fps:g}, {self.bridge_s:g} and {self.snap:g}"
            )


class Paced:
    """The even frames of one pedestrian.

    A frame lies at the first box, and the next ones at even distances behind it. One that lies between two
    boxes has the box between them, as far along as its time; it is known when the later box is. No frame
    lies behind the newest box, but for `snap`.

    Args:
        pace: how.

    >>> paced = Paced(Pace(rate_fps=30))
    >>> paced.add(0.0, np.array([0.0, 0, 10, 10]))[0].tolist()
    [[0.0, 0.0, 10.0, 10.0]]
    >>> paced.add(0.1, np.array([3.0, 0, 13, 10]))[0][:, 0].round(6).tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.t_s, self._next_s = -math.inf, -math.inf
        self._box: Floats = np.zeros(4)

    def goes_on(self, t_s: float) -> bool:
        """Whether a box at this time would go on from those before."""
        return 0 < t_s - self.t_s <= self.pace.bridge_s

    def add(self, t_s: float, box: Floats) -> tuple[Floats, bool]:
        """The even frames that became known by one more box.

        Args:
            t_s: its time in seconds.
            box: (4,) x1, y1, x2, y2.

        Returns:
            (k, 4) their boxes, oldest first, and whether the past was begun anew.
        """
        if not self.goes_on(t_s):
            self.t_s, self._box, self._next_s = t_s, box, t_s + 1 / self.pace.rate_fps
            return box[None], True
        rate, snap = self.pace.rate_fps, self.pace.snap
        due = max(0, math.floor((t_s - self._next_s) * rate + snap) + 1)
        along = [(self._next_s + at / rate - self.t_s) / (t_s - self.t_s) for at in range(due)]
        self._next_s += due / rate
        if due and abs(self._next_s - 1 / rate - t_s) * rate <= snap:
            along[-1], self._next_s = 1.0, t_s + 1 / rate
        frames = self._box + np.array(along).reshape(-1, 1) * (box - self._box)
        self.t_s, self._box = t_s, box
        return frames, False
