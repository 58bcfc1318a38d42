"""Matches of frame labels: the scores of whole frames against the own vehicle's actions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.frame import sort_descending
from roadaware.metrics.detection.frame_inputs import (
    Frames,
    build_class_index,
    collect_frames,
    convert_dense_scores,
    is_in_sorted,
)
from roadaware.metrics.detection.matches import Matches
from roadaware.metrics.detection.tube_rows import OF_FRAMES, Class, list_tube_classes
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.tables import Predictions, Scenes

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
        claimed: (C,) whether there are scores of the label.
        others: where the predictions of other frames lie, to how many.
        floor: scores that are not higher prediction nothing; None where all do.
    """

    classes: tuple[Class, ...]
    frames: Frames
    truth: npt.NDArray[np.bool_]
    frame: Ints
    score: Floats
    claimed: npt.NDArray[np.bool_]
    others: dict[str, int]
    floor: float | None

    def matches(self) -> Matches:
        """Each score of a frame as a prediction of a class, right where the frame has the label."""
        n, which, videos = len(self.frame), np.flatnonzero(self.claimed), self.frames.judged_video
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


def match_av_actions(
    predictions: Predictions, scenes: Scenes, config: DetectionConfig, kind: str = OF_FRAMES
) -> Matches:
    """Judge the scores of whole frames: all annotated frames are ranked for each label.

    Args:
        predictions: frames with dense `scores`. Annotated frames without scores count as missed.
        scenes: `frame_labels` of the kind, and which frames were annotated.
        config: `av_label` and `min_av_score` hold here, and `av_ap` where AP is read off.
        kind: of the labels.

    Returns:
        Matches at one threshold that means nothing (a frame has a label or has it not).

    Raises:
        UsageError: if the kind has no vocabulary.
        InputError: if a score is of a label that the ground truth does not know, or a row has none.

    Source: the code released with Singh et al., TPAMI 2022; section 5.1 there.
    """
    return prepare_labels(predictions, scenes, config, kind).matches()


def prepare_labels(
    predictions: Predictions, scenes: Scenes, config: DetectionConfig, kind: str = OF_FRAMES
) -> JudgedLabels:
    """Bring ground truth and predictions to the same frames and labels; arguments as `match_av_actions`."""
    classes = list_tube_classes(scenes, [kind])
    frames = collect_frames(scenes)
    judged = frames.judged
    keys = frames.keys(predictions.frames)
    rows = np.flatnonzero(is_in_sorted(judged, keys))
    order = np.argsort(keys[rows], kind="stable")
    rows = rows[order]
    score, claimed = np.zeros((len(rows), len(classes))), np.zeros(len(classes), dtype=np.bool_)
    kinds = get_score_layout(predictions.meta, "frames")
    if kind in kinds.kinds and "scores" in predictions.frames.columns:
        given = convert_dense_scores(predictions.frames["scores"], kinds.width)[rows]
        start = kinds.columns(kind).start
        for _, label, place in build_class_index(predictions, classes).iter_rows():
            score[:, place], claimed[place] = given[:, start + label], True
    truth = _truth(scenes, classes, frames, config)
    at = np.searchsorted(judged, keys[rows])
    others = {"in videos that the truth does not have": int((keys == -1).sum())}
    others["that the truth does not have"] = int((keys == -2).sum())
    others["that were not annotated"] = len(keys) - len(rows) - sum(others.values())
    return JudgedLabels(classes, frames, truth, at, score, claimed, others, config.min_av_score)


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
