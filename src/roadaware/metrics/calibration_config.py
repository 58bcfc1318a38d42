"""CalibrationConfig: how calibration is measured, each choice a named field."""

from __future__ import annotations

from dataclasses import dataclass

from roadaware.config import check_words
from roadaware.errors import UsageError
from roadaware.statistics.adaptive_bins import AdaptiveBins


@dataclass(frozen=True)
class CalibrationConfig(AdaptiveBins):
    """The adaptive bins, and what else calibration depends on.

    `reference()` bins as the published code does, `default()` has its faults mended; the fields below are
    the same in both.

    Args:
        uniform_bins: number of bins of equal width over [0, 1].
        least_probability: the negative log-likelihood takes the true class to have at least this.
        row_sum_tolerance: how far several scores of a sample may be from summing to 1.

    Source: Gesnouin et al., IV 2022, section II-C, and the code it uses (Ding et al., CVPR Workshops 2020).
    """

    uniform_bins: int = 10
    least_probability: float = 1e-12
    row_sum_tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_words(self)
        if not (self.z > 0 and self.least_rest >= 0 and self.least_drop >= 0 and self.uniform_bins >= 1):
            raise UsageError(
                "z should be positive, least_rest and least_drop not negative, uniform_bins at least 1"
            )
        if not (0 < self.least_probability < 1 and self.row_sum_tolerance >= 0):
            raise UsageError("least_probability should lie in (0, 1), row_sum_tolerance not be negative")
