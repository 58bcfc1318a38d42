"""DetectionConfig: which of the published road-event evaluator's choices hold, each a named field."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from roadaware.config import check_flags, check_limits, check_not_negative, check_words, is_count
from roadaware.errors import UsageError

Rule = Literal["trapezoid", "envelope", "interp101", "raw"]


@dataclass(frozen=True)
class DetectionConfig:
    """How claimed boxes, tubes and frame labels are judged; the defaults are what `default` gives.

    Args:
        ap: how average precision is read off the precision-recall points of boxes and tubes; see
            `roadaware.statistics.average_precision`.
        av_ap: the same for labels of whole frames.
        empty_classes: a class without truth has an AP of 0 that counts in the mean (`zero`), or none and
            is left out of the mean (`skip`).
        frame_size_px: (width, height) that the boxes of truth and claims are brought to before they are
            compared; None compares in the truth's own pixels.
        numbers: boxes are brought to one size and compared in 64 bits (`double`); or every step is rounded
            to 32 bits (`single`), where overlaps that lie exactly on a threshold may fall on its other side.
        frame_pixel_offset: pixels added to widths and heights where boxes of frames are compared.
        video_pixel_offset: the same where boxes of tubes are compared.
        max_per_class: of a frame with more claims than this, those with the highest scores of a class
            are judged for that class; None judges all.
        min_score: claimed boxes that do not score higher are left out; None leaves out none. A score of 0
            claims nothing.
        min_tube_score: the same for labels of claimed tubes.
        min_av_score: the same for labels of frames.
        floor_when_product: whether `min_score` also holds when composites are products.
        tube_time: frames of a tube are all from its first to its last (`endpoints`), or those it has
            (`frames`).
        composite_scores: scores of composite labels (duplex, event) are the claimed ones (`joint`), or
            products of the scores of their parts (`product`).
        av_label: a frame with several labels has the first one (`first`) or all of them (`all`).
        interpolated_boxes: whether boxes that were made up between two detections are judged in frames.
    """

    ap: Rule = "envelope"
    av_ap: Rule = "envelope"
    empty_classes: Literal["zero", "skip"] = "skip"
    frame_size_px: tuple[int, int] | None = None
    numbers: Literal["double", "single"] = "double"
    frame_pixel_offset: float = 0.0
    video_pixel_offset: float = 0.0
    max_per_class: int | None = None
    min_score: float | None = 0.0
    min_tube_score: float | None = 0.0
    min_av_score: float | None = 0.0
    floor_when_product: bool = True
    tube_time: Literal["endpoints", "frames"] = "frames"
    composite_scores: Literal["joint", "product"] = "joint"
    av_label: Literal["first", "all"] = "all"
    interpolated_boxes: bool = False

    def __post_init__(self) -> None:
        check_words(self)
        check_flags(self)
        size = self.frame_size_px
        if size is not None and not (len(size) == 2 and all(is_count(side) for side in size)):
            raise UsageError(f"frame_size_px should be (width, height) in whole pixels; got {size!r}")
        check_not_negative(self, "frame_pixel_offset", "video_pixel_offset")
        check_limits(self, "max_per_class")
        for name in ("min_score", "min_tube_score", "min_av_score"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise UsageError(f"{name} should be a number, or None for none; got {value!r}")

    @classmethod
    def reference(cls) -> DetectionConfig:
        """The published evaluator's choices.

        Source: 3D-RetinaNet, the code released with Singh et al., TPAMI 2022.
        """
        return cls(
            ap="trapezoid",
            av_ap="envelope",
            empty_classes="zero",
            frame_size_px=(682, 512),
            numbers="single",
            frame_pixel_offset=0.0,
            video_pixel_offset=1.0,
            max_per_class=25,
            min_score=0.025,
            min_tube_score=None,
            min_av_score=None,
            floor_when_product=False,
            tube_time="endpoints",
            av_label="first",
        )

    @classmethod
    def default(cls) -> DetectionConfig:
        """The choices we recommend: every claim is judged as it stands, and what is undefined stays so."""
        return cls()
