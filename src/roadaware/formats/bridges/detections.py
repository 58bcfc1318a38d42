"""Frames of boxes as `supervision.Detections`, and back: what tracks, annotators and metrics of that library take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from roadaware.errors import InputError, UsageError
from roadaware.formats.bridges.box_arrays import (
    NO_TRACK,
    BoxArrays,
    build_predictions,
    build_scenes,
    get_columns,
    list_boxes,
    list_classes,
    parse_box_arrays,
    parse_numbers,
)
from roadaware.formats.bridges.libraries import import_library
from roadaware.scenes.tables import Predictions, Scenes

_NAMES, _IGNORE = "class_name", "ignore"


def build_detections(tables: Scenes | Predictions, kind: str | None = None) -> dict[str, dict[int, Any]]:
    """Video to frame to `supervision.Detections`, empty ones of frames without boxes too.

    `xyxy` are pixels, `class_id` places in the vocabulary and -1 for none, `tracker_id` numbers in the video and -1 for
    none (None where no box has a track), `confidence` scores (None of ground truth), and `data["class_name"]` names.

    Args:
        tables: with boxes.
        kind: of label that becomes the class (default: agent, object, category or action, else the first).

    Raises:
        UsageError: if supervision is not installed, or there is no such kind of label.
    """
    library = import_library("supervision", "to_supervision")
    held = list_boxes(tables, kind)
    corners, label, track, score = get_columns(held)
    names = np.array([*held.classes, ""], dtype=np.str_)[label]
    ignored = held.boxes["ignore"].fill_null(value=False).to_numpy()
    tracked, flagged = bool((track != NO_TRACK).any()), bool(ignored.any())
    scored = isinstance(tables, Predictions) and not np.isnan(score).any()
    # Boxes stand by video and frame, as frames do: the rows of each frame are one piece.
    frames = held.frames.sort("v", "frame")
    keys = held.boxes.select("v", "frame").to_numpy().astype(np.int64)
    wanted = frames.select("v", "frame").to_numpy().astype(np.int64)
    far = np.int64(1 + max(keys[:, 1].max(initial=0), wanted[:, 1].max(initial=0)))
    place, due = keys[:, 0] * far + keys[:, 1], wanted[:, 0] * far + wanted[:, 1]
    begin, end = np.searchsorted(place, due, "left"), np.searchsorted(place, due, "right")
    found: dict[str, dict[int, Any]] = {video: {} for video in held.videos["video"]}
    for video, frame, low, high in zip(
        frames["video"], frames["frame"], begin.tolist(), end.tolist(), strict=True
    ):
        part = slice(low, high)
        data = {_NAMES: names[part], **({_IGNORE: ignored[part]} if flagged else {})}
        found[video][frame] = library.Detections(
            xyxy=corners[part],
            class_id=label[part],
            confidence=score[part] if scored else None,
            tracker_id=track[part] if tracked else None,
            data=data,
        )
    return found


def read_scene_detections(
    given: Any,
    *,
    classes: Sequence[str] | Mapping[int, str] | None,
    kind: str,
    video: str,
    facts: Mapping[str, Mapping[str, Any]] | None,
) -> Scenes:
    """Ground truth of `Detections`; frames without boxes were looked at.

    Args:
        given: {video: {frame: Detections}}, {frame: Detections}, or a sequence of Detections from frame 0 on.
        classes: names in the order of `class_id` (default: those of `data["class_name"]`).
        kind: of label that the classes are.
        video: its name where no other is given.
        facts: video to its width_px, height_px, fps and n_frames, where they are known.

    Raises:
        UsageError: if it is something else.
        InputError: if a field has another length, or classes have no names.
    """
    found, seen, ignore, _ = _collect(given, classes, video, scored=False)
    return build_scenes(found, kind=kind, seen=seen, ignore=ignore, facts=facts, dataset="supervision")


def read_scored_detections(
    given: Any, *, classes: Sequence[str] | Mapping[int, str] | None, kind: str, video: str
) -> Predictions:
    """Predictions of `Detections`; arguments and errors as of `read_scene_detections`.

    Raises:
        UsageError: as above.
        InputError: as above, or if a box has no confidence in [0, 1] or no class.
    """
    found, seen, _, score = _collect(given, classes, video, scored=True)
    if not ((score >= 0) & (score <= 1)).all():
        raise InputError(
            "confidence lies in [0, 1], and each box of predictions needs one",
            hint="from_supervision of Scenes takes boxes without",
        )
    if (found.labels == NO_TRACK).any():
        raise InputError("each box of predictions needs a class_id", hint="give all the same class")
    dense = np.zeros((len(found.boxes), len(found.classes)), np.float32)
    dense[np.arange(len(dense)), found.labels] = score
    return build_predictions(found, dense, kind=kind, seen=seen)


def _arrange(given: Any, video: str) -> dict[str, dict[int, Any]]:
    """Video to frame to detections.

    Raises:
        UsageError: if it is none of the forms.
    """
    if isinstance(given, list | tuple):
        given = dict(enumerate(given))
    if not isinstance(given, Mapping):
        raise UsageError(
            "from_supervision takes {video: {frame: Detections}}, {frame: Detections} or a list of a video's frames, not "
            f"{type(given).__name__}"
        )
    if not any(isinstance(each, Mapping | list | tuple) for each in given.values()):
        given = {video: given}
    given = {
        name: dict(enumerate(frames)) if isinstance(frames, list | tuple) else frames
        for name, frames in given.items()
    }
    for name, frames in given.items():
        if not isinstance(frames, Mapping):
            raise UsageError(
                f"from_supervision: {name!r} holds {type(frames).__name__}, not {{frame: Detections}}"
            )
        for frame, each in frames.items():
            if type(frame) is bool or not isinstance(frame, int | np.integer):
                raise UsageError(f"from_supervision: frames are whole numbers, not {frame!r}")
            if not all(hasattr(each, field) for field in ("xyxy", "class_id", "confidence", "tracker_id")):
                raise UsageError(
                    f"from_supervision: frame {frame} of {name!r} is {type(each).__name__}, not Detections"
                )
    return {str(name): dict(frames) for name, frames in given.items()}


def _collect(
    given: Any, classes: Sequence[str] | Mapping[int, str] | None, video: str, *, scored: bool
) -> tuple[BoxArrays, list[tuple[str, int]], Any, Any]:
    """The boxes, the frames that are named, and of each box whether it is to be ignored, and its score."""
    frames_of = _arrange(given, video)
    seen, corners, videos, frames, label, track, score, ignore, names = [], [], [], [], [], [], [], [], []
    for name, frames_held in frames_of.items():
        for frame in sorted(frames_held):
            each = frames_held[frame]
            where = f"frame {frame} of {name!r}"
            boxes = parse_numbers(f"xyxy in {where}", each.xyxy, np.float64).reshape(-1, 4)
            n = len(boxes)
            seen.append((name, int(frame)))
            corners.append(boxes)
            videos += [name] * n
            frames.append(np.full(n, int(frame)))
            data = getattr(each, "data", None) or {}
            label.append(_field(each.class_id, n, NO_TRACK, np.int64, where))
            track.append(_field(each.tracker_id, n, NO_TRACK, np.int64, where))
            score.append(_field(each.confidence, n, np.nan, np.float64, where))
            ignore.append(_field(data.get(_IGNORE), n, False, np.bool_, where))
            names.append(_field(data.get(_NAMES), n, "", object, where))
    labels, words = (
        np.concatenate([np.zeros(0, np.int64), *label]),
        np.concatenate([np.zeros(0, object), *names]),
    )
    labels, named = _name_classes(labels, words, classes)
    found = parse_box_arrays(
        np.concatenate([np.zeros((0, 4)), *corners]),
        np.concatenate([np.zeros(0, np.int64), *frames]),
        videos,
        named,
        labels,
        np.concatenate([np.zeros(0, np.int64), *track]),
        dtype=np.float32 if scored else np.float64,
        unlabelled=True,
    )
    return (
        found,
        seen,
        np.concatenate([np.zeros(0, np.bool_), *ignore]),
        np.concatenate([np.zeros(0), *score]),
    )


def _field(values: Any, n: int, unknown: Any, kind: Any, where: str) -> Any:
    """One value for each box; `unknown` where the field is None."""
    if values is None:
        return np.full(n, unknown, dtype=kind)
    found = np.asarray(values)
    if found.shape != (n,):
        raise InputError(f"expected ({n},) values for the boxes in {where}, found {found.shape}")
    return found.astype(kind)


def _name_classes(
    labels: Any, words: Any, classes: Sequence[str] | Mapping[int, str] | None
) -> tuple[Any, tuple[str, ...]]:
    """Places in the vocabulary, and the vocabulary: that given, else names by the order of their numbers.

    Raises:
        InputError: if a number has no name, or two.
    """
    if classes is not None:
        return labels, tuple(list_classes(classes))
    named: dict[int, str] = {}
    for number, word in dict.fromkeys(zip(labels.tolist(), words.tolist(), strict=True)):
        if number == NO_TRACK:
            continue
        if not isinstance(word, str) or not word or named.setdefault(number, word) != word:
            raise InputError(
                f"class_id {number} has {'no name' if not word else f'the names {named.get(number)!r} and {word!r}'}",
                hint="say classes=[...], the names in the order of class_id",
            )
    order = sorted(named)
    if len(set(named.values())) < len(named):
        raise InputError(
            "two class_id have the same name", hint="say classes=[...], in the order of class_id"
        )
    place = {number: n for n, number in enumerate(order)}
    moved = np.array([place.get(int(n), NO_TRACK) for n in labels], dtype=np.int64)
    return moved, tuple(named[number] for number in order)
