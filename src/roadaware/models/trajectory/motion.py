"""States of people over time, and motion models without a network: constant velocity, a linear fit, a Kalman filter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError

_ENOUGH = 4000
_LEAST_DEVIATION = 1e-3
"""Of a predicted place, in scales: what stands still in training is not known to a thousandth of its height."""


@dataclass(frozen=True, eq=False)
class States:
    """What was observed of n people at t steps, relative to the newest one.

    Args:
        past: (n, t, d) states, oldest first; the newest is 0. d is 4 for boxes: x and y of the centre in heights of the
            newest box, logarithms of width and height over those of the newest; d is 2 for places on the ground, in metres.
        position: (n, 3) x and y of the newest centre and the height of its box, in parts of the image; 0 where unknown.
        step_s: seconds from one step to the next.

    Raises:
        InputError: if shapes do not go together, or a number is not finite.
    """

    past: Floats
    position: Floats
    step_s: float

    def __post_init__(self) -> None:
        n = len(self.past)
        if self.past.ndim != 3 or self.past.shape[2] not in (2, 4) or self.position.shape != (n, 3):
            raise InputError(
                f"states {self.past.shape} and positions {self.position.shape} should be (n, t, 2 or 4) and (n, 3)"
            )
        if self.past.shape[1] < 2 or not self.step_s > 0:
            raise InputError(
                f"two steps at least are observed, some time apart; got {self.past.shape[1]} every {self.step_s} s"
            )
        if not (np.isfinite(self.past).all() and np.isfinite(self.position).all()):
            raise InputError("states and positions should be finite")

    def __len__(self) -> int:
        return len(self.past)

    def some(self, rows: slice | Ints) -> Self:
        """The states of some people."""
        return replace(self, past=self.past[rows], position=self.position[rows])


@dataclass(frozen=True, eq=False)
class StateForecast:
    """A mixture of K paths of states at m steps; the components of a person are independent over steps given the path.

    Args:
        weight: (n, k) summing to 1.
        mean: (n, k, m, d).
        deviation: (n, k, m, d).
        correlation: (n, k, m) of x and y.
    """

    weight: Floats
    mean: Floats
    deviation: Floats
    correlation: Floats


class Motion(Protocol):
    """What predicts states."""

    def forecast(self, states: States, steps: int) -> StateForecast:
        """The states of the coming steps."""


def _single(mean: Floats, deviation: Floats) -> StateForecast:
    """A forecast of one path: means (n, m, d), deviations (m, d) that all people share."""
    n, m, _ = mean.shape
    shared = np.broadcast_to(np.maximum(deviation, _LEAST_DEVIATION), mean.shape)[:, None]
    return StateForecast(np.ones((n, 1)), mean[:, None], np.array(shared), np.zeros((n, 1, m)))


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """A straight line on from the observed states, with normal errors that grow as they did in training.

    Args:
        kind: `velocity`, that between two observed steps; or `line`, the least-squares line.
        lookback: steps between the two, of `velocity`; steps before the newest that the line goes through.
        deviation: (m, d) of the errors at each step, in training.
    """

    kind: str
    lookback: int
    deviation: Floats

    @classmethod
    def fit(cls, kind: str, train: States, train_future: Floats, val: States, val_future: Floats) -> Self:
        """The line with the lookback that errs least on validation, and the size of its errors in training.

        Args:
            kind: velocity or line.
            train, val: states.
            train_future, val_future: (n, m, d) what came.

        Raises:
            UsageError: if there is no such kind.
        """
        if kind not in ("velocity", "line"):
            raise UsageError(f"a straight line is by velocity or line, not '{kind}'")
        reach, steps = train.past.shape[1] - 1, train_future.shape[1]
        tried = sorted(
            {
                back
                for back in (1, 2, reach // 3, reach // 2, reach)
                if (kind == "velocity" or back > 1) and back
            }
        )
        errors = [
            np.linalg.norm((extrapolate(val, steps, kind, back) - val_future)[..., :2], axis=-1).mean()
            for back in tried
        ]
        best = tried[int(np.argmin(errors))]
        gap = extrapolate(train, steps, kind, best) - train_future
        return cls(kind, best, np.sqrt((gap**2).mean(axis=0)))

    def forecast(self, states: States, steps: int) -> StateForecast:
        """The states of the coming steps."""
        return _single(extrapolate(states, steps, self.kind, self.lookback), self.deviation)


def extrapolate(states: States, steps: int, kind: str, lookback: int) -> Floats:
    """(n, steps, d) states on a straight line.

    Args:
        states: observed.
        steps: ahead.
        kind, lookback: see `Extrapolation`.
    """
    ahead = np.arange(1, steps + 1)[:, None]
    if kind == "velocity":
        speed = -states.past[:, -1 - lookback] / lookback
        return np.asarray(speed[:, None] * ahead)
    recent = states.past[:, -1 - lookback :]
    at = np.arange(-lookback, 1) - np.mean(np.arange(-lookback, 1))
    slope = np.einsum("t,ntd->nd", at, recent) / (at**2).sum()
    middle = recent.mean(axis=1)
    return np.asarray(middle[:, None] + slope[:, None] * (ahead + lookback / 2))


@dataclass(frozen=True)
class Kalman:
    """A constant-velocity Kalman filter of each coordinate.

    States are in heights of the box, and so is its noise: a person who is twice as near trembles by twice the pixels.

    Args:
        measurement: standard deviation of observed places, in scales.
        acceleration: of the white acceleration, in scales a second and a root of a second.
        size_measurement, size_acceleration: the same of logarithms of width and height.

    Source: Kalman, Journal of Basic Engineering 1960; white acceleration: Bar-Shalom, Li and Kirubarajan, 2001, section 6.2.
    """

    measurement: float
    acceleration: float
    size_measurement: float = 0.03
    size_acceleration: float = 0.1

    @classmethod
    def fit(cls, train: States, future: Floats) -> Self:
        """The noise with the best likelihood in training, of a grid; places and sizes apart."""
        # Four numbers need no more than some thousands of windows.
        thin = slice(None, None, max(1, len(train) // _ENOUGH))
        past, future = train.past[thin], future[thin]
        noises = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08)
        pushes = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
        pairs = [(noise, push) for noise in noises for push in pushes]

        def judge(coordinates: slice) -> tuple[float, float]:
            worth = []
            for noise, push in pairs:
                mean, spread = filter_states(
                    past[..., coordinates], train.step_s, future.shape[1], noise, push
                )
                square = ((future[..., coordinates] - mean) / spread[:, None]) ** 2
                worth.append(float((0.5 * square + np.log(spread)[:, None]).mean()))
            return pairs[int(np.argmin(worth))]

        sizes = judge(slice(2, None)) if past.shape[2] > 2 else (cls.size_measurement, cls.size_acceleration)
        return cls(*judge(slice(0, 2)), *sizes)

    def forecast(self, states: States, steps: int) -> StateForecast:
        """The states of the coming steps."""
        place, spread = filter_states(
            states.past[..., :2], states.step_s, steps, self.measurement, self.acceleration
        )
        d = states.past.shape[2]
        mean, deviation = [place], [np.tile(spread[:, None], (1, 2))]
        if d > 2:
            size, spread = filter_states(
                states.past[..., 2:], states.step_s, steps, self.size_measurement, self.size_acceleration
            )
            mean.append(size)
            deviation.append(np.tile(spread[:, None], (1, d - 2)))
        return _single(np.concatenate(mean, axis=2), np.concatenate(deviation, axis=1))


def filter_states(
    past: Floats, step_s: float, steps: int, measurement: float, acceleration: float
) -> tuple[Floats, Floats]:
    """Means (n, steps, d) and deviations (steps,) of coming observations by a constant-velocity Kalman filter.

    All people are observed at the same steps, so that the gains are the same for all.

    Args:
        past: (n, t, d) observed.
        step_s: seconds from one to the next.
        steps: ahead.
        measurement: deviation of an observation.
        acceleration: see `Kalman`.
    """
    move = np.array([[1.0, step_s], [0.0, 1.0]])
    push = acceleration**2 * np.array([[step_s**3 / 3, step_s**2 / 2], [step_s**2 / 2, step_s]])
    noise = measurement**2
    # Begins at the first observation, with a speed that nothing is known of: ten scales a second.
    covariance = np.diag([noise, 100.0])
    state = np.stack([past[:, 0], np.zeros_like(past[:, 0])], axis=-1)
    for step in range(1, past.shape[1]):
        state = state @ move.T
        covariance = move @ covariance @ move.T + push
        gain = covariance[:, 0] / (covariance[0, 0] + noise)
        state = state + (past[:, step] - state[..., 0])[..., None] * gain
        covariance = covariance - np.outer(gain, covariance[0])
    means, spreads = [], []
    for _ in range(steps):
        state = state @ move.T
        covariance = move @ covariance @ move.T + push
        means.append(state[..., 0])
        spreads.append(float(np.sqrt(covariance[0, 0] + noise)))
    return np.stack(means, axis=1), np.array(spreads)
