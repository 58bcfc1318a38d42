"""Scenes and Predictions written as tasks of Label Studio, with the labelling config that shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from roadaware.errors import UsageError
from roadaware.scenes.disk import atomic_write
from roadaware.scenes.formats.label_studio_config import config_of, controls_of
from roadaware.scenes.formats.label_studio_regions import Held, regions_of
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.label_studio import all_tasks, find, inputs
from roadaware.scenes.readers.label_studio_tables import clips_of, tables_of
from roadaware.scenes.readers.label_studio_tasks import VIDEO_NAME
from roadaware.scenes.tables import Meta, Scenes

LOCAL_FILES = "/data/local-files/?d={name}"


@dataclass
class Written:
    """What went into a file of tasks.

    Args:
        tasks: how many.
        regions: tracks, boxes on pictures, spans and sounds.
        boxes: that the regions stand for.
        keyframes: that are written for them.
        left_out: what the format cannot say, by its description.
    """

    tasks: int = 0
    regions: int = 0
    boxes: int = 0
    keyframes: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


def write_label_studio(
    tables: Scenes | Predictions,
    path: Path,
    *,
    config: Path | None = None,
    videos: pl.DataFrame | None = None,
    tolerance_px: float = 0.5,
    media: str = LOCAL_FILES,
) -> Written:
    """Write tasks that Label Studio imports: one per video or picture, with what is known of it.

    Scenes become annotations, one for each annotator; Predictions become predictions with scores, which
    annotators correct. Tracks are thinned to keyframes between which the boxes that Label Studio draws are
    nowhere further than the tolerance from those of the tables; frames are exact. Tubes with `spans` and no
    boxes become spans on the timeline, queries descriptions, relations arrows, and sounds regions of the
    recording. Read back by `readers.read("label_studio", ...)`, or `read_predictions`.

    Args:
        tables: what to write; videos of one frame are pictures.
        path: where the tasks go; replaced in one step.
        config: where the labelling config goes, XML to be pasted into the project's settings.
        videos: a table of videos with their sizes, where `tables` has none.
        tolerance_px: how far an edge may be away, in pixels.
        media: where Label Studio finds a video or picture; `{name}` is its path, else its name. Paths that
            are addresses themselves stay as they are.

    Raises:
        UsageError: if a video's size is not known, a tube has two boxes in a frame, videos and pictures are
            mixed, or `tolerance_px` is negative.
        DiskError: if the disk refuses.

    Source: the task format of Label Studio, and the video rectangles of its machine learning backend.
    """
    if not tolerance_px >= 0:
        raise UsageError(f"'tolerance_px' is a number of pixels from 0 on, not {tolerance_px}")
    table = (tables.videos if videos is None else videos).with_columns(pl.col("video").cast(pl.String))
    rows = {row["video"]: row for row in table.iter_rows(named=True)}
    pictures = {video for video, row in rows.items() if _is_picture(row)}
    if pictures and len(pictures) < len(rows):
        message = f"{len(pictures)} pictures and {len(rows) - len(pictures)} videos cannot be one project"
        raise UsageError(f"{message}: write them apart, with `only`")
    held = Held(tables, controls_of(tables), tolerance_px)
    found = Written(left_out=held.left_out)
    tasks = []
    for number, (video, row) in enumerate(rows.items(), 1):
        says = regions_of(held, video, row, picture=video in pictures)
        key = "predictions" if isinstance(tables, Predictions) else "annotations"
        tasks.append({"id": number, "data": _data(row, media, picture=video in pictures), key: says})
    lost = sorted(set(tables.boxes["video"].cast(pl.String).unique()) - set(rows))
    if lost:
        raise UsageError(f"boxes of {len(lost)} videos that the table of videos does not have: {lost[:3]}")
    atomic_write(Path(path), json.dumps(tasks, allow_nan=False).encode())
    if config is not None:
        atomic_write(Path(config), config_of(tables, held.controls, picture=bool(pictures)).encode())
    found.tasks, found.regions = len(tasks), held.regions
    found.boxes, found.keyframes = held.boxes, held.keyframes
    return found


def read_predictions(
    path: Path,
    *,
    kinds: Mapping[str, str] | None = None,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
) -> Predictions:
    """The predictions of tasks as Predictions: tubes with their regions' scores.

    Args:
        path: a file of tasks, or a folder or zip with some.
        kinds: control to kind of label, as `readers.label_studio.read`, like the next two.
        fps: frames per second.
        size: width and height in pixels.

    Raises:
        DatasetNotFoundError: if there is no file.
        InputError: if no file can be read.
    """
    findings = Findings()
    with find(Path(path)) as source:
        tasks = all_tasks(source, inputs(source), "predictions", findings)
    tables, vocabularies = tables_of(clips_of(tasks, size, fps, findings), kinds or {}, findings)
    return Predictions(
        **(tables | {"frames": tables["frames"].clear()}),
        rejected=findings.table(),
        meta=Meta(
            dataset="Label Studio",
            vocabularies=vocabularies,
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )


def _is_picture(row: Mapping[str, Any]) -> bool:
    return row.get("media") == "image" or (row.get("media") is None and row.get("n_frames") == 1)


def _data(row: Mapping[str, Any], media: str, *, picture: bool) -> dict[str, Any]:
    """What a task is about."""
    path = row.get("path") or row["video"]
    address = path if path.startswith(("/data/", "http://", "https://", "s3://", "gs://")) else None
    data = {
        "image" if picture else "video": address or media.format(name=quote(path)),
        VIDEO_NAME: row["video"],
        "width": row.get("width_px"),
        "height": row.get("height_px"),
        "fps": row.get("fps"),
    }
    return {name: value for name, value in data.items() if value is not None}
