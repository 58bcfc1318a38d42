"""Drives with cameras and a LiDAR, collected row by row from any dataset and made into tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.datasets.issues import Findings
from roadaware.errors import InputError
from roadaware.io.images import HEAD_BYTES, parse_image_size
from roadaware.io.sources import Source
from roadaware.scenes.schema import create_empty_table

KIND = "object"
"""The kind of label that says what a box is."""
DISTORTION = "lens distortion of cameras, whose matrices hold for undistorted images"
"""What is left out where a set is published with distorted images."""
_VIDEOS: dict[str, Any] = {
    **dict.fromkeys(("video", "scene"), pl.String),
    **dict.fromkeys(("width_px", "height_px"), pl.Int64),
    "fps": pl.Float32,
    "n_frames": pl.Int64,
    "sensor": pl.String,
    "splits": pl.List(pl.String),
}
# Poses in the world are doubles: in the millions of metres of map coordinates a float is half a metre off.
_FRAMES: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "t_s": pl.Float32,
    "annotated": pl.Boolean,
    "path": pl.String,
    "world_SE3_ego": pl.List(pl.Float64),
}
_BOXES: dict[str, Any] = {
    "box": pl.Int64,
    "video": pl.String,
    **dict.fromkeys(("frame", "tube"), pl.Int64),
    **dict.fromkeys(("x1_px", "y1_px", "x2_px", "y2_px"), pl.Float32),
    "occlusion": pl.String,
    "ignore": pl.Boolean,
}
_SENSORS: dict[str, Any] = {
    **dict.fromkeys(("scene", "sensor"), pl.String),
    "from_frame": pl.Int64,
    **dict.fromkeys(("intrinsics", "ego_SE3_sensor"), pl.List(pl.Float32)),
    "layout": pl.String,
}
_SWEEPS: dict[str, Any] = {
    **dict.fromkeys(("scene", "sensor"), pl.String),
    "frame": pl.Int64,
    "path": pl.String,
    "fields": pl.String,
    "t_s": pl.Float32,
    "world_SE3_ego": pl.List(pl.Float64),
}
_TUBES: dict[str, Any] = {"tube": pl.Int64, **dict.fromkeys(("video", "name"), pl.String)}


class RowError(Exception):
    """Why a row is refused."""


@dataclass
class Sensed:
    """Rows of the sensor tables; missing values are null.

    Args:
        findings: counts what is read, and takes what is refused.
        own: further columns of `boxes`, with their types.
        more: further columns of `videos`, with their types.
        box_table: boxes as a table, with what each is in `label`, where a reader has them so in place of rows.
    """

    findings: Findings
    own: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    videos: list[dict[str, Any]] = field(default_factory=list)
    frames: list[dict[str, Any]] = field(default_factory=list)
    boxes: list[dict[str, Any]] = field(default_factory=list)
    sensors: list[dict[str, Any]] = field(default_factory=list)
    sweeps: list[dict[str, Any]] = field(default_factory=list)
    box_table: pl.DataFrame | None = None
    _tubes: dict[tuple[str, str], int] = field(default_factory=dict)

    def tube(self, video: str, name: str) -> int:
        """The number of a track of a video, by its own name."""
        return self._tubes.setdefault((video, name), len(self._tubes))

    def add_box(self, label: str, **row: Any) -> None:
        """One box with what it is, counted as read."""
        self.findings.read["boxes"] += 1
        self.boxes.append({"label": label, **row})

    def tables(self, labels: tuple[str, ...]) -> dict[str, pl.DataFrame]:
        """The tables of Scenes."""
        places = {label: place for place, label in enumerate(labels)}
        kinds = {"label": pl.String, **_BOXES, **self.own}
        if self.box_table is None:
            boxes = pl.DataFrame(self.boxes, schema=kinds)
        else:
            missing = (
                pl.lit(None, kind).alias(n) for n, kind in kinds.items() if n not in self.box_table.columns
            )
            boxes = self.box_table.with_columns(missing).select(
                pl.col(n).cast(kind) for n, kind in kinds.items()
            )
        boxes = boxes.with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64))
        of = boxes.select(
            "box", kind=pl.lit(KIND), label=pl.col("label").replace_strict(places, return_dtype=pl.Int64)
        ) if len(boxes) else create_empty_table("labels")  # fmt: skip
        tubes = [
            {"tube": number, "video": video, "name": name} for (video, name), number in self._tubes.items()
        ]
        found = {
            "videos": _table("videos", self.videos, {**_VIDEOS, **self.more}),
            "frames": _table("frames", self.frames, _FRAMES),
            "boxes": boxes.drop("label") if len(boxes) else create_empty_table("boxes"),
            "labels": of,
            "tubes": _table("tubes", tubes, _TUBES),
            "sensors": _table("sensors", self.sensors, _SENSORS),
            "sweeps": _table("sweeps", self.sweeps, _SWEEPS),
        }
        for name in ("videos", "frames", "tubes", "sensors", "sweeps"):
            self.findings.read[name] += len(found[name])
        return found


def flatten_pose(pose: Floats | None) -> list[float] | None:
    """A matrix row by row, as tables hold it."""
    return None if pose is None else [float(each) for each in np.asarray(pose, dtype=np.float64).ravel()]


def _table(name: str, rows: list[dict[str, Any]], schema: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema) if rows else create_empty_table(name)


# Images beside annotations: how large each is, by its first bytes, and which were looked at.

_ABSENT = "absent"
_NO_SIZE = "no PNG or JPEG whose first bytes tell a size; copy the file again"


def read_picture_size(source: Source, name: str, findings: Findings) -> tuple[int, int] | None:
    """Width and height of an image; None where it is not there, or is damaged, which is refused.

    Args:
        source: where the set lies; it keeps in `glimpsed` what was seen.
        name: of the image's file.
        findings: takes a file that is there and tells no size.
    """
    size = parse_picture_size(source, name)
    source.glimpsed[name] = size
    if isinstance(size, str) and size != _ABSENT:
        findings.reject("files", name, "", size)
    return None if isinstance(size, str) else size


def parse_picture_size(source: Source, name: str) -> tuple[int, int] | str:
    """Width and height of an image, or the reason why they are unknown."""
    try:
        head = source.beginning(name, HEAD_BYTES)
    except InputError as error:
        return error.message if source.holds(name) else _ABSENT
    return parse_image_size(head) or (_NO_SIZE if head else "the file is empty; copy it again")
