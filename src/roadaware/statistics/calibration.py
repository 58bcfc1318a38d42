"""Whether confidence means what it says: reliability bins, expected and largest calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.statistics.adaptive_bins import AdaptiveBins

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
        bins: how samples are grouped; ten of equal width unless told.

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
        order = np.argsort(-values, kind="stable")
        return of_sorted(values[order], right[order], bins)
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


def of_sorted(descending: Floats, correct: Floats, bins: AdaptiveBins) -> Reliability:
    """The adaptive bins of samples that stand in order, for those who draw them again and again.

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
        bins: how samples are grouped; ten of equal width unless told.

    Raises:
        ValueError: if shapes differ, n is 0, there is no bin, or a confidence leaves [0, 1].

    Source: Guo et al., ICML 2017, eq. 3; Gesnouin et al., IV 2022, eq. 3 with adaptive bins.

    >>> round(expected_calibration_error(np.array([0.9, 0.6]), np.array([1, 0]), UniformBins(1)), 2)
    0.25
    """
    return reliability(confidence, correct, bins).expected_error
