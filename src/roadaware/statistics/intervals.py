"""95 % intervals of any number over units that are drawn whole: videos, pedestrians, images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints32
from roadaware.statistics.cautions import AT_END, ENOUGH, ENOUGH_SIGNED, FEW, LARGEST

# Resampling of whole clusters: how often each occurs in a draw, and the percentiles of the resamples.

PERCENTILES = (2.5, 97.5)
MIN_VALID_SHARE = 0.95


def sample_cluster_counts(n_clusters: int, resamples: int, seed: int, at_once: int) -> Iterator[Ints32]:
    """How often each cluster occurs in each of `resamples` resamples with replacement, some resamples at a time.

    Args:
        n_clusters: number of clusters; each draw takes as many.
        resamples: number of resamples.
        seed: of numpy's default generator; equal seeds give equal resamples, however many come at once.
        at_once: how many resamples come at once, at least 1.

    Yields:
        (at_once or fewer, n_clusters) counts, at least one time; each row sums to n_clusters.

    Source: Efron, Annals of Statistics 1979; clusters instead of samples because the samples of one
    pedestrian, and the pedestrians of one video, are not independent.

    >>> [counts.sum(axis=1) for counts in sample_cluster_counts(3, 2, seed=0, at_once=1)]
    [array([3]), array([3])]
    """
    generator = np.random.default_rng(seed)
    for start in range(0, max(1, resamples), at_once):
        rows = min(at_once, resamples - start)
        picked = generator.integers(0, n_clusters, size=(rows, n_clusters))
        # Each resample counts in a range of its own numbers, so that one pass counts them all.
        picked += np.arange(rows)[:, None] * n_clusters
        counts = np.bincount(picked.ravel(), minlength=rows * n_clusters)
        yield counts.reshape(rows, n_clusters).astype(np.int32)


def compute_percentile_interval(values: Floats) -> tuple[float, float] | None:
    """The 2.5 and 97.5 percentiles of resamples; undefined resamples (NaN) are dropped.

    They are given only when at least 95 in 100 resamples are defined: with more of them missing, they would speak
    of the easy resamples alone.

    Args:
        values: (resamples,) the metric in each draw, NaN where undefined.

    >>> compute_percentile_interval(np.linspace(0, 1, 101))
    (0.025, 0.975)
    """
    valid = values[~np.isnan(values)]
    if not len(valid) or len(valid) < MIN_VALID_SHARE * len(values):
        return None
    low, high = np.percentile(valid, PERCENTILES)
    return float(low), float(high)


Method = Literal["jackknife", "percentile"]
Scale = Literal["share", "error", "largest", "positive", "to_one", "signed", "difference", "plain"]

RANGES: dict[Scale, tuple[float, float]] = {
    "share": (0.0, 1.0),
    "error": (0.0, 1.0),
    "largest": (0.0, 1.0),
    "positive": (0.0, np.inf),
    "to_one": (-np.inf, 1.0),
    "signed": (-1.0, 1.0),
    "difference": (-1.0, 1.0),
    "plain": (-np.inf, np.inf),
}
"""
share: in [0, 1], such as an average precision or an accuracy; ends are found on the scale of log odds.
error: in [0, 1] and the size of something that may be 0, such as a calibration error: noise makes it larger
whatever its sign, so that the lower end is found on the scale of squares, (value - reach)^2 less reach^2 / 4.
largest: the largest of several errors, which is always given with a caution.
positive: 0 or more without a bound, such as a loss, on the scale of logarithms.
to_one: at most 1, such as MOTA. signed: an error in [-1, 1], such as overconfidence.
difference: of two shares or errors. plain: any.
"""
_CENTRED: tuple[Scale, ...] = ("share", "error", "largest")
"""Kinds of numbers whose ends are not moved for skewness: their scales see to it."""
_TAIL = 0.025
_BIASED_UNITS = 20
"""Units at which a bias may be twice the reach of an interval: mAP over few videos lacks rare classes."""
_STILL = 1e-9
"""A change below this is one of rounding."""
_LARGEST_LOG = 50.0
"""Of a factor between a number and an end of its interval, which is then of no use, but finite."""
_BLOCK = 1 << 21
"""Counts that are made at once: 16 MiB of 64-bit numbers."""


class PercentileResamples(int):
    """Number of resamples for percentile intervals; a plain number selects the jackknife.

    >>> select_interval_method(PercentileResamples(200)), select_interval_method(200), PercentileResamples(200) == 200
    ('percentile', 'jackknife', True)
    """


def select_interval_method(resamples: int) -> Method:
    """The interval method that a number of resamples selects."""
    return "percentile" if isinstance(resamples, PercentileResamples) else "jackknife"


def encode_resample_count(resamples: int, how: Method) -> int:
    """The number of resamples that selects a method."""
    return PercentileResamples(resamples) if how == "percentile" else int(resamples)


@dataclass(frozen=True)
class Interval:
    """A 95 % interval, its method and number of units.

    Args:
        low: lower end, None where no interval can be given.
        high: upper end, None where no interval can be given.
        n_valid: weightings of the units in which the metric was defined.
        n_draws: weightings that were made.
        n_units: units that it is over.
        caution: `FEW` where there are fewer of them than `get_caution_limit` for such a number, `AT_END` where the
            value is an end of its own interval, `LARGEST` where it is the largest of several, None elsewhere.
    """

    low: float | None
    high: float | None
    n_valid: int
    n_resamples: int
    n_units: int = 0
    caution: str | None = None

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 lies outside it."""
        return self.low is not None and self.high is not None and not self.low <= 0.0 <= self.high


@dataclass(frozen=True, eq=False)
class Units:
    """Resampling units and their weights in each resample.

    The jackknife leaves out one unit after the other, or one group of units of as equal size as can be where
    there are more units than `resamples`. Percentiles need resamples with replacement.

    Args:
        n: how many units there are, at least 2.
        resamples: most weightings, at least 1; `PercentileResamples` for percentiles.
        seed: of the groups or resamples: equal seeds and numbers of units give equal ones.
        which: (items,) the unit of each item; None where the items are the units.
    """

    n: int
    resamples: int
    seed: int
    which: npt.NDArray[np.int64] | None = None

    @classmethod
    def of(cls, unit: npt.NDArray[np.generic], resamples: int, seed: int) -> Self | None:
        """The units of items, by name; None below two units.

        Args:
            unit: (items,) the name of each item's unit.
            resamples: most weightings.
            seed: of groups or resamples.
        """
        names, which = np.unique(unit, return_inverse=True)
        return cls(len(names), resamples, seed, which) if len(names) > 1 else None

    def weights(self, at_once: int | None = None) -> Iterator[Ints32]:
        """How often each item counts, some weightings at a time.

        Args:
            at_once: how many come at once; as many as fit 16 MiB where not given.

        Yields:
            (at_once or fewer, items) counts.

        >>> next(Units(3, 1000, 0).weights())
        array([[0, 1, 1],
               [1, 0, 1],
               [1, 1, 0]], dtype=int32)
        """
        items = self.n if self.which is None else len(self.which)
        step = at_once or max(1, _BLOCK // items)
        for counts in self._of_units(step):
            yield counts if self.which is None else counts[:, self.which]

    def interval(
        self, value: float, values: Floats, scale: Scale = "share", *, holding: int | None = None
    ) -> Interval:
        """The interval of a number.

        By the jackknife it is refused where the number is undefined without one of the units: how far that
        unit moves it is then unknown. By percentiles it is refused where over 5 in 100 resamples are undefined.

        Args:
            value: the number, of all units; NaN gives no interval.
            values: its values under all `weights`, in their order; NaN where undefined.
            scale: what kind of number it is; see `RANGES`.
            holding: of how many units the number is made, such as those with a class; default: all. It counts where no
                unit changes a share of 0 or 1; of none there is no interval.

        Source: Efron and Stein, Annals of Statistics 1981.

        >>> heights = np.array([1.62, 1.75, 1.80, 1.68, 1.71])
        >>> units = Units(5, 1000, 0)
        >>> means = next(units.weights()) @ heights / 4
        >>> found = units.interval(heights.mean(), means, "plain")
        >>> round(found.low, 3), round(found.high, 3), found.caution
        (1.595, 1.825, 'few units')
        """
        valid = int(np.count_nonzero(~np.isnan(values)))
        ends: tuple[float, float] | None = None
        if not np.isnan(value):
            percentile = select_interval_method(self.resamples) == "percentile"
            if percentile:
                ends = compute_percentile_interval(values)
            else:
                ends = self._jackknife(
                    value, values, scale, self.n if holding is None else min(self.n, holding)
                )
        if ends is None:
            return Interval(None, None, valid, len(values), self.n)
        usual = LARGEST if scale == "largest" else None
        # Too few units is said first: it casts doubt on the other two as well.
        caution = FEW if self.n < get_caution_limit(scale) else usual if ends[0] < value < ends[1] else AT_END
        return Interval(*ends, valid, len(values), self.n, caution)

    def _groups(self) -> npt.NDArray[np.int64]:
        """(n,) the group of each unit that is left out together."""
        # Groups are drawn: units are in the order of their names, and neighbours there may be alike.
        if self.n <= self.resamples:
            return np.arange(self.n)
        return np.random.default_rng(self.seed).permutation(self.n) % max(2, self.resamples)

    def _of_units(self, at_once: int) -> Iterator[Ints32]:
        """The weightings of units."""
        if select_interval_method(self.resamples) == "percentile":
            yield from sample_cluster_counts(self.n, self.resamples, self.seed, at_once)
            return
        groups = self._groups()
        for first in range(0, int(groups.max()) + 1, at_once):
            left_out = np.arange(first, min(first + at_once, int(groups.max()) + 1))
            yield (groups != left_out[:, None]).astype(np.int32)

    def _jackknife(
        self, value: float, values: Floats, scale: Scale, holding: int
    ) -> tuple[float, float] | None:
        """Both ends; None where a value is undefined.

        Where the jackknife finds a bias, the end that it points away from is moved by it; where the changes
        are skew, the end on the side of their longer tail is moved away.
        """
        from scipy.special import stdtrit

        if np.isnan(values).any():
            return None
        # Groups may differ by one in size, so each has a factor of its own.
        shares = self.n / np.bincount(self._groups())
        # From the value itself, not from the mean over weightings: what bias there is counts as error too.
        moved = value - values
        bias = -float(np.mean((shares - 1) * moved))
        changes = np.sqrt(shares - 1) * moved
        # Degrees of freedom would be 0 / 0.
        if np.abs(changes).max() < _STILL:
            return _steady(value, holding, scale) if holding else None
        error = float(np.sqrt(np.mean(changes**2)))
        # Degrees of freedom of Student's t for the changes that units make: few of them often decide.
        # The fewer of two numbers: one less than the effective number of units, (sum |d|)^2 / sum d^2, and
        # those that the mean of d^2 has for the tails of d, 2 n / (kurtosis - 1).
        # Source: Kish, Survey Sampling, 1965 (effective number); Satterthwaite, Biometrics Bulletin 1946.
        n, squares = len(changes), changes**2
        effective = float(np.abs(changes).sum() ** 2 / squares.sum())
        beyond = float(np.mean(squares**2) / np.mean(squares) ** 2) - 1
        tails = 2 * n / beyond if beyond > _STILL else np.inf
        # No more than n numbers with an estimated mean have; t has none below 1.
        times = float(-stdtrit(float(np.clip(min(effective - 1, tails), 1, n - 1)), _TAIL))
        # Numbers that are read at fixed edges (bins of a calibration error, the 101 recalls of an average precision)
        # jump where a unit is left out, and hundreds of jumps add up to a bias that is none. A bias falls with the
        # number of units and an error with its root, so that one which counts at 20 units hardly does at 500.
        most = times * error * (1.0 if scale in ("error", "largest") else 2 * np.sqrt(_BIASED_UNITS / n))
        bias = float(np.clip(bias, -most, most))
        low, high = _build_interval(value, times * error, scale)
        lean = 0.0 if scale in _CENTRED else error * _lean(changes, times)
        bottom, top = RANGES[scale]
        return (
            float(np.clip(low - max(bias, 0.0) + min(lean, 0.0), bottom, top)),
            float(np.clip(high - min(bias, 0.0) + max(lean, 0.0), bottom, top)),
        )


def get_difference_scale(scale: Scale) -> Scale:
    """The scale of the difference of two numbers of a scale."""
    return "difference" if scale in ("share", "error", "largest") else "plain"


def get_caution_limit(scale: Scale) -> int:
    """Units from which on intervals of such numbers are given without a caution."""
    return ENOUGH_SIGNED if scale == "signed" else ENOUGH


def _lean(changes: Floats, times: float) -> float:
    """By how many standard errors skewness moves the middle of an interval of so many to each side.

    Source: Johnson, Journal of the American Statistical Association 1978.
    """
    apart = changes - changes.mean()
    spread = float(np.sqrt(np.mean(apart**2)))
    if spread < _STILL:
        return 0.0
    skewness = float(np.mean((apart / spread) ** 3))
    return skewness * (1 + 2 * times**2) / (6 * float(np.sqrt(len(changes))))


def _build_interval(value: float, reach: float, scale: Scale) -> tuple[float, float]:
    """The ends of what reaches so far to both sides of a value on its scale."""
    from scipy.special import expit, logit

    if scale == "share" and 0 < value < 1:
        # Carried over to log odds by their slope, 1 / (value (1 - value)).
        reach /= value * (1 - value)
        return float(expit(logit(value) - reach)), float(expit(logit(value) + reach))
    if scale == "positive" and value > 0:
        factor = float(np.exp(min(reach / value, _LARGEST_LOG)))
        return value / factor, value * factor
    if scale in ("error", "largest"):
        # (value - reach)^2 - reach^2 / 4, factored: no digits are lost where both terms are close.
        low = (value - reach / 2) * (value - 1.5 * reach) if value > 1.5 * reach else 0.0
        return float(np.sqrt(low)), value + reach
    return value - reach, value + reach


def _steady(value: float, n: int, scale: Scale) -> tuple[float, float]:
    """The ends where no unit changes the value: at a bound of its range, those of n successes of n.

    Source: Clopper and Pearson, Biometrika 1934.
    """
    least = _TAIL ** (1 / n)
    if scale == "share" and value > 1 - _STILL:
        return least, 1.0
    if scale in ("share", "error", "largest") and value < _STILL:
        return 0.0, 1 - least
    return value, value
