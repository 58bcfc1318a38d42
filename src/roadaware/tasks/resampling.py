"""Boxes that come at uneven times, at the even rate that a predictor was trained on; one by one, in constant time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import UsageError


@dataclass(frozen=True)
class Pace:
    """How boxes are brought to an even rate.

    Args:
        rate_fps: frames per second of the predictor.
        bridge_s: two boxes of a pedestrian that are no further apart are joined by a straight line; beyond
            that nothing is known of the time between, and the past is begun anew.
        snap: a box no further than this share of a frame from where an even frame lies is taken for it, and
            even frames are counted from it on. So a video of that rate, or of 29.97 for 30, gives its own
            boxes, whatever its time stamps are rounded to.
        steady_s: boxes are read off a straight line through those that came, see `Line`, in which an old one
            loses all but a third of its weight in so many seconds; 0 takes them as they come.

    Raises:
        UsageError: if a number has no meaning.
    """

    rate_fps: float = 30.0
    bridge_s: float = 0.5
    snap: float = 0.1
    steady_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        seconds = self.bridge_s, self.steady_s
        if not (0 < self.rate_fps <= 1000 and 0 <= self.snap < 0.5 and all(0 <= s <= 60 for s in seconds)):
            raise UsageError(
                "a pace needs a rate up to 1000 frames a second, snap below 0.5, bridge_s and steady_s up to "
                f"60; got {self.rate_fps:g}, {self.snap:g}, {self.bridge_s:g} and {self.steady_s:g}"
            )


class Line:
    """A straight line fitted to past boxes with exponential weights, and its present value.

    Detected boxes tremble; annotated ones, which predictors learn from, do not. The least squares line over
    time, weighted by exp(-age / steady_s), is followed from box to box in constant time. It looks back only,
    and a box that moves evenly is left where it is.

    Args:
        steady_s: see above, more than 0.

    >>> line = Line(0.5)
    >>> [float(line.add(1.0, np.array([x]))[0].round(3)) for x in (0.0, 1.0, 2.0, 2.5)]
    [0.0, 1.0, 2.0, 2.508]
    """

    def __init__(self, steady_s: float) -> None:
        self._steady_s = steady_s
        self._weight, self._age, self._square = 0.0, 0.0, 0.0
        self._sum: Floats = np.zeros(1)
        self._moment: Floats = np.zeros(1)

    def add(self, past_s: float, box: Floats) -> Floats:
        """(4,) where the line is at the newest box.

        Args:
            past_s: seconds since the box before; without meaning at the first.
            box: (4,).
        """
        if not self._weight:
            self._weight, self._sum, self._moment = 1.0, box, np.zeros_like(box)
            return box
        kept = math.exp(-past_s / self._steady_s)
        # Sums over boxes of weight, weight age and weight age^2, and of the boxes; age is 0 at the newest.
        self._square = kept * (self._square + 2 * past_s * self._age + past_s * past_s * self._weight)
        self._moment = kept * (self._moment + past_s * self._sum)
        self._age = kept * (self._age + past_s * self._weight)
        self._sum = kept * self._sum + box
        self._weight = kept * self._weight + 1.0
        apart = self._weight * self._square - self._age * self._age
        return (self._square * self._sum - self._age * self._moment) / apart

    def shift(self, by: Floats) -> None:
        """Shift all past boxes, as a turning camera shifts the past against the newest image.

        Args:
            by: (4,) added to each box.
        """
        self._sum = self._sum + self._weight * by
        self._moment = self._moment + self._age * by


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
        self._line: Line | None = None

    def goes_on(self, t_s: float) -> bool:
        """Whether a box at this time would go on from those before."""
        return 0 < t_s - self.t_s <= self.pace.bridge_s

    def shift(self, by: Floats) -> None:
        """Shift past boxes; see `Line.shift`.

        Args:
            by: (4,) added to each box.
        """
        self._box = self._box + by
        if self._line is not None:
            self._line.shift(by)

    def add(self, t_s: float, box: Floats) -> tuple[Floats, bool]:
        """The resampled frames that one more box makes available.

        Args:
            t_s: its time in seconds.
            box: (4,) x1, y1, x2, y2.

        Returns:
            (k, 4) their boxes, oldest first, and whether the past was begun anew.
        """
        if not self.goes_on(t_s):
            self.t_s, self._next_s = t_s, t_s + 1 / self.pace.rate_fps
            self._line = Line(self.pace.steady_s) if self.pace.steady_s else None
            self._box = box if self._line is None else self._line.add(0.0, box)
            return box[None], True
        if self._line is not None:
            steady = self._line.add(t_s - self.t_s, box)
            # Where a box shrinks fast its line may run through the other side: then the box itself is taken.
            box = steady if bool((steady[2:] >= steady[:2]).all()) else box
        rate, snap = self.pace.rate_fps, self.pace.snap
        # snap: a frame whose time misses that of the newest box by little is the newest box itself.
        due = max(0, math.floor((t_s - self._next_s) * rate + snap) + 1)
        along = [(self._next_s + at / rate - self.t_s) / (t_s - self.t_s) for at in range(due)]
        self._next_s += due / rate
        if due and abs(self._next_s - 1 / rate - t_s) * rate <= snap:
            along[-1], self._next_s = 1.0, t_s + 1 / rate
        frames = self._box + np.array(along).reshape(-1, 1) * (box - self._box)
        self.t_s, self._box = t_s, box
        return frames, False
