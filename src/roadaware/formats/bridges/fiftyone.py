"""Boxes as a FiftyOneDataset in JSON, written and read without FiftyOne.

Without a `version` in `metadata.json` FiftyOne's importer of the type FiftyOneDataset takes the plain form written here,
which needs no ids of a database; what it exports itself is read too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.formats.boxes.flat import FlatBoxes, name_file
from roadaware.formats.bridges.box_arrays import (
    NO_TRACK,
    build_predictions,
    build_scenes,
    get_columns,
    list_boxes,
    parse_box_arrays,
)
from roadaware.formats.coco import read_json_document
from roadaware.formats.road_detections import write_folder
from roadaware.io.folders import make_folder
from roadaware.io.json import escape_surrogates
from roadaware.io.sources import is_outside, to_printable
from roadaware.scenes.tables import Predictions, Scenes

_TRUTH, _PREDICTED = "ground_truth", "predictions"
_HINT = "export the dataset as fiftyone.types.FiftyOneDataset"


def write_fiftyone(
    scenes: Scenes,
    folder: Path,
    *,
    media: Path,
    kind: str | None = None,
    name: str = "roadaware",
    predictions: Predictions | None = None,
) -> int:
    """Write videos with the boxes of their frames; the number of boxes, of predictions where they are given.

    The folder holds `metadata.json`, `samples.json` and `frames/VIDEO.json`. Boxes are the field `ground_truth` of a frame,
    predictions `predictions`; the index of a box is its track, a split is a tag.

    Args:
        scenes: whose videos are the samples.
        folder: must not exist, or be empty.
        media: where `videos.path` starts; where it is empty, paths are written as the tables have them.
        kind: of label that becomes the class.
        name: of the dataset.
        predictions: that stand beside the truth.

    Raises:
        UsageError: if the folder holds anything, or there is no such kind.
        InputError: if the size of a video is not known.
        DiskError: if the disk refuses.
    """
    held = list_boxes(scenes, kind)
    sides = [(_TRUTH, held, False)]
    if predictions is not None:
        sides.append((_PREDICTED, list_boxes(predictions, kind), True))
    unsized = held.videos.filter(pl.col("width_px").is_null() | pl.col("height_px").is_null())
    if len(unsized):
        raise InputError(
            f"the size of video {to_printable(unsized['video'][0], 60)} is not known, and FiftyOne counts in it",
            hint="`roadaware read NAME PATH --media VIDEOS --output TABLES` looks at the videos",
        )
    frames = _list_frames(held, sides)
    classes = list(dict.fromkeys(word for _, side, _ in sides for word in side.classes))
    make_folder(folder.absolute().parent)
    metadata = {"name": name, "media_type": "video", "default_classes": classes, "info": {}}
    write_folder(folder, _build_files(scenes, held, frames, media, metadata))
    return len(sides[-1][1].boxes)


def _list_frames(
    held: FlatBoxes, sides: list[tuple[str, FlatBoxes, bool]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Video to number of a frame, from 1, to what FiftyOne holds of it."""
    found: dict[str, dict[str, dict[str, Any]]] = {video: {} for video in held.videos["video"]}
    size = {v: (w, h) for v, w, h in held.videos.select("video", "width_px", "height_px").iter_rows()}
    for field, side, scored in sides:
        for video, frame in side.frames.select("video", "frame").iter_rows():
            if video in found:
                held_frame = found[video].setdefault(str(frame + 1), {"frame_number": frame + 1})
                held_frame[field] = {"_cls": "Detections", "detections": []}
        corners, label, track, score = get_columns(side)
        ignored = side.boxes["ignore"].fill_null(value=False).to_list()
        for n, (video, frame) in enumerate(side.boxes.select("video", "frame").iter_rows()):
            if video not in found:
                continue
            width, height = size[video]
            x1, y1, x2, y2 = corners[n].tolist()
            box = [x1 / width, y1 / height, (x2 - x1) / width, (y2 - y1) / height]
            row: dict[str, Any] = {"_cls": "Detection", "tags": [], "attributes": {}, "bounding_box": box}
            if label[n] != NO_TRACK:
                row["label"] = side.classes[label[n]]
            if track[n] != NO_TRACK:
                row["index"] = int(track[n])
            if scored and not np.isnan(score[n]):
                row["confidence"] = float(score[n])
            if ignored[n]:
                row["ignore"] = True
            found[video][str(frame + 1)][field]["detections"].append(row)
    return found


def _build_files(
    scenes: Scenes, held: FlatBoxes, frames: dict[str, Any], media: Path, metadata: dict[str, Any]
) -> Iterator[tuple[str, bytes]]:
    paths: dict[str, str | None] = {}
    if "path" in scenes.videos.columns:
        paths = dict(scenes.videos.select(pl.col("video").cast(pl.String), "path").iter_rows())
    splits: dict[str, list[str] | None] = {}
    if "splits" in scenes.videos.columns:
        splits = dict(scenes.videos.select(pl.col("video").cast(pl.String), "splits").iter_rows())
    samples = []
    for row in held.videos.iter_rows(named=True):
        video = row["video"]
        file = name_file(f"frames/{video}", ".json")
        place = paths.get(video) or f"{video}.mp4"
        samples.append(
            {
                "filepath": str((media / place).absolute()) if str(media) != "." else place,
                "tags": [split.rpartition("/")[2] for split in splits.get(video) or ()],
                "metadata": {
                    "_cls": "VideoMetadata",
                    "frame_width": row["width_px"],
                    "frame_height": row["height_px"],
                    "frame_rate": row["fps"],
                    "total_frame_count": row["n_frames"],
                },
                "video": video,
                "frames": file,
            }
        )
        yield file, json.dumps({"frames": frames[video]}, allow_nan=False).encode()
    yield "samples.json", json.dumps({"samples": samples}, allow_nan=False).encode()
    yield "metadata.json", json.dumps(metadata).encode()


def read_fiftyone(folder: Path, *, kind: str, predicted: bool) -> Scenes | Predictions:
    """Videos with the boxes of one field of their frames.

    Args:
        folder: of a FiftyOneDataset of videos, in the form written here or as FiftyOne exports it.
        kind: of label that the classes are.
        predicted: whether the field `predictions` is read, else `ground_truth`.

    Raises:
        InputError: if it is damaged, holds no videos, or a frame or box is none.
    """
    field, where = (_PREDICTED if predicted else _TRUTH), to_printable(str(folder))
    metadata = _read_object(folder / "metadata.json")
    listed = _read_object(folder / "samples.json").get("samples")
    if metadata.get("media_type") != "video" or not isinstance(listed, list):
        raise InputError("expected a FiftyOneDataset of videos", where=where, hint=_HINT)
    exported = _read_exported_frames(folder)
    rows: list[tuple[str, int, int, Floats, str | None, float, bool]] = []
    seen: list[tuple[str, int]] = []
    facts: dict[str, dict[str, Any]] = {}
    for n, sample in enumerate(listed):
        video, size, facts_of = _read_sample(sample, f"{where}, sample {n}")
        if video in facts:
            raise InputError(f"the video {video} stands twice", where=where)
        facts[video] = facts_of
        for frame in _read_frames(folder, sample, exported, f"{where}, {video}"):
            number = frame.get("frame_number") if isinstance(frame, dict) else None
            if type(number) is not int or number < 1:
                raise InputError(f"a frame of {video} has no frame_number from 1 on", where=where)
            held = frame.get(field)
            if held is None:
                continue
            seen.append((video, number - 1))
            boxes = held.get("detections") if isinstance(held, dict) else None
            if not isinstance(boxes, list):
                raise InputError(f"'{field}' of frame {number} of {video} is no Detections", where=where)
            rows += [
                (video, number - 1, *_read_box(box, size, f"{where}, {video}, frame {number}"))
                for box in boxes
            ]
    if not seen:
        raise InputError(f"no frame has the field '{field}'", where=where, hint=_HINT)
    default_classes = metadata.get("default_classes")
    words = [str(word) for word in default_classes] if isinstance(default_classes, list) else []
    classes = list(dict.fromkeys([*words, *sorted({row[4] for row in rows if row[4] is not None})]))
    place = {word: n for n, word in enumerate(classes)}
    found = parse_box_arrays(
        np.array([row[3] for row in rows]).reshape(-1, 4),
        np.array([row[1] for row in rows], dtype=np.int64),
        [row[0] for row in rows],
        classes,
        np.array([place.get(row[4] or "", NO_TRACK) for row in rows], dtype=np.int64),
        np.array([row[2] for row in rows], dtype=np.int64),
        dtype=np.float32 if predicted else np.float64,
        unlabelled=not predicted,
    )
    if not predicted:
        ignore = np.array([row[6] for row in rows], dtype=np.bool_)
        title = str(metadata.get("name", ""))
        return build_scenes(found, kind=kind, seen=seen, ignore=ignore, facts=facts, dataset=title)
    score = np.array([row[5] for row in rows])
    if not ((score >= 0) & (score <= 1)).all():
        raise InputError("each predicted box needs a confidence in [0, 1]", where=where)
    dense = np.zeros((len(rows), len(classes)), np.float32)
    dense[np.arange(len(rows)), found.labels] = score
    return build_predictions(found, dense, kind=kind, seen=seen)


def _read_object(path: Path) -> dict[str, Any]:
    held = read_json_document(path)
    if not isinstance(held, dict):
        raise InputError("expected a JSON object", where=to_printable(str(path)), hint=_HINT)
    return held


def _read_exported_frames(folder: Path) -> dict[str, list[Any]]:
    """Id of a sample to its frames, of what FiftyOne exports in one file."""
    if not (folder / "frames.json").is_file():
        return {}
    found: dict[str, list[Any]] = {}
    listed = _read_object(folder / "frames.json").get("frames")
    for frame in listed if isinstance(listed, list) else ():
        if isinstance(frame, dict):
            found.setdefault(_get_id(frame.get("_sample_id")), []).append(frame)
    return found


def _get_id(value: Any) -> str:
    return str(value.get("$oid", "")) if isinstance(value, dict) else str(value or "")


def _read_frames(
    folder: Path, sample: dict[str, Any], exported: dict[str, list[Any]], where: str
) -> list[Any]:
    file = sample.get("frames")
    if isinstance(file, str):
        if is_outside(file):
            raise InputError("its frames lie outside of the folder", where=where)
        held = _read_object(folder / file).get("frames")
        return list(held.values()) if isinstance(held, dict) else []
    return exported.get(_get_id(sample.get("_id")), [])


def _read_sample(sample: Any, where: str) -> tuple[str, tuple[float, float], dict[str, Any]]:
    """Name, size and facts of a video."""
    path = sample.get("filepath") if isinstance(sample, dict) else None
    if not isinstance(path, str) or not path:
        raise InputError("expected a sample with a filepath", where=where, hint=_HINT)
    metadata = sample.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    width, height = known.get("frame_width"), known.get("frame_height")
    if type(width) is not int or type(height) is not int or min(width, height) < 1:
        raise InputError(
            "the size of the video is not known",
            where=where,
            hint="dataset.compute_metadata() before the export finds it out",
        )
    named = sample.get("video")
    video = named if isinstance(named, str) and named else Path(path).stem
    rate, count = known.get("frame_rate"), known.get("total_frame_count")
    facts = {
        "width_px": width,
        "height_px": height,
        "fps": float(rate) if isinstance(rate, int | float) and rate > 0 else None,
        "n_frames": count if type(count) is int else None,
    }
    return escape_surrogates(video), (float(width), float(height)), facts


def _read_box(box: Any, size: tuple[float, float], where: str) -> tuple[int, Floats, str | None, float, bool]:
    """Track, corners, class, score and whether it is to be ignored."""
    shares = box.get("bounding_box") if isinstance(box, dict) else None
    if not isinstance(shares, list) or len(shares) != 4 or not all(type(n) in (int, float) for n in shares):
        raise InputError("bounding_box should be left, top, width and height as shares", where=where)
    x, y, w, h = (n * side for n, side in zip(shares, (*size, *size), strict=True))
    index, label, confidence = box.get("index"), box.get("label"), box.get("confidence")
    return (
        index if type(index) is int and index >= 0 else NO_TRACK,
        np.array([x, y, x + w, y + h]),
        escape_surrogates(label) if isinstance(label, str) else None,
        float(confidence)
        if isinstance(confidence, int | float) and type(confidence) is not bool
        else float("nan"),
        box.get("ignore") is True,
    )
