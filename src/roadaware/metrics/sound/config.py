"""SoundConfig: which of the published evaluator's choices hold when localised sounds are judged."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from roadaware.config import check_words
from roadaware.errors import UsageError

_STEPS = 20


@dataclass(frozen=True)
class SoundConfig:
    """How localisation maps are judged; the defaults are what `default` gives.

    Args:
        size: width and height, in cells, that maps and boxes are brought to.
        consensus: what a cell of the ground truth is worth: 1 where any box lies (`union`), boxes over it by
            `consensus_count`, at most 1 (`capped`), or annotators with a box over it by the annotators of
            the item (`mean`, the paper's).
        unnamed_boxes: boxes that name no annotator are all of one (`one`), or each of an annotator of its own
            (`each`, as the paper's formula has one box for each); for `mean`.
        consensus_count: boxes that make a cell certain, for `capped`.
        threshold: of the map, scaled to [0, 1], from which on a cell is predicted; None takes the median of
            the map, so that half of the image is predicted.
        comparison: cells at the threshold are predicted (`at_least`) or not (`greater`, the paper's).
        constant_map: a map of one value predicts no cell (`empty`) or every cell (`whole`).
        negative_corners: corners left of or above the image are moved to its edge (`clip`), or counted
            from the other edge as numpy's slices do (`wrap`, as published for Flickr-SoundNet).
        empty_truth: items whose boxes cover no cell are left out (`left_out`), or judged (`judged`): then
            their cIoU is 0, or undefined and a failure at every threshold where the map predicts no cell.
        success_steps: thresholds of the success curve are i / 20 (`exact`) or 0.05 * i as a computer
            multiplies (`rounded`, as published), where 0.05 * 3 is larger than 0.15.
        missing_claim: a sound without a map scores 0 and succeeds at no threshold (`zero`), or is an error
            (`error`).
    """

    size: int = 224
    consensus: Literal["union", "capped", "mean"] = "mean"
    unnamed_boxes: Literal["one", "each"] = "one"
    consensus_count: int = 2
    threshold: float | None = 0.5
    comparison: Literal["at_least", "greater"] = "at_least"
    constant_map: Literal["empty", "whole"] = "empty"
    negative_corners: Literal["clip", "wrap"] = "clip"
    empty_truth: Literal["left_out", "judged"] = "left_out"
    success_steps: Literal["exact", "rounded"] = "exact"
    missing_claim: Literal["zero", "error"] = "zero"

    def __post_init__(self) -> None:
        check_words(self)
        for name, most in (("size", 4096), ("consensus_count", 1000)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise UsageError(f"{name} should be a whole number from 1 to {most}; got {value!r}")
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise UsageError(f"threshold should be a number, or None for the median; got {self.threshold!r}")

    @property
    def success_thresholds(self) -> tuple[float, ...]:
        """The 21 thresholds of the success curve, from 0 to 1.

        Source: Song et al., CVPR 2022 (SSPL), whose code has 0.05 i.
        """
        if self.success_steps == "rounded":
            return tuple(0.05 * step for step in range(_STEPS + 1))
        return tuple(step / _STEPS for step in range(_STEPS + 1))

    @classmethod
    def default(cls) -> SoundConfig:
        """The choices we recommend: a consensus of annotators, and no item without ground truth.

        Source: supplement of Chaotic World, ICCV 2023, section 3.4 (the mean over annotators).
        """
        return cls()

    @classmethod
    def vggss(cls) -> SoundConfig:
        """The published evaluator on VGG-SS.

        Source: Song et al., CVPR 2022 (SSPL), `test.py`, `utils.py`; after Chen et al., CVPR 2021.
        """
        return cls(consensus="union", empty_truth="judged", success_steps="rounded")

    @classmethod
    def flickr(cls) -> SoundConfig:
        """The published evaluator on Flickr-SoundNet: two boxes make a cell certain.

        Source: Song et al., CVPR 2022 (SSPL), `test.py`, `utils.py`; after Senocak et al., CVPR 2018.
        """
        return cls(
            consensus="capped",
            negative_corners="wrap",
            empty_truth="judged",
            success_steps="rounded",
        )

    @classmethod
    def paper(cls) -> SoundConfig:
        """The published evaluator with the formula in print: mean over annotators, cells above the threshold.

        Source: supplement of Chaotic World, ICCV 2023, section 3.4, equations 1 and 2. Its area under the
        curve of true and false positive rates is defined nowhere; the success curve stands in.
        """
        return cls(
            consensus="mean",
            unnamed_boxes="each",
            comparison="greater",
            empty_truth="judged",
            success_steps="rounded",
        )


CONFIGS: dict[str, Callable[[], SoundConfig]] = {
    "default": SoundConfig.default,
    "vggss": SoundConfig.vggss,
    "flickr": SoundConfig.flickr,
    "paper": SoundConfig.paper,
}
