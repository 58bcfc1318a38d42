"""Scenes and predictions as a FiftyOneDataset in JSON, and what `datasets.fiftyone` reads of one as arrays would give it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from roadaware.datasets import fiftyone
from roadaware.errors import InputError
from roadaware.formats.boxes.fiftyone import build_dataset
from roadaware.formats.bridges.box_arrays import (
    build_predictions,
    build_scenes,
    get_columns,
    list_boxes,
    parse_box_arrays,
)
from roadaware.formats.road_detections import write_folder
from roadaware.io.folders import make_folder
from roadaware.io.sources import to_printable
from roadaware.scenes.tables import Predictions, Scenes


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
    sides = {fiftyone.TRUTH: held}
    if predictions is not None:
        sides[fiftyone.PREDICTED] = list_boxes(predictions, kind)
    unsized = held.videos.filter(pl.col("width_px").is_null() | pl.col("height_px").is_null())
    if len(unsized):
        raise InputError(
            f"the size of video {to_printable(unsized['video'][0], 60)} is not known, and FiftyOne counts in it",
            hint="`roadaware read NAME PATH --media VIDEOS --output TABLES` looks at the videos",
        )
    paths: dict[str, str] = {}
    if "path" in scenes.videos.columns:
        for video, place in scenes.videos.select(pl.col("video").cast(pl.String), "path").iter_rows():
            paths[video] = place or f"{video}.mp4"
    if str(media) != ".":
        paths = {
            video: str((media / paths.get(video, f"{video}.mp4")).absolute())
            for video in held.videos["video"]
        }
    make_folder(folder.absolute().parent)
    write_folder(folder, build_dataset(held, sides, paths=paths, name=name))
    return len(sides[fiftyone.TRUTH if predictions is None else fiftyone.PREDICTED].boxes)


def read_fiftyone(folder: Path, *, kind: str, predicted: bool) -> Scenes | Predictions:
    """Videos or images with the boxes of one field, as `from_numpy` would make them.

    Args:
        folder: of a FiftyOneDataset, in the form written here or as FiftyOne exports it.
        kind: of label that the classes are.
        predicted: whether the field `predictions` is read, else `ground_truth`.

    Raises:
        InputError: if something in it cannot be taken; `ra.read("fiftyone", folder)` lists that and takes the rest.
    """
    with fiftyone.find(folder) as source:
        read = fiftyone.read(source, predicted=predicted)
    where = to_printable(str(folder))
    if len(read.rejected):
        row = read.rejected.row(0, named=True)
        raise InputError(f"{row['file']}: {row['item']}: {row['reason']}", where=where)
    held = list_boxes(read)
    corners, label, track, score = get_columns(held)
    found = parse_box_arrays(
        corners, held.boxes["frame"].to_numpy(), held.boxes["video"].to_list(), held.classes, label, track,
        dtype=np.float32 if predicted else np.float64, unlabelled=not predicted,
    )  # fmt: skip
    seen = [(video, frame) for video, frame in held.frames.select("video", "frame").iter_rows()]
    if predicted:
        dense = np.zeros((len(label), len(held.classes)), np.float32)
        dense[np.arange(len(label)), label] = score
        return build_predictions(found, dense, kind=kind, seen=seen)
    columns = ("width_px", "height_px", "fps", "n_frames")
    facts = {row["video"]: {name: row[name] for name in columns} for row in held.videos.iter_rows(named=True)}
    ignore = held.boxes["ignore"].fill_null(value=False).to_numpy()
    return build_scenes(found, kind=kind, seen=seen, ignore=ignore, facts=facts, dataset=read.meta.dataset)
