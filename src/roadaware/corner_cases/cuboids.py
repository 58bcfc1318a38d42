"""Cuboids: where the returns of a cluster stand in space, how large they are, and which way they are turned.

Source: the angle is that of Zhang, Xu, Dong and Dolan, "Efficient L-shape fitting for vehicle detection using laser
scanners", IV 2017, algorithm 4 (closeness of returns to the edges of a turned rectangle)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints32
from roadaware.corner_cases.ground import Ground
from roadaware.corner_cases.kernels import fit_rectangles, group_by_cluster

ANGLES = 30
"""Directions that are tried within a quarter turn: steps of 3 degrees."""
LEAST_SIDE_M = 0.05
"""No thing is thinner; a single row of returns spans nothing across."""
STRAY = 0.02
"""Share of the returns that a cuboid leaves out at each end."""
# Returns of one cluster that say how it is turned; more say the same and cost time.
_JUDGES = 256


@dataclass(frozen=True, eq=False)
class Cuboids:
    """Upright boxes in space around what was seen of clusters, in the LiDAR's frame: x ahead, y left, z up.

    Only the sides that face the LiDAR send returns back: a cuboid is as deep as what was seen, not as the thing is.

    Args:
        centres: (m, 3) metres, the middle of each.
        sizes: (m, 3) metres: length along its own direction, width across, height; the length is the longer side.
        yaw: (m,) radians counter-clockwise from ahead to the length, from -pi/2 to pi/2; which end is the front is
            not known.
        spans: (m, 3) metres: sizes with every return in them, the longer side first. A cuboid leaves out a fiftieth at
            each end, where there are fifty returns or more: a few beams slip past a thing and end far behind it.
    """

    centres: Floats
    sizes: Floats
    yaw: Floats
    spans: Floats

    def __len__(self) -> int:
        return len(self.yaw)


def fit_cuboids(
    points: Floats32,
    of_return: Ints32,
    numbers: npt.NDArray[np.integer],
    *,
    ground: Ground | None = None,
    standing_m: float = 0.0,
) -> Cuboids:
    """The cuboid of each of some clusters.

    The direction is the one of a quarter turn at which returns lie closest to the edges of the rectangle around them.

    Args:
        points: (n, 3) metres in the LiDAR's frame.
        of_return: (n,) cluster of each return, 0 for none.
        numbers: (m,) clusters, from 1, each at most once.
        ground: with it, clusters that stand on it reach down to it.
        standing_m: a cluster whose lowest return is less than this above the ground stands on it.
    """
    count = len(numbers)
    slot = np.full(int(max(of_return.max(initial=0), np.max(numbers, initial=0))) + 1, -1, dtype=np.int32)
    slot[numbers] = np.arange(count)
    starts = np.zeros(count + 1, dtype=np.int64)
    members = np.empty(len(points), dtype=np.int32)
    group_by_cluster(of_return, slot, starts, members)
    plane = np.zeros(4)
    heights = np.empty(0, dtype=np.float32)
    if ground is not None and ground.plane is not None and ground.heights is not None:
        plane, heights = ground.plane, ground.heights
    found = np.zeros((count, 9))
    angles = np.arange(ANGLES) * (np.pi / 2 / ANGLES)
    turns = np.column_stack([np.cos(angles), np.sin(angles)])
    fit_rectangles(points, members, starts, turns, heights, plane, float(standing_m), _JUDGES, STRAY, found)
    sizes = np.maximum(found[:, 3:6], LEAST_SIDE_M)
    yaw = found[:, 6]
    across = sizes[:, 1] > sizes[:, 0]
    # The longer side is the length, so that equal things have equal sizes however they are turned.
    sizes[across, :2] = sizes[across, 1::-1]
    yaw = np.where(across, yaw - np.pi / 2, yaw)
    spans = np.maximum(np.column_stack([np.sort(found[:, 7:], axis=1)[:, ::-1], found[:, 5]]), LEAST_SIDE_M)
    return Cuboids(found[:, :3], sizes, yaw, spans)


def compute_cuboid_corners(cuboid: Floats) -> Floats:
    """(8, 3) corners of a cuboid in its own frame.

    Args:
        cuboid: (7,) x, y, z of its middle, length, width, height, and the turn about the axis up.
    """
    cos, sin = np.cos(cuboid[6]), np.sin(cuboid[6])
    signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    found: Floats = (signs * cuboid[3:6]) @ np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])
    return found + cuboid[:3]
