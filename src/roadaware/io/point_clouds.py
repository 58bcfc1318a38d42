"""LiDAR sweeps in files, of this project and of other datasets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.sources import read_file, to_printable

OURS = "x y z intensity ring"
"""What the numbers of a point are unless the tables say otherwise."""
KNOWN = ("x", "y", "z", "intensity", "ring", "other")
MAX_POINTS = 1 << 22
MOST_RINGS = 512


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Points of one turn of a LiDAR, in the order they were written; some may not be finite.

    Args:
        xyz: (n, 3) float32 metres in the LiDAR's frame.
        intensity: (n,) float32 in the file's own unit; None where it has none.
        ring: (n,) int32 number of the beam; None where it has none.
    """

    xyz: npt.NDArray[np.float32]
    intensity: npt.NDArray[np.float32] | None = None
    ring: npt.NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.xyz)


def read_points(path: Path, fields: str = OURS) -> PointCloud:
    """The points of a file of little-endian float32.

    Args:
        path: the file.
        fields: what the numbers of a point are, in order, of `KNOWN`; `other` ones are left aside.

    Raises:
        UsageError: if the fields are not of `KNOWN`, or x, y and z are not among them once.
        InputError: if the file cannot be read, is too large, is no whole number of points, or rings are no
            whole numbers.
    """
    names = fields.split()
    if not set(names) <= set(KNOWN) or any(names.count(name) != 1 for name in "xyz"):
        raise UsageError(f"a point's numbers are of {', '.join(KNOWN)}, x, y and z once; not {fields!r}")
    where, width = to_printable(str(path)), 4 * len(names)
    data = read_file(path, most=width * MAX_POINTS)
    if len(data) % width:
        message = f"{len(data)} bytes are no whole number of points of {width} bytes ({fields})"
        raise InputError(message, where=where, hint="the file was cut off, or holds other numbers")
    table = np.frombuffer(data, dtype="<f4").reshape(-1, len(names))
    xyz = np.ascontiguousarray(table[:, [names.index(name) for name in "xyz"]], dtype=np.float32)
    intensity = table[:, names.index("intensity")].astype(np.float32) if "intensity" in names else None
    ring = _rings(table[:, names.index("ring")], where) if "ring" in names else None
    return PointCloud(xyz, intensity, ring)


def _rings(numbers: npt.NDArray[np.float32], where: str) -> npt.NDArray[np.int32]:
    """Rings as whole numbers.

    Raises:
        InputError: if one is none.
    """
    good = (numbers >= 0) & (numbers < MOST_RINGS) & (numbers == np.floor(numbers))
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        message = f"the ring of point {row} is {numbers[row]:g}, no whole number below {MOST_RINGS}"
        raise InputError(message, where=where, hint="the file may have other numbers for each point")
    return numbers.astype(np.int32)


# Sweeps of a LiDAR in files.

POINT_BYTES = 20
MAX_SWEEP_POINTS = 256 * 8192
"""The most rays that a sweep has."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Points of one turn of a LiDAR, ring by ring from below.

    Args:
        points: (n, 5) float32 x, y, z in metres in the LiDAR's frame, intensity from 0 to 1, ring.
        instance: (n,) int32 of what was met, 0 for what does not move; None where it is not known.
        semantic: (n,) uint8 class of what was met; None where it is not known.
    """

    points: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32] | None = None
    semantic: npt.NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.points)


def write_sweep(path: Path, sweep: Sweep) -> None:
    """Write the points as rows of five little-endian float32, and what was met beside them in `.label`.

    A label is an unsigned 32-bit number: the class in its lower half, the instance in its upper.

    Args:
        path: ends with `.bin`.
        sweep: what to write.

    Raises:
        UsageError: if an instance is larger than 65535.
        DiskError: if a file cannot be written.
    """
    if sweep.instance is not None and sweep.semantic is not None:
        if len(sweep) and not 0 <= int(sweep.instance.min()) <= int(sweep.instance.max()) < 1 << 16:
            raise UsageError(f"instances are numbered 0 to 65535, not up to {int(sweep.instance.max())}")
        # As SemanticKITTI packs its labels.
        labels = sweep.instance.astype("<u4") << 16 | sweep.semantic
        write_atomically(path.with_suffix(".label"), labels.astype("<u4").tobytes())
    write_atomically(path, sweep.points.astype("<f4").tobytes())


def read_sweep(path: Path) -> Sweep:
    """Read a sweep of `write_sweep`; without labels where there is no `.label` beside it.

    Args:
        path: ends with `.bin`.

    Raises:
        InputError: if a file cannot be read or is no whole number of finite points.
    """
    where = to_printable(str(path))
    data = read_file(path, most=POINT_BYTES * MAX_SWEEP_POINTS)
    if len(data) % POINT_BYTES:
        message = f"{len(data)} bytes are no whole number of points of {POINT_BYTES} bytes"
        raise InputError(message, where=where, hint="the file was cut off: write or copy it again")
    points = np.frombuffer(data, dtype="<f4").reshape(-1, 5).astype(np.float32)
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(1))[0])
        raise InputError(f"point {row} is not finite: {points[row].tolist()}", where=where)
    beside = path.with_suffix(".label")
    if not beside.exists():
        return Sweep(points)
    labels = np.frombuffer(_label_bytes(beside, len(points)), dtype="<u4")
    return Sweep(points, (labels >> 16).astype(np.int32), (labels & 0xFF).astype(np.uint8))


def _label_bytes(path: Path, points: int) -> bytes:
    data = read_file(path, most=4 * MAX_SWEEP_POINTS)
    if len(data) != 4 * points:
        message = f"{len(data)} bytes for {points} points, each of which has a label of 4"
        raise InputError(message, where=to_printable(str(path)), hint="both files of a sweep belong together")
    return data
