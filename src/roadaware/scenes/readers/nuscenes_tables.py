"""The JSON tables of nuScenes: keyframes of all cameras with boxes in space as the camera sees them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.geometry.poses import from_quaternion, inverse, seen_bounds
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.json import decode, no_collection, parse, quoted, whole
from roadaware.scenes.readers.sensed import Sensed, flat
from roadaware.scenes.readers.source import Source, leads_out
from roadaware.scenes.schema import CORNERS

Row = dict[str, Any]
TABLES = (
    "calibrated_sensor",
    "category",
    "ego_pose",
    "instance",
    "sample",
    "sample_annotation",
    "sample_data",
    "scene",
    "sensor",
)
"""Those that are read."""
OWN: dict[str, Any] = {"depth_m": pl.Float32, "n_lidar_points": pl.Int64}
"""Columns of `boxes` that a reader of nuScenes adds."""
LAYOUT, FIELDS, FPS = "HDL-32E", "x y z intensity ring", 2.0
_NEEDED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "calibrated_sensor": {
        "sensor_token": str,
        "translation": list,
        "rotation": list,
        "camera_intrinsic": list,
    },
    "category": {"name": str},
    "ego_pose": {"translation": list, "rotation": list},
    "instance": {"category_token": str},
    "sample": {"timestamp": int, "scene_token": str},
    "sample_annotation": {
        "sample_token": str,
        "instance_token": str,
        "translation": list,
        "size": list,
        "rotation": list,
    },
    "sample_data": {
        "sample_token": str,
        "ego_pose_token": str,
        "calibrated_sensor_token": str,
        "filename": str,
        "timestamp": int,
        "is_key_frame": bool,
    },
    "scene": {"name": str},
    "sensor": {"channel": str, "modality": str},
}
_LARGEST, MOST_PIXELS = 1e9, 65_535


@dataclass
class _Database:
    """The tables of one version, by token.

    Args:
        where: place of each table, for messages.
        held: table to token to row.
    """

    where: dict[str, str]
    held: dict[str, dict[str, Row]] = field(default_factory=dict)

    def row(self, table: str, token: str, asked: str) -> Row:
        """A row by its token.

        Raises:
            InputError: if there is none.
        """
        found = self.held[table].get(token)
        if found is None:
            message = f"{asked} points to {table} {quoted(token)}, which is not there"
            raise InputError(message, where=self.where[asked], hint="the tables must be of one version")
        return found

    def pose(self, table: str, token: str, asked: str) -> Floats:
        """The pose in a row.

        Raises:
            InputError: if there is no such row, or it holds no pose.
        """
        return _pose_of(self.row(table, token, asked), self.where[table])

    @cached_property
    def by_scene(self) -> dict[str, list[Row]]:
        """Scene to its samples, in the order of their times."""
        found: dict[str, list[Row]] = defaultdict(list)
        for each in sorted(self.held["sample"].values(), key=lambda row: row["timestamp"]):
            self.row("scene", each["scene_token"], "sample")
            found[each["scene_token"]].append(each)
        return found

    @cached_property
    def data(self) -> dict[str, list[Row]]:
        """Sample to the data of its keyframe."""
        return self._of_samples("sample_data", lambda row: row["is_key_frame"])

    @cached_property
    def annotations(self) -> dict[str, list[Row]]:
        """Sample to its boxes in space."""
        return self._of_samples("sample_annotation", lambda row: True)

    def _of_samples(self, table: str, wanted: Any) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for each in self.held[table].values():
            if wanted(each):
                self.row("sample", each["sample_token"], table)
                found[each["sample_token"]].append(each)
        return found


def take_version(source: Source, version: str, sensed: Sensed, progress: Progress | None = None) -> None:
    """Add the keyframes of one version.

    Args:
        source: where the set lies.
        version: the folder of its tables.
        sensed: takes the rows.
        progress: told how many scenes are done, of how many.

    Raises:
        InputError: if a table is damaged, lacks a column, or a token points nowhere.
    """
    database = _opened(source, version)
    sensed.findings.read["files"] += len(TABLES)
    split = f"default/{version.removeprefix('v1.0-')}"
    scenes = list(database.held["scene"])
    for done, token in enumerate(scenes, 1):
        _take_scene(database, token, split, sensed)
        if progress is not None:
            progress(done, len(scenes), "scenes")


def _opened(source: Source, version: str) -> _Database:
    """All tables of a version.

    Raises:
        InputError: if one is missing, damaged, or has a row without its columns or with a token twice.
    """
    found = _Database({name: source.where(f"{version}/{name}.json") for name in TABLES})
    for name in TABLES:
        where = found.where[name]
        with no_collection():
            rows = parse(decode(source.read(f"{version}/{name}.json"), where), where)
        if not isinstance(rows, list):
            raise InputError("a table should be a list of rows", where=where)
        held: dict[str, Row] = {}
        for place, row in enumerate(rows):
            token = _checked(row, name, place, where)
            if token in held:
                raise InputError(f"row {place} has the token {quoted(token)} of another", where=where)
            held[token] = row
        found.held[name] = held
    return found


def _checked(row: Any, table: str, place: int, where: str) -> str:
    """The token of a row that has all columns.

    Raises:
        InputError: if it has not.
    """
    needed = {"token": str, **_NEEDED[table]}
    if isinstance(row, dict):
        wrong = [name for name, kind in needed.items() if not isinstance(row.get(name), kind)]
        if not wrong:
            return str(row["token"])
        raise InputError(f"row {place} has no {', '.join(wrong)} of the right kind", where=where)
    raise InputError(f"row {place} should be an object", where=where)


def _take_scene(database: _Database, token: str, split: str, sensed: Sensed) -> None:
    scene = str(database.held["scene"][token]["name"])
    samples = database.by_scene.get(token, [])
    start = min((each["timestamp"] for s in samples for each in database.data[s["token"]]), default=0)
    seen: dict[str, str] = {}
    for frame, sample in enumerate(samples):
        for data in database.data[sample["token"]]:
            calibrated = database.row("calibrated_sensor", data["calibrated_sensor_token"], "sample_data")
            sensor = database.row("sensor", calibrated["sensor_token"], "calibrated_sensor")
            if sensor["modality"] not in ("camera", "lidar"):
                continue
            shot = _Shot(database, scene, frame, data, calibrated, sensor["channel"], start)
            if seen.get(shot.channel) != data["calibrated_sensor_token"]:
                sensed.sensors.append(shot.sensor_row())
            if sensor["modality"] == "lidar":
                sensed.sweeps.append(shot.sweep_row())
            else:
                if shot.channel not in seen:
                    sensed.videos.append({**shot.video_row(), "n_frames": len(samples), "splits": [split]})
                sensed.frames.append(shot.frame_row())
                _take_boxes(shot, database.annotations[sample["token"]], sensed)
            seen[shot.channel] = data["calibrated_sensor_token"]


@dataclass
class _Shot:
    """One picture or sweep of a keyframe."""

    database: _Database
    scene: str
    frame: int
    data: Row
    calibrated: Row
    channel: str
    start: int

    @property
    def video(self) -> str:
        return f"{self.scene}/{self.channel}"

    @cached_property
    def ego_SE3_sensor(self) -> Floats:  # noqa: N802, the project's way to name transforms
        return _pose_of(self.calibrated, self.database.where["calibrated_sensor"])

    @cached_property
    def world_SE3_ego(self) -> Floats:  # noqa: N802
        return self.database.pose("ego_pose", self.data["ego_pose_token"], "sample_data")

    @cached_property
    def lens(self) -> Floats | None:
        """(3, 3) camera matrix; None of a LiDAR."""
        rows = self.calibrated["camera_intrinsic"]
        if not rows:
            return None
        where = self.database.where["calibrated_sensor"]
        found = np.array([_vector(row, 3, where, "camera_intrinsic") for row in rows])
        if found.shape != (3, 3) or not (found[0, 0] > 0 and found[1, 1] > 0):
            raise InputError(f"camera_intrinsic is no camera matrix: {found.tolist()}", where=where)
        return found

    @property
    def t_s(self) -> float:
        return float(self.data["timestamp"] - self.start) / 1e6

    @property
    def path(self) -> str:
        name = str(self.data["filename"])
        if leads_out(name):
            where = self.database.where["sample_data"]
            raise InputError(f"the file name {quoted(name)} leads out of the folder", where=where)
        return name

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the picture; None where the table does not say."""
        width = whole(self.data.get("width"), 1, MOST_PIXELS)
        height = whole(self.data.get("height"), 1, MOST_PIXELS)
        return None if width is None or height is None else (width, height)

    def sensor_row(self) -> Row:
        return {
            "scene": self.scene,
            "sensor": self.channel,
            "from_frame": self.frame,
            "intrinsics": flat(self.lens),
            "ego_SE3_sensor": flat(self.ego_SE3_sensor),
            "layout": LAYOUT if self.lens is None else None,
        }

    def video_row(self) -> Row:
        width, height = self.size or (None, None)
        size = {"width_px": width, "height_px": height}
        return {"video": self.video, "scene": self.scene, "sensor": self.channel, "fps": FPS, **size}

    def frame_row(self) -> Row:
        at = {"video": self.video, "frame": self.frame, "t_s": self.t_s, "annotated": True}
        return {**at, "path": self.path, "world_SE3_ego": flat(self.world_SE3_ego)}

    def sweep_row(self) -> Row:
        at = {"scene": self.scene, "sensor": self.channel, "frame": self.frame, "t_s": self.t_s}
        return {**at, "path": self.path, "fields": FIELDS, "world_SE3_ego": flat(self.world_SE3_ego)}


def _take_boxes(shot: _Shot, annotations: list[Row], sensed: Sensed) -> None:
    """Add what the camera sees of boxes in space."""
    size = shot.size
    if shot.lens is None or size is None or not annotations:
        return
    where = shot.database.where["sample_annotation"]
    camera_world = inverse(shot.world_SE3_ego @ shot.ego_SE3_sensor)
    poses = np.stack([camera_world @ _pose_of(each, where) for each in annotations])
    # Width, length and height become lengths along the box's axes: ahead, left and up.
    lengths = np.array([_vector(each["size"], 3, where, "size") for each in annotations])[:, [1, 0, 2]]
    edges, there = seen_bounds(poses, lengths, shot.lens, size)
    for place in np.flatnonzero(there).tolist():
        each = annotations[place]
        instance = shot.database.row("instance", each["instance_token"], "sample_annotation")
        category = shot.database.row("category", instance["category_token"], "instance")
        sensed.add_box(
            str(category["name"]),
            video=shot.video,
            frame=shot.frame,
            tube=sensed.tube(shot.video, each["instance_token"]),
            **dict(zip(CORNERS, edges[place].tolist(), strict=True)),
            depth_m=float(poses[place, 2, 3]),
            n_lidar_points=whole(each.get("num_lidar_pts"), 0, 1 << 31),
        )


def _pose_of(row: Row, where: str) -> Floats:
    """(4, 4) of a row with a rotation and a translation.

    Raises:
        InputError: if it has none.
    """
    found = from_quaternion(
        _vector(row["rotation"], 4, where, "rotation"), _vector(row["translation"], 3, where, "translation")
    )
    if found is None:
        message = f"the rotation {row['rotation']} of {quoted(row['token'])} has no unit length"
        raise InputError(message, where=where)
    return found


def _vector(value: Any, count: int, where: str, name: str) -> Floats:
    """(count,) finite numbers.

    Raises:
        InputError: if it is something else.
    """
    good = isinstance(value, list) and len(value) == count
    if not good or not all(type(each) in (int, float) and abs(each) < _LARGEST for each in value):
        raise InputError(f"{name} should be {count} finite numbers and is {str(value)[:80]}", where=where)
    return np.array(value, dtype=np.float64)
