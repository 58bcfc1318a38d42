"""Mean average precision of several ways of scoring the same items, with intervals over units and paired differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats
from roadaware.statistics.intervals import Interval, Scale, Units
from roadaware.statistics.ranking import Ranking


@dataclass(frozen=True)
class Estimate:
    """A number with its interval over units; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None
    units: int = 0
    caution: str | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        ends = "" if self.low is None or self.high is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.value:.3f}{ends}"

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 lies outside it."""
        return self.low is not None and self.high is not None and not self.low <= 0.0 <= self.high


@dataclass(frozen=True, eq=False)
class Drawn:
    """A number, and its values where units are left out in turn.

    Args:
        value: of all units; NaN where it is undefined.
        values: (draws,) with each weighting of the units.
    """

    value: float
    values: Floats

    def __sub__(self, other: Drawn) -> Drawn:
        return Drawn(self.value - other.value, self.values - other.values)


def estimate(drawn: Drawn, units: Units | None, scale: Scale = "share") -> Estimate:
    """The number with its 95 % interval.

    Args:
        drawn: of `weigh_ranking` or `weigh_mean`.
        units: that were weighed; None where there are fewer than two, which gives no interval.
        scale: as of `Units.interval`.
    """
    if np.isnan(drawn.value):
        return Estimate(None)
    if units is None:
        return Estimate(drawn.value)
    found: Interval = units.interval(drawn.value, drawn.values, scale)
    return Estimate(drawn.value, found.low, found.high, found.n_units, found.caution)


def weigh_ranking(
    truth: Mapping[str, Bools],
    scores: Mapping[str, Floats],
    unit: npt.NDArray[np.generic],
    units: Units | None,
) -> Drawn:
    """Mean over labels of average precision, in [0, 1].

    Args:
        truth: label to (n,) whether it holds; each has positives.
        scores: label to (n,) scores.
        unit: (n,) of the items.
        units: of `build_units(unit)`.
    """
    names, which = np.unique(unit, return_inverse=True)
    once = np.ones((1, len(names)), np.int32)
    weights = [once] if units is None else [once, *units.weights()]
    found = []
    for name, positive in truth.items():
        ranking = Ranking.of(positive, np.asarray(scores[name], np.float64))
        found.append(np.concatenate([ranking.areas(each, which)[0] for each in weights]))
    mean = np.mean(found, axis=0) if found else np.full(sum(map(len, weights)), np.nan)
    return Drawn(float(mean[0]), mean[1:])


def weigh_mean(values: Floats, unit: npt.NDArray[np.generic], units: Units | None) -> Drawn:
    """Mean of some numbers of items.

    Args:
        values: (n,) numbers.
        unit: (n,) of the items.
        units: of `build_units(unit)`.
    """
    if not len(values):
        return Drawn(float("nan"), np.zeros(0))
    names, which = np.unique(unit, return_inverse=True)
    total = np.bincount(which, values, len(names))
    count = np.bincount(which, minlength=len(names)).astype(np.float64)
    if units is None:
        return Drawn(float(values.mean()), np.zeros(0))
    weights = np.concatenate(list(units.weights())).astype(np.float64)
    below = weights @ count
    drawn = np.divide(weights @ total, below, out=np.full(len(weights), np.nan), where=below > 0)
    return Drawn(float(values.mean()), drawn)


def build_units(unit: npt.NDArray[np.generic], draws: int) -> Units | None:
    """The units of items, weighed as such: weights are (draws, units) in the order of their names; None below two.

    Args:
        unit: (n,) of the items.
        draws: most weightings; 0 for none.
    """
    n = len(np.unique(unit))
    return Units(n, draws, 0) if n > 1 and draws else None
