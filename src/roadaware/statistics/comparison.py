"""Several methods compared: on the same items by paired differences, on many datasets by Friedman's test and Holm's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, norm, rankdata

from roadaware.arrays import Bools, Floats
from roadaware.statistics.classification import Ranking
from roadaware.statistics.intervals import Interval, Scale, Units


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
        values: (resamples,) with each weighting of the units.
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


def build_units(unit: npt.NDArray[np.generic], resamples: int) -> Units | None:
    """The units of items, weighed as such: weights are (resamples, units) in the order of their names; None below two.

    Args:
        unit: (n,) of the items.
        resamples: most weightings; 0 for none.
    """
    n = len(np.unique(unit))
    return Units(n, resamples, 0) if n > 1 and resamples else None


# The exact distribution takes up to n^3 additions, 8 million here; the normal one is close long before.
_MOST_EXACT = 200
# Share of the largest difference: far above what rounding moves, far below any digit that is printed.
_SAME = 1e-9


@dataclass(frozen=True)
class Pair:
    """Two methods on the same datasets.

    Args:
        first, second: their names, the better rank first.
        p: of Wilcoxon's signed-rank test.
        adjusted: p, corrected for there being many pairs.
        differ: whether the pair is called different.
    """

    first: str
    second: str
    p: float
    adjusted: float
    differ: bool


@dataclass(frozen=True)
class Comparison:
    """Result of comparing methods over datasets.

    Args:
        ranks: method to its mean rank, 1 being best; the best first.
        sets: how many datasets.
        alpha: level of the tests.
        statistic: Friedman's, corrected for ties.
        p: of Friedman's test; where it is not below alpha, no pair is called different.
        pairs: of all methods.
        cliques: largest groups of methods of which no two differ, by rank; a method that differs from all
            others is in none.
    """

    ranks: dict[str, float]
    sets: int
    alpha: float
    statistic: float
    p: float
    pairs: tuple[Pair, ...]
    cliques: tuple[tuple[str, ...], ...]

    @property
    def some_differ(self) -> bool:
        """Whether Friedman's test rejects that all methods are alike."""
        return self.p < self.alpha


def compare(
    values: npt.ArrayLike, names: Sequence[str], *, alpha: float = 0.1, higher_is_better: bool = True
) -> Comparison:
    """Rank methods over datasets, and test which of them differ.

    Friedman's test asks whether any two differ; if so, Wilcoxon's signed-rank test asks each pair, and Holm's
    correction keeps the chance of a single false difference below alpha.

    Args:
        values: (sets, methods) one number each.
        names: of the methods, each once.
        alpha: level of the tests, in (0, 1).
        higher_is_better: whether larger values are.

    Raises:
        ValueError: if shapes differ, there are fewer than two methods or datasets, or a value is not known.

    Source: Demšar, JMLR 2006, sections 3.1.3 and 3.2.2; Gesnouin et al., IV 2022, Figure 4.
    """
    table = np.asarray(values, dtype=np.float64)
    _check(table, names, alpha)
    place = rank_methods(table, higher_is_better=higher_is_better)
    mean = place.mean(axis=0)
    order = np.argsort(mean, kind="stable")
    statistic, p = friedman_test(place)
    held = list(combinations(order.tolist(), 2))
    raw = np.array([wilcoxon_test(table[:, a] - table[:, b]) for a, b in held])
    adjusted = holm_correction(raw)
    pairs = tuple(
        Pair(
            names[a], names[b], float(raw[at]), float(adjusted[at]), bool(p < alpha and adjusted[at] < alpha)
        )
        for at, (a, b) in enumerate(held)
    )
    ordered = [names[at] for at in order]
    alike = {frozenset((pair.first, pair.second)) for pair in pairs if not pair.differ}
    means = {names[at]: float(mean[at]) for at in order}
    return Comparison(means, len(table), alpha, statistic, p, pairs, _cliques(ordered, alike))


def rank_methods(values: npt.ArrayLike, *, higher_is_better: bool = True) -> Floats:
    """(sets, methods) ranks within each dataset, 1 being best; equals share the mean of theirs.

    Args:
        values: (sets, methods).
        higher_is_better: whether larger values are.

    Source: Gesnouin et al., IV 2022, Figure 4.

    >>> rank_methods([[0.9, 0.8, 0.8]])
    array([[1. , 2.5, 2.5]])
    """
    table = np.asarray(values, dtype=np.float64)
    return np.asarray(rankdata(-table if higher_is_better else table, axis=1), dtype=np.float64)


def friedman_test(place: npt.ArrayLike) -> tuple[float, float]:
    """Friedman's statistic, corrected for ties, and its p by the chi-squared distribution.

    chi2 = (k - 1) sum_j (R_j - n (k + 1) / 2)^2 / (sum_ij r_ij^2 - n k (k + 1)^2 / 4), with k - 1 degrees.

    Args:
        place: (sets, methods) ranks r_ij; R_j is the sum of a method's.

    Returns:
        0 and 1 where all ranks are equal.

    Source: Conover, Practical Nonparametric Statistics, 1999, section 5.8.
    """
    table = np.asarray(place, dtype=np.float64)
    n, k = table.shape
    scatter = float((table**2).sum()) - n * k * (k + 1) ** 2 / 4
    # All methods equal on all sets: 0 / 0, and nothing speaks for a difference.
    if scatter <= 1e-12:
        return 0.0, 1.0
    between = float(((table.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    statistic = (k - 1) * between / scatter
    return statistic, float(chi2.sf(statistic, k - 1))


def wilcoxon_test(difference: npt.ArrayLike) -> float:
    """Two-sided p of Wilcoxon's signed-rank test.

    Ranks of what is 0 are left out after ranking. Up to 200 differences p is exact, ties and zeros included:
    it is the share of all 2^n choices of signs whose sum of positive ranks is as far from its mean. Sizes
    that differ by less than a billionth of the largest are ties, and 0 where they are less than that:
    0.85 - 0.80 is not quite 0.90 - 0.85.

    Args:
        difference: (n) finite, of two methods on the same datasets.

    Raises:
        ValueError: if a difference is not finite.

    Source: Wilcoxon, 1945; zeros: Pratt, JASA 1959.

    >>> wilcoxon_test([1.0, 2.0, 3.0])
    0.25
    """
    values = np.asarray(difference, dtype=np.float64)
    size = np.abs(values)
    if not np.isfinite(size).all():
        raise ValueError("differences should be finite")
    order = size.argsort()
    # By the step from each size to the next: rounded ones part where two that are alike lie on both sides of a half.
    steps = np.diff(size[order], prepend=0.0) > _SAME * size.max(initial=0.0)
    level = np.empty(len(values), dtype=np.int64)
    level[order] = np.cumsum(steps)
    rank = rankdata(level)
    # Pratt's way with zeros: they are ranked with the others and then left out.
    place = rank[level > 0]
    if not len(place):
        return 1.0
    above = float(rank[(level > 0) & (values > 0)].sum())
    off = abs(above - place.sum() / 2)
    if len(place) > _MOST_EXACT:
        return float(2 * norm.sf(off / np.sqrt((place**2).sum() / 4)))
    doubled = np.rint(2 * place).astype(np.int64)  # ties have half ranks
    chance = np.ones(1)
    for step in doubled:
        wider = np.zeros(len(chance) + step)
        wider[: len(chance)] += chance / 2
        wider[step:] += chance / 2
        chance = wider
    sums = np.arange(len(chance)) / 2
    # Sums and their mean are multiples of 1/4: the slack only takes in what rounding has moved.
    return float(min(1.0, chance[np.abs(sums - place.sum() / 2) >= off - 1e-9].sum()))


def holm_correction(p: npt.ArrayLike) -> Floats:
    """(n) p values, corrected by Holm's step-down procedure.

    Args:
        p: (n) of n tests.

    Source: Holm, Scandinavian Journal of Statistics 1979.

    >>> holm_correction([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    # Corrected values may not fall: a test is rejected only together with all that are more significant.
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    found = np.empty_like(values)
    found[order] = np.minimum(stepped, 1.0)
    return found


def _check(table: Floats, names: Sequence[str], alpha: float) -> None:
    if table.ndim != 2 or table.shape[1] != len(names) or min(table.shape) < 2:
        raise ValueError(
            f"values {table.shape} should be (sets, methods) of {len(names)} methods, 2 at least"
        )
    if len(set(names)) != len(names):
        raise ValueError("each method should have a name of its own")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha should lie in (0, 1), not be {alpha}")
    unknown = [names[at] for at in np.flatnonzero(~np.isfinite(table).all(axis=0)).tolist()]
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)} lack a value on some datasets; leave out those methods or those datasets"
        )


def _cliques(names: list[str], alike: set[frozenset[str]]) -> tuple[tuple[str, ...], ...]:
    """Largest groups of two or more of which all pairs are alike, members and groups by rank."""
    near = {one: {other for other in names if frozenset((one, other)) in alike} for one in names}
    found: list[set[str]] = []

    def grow(held: set[str], open_: set[str], done: set[str]) -> None:
        # Bron and Kerbosch: a group is largest where nobody, tried already or not, could still join it.
        if not open_ and not done and len(held) > 1:
            found.append(held)
        # By rank: the order of a set of strings changes from process to process.
        for one in sorted(open_, key=names.index):
            grow(held | {one}, open_ & near[one], done & near[one])
            open_, done = open_ - {one}, done | {one}

    grow(set(), set(names), set())
    ordered = sorted(sorted(names.index(one) for one in group) for group in found)
    return tuple(tuple(names[at] for at in group) for group in ordered)
