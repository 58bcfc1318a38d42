"""Calibration: reliability bins, expected and maximum calibration error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from roadaware.arrays import Floats, Ints

# AdaptiveBins: bins of confidence that hold as many samples as their own spread asks for.

_ALIKE = 12
"""Decimals up to which confidences are equal that stay together: 1 - 0.43 is not quite 0.57."""


class NoBinningError(ValueError):
    """The published procedure stops with an error on these confidences."""


@dataclass(frozen=True)
class AdaptiveBins:
    """Bins filled greedily from the highest confidence down.

    A bin asks for 0.25 (z / spread)^2 samples, spread being its largest confidence less its smallest. It
    is closed before the next sample when it holds more than that, more than `least_rest` samples remain,
    and its smallest confidence lies more than `least_drop` above the smallest of all. The last bin takes
    what is left; if that is less than it asks for, it borrows from the bins above, and all are cut anew.

    Args:
        z: quantile of the normal distribution; 1.645 belongs to 90 %.
        least_rest: samples that must be left, more than this, for a bin to be closed.
        least_drop: what the bin's smallest confidence must exceed the smallest of all by, more than this.
        borrow: a bin above lends the need times its own share of all samples (`own`), or times the share
            of the last bin, which borrows (`last`).
        ties: confidences that are equal to twelve decimals stay in one bin, that of the first of them
            (`together`), or are parted where the count says so, in the order of the rows (`split`).
        overdrawn: a bin that would lend more than it holds lends all of it and is gone (`emptied`), or is
            left with a size of 0 or less (`published`): such a bin is never closed, its confidence is a sum
            instead of a mean, its accuracy 0, and the bins after it are empty.
        flat_last: a last bin of equal confidences, which asks for infinitely many, borrows nothing (`keep`),
            or nothing is defined, as the published code stops there (`undefined`).

    Source: Ding, Liu, Xiong and Shi, CVPR Workshops 2020, used by Gesnouin et al., IV 2022, section II-C.
    """

    z: float = 1.645
    least_rest: int = 40
    least_drop: float = 0.05
    borrow: Literal["own", "last"] = "own"
    ties: Literal["together", "split"] = "together"
    overdrawn: Literal["emptied", "published"] = "emptied"
    flat_last: Literal["keep", "undefined"] = "keep"

    @classmethod
    def reference(cls) -> Self:
        """The published code, with its faults.

        Source: the code that Gesnouin et al., IV 2022, section II-C, uses (Ding et al., CVPR Workshops 2020).
        """
        return cls(borrow="last", ties="split", overdrawn="published", flat_last="undefined")

    @classmethod
    def default(cls) -> Self:
        """The published rule with its errors corrected; it does not depend on the order of the rows."""
        return cls()

    def sizes(self, descending: Floats) -> list[int]:
        """How many samples each bin takes, from the highest confidence down; they sum to n.

        Args:
            descending: (n,) confidences, n > 0, none above the one before.

        Returns:
            one size per bin, each above 0 unless `overdrawn` is `published`.

        Raises:
            NoBinningError: where `flat_last` is `undefined` and the last of several bins has no spread.
        """
        if self.ties == "together":
            descending = descending.round(_ALIKE)
        held = np.diff([*self._starts(descending), len(descending)]).tolist()
        return self._lent(descending, held) if len(held) > 1 else held

    def _starts(self, descending: Floats) -> list[int]:
        """The first place of each bin before anything is lent."""
        n, starts = len(descending), [0]
        far = int(np.count_nonzero(descending - descending[-1] > self.least_drop))
        # The last place at which a bin may end: its own confidence still lies above the smallest by enough,
        # and more than `least_rest` samples remain behind it.
        limit = min(far, n - self.least_rest - 1) - 1
        while (end := self._first_enough(descending, starts[-1], limit)) is not None:
            if self.ties == "together":
                end = _run_end(descending, end) - 1
                # Equals carry the end past the last place allowed; no lower confidence can end a bin then.
                if end > limit:
                    break
            starts.append(end + 1)
        return starts

    def _first_enough(self, descending: Floats, start: int, limit: int) -> int | None:
        """The first place up to `limit` at which a bin from `start` holds more than it asks for.

        With every sample the count grows and the spread does not shrink, so bisection finds it.
        """
        if start > limit or not self._enough(descending, start, limit):
            return None
        low, high = start, limit
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._enough(descending, start, middle) else (middle + 1, high)
        return low

    def _enough(self, descending: Floats, start: int, end: int) -> bool:
        return end - start + 1 > self._target(float(descending[start]) - float(descending[end]))

    def _target(self, spread: float) -> float:
        """How many samples a bin asks for: without spread, no number is enough."""
        ratio = self.z / spread if spread > 0 else math.inf
        return ratio * ratio * 0.25

    def _lent(self, descending: Floats, held: list[int]) -> list[int]:
        """The sizes once the last bin has borrowed what it lacks."""
        n, last = len(descending), held[-1]
        target = self._target(float(descending[n - last]) - float(descending[-1]))
        if target <= last:
            return held
        if math.isinf(target):
            if self.flat_last == "undefined":
                raise NoBinningError(
                    f"the last {last} confidences are all {descending[-1]:g}: the published code stops there"
                )
            return held
        needed, lent = target - last, []
        for size in held[:-1]:
            share = int(needed * (last if self.borrow == "last" else size) / n)
            lent.append(min(share, size) if self.overdrawn == "emptied" else share)
        left = [size - share for size, share in zip(held[:-1], lent, strict=True)]
        cut = [*left, last + sum(lent)]
        return self._unparted(descending, cut) if self.ties == "together" else cut

    def _unparted(self, descending: Floats, sizes: list[int]) -> list[int]:
        """The sizes with each cut moved to the end of a run of equals, and without empty bins."""
        cuts = np.cumsum(sizes)
        moved = [_run_end(descending, int(cut) - 1) if cut > 0 else 0 for cut in cuts]
        return [int(size) for size in np.diff([0, *moved]) if size > 0]


def _run_end(descending: Floats, place: int) -> int:
    """One past the last place that holds the same confidence."""
    return int(np.searchsorted(-descending, -descending[place], side="right"))


# A last bin of nearly equal confidences asks for (z / spread)^2 / 4 samples, more than 64 bits may hold.
_MOST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class UniformBins:
    """Equal widths over [0, 1]; bins are (low, high], and 0 belongs to the first.

    Args:
        n: number of bins, at least 1.
    """

    n: int = 10

    def assign(self, confidence: Floats) -> Ints:
        """The (n,) bin of each confidence."""
        # 0 lies below every (low, high]; it counts for the first.
        bins: Ints = np.maximum(np.ceil(confidence * self.n).astype(np.int64) - 1, 0)
        return bins


@dataclass(frozen=True)
class EqualMassBins:
    """As many samples in each bin as in the next, up to one; equal confidences may be parted.

    Args:
        n: number of bins, at least 1.
    """

    n: int = 10

    def assign(self, confidence: Floats) -> Ints:
        """The (n,) bin of each confidence."""
        bins = np.empty(len(confidence), dtype=np.int64)
        # Stable: equal confidences are parted the same way on every machine.
        bins[np.argsort(confidence, kind="stable")] = np.arange(len(confidence)) * self.n // len(confidence)
        return bins


Bins = UniformBins | EqualMassBins | AdaptiveBins


@dataclass(frozen=True)
class Reliability:
    """The bins that hold samples, by rising confidence.

    Bins as published may be left unclosed: they have a count of 0 or less, and are no means of anything.

    Args:
        confidence: (m,) mean confidence in the bin.
        accuracy: (m,) share of right predictions in the bin.
        count: (m,) samples in the bin; cut to 64 bits where sizes as published leave them.
        low: (m,) smallest confidence in the bin.
        high: (m,) largest confidence in the bin.
        share: (m,) the count over that of all samples, without a cut.
    """

    confidence: Floats
    accuracy: Floats
    count: Ints
    low: Floats
    high: Floats
    share: Floats

    @property
    def closed(self) -> bool:
        """Whether every bin holds samples; never false but for bins as published."""
        return bool((self.count > 0).all())

    @property
    def expected_error(self) -> float:
        """ECE = sum_m |B_m| / n * |acc(B_m) - conf(B_m)|, in [0, 1] where the bins are closed.

        Source: Gesnouin et al., IV 2022, eq. 3.
        """
        gaps = np.abs(self.accuracy - self.confidence)
        return float((self.share * gaps).sum())

    @property
    def maximum_error(self) -> float:
        """MCE = max_m |acc(B_m) - conf(B_m)|, in [0, 1] where the bins are closed.

        Source: Gesnouin et al., IV 2022, eq. 4.
        """
        return float(np.abs(self.accuracy - self.confidence).max())


def reliability(confidence: npt.ArrayLike, correct: npt.ArrayLike, bins: Bins | None = None) -> Reliability:
    """Mean confidence and accuracy of each bin that holds samples.

    Args:
        confidence: (n,) probability of the predicted class, in [0, 1].
        correct: (n,) whether the prediction was right.
        bins: how samples are grouped (default: ten of equal width).

    Raises:
        ValueError: if shapes differ, n is 0, there is no bin, or a confidence leaves [0, 1].
        NoBinningError: if adaptive bins, as published, are not defined for these confidences.

    Source: Gesnouin et al., IV 2022, eq. 1 and 2.

    >>> reliability([0.95, 0.85, 0.15], [1, 0, 0], UniformBins(2)).accuracy
    array([0. , 0.5])
    """
    values = np.asarray(confidence, dtype=np.float64)
    right = np.asarray(correct, dtype=np.float64)
    bins = bins or UniformBins()
    if values.ndim != 1 or values.shape != right.shape or not len(values):
        raise ValueError(f"confidence {values.shape} and correct {right.shape} should be (n,) with n > 0")
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"confidence should lie in [0, 1]; it runs {values.min()}..{values.max()}")
    if isinstance(bins, AdaptiveBins):
        # Bins that part equals do so in the order of the rows, which a stable sort keeps.
        order = np.argsort(-values, kind="stable")
        return compute_sorted_reliability(values[order], right[order], bins)
    if bins.n < 1:
        raise ValueError(f"there should be at least one bin, not {bins.n}")
    which = bins.assign(values)
    count = np.bincount(which, minlength=bins.n)
    low, high = np.full(bins.n, np.inf), np.full(bins.n, -np.inf)
    np.minimum.at(low, which, values)
    np.maximum.at(high, which, values)
    held = count > 0
    mean_confidence = np.bincount(which, values, bins.n)[held] / count[held]
    mean_correct = np.bincount(which, right, bins.n)[held] / count[held]
    share = count[held] / len(values)
    return Reliability(mean_confidence, mean_correct, count[held], low[held], high[held], share)


def compute_sorted_reliability(descending: Floats, correct: Floats, bins: AdaptiveBins) -> Reliability:
    """Adaptive bins of sorted samples, for repeated resampling.

    Args:
        descending: (n,) confidences, n > 0, none above the one before.
        correct: (n,) 1 where the prediction was right, else 0, in the same order.
        bins: how samples are grouped.

    Raises:
        NoBinningError: if the bins, as published, are not defined for these confidences.
    """
    n, sizes = len(descending), bins.sizes(descending)
    count = np.array([max(-_MOST, min(size, _MOST)) for size in sizes])
    unclosed = np.flatnonzero(count <= 0)
    m = int(unclosed[0]) if len(unclosed) else len(count)
    starts = np.append(0, np.cumsum(count[:m])).astype(np.int64)
    confidence, accuracy = np.zeros(len(count)), np.zeros(len(count))
    low, high = np.ones(len(count)), np.zeros(len(count))
    if m:
        # What an unclosed bin swallows must not reach the last closed one.
        inside = slice(0, starts[m])
        confidence[:m] = np.add.reduceat(descending[inside], starts[:m]) / count[:m]
        accuracy[:m] = np.add.reduceat(correct[inside], starts[:m]) / count[:m]
        low[:m], high[:m] = descending[starts[1:] - 1], descending[starts[:-1]]
    if m < len(count):
        rest = descending[starts[m] :]
        confidence[m], low[m], high[m] = rest.sum(), rest[-1], rest[0]
    share, up = np.array([size / n for size in sizes]), slice(None, None, -1)
    return Reliability(confidence[up], accuracy[up], count[up], low[up], high[up], share[up])


def expected_calibration_error(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, bins: Bins | None = None
) -> float:
    """Mean gap between confidence and accuracy, weighted by bin size.

    ECE = sum_m |B_m| / n * |acc(B_m) - conf(B_m)|, in [0, 1], lower is better.

    Args:
        confidence: (n,) probability of the predicted class, in [0, 1].
        correct: (n,) whether the prediction was right.
        bins: how samples are grouped (default: ten of equal width).

    Raises:
        ValueError: if shapes differ, n is 0, there is no bin, or a confidence leaves [0, 1].

    Source: Guo et al., ICML 2017, eq. 3; Gesnouin et al., IV 2022, eq. 3 with adaptive bins.

    >>> round(expected_calibration_error(np.array([0.9, 0.6]), np.array([1, 0]), UniformBins(1)), 2)
    0.25
    """
    return reliability(confidence, correct, bins).expected_error


# One temperature that logits are divided by, so that probabilities mean what they say.

LOWEST, HIGHEST = 0.01, 100.0
"""Ends of what is searched; where every answer is right, the best temperature is 0."""
_STEPS = 41


def log_loss(logits: npt.ArrayLike, truth: npt.ArrayLike, temperature: float = 1.0) -> float:
    """Mean of -ln(probability of the true label), in [0, inf), lower is better.

    Args:
        logits: (n, k), or (m, n, k) of m passes whose probabilities are averaged; k = 1 with two labels.
        truth: (n) labels.
        temperature: what logits are divided by.

    Raises:
        ValueError: if shapes differ, n is 0, a logit is not finite or a label does not occur among k.

    >>> round(log_loss([[0.0], [0.0]], [0, 1]), 4)
    0.6931
    """
    passes, labels = _check_logits(logits, truth)
    return _loss(passes, labels, temperature)


def fit_temperature(logits: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """The temperature with the smallest log loss, within [`LOWEST`, `HIGHEST`].

    The loss of one pass is convex in 1 / temperature, and so has one minimum; that of several passes is
    looked for in the best of 41 intervals.

    Args:
        logits: (n, k) or (m, n, k), as `log_loss` takes them.
        truth: (n) labels.

    Raises:
        ValueError: as `log_loss` does.

    Source: Guo et al., ICML 2017, section 4.2.
    """
    passes, labels = _check_logits(logits, truth)
    # Even steps in the logarithm: a temperature of 0.5 is as far from 1 as one of 2.
    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), _STEPS)
    place = int(np.argmin([_loss(passes, labels, float(np.exp(at))) for at in grid]))
    ends = (grid[max(place - 1, 0)], grid[min(place + 1, _STEPS - 1)])
    found = minimize_scalar(
        lambda at: _loss(passes, labels, float(np.exp(at))),
        bounds=ends,
        method="bounded",
        options={"xatol": 1e-7},
    )
    return float(np.exp(found.x))


def _loss(passes: Floats, labels: Ints, temperature: float) -> float:
    log_probs = log_softmax(passes / temperature, axis=2)[:, np.arange(len(labels)), labels]
    # The logarithm of the mean over passes, never leaving logarithms: probabilities may underflow to 0.
    return float(-(logsumexp(log_probs, axis=0) - np.log(len(passes))).mean())


def _check_logits(logits: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Floats, Ints]:
    """(m, n, labels) logits, and labels."""
    values, given = np.asarray(logits, dtype=np.float64), np.asarray(truth)
    labels = given.astype(np.int64)
    if (labels != given).any():
        raise ValueError("labels should be whole numbers; shares of annotators are none")
    passes = values[None] if values.ndim == 2 else values
    if passes.ndim != 3 or labels.shape != (passes.shape[1],) or not passes.size:
        raise ValueError(f"logits {values.shape} and truth {labels.shape} should be (n, k) and (n), n > 0")
    if not np.isfinite(passes).all():
        raise ValueError("a logit is not finite")
    if passes.shape[2] == 1:
        # The sigmoid of x is the softmax of (0, x): two labels need no formula of their own.
        passes = np.concatenate([np.zeros_like(passes), passes], axis=2)
    if not (labels.min() >= 0 and labels.max() < passes.shape[2]):
        raise ValueError(
            f"labels should lie in [0, {passes.shape[2]}); they run {labels.min()}..{labels.max()}"
        )
    return passes, labels
