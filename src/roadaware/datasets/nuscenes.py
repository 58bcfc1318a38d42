"""nuScenes: drives with six cameras and a LiDAR, from its JSON tables or from keyframes in a file each.

Caesar et al., "nuScenes: a multimodal dataset for autonomous driving", CVPR 2020; nuscenes.org;
CC BY-NC-SA 4.0.

Takes the folder that holds `v1.0-mini/` or another version's tables, or a zip of it; or a folder of
keyframes, JSON with `images`, `lidar_points` and `cam_instances`, or one of these. Every camera of a scene is
a video whose frames are the keyframes. Images and sweeps are opened when they are asked for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings, read_each_file
from roadaware.datasets.sensor_tables import KIND, Sensed, flatten_pose, read_picture_size
from roadaware.errors import InputError
from roadaware.geometry.poses import (
    find_camera_error,
    find_pose_error,
    from_quaternion,
    invert_pose,
    project_3d_boxes,
)
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_list,
    ensure_object,
    escape_surrogates,
    format_value,
    parse,
    parse_corners,
    parse_int,
    pause_garbage_collection,
)
from roadaware.io.sources import FileSource, Source, find_source, is_outside, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

# A keyframe of nuScenes in one JSON file: images, sweep, poses and boxes of one moment.

Sizes = Callable[[str], tuple[int, int] | None]
LIDAR, LAYOUT = "LIDAR_TOP", "HDL-32E"
_FIELDS = {4: "x y z intensity", 5: "x y z intensity ring"}
_SPEED = re.compile(r'("velocity"\s*:\s*\[\s*)NaN(\s*,\s*)NaN(\s*\])')
_FOREIGN = "check that it is a keyframe of nuScenes"
_LARGEST_KEYFRAME, _LATEST = 1e9, 1e12
# As KITTI has them: x, y and z of the middle of the bottom, in the frame of the camera, turned about its axis down.
SOLID = ("height_m", "width_m", "length_m", "x_m", "y_m", "z_m", "rotation_y_rad")


def is_keyframe(head: bytes) -> bool:
    """Whether a file begins as a keyframe does."""
    return b'"cam2img"' in head or b'"cam_instances"' in head


def replace_nan_speeds(text: str) -> str:
    """The text with zeros for unknown speeds, which are not read: they are NaN, which is no JSON."""
    return _SPEED.sub(r"\g<1>0.0\g<2>0.0\g<3>", text)


def add_keyframe(content: Any, file: str, where: str, sensed: Sensed, sizes: Sizes) -> None:
    """Add one keyframe: a scene whose cameras are videos of one frame.

    The vehicle moves between image and sweep, so that each has its own pose of the vehicle in the world.

    Args:
        content: the parsed file.
        file: its name; images and sweep lie beside it.
        where: names it in errors.
        sensed: takes the rows.
        sizes: width and height of an image by its name, None where it is not there.

    Raises:
        InputError: if something that all depends on is missing or broken.
    """
    held = ensure_object(content, where, "the keyframe")
    missing = [name for name in ("token", "images", "lidar_points", "ego2global") if name not in held]
    if missing:
        raise InputError(f"there is no {', '.join(missing)} in it", where=where, hint=_FOREIGN)
    token = held["token"]
    if not isinstance(token, str) or not token:
        raise InputError(f"the token should be a text and is {format_value(token)}", where=where)
    scene = to_printable(escape_surrogates(token), 100)
    if any(row["scene"] == scene for row in sensed.videos):
        raise InputError(f"a second keyframe '{scene}'; the first is kept", where=where)
    lidar = ensure_object(held["lidar_points"], where, "'lidar_points'")
    images = ensure_object(held["images"], where, "'images'")
    moment = _Moment(
        scene,
        file.rpartition("/")[0],
        where,
        _earliest(held, images),
        _pose(held["ego2global"], where, "ego2global"),
        _pose(lidar.get("lidar2ego"), where, "lidar2ego"),
        sizes,
    )
    # The row of the sweep
    sweep = {
        "scene": moment.scene,
        "sensor": LIDAR,
        "frame": 0,
        "path": _path(moment.folder, lidar.get("lidar_path"), moment.where),
        "fields": _fields(lidar.get("num_pts_feats", 5), moment.where),
        "t_s": _since(held.get("timestamp"), moment.start),
        "world_SE3_ego": flatten_pose(moment.world_ego),
    }
    cameras = {name: _camera(image, name, moment) for name, image in images.items()}
    # Nothing is taken of a file that is refused.
    sensed.sweeps.append(sweep)
    at = {"scene": scene, "sensor": LIDAR, "from_frame": 0}
    sensed.sensors.append({**at, "ego_SE3_sensor": flatten_pose(moment.ego_lidar), "layout": LAYOUT})
    for sensor, video, frame in cameras.values():
        sensed.sensors.append(sensor)
        sensed.videos.append(video)
        sensed.frames.append({**frame, "annotated": "cam_instances" in held})
    _boxes(held, file, moment, set(cameras), sensed)


@dataclass(frozen=True, eq=False)
class _Moment:
    """Facts shared by the sensors of a keyframe: scene, folder, place in errors, first time, two poses, sizes."""

    scene: str
    folder: str
    where: str
    start: float | None
    world_ego: Floats
    ego_lidar: Floats
    sizes: Sizes


def _camera(value: Any, name: str, moment: _Moment) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The rows of a camera, its video and its frame.

    Raises:
        InputError: if its matrix or a pose is none, or its path is unknown.
    """
    text, where = to_printable(escape_surrogates(name), 60), moment.where
    image = ensure_object(value, where, f"image '{text}'")
    lens = _numbers(image.get("cam2img"), (3, 3), where, f"cam2img of '{text}'")
    if fault := find_camera_error(lens):
        raise InputError(f"cam2img of '{text}' is no camera matrix: {fault}", where=where)
    ego_camera = _pose(image.get("cam2ego"), where, f"cam2ego of '{text}'")
    camera_lidar = _pose(image.get("lidar2cam"), where, f"lidar2cam of '{text}'")
    world_then = moment.world_ego @ moment.ego_lidar @ invert_pose(camera_lidar) @ invert_pose(ego_camera)
    at = {"scene": moment.scene, "sensor": text}
    video = f"{moment.scene}/{text}"
    frame: dict[str, Any] = {
        "video": video,
        "frame": 0,
        "t_s": _since(image.get("timestamp"), moment.start),
        "path": _path(moment.folder, image.get("img_path"), where),
        "world_SE3_ego": flatten_pose(world_then),
    }
    sensor = {
        **at,
        "from_frame": 0,
        "intrinsics": flatten_pose(lens),
        "ego_SE3_sensor": flatten_pose(ego_camera),
    }
    width, height = moment.sizes(frame["path"]) or (None, None)
    return sensor, {**at, "video": video, "n_frames": 1, "width_px": width, "height_px": height}, frame


def _boxes(held: dict[str, Any], file: str, moment: _Moment, cameras: set[str], sensed: Sensed) -> None:
    """Add the boxes of all cameras; each that is none is reported.

    Raises:
        InputError: if they are no lists, or classes have no names.
    """
    where = moment.where
    info = ensure_object(held.get("metainfo", {}), where, "'metainfo'")
    numbered = ensure_object(info.get("categories", {}), where, "'categories'")
    names = {
        number: to_printable(escape_surrogates(name), 60)
        for name, number in numbered.items()
        if type(number) is int
    }
    for key, value in ensure_object(held.get("cam_instances", {}), where, "'cam_instances'").items():
        video = f"{moment.scene}/{to_printable(escape_surrogates(key), 60)}"
        instances = ensure_list(value, where, f"boxes of '{video}'")
        boxes = [each.get("bbox") if isinstance(each, dict) else each for each in instances]
        corners, bad = parse_corners(boxes, sized=False)
        for place, each in enumerate(instances):
            label: Any = each.get("bbox_label") if isinstance(each, dict) else None
            if key not in cameras:
                bad.setdefault(place, f"there is no camera '{to_printable(key, 60)}'")
            elif type(label) is not int or label not in names:
                bad.setdefault(place, f"the class {format_value(label)} is none of the file's categories")
            if place in bad:
                sensed.findings.reject("boxes", file, f"{video}, frame 0, box {place}", bad[place])
                continue
            row = dict(zip(CORNERS, corners[place].tolist(), strict=True))
            depth = each.get("depth")
            known = float(depth) if _is_number(depth, _LARGEST_KEYFRAME) else None
            sensed.add_box(names[label], video=video, frame=0, **row, depth_m=known, **_solid(each))


def _solid(instance: dict[str, Any]) -> dict[str, float]:
    """The box in space of an instance, whose middle is told, as columns of `boxes`; empty where it is none."""
    cuboid = instance.get("bbox_3d")
    if instance.get("bbox_3d_isvalid") is False or not isinstance(cuboid, list) or len(cuboid) != len(SOLID):
        return {}
    if not all(_is_number(each, _LARGEST_KEYFRAME) for each in cuboid) or min(cuboid[3:6]) <= 0:
        return {}
    x, y, z, length, height, width, turn = map(float, cuboid)
    return dict(zip(SOLID, (height, width, length, x, y + height / 2, z, turn), strict=True))


def _is_number(value: Any, most: float) -> bool:
    return type(value) in (int, float) and abs(value) < most


def _pose(value: Any, where: str, name: str) -> Floats:
    """(4, 4) a rigid pose.

    Raises:
        InputError: if it is none.
    """
    found = _numbers(value, (4, 4), where, name)
    if fault := find_pose_error(found):
        raise InputError(f"{name} is no pose: {fault}", where=where)
    return found


def _numbers(value: Any, shape: tuple[int, int], where: str, name: str) -> Floats:
    """Rows of finite numbers.

    Raises:
        InputError: if it is something else.
    """
    rows = value if isinstance(value, list) and len(value) == shape[0] else []
    plain = [row for row in rows if isinstance(row, list) and len(row) == shape[1]]
    numbers = [each for row in plain for each in row]
    good = len(plain) == shape[0] and all(_is_number(each, _LARGEST_KEYFRAME) for each in numbers)
    if not good:
        message = (
            f"{name} should be {shape[0]} rows of {shape[1]} finite numbers and is {describe_type(value)}"
        )
        raise InputError(message, where=where, hint=_FOREIGN)
    return np.array(value, dtype=np.float64)


def _path(folder: str, value: Any, where: str) -> str:
    """Path of a file of a keyframe.

    Raises:
        InputError: if it does not, or it leads out of the folder.
    """
    if not isinstance(value, str) or not value or is_outside(value):
        raise InputError(f"a path should lie in the folder and is {format_value(value)}", where=where)
    return f"{folder}/{escape_surrogates(value)}" if folder else escape_surrogates(value)


def _fields(count: Any, where: str) -> str:
    if type(count) is not int or count not in _FIELDS:
        raise InputError(f"a point has 4 or 5 numbers, not {format_value(count)}", where=where)
    return _FIELDS[count]


def _earliest(held: dict[str, Any], images: dict[str, Any]) -> float | None:
    """The first of all times, from which the others count."""
    times: list[Any] = [each.get("timestamp") for each in (held, *images.values()) if isinstance(each, dict)]
    return min((each for each in times if _is_number(each, _LATEST)), default=None)


def _since(time: Any, start: float | None) -> float | None:
    return float(time) - start if start is not None and _is_number(time, _LATEST) else None


# The JSON tables of nuScenes: keyframes of all cameras with boxes in space as the camera sees them.

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
OWN: dict[str, Any] = {"depth_m": pl.Float32, "n_lidar_points": pl.Int64, **dict.fromkeys(SOLID, pl.Float32)}
"""Columns of `boxes` that a reader of nuScenes adds."""
TABLES_LAYOUT, FIELDS, FPS = "HDL-32E", "x y z intensity ring", 2.0
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
_LARGEST_TABLE, MOST_PIXELS, _LATEST_US = 1e9, 65_535, (1 << 63) - 1
_BROKEN = re.compile(r"\\u[dD][89a-fA-F]")
"""Perhaps half a character, which no table can hold."""


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
            message = f"{asked} points to {table} {format_value(token)}, which is not there"
            raise InputError(message, where=self.where[asked], hint="the tables must be of one version")
        return found

    def pose(self, table: str, token: str, asked: str) -> Floats:
        """The pose in a row.

        Raises:
            InputError: if there is no such row, or it holds no pose.
        """
        return _parse_pose(self.row(table, token, asked), self.where[table])

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


def add_version(source: Source, version: str, sensed: Sensed, progress: Progress | None = None) -> None:
    """Add the keyframes of one version.

    Args:
        source: where the set lies.
        version: the folder of its tables.
        sensed: takes the rows.
        progress: called with the number of scenes done and the total.

    Raises:
        InputError: if a table is damaged, lacks a column, or a token points nowhere.
    """
    # All tables of a version
    found = _Database({name: source.where(f"{version}/{name}.json") for name in TABLES})
    for name in TABLES:
        where = found.where[name]
        text = decode(source.read(f"{version}/{name}.json"), where)
        with pause_garbage_collection():
            rows = parse(text, where)
        broken = _BROKEN.search(text) is not None
        del text  # a gigabyte of large sets
        if not isinstance(rows, list):
            raise InputError("a table should be a list of rows", where=where)
        held: dict[str, Row] = {}
        for place, row in enumerate(rows):
            if broken and isinstance(row, dict):
                row.update({n: escape_surrogates(v) for n, v in row.items() if isinstance(v, str)})
            token = _check_row(row, name, place, where)
            if token in held:
                raise InputError(f"row {place} has the token {format_value(token)} of another", where=where)
            held[token] = row
        found.held[name] = held
    database = found
    sensed.findings.read["files"] += len(TABLES)
    split = f"default/{version.removeprefix('v1.0-')}"
    scenes = list(database.held["scene"])
    # Of a version before this one: v1.0-mini holds scenes of v1.0-trainval. Scenes without a camera have no videos.
    earlier: dict[str, list[Row]] = {row["scene"]: [] for row in sensed.sensors}
    for row in sensed.videos:
        earlier[row["scene"]].append(row)
    named: set[str] = set()
    for done, token in enumerate(scenes, 1):
        scene = str(database.held["scene"][token]["name"])
        if scene in named:
            raise InputError(f"two scenes are called {format_value(scene)}", where=database.where["scene"])
        named.add(scene)
        if scene in earlier:
            for row in earlier[scene]:
                row["splits"].append(split)
            continue
        samples = database.by_scene.get(token, [])
        start = min((each["timestamp"] for s in samples for each in database.data[s["token"]]), default=0)
        seen: dict[str, str] = {}
        for frame, sample in enumerate(samples):
            shown: set[str] = set()
            annotations = _select_annotations(database, version, sample["token"], sensed.findings)
            for data in database.data[sample["token"]]:
                calibrated = database.row("calibrated_sensor", data["calibrated_sensor_token"], "sample_data")
                sensor = database.row("sensor", calibrated["sensor_token"], "calibrated_sensor")
                if sensor["modality"] not in ("camera", "lidar"):
                    continue
                shot = _Shot(database, scene, frame, data, calibrated, sensor["channel"], start)
                if shot.channel in shown:
                    message = f"sample {format_value(sample['token'])} has two keyframes of {shot.channel}"
                    raise InputError(to_printable(message), where=database.where["sample_data"])
                shown.add(shot.channel)
                if seen.get(shot.channel) != data["calibrated_sensor_token"]:
                    sensed.sensors.append(shot.sensor_row())
                if sensor["modality"] == "lidar":
                    sensed.sweeps.append(shot.sweep_row())
                else:
                    if shot.channel not in seen:
                        sensed.videos.append(
                            {**shot.video_row(), "n_frames": len(samples), "splits": [split]}
                        )
                    sensed.frames.append(shot.frame_row())
                    _take_boxes(shot, annotations, sensed)
                seen[shot.channel] = data["calibrated_sensor_token"]
        if progress is not None:
            progress(done, len(scenes), "scenes")


def _select_annotations(database: _Database, version: str, sample: str, findings: Findings) -> list[Row]:
    """The boxes in space of a sample; one without positive sizes is reported.

    Raises:
        InputError: if the size of one is no three numbers.
    """
    found, where = [], database.where["sample_annotation"]
    for row in database.annotations[sample]:
        if _vector(row["size"], 3, where, "size").min() > 0:
            found.append(row)
        else:
            reason = f"its size {row['size']} should be three numbers above 0"
            findings.reject(
                "boxes", f"{version}/sample_annotation.json", f"annotation {row['token']}", reason
            )
    return found


def _check_row(row: Any, table: str, place: int, where: str) -> str:
    """The token of a row that has all columns.

    Raises:
        InputError: if it has not.
    """
    needed = {"token": str, **_NEEDED[table]}
    if isinstance(row, dict):
        wrong = [name for name, kind in needed.items() if not isinstance(row.get(name), kind)]
        # Microseconds beyond 64 bits are no times, and more than a float holds.
        if not wrong and "timestamp" in needed and parse_int(row["timestamp"], 0, _LATEST_US) is None:
            wrong = ["timestamp"]
        if not wrong:
            return str(row["token"])
        raise InputError(f"row {place} has no {', '.join(wrong)} of the right kind", where=where)
    raise InputError(f"row {place} should be an object", where=where)


@dataclass
class _Shot:
    """One image or sweep of a keyframe."""

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
        return _parse_pose(self.calibrated, self.database.where["calibrated_sensor"])

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
        if fault := find_camera_error(found):
            token = format_value(self.calibrated["token"])
            raise InputError(f"camera_intrinsic of {token} is no camera matrix: {fault}", where=where)
        return found

    @property
    def t_s(self) -> float:
        return float(self.data["timestamp"] - self.start) / 1e6

    @property
    def path(self) -> str:
        name = str(self.data["filename"])
        if is_outside(name):
            where = self.database.where["sample_data"]
            raise InputError(f"the file name {format_value(name)} leads out of the folder", where=where)
        return name

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the image; None where the table does not say."""
        width = parse_int(self.data.get("width"), 1, MOST_PIXELS)
        height = parse_int(self.data.get("height"), 1, MOST_PIXELS)
        return None if width is None or height is None else (width, height)

    def sensor_row(self) -> Row:
        return {
            "scene": self.scene,
            "sensor": self.channel,
            "from_frame": self.frame,
            "intrinsics": flatten_pose(self.lens),
            "ego_SE3_sensor": flatten_pose(self.ego_SE3_sensor),
            "layout": TABLES_LAYOUT if self.lens is None else None,
        }

    def video_row(self) -> Row:
        width, height = self.size or (None, None)
        size = {"width_px": width, "height_px": height}
        return {"video": self.video, "scene": self.scene, "sensor": self.channel, "fps": FPS, **size}

    def frame_row(self) -> Row:
        at = {"video": self.video, "frame": self.frame, "t_s": self.t_s, "annotated": True}
        return {**at, "path": self.path, "world_SE3_ego": flatten_pose(self.world_SE3_ego)}

    def sweep_row(self) -> Row:
        at = {"scene": self.scene, "sensor": self.channel, "frame": self.frame, "t_s": self.t_s}
        return {**at, "path": self.path, "fields": FIELDS, "world_SE3_ego": flatten_pose(self.world_SE3_ego)}


def _take_boxes(shot: _Shot, annotations: list[Row], sensed: Sensed) -> None:
    """Add what the camera sees of boxes in space."""
    size = shot.size
    if shot.lens is None or size is None or not annotations:
        return
    where = shot.database.where["sample_annotation"]
    camera_world = invert_pose(shot.world_SE3_ego @ shot.ego_SE3_sensor)
    poses = np.stack([camera_world @ _parse_pose(each, where) for each in annotations])
    # Width, length and height become lengths along the box's axes: ahead, left and up.
    lengths = np.array([_vector(each["size"], 3, where, "size") for each in annotations])[:, [1, 0, 2]]
    edges, there = project_3d_boxes(poses, lengths, shot.lens, size)
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
            **_upright(poses[place], lengths[place]),
            n_lidar_points=parse_int(each.get("num_lidar_pts"), 0, 1 << 31),
        )


def _upright(camera_SE3_box: Floats, lengths: Floats) -> dict[str, float]:  # noqa: N803
    """A box in space as columns of `boxes`, upright as the camera is: cameras lean by a degree or two.

    Args:
        camera_SE3_box: (4, 4) of its middle.
        lengths: (3,) ahead, left and up.
    """
    x, y, z = camera_SE3_box[:3, 3].tolist()
    length, width, height = lengths.tolist()
    turn = float(np.arctan2(-camera_SE3_box[2, 0], camera_SE3_box[0, 0]))
    return dict(zip(SOLID, (height, width, length, x, y + height / 2, z, turn), strict=True))


def _parse_pose(row: Row, where: str) -> Floats:
    """(4, 4) of a row with a rotation and a translation.

    Raises:
        InputError: if it has none.
    """
    found = from_quaternion(
        _vector(row["rotation"], 4, where, "rotation"), _vector(row["translation"], 3, where, "translation")
    )
    if found is None:
        message = f"the rotation {row['rotation']} of {format_value(row['token'])} has no unit length"
        raise InputError(message, where=where)
    return found


def _vector(value: Any, count: int, where: str, name: str) -> Floats:
    """(count,) finite numbers.

    Raises:
        InputError: if it is something else.
    """
    good = isinstance(value, list) and len(value) == count
    if not good or not all(type(each) in (int, float) and abs(each) < _LARGEST_TABLE for each in value):
        raise InputError(f"{name} should be {count} finite numbers and is {str(value)[:80]}", where=where)
    return np.array(value, dtype=np.float64)


VERSION = 4
_WANTED = "nuScenes needs its annotations, tables in 'v1.0-mini/' or another version, or keyframes (JSON),"
_HINT = "Point at the folder that holds 'v1.0-mini/', or at keyframes."
_HEAD, _LARGEST = 1 << 16, 1 << 31


def find(path: Path) -> Source:
    """The set at `path`: a folder with tables or keyframes, one inside it, its zip, or one keyframe.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    source = find_source(
        path, lambda found: bool(_versions(found) or _keyframes(found)), _WANTED, _HINT, suffix=".json"
    )
    # The tables of all drives are files of more than a gigabyte.
    source.most_bytes = _LARGEST
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    tables = [f"{version}/{name}.json" for version in _versions(source) for name in TABLES]
    return tables or _keyframes(source)


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All keyframes as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    A damaged keyframe is refused, the others are read; a damaged table is an error.

    Args:
        progress: called with the number of scenes or keyframes done and the total.

    Raises:
        InputError: if a table is damaged or points nowhere, or no keyframe can be read.
    """
    sensed = Sensed(Findings(), OWN)
    versions = _versions(source)
    for version in versions:
        add_version(source, version, sensed, progress)
    if not versions:
        _take_keyframes(source, sensed, progress)
    labels = tuple(dict.fromkeys(row["label"] for row in sensed.boxes))
    tables = sensed.tables(labels)
    return Scenes(
        **tables,
        rejected=sensed.findings.table(),
        meta=sensed.findings.build_meta(READERS["nuscenes"], {KIND: labels}, source.contents(inputs(source))),
    )


def _versions(source: Source) -> list[str]:
    """Folders of tables."""
    if isinstance(source, FileSource):
        return []
    # Asked by name: a folder beside it may be a link that leads out, and is not looked into.
    return [name for name in source.entries()[1] if source.holds(f"{name}/sample_data.json")]


def _keyframes(source: Source) -> list[str]:
    """Files that hold a keyframe each; a file that was named counts whatever it holds."""
    if isinstance(source, FileSource):
        return [source.name]
    names = source.files("", ".json")
    heads = (source.head(name, _HEAD) for name in names)
    # Of what cannot be read the reason is reported when it is read.
    return names if any(not head or is_keyframe(head) for head in heads) else []


def _take_keyframes(source: Source, sensed: Sensed, progress: Progress | None) -> None:
    """Add all keyframes; one that cannot be read is reported.

    Raises:
        InputError: if none can.
    """

    def take(name: str, _: Findings) -> None:
        where = source.where(name)
        text = replace_nan_speeds(decode(source.read(name), where))
        with pause_garbage_collection():
            add_keyframe(parse(text, where), name, where, sensed, size)

    size = partial(read_picture_size, source, findings=sensed.findings)
    names = _keyframes(source)
    errors = read_each_file(names, take, sensed.findings, progress, "keyframes")
    if len(errors) == len(names):
        raise errors[0]
