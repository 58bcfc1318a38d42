"""ActionConfig: which of the published AVA evaluators' choices hold, each a named field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from roadaware.config import check_flags, check_limits, check_words
from roadaware.errors import UsageError


@dataclass(frozen=True)
class ActionConfig:
    """How predicted actions of boxes are judged; the defaults are what `default` gives.

    A row is one label of one box. Rows of ground truth and predictions meet where video, frame and label are equal.

    Args:
        min_iou: the smallest overlap of a hit, in (0, 1].
        ap: average precision is the area under the precision reached at a recall or beyond (`envelope`,
            PASCAL VOC from 2010 on), or the mean of the precision at the rank of each ground-truth row (`raw`).
        match: a prediction considers the ground-truth row it overlaps most and at no other (`argmax`), or at the one it
            overlaps most among those that no better prediction took (`greedy`).
        per_frame_capacity: of a frame with more predictions than this, over all labels, those with the highest
            scores are judged; None judges all.
        row_order: rows of equal score in a frame come as in the file (`file`), or as a binary heap of
            (score, label id, y1, x1, y2, x2) holds them after all were pushed in the order of the file
            (`heap`). It decides among predictions of equal score, and among ground-truth rows of equal overlap.
        truth_by_person: ground-truth rows come by falling number of the person, which the published readers take
            for a score, and only then by `row_order`; else by `row_order` alone.
        frame_order: frames come by video, as the table of videos has them, and number (`table`), or in the
            order in which the predictions name them first (`claims`), or the ground truth (`truth`). It decides among
            predictions of equal score in different frames.
        tied_ranks: predictions of equal score are ranked in the order of frames and rows (`kept`), or the other
            way round (`reversed`).
        numbers: corners and ranked scores are compared in `double` precision, or in `single` as an array
            library does that holds them so.
        zero_area_claims: predictions without area are `wrong`, as they meet nothing, or `dropped`.
        empty_frames: predictions on frames that were annotated and have no ground-truth row are wrong (`count`), or are
            not judged (`ignore`).
        unknown_frames: the same for predictions on frames that the ground truth does not name at all.
        excluded_truth: ground-truth rows on excluded frames are `dropped`, or `counted` among what is to be found.
        classes: the mean is over the classes with ground truth (`with_truth`), or only over those of them that are
            predicted on a judged frame (`with_truth_and_claims`).
        subset: the actions that are judged, by name or by the number that the files give them; rows of the others
            are as if they were not there. None named: all of them.
    """

    min_iou: float = 0.5
    ap: Literal["envelope", "raw"] = "envelope"
    match: Literal["argmax", "greedy"] = "greedy"
    per_frame_capacity: int | None = None
    row_order: Literal["file", "heap"] = "file"
    truth_by_person: bool = False
    frame_order: Literal["table", "claims", "truth"] = "table"
    tied_ranks: Literal["kept", "reversed"] = "kept"
    numbers: Literal["double", "single"] = "double"
    zero_area_claims: Literal["wrong", "dropped"] = "wrong"
    empty_frames: Literal["count", "ignore"] = "count"
    unknown_frames: Literal["count", "ignore"] = "ignore"
    excluded_truth: Literal["dropped", "counted"] = "dropped"
    classes: Literal["with_truth", "with_truth_and_claims"] = "with_truth"
    subset: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_words(self)
        check_flags(self)
        if isinstance(self.min_iou, bool) or not 0 < self.min_iou <= 1:
            raise UsageError(f"min_iou should lie in (0, 1]; got {self.min_iou!r}")
        check_limits(self, "per_frame_capacity")
        if not isinstance(self.subset, tuple) or not all(type(each) in (str, int) for each in self.subset):
            raise UsageError(f"subset lists names or numbers of actions; got {self.subset!r}")
        object.__setattr__(self, "subset", tuple(str(each) for each in self.subset))

    @classmethod
    def default(cls) -> ActionConfig:
        """The choices we recommend: every prediction on a frame that somebody annotated is judged, once."""
        return cls()

    @classmethod
    def ava_official(cls) -> ActionConfig:
        """The evaluator of the AVA challenge.

        Source: `get_ava_performance.py` of the ActivityNet repository.
        """
        return cls(
            match="argmax",
            per_frame_capacity=50,
            row_order="heap",
            truth_by_person=True,
            frame_order="claims",
            tied_ranks="reversed",
            zero_area_claims="dropped",
            unknown_frames="count",
        )

    @classmethod
    def mmaction2(cls) -> ActionConfig:
        """The evaluator of the toolbox that most AVA models are trained with.

        Source: `ava_eval` of mmaction2, with its default `ignore_empty_frames`.
        """
        return cls(
            match="argmax",
            truth_by_person=True,
            frame_order="truth",
            tied_ranks="reversed",
            numbers="single",
            empty_frames="ignore",
            unknown_frames="ignore",
            excluded_truth="counted",
            classes="with_truth_and_claims",
        )

    @classmethod
    def paper(cls) -> ActionConfig:
        """The AVA evaluator with the average precision that the paper prints, and no capacity, of which it
        says nothing.

        Source: Ong et al., ICCV 2023, supplementary material, metrics of action localisation.
        """
        return replace(cls.ava_official(), ap="raw", per_frame_capacity=None)


CONFIGS: dict[str, Callable[[], ActionConfig]] = {
    "default": ActionConfig.default,
    "ava-official": ActionConfig.ava_official,
    "mmaction2": ActionConfig.mmaction2,
    "paper": ActionConfig.paper,
}
"""Name of a configuration to what makes it."""
