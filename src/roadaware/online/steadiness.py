"""Steadiness: whether a camera is as steady as those of the predictors' training data."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from roadaware.online.camera_motion import CameraMotion

HEIGHT, SHAKE = "height", "shake"
"""Keys of a predictor's limits: the least height of a box, as a share of that of the image; and how much
the motion of the image may change from frame to frame, in heights of the image in 1/30 s, root mean
square."""
LIMITS = "limits"
# JAAD and PIE have 30 frames a second, and limits of predictors are stated for their steps.
_RATE_FPS, _LEAST_STEP = 30.0, 0.75
STILL = 0.0005
"""A camera that moves the image by less than this share of its height in a frame stands still."""
_TURNING, _TURNED = 0.01, 0.15
"""Shares of the image's width: moved by so much within an observation it turns; a turn may be so large."""


class _Facts(Protocol):
    """What has facts."""

    @property
    def facts(self) -> Mapping[str, object]: ...


def find_strictest_limits(predictors: Sequence[_Facts]) -> dict[str, float]:
    """The strictest limit of each kind that one of several predictors has.

    Args:
        predictors: of one watch; those without limits set none.

    >>> from types import SimpleNamespace as Of
    >>> stated = [{"height": 0.03}, {"height": 0.02, "shake": 0.01}]
    >>> find_strictest_limits([Of(facts={"limits": each}) for each in stated])
    {'height': 0.03, 'shake': 0.01}
    """
    found: dict[str, float] = {}
    for name, strictest in ((HEIGHT, max), (SHAKE, min)):
        stated = [
            held[name]
            for each in predictors
            if isinstance(held := each.facts.get(LIMITS), Mapping) and name in held
        ]
        numbers = [float(each) for each in stated if isinstance(each, (int, float)) and 0 < each < math.inf]
        if numbers:
            found[name] = strictest(numbers)
    return found


class Steadiness:
    """Follows how a camera turns and shakes, over the time that an observation takes.

    The past of pedestrians is held against the newest image: what the camera did is taken out of it. While
    the camera turns, everything is held against the image in which the turn began, because where somebody
    is seen says who crosses, and a turn moves everybody through the image. It does so only for a part of
    the image's width; beyond, nothing is known until the camera points somewhere again.

    Args:
        span_s: that an observation takes.
        shake: how much the motion may change, see `SHAKE`; None for any.
    """

    def __init__(self, span_s: float, shake: float | None) -> None:
        self._span_s, self._limit = span_s, shake
        self._before: tuple[float, float] | None = None
        self._step = (0.0, 0.0, 0.0)
        self._t_s: float | None = None
        self._changes: deque[tuple[float, float]] = deque()
        self._shifts: deque[tuple[float, float, float]] = deque()
        self.turned_px = (0.0, 0.0)
        self._width_px = 1

    def add(self, t_s: float, motion: CameraMotion, size_px: tuple[int, int]) -> tuple[float, float]:
        """Take the motion since the frame before.

        Args:
            t_s: time of the frame.
            motion: of its image.
            size_px: width and height of the image.

        Returns:
            What the past has to be moved by, in pixels to the right and down, for boxes from which
            `turned_px` is taken.
        """
        past_s, self._t_s = (0.0 if self._t_s is None else t_s - self._t_s), t_s
        self._width_px = size_px[0]
        for held in (self._changes, self._shifts):
            # The last bits of times must not decide whether a frame is within the span.
            while held and t_s - held[0][0] > self._span_s + 1e-6:
                held.popleft()
        if past_s <= 0:
            return 0.0, 0.0
        self._note_change(t_s, past_s, motion, size_px[1])
        # Below, the estimate is noise, which summed over an observation would look like a turn.
        still = not motion.known or math.hypot(motion.dx, motion.dy) < STILL * size_px[1]
        shift = (0.0, 0.0) if still else (motion.dx, motion.dy)
        self._shifts.append((t_s, *shift))
        return self._turn(shift)

    def _note_change(self, t_s: float, past_s: float, motion: CameraMotion, height_px: int) -> None:
        """By how much the motion differs from that of the frame before."""
        if not motion.known:
            self._before, self._step = None, (0.0, 0.0, 0.0)
            # Unknown counts as the worst: one such frame makes the root mean square infinite.
            self._changes.append((t_s, math.inf))
            return
        x, y, s = self._step
        self._step = (x + motion.dx, y + motion.dy, s + past_s)
        if self._step[2] < _LEAST_STEP / _RATE_FPS:  # of a fast camera, steps are those of several frames
            return
        rate = 1.0 / (self._step[2] * _RATE_FPS * height_px)
        now = (self._step[0] * rate, self._step[1] * rate)
        if self._before is not None:
            self._changes.append((t_s, math.dist(now, self._before)))
        self._before, self._step = now, (0.0, 0.0, 0.0)

    def _turn(self, shift: tuple[float, float]) -> tuple[float, float]:
        """Begin, continue or end a turn; what the past has to be moved by."""
        way = math.hypot(*(sum(each[k] for each in self._shifts) for k in (1, 2)))
        x, y = self.turned_px[0] + shift[0], self.turned_px[1] + shift[1]
        if way >= _TURNING * self._width_px:
            self.turned_px = (x, y)
            return 0.0, 0.0
        self.turned_px = (0.0, 0.0)
        return x, y

    @property
    def shake(self) -> float:
        """Root mean square of the changes, see `SHAKE`; infinite where the motion could not be estimated."""
        if not self._changes:
            return 0.0
        return math.sqrt(sum(change * change for _, change in self._changes) / len(self._changes))

    @property
    def shaking(self) -> bool:
        """Whether the image motion is less even than allowed, or unknown."""
        # Without a limit only the unknown, which is infinite, is too much.
        return self.shake > (self._limit if self._limit is not None else 1e9)

    @property
    def turned_away(self) -> bool:
        """Whether the camera has turned too far to use earlier positions."""
        return math.hypot(*self.turned_px) > _TURNED * self._width_px
