"""Whether confidence means what it says: reliability bins and the expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class UniformBins:
    """Equal widths over [0, 1]; bins are (low, high], and 0 belongs to the first.

    Args:
        n: number of bins, at least 1.
    """

    n: int = 10

    def assign(self, confidence: Floats) -> Ints:
        """The (n,) bin of each confidence."""
        return np.clip(np.ceil(confidence * self.n).astype(np.int64) - 1, 0, self.n - 1)


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


Bins = UniformBins | EqualMassBins


@dataclass(frozen=True)
class Reliability:
    """The bins that hold samples, by rising confidence.

    Args:
        confidence: (m,) mean confidence in the bin.
        accuracy: (m,) share of right predictions in the bin.
        count: (m,) samples in the bin.
    """

    confidence: Floats
    accuracy: Floats
    count: Ints


def reliability(confidence: npt.ArrayLike, correct: npt.ArrayLike, bins: Bins | None = None) -> Reliability:
    """Mean confidence and accuracy of each bin that holds samples.

    Args:
        confidence: (n,) probability of the predicted class, in [0, 1].
        correct: (n,) whether the prediction was right.
        bins: how samples are grouped; ten of equal width unless told.

    Raises:
        ValueError: if shapes differ, n is 0, there is no bin, or a confidence leaves [0, 1].

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
    if bins.n < 1:
        raise ValueError(f"there should be at least one bin, not {bins.n}")
    which = bins.assign(values)
    count = np.bincount(which, minlength=bins.n)
    held = count > 0
    mean_confidence = np.bincount(which, values, bins.n)[held] / count[held]
    mean_correct = np.bincount(which, right, bins.n)[held] / count[held]
    return Reliability(mean_confidence, mean_correct, count[held])


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

    Source: Guo et al., ICML 2017, eq. 3; Gesnouin et al., IV 2022, eq. 3 with bins of their own.

    >>> round(expected_calibration_error(np.array([0.9, 0.6]), np.array([1, 0]), UniformBins(1)), 2)
    0.25
    """
    found = reliability(confidence, correct, bins)
    gaps = np.abs(found.accuracy - found.confidence)
    return float((found.count * gaps).sum() / found.count.sum())
