"""Ground truth and predictions of the judged frames as arrays: boxes by frame, in pixels of one size, and classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError
from roadaware.metrics.detection.tube_rows import AGENTNESS, Class
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

_MADE_UP = -3


@dataclass(frozen=True, eq=False)
class Frames:
    """The frames of some videos, by video and number, and which of them are judged.

    Args:
        videos: (V,) their names, in the order of the table.
        key: (F,) video and frame as one rising number.
        stride: what a video adds to the key.
        annotated: (F,) whether somebody annotated it.
    """

    videos: tuple[str, ...]
    key: Ints
    stride: int
    annotated: Bools

    @property
    def judged(self) -> Ints:
        """(J,) keys of the judged frames."""
        return self.key[self.annotated]

    @property
    def judged_video(self) -> npt.NDArray[np.int32]:
        """(J,) index of the video of each judged frame."""
        return (self.judged // self.stride).astype(np.int32)

    def keys(self, rows: pl.DataFrame) -> Ints:
        """(n,) the key of the frame of each row; -1 where the video is not among these, -2 the frame."""
        video, frame = find_video_index(rows["video"], self.videos), rows["frame"].to_numpy()
        # A frame beyond all known ones would take the key of a frame of the next video.
        keys = np.where(frame < self.stride, video * self.stride + frame, -2)
        return np.where(video < 0, -1, np.where(is_in_sorted(self.key, keys), keys, -2))


@dataclass(frozen=True, eq=False)
class TrueBoxes:
    """The ground-truth boxes of judged frames.

    Args:
        box: (m,) their numbers, by judged frame and then in the order of the table.
        row: (m,) their rows in the table.
        start: (J + 1,) where the boxes of each judged frame start.
        edges: (m, 4) x1, y1, x2, y2.
        ignore: (m,) whether predictions on it are neither right nor wrong.
        members: for each class the places of the boxes that have it.
    """

    box: Ints
    row: Ints
    start: Ints
    edges: Floats
    ignore: Bools
    members: tuple[Ints, ...]


@dataclass(frozen=True, eq=False)
class ClaimedBoxes:
    """The predicted boxes of judged frames.

    Args:
        row: (n,) their rows in the table, by judged frame and then in the order of the table.
        frame: (n,) index of the judged frame.
        edges: (n, 4) x1, y1, x2, y2.
        columns: class to the predictions that speak of it, None for all, and their scores.
        left_out: where the predictions lie that are not judged, in words, to how many.
        interpolated: how many were interpolated between two detections, and are not judged.
    """

    row: Ints
    frame: Ints
    edges: Floats
    columns: Mapping[int, tuple[Ints | None, npt.NDArray[Any]]]
    left_out: Mapping[str, int]
    interpolated: int = 0


def collect_frames(scenes: Scenes) -> Frames:
    """The frames of the scenes.

    Raises:
        InputError: if it is not known which frames were annotated.
    """
    if "annotated" not in scenes.frames.columns:
        raise InputError(
            "the truth does not say which frames were annotated, so no prediction can be called wrong",
            hint="fill the column `annotated` of the table of frames; true everywhere if all were",
        )
    videos = tuple(scenes.videos["video"].cast(pl.String).to_list())
    number = scenes.frames["frame"].to_numpy()
    stride = int(number.max()) + 1 if len(number) else 1
    key = find_video_index(scenes.frames["video"], videos) * stride + number
    order = np.argsort(key, kind="stable")
    annotated = scenes.frames["annotated"].fill_null(value=False).to_numpy()
    return Frames(videos, key[order], stride, annotated[order])


def extract_true_boxes(scenes: Scenes, classes: Sequence[Class], frames: Frames, scale: Floats) -> TrueBoxes:
    """The ground-truth boxes of the judged frames.

    Args:
        scenes: with boxes and labels.
        classes: (C,) kind and label; every box is of agentness.
        frames: the frames of the scenes.
        scale: (V, 4) what boxes are multiplied with.
    """
    keys = frames.keys(scenes.boxes)
    row, frame = _by_frame(keys, frames.judged)
    boxes = scenes.boxes[row] if len(row) < len(scenes.boxes) or (np.diff(row) < 0).any() else scenes.boxes
    ignore = (
        boxes["ignore"].fill_null(value=False) if "ignore" in boxes.columns else np.zeros(len(boxes), bool)
    )
    return TrueBoxes(
        boxes["box"].to_numpy(),
        row,
        np.searchsorted(frame, np.arange(len(frames.judged) + 1)),
        _edges(boxes) * scale[frames.judged_video[frame]],
        np.asarray(ignore, dtype=np.bool_),
        _members(scenes, boxes["box"], classes),
    )


def extract_predicted_boxes(
    predictions: Predictions,
    classes: Sequence[Class],
    frames: Frames,
    scale: Floats,
    *,
    interpolated: bool,
) -> ClaimedBoxes:
    """The predicted boxes of the judged frames, and the number of predictions in other frames.

    Args:
        predictions: with boxes; `score` is that of agentness, `scores` those of the kinds in its layout;
            kinds without dense scores are read from `labels`.
        classes: (C,) kind and label, by name.
        frames: the frames of the ground truth.
        scale: (V, 4) what boxes are multiplied with.
        interpolated: whether boxes that were interpolated between two detections are judged.

    Raises:
        InputError: if a score is missing, or is of a label that the classes do not have.
    """
    keys = frames.keys(predictions.boxes)
    if not interpolated and "interpolated" in predictions.boxes.columns:
        keys[predictions.boxes["interpolated"].fill_null(value=False).to_numpy()] = _MADE_UP
    row, frame = _by_frame(keys, frames.judged)
    whole = len(row) == len(predictions.boxes) and not (np.diff(row) < 0).any()
    boxes = predictions.boxes if whole else predictions.boxes[row]
    names = {-1: "in videos that the truth does not have", -2: "in frames that the truth does not have"}
    left_out = {what: int((keys == code).sum()) for code, what in names.items()}
    made_up = int((keys == _MADE_UP).sum())
    left_out["in frames that were not annotated"] = len(keys) - len(row) - sum(left_out.values()) - made_up
    return ClaimedBoxes(
        row,
        frame,
        _edges(boxes) * scale[frames.judged_video[frame]],
        _columns(predictions, boxes, classes),
        {what: n for what, n in left_out.items() if n},
        made_up,
    )


def find_video_index(video: pl.Series, videos: Sequence[str]) -> Ints:
    """(n,) the place of each name among the videos, -1 where it is not there."""
    known = pl.Series(list(videos), dtype=pl.String)
    places = pl.DataFrame({"video": known, "at": np.arange(len(videos))})
    named = video.cast(pl.String).to_frame("video")
    joined = named.join(places, on="video", how="left", maintain_order="left")
    return joined["at"].fill_null(-1).to_numpy()


def is_in_sorted(keys: Ints, values: Ints) -> Bools:
    """(n,) whether each value is among the rising keys."""
    if not len(keys):
        return np.zeros(len(values), dtype=np.bool_)
    # What is above all keys has its place behind the last one.
    at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    hits: Bools = keys[at] == values
    return hits


def _by_frame(keys: Ints, judged: Ints) -> tuple[Ints, Ints]:
    """The rows of judged frames, by frame and then by row, and the index of the judged frame of each."""
    row = np.flatnonzero(is_in_sorted(judged, keys))
    frame = np.searchsorted(judged, keys[row])
    if (np.diff(frame) < 0).any():
        order = np.argsort(frame, kind="stable")
        row, frame = row[order], frame[order]
    return row, frame.astype(np.int64)


def _edges(boxes: pl.DataFrame) -> Floats:
    return np.ascontiguousarray(boxes.select(CORNERS).cast(pl.Float64).to_numpy().reshape(-1, 4))


def _members(scenes: Scenes, box: pl.Series, classes: Sequence[Class]) -> tuple[Ints, ...]:
    """For each class the places of the boxes that have it."""
    place = pl.DataFrame({"box": box, "place": np.arange(len(box))})
    rows = _label_rows(scenes, classes).join(place, on="box", how="inner").sort("class", "place")
    start = np.searchsorted(rows["class"].to_numpy(), np.arange(len(classes) + 1))
    places = rows["place"].to_numpy()
    everybody = np.arange(len(box))
    return tuple(
        everybody if kind == AGENTNESS else places[start[c] : start[c + 1]]
        for c, (kind, _) in enumerate(classes)
    )


def _label_rows(tables: TableSet, classes: Sequence[Class]) -> pl.DataFrame:
    """`box`, `class`, and `score` where there is one, of the labels that are of the classes."""
    table = build_class_index(tables, classes)
    kinds = table["kind"].unique().to_list()
    labels = tables.labels.with_columns(pl.col("kind").cast(pl.String)).filter(pl.col("kind").is_in(kinds))
    return labels.join(table, on=["kind", "label"], how="inner", maintain_order="left")


def build_class_index(tables: TableSet, classes: Sequence[Class]) -> pl.DataFrame:
    """`kind`, `label` (index in the vocabularies of the tables) and `class` (index in the classes).

    Raises:
        InputError: if the tables know labels of these kinds that the classes do not have.
    """
    places = {named: c for c, named in enumerate(classes)}
    kinds = [kind for kind in dict.fromkeys(kind for kind, _ in classes) if kind != AGENTNESS]
    rows = [
        (kind, index, places.get((kind, label)), label)
        for kind in kinds
        for index, label in enumerate(tables.meta.vocabularies.get(kind, ()))
    ]
    unknown = [f"{kind} '{label}'" for kind, _, place, label in rows if place is None]
    if unknown:
        raise InputError(
            f"{len(unknown)} labels are predicted that the truth does not know, first {', '.join(unknown[:5])}",
            hint="labels are compared by name: rename them to those of the truth, or leave them out",
        )
    schema = {"kind": pl.String, "label": pl.Int64, "class": pl.Int64}
    return pl.DataFrame([row[:3] for row in rows], schema=schema, orient="row")


def _columns(
    predictions: Predictions, boxes: pl.DataFrame, classes: Sequence[Class]
) -> dict[int, tuple[Ints | None, npt.NDArray[Any]]]:
    """Class to its predictions and their scores; classes that nothing is predicted of are absent."""
    columns: dict[int, tuple[Ints | None, npt.NDArray[Any]]] = {}
    kinds = get_score_layout(predictions.meta, "boxes") if "scores" in boxes.columns else None
    if kinds is not None:
        scores = convert_dense_scores(boxes["scores"], kinds.width)
        for kind, label, place in build_class_index(predictions, classes).iter_rows():
            if kind in kinds.kinds:
                columns[place] = None, scores[:, kinds.columns(kind).start + label]
    for place, (kind, _) in enumerate(classes):
        if kind == AGENTNESS and "score" in boxes.columns:
            columns[place] = None, _score(boxes, "boxes")
    rest = [named for place, named in enumerate(classes) if place not in columns]
    if predictions.labels.is_empty() or not rest:
        return columns
    at = pl.DataFrame({"box": boxes["box"], "place": np.arange(len(boxes))})
    rows = _label_rows(predictions, classes).join(at, on="box", how="inner").sort("class", "place")
    for (place,), group in rows.group_by("class", maintain_order=True):
        if place not in columns:
            columns[int(str(place))] = group["place"].to_numpy(), _score(group, "labels")
    return columns


def convert_dense_scores(scores: pl.Series, width: int) -> npt.NDArray[Any]:
    """(n, width) dense scores in the precision they were predicted in.

    Raises:
        InputError: if a row is missing or of another length.
    """
    held = scores.arr.to_list() if isinstance(scores.dtype, pl.Array) else scores
    if isinstance(scores.dtype, pl.Array) and not scores.null_count():
        lengths = {int(scores.dtype.shape[0])}
    else:
        lengths = {-1 if n is None else int(n) for n in held.list.len().unique().to_list()}
    if len(scores) and lengths != {width}:
        raise InputError(
            f"each row needs {width} dense scores; found rows of {sorted(lengths)} (-1: none)",
            hint="`meta.notes` says which kinds the scores stand for; see `roadaware.scenes.dense_scores`",
        )
    return scores.explode().to_numpy().reshape(len(scores), width) if len(scores) else np.zeros((0, width))


def _score(rows: pl.DataFrame, table: str) -> npt.NDArray[Any]:
    if "score" not in rows.columns or rows["score"].null_count():
        missing = rows["score"].null_count() if "score" in rows.columns else len(rows)
        raise InputError(
            f"{missing} rows of the predictions' {table} have no score; each prediction needs one"
        )
    return rows["score"].to_numpy()
