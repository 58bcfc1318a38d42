"""A keyframe of nuScenes in one JSON file: pictures, sweep, poses and boxes of one moment."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.geometry.poses import inverse, rigid_fault
from roadaware.scenes.readers.corner_lists import corners_of
from roadaware.scenes.readers.json import a_list, an_object, clean, kind_of, quoted
from roadaware.scenes.readers.sensed import Sensed, flat
from roadaware.scenes.readers.source import leads_out, shown
from roadaware.scenes.schema import CORNERS

Sizes = Callable[[str], tuple[int, int] | None]
LIDAR, LAYOUT = "LIDAR_TOP", "HDL-32E"
_FIELDS = {4: "x y z intensity", 5: "x y z intensity ring"}
_SPEED = re.compile(r'("velocity"\s*:\s*\[\s*)NaN(\s*,\s*)NaN(\s*\])')
_FOREIGN = "check that it is a keyframe of nuScenes"
_LARGEST, _LATEST = 1e9, 1e12


def looks_like_one(head: bytes) -> bool:
    """Whether a file begins as a keyframe does."""
    return b'"cam2img"' in head or b'"cam_instances"' in head


def without_unknown_speeds(text: str) -> str:
    """The text with zeros for unknown speeds, which are not read: they are NaN, which is no JSON."""
    return _SPEED.sub(r"\g<1>0.0\g<2>0.0\g<3>", text)


def take_keyframe(content: Any, file: str, where: str, sensed: Sensed, sizes: Sizes) -> None:
    """Add one keyframe: a scene whose cameras are videos of one frame.

    The vehicle moves between picture and sweep, so that each has its own pose of the vehicle in the world.

    Args:
        content: the parsed file.
        file: its name; pictures and sweep lie beside it.
        where: names it in errors.
        sensed: takes the rows.
        sizes: width and height of a picture by its name, None where it is not there.

    Raises:
        InputError: if something that all depends on is missing or broken.
    """
    held = an_object(content, where, "the keyframe")
    missing = [name for name in ("token", "images", "lidar_points", "ego2global") if name not in held]
    if missing:
        raise InputError(f"there is no {', '.join(missing)} in it", where=where, hint=_FOREIGN)
    token = held["token"]
    if not isinstance(token, str) or not token:
        raise InputError(f"the token should be a text and is {quoted(token)}", where=where)
    scene = shown(clean(token), 100)
    if any(row["scene"] == scene for row in sensed.videos):
        raise InputError(f"a second keyframe '{scene}'; the first is kept", where=where)
    lidar = an_object(held["lidar_points"], where, "'lidar_points'")
    images = an_object(held["images"], where, "'images'")
    moment = _Moment(
        scene,
        file.rpartition("/")[0],
        where,
        _earliest(held, images),
        _pose(held["ego2global"], where, "ego2global"),
        _pose(lidar.get("lidar2ego"), where, "lidar2ego"),
        sizes,
    )
    sweep = _sweep(held, lidar, moment)
    cameras = {name: _camera(image, name, moment) for name, image in images.items()}
    # Nothing is taken of a file that is refused.
    sensed.sweeps.append(sweep)
    at = {"scene": scene, "sensor": LIDAR, "from_frame": 0}
    sensed.sensors.append({**at, "ego_SE3_sensor": flat(moment.ego_lidar), "layout": LAYOUT})
    for sensor, video, frame in cameras.values():
        sensed.sensors.append(sensor)
        sensed.videos.append(video)
        sensed.frames.append({**frame, "annotated": "cam_instances" in held})
    _boxes(held, file, moment, set(cameras), sensed)


@dataclass(frozen=True, eq=False)
class _Moment:
    """What the sensors of a keyframe share: scene, folder, place in errors, first time, two poses, sizes."""

    scene: str
    folder: str
    where: str
    start: float | None
    world_ego: Floats
    ego_lidar: Floats
    sizes: Sizes


def _sweep(held: dict[str, Any], lidar: dict[str, Any], moment: _Moment) -> dict[str, Any]:
    """The row of the sweep.

    Raises:
        InputError: if its path or its numbers are unknown.
    """
    return {
        "scene": moment.scene,
        "sensor": LIDAR,
        "frame": 0,
        "path": _path(moment.folder, lidar.get("lidar_path"), moment.where),
        "fields": _fields(lidar.get("num_pts_feats", 5), moment.where),
        "t_s": _since(held.get("timestamp"), moment.start),
        "world_SE3_ego": flat(moment.world_ego),
    }


def _camera(value: Any, name: str, moment: _Moment) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The rows of a camera, its video and its frame.

    Raises:
        InputError: if its matrix or a pose is none, or its path is unknown.
    """
    told, where = shown(clean(name), 60), moment.where
    image = an_object(value, where, f"image '{told}'")
    lens = _numbers(image.get("cam2img"), (3, 3), where, f"cam2img of '{told}'")
    if not (lens[0, 0] > 0 and lens[1, 1] > 0 and np.abs(lens[2] - [0, 0, 1]).max() < 1e-6):
        raise InputError(f"cam2img of '{told}' is no camera matrix: {lens.tolist()}", where=where)
    ego_camera = _pose(image.get("cam2ego"), where, f"cam2ego of '{told}'")
    camera_lidar = _pose(image.get("lidar2cam"), where, f"lidar2cam of '{told}'")
    world_then = moment.world_ego @ moment.ego_lidar @ inverse(camera_lidar) @ inverse(ego_camera)
    at = {"scene": moment.scene, "sensor": told}
    video = f"{moment.scene}/{told}"
    frame: dict[str, Any] = {
        "video": video,
        "frame": 0,
        "t_s": _since(image.get("timestamp"), moment.start),
        "path": _path(moment.folder, image.get("img_path"), where),
        "world_SE3_ego": flat(world_then),
    }
    sensor = {**at, "from_frame": 0, "intrinsics": flat(lens), "ego_SE3_sensor": flat(ego_camera)}
    width, height = moment.sizes(frame["path"]) or (None, None)
    return sensor, {**at, "video": video, "n_frames": 1, "width_px": width, "height_px": height}, frame


def _boxes(held: dict[str, Any], file: str, moment: _Moment, cameras: set[str], sensed: Sensed) -> None:
    """Add the boxes of all cameras; each that is none is told.

    Raises:
        InputError: if they are no lists, or classes have no names.
    """
    where = moment.where
    info = an_object(held.get("metainfo", {}), where, "'metainfo'")
    numbered = an_object(info.get("categories", {}), where, "'categories'")
    names = {number: shown(clean(name), 60) for name, number in numbered.items() if type(number) is int}
    for key, value in an_object(held.get("cam_instances", {}), where, "'cam_instances'").items():
        video = f"{moment.scene}/{shown(clean(key), 60)}"
        instances = a_list(value, where, f"boxes of '{video}'")
        boxes = [each.get("bbox") if isinstance(each, dict) else each for each in instances]
        corners, bad = corners_of(boxes, sized=False)
        for place, each in enumerate(instances):
            label: Any = each.get("bbox_label") if isinstance(each, dict) else None
            if key not in cameras:
                bad.setdefault(place, f"there is no camera '{shown(key, 60)}'")
            elif type(label) is not int or label not in names:
                bad.setdefault(place, f"the class {quoted(label)} is none of the file's categories")
            if place in bad:
                sensed.findings.reject("boxes", file, f"{video}, frame 0, box {place}", bad[place])
                continue
            row = dict(zip(CORNERS, corners[place].tolist(), strict=True))
            depth = each.get("depth")
            known = float(depth) if _is_number(depth, _LARGEST) else None
            sensed.add_box(names[label], video=video, frame=0, **row, depth_m=known)


def _is_number(value: Any, most: float) -> bool:
    return type(value) in (int, float) and abs(value) < most


def _pose(value: Any, where: str, name: str) -> Floats:
    """(4, 4) a rigid pose.

    Raises:
        InputError: if it is none.
    """
    found = _numbers(value, (4, 4), where, name)
    if fault := rigid_fault(found):
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
    good = len(plain) == shape[0] and all(_is_number(each, _LARGEST) for each in numbers)
    if not good:
        message = f"{name} should be {shape[0]} rows of {shape[1]} finite numbers and is {kind_of(value)}"
        raise InputError(message, where=where, hint=_FOREIGN)
    return np.array(value, dtype=np.float64)


def _path(folder: str, value: Any, where: str) -> str:
    """Where a file lies, as the keyframe says it.

    Raises:
        InputError: if it does not, or it leads out of the folder.
    """
    if not isinstance(value, str) or not value or leads_out(value):
        raise InputError(f"a path should lie in the folder and is {quoted(value)}", where=where)
    return f"{folder}/{clean(value)}" if folder else clean(value)


def _fields(count: Any, where: str) -> str:
    if type(count) is not int or count not in _FIELDS:
        raise InputError(f"a point has 4 or 5 numbers, not {quoted(count)}", where=where)
    return _FIELDS[count]


def _earliest(held: dict[str, Any], images: dict[str, Any]) -> float | None:
    """The first of all times, from which the others count."""
    times: list[Any] = [each.get("timestamp") for each in (held, *images.values()) if isinstance(each, dict)]
    return min((each for each in times if _is_number(each, _LATEST)), default=None)


def _since(time: Any, start: float | None) -> float | None:
    return float(time) - start if start is not None and _is_number(time, _LATEST) else None
