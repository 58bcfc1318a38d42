"""Points of a LiDAR as other datasets write them: rows of float32, named by what each number is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roadaware.errors import InputError, UsageError
from roadaware.scenes.readers.source import read_file, shown

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
    where, width = shown(str(path)), 4 * len(names)
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
