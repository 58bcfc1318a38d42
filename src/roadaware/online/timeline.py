"""Numbers and times for the frames of a live source, from its time stamps and the times of arrival."""

from __future__ import annotations

import math
import statistics
from collections import deque

from roadaware.online.frame_stats import Outcomes

# Odd: the median is then one of the steps.
_SPAN = 31
_ENOUGH = 5
# Frames that overtake each other are taken to do so within a second; more is another clock.
_BACK_S = 1.0
_JUMP_S = 10.0
_USUAL_S = 1 / 25
# Steps of next to nothing would make every later step a loss of a thousand frames.
_LEAST_S = 1e-3


class Timeline:
    """Places frames one after the other; gaps become missing numbers.

    The rate is the median of the last steps, so that neither jitter nor a camera that states a wrong rate or
    changes it in the dark lets frames seem lost for long.

    Args:
        outcomes: counts what happened.
    """

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._steps: deque[float] = deque(maxlen=_SPAN)
        self._number, self._t_s = -1, 0.0
        self._stated_s: float | None = None
        self._arrived_s = 0.0

    @property
    def period_s(self) -> float | None:
        """Seconds between frames; None until a few were seen."""
        return max(statistics.median(self._steps), _LEAST_S) if len(self._steps) >= _ENOUGH else None

    def broke(self) -> None:
        """Note a lost connection: time stamps of the next one are not comparable with those before."""
        self._stated_s = None

    def place(self, stated_s: float | None, arrived_s: float) -> tuple[int, float] | None:
        """Number and time of the next frame; None where it is to be left out.

        Args:
            stated_s: when it is shown, as the source says.
            arrived_s: when it came.
        """
        waited_s = arrived_s - self._arrived_s
        if stated_s is not None and not math.isfinite(stated_s):
            stated_s = None
        if stated_s is None:
            self._outcomes.count("untimed")
        if self._number < 0:
            return self._placed(0, 0.0, stated_s, arrived_s)
        if stated_s is None or self._stated_s is None:
            return self._later(max(waited_s, 1e-3), stated_s, arrived_s)
        step_s = stated_s - self._stated_s
        if step_s <= 0 and waited_s > _BACK_S:
            # No frame is late for so long: the clock stands still, or runs backwards.
            said = "the clock of the source does not go on; times go on as frames came"
            self._outcomes.tell("clock", 1, said)
            return self._later(waited_s, stated_s, arrived_s)
        if step_s == 0:
            self._outcomes.count("duplicate")
            return None
        if -_BACK_S < step_s < 0:
            self._outcomes.count("late")
            return None
        if step_s < 0 or abs(step_s - waited_s) > _JUMP_S:
            said = f"the clock of the source jumped by {step_s - waited_s:+.1f} s; times go on as frames came"
            self._outcomes.tell("clock", 1, said)
            return self._later(max(waited_s, self.period_s or _USUAL_S), stated_s, arrived_s)
        self._steps.append(step_s)
        return self._later(step_s, stated_s, arrived_s)

    def _later(self, step_s: float, stated_s: float | None, arrived_s: float) -> tuple[int, float]:
        missed = max(0, round(step_s / self.period_s) - 1) if self.period_s else 0
        if missed:
            what = "a frame" if missed == 1 else f"{missed:,} frames"
            self._outcomes.tell("lost", missed, f"{what} did not arrive")
        return self._placed(self._number + 1 + missed, self._t_s + step_s, stated_s, arrived_s)

    def _placed(self, number: int, t_s: float, stated_s: float | None, arrived_s: float) -> tuple[int, float]:
        self._number, self._t_s, self._stated_s, self._arrived_s = number, t_s, stated_s, arrived_s
        return number, t_s


class Thinning:
    """Selects frames evenly in time, at most so many a second.

    Args:
        fps: at most so many; None for all.

    >>> thinning = Thinning(10.0)
    >>> [n for n in range(12) if thinning.takes(n / 30)]
    [0, 3, 6, 9]
    >>> [n for n in (30, 31, 32, 33, 36) if thinning.takes(n / 30)]
    [30, 33, 36]
    """

    def __init__(self, fps: float | None) -> None:
        self._period_s = 1 / fps if fps else 0.0
        self._due_s = 0.0

    def takes(self, t_s: float) -> bool:
        """Whether a frame is taken; to be called frame after frame."""
        if not self._period_s:
            return True
        # Sums of periods miss round times by the last bits.
        if t_s < self._due_s - 1e-6:
            return False
        # What a gap has cost is not made up for by a burst.
        late = t_s > self._due_s + self._period_s
        self._due_s = (t_s if late else self._due_s) + self._period_s
        return True
