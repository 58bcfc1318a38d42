"""RelationConfig: which choices of the published evaluators of relations hold, each a named field."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from roadaware.config import check_flags, check_limits, check_not_negative, check_words, is_count
from roadaware.errors import UsageError

Judgement = Literal["tubelets", "frames", "both"]
Setting = Literal["sgdet", "predcls"]
Precision = Literal["float32", "float64"]


@dataclass(frozen=True)
class RelationConfig:
    """How predicted relations are judged; the defaults are what `default` gives.

    Args:
        judges: relations as a whole (`tubelets`), as they stand in each frame (`frames`), or both.
        setting: boxes and categories are the predicted ones (`sgdet`), or those of the ground-truth tubes that the
            predictions are about (`predcls`); see `predcls.on_true_tubes`.
        recall_at: how many of the best predictions of a video or a frame recall looks at.
        precision_at: how many of the best distinct triplets of a video precision looks at.
        top_returns: how many of the best predictions of a video are judged as tubelets; None judges all.
        viou_threshold: least overlap in space and time, of subject and of object, of a hit.
        pixel_offset: pixels added to widths and heights where tubelets are compared.
        precision: what recall, precision and the points of average precision of tubelets are rounded to.
        predicates_per_pair: how many predicates of a pair of tubes are judged in a frame; None judges all.
        frame_top: how many predictions of a frame are judged; None judges all.
        frame_min_score: predictions that do not score higher are dropped from those of a frame; None drops none.
        iou_threshold: least overlap, of subject and of object, of a hit in a frame.
        frame_pixel_offset: pixels added to widths and heights where boxes of a frame are compared.
        frame_precision: what boxes of a frame and their overlap are rounded to.
        several_truths: whether one prediction finds every ground-truth triplet of a frame that it overlaps enough, or
            only the one it overlaps most.
        repeated_truth: whether ground-truth relations that say the same of the same tubes in a frame are asked for
            `each`, or `once`.
        empty_frames: a frame without a ground-truth relation has a recall of 0 (`zero`) or none (`skip`).
        silent_frames: a frame in which no prediction stands finds nothing (`empty`), or is judged by the predictions
            and boxes of the last frame before it that had some, of whatever video (`carried`), as the
            published code does by leaving a variable as it was. No named configuration carries.
        averaging: what the plain names of recall in frames hold: the mean over frames (`per_image`), or the
            share of all ground-truth triplets (`pooled`).
    """

    judges: Judgement = "both"
    setting: Setting = "sgdet"
    recall_at: tuple[int, ...] = (20, 50, 100)
    precision_at: tuple[int, ...] = (1, 5, 10)
    top_returns: int | None = None
    viou_threshold: float = 0.5
    pixel_offset: float = 0.0
    precision: Precision = "float64"
    predicates_per_pair: int | None = None
    frame_top: int | None = None
    frame_min_score: float | None = None
    iou_threshold: float = 0.5
    frame_pixel_offset: float = 0.0
    frame_precision: Precision = "float64"
    several_truths: bool = False
    repeated_truth: Literal["each", "once"] = "once"
    empty_frames: Literal["zero", "skip"] = "skip"
    silent_frames: Literal["empty", "carried"] = "empty"
    averaging: Literal["per_image", "pooled"] = "per_image"

    def __post_init__(self) -> None:
        check_words(self)
        check_flags(self)
        for name in ("recall_at", "precision_at"):
            counts = getattr(self, name)
            if not counts or not all(is_count(n) for n in counts) or len(set(counts)) != len(counts):
                raise UsageError(f"{name} should be different numbers from 1; got {counts!r}")
        check_limits(self, "top_returns", "predicates_per_pair", "frame_top")
        for name in ("viou_threshold", "iou_threshold"):
            if not 0 < getattr(self, name) <= 1:
                raise UsageError(f"{name} lies in (0, 1]; got {getattr(self, name)!r}")
        check_not_negative(self, "pixel_offset", "frame_pixel_offset")
        if self.frame_min_score is not None and not math.isfinite(self.frame_min_score):
            raise UsageError(f"frame_min_score should be a number or None; got {self.frame_min_score!r}")

    @property
    def tubelets(self) -> bool:
        """Whether relations are judged as a whole."""
        return self.judges != "frames"

    @property
    def frames(self) -> bool:
        """Whether relations are judged frame by frame."""
        return self.judges != "tubelets"

    @classmethod
    def default(cls) -> RelationConfig:
        """The choices we recommend: every prediction is judged as it stands, and finds one relation at most."""
        return cls()

    @classmethod
    def vidvrd(cls) -> RelationConfig:
        """The published evaluator of relations between tubelets.

        Source: the evaluation of VidVRD-helper (Shang et al., ACM Multimedia 2017, and the challenges
        after it).
        """
        return cls(judges="tubelets", top_returns=200, pixel_offset=1.0, precision="float32")

    @classmethod
    def frame_sg(cls, predicates_per_pair: int | None) -> RelationConfig:
        """The published evaluator of scene graphs in frames.

        Args:
            predicates_per_pair: 1 "with constraint", 6 "semi constraint", None "no constraint".

        Source: the evaluation of TRACE (Teng et al., ICCV 2021) on Action Genome.
        """
        return cls(
            judges="frames",
            predicates_per_pair=predicates_per_pair,
            frame_top=100,
            frame_min_score=1e-5,  # lower ones are dropped before ranking
            frame_pixel_offset=1.0,
            frame_precision="float32",
            several_truths=True,
            repeated_truth="each",
            empty_frames="zero",
            averaging="per_image",
        )


CONFIGS: dict[str, Callable[[], RelationConfig]] = {
    "default": RelationConfig.default,
    "vidvrd": RelationConfig.vidvrd,
    "frame-sg-with": lambda: RelationConfig.frame_sg(1),
    "frame-sg-semi": lambda: RelationConfig.frame_sg(6),
    "frame-sg-no": lambda: RelationConfig.frame_sg(None),
}
"""Name of a configuration to what makes it."""
