"""GroundingConfig: which of the published evaluators' choices hold when grounded sentences are judged."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from roadaware.config import check_limits, check_words
from roadaware.errors import UsageError


@dataclass(frozen=True)
class GroundingConfig:
    """How predicted spans and boxes of sentences are judged; the defaults are what `default` gives.

    Args:
        frames: which frames are considered: every one (`dense`), or one of each tick of `sample_fps`
            (`sampled`).
        sample_fps: ticks per second; a frame is taken when it is the first of its tick.
        clip_seconds: how long every video is taken to last, so that its rate is its number of frames by
            this; None takes the rate that the video has.
        last_frame: whether the last frame of the video can be sampled (`kept`) or not (`dropped`).
        most_frames: of more sampled frames than this, n, the (j * n // most_frames)-th are kept; None keeps
            all.
        ends: whether the frame at the end of a span belongs to it (`inclusive`) or not (`half_open`, which is
            how the tables hold it).
        hull_end: the frames over which vIoU is taken end with the later of both ends (`max`), or with the
            earlier one (`min`, as published until 5/2022).
        common_frames: the frames of the intersection are those in both spans (`spans`), or those where both
            sides have a box (`boxes`).
        boxless_frames: frames of the ground-truth span without a ground-truth box are asked for by nobody and do not count
            (`left_out`), or count as frames of the span (`counted`).
        boxes_beyond: ground-truth boxes outside the ground-truth span are left aside (`left_out`), or looked at as those
            within (`counted`, as published for HC-STVG); what a sentence scores may then be above 1.
        threshold: vIoU@tau is the share of sentences at or above tau (`at_least`), or above it (`greater`).
        thresholds: the values of tau.
        numbering: the ground truth's frames count from 0 as the predictions' do (`zero`), or from where its file counts
            (`file`): the published off-by-one of HC-STVG, whose files count from 1.
        temporal: the span is what is predicted (`claimed`), or it is given and only boxes are judged, on all
            its frames (`given`) or on the first alone (`given_first`, as published for VidSTG).
        missing_claim: a sentence without a prediction scores 0 (`zero`) or is an error (`error`).
        missing_box: a ground-truth frame without a predicted box has an overlap of 0 (`zero`) or is an error (`error`).
    """

    frames: Literal["dense", "sampled"] = "dense"
    sample_fps: float = 5.0
    clip_seconds: float | None = None
    last_frame: Literal["kept", "dropped"] = "kept"
    most_frames: int | None = None
    ends: Literal["half_open", "inclusive"] = "half_open"
    hull_end: Literal["max", "min"] = "max"
    common_frames: Literal["spans", "boxes"] = "spans"
    boxless_frames: Literal["left_out", "counted"] = "left_out"
    boxes_beyond: Literal["left_out", "counted"] = "left_out"
    threshold: Literal["at_least", "greater"] = "at_least"
    thresholds: tuple[float, ...] = (0.3, 0.5)
    numbering: Literal["zero", "file"] = "zero"
    temporal: Literal["claimed", "given", "given_first"] = "claimed"
    missing_claim: Literal["zero", "error"] = "zero"
    missing_box: Literal["zero", "error"] = "zero"

    def __post_init__(self) -> None:
        check_words(self)
        for name in ("sample_fps", "clip_seconds"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"{name} should be above 0; got {value!r}")
        check_limits(self, "most_frames")
        if not all(0 <= tau <= 1 for tau in self.thresholds):
            raise UsageError(f"thresholds lie in [0, 1]; got {self.thresholds!r}")

    @classmethod
    def default(cls) -> GroundingConfig:
        """The choices we recommend: every frame that has a ground-truth box, and the paper's `at least`.

        Source: supplement of Chaotic World, ICCV 2023, section 3.3.
        """
        return cls()

    @classmethod
    def tubedetr_hcstvg(cls) -> GroundingConfig:
        """The evaluator of HC-STVG released with TubeDETR, in its last state (hull ends at the later end).

        Source: Yang et al., CVPR 2022, `hcstvg_eval.py`. It stops where a prediction or a box is missing;
        here both score 0 and are counted.
        """
        return cls(
            frames="sampled",
            clip_seconds=20.0,  # its sampling ends a frame early
            last_frame="dropped",
            most_frames=200,
            boxless_frames="counted",
            threshold="greater",
            numbering="file",
        )

    @classmethod
    def tubedetr_vidstg(cls) -> GroundingConfig:
        """The evaluator of VidSTG released with TubeDETR, in its last state.

        Source: Yang et al., CVPR 2022, `vidstg_eval.py`. It gives each kind of sentence by itself and no
        whole.
        """
        return cls(
            frames="sampled",
            most_frames=200,
            boxless_frames="counted",
            threshold="greater",
            numbering="file",
        )

    @classmethod
    def hcstvg_official(cls) -> GroundingConfig:
        """The script of the HC-STVG challenge: every ground-truth box, and time counted by frames with both boxes.

        Its files name the last frame of a span; read into tables, that is the frame before `end_frame`, so
        that spans are half open here as everywhere.

        Source: Tang et al., 2020, `eval_hcvg.py`.
        """
        return cls(
            common_frames="boxes", boxless_frames="counted", boxes_beyond="counted", threshold="greater"
        )


CONFIGS: dict[str, Callable[[], GroundingConfig]] = {
    "default": GroundingConfig.default,
    "tubedetr-hcstvg": GroundingConfig.tubedetr_hcstvg,
    "tubedetr-vidstg": GroundingConfig.tubedetr_vidstg,
    "hcstvg-official": GroundingConfig.hcstvg_official,
}
