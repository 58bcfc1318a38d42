"""How paths are compared with tracks: frame by frame, the pairs of boxes that overlap, and their best assignment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.config import check_flags, check_not_negative, check_range, check_words
from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.kernels import compute_frame_overlaps
from roadaware.metrics.detection.rows import (
    AGENTNESS,
    LabelledTubes,
    compute_scales,
    extract_labelled_tubes,
    find_video_index,
    select_paths,
)
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, filter_boxes

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


EPSILON = float(np.finfo(np.float64).eps)
"""By how much an overlap may miss a threshold, as in the published code."""


@dataclass(frozen=True, eq=False)
class Seen:
    """The boxes of one side by frame, and then by track in the order of the table.

    Args:
        track: (n,) the track of each box, index in `number`.
        frame: (n,) the frame of each box, index in the frames of `TrackPairs`.
        start: (F + 1,) where the boxes of each frame begin.
        number: (tracks,) number of each track in its table.
        video: (tracks,) its video.
    """

    track: Ints
    frame: Ints
    start: Ints
    number: Ints
    video: Ints

    @property
    def lengths(self) -> Ints:
        """(tracks,) boxes of each track."""
        return np.bincount(self.track, minlength=len(self.number))

    def only(self, kept: npt.NDArray[np.bool_]) -> Seen:
        """Some of the boxes, of the same tracks and frames.

        Args:
            kept: (n,).
        """
        before = np.concatenate([[0], np.cumsum(kept)])
        return replace(self, track=self.track[kept], frame=self.frame[kept], start=before[self.start])


@dataclass(frozen=True, eq=False)
class TrackPairs:
    """Ground-truth and predicted boxes of the judged frames that hold any, and their pairs that overlap.

    Args:
        videos: (V,) the videos, also those without boxes.
        n_frames: (V,) judged frames of each.
        frame_video: (F,) the video of each frame with a box; frames come by video and number.
        truth: boxes of ground-truth tracks.
        predictions: boxes of predicted paths.
        true_box: (P,) the ground-truth box of each pair, index in `truth.track`.
        predicted_box: (P,) the predicted box, index in `predictions.track`.
        similarity: (P,) their intersection over union, above 0.
        left_out: what was not judged, in words, to how often.
    """

    videos: tuple[str, ...]
    n_frames: Ints
    frame_video: Ints
    truth: Seen
    predictions: Seen
    true_box: Ints
    predicted_box: Ints
    similarity: Floats
    left_out: dict[str, int] = field(default_factory=dict)

    @cached_property
    def frame(self) -> Ints:
        """(P,) the frame of each pair."""
        return self.truth.frame[self.true_box]

    @cached_property
    def video(self) -> Ints:
        """(P,) the video of each pair."""
        return self.frame_video[self.frame]

    def summed(self, seen: Seen) -> Ints:
        """(V,) boxes of one side in each video."""
        return np.bincount(self.frame_video[seen.frame], minlength=len(self.videos))

    @cached_property
    def track_pairs(self) -> tuple[Ints, Ints, Ints]:
        # One number for each track and path.
        """Track and path of each two that ever overlap, and which of these each pair of boxes is of."""
        n = max(1, len(self.predictions.number))
        code = self.truth.track[self.true_box] * n + self.predictions.track[self.predicted_box]
        codes, which = np.unique(code, return_inverse=True)
        return codes // n, codes % n, which.reshape(-1).astype(np.int64)


def track_pairs(predictions: Predictions, scenes: Scenes, config: TrackingConfig) -> TrackPairs:
    """The tracks of the ground truth and the paths that are predicted, in the ground truth's frames that were annotated.

    Args:
        predictions: paths are tubes without parent and kind; those in videos that the ground truth lacks are left
            out.
        scenes: tracks are tubes without parent and kind, or without parent where all have a kind; where no
            frame is said to be annotated or not, all are. Boxes with `ignore` are left out, and with them
            the predicted boxes that the assignment of greatest overlap gives them, at `config.threshold`.
        config: how boxes are compared.

    Raises:
        InputError: if tubes are predicted of which none is a path, tracks contradict themselves, sizes of
            images are not known, or scores are asked for and boxes have none.
    """
    _check_paths(predictions)
    predictions = _strong(predictions, config.min_score)
    if not config.interpolated_boxes and "interpolated" in predictions.boxes.columns:
        made_up = pl.col("interpolated").fill_null(value=False)
        predictions = filter_boxes(predictions, ~made_up)
    videos = tuple(scenes.videos["video"].cast(pl.String).to_list())
    scale = compute_scales(predictions, scenes, videos, DetectionConfig())
    classes = ((AGENTNESS, AGENTNESS),)
    scenes, resting = _split_ignored(scenes)
    sides = [
        extract_labelled_tubes(tables, classes, videos, factors, scored=False)
        for tables, factors in ((scenes, scale.truth), (predictions, scale.predictions))
    ]
    stride = 1 + max(int(side.tubes.frames.max(initial=0)) for side in sides)
    judged, n_frames = _list_evaluated_frames(scenes, videos, stride)
    found = [_boxes(side, judged, stride) for side in sides]
    ignored = _resting(resting, videos, judged, stride, scale.truth)
    found[0] = _merge_ignored(found[0], ignored, len(sides[0]))
    keys = np.unique(np.concatenate([key for key, _, _ in found]))
    truth, predicted = (
        _seen(side, key, track, keys) for side, (key, track, _) in zip(sides, found, strict=True)
    )
    edges = [edges for _, _, edges in found]
    start, overlap = compute_frame_overlaps(
        edges[1], predicted.frame, edges[0], truth.start, float(config.pixel_offset), False
    )
    counts = np.diff(start)
    predicted_box = np.repeat(np.arange(len(predicted.track)), counts)
    true = np.arange(len(overlap)) - np.repeat(start[:-1] - truth.start[predicted.frame], counts)
    some = overlap > 0
    pairs = TrackPairs(
        videos, n_frames, keys // stride, truth, predicted, true[some], predicted_box[some], overlap[some]
    )
    foreign = sides[1].left_out
    left_out = {"predicted paths in videos that the truth does not have": foreign} if foreign else {}
    return replace(_drop_ignored(pairs, config.threshold) if len(ignored[0]) else pairs, left_out=left_out)


def _strong(predictions: Predictions, min_score: float | None) -> Predictions:
    """The predictions without boxes below a score; scores are compared as they are stored."""
    if min_score is None or predictions.boxes.is_empty():
        return predictions
    if "score" not in predictions.boxes.columns:
        raise InputError("min_score asks for scores of boxes, and none are predicted")
    low = pl.lit(min_score, dtype=predictions.boxes.schema["score"])
    return filter_boxes(predictions, pl.col("score") >= low)


def assign_pairs(pairs: TrackPairs, score: Floats) -> Ints:
    """The pairs of the assignment of greatest score within each frame, each box in one pair at most.

    Args:
        pairs: P of them.
        score: (P,) of each pair; pairs that do not score above 0 are not assigned.
    """
    alone, crowded = split_crowded_frames(pairs, np.flatnonzero(score > 0))
    found = [alone, *(solve_assignment(pairs, rows, score[rows]) for rows in crowded)]
    return np.sort(np.concatenate(found))


def solve_assignment(pairs: TrackPairs, rows: Ints, score: Floats) -> Ints:
    """The pairs, out of those of one frame, of the assignment of greatest score."""
    from scipy.optimize import linear_sum_assignment

    frame = int(pairs.frame[rows[0]])
    first, other = pairs.truth.start[frame], pairs.predictions.start[frame]
    shape = (pairs.truth.start[frame + 1] - first, pairs.predictions.start[frame + 1] - other)
    at = (pairs.true_box[rows] - first, pairs.predicted_box[rows] - other)
    scores, place = np.zeros(shape), np.full(shape, -1, dtype=np.int64)
    scores[at], place[at] = score, rows
    held = place[linear_sum_assignment(scores, maximize=True)]
    return held[held >= 0]


def split_crowded_frames(pairs: TrackPairs, kept: Ints) -> tuple[Ints, list[Ints]]:
    """Of some pairs those in frames where no two compete for a box, and the rest frame by frame."""
    true, predicted, frame = pairs.true_box[kept], pairs.predicted_box[kept], pairs.frame[kept]
    several = (np.bincount(true, minlength=1)[true] > 1) | (
        np.bincount(predicted, minlength=1)[predicted] > 1
    )
    crowded = np.isin(frame, frame[several])
    return kept[~crowded], _by_frame(pairs, kept[crowded])


def _by_frame(pairs: TrackPairs, rows: Ints) -> list[Ints]:
    """The pairs of each frame; pairs come by frame."""
    if not len(rows):
        return []
    order = rows[np.argsort(pairs.frame[rows], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(pairs.frame[order])) + 1)


def _list_evaluated_frames(scenes: Scenes, videos: tuple[str, ...], stride: int) -> tuple[Ints | None, Ints]:
    """Keys of the annotated frames, None for all, and how many each video has."""
    index = {video: at for at, video in enumerate(videos)}
    frames = scenes.frames
    if (
        frames.is_empty()
        or "annotated" not in frames.columns
        or frames["annotated"].null_count() == len(frames)
    ):
        known = "n_frames" in scenes.videos.columns
        counts = scenes.videos["n_frames"].fill_null(0).to_numpy() if known else np.zeros(len(videos))
        return None, counts.astype(np.int64)
    looked = frames.filter(pl.col("annotated").fill_null(value=False))
    video = looked["video"].cast(pl.String).replace_strict(index, return_dtype=pl.Int64).to_numpy()
    number = looked["frame"].to_numpy()
    within = number < stride
    return video[within] * stride + number[within], np.bincount(video, minlength=len(videos))


def _check_paths(predictions: Predictions) -> None:
    """Raise InputError where there are tubes, and none stands for somebody whatever the label."""
    tubes = predictions.tubes
    if tubes.is_empty() or not select_paths(predictions).is_empty():
        return
    kinds = sorted(set(tubes["kind"].cast(pl.String).drop_nulls())) if "kind" in tubes.columns else []
    raise InputError(
        f"none of the {len(tubes):,} predicted tubes is a path: they are tubes of "
        f"{', '.join(kinds) or 'others'}, where somebody stands once for each label",
        hint="tracks are followed by tubes without parent and kind: link detections, or predict such tubes",
    )


def _split_ignored(scenes: Scenes) -> tuple[Scenes, pl.DataFrame]:
    """The scenes without the boxes to ignore, and these."""
    boxes = scenes.boxes
    if "ignore" not in boxes.columns:
        return scenes, boxes.clear()
    ignore = pl.col("ignore").fill_null(value=False)
    return filter_boxes(scenes, ~ignore), boxes.filter(ignore)


def _resting(
    boxes: pl.DataFrame, videos: tuple[str, ...], judged: Ints | None, stride: int, scale: Floats
) -> tuple[Ints, Floats]:
    """Key of the frame and edges of the boxes to ignore in frames that count, scaled."""
    video, frame = find_video_index(boxes["video"], videos), boxes["frame"].to_numpy()
    key = video * stride + frame
    kept = (video >= 0) & (frame < stride)
    if judged is not None:
        kept &= np.isin(key, judged)
    edges = boxes.select(CORNERS).cast(pl.Float64).to_numpy().reshape(-1, 4)[kept]
    return key[kept].astype(np.int64), edges * scale[video[kept]]


def _merge_ignored(
    tracked: tuple[Ints, Ints, Floats], ignored: tuple[Ints, Floats], n_tracks: int
) -> tuple[Ints, Ints, Floats]:
    """Ground-truth boxes with those to ignore, which belong to the track after the last."""
    key, track, edges = tracked
    keys = np.concatenate([key, ignored[0]])
    order = np.argsort(keys, kind="stable")
    tracks = np.concatenate([track, np.full(len(ignored[0]), n_tracks)])
    return keys[order], tracks[order], np.concatenate([edges, ignored[1]])[order]


def _drop_ignored(pairs: TrackPairs, threshold: float) -> TrackPairs:
    """The pairs without ground-truth boxes to ignore, and without the predicted boxes that are assigned to them."""
    asked = pairs.truth.track < len(pairs.truth.number)
    met = assign_pairs(pairs, np.where(pairs.similarity >= threshold - EPSILON, pairs.similarity, 0.0))
    counted = np.ones(len(pairs.predictions.track), dtype=np.bool_)
    counted[pairs.predicted_box[met[~asked[pairs.true_box[met]]]]] = False
    true, predicted = np.cumsum(asked) - 1, np.cumsum(counted) - 1
    kept = asked[pairs.true_box] & counted[pairs.predicted_box]
    return replace(
        pairs,
        truth=pairs.truth.only(asked),
        predictions=pairs.predictions.only(counted),
        true_box=true[pairs.true_box[kept]],
        predicted_box=predicted[pairs.predicted_box[kept]],
        similarity=pairs.similarity[kept],
    )


def _boxes(side: LabelledTubes, judged: Ints | None, stride: int) -> tuple[Ints, Ints, Floats]:
    """Key of the frame, track and edges of every box that counts, by key and then by track."""
    tubes = side.tubes
    lengths = tubes.lengths[side.extent]
    track = np.repeat(np.arange(len(side)), lengths)
    ends = np.cumsum(lengths)
    at = np.arange(len(track)) + np.repeat(tubes.offsets[side.extent] - (ends - lengths), lengths)
    key = side.video[track] * stride + tubes.frames[at]
    kept = np.arange(len(key)) if judged is None else np.flatnonzero(np.isin(key, judged))
    order = kept[np.argsort(key[kept], kind="stable")]
    return key[order], track[order], tubes.boxes[tubes.rows[at[order]]]


def _seen(side: LabelledTubes, key: Ints, track: Ints, keys: Ints) -> Seen:
    frame: npt.NDArray[Any] = np.searchsorted(keys, key)
    start = np.searchsorted(key, keys, "left")
    return Seen(track, frame.astype(np.int64), np.append(start, len(key)), side.tube, side.video)
