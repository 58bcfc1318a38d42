"""Actions of boxes as arrays: the frames of ground truth and predictions, and one row for each label of a box."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.rows import (
    build_class_index,
    convert_dense_scores,
    find_video_index,
    is_in_sorted,
)
from roadaware.metrics.metric_state import refuse_other_units
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

KIND = "action"
_NO_PERSON = 1.0


@dataclass(frozen=True, eq=False)
class Rows:
    """The labels of boxes, in the order of the table of labels, which is that of the file.

    Args:
        box: (n,) number of the box.
        frame: (n,) index in the frames.
        cls: (n,) index in the classes.
        corners: (n, 4) x1, y1, x2, y2.
        score: (n,) of a prediction; of ground truth the number of the person.
        ignored: (n,) whether predictions on it count neither way.
    """

    box: Ints
    frame: Ints
    cls: npt.NDArray[np.int32]
    corners: Floats
    score: Floats
    ignored: Bools

    def __len__(self) -> int:
        return len(self.box)

    def take(self, rows: npt.NDArray[np.generic]) -> Rows:
        """Some of the rows.

        Args:
            rows: indices or (n,) bool.
        """
        return Rows(
            self.box[rows],
            self.frame[rows],
            self.cls[rows],
            self.corners[rows],
            self.score[rows],
            self.ignored[rows],
        )


@dataclass(frozen=True, eq=False)
class Keyframes:
    """The frames of ground truth and predictions, by video and number.

    Args:
        about: (V rows) `video`, `category` and `split`, null where unknown; the videos of the ground truth come
            first, in the order of its table.
        video: (F,) index of the video.
        number: (F,) the frame's number.
        known: (F,) whether the ground truth names it.
        excluded: (F,) whether the ground truth says that nobody annotated it.
        has_truth: (F,) whether it has a ground-truth row.
        persons: (F,) how many different ground-truth boxes it has.
    """

    about: pl.DataFrame
    video: Ints
    number: Ints
    known: Bools
    excluded: Bools
    has_truth: Bools
    persons: Ints


@dataclass(frozen=True, eq=False)
class Actions:
    """Ground truth and predictions of actions.

    Args:
        classes: (C,) names of the actions.
        label_ids: (C,) their native numbers.
        frames: of ground truth and predictions.
        truth: the ground-truth rows.
        predictions: the predicted rows.
    """

    classes: tuple[str, ...]
    label_ids: Ints
    frames: Keyframes
    truth: Rows
    predictions: Rows


def read_actions(predictions: Predictions, scenes: Scenes) -> Actions:
    """Bring ground truth and predictions to the same classes and frames.

    Args:
        predictions: boxes with `labels` of the kind `action`, each with its own score, or with dense `scores`
            of that kind.
        scenes: boxes with `labels` of that kind; frames with `annotated` false are excluded.

    Raises:
        InputError: if there is no ground truth, a prediction has no score, or names an action that the ground truth does not
            know, or boxes of the two are in different units.
    """
    # The names of the actions, numbers as text where there are none.
    if KIND in scenes.meta.vocabularies:
        classes = scenes.meta.vocabularies[KIND]
    else:
        labels = scenes.labels.filter(pl.col("kind").cast(pl.String) == KIND)["label"]
        classes = tuple(str(number) for number in range(1 + _last(labels)))
    truth, predicted = _extract_labels(scenes, classes), _extract_labels(predictions, classes)
    if not len(truth.at):
        raise InputError(
            f"there is no truth: {scenes.meta.dataset or 'the set'} has {len(scenes.boxes):,} boxes, and "
            f"none with a label of the kind '{KIND}'",
            hint="is this the right file, and a split that was annotated?",
        )
    refuse_other_units(predictions, scenes)
    stride = 1 + max(_last(t["frame"]) for t in (scenes.frames, scenes.boxes, predictions.boxes))
    named = [
        t["video"].cast(pl.String).unique(maintain_order=True) for t in (scenes.videos, predictions.boxes)
    ]
    videos = tuple(dict.fromkeys(name for names in named for name in names.to_list()))
    of_truth = _keys(scenes.boxes, videos, stride)
    of_predictions = _keys(predictions.boxes, videos, stride)[predicted.at]
    listed = _keys(scenes.frames, videos, stride)
    known = np.unique(np.concatenate([listed, of_truth]))
    every = np.union1d(known, of_predictions[~is_in_sorted(known, of_predictions)])
    at_truth = np.searchsorted(every, of_truth)
    frames = Keyframes(
        _about(scenes, videos),
        every // stride,
        every % stride,
        known=is_in_sorted(known, every),
        excluded=_mask_members(every, listed[_unseen(scenes)]),
        has_truth=_mask_members(every, of_truth[truth.at]),
        persons=_persons(_corners(scenes.boxes), at_truth, len(every)),
    )
    true_rows = _rows(scenes, truth, at_truth[truth.at], _persons_as_scores(scenes)[truth.at])
    predicted_rows = _rows(predictions, predicted, np.searchsorted(every, of_predictions), predicted.score)
    return Actions(classes, _label_ids(scenes, classes), frames, true_rows, predicted_rows)


def select_subset(actions: Actions, subset: tuple[str, ...]) -> Actions:
    """Ground truth and predictions of some actions alone, in the order in which they are listed.

    Args:
        actions: all of them.
        subset: names, or native numbers; all actions where empty.

    Raises:
        UsageError: if there is no such action.
    """
    if not subset:
        return actions
    known = {str(number): place for place, number in enumerate(actions.label_ids.tolist())}
    known |= {name: place for place, name in enumerate(actions.classes)}
    unknown = [each for each in subset if each not in known]
    if unknown:
        listed = ", ".join(actions.classes[:8])
        raise UsageError(f"subset: no action {unknown[0]!r}; there are {listed}, ... and their numbers")
    places = list(dict.fromkeys(known[each] for each in subset))
    to = np.full(len(actions.classes), -1, dtype=np.int32)
    to[places] = np.arange(len(places))
    truth, predictions = (rows.take(to[rows.cls] >= 0) for rows in (actions.truth, actions.predictions))
    truth, predictions = (replace(rows, cls=to[rows.cls]) for rows in (truth, predictions))
    has_truth = np.zeros_like(actions.frames.has_truth)
    has_truth[truth.frame] = True
    return Actions(
        tuple(actions.classes[place] for place in places),
        actions.label_ids[places],
        replace(actions.frames, has_truth=has_truth),
        truth,
        predictions,
    )


@dataclass(frozen=True, eq=False)
class _Labelled:
    """The labels of the kind, each with the row of its box, its class and its score (1 for ground truth)."""

    at: Ints
    cls: npt.NDArray[np.int32]
    score: Floats


def _extract_labels(tables: TableSet, classes: tuple[str, ...]) -> _Labelled:
    """The labels of a set: the rows of its table or, where predictions are dense, those of box after box."""
    predicted = isinstance(tables, Predictions)
    labels = tables.labels.filter(pl.col("kind").cast(pl.String) == KIND)
    if predicted and labels.is_empty() and "scores" in tables.boxes.columns:
        # Every label of every box, from dense scores
        kinds, n = get_score_layout(tables.meta, "boxes"), len(tables.boxes)
        scores = convert_dense_scores(tables.boxes["scores"], kinds.width)[:, kinds.columns(KIND)]
        cls = _map_classes(tables, np.tile(np.arange(scores.shape[1]), n), classes)
        return _Labelled(np.repeat(np.arange(n), scores.shape[1]), cls, scores.ravel().astype(np.float64))
    cls = _map_classes(tables, labels["label"].to_numpy(), classes)
    score = _scores(labels) if predicted else np.ones(len(labels))
    return _Labelled(_places(tables.boxes["box"], labels["box"]), cls, score)


def _map_classes(tables: TableSet, label: Ints, classes: tuple[str, ...]) -> npt.NDArray[np.int32]:
    """(n,) the class of each label, by name where the tables have names."""
    if KIND in tables.meta.vocabularies:
        places = build_class_index(tables, [(KIND, name) for name in classes]).sort("label")
        return places["class"].to_numpy().astype(np.int32)[label]
    if label.max(initial=-1) >= len(classes):
        raise InputError(
            f"action {label.max()} is predicted, and the truth knows {len(classes)}, counted from 0",
            hint="give the predictions the vocabulary of the truth",
        )
    return label.astype(np.int32)


def _label_ids(scenes: Scenes, classes: tuple[str, ...]) -> Ints:
    """(C,) the native numbers of the actions, their places where the source tells none."""
    ids = scenes.meta.notes.get("label_ids", {})
    held = ids.get(KIND, []) if isinstance(ids, dict) else []
    known = isinstance(held, list) and len(held) == len(classes) and all(type(i) is int for i in held)
    return np.array(held if known else range(len(classes)), dtype=np.int64)


def _about(scenes: Scenes, videos: tuple[str, ...]) -> pl.DataFrame:
    """`video`, `category` and `split` of each video."""
    held = scenes.videos.with_columns(pl.col("video").cast(pl.String))
    texts = {
        "category": pl.col("category").cast(pl.String) if "category" in held.columns else None,
        "split": pl.col("splits").list.join(", ") if "splits" in held.columns else None,
    }
    known = held.select(
        "video", **{name: pl.lit(None, pl.String) if e is None else e for name, e in texts.items()}
    )
    named = pl.DataFrame({"video": pl.Series(videos, dtype=pl.String)})
    return named.join(known, on="video", how="left", maintain_order="left")


def _last(numbers: pl.Series) -> int:
    return int(numbers.to_numpy().max(initial=-1))


def _keys(rows: pl.DataFrame, videos: tuple[str, ...], stride: int) -> Ints:
    """(n,) video and frame of each row as one number."""
    keys: Ints = find_video_index(rows["video"], videos) * stride + rows["frame"].to_numpy()
    return keys


def _places(box: pl.Series, wanted: pl.Series) -> Ints:
    """(n,) the rows in which the boxes stand."""
    held, asked = box.to_numpy(), wanted.to_numpy()
    if len(held) and held[-1] - held[0] == len(held) - 1 and (np.diff(held) == 1).all():
        place: Ints = asked - held[0]
        return place
    order = np.argsort(held, kind="stable")
    return order[np.searchsorted(held[order], asked)]


def _mask_members(every: Ints, keys: Ints) -> Bools:
    """(F,) which of the rising keys are among others."""
    marks = np.zeros(len(every), dtype=np.bool_)
    marks[np.searchsorted(every, keys)] = True
    return marks


def _unseen(scenes: Scenes) -> Bools:
    """(n,) which rows of the frames were not annotated; those that say nothing were."""
    if "annotated" not in scenes.frames.columns:
        return np.zeros(len(scenes.frames), dtype=np.bool_)
    return ~scenes.frames["annotated"].fill_null(value=True).to_numpy()


def _persons(corners: Floats, frame: Ints, n_frames: int) -> Ints:
    """(F,) how many different boxes each frame has."""
    order = np.lexsort((*corners.T, frame))
    rows, at = corners[order], frame[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1) | (at[1:] != at[:-1])
    return np.bincount(at[first], minlength=n_frames)


def _persons_as_scores(scenes: Scenes) -> Floats:
    """(boxes,) the number of the person, which published readers take for a score; 1 where there is none."""
    if "tube" not in scenes.boxes.columns or "name" not in scenes.tubes.columns:
        return np.full(len(scenes.boxes), _NO_PERSON)
    numbers = scenes.tubes.select("tube", pl.col("name").cast(pl.String).cast(pl.Float64, strict=False))
    joined = scenes.boxes.select("tube").join(numbers, on="tube", how="left", maintain_order="left")
    held = joined["name"].fill_null(_NO_PERSON).to_numpy()
    return np.where(np.isfinite(held), held, _NO_PERSON)


def _scores(labels: pl.DataFrame) -> Floats:
    missing = labels["score"].null_count() if "score" in labels.columns else len(labels)
    if missing:
        raise InputError(
            f"{missing:,} of {len(labels):,} predicted labels have no score; each prediction needs one",
            hint="a file of predictions has the score in its last column",
        )
    return labels["score"].cast(pl.Float64).to_numpy() if len(labels) else np.zeros(0)


def _rows(tables: TableSet, labelled: _Labelled, frame: Ints, score: Floats) -> Rows:
    boxes, at = tables.boxes, labelled.at
    ignored = np.zeros(len(at), dtype=np.bool_)
    if isinstance(tables, Scenes) and "ignore" in boxes.columns:
        ignored = boxes["ignore"].fill_null(value=False).to_numpy()[at]
    return Rows(boxes["box"].to_numpy()[at], frame, labelled.cls, _corners(boxes)[at], score, ignored)


def _corners(boxes: pl.DataFrame) -> Floats:
    return np.ascontiguousarray(boxes.select(CORNERS).cast(pl.Float64).to_numpy().reshape(-1, 4))
