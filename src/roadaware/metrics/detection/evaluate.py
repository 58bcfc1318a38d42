"""How good predicted boxes, tubes and frame labels are: frame-mAP, video-mAP, AV-action AP, with intervals, and slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.io.parallel import HERE, WorkerPool, Workers
from roadaware.metrics.detection.config import (
    DetectionConfig,
    build_thresholds,
    describe_box_kinds,
    describe_tube_kinds,
    is_linked,
    is_silent,
    list_box_kinds,
    list_tube_kinds,
)
from roadaware.metrics.detection.matches import (
    JudgedFrames,
    Matches,
    Overlap,
    build_tube_table,
    compute_average_precisions,
    prepare_frames,
    prepare_tubes,
    sort_descending,
)
from roadaware.metrics.detection.rows import (
    OF_FRAMES,
    Class,
    Frames,
    build_class_index,
    collect_frames,
    convert_dense_scores,
    is_in_sorted,
    list_tube_classes,
)
from roadaware.metrics.metric_state import SUMMARY, MetricResult, build_interval_columns
from roadaware.scenes.composites import NOTE
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.intervals import Interval, Units


@dataclass(frozen=True, eq=False)
class Slice:
    """A part of a set.

    Ground-truth boxes outside are neither asked for nor held against a prediction that meets them.

    Args:
        videos: those that count (default: all).
        truth: what holds of the ground-truth boxes that count, over the columns of the scenes' `boxes`.
        size: what holds of ground-truth boxes and of predictions, over `x1_px`, `y1_px`, `x2_px`, `y2_px`, `width_px`
            and `height_px` in the pixels they are compared in. A prediction outside counts as wrong nowhere,
            but as right where it meets a ground-truth box inside.

    >>> Slice(size=pl.col("height_px") < 64).of_boxes
    True
    """

    videos: Sequence[str] | None = None
    truth: pl.Expr | None = None
    size: pl.Expr | None = None

    @property
    def of_boxes(self) -> bool:
        """Whether the slice selects boxes within a frame; it then has no values for tubes and frame labels."""
        return self.truth is not None or self.size is not None


def apply_slice(judged: JudgedFrames, wanted: Slice, scenes: Scenes) -> JudgedFrames:
    """The judged frames with only the boxes of the slice counted.

    Raises:
        UsageError: if a condition names columns that are not there, or is none.
    """
    inside = np.ones(len(judged.truth.box), dtype=np.bool_)
    predictions = np.ones(len(judged.predictions.row), dtype=np.bool_)
    if wanted.truth is not None:
        inside &= _holds(wanted.truth, scenes.boxes[judged.truth.row])
    if wanted.size is not None:
        inside &= _holds(wanted.size, _measure_boxes(judged.truth.edges))
        predictions &= _holds(wanted.size, _measure_boxes(judged.predictions.edges))
    return judged.within(inside, predictions)


def _measure_boxes(edges: npt.NDArray[np.float64]) -> pl.DataFrame:
    sides = {"width_px": edges[:, 2] - edges[:, 0], "height_px": edges[:, 3] - edges[:, 1]}
    return pl.DataFrame({**{name: edges[:, k] for k, name in enumerate(CORNERS)}, **sides})


def _holds(condition: pl.Expr, rows: pl.DataFrame) -> Bools:
    """(n,) whether a condition holds; unknown as no."""
    try:
        values = rows.select(condition.alias("holds"))["holds"]
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"the slice {condition} cannot be taken: {str(error).splitlines()[0]}") from error
    if values.dtype != pl.Boolean or len(values) != len(rows):
        raise UsageError(f"the slice {condition} should be true or false for each box; it is {values.dtype}")
    found: npt.NDArray[Any] = values.fill_null(value=False).to_numpy()
    return found.astype(np.bool_)


SCORED = 0.5
"""The threshold of these matches: a frame has a label or has it not, whatever the threshold."""


@dataclass(frozen=True, eq=False)
class JudgedLabels:
    """Which judged frames have which labels, and the scores predicted for them.

    Args:
        classes: (C,) kind and label.
        frames: the frames of the ground truth.
        truth: (J, C) whether each judged frame has each label.
        frame: (n,) judged frame of each prediction.
        score: (n, C) its scores.
        predicted: (C,) whether there are scores of the label.
        others: where the predictions of other frames lie, to how many.
        floor: scores that are not higher prediction nothing; None where all do.
    """

    classes: tuple[Class, ...]
    frames: Frames
    truth: npt.NDArray[np.bool_]
    frame: Ints
    score: Floats
    predicted: npt.NDArray[np.bool_]
    others: dict[str, int]
    floor: float | None

    def matches(self) -> Matches:
        """Each score of a frame as a prediction of a class, right where the frame has the label."""
        n, which, videos = len(self.frame), np.flatnonzero(self.predicted), self.frames.judged_video
        rows, score = np.empty(n * len(which), dtype=np.int64), np.empty(n * len(which))
        hit, sizes = np.empty((n * len(which), 1), dtype=np.bool_), np.full(len(which), n)
        end = 0
        for k, c in enumerate(which):
            values = np.ascontiguousarray(self.score[:, c], dtype=np.float64)
            ranked = sort_descending(values)
            if self.floor is not None:
                ranked = ranked[values[ranked] > self.floor]
            part, sizes[k] = slice(end, end + len(ranked)), len(ranked)
            rows[part], score[part] = ranked, values[ranked]
            hit[part, 0] = self.truth[self.frame[ranked], c]
            end = part.stop
        rows, score, hit = rows[:end], score[:end], hit[:end]
        n_truth = np.zeros((len(self.frames.videos), len(self.classes)), dtype=np.int64)
        for column, has in enumerate(self.truth.T):
            n_truth[:, column] = np.bincount(videos[has], minlength=len(n_truth))
        cls = np.repeat(which, sizes).astype(np.int32)
        video = videos[self.frame][rows]
        return Matches(
            (SCORED,), self.classes, self.frames.videos, cls, score, video, rows, hit, n_truth, _ranked=True
        )

    @property
    def left_out(self) -> dict[str, int]:
        """What was not judged to how often."""
        return {f"scores of frames {where}": n for where, n in self.others.items() if n}

    def notes(self) -> tuple[str, ...]:
        """What is missing, in words."""
        missing = len(self.frames.judged) - len(self.frame)
        said = f"{missing:,} annotated frames have no scores of their own: their labels count as missed"
        return (said,) if missing else ()


def prepare_labels(
    predictions: Predictions, scenes: Scenes, config: DetectionConfig, kind: str = OF_FRAMES
) -> JudgedLabels:
    """The scores of whole frames beside the ground truth: all annotated frames are ranked for each label.

    Args:
        predictions: frames with dense `scores`. Annotated frames without scores count as missed.
        scenes: `frame_labels` of the kind, and which frames were annotated.
        config: `av_label` and `min_av_score` hold here, and `av_ap` where AP is read off.
        kind: of the labels.

    Returns:
        Ground truth and predictions on the same frames and labels. Its `matches()` stand at one threshold that means
        nothing (a frame has a label or has it not).

    Raises:
        UsageError: if the kind has no vocabulary.
        InputError: if a score is of a label that the ground truth does not know, or a row has none.

    Source: the code released with Singh et al., TPAMI 2022; section 5.1 there.
    """
    classes = list_tube_classes(scenes, [kind])
    frames = collect_frames(scenes)
    judged = frames.judged
    keys = frames.keys(predictions.frames)
    rows = np.flatnonzero(is_in_sorted(judged, keys))
    order = np.argsort(keys[rows], kind="stable")
    rows = rows[order]
    score, predicted = np.zeros((len(rows), len(classes))), np.zeros(len(classes), dtype=np.bool_)
    kinds = get_score_layout(predictions.meta, "frames")
    if kind in kinds.kinds and "scores" in predictions.frames.columns:
        given = convert_dense_scores(predictions.frames["scores"], kinds.width)[rows]
        start = kinds.columns(kind).start
        for _, label, place in build_class_index(predictions, classes).iter_rows():
            score[:, place], predicted[place] = given[:, start + label], True
    truth = _truth(scenes, classes, frames, config)
    at = np.searchsorted(judged, keys[rows])
    others = {"in videos that the truth does not have": int((keys == -1).sum())}
    others["that the truth does not have"] = int((keys == -2).sum())
    others["that were not annotated"] = len(keys) - len(rows) - sum(others.values())
    return JudgedLabels(classes, frames, truth, at, score, predicted, others, config.min_av_score)


def _truth(
    scenes: Scenes, classes: tuple[Class, ...], frames: Frames, config: DetectionConfig
) -> npt.NDArray[np.bool_]:
    """(J, C) whether each judged frame has each label."""
    labels = scenes.frame_labels.filter(pl.col("kind").cast(pl.String) == classes[0][0])
    # The published loader keeps the first of a frame's labels alone.
    if config.av_label == "first":
        labels = labels.unique(["video", "frame"], keep="first", maintain_order=True)
    keys, judged = frames.keys(labels), frames.judged
    rows = is_in_sorted(judged, keys)
    truth = np.zeros((len(judged), len(classes)), dtype=np.bool_)
    truth[np.searchsorted(judged, keys[rows]), labels["label"].to_numpy()[rows]] = True
    return truth


# The rows of a summary: average precision of each class and its mean over each kind, with intervals.

FRAME, VIDEO, AV_ACTION = "frame", "video", "av_action"
DETECTION_SUMMARY: dict[str, Any] = {
    **SUMMARY,
    "level": pl.String,
    "overlap": pl.String,
    "threshold": pl.String,
    "kind": pl.String,
    "label": pl.String,
}


@dataclass(frozen=True)
class Asked:
    """The level of matches, and the metrics that are computed from them.

    Args:
        level: frame, video or av_action.
        columns: name of a threshold to the indices whose mean it is.
        overlap: of tubes.
    """

    level: str
    columns: Mapping[str, tuple[int, ...]]
    overlap: str | None = None

    def metric(self, what: str, threshold: str, kind: str, label: str | None = None) -> str:
        """The metric's name, such as `frame_ap@0.5:agent:Ped` or `video_map@0.2(siou):agent`."""
        of = "" if label is None else f":{label}"
        if self.level == AV_ACTION:
            return f"av_{what}{of}"
        overlap = f"({self.overlap})" if self.overlap not in (None, "stiou") else ""
        return f"{self.level}_{what}@{threshold}{overlap}:{kind}{of}"


@dataclass(frozen=True, eq=False)
class DetectionValues:
    """One metric, in the set as it is and in each draw.

    Args:
        metric: its name.
        value: NaN where undefined.
        drawn: (resamples,) NaN where undefined; None without resamples.
        units: the videos that were drawn; None without resamples.
        n: classes of a mean, ground-truth boxes, tubes or frames of a class.
        threshold: its name.
        kind: of the labels.
        label: of the class; None for a mean.
        holding: videos with truth of the class; None for a mean.
    """

    metric: str
    value: float
    drawn: Floats | None
    units: Units | None
    n: int
    threshold: str
    kind: str
    label: str | None
    holding: int | None = None

    @property
    def interval(self) -> Interval | None:
        """Over videos; None without resamples."""
        if self.drawn is None or self.units is None or np.isnan(self.value):
            return None
        return self.units.interval(self.value, self.drawn, holding=self.holding)


def compute_metrics(
    matches: Matches,
    asked: Asked,
    config: DetectionConfig,
    *,
    videos: Sequence[str] | None = None,
    resamples: int = 0,
    seed: int = 0,
    pool: WorkerPool | None = None,
) -> Iterator[DetectionValues]:
    """Every metric of one level: for each kind and threshold the mean over classes, then each class.

    Args:
        matches: of the level.
        asked: what is asked of them.
        config: with the rule of average precision, and what holds for classes without ground truth.
        videos: those that count (default: all).
        resamples: most weightings of the videos; 0 gives none, as fewer than two videos do.
        seed: of the weightings: equal numbers of videos, resamples and seeds give equal ones.
        pool: who works on the weightings where that takes seconds; this process where None.
    """
    matches, weights = matches.ranked(), build_video_weights(matches.videos, videos)
    rule = config.av_ap if asked.level == AV_ACTION else config.ap
    table = compute_average_precisions(matches, config, weights, rule=rule)
    n_truth = weights @ matches.n_truth
    drawn, units = None, None
    if resamples and weights.sum() > 1:
        units = Units(int(weights.sum()), resamples, seed)
        # Some at a time: all weightings of many videos would be larger than their matches.
        drawn = np.concatenate(
            [
                compute_average_precisions(matches, config, some, rule=rule, pool=pool)
                for some in resample_videos(weights, units)
            ]
        )
    for kind in matches.kinds:
        rows = [c for c, (of, _) in enumerate(matches.classes) if of == kind]
        for name, columns in asked.columns.items():
            at = list(columns)
            means = table[rows][:, at].mean(axis=1)
            in_resamples = None if drawn is None else drawn[:, rows][:, :, at].mean(axis=2)
            whole = None if in_resamples is None else defined_mean(in_resamples)
            n = int((~np.isnan(means)).sum())
            mean = asked.metric("map", name, kind)
            yield DetectionValues(mean, float(defined_mean(means)), whole, units, n, name, kind, None)
            for place, c in enumerate(rows):
                label = matches.classes[c][1]
                each = None if in_resamples is None else in_resamples[:, place]
                value, n = float(means[place]), int(n_truth[c])
                metric = asked.metric("ap", name, kind, label)
                held = int(((matches.n_truth[:, c] > 0) & (weights > 0)).sum())
                yield DetectionValues(metric, value, each, units, n, name, kind, label, held)


def build_summary_rows(
    group: str | None, asked: Asked, found: Iterator[DetectionValues]
) -> Iterator[dict[str, Any]]:
    """The rows of a summary, in the columns of DETECTION_SUMMARY."""
    for each in found:
        valid = not np.isnan(each.value)
        what = "no label of this kind has truth" if each.label is None else "there is no truth of this label"
        yield {
            **dict.fromkeys(DETECTION_SUMMARY),
            "group": group,
            "metric": each.metric,
            "value": each.value if valid else None,
            "valid": valid,
            "n": each.n,
            "reason": None if valid else what,
            **build_interval_columns(each.interval, "video"),
            "level": asked.level,
            "overlap": asked.overlap,
            "threshold": None if asked.level == AV_ACTION else each.threshold,
            "kind": each.kind,
            "label": each.label,
        }


def build_video_weights(videos: Sequence[str], kept: Sequence[str] | None) -> npt.NDArray[np.int32]:
    """(V,) 1 for each video that counts."""
    wanted = set(videos if kept is None else kept)
    return np.array([video in wanted for video in videos], dtype=np.int32)


def defined_mean(values: Floats) -> Floats:
    """Mean of the defined values over the last axis; NaN where none is."""
    # nanmean would warn of rows without any value.
    defined = ~np.isnan(values)
    total = np.where(defined, values, 0.0).sum(axis=-1)
    count = np.asarray(defined.sum(axis=-1), dtype=np.float64)
    mean: Floats = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
    return mean


def resample_videos(weights: npt.NDArray[Any], units: Units) -> Iterator[npt.NDArray[np.int32]]:
    """(resamples, V) how often each video occurs in the weightings of those that count, some weightings at a time.

    Args:
        weights: (V,) 1 for each video that counts.
        units: these videos.
    """
    for of_units in units.weights():
        drawn = np.zeros((len(of_units), len(weights)), dtype=np.int32)
        drawn[:, np.flatnonzero(weights)] = of_units
        yield drawn


# The rows behind the summary: each predicted box and frame label, with the ground truth it met.


def build_frame_rows(
    judged: JudgedFrames, predictions: Predictions, thresholds: Sequence[float]
) -> pl.DataFrame:
    """One row per predicted box and class, by class and falling score.

    Args:
        judged: ground truth and predictions.
        predictions: whose boxes were judged.
        thresholds: (T,) of the hits.

    Returns:
        `box`, `video`, `frame`, `kind`, `label`, `score`; `iou` with the ground-truth box of the class that it
        overlaps most, taken or not (0 where the frame has none); and for each threshold `hit@0.5` and
        `truth@0.5`, the ground-truth box it met, null where none.
    """
    boxes, videos = predictions.boxes, np.array(judged.frames.videos, dtype=object)
    numbers = pl.Series(judged.truth.box, dtype=pl.Int64)
    parts = [
        pl.DataFrame(
            {
                "box": boxes["box"].gather(judged.predictions.row[ranked]),
                "video": pl.Series(
                    videos[judged.frames.judged_video[judged.predictions.frame[ranked]]].tolist(),
                    dtype=pl.String,
                ),
                "frame": boxes["frame"].gather(judged.predictions.row[ranked]),
                "kind": pl.Series([kind] * len(ranked), dtype=pl.String),
                "label": pl.Series([label] * len(ranked), dtype=pl.String),
                "score": score,
                "iou": judged.nearest(c, ranked),
                **{
                    name: values
                    for t, threshold in enumerate(thresholds)
                    for name, values in (
                        (f"hit@{threshold:g}", pl.Series(met[:, t] >= 0)),
                        (
                            f"truth@{threshold:g}",
                            numbers.gather(
                                pl.Series(np.where(met[:, t] >= 0, met[:, t], -1)).replace(-1, None)
                            ),
                        ),
                    )
                },
            }
        )
        for c, ((kind, label), (ranked, score, met)) in enumerate(
            zip(judged.classes, judged.met(thresholds), strict=True)
        )
    ]
    return pl.concat(parts)


def label_rows(judged: JudgedLabels) -> pl.DataFrame:
    """One row per frame and label: `video`, `frame`, `kind`, `label`, `score`, and whether it is right."""
    matches = judged.matches()
    key = judged.frames.judged[judged.frame[matches.order]]
    videos = np.array(judged.frames.videos, dtype=object)
    return pl.DataFrame(
        {
            "video": pl.Series(videos[matches.video].tolist(), dtype=pl.String),
            "frame": key % judged.frames.stride,
            "kind": pl.Series([matches.classes[c][0] for c in matches.cls], dtype=pl.String),
            "label": pl.Series([matches.classes[c][1] for c in matches.cls], dtype=pl.String),
            "score": matches.score,
            "hit": matches.hit[:, 0],
        }
    )


Levels = dict[str, tuple[Asked, Matches]]
Parts = dict[str | None, tuple[Levels, tuple[str, ...] | None]]
USUAL = (0.5,)
USUAL_VIDEO = (0.2, 0.5, 0.75, "0.5:0.95")
Composed = Literal["joint", "product"]
PRODUCTS = "products_of_marginals"
_Known = Callable[[Predictions, Scenes], tuple[str, ...]]
_Noted = _Known
_COMPOSED = {
    "joint": "{level}: {kinds} are judged by the scores the tubes were labelled with, which nothing says are "
    "products; link detections whose scores are (see `frame.with_products`)",
    "product": "{level}: {kinds} are judged by products of marginals, which the predictions hold as their scores",
}


@dataclass(frozen=True, eq=False, repr=False)
class DetectionResult(MetricResult):
    """The metrics of road events, and the matches they are made from.

    Args:
        matches: `frame`, `video:stiou` (and other overlaps) and `av_action` to the matches of the whole.
        left_out: what of predictions and ground truth was not judged, in words, to how often: predictions in videos and
            frames that the ground truth does not have or nobody annotated, ground-truth tubes without boxes. What the
            configuration leaves out is not among it.
        composite_scores: level (`frame`, `video`) to how composite labels are scored there; tubes keep the
            scores they were labelled with.
    """

    matches: dict[str, Matches] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    composite_scores: dict[str, Composed] = field(default_factory=dict)


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    *,
    frame_thresholds: Sequence[float | str] = USUAL,
    video_thresholds: Sequence[float | str] = USUAL_VIDEO,
    overlaps: Sequence[Overlap] = ("stiou",),
    kinds: Sequence[str] | None = None,
    resamples: int = 0,
    seed: int = 0,
    groups: Mapping[str, str] | None = None,
    slices: Mapping[str, Slice] | None = None,
    workers: Workers = HERE,
) -> DetectionResult:
    """Judge predicted boxes, tubes and labels of frames beside the ground truth, as a whole and by group.

    Values are fractions in [0, 1]; higher is better. Intervals are the 2.5 and 97.5 percentiles over
    resamples of whole videos. What was left out is counted in `left_out` and stands in the notes. The config
    of the result says of composite scores what all levels say, or what was asked where they differ.

    Args:
        predictions: boxes, labelled tubes, and scores of frames; kinds that are not predicted are not judged
            and noted, unless nothing is predicted at all, which scores 0.
        scenes: ground truth; what lies outside is left out of the predictions, so that a split can be judged alone.
        config: how they are judged.
        frame_thresholds: of boxes: numbers and `0.5:0.95`; none judges neither boxes nor frame labels.
        video_thresholds: of tubes; none judges no tubes.
        overlaps: of tubes.
        kinds: of labels, of boxes and tubes and `av_action` (default: all that both know), see
            `kinds.list_box_kinds` and `kinds.list_tube_kinds`.
        resamples: resamples of videos; 0 gives no intervals.
        seed: of the resamples.
        groups: video to its group; each group is judged as a set of its own.
        slices: name to a part of the set, which is judged as a group of that name.
        workers: where resamples are worked on that take seconds, and by how many at a time; values do not
            depend on it.

    Raises:
        UsageError: if a threshold, kind, overlap or slice is not known, `resamples` is negative, or a slice has
            the name of a group.
        InputError: if there is no ground truth, or predictions and ground truth do not fit each other.

    Source: Singh et al., TPAMI 2022, section 5; the code released with it.
    """
    _check_request(resamples, groups or {}, slices or {})
    if scenes.boxes.is_empty() and scenes.tubes.is_empty() and scenes.frame_labels.is_empty():
        raise InputError(
            f"there is no truth: {scenes.meta.dataset or 'the set'} has {len(scenes.videos)} videos, and no "
            "box, tube or frame label",
            hint="is this the right file, and a split that was annotated?",
        )
    judge = _Judge(predictions, scenes, config, kinds)
    levels = dict(judge.levels(frame_thresholds, video_thresholds, overlaps))
    parts = dict(_parts(judge, levels, groups, slices or {}))
    # The metrics of the whole and of each group.
    with closing(WorkerPool(workers)) as pool:
        how: dict[str, Any] = {"resamples": resamples, "seed": seed, "pool": pool}
        rows = [
            row
            for group, (levels, videos) in parts.items()
            for asked, matches in levels.values()
            for row in build_summary_rows(
                group, asked, compute_metrics(matches, asked, config, videos=videos, **how)
            )
        ]
    return DetectionResult(
        summary=pl.DataFrame(rows, schema=DETECTION_SUMMARY),
        counts=pl.concat([_counts(group, *part) for group, part in parts.items()]),
        config=to_dict(judge.effective_config()),
        notes=(*(f"{n:,} {what} were left out" for what, n in judge.left_out.items()), *judge.notes),
        makers=judge.makers,
        matches={name: matches for name, (_, matches) in levels.items()},
        left_out=judge.left_out,
        composite_scores=judge.composites,
    )


def _check_request(resamples: int, groups: Mapping[str, str], slices: Mapping[str, Slice]) -> None:
    if resamples < 0:
        raise UsageError(f"resamples should be 0 or more, not {resamples}")
    both = sorted(set(groups.values()) & set(slices))
    if both:
        raise UsageError(f"'{both[0]}' names a group and a slice; give the slice another name")


def as_json(result: MetricResult, native: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The metrics of the whole set in per cent, None where undefined.

    Args:
        result: of `evaluate`.
        native: kind to the name it has in the dataset's own files, under which it stands as well.

    Returns:
        {"frame": {threshold: {kind: {"mean", "per_class": {label: AP}}}}, "video": {overlap: {threshold:
        {kind: ...}}}, "av_action": {"mean", "per_class"}}; levels that were not judged are empty.
    """
    found: dict[str, Any] = {FRAME: {}, VIDEO: {}, AV_ACTION: {}}
    for row in result.of_group().iter_rows(named=True):
        at = found[row["level"]]
        if row["level"] == VIDEO:
            at = at.setdefault(row["overlap"], {})
        if row["level"] != AV_ACTION:
            at = at.setdefault(row["threshold"], {}).setdefault(row["kind"], {})
        value = None if row["value"] is None else 100.0 * row["value"]
        if row["label"] is None:
            at["mean"] = value
            at["per_class"] = {}
        else:
            at["per_class"][row["label"]] = value
    for by_kind in [*found[FRAME].values(), *(at for over in found[VIDEO].values() for at in over.values())]:
        for kind, name in (native or {}).items():
            if kind in by_kind and name not in by_kind:
                by_kind[name] = by_kind[kind]
    return found


class _Judge:
    """The levels of one evaluation, what was noted on the way, and what makes their instances."""

    def __init__(
        self,
        predictions: Predictions,
        scenes: Scenes,
        config: DetectionConfig,
        kinds: Sequence[str] | None,
    ) -> None:
        self.predictions, self.scenes, self.config = predictions, scenes, config
        self.kinds = None if kinds is None else tuple(kind for kind in kinds if kind != OF_FRAMES)
        self.of_frames = kinds is None or OF_FRAMES in kinds
        self.frames: JudgedFrames | None = None
        self.notes: tuple[str, ...] = ()
        self.left_out: dict[str, int] = {}
        self.composites: dict[str, Composed] = {}
        self.makers: dict[str, Callable[[], pl.DataFrame]] = {}
        self.values: tuple[float, ...] = ()

    def levels(
        self,
        frame_thresholds: Sequence[float | str],
        video_thresholds: Sequence[float | str],
        overlaps: Sequence[Overlap],
    ) -> Iterator[tuple[str, tuple[Asked, Matches]]]:
        """Name, metrics and matches of each level."""
        boxes, tubes = build_thresholds(frame_thresholds), build_thresholds(video_thresholds)
        if boxes.values:
            kinds = self._kinds("boxes", list_box_kinds, describe_box_kinds)
            if kinds:
                yield FRAME, (Asked(FRAME, boxes.columns), self._frame(boxes.values, kinds))
        if tubes.values and self.kinds != () and self._linked:
            kinds = self._kinds("tubes", list_tube_kinds, describe_tube_kinds)
            for overlap in overlaps if kinds else ():
                yield (
                    f"{VIDEO}:{overlap}",
                    (Asked(VIDEO, tubes.columns, overlap), self._video(tubes.values, overlap, kinds)),
                )
        if boxes.values and self.of_frames and self._labelled:
            yield AV_ACTION, (Asked(AV_ACTION, {"": (0,)}), self._labels())

    def effective_config(self) -> DetectionConfig:
        """The configuration with composite scores as they are, where all levels agree on that."""
        held = set(self.composites.values())
        return replace(self.config, composite_scores=held.pop()) if len(held) == 1 else self.config

    def _kinds(self, what: str, known: _Known, notes: _Noted) -> tuple[str, ...]:
        """The kinds that were asked for, or those that both sides know; what only one knows is noted."""
        if self.kinds is not None:
            both = known(self.predictions, self.scenes)
            silent = [] if is_silent(self.predictions) else [kind for kind in self.kinds if kind not in both]
            if silent:
                self.notes += (
                    f"no {what} are labelled with {', '.join(silent)} in the predictions: their numbers are 0",
                )
            return self.kinds
        self.notes += notes(self.predictions, self.scenes)
        return known(self.predictions, self.scenes)

    @property
    def _linked(self) -> bool:
        """Whether tubes are judged; they are not where nothing was linked."""
        predictions, asked = self.predictions, not self.scenes.tubes.is_empty()
        if not is_linked(predictions) and not predictions.boxes.is_empty():
            self.notes += ("tubes are not judged, because the predicted boxes are not linked",)
            return False
        if not asked and not predictions.tubes.is_empty():
            self.notes += ("tubes are not judged, because the truth has none",)
        return asked

    @property
    def _labelled(self) -> bool:
        """Whether labels of frames are judged."""
        if OF_FRAMES not in self.scenes.meta.vocabularies:
            return False
        predictions = self.predictions
        scored = (
            "scores" in predictions.frames.columns
            and OF_FRAMES in get_score_layout(predictions.meta, "frames").kinds
        )
        if scored or is_silent(predictions):
            return True
        if not self.scenes.frame_labels.is_empty():
            self.notes += (f"frames are not judged for {OF_FRAMES}: nothing is predicted of that",)
        return False

    def _frame(self, values: tuple[float, ...], kinds: tuple[str, ...]) -> Matches:
        self.frames, self.values = prepare_frames(self.predictions, self.scenes, self.config, kinds), values
        self.left_out |= self.frames.left_out
        self.notes += self.frames.notes()
        self._compose(FRAME, kinds, products=self.config.composite_scores == "product")
        self.makers[FRAME] = partial(build_frame_rows, self.frames, self.predictions, values)
        return self.frames.matches(values)

    def _video(self, values: tuple[float, ...], overlap: Overlap, kinds: tuple[str, ...]) -> Matches:
        judged = (self.predictions, self.scenes, self.config)
        if VIDEO not in self.makers:
            self._compose(VIDEO, kinds, products=False)
        self.makers.setdefault(VIDEO, partial(build_tube_table, *judged, overlap, kinds))
        tubes = prepare_tubes(*judged, overlap, kinds)
        self.left_out |= tubes.left_out
        return tubes.matches(values)

    def _compose(self, level: str, kinds: Sequence[str], *, products: bool) -> None:
        """Tell how composite labels are scored at a level, and say so where it is not what was asked for.

        Args:
            level: frame or video.
            kinds: that are judged.
            products: whether scores were replaced by products here.
        """
        metas = (self.predictions.meta, self.scenes.meta)
        composites = {kind for meta in metas for kind in (*meta.composites, *meta.notes.get(NOTE, {}))}
        held = [kind for kind in kinds if kind in composites]
        made = self.predictions.meta.notes.get(PRODUCTS, [])
        if not held:
            return
        found: Composed = "product" if products or set(held) <= set(made) else "joint"
        self.composites[level] = found
        if found != self.config.composite_scores:
            self.notes += (_COMPOSED[found].format(level=level, kinds=", ".join(held)),)

    def _labels(self) -> Matches:
        judged = prepare_labels(self.predictions, self.scenes, self.config)
        self.left_out |= judged.left_out
        self.notes += judged.notes()
        self.makers[AV_ACTION] = partial(label_rows, judged)
        return judged.matches()


def _parts(
    judge: _Judge, levels: Levels, groups: Mapping[str, str] | None, slices: Mapping[str, Slice]
) -> Iterator[tuple[str | None, tuple[Levels, tuple[str, ...] | None]]]:
    """The whole and each group: its levels, and the videos that count."""
    yield None, (levels, None)
    for name in sorted(set((groups or {}).values())):
        yield name, (levels, tuple(video for video, group in (groups or {}).items() if group == name))
    for name, wanted in slices.items():
        videos = None if wanted.videos is None else tuple(wanted.videos)
        if not wanted.of_boxes:
            yield name, (levels, videos)
        elif judge.frames is not None and FRAME in levels:
            matches = apply_slice(judge.frames, wanted, judge.scenes).matches(judge.values)
            yield name, ({FRAME: (levels[FRAME][0], matches)}, videos)


def _counts(group: str | None, levels: Levels, videos: tuple[str, ...] | None) -> pl.DataFrame:
    """How much ground truth and how many predictions each class has at each level."""
    parts = []
    for name, (_, matches) in levels.items():
        kept = [videos is None or video in videos for video in matches.videos]
        predictions = pl.Series(matches.cls[pl.Series(kept, dtype=pl.Boolean).to_numpy()[matches.video]])
        n = predictions.to_frame("c").group_by("c").len()
        found = dict(n.iter_rows())
        parts.append(
            pl.DataFrame(
                {
                    "group": pl.Series([group] * len(matches.classes), dtype=pl.String),
                    "level": [name] * len(matches.classes),
                    "kind": [kind for kind, _ in matches.classes],
                    "label": [label for _, label in matches.classes],
                    "truth": matches.n_truth[kept].sum(axis=0),
                    "predictions": [found.get(c, 0) for c in range(len(matches.classes))],
                },
                schema_overrides={
                    "kind": pl.String,
                    "label": pl.String,
                    "level": pl.String,
                    "predictions": pl.Int64,
                },
            )
        )
    return pl.concat(parts) if parts else pl.DataFrame()
