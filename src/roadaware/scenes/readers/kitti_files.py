"""KITTI's files: the calibration of one picture, and one line of its labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.geometry.poses import inverse, rigid_fault
from roadaware.scenes.readers.sensed import RowError

CLASSES = ("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc", "DontCare")
OWN: dict[str, Any] = dict.fromkeys(
    (
        "truncated_share",
        "alpha_rad",
        "height_m",
        "width_m",
        "length_m",
        "x_m",
        "y_m",
        "z_m",
        "rotation_y_rad",
    ),
    pl.Float32,
)
"""What a line of labels says besides the box: how far it leaves the picture, and the box in space."""
_NEEDED = {"P2": 12, "R0_rect": 9, "Tr_velo_to_cam": 12, "Tr_imu_to_velo": 12}
_OTHER_NAMES = {"R_rect": "R0_rect", "Tr_velo_cam": "Tr_velo_to_cam", "Tr_imu_velo": "Tr_imu_to_velo"}
_FIELDS, _LARGEST = 15, 1e6
_OCCLUSION = {"0": "none", "1": "part", "2": "full", "3": None}
_UNKNOWN = {
    "truncated_share": -1,
    "alpha_rad": -10,
    "height_m": -1,
    "width_m": -1,
    "length_m": -1,
    "x_m": -1000,
}


@dataclass(frozen=True, eq=False)
class Calibration:
    """Where camera 2 and the LiDAR of one picture sit in the vehicle.

    Args:
        intrinsics: (3, 3) camera matrix of the rectified picture.
        ego_SE3_camera: (4, 4).
        ego_SE3_lidar: (4, 4).
    """

    intrinsics: Floats
    ego_SE3_camera: Floats  # noqa: N815, the project's way to name transforms
    ego_SE3_lidar: Floats  # noqa: N815


def calibration_of(lines: Sequence[str], where: str) -> Calibration:
    """What a calibration file says.

    Points of the LiDAR come to camera 2 by Tr_velo_to_cam, R0_rect and the shift that is in P2.

    Args:
        lines: of the file.
        where: names it in errors.

    Raises:
        InputError: if a matrix is missing, has another number of numbers, or is no pose.
    """
    held = dict(_matrix(line, number, where) for number, line in enumerate(lines, 1) if line.strip())
    missing = [name for name in _NEEDED if name not in held]
    if missing:
        message = f"expected {', '.join(_NEEDED)}; {', '.join(missing)} is missing"
        raise InputError(message, where=where, hint="fetch the file again")
    projection = held["P2"].reshape(3, 4)
    lens = projection[:, :3]
    if not (lens[0, 0] > 0 and lens[1, 1] > 0 and np.abs(lens[2] - [0, 0, 1]).max() < 1e-6):
        raise InputError(f"P2 is no camera matrix: {lens.tolist()}", where=where)
    shift, turn = np.eye(4), np.eye(4)
    shift[:3, 3] = np.linalg.solve(lens, projection[:, 3])
    turn[:3, :3] = held["R0_rect"].reshape(3, 3)
    poses = {"R0_rect": turn}
    for name in ("Tr_velo_to_cam", "Tr_imu_to_velo"):
        poses[name] = np.vstack([held[name].reshape(3, 4), [0, 0, 0, 1]])
    for name, pose in poses.items():
        if fault := rigid_fault(pose):
            raise InputError(f"{name} is no pose: {fault}", where=where)
    ego_lidar = inverse(poses["Tr_imu_to_velo"])
    camera_lidar = shift @ poses["R0_rect"] @ poses["Tr_velo_to_cam"]
    return Calibration(lens, ego_lidar @ inverse(camera_lidar), ego_lidar)


def label_of(line: str) -> tuple[str, dict[str, Any]]:
    """The class of a line of labels, and its columns of the table `boxes`.

    Raises:
        RowError: if it has another number of fields, an unknown class, or a box that is none.
    """
    words = line.split()
    if len(words) != _FIELDS:
        told = " (the 16th is a score: these are claims)" if len(words) == _FIELDS + 1 else ""
        raise RowError(f"a label has {_FIELDS} fields and this line {len(words)}{told}")
    if words[0] not in CLASSES:
        raise RowError(f"the class '{words[0][:40]}' is none of {', '.join(CLASSES)}")
    if words[2] not in (*_OCCLUSION, "-1"):
        raise RowError(f"occlusion is 0 to 3, or -1, not '{words[2][:40]}'")
    numbers = [_number(word) for word in words[1:]]
    x1, y1, x2, y2 = numbers[3:7]
    if x1 > x2 or y1 > y2:
        raise RowError(f"the box {numbers[3:7]} is upside down")
    height, width, length, x, y, z, turn = numbers[7:]
    known: dict[str, Any] = dict(
        zip(OWN, (numbers[0], numbers[2], height, width, length, x, y, z, turn), strict=True)
    )
    if known["x_m"] == _UNKNOWN["x_m"]:
        known = dict.fromkeys(known)
    known = {name: None if value == _UNKNOWN.get(name) else value for name, value in known.items()}
    row = {"x1_px": x1, "y1_px": y1, "x2_px": x2, "y2_px": y2, "occlusion": _OCCLUSION.get(words[2])}
    return words[0], {**row, "ignore": words[0] == "DontCare", **known}


def _matrix(line: str, number: int, where: str) -> tuple[str, Floats]:
    """Name and numbers of a line of calibration.

    Raises:
        InputError: if it has neither.
    """
    name, colon, rest = line.partition(":")
    if not colon:
        name, _, rest = line.strip().partition(" ")
    name = _OTHER_NAMES.get(name.strip(), name.strip())
    where = f"{where}, line {number}"
    try:
        found = np.array([_number(word) for word in rest.split()], dtype=np.float64)
    except RowError as error:
        raise InputError(f"'{name[:40]}': {error}", where=where) from error
    if name in _NEEDED and len(found) != _NEEDED[name]:
        raise InputError(f"{name} has {len(found)} numbers, expected {_NEEDED[name]}", where=where)
    return name, found


def _number(word: str) -> float:
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    if not abs(found) <= _LARGEST or "_" in word:
        raise RowError(f"'{word[:40]}' is no finite number of a usual size")
    return found
