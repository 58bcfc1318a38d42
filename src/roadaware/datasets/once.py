"""ONCE: a million scenes with seven cameras and a LiDAR of 40 beams, some of them with boxes.

Mao et al., "One million scenes for autonomous driving: ONCE dataset", NeurIPS 2021 datasets and benchmarks;
once-for-auto-driving.github.io; CC BY-NC-SA 4.0.

Takes the folder that holds `data/`, or a zip: `data/<sequence>/<sequence>.json` with calibration and frames,
and `ImageSets/*.txt` with the splits. Images (`cam01/` to `cam09/`) and sweeps (`lidar_roof/`) lie beside
the JSON and are opened when they are asked for. Every camera of a sequence is a video. The vehicle's frame is
that of the LiDAR with x ahead and y to the left; the LiDAR's own x points to the left, and y back."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings, read_each_file
from roadaware.datasets.sensor_tables import DISTORTION, KIND, Sensed, flatten_pose, read_picture_size
from roadaware.errors import InputError
from roadaware.geometry.poses import find_camera_error, find_pose_error, from_quaternion, invert_pose
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_list,
    ensure_object,
    escape_surrogates,
    format_value,
    parse,
    parse_corners,
    pause_garbage_collection,
)
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

# The JSON of one sequence of ONCE: calibration, poses, and the boxes of the frames that have some.

Sizes = Callable[[str], tuple[int, int] | None]
CLASSES = ("Car", "Bus", "Truck", "Pedestrian", "Cyclist")
CAMERAS = ("cam01", "cam03", "cam05", "cam06", "cam07", "cam08", "cam09")
LIDAR, LAYOUT, FIELDS, FPS = "lidar_roof", "Pandar40P", "x y z intensity", 2.0
OWN: dict[str, Any] = dict.fromkeys(
    ("x_m", "y_m", "z_m", "length_m", "width_m", "height_m", "yaw_rad"), pl.Float32
)
"""The box in space, in the LiDAR's frame: its middle, its sizes, and its direction about the axis up."""
# ONCE's LiDAR has x to the left and y to the back; the vehicle x ahead and y to the left.
EGO_SE3_LIDAR = np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
_FILES_LARGEST = 1e9
# ONCE writes a box of four -1 where a camera does not see the object.
_NOT_SEEN = -1.0
_FOREIGN = "check that it is a file of ONCE"


def add_sequence(content: Any, name: str, file: str, where: str, sensed: Sensed, sizes: Sizes) -> None:
    """Add one sequence, whose cameras are videos.

    Args:
        content: the parsed file.
        name: of the sequence.
        file: its JSON, beside which images and sweeps lie.
        where: names it in errors.
        sensed: takes the rows.
        sizes: width and height of an image by its name, None where it is not there.

    Raises:
        InputError: if calibration or frames are missing or broken.
    """
    held = ensure_object(content, where, "the sequence")
    calib = ensure_object(held.get("calib"), where, "there is no calibration: 'calib'")
    cameras = {
        each: _camera(ensure_object(calib[each], where, f"'{each}'"), each, where)
        for each in CAMERAS
        if each in calib
    }
    distorting = sum(_distorts(calib[each].get("distortion")) for each in cameras)
    if distorting:
        sensed.findings.left_out[DISTORTION] += distorting
    frames = _frames(held, where)
    if not cameras or not frames:
        raise InputError("there is no camera or no frame in it", where=where, hint=_FOREIGN)
    poses = [_pose(each.get("pose"), where) for each in frames]
    folder = file.rpartition("/")[0]
    sensed.findings.left_out["poses of frames without one"] += sum(pose is None for pose in poses)
    at = {"scene": name, "sensor": LIDAR, "from_frame": 0}
    sensed.sensors.append({**at, "ego_SE3_sensor": flatten_pose(EGO_SE3_LIDAR), "layout": LAYOUT})
    for number, (frame, pose) in enumerate(zip(frames, poses, strict=True)):
        path = f"{folder}/{LIDAR}/{frame['frame_id']}.bin"
        row = {"scene": name, "sensor": LIDAR, "frame": number, "path": path, "fields": FIELDS}
        sensed.sweeps.append({**row, "t_s": _since(frame, frames[0]), "world_SE3_ego": flatten_pose(pose)})
    for camera, (lens, ego_camera) in cameras.items():
        at = {"scene": name, "sensor": camera, "from_frame": 0}
        sensed.sensors.append(
            {**at, "intrinsics": flatten_pose(lens), "ego_SE3_sensor": flatten_pose(ego_camera)}
        )
        video = f"{name}/{camera}"
        paths = [f"{folder}/{camera}/{frame['frame_id']}.jpg" for frame in frames]
        width, height = sizes(paths[0]) or (None, None)
        size = {"width_px": width, "height_px": height, "n_frames": len(frames), "fps": FPS}
        sensed.videos.append({"video": video, "scene": name, "sensor": camera, **size})
        for number, (frame, pose, path) in enumerate(zip(frames, poses, paths, strict=True)):
            row = {"video": video, "frame": number, "t_s": _since(frame, frames[0]), "path": path}
            sensed.frames.append({**row, "annotated": "annos" in frame, "world_SE3_ego": flatten_pose(pose)})
    meta = held.get("meta_info")
    _take_boxes(frames, name, file, tuple(cameras), sensed)
    for row in sensed.videos[-len(cameras) :]:
        row |= {key: _word(meta, key) for key in ("weather", "period")}


def _take_boxes(
    frames: list[dict[str, Any]], name: str, file: str, cameras: tuple[str, ...], sensed: Sensed
) -> None:
    """Add the boxes that cameras see; each that is none is reported."""
    for number, frame in enumerate(frames):
        held = frame.get("annos")
        if held is None:
            continue
        item = f"{name}, frame {number}"
        listed: dict[str, Any] = held if isinstance(held, dict) else {}
        names: Any = listed.get("names")
        space: Any = listed.get("boxes_3d")
        seen: Any = listed.get("boxes_2d")
        lists = isinstance(names, list) and isinstance(space, list) and isinstance(seen, dict)
        if not lists or len(space) != len(names):
            sensed.findings.reject(
                "boxes", file, item, "there are no names, boxes_3d and boxes_2d of one length"
            )
            continue
        for camera in cameras:
            boxes = seen.get(camera, [])
            if not isinstance(boxes, list) or len(boxes) not in (0, len(names)):
                reason = f"the boxes of {camera} should be {len(names)} and are {describe_type(boxes)}"
                sensed.findings.reject("boxes", file, f"{name}/{camera}, frame {number}", reason)
                continue
            _take_camera(boxes, names, space, f"{name}/{camera}", number, file, sensed)


def _take_camera(
    boxes: list[Any], names: list[Any], space: list[Any], video: str, frame: int, file: str, sensed: Sensed
) -> None:
    corners, bad = parse_corners(boxes, sized=False)
    for place, given in enumerate(boxes):
        if (
            isinstance(given, list)
            and given
            and given[0] == _NOT_SEEN
            and set(map(str, given)) <= {"-1", "-1.0"}
        ):
            continue
        if names[place] not in CLASSES:
            bad.setdefault(place, f"the class {format_value(names[place])} is none of {', '.join(CLASSES)}")
        if place in bad:
            sensed.findings.reject("boxes", file, f"{video}, frame {frame}, box {place}", bad[place])
            continue
        row = dict(zip(CORNERS, corners[place].tolist(), strict=True))
        solid = space[place]
        known = isinstance(solid, list) and len(solid) == len(OWN) and all(map(_is_number, solid))
        own = dict(zip(OWN, map(float, solid) if known else [None] * len(OWN), strict=True))
        sensed.add_box(names[place], video=video, frame=frame, **row, **own)


def _camera(calib: dict[str, Any], name: str, where: str) -> tuple[Floats, Floats]:
    """Camera matrix and pose in the vehicle.

    Raises:
        InputError: if one is none.
    """
    lens = _matrix(calib.get("cam_intrinsic"), 3, where, f"cam_intrinsic of '{name}'")
    if fault := find_camera_error(lens):
        raise InputError(f"cam_intrinsic of '{name}' is no camera matrix: {fault}", where=where)
    lidar_camera = _matrix(calib.get("cam_to_velo"), 4, where, f"cam_to_velo of '{name}'")
    if fault := find_pose_error(lidar_camera):
        raise InputError(f"cam_to_velo of '{name}' is no pose: {fault}", where=where)
    return lens, EGO_SE3_LIDAR @ lidar_camera


def _distorts(value: Any) -> bool:
    """Whether coefficients of a lens, be they a row or a matrix of one row, are other than zeros."""
    rows = value if isinstance(value, list) else []
    each = (number for row in rows for number in (row if isinstance(row, list) else [row]))
    return any(number != 0 for number in each)


def _frames(held: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """The frames in the order of their times, which are their names.

    Raises:
        InputError: if one has no name, or that of another.
    """
    listed = ensure_list(held.get("frames"), where, "there are no frames: 'frames'")
    found: dict[str, dict[str, Any]] = {}
    for place, each in enumerate(listed):
        frame = ensure_object(each, where, f"frame {place}")
        name = frame.get("frame_id")
        if not isinstance(name, str) or not name.isascii() or not name.isdecimal() or len(name) > 20:
            raise InputError(
                f"frame_id of frame {place} should be digits and is {format_value(name)}", where=where
            )
        if name in found:
            raise InputError(f"two frames are called {name}", where=where)
        found[name] = frame
    return [found[name] for name in sorted(found, key=int)]


def _pose(value: Any, where: str) -> Floats | None:
    """(4, 4) of the vehicle in the world; None where the file has none, which is four zeros.

    Raises:
        InputError: if it is something else.
    """
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 7 or not all(map(_is_number, value)):
        raise InputError(f"a pose should be seven finite numbers and is {describe_type(value)}", where=where)
    x, y, z, w = value[:4]
    if not any((x, y, z, w)):
        return None
    # The file has w last.
    found = from_quaternion([w, x, y, z], value[4:])
    if found is None:
        raise InputError(f"the rotation {value[:4]} of a pose has no unit length", where=where)
    return found @ invert_pose(EGO_SE3_LIDAR)


def _matrix(value: Any, size: int, where: str, name: str) -> Floats:
    """(size, size) finite numbers.

    Raises:
        InputError: if it is something else.
    """
    rows = value if isinstance(value, list) and len(value) == size else []
    good = bool(rows) and all(
        isinstance(row, list) and len(row) == size and all(map(_is_number, row)) for row in rows
    )
    if not good:
        message = f"{name} should be {size} rows of {size} finite numbers and is {describe_type(value)}"
        raise InputError(message, where=where, hint=_FOREIGN)
    return np.array(rows, dtype=np.float64)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < _FILES_LARGEST


def _since(frame: dict[str, Any], first: dict[str, Any]) -> float:
    """Seconds since the first frame: names are milliseconds."""
    return (int(frame["frame_id"]) - int(first["frame_id"])) / 1000


def _word(meta: Any, key: str) -> str | None:
    found = meta.get(key) if isinstance(meta, dict) else None
    return to_printable(escape_surrogates(found), 40) if isinstance(found, str) else None


VERSION = 3
_DATA, _SETS = "data", "ImageSets"
_WANTED = "ONCE needs its annotations, 'data/<sequence>/<sequence>.json',"
_HINT = "Point at the folder that holds 'data/' and 'ImageSets/'."
_SEQUENCE = re.compile(r"\d{6}", re.ASCII)
_LARGEST = 1 << 29


def find(path: Path) -> Source:
    """The set at `path`: the folder, one inside it, or its zip.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    source = find_source(path, lambda found: bool(_sequences(found)), _WANTED, _HINT)
    source.most_bytes = _LARGEST
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    return [*map(_file, _sequences(source)), *source.files(_SETS, ".txt")]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All sequences as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Raises:
        InputError: if no sequence can be read.
    """
    findings = Findings()
    sensed = Sensed(findings, OWN, dict.fromkeys(("weather", "period"), pl.String))
    splits = _splits(source, findings)
    size = partial(read_picture_size, source, findings=findings)
    names = {_file(name): name for name in _sequences(source)}

    def take(file: str, _: Findings) -> None:
        where = source.where(file)
        text = decode(source.read(file), where)
        with pause_garbage_collection():
            content = parse(text, where)
        add_sequence(content, names[file], file, where, sensed, size)

    errors = read_each_file(list(names), take, findings, progress, "sequences")
    if len(errors) == len(names):
        raise errors[0]
    for row in sensed.videos:
        row["splits"] = splits.get(row["scene"], [])
    tables = sensed.tables(CLASSES)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=findings.build_meta(READERS["once"], {KIND: CLASSES}, source.contents(inputs(source))),
    )


def _sequences(source: Source) -> list[str]:
    """Folders of sequences with their JSON, a folder or device in its place too."""
    if not source.has_folder(_DATA):
        return []
    names = [name for name in source.entries(_DATA)[1] if _SEQUENCE.fullmatch(name)]
    return [name for name in names if source.holds(_file(name))]


def _file(name: str) -> str:
    return f"{_DATA}/{name}/{name}.json"


def _splits(source: Source, findings: Findings) -> dict[str, list[str]]:
    """Sequence to the names of its splits."""
    found: dict[str, list[str]] = {}
    for file in source.files(_SETS, ".txt"):
        try:
            words = source.read(file).decode("ascii").split()
        except (InputError, UnicodeDecodeError) as error:
            said = error if isinstance(error, InputError) else InputError("is no plain text")
            findings.reject_file(file, said)
            continue
        findings.read["files"] += 1
        split = f"default/{file.rpartition('/')[2].removesuffix('.txt').removesuffix('_set')}"
        for word in words:
            found.setdefault(word, []).append(split)
    return found
