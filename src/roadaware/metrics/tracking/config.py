"""TrackingConfig: how paths are compared with tracks, each choice a named field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roadaware.config import check_flags, check_not_negative, check_range, check_words
from roadaware.errors import UsageError

Undefined = Literal["null", "published"]


@dataclass(frozen=True)
class TrackingConfig:
    """How predicted paths are judged; the defaults are what `default` gives.

    Args:
        threshold: smallest overlap at which a predicted box may be a ground-truth one, for CLEAR and identity.
        alphas: the same for HOTA, which is the mean over them.
        pixel_offset: added to widths and heights; 1 counts a box's last pixel as inside.
        interpolated_boxes: whether boxes that were interpolated between two detections belong to a path.
        min_score: predicted boxes of a lower score are left out, and paths without others; None takes all, also
            those without a score. Unlike a mean average precision, these metrics count every box in full.
        undefined: what a rate is whose denominator is 0: nothing (`null`), or 0, and 1 for the accuracy of
            localisation, as in the published code (`published`).
    """

    threshold: float = 0.5
    alphas: tuple[float, ...] = tuple(k / 100 for k in range(5, 100, 5))
    pixel_offset: float = 0.0
    interpolated_boxes: bool = True
    min_score: float | None = None
    undefined: Undefined = "null"

    def __post_init__(self) -> None:
        for name, values in (("threshold", (self.threshold,)), ("alphas", self.alphas)):
            if not values or not all(0 < value <= 1 for value in values):
                raise UsageError(f"{name} should lie in (0, 1]; got {getattr(self, name)!r}")
        check_not_negative(self, "pixel_offset")
        if self.min_score is not None:
            check_range("min_score", self.min_score, 0, 1)
        check_flags(self)
        check_words(self)

    @classmethod
    def reference(cls) -> TrackingConfig:
        """The choices of TrackEval, the code released with Luiten et al., IJCV 2021."""
        return cls(undefined="published")

    @classmethod
    def default(cls) -> TrackingConfig:
        """The choices we recommend: the same numbers, and none where there is nothing to divide by."""
        return cls()
