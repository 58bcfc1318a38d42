"""Frame mean average precision of actions, boxes with several scored labels each, as AVA's evaluators compute it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints, Ints32
from roadaware.config import check_flags, check_limits, check_words
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import paired_iou
from roadaware.metrics.action_inputs import Actions, Keyframes, Rows, read_actions, select_subset
from roadaware.metrics.action_kernels import assign_heap_slots, find_nearest_boxes, match_rows
from roadaware.metrics.detection.kernels import sort_keys
from roadaware.metrics.detection.matches import sort_descending
from roadaware.metrics.metric_state import Judged, Measured, SceneResult, build_result, crowd_density
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.average_precision import compute_tied_span, resample_average_precision


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
            order in which the predictions name them first (`predictions`), or the ground truth (`truth`). It decides among
            predictions of equal score in different frames.
        tied_ranks: predictions of equal score are ranked in the order of frames and rows (`kept`), or the other
            way round (`reversed`).
        numbers: corners and ranked scores are compared in `double` precision, or in `single` as an array
            library does that holds them so.
        zero_area_predictions: predictions without area are `wrong`, as they meet nothing, or `dropped`.
        empty_frames: predictions on frames that were annotated and have no ground-truth row are wrong (`count`), or are
            not judged (`ignore`).
        unknown_frames: the same for predictions on frames that the ground truth does not name at all.
        excluded_truth: ground-truth rows on excluded frames are `dropped`, or `counted` among what is to be found.
        classes: the mean is over the classes with ground truth (`with_truth`), or only over those of them that are
            predicted on a judged frame (`with_truth_and_predictions`).
        subset: the actions that are judged, by name or by the number that the files give them; rows of the others
            are as if they were not there. None named: all of them.
    """

    min_iou: float = 0.5
    ap: Literal["envelope", "raw"] = "envelope"
    match: Literal["argmax", "greedy"] = "greedy"
    per_frame_capacity: int | None = None
    row_order: Literal["file", "heap"] = "file"
    truth_by_person: bool = False
    frame_order: Literal["table", "predictions", "truth"] = "table"
    tied_ranks: Literal["kept", "reversed"] = "kept"
    numbers: Literal["double", "single"] = "double"
    zero_area_predictions: Literal["wrong", "dropped"] = "wrong"
    empty_frames: Literal["count", "ignore"] = "count"
    unknown_frames: Literal["count", "ignore"] = "ignore"
    excluded_truth: Literal["dropped", "counted"] = "dropped"
    classes: Literal["with_truth", "with_truth_and_predictions"] = "with_truth"
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
            frame_order="predictions",
            tied_ranks="reversed",
            zero_area_predictions="dropped",
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
            classes="with_truth_and_predictions",
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


_TRUTHLESS = "there is no truth"
_UNPREDICTED = "nothing is predicted of it on a judged frame"


@dataclass(frozen=True, eq=False)
class JudgedActions(Judged):
    """The predictions of judged frames, whether each is right, and the ground truth that there is to be found.

    Args:
        items: the judged frames: `video`, `frame`, `category`, `density`, `split`.
        config: how they were judged.
        classes: (C,) names of the actions.
        cls: (n,) class of each prediction; predictions stand by class and rank.
        score: (n,) its score, as it is ranked.
        item: (n,) its frame, index in `items`.
        place: (n,) its place among all predictions in the order of frames and rows, which ranks equal scores.
        hit: (n,) whether it is right.
        truth_item: (m,) the frame of each ground-truth row.
        truth_cls: (m,) its class.
    """

    config_type: ClassVar[type] = ActionConfig

    config: ActionConfig
    classes: tuple[str, ...]
    cls: Ints32
    score: Floats
    item: Ints32
    place: Ints
    hit: Bools
    truth_item: Ints32
    truth_cls: Ints32

    def ranked(self) -> Self:
        """The same predictions by class, falling score, and place as the configuration has it."""
        in_place = np.argsort(self.place, kind="stable")
        if self.config.tied_ranks == "reversed":
            in_place = in_place[::-1]
        order = in_place[sort_descending(self.score[in_place])]
        classes = self.cls[order]
        if len(self.classes) <= 1 << 16:
            classes = classes.astype(np.uint16)  # which numpy sorts by radix, in linear time
        return self._take(order[np.argsort(classes, kind="stable")])

    def merge(self, other: Self) -> Self:
        """The state of both parts; equal scores rank as if the predictions of the other came after these.

        Raises:
            InputError: if they were judged by different configurations, share a video, or name the classes
                in a different order.
        """
        if self.config != other.config:
            raise InputError("these were judged by different configurations; judge both by the same")
        shared = set(self.videos) & set(other.videos)
        if shared:
            raise InputError(f"both parts hold the video '{min(shared)}'; a video is judged as a whole")
        if self.classes != other.classes:
            raise InputError(
                "both parts need the same classes in the same order", hint="read both by one map"
            )
        n_items, after = len(self.items), int(self.place.max(initial=-1)) + 1
        both = replace(
            self,
            items=pl.concat([self.items, other.items]),
            cls=np.concatenate([self.cls, other.cls]),
            score=np.concatenate([self.score, other.score]),
            item=np.concatenate([self.item, other.item + np.int32(n_items)]),
            place=np.concatenate([self.place, other.place + after]),
            hit=np.concatenate([self.hit, other.hit]),
            truth_item=np.concatenate([self.truth_item, other.truth_item + np.int32(n_items)]),
            truth_cls=np.concatenate([self.truth_cls, other.truth_cls]),
        )
        return both.ranked()

    def only(self, kept: Bools) -> Self:
        """The state of some of the frames.

        Args:
            kept: (frames,) which stay.
        """
        place = (np.cumsum(kept) - 1).astype(np.int32)
        part = self._take(kept[self.item])
        truth = kept[self.truth_item]
        return replace(
            part,
            items=self.items.filter(pl.Series(kept)),
            item=place[part.item],
            truth_item=place[self.truth_item[truth]],
            truth_cls=self.truth_cls[truth],
        )

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """The mean average precision, then the average precision of each class.

        Args:
            weights: (resamples, V) how often each of `videos` counts.

        Source: supplement of Chaotic World, ICCV 2023, section 3.1 (mAP, AP).
        """
        video = self._video_of_item()
        once = np.ones((1, len(self.videos)), dtype=np.int32)
        n_truth, averaged = (
            self._counts(video[self.truth_item], self.truth_cls),
            self._averaged(video, once)[0],
        )
        values = self._average_precision(video, weights, weights.astype(np.int64) @ n_truth)
        values[~self._averaged(video, weights)] = np.nan
        defined = ~np.isnan(values)
        n = defined.sum(axis=1)
        total = np.where(defined, values, 0.0).sum(axis=1)
        mean = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
        found = n_truth.sum(axis=0)
        at = f"@{self.config.min_iou:g}"
        yield Measured(
            f"map{at}", mean, int(averaged.sum()), reason=_UNPREDICTED if found.any() else _TRUTHLESS
        )
        for c, name in enumerate(self.classes):
            reason = _UNPREDICTED if found[c] else _TRUTHLESS
            holding = int((n_truth[:, c] > 0).sum())
            yield Measured(f"ap{at}", values[:, c], int(found[c]), name, reason, holding=holding)

    def tied(self) -> dict[str, Any] | None:
        """How far the order of equal scores moves the metrics, JSON-ready; None where it moves nothing.

        The published evaluators (`match` is argmax) rank the predictions of a class by a sort that leaves the
        order of equal scores open. How many of them are right does not depend on it: of equal predictions on one
        ground-truth row one is right, whichever comes first. So the ends are exact.

        Returns:
            {"predictions": those whose score others share that are right where they are wrong or the other way
            round, "span": {metric: [least, greatest]}}, the mean and the classes that move.
        """
        if self.config.match != "argmax":
            return None
        n_truth = np.bincount(self.truth_cls, minlength=len(self.classes))
        found = compute_tied_span(self.cls, self.score, self.hit[:, None], n_truth, self.config.ap)
        video, once = self._video_of_item(), np.ones((1, len(self.videos)), dtype=np.int32)
        averaged = self._averaged(video, once)[0]
        if found is None or not averaged.any():
            return None
        at, low, high = f"@{self.config.min_iou:g}", found.low[:, 0], found.high[:, 0]
        span = {f"map{at}": [float(end[averaged].mean()) for end in (low, high)]}
        for c in np.flatnonzero(averaged & (low < high)):
            span[f"ap{at}:{self.classes[c]}"] = [float(low[c]), float(high[c])]
        return {"predictions": found.predictions, "span": span} if len(span) > 1 else None

    def _averaged(self, video: Ints32, weights: Ints32) -> Bools:
        """(resamples, C) which classes are averaged."""
        times = weights.astype(np.int64)
        averaged: Bools = times @ self._counts(video[self.truth_item], self.truth_cls) > 0
        if self.config.classes == "with_truth_and_predictions":
            averaged &= times @ self._counts(video[self.item], self.cls) > 0
        return averaged

    def _average_precision(self, video: Ints32, weights: Ints32, n_truth: Ints) -> Floats:
        """(resamples, C) 0 where there is no ground truth or no prediction."""
        starts = np.searchsorted(self.cls, np.arange(len(self.classes) + 1))
        hit, times = self.hit[:, None], weights.astype(np.int32)
        areas = resample_average_precision(starts, video[self.item], hit, n_truth, times, self.config.ap)
        return areas[:, :, 0]

    def _counts(self, video: Ints32, cls: Ints32) -> Ints:
        """(V, C) how many rows of each class each video has."""
        n_classes, n_videos = len(self.classes), len(self.videos)
        cells = video.astype(np.int64) * n_classes + cls
        return np.bincount(cells, minlength=n_videos * n_classes).reshape(n_videos, n_classes)

    def _video_of_item(self) -> Ints32:
        names = self.items["video"].cast(pl.String)
        return names.cast(pl.Enum(list(self.videos))).to_physical().to_numpy().astype(np.int32)

    def _take(self, rows: npt.NDArray[Any]) -> Self:
        return replace(
            self,
            cls=self.cls[rows],
            score=self.score[rows],
            item=self.item[rows],
            place=self.place[rows],
            hit=self.hit[rows],
        )


def mask_evaluated_frames(frames: Keyframes, config: ActionConfig) -> Bools:
    """(F,) whether predictions on a frame are judged."""
    bare = np.where(frames.known, config.empty_frames == "count", config.unknown_frames == "count")
    judged: Bools = ~frames.excluded & (frames.has_truth | bare)
    return judged


def mask_counted_frames(frames: Keyframes, config: ActionConfig) -> Bools:
    """(F,) whether the ground truth of a frame is to be found, or predictions on it are judged."""
    if config.excluded_truth == "dropped":
        return mask_evaluated_frames(frames, config)
    return mask_evaluated_frames(frames, config) | (frames.excluded & frames.has_truth)


def rank_frames(actions: Actions, config: ActionConfig) -> Ints:
    """(F,) the rank of each frame; by first appearance in rows, those without rows come last."""
    if config.frame_order == "table":
        return np.arange(len(actions.frames.number))
    rows = actions.predictions if config.frame_order == "predictions" else actions.truth
    first = np.full(len(actions.frames.number), len(rows))
    # Of repeated indices the last assignment stays, which backwards is the first row.
    first[rows.frame[::-1]] = np.arange(len(rows))[::-1]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank


def build_item_table(frames: Keyframes, kept: Bools) -> pl.DataFrame:
    """`video`, `frame`, `category`, `density`, `split` of some of the frames.

    Args:
        frames: all of them.
        kept: (F,) which.
    """
    at = pl.Series(frames.video[kept], dtype=pl.Int64)
    of_video = frames.about[at]
    items = pl.DataFrame(
        {
            "video": of_video["video"],
            "frame": pl.Series(frames.number[kept], dtype=pl.Int64),
            "category": of_video["category"],
            "density": pl.Series(frames.persons[kept], dtype=pl.Int64),
            "split": of_video["split"],
        }
    )
    return items.with_columns(density=crowd_density(pl.col("density")))


def count_excluded(actions: Actions, config: ActionConfig) -> dict[str, int]:
    """Count of ground truth and predictions left out because of their frame, by reason in words."""
    frames, predictions = actions.frames, actions.predictions.frame
    judged = mask_evaluated_frames(frames, config)
    unnamed = ~frames.known & ~judged
    bare = frames.known & ~frames.excluded & ~judged
    lost = ~mask_counted_frames(frames, config)
    return {
        "predictions on excluded frames": int(frames.excluded[predictions].sum()),
        "predictions on frames that the truth does not name": int(unnamed[predictions].sum()),
        "predictions on frames without truth": int(bare[predictions].sum()),
        "true labels on excluded frames": int(lost[actions.truth.frame].sum()),
        "true labels to ignore": int(actions.truth.ignored.sum()),
    }


# Which predicted actions are right: rows in the order in which they are judged, and the ground truth each
# meets.


ABSORBED = -2
"""In the place of a ground-truth row: the prediction counts neither way, as in `kernels`."""
# AVA's rows hold y before x, and the heap compares whole rows.
_YXYX = (1, 0, 3, 2)


@dataclass(frozen=True, eq=False)
class Judgement:
    """Ground truth and predictions of the judged frames, and their matches.

    Args:
        actions: everything that was read.
        config: how it was judged.
        truth: the ground-truth rows of judged frames, frame after frame; the first of equal overlap is met.
        truth_start: (F + 1,) where those of each frame start, in the order in which frames are ranked.
        predictions: the predictions that are judged, frame after frame; those of a frame in the order in which they
            choose.
        prediction_start: (F + 1,) where those of each frame start.
        met: (n,) the ground-truth row that each prediction meets, -1 where it is wrong, ABSORBED where it counts neither
            way.
        nearest: (n,) the ground-truth row of its class and frame that it overlaps most, -1 where there is none.
        overlap: (n,) the IoU with that, 0 where there is none.
        over_capacity: how many predictions the capacity of their frame kept out.
        flat: how many predictions were dropped because they have no area.
    """

    actions: Actions
    config: ActionConfig
    truth: Rows
    truth_start: Ints
    predictions: Rows
    prediction_start: Ints
    met: Ints
    nearest: Ints
    overlap: Floats
    over_capacity: int
    flat: int

    def state(self) -> JudgedActions:
        """What the metrics are made from."""
        counted = mask_counted_frames(self.actions.frames, self.config)
        item = (np.cumsum(counted) - 1).astype(np.int32)
        truth = self.actions.truth.take(counted[self.actions.truth.frame] & ~self.actions.truth.ignored)
        kept = np.flatnonzero(self.met != ABSORBED)
        score = self.predictions.score[kept]
        return JudgedActions(
            build_item_table(self.actions.frames, counted),
            self.config,
            self.actions.classes,
            self.predictions.cls[kept],
            cast_to_single(score) if self.config.numbers == "single" else score,
            item[self.predictions.frame[kept]],
            kept,
            self.met[kept] >= 0,
            item[truth.frame],
            truth.cls,
        ).ranked()


def match_actions(actions: Actions, config: ActionConfig) -> Judgement:
    """Match the predictions of judged frames with their ground truth.

    Source: Gu et al., CVPR 2018, section 5; the evaluators named in `config`.
    """
    actions = select_subset(actions, config.subset)
    judged, rank = mask_evaluated_frames(actions.frames, config), rank_frames(actions, config)
    truth, predictions = (rows.take(judged[rows.frame]) for rows in (actions.truth, actions.predictions))
    person = truth.score if config.truth_by_person else np.zeros(len(truth))
    truth = truth.take(_in_order(truth, person, rank, actions.label_ids, config, None))
    order = _in_order(
        predictions, predictions.score, rank, actions.label_ids, config, config.per_frame_capacity
    )
    over, predictions = len(predictions) - len(order), predictions.take(order)
    flat = _flat(predictions.corners) & (config.zero_area_predictions == "dropped")
    predictions = predictions.take(~flat) if flat.any() else predictions
    single = config.numbers == "single"
    starts = [_starts(rank[rows.frame], len(rank)) for rows in (predictions, truth)]
    boxes = [cast_to_single(rows.corners) if single else rows.corners for rows in (predictions, truth)]
    met, nearest, overlap = match_rows(
        starts[0],
        predictions.cls,
        boxes[0],
        starts[1],
        truth.cls,
        boxes[1],
        truth.ignored,
        float(config.min_iou),
        config.match == "greedy",
        single,
    )
    return Judgement(
        actions,
        config,
        truth,
        starts[1],
        predictions,
        starts[0],
        met,
        nearest,
        overlap,
        over,
        int(flat.sum()),
    )


def _in_order(
    rows: Rows, score: Floats, rank: Ints, label_ids: Ints, config: ActionConfig, capacity: int | None
) -> Ints:
    """The rows that are judged, by rank of the frame, falling score and `row_order`.

    Args:
        rows: (n,) in the order of the file.
        score: (n,) what they are ordered by.
        rank: (F,) of each frame.
        label_ids: (C,) native numbers of the classes.
        config: with `row_order`.
        capacity: how many rows of a frame are judged; None for all.
    """
    at, held = rank[rows.frame], np.arange(len(rows))
    if config.row_order == "heap":
        held = _select_heap_rows(rows, score, at, label_ids, len(rank), capacity or 0)
    order = held[sort_descending(score[held])]
    order = order[_rising(at[order])]
    if capacity is None or config.row_order == "heap":
        return order
    starts = _starts(at[order], len(rank))
    return order[np.arange(len(order)) - starts[at[order]] < capacity]


def _select_heap_rows(
    rows: Rows, score: Floats, at: Ints, label_ids: Ints, n_frames: int, capacity: int
) -> Ints:
    """The rows that the heaps of their frames keep, frame after frame, as the heaps hold them."""
    order = _rising(at)
    start = _starts(at[order], n_frames)
    keys = np.empty((len(rows), 6))
    keys[:, 0], keys[:, 1], keys[:, 2:] = (
        score[order],
        label_ids[rows.cls[order]],
        rows.corners[order][:, _YXYX],
    )
    place = assign_heap_slots(start, keys, capacity)
    held = np.full(len(rows), -1)
    kept = place >= 0
    held[start[at[order[kept]]] + place[kept]] = order[kept]
    return held[held >= 0]


def _rising(values: Ints) -> Ints:
    """(n,) the places of rising numbers of 0 and more, equal ones in their order."""
    return sort_keys(values.astype(np.uint64))


def _starts(values: Ints, n: int) -> Ints:
    """(n + 1,) where each of 0 to n starts among rising numbers."""
    return np.searchsorted(values, np.arange(n + 1))


def _flat(corners: Floats) -> Bools:
    """(n,) whether a box has no area."""
    flat: Bools = (corners[:, 0] >= corners[:, 2]) | (corners[:, 1] >= corners[:, 3])
    return flat


def cast_to_single(numbers: Floats) -> Floats:
    """The numbers rounded to single precision."""
    return numbers.astype(np.float32).astype(np.float64)


# The rows behind the mean average precision: each prediction, each true label, and which labels are confused.


def build_prediction_rows(judgement: Judgement) -> pl.DataFrame:
    """One row per judged prediction, frame after frame and in each by falling score.

    Returns:
        `box`, `video`, `frame`, `label`, `score`; `iou` with the ground-truth box of that label that it overlaps
        most, and `nearest`, that box (0 and null where the frame has none); `truth`, the box it met, null
        where it is wrong; `hit`, null for a prediction on ground truth to ignore.
    """
    return _build_row_table(judgement, judgement.predictions).with_columns(
        pl.Series("score", judgement.predictions.score),
        pl.Series("iou", judgement.overlap),
        _gather_or_null("nearest", judgement.truth.box, judgement.nearest),
        _gather_or_null("truth", judgement.truth.box, judgement.met),
        pl.Series("hit", judgement.met >= 0).set(pl.Series(judgement.met == ABSORBED), None),
    )


def build_truth_rows(judgement: Judgement) -> pl.DataFrame:
    """One row per true label of a judged frame.

    Returns:
        `box`, `video`, `frame`, `label`, `found`; `score` and `prediction`, the score and the box of the prediction
        that found it, null where none did.
    """
    prediction = np.full(len(judgement.truth), -1)
    hits = np.flatnonzero(judgement.met >= 0)
    prediction[judgement.met[hits]] = hits
    return _build_row_table(judgement, judgement.truth).with_columns(
        pl.Series("found", prediction >= 0),
        _gather_or_null("score", judgement.predictions.score, prediction),
        _gather_or_null("prediction", judgement.predictions.box, prediction),
    )


def build_confusion_table(judgement: Judgement, min_score: float = 0.0) -> pl.DataFrame:
    """Confusion table: ground-truth labels where others were predicted.

    A prediction is compared with the ground-truth box of its frame that it overlaps most, of whatever label. Where that
    overlap is enough, and the person in the box does not have the predicted label, the prediction counts once for
    each label that the person has.

    Args:
        judgement: ground truth and predictions.
        min_score: predictions below it do not count.

    Returns:
        `truth` and `predicted`, names of actions; `predictions`, how many; `mean_score`, of these. The most come
        first, then the order of the classes.
    """
    near = _nearest(judgement)
    asked = np.flatnonzero((near >= 0) & (judgement.predictions.score >= min_score))
    # (m,) a number for each row, equal for the rows of a frame with equal boxes.
    truth = judgement.truth
    order = np.lexsort((*truth.corners.T, truth.frame))
    corners, frame = truth.corners[order], truth.frame[order]
    first = np.ones(len(order), dtype=np.int64)
    first[1:] = (corners[1:] != corners[:-1]).any(axis=1) | (frame[1:] != frame[:-1])
    person = np.empty(len(order), dtype=np.int64)
    person[order] = np.cumsum(first)
    # Orders are kept, so that a mean has the same bits each time.
    stood = pl.DataFrame({"person": person, "truth": judgement.truth.cls}).unique(maintain_order=True)
    predictions = pl.DataFrame(
        {
            "person": person[near[asked]],
            "predicted": judgement.predictions.cls[asked],
            "score": judgement.predictions.score[asked],
        }
    ).join(stood, left_on=["person", "predicted"], right_on=["person", "truth"], how="anti")
    joined = predictions.join(stood, on="person", maintain_order="left_right")
    pairs = joined.group_by("truth", "predicted", maintain_order=True)
    counts = pairs.agg(predictions=pl.len().cast(pl.Int64), mean_score=pl.col("score").mean())
    counts = counts.sort("predictions", "truth", "predicted", descending=[True, False, False])
    return counts.with_columns(
        truth=_names(judgement, counts["truth"].to_numpy()),
        predicted=_names(judgement, counts["predicted"].to_numpy()),
    )


def _nearest(judgement: Judgement) -> Ints:
    """(n,) the ground-truth row of any class that each prediction overlaps most, -1 where that is not enough."""
    single = judgement.config.numbers == "single"
    predictions, truth = judgement.predictions.corners, judgement.truth.corners
    near, overlap = find_nearest_boxes(
        judgement.prediction_start,
        cast_to_single(predictions) if single else predictions,
        judgement.truth_start,
        cast_to_single(truth) if single else truth,
        single,
    )
    return np.where(overlap >= judgement.config.min_iou, near, -1)


def _build_row_table(judgement: Judgement, rows: Rows) -> pl.DataFrame:
    """`box`, `video`, `frame` and `label` of rows."""
    frames = judgement.actions.frames
    return pl.DataFrame(
        {
            "box": rows.box,
            "video": frames.about["video"].gather(frames.video[rows.frame]),
            "frame": frames.number[rows.frame],
            "label": _names(judgement, rows.cls),
        }
    )


def _names(judgement: Judgement, cls: npt.NDArray[np.generic]) -> pl.Series:
    return pl.Series(judgement.actions.classes, dtype=pl.String).gather(cls.astype(np.int64))


def _gather_or_null(name: str, values: npt.NDArray[np.generic], at: Ints) -> pl.Series:
    """The values at some places, null where the place is negative."""
    return pl.Series(name, values).gather(pl.Series(at).set(pl.Series(at < 0), None))


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: ActionConfig,
    *,
    by: Sequence[str] = (),
    resamples: int = 0,
    seed: int = 0,
) -> SceneResult:
    """Frame mean average precision, `map@0.5`, and the average precision of each action, `ap@0.5`.

    A prediction is one label of one box, with a score. It is right where its box overlaps a ground-truth box of its
    frame and label enough (IoU of at least `min_iou`) that no prediction of a higher score has met. The predictions
    of a label, from all judged frames, are ranked by score; the average precision is read off the ranking,
    and its mean over the labels is the metric. In [0, 1]; higher is better.

    Args:
        predictions: boxes with `labels` of the kind `action`, each with a score, in the order of the file; or
            boxes with dense `scores` of that kind.
        scenes: boxes with `labels` of that kind; frames with `annotated` false are excluded.
        config: how they are judged; see `config.CONFIGS`.
        by: of `category`, `density` (different ground-truth boxes in the frame) and `split`, by which the frames
            are sliced.
        resamples: resamples of videos; 0 gives no intervals.
        seed: of the resamples.

    Returns:
        The metrics; instances of the levels `prediction`, `truth` and `confusion`; facts with the capacity, and
        how many frames were judged.

    Raises:
        InputError: if there is no ground truth, or predictions and ground truth do not fit each other.
        UsageError: if `resamples` is negative or there is nothing of that name to slice by.

    Source: Gu et al., CVPR 2018, section 5; the evaluators named in `config`.
    """
    judgement = match_actions(read_actions(predictions, scenes), config)
    if not len(judgement.truth):
        frames = judgement.actions.frames
        raise InputError(
            f"there is no truth: all {int(frames.has_truth.sum()):,} frames that have some are excluded",
            hint="is this the file of excluded timestamps of another set?",
        )
    state = judgement.state()
    tied = state.tied()
    return build_result(
        state,
        config,
        by=by,
        resamples=resamples,
        seed=seed,
        notes=(*_notes(judgement), *_told_ties(tied)),
        makers={
            "prediction": partial(build_prediction_rows, judgement),
            "truth": partial(build_truth_rows, judgement),
            "confusion": partial(build_confusion_table, judgement),
        },
        left_out=count_excluded(judgement.actions, config)
        | {
            "predictions beyond the capacity of their frame": judgement.over_capacity,
            "predictions of boxes without area": judgement.flat,
            "predictions on truth to ignore": int((judgement.met == ABSORBED).sum()),
        },
        facts=_facts(judgement) | ({} if tied is None else {"tied_scores": tied}),
    )


def evaluate_confusion(
    predictions: Predictions, scenes: Scenes, config: ActionConfig, *, min_score: float = 0.0
) -> pl.DataFrame:
    """Confusion table of predicted and ground-truth labels: `truth`, `predicted`, `predictions`, `mean_score`.

    Args:
        predictions: as in `evaluate`.
        scenes: as in `evaluate`.
        config: how they are judged.
        min_score: predictions below it do not count. Where every box is predicted to be everything, it is what
            makes the table speak.

    Raises:
        InputError: as in `evaluate`.
    """
    judgement = match_actions(read_actions(predictions, scenes), config)
    return build_confusion_table(judgement, min_score)


def _facts(judgement: Judgement) -> dict[str, Any]:
    """What belongs beside every number."""
    frames = judgement.actions.frames
    judged = mask_evaluated_frames(frames, judgement.config)
    return {
        "per_frame_capacity": judgement.config.per_frame_capacity,
        "frames_judged": int(judged.sum()),
        "frames_without_truth": int((judged & ~frames.has_truth).sum()),
        "frames_excluded": int(frames.excluded.sum()),
        "predictions_judged": len(judgement.predictions),
        "predictions_over_capacity": judgement.over_capacity,
        "person_recall": compute_person_recall(judgement),
    }


def compute_person_recall(judgement: Judgement) -> float | None:
    """Share of the ground-truth boxes of judged frames that some predicted box of the frame overlaps by `min_iou`.

    Whatever the actions are called; a predicted box may meet several. No mean average precision can be much higher
    than this. In [0, 1]; None without ground truth.
    """
    sides = []
    for rows in (judgement.truth, judgement.predictions):
        _, first = np.unique(rows.box, return_index=True)
        corners = {f"c{k}": rows.corners[first, k] for k in range(4)}
        sides.append(pl.DataFrame({"box": rows.box[first], "frame": rows.frame[first], **corners}))
    truth, predictions = sides
    if truth.is_empty():
        return None
    met = 0
    # By frames, some thousand at a time: all pairs of a large set at once would not fit in memory.
    for part in truth.with_columns(part=pl.col("frame") // 2048).partition_by("part"):
        pairs = part.join(predictions, on="frame", suffix="_prediction")
        one, other = (
            pairs.select([f"c{k}{end}" for k in range(4)]).to_numpy() for end in ("", "_prediction")
        )
        hit = paired_iou(one, other) >= judgement.config.min_iou
        met += pairs.filter(pl.Series(hit))["box"].n_unique()
    return met / len(truth)


def _told_ties(tied: dict[str, Any] | None) -> tuple[str, ...]:
    """How far an unstable sort may move the mean, in words."""
    if tied is None:
        return ()
    metric, (low, high) = next(iter(tied["span"].items()))
    moved = len(tied["span"]) - 1
    return (
        f"{tied['predictions']:,} predictions share their score with others, some right and some wrong: the "
        f"published evaluator's sort leaves their order open, and its {metric} may be from {low:.4f} "
        f"to {high:.4f} ({moved} class{'es' * (moved > 1)} moved)",
    )


def _notes(judgement: Judgement) -> tuple[str, ...]:
    predictions = judgement.actions.predictions
    if not len(predictions):
        return ("nothing is predicted",)
    if len(judgement.predictions):
        return ()
    return (
        f"none of the {len(predictions):,} predictions lies on a judged frame; compare the names of videos",
    )
