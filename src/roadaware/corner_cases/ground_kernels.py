"""Compiled steps that find the plane of the ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import kernel


@kernel
def fit_best_plane(
    returns: Any, draws: Any, up: Any, least_cos: float, reach: float, heights: Any, plane: Any
) -> float:
    """Try planes through three returns; keep the one whose distances, cut off at `reach`, cost least.

    Args:
        returns: (m, 3) f64 metres that judge, and that planes go through.
        draws: (t, 3) i64 places of three returns.
        up: (3,) f64 unit vector.
        least_cos: of the angle between a plane's normal and `up`.
        reach: distance in metres from which a return does not belong to a plane.
        heights: (2,) f64 how high the LiDAR may stand above the ground.
        plane: (4,) f64; becomes normal and offset: height = normal . point + offset.

    Returns:
        The mean cost, 1 where no plane was possible.
    """
    count = len(returns)
    square = reach * reach
    # What a plane costs that explains nothing: only better ones are taken.
    best = square * count
    normal = np.empty(3)
    for t in range(len(draws)):
        a, b, c = returns[draws[t, 0]], returns[draws[t, 1]], returns[draws[t, 2]]
        ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
        normal[0], normal[1], normal[2] = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        size = np.sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2])
        # Three returns in one line, or one drawn twice, span no plane.
        if size < 1e-9:
            continue
        leaning = normal[0] * up[0] + normal[1] * up[1] + normal[2] * up[2]
        # The order of three drawn returns is chance; all normals are made to point up.
        if leaning < 0.0:
            size, leaning = -size, -leaning
        if leaning < least_cos * abs(size):
            continue
        nx, ny, nz = normal[0] / size, normal[1] / size, normal[2] / size
        offset = -(nx * a[0] + ny * a[1] + nz * a[2])
        if offset < heights[0] or offset > heights[1]:
            continue
        cost = 0.0
        for i in range(count):
            height = nx * returns[i, 0] + ny * returns[i, 1] + nz * returns[i, 2] + offset
            cost += min(height * height, square)
            # Costs only grow: a worse plane is given up early.
            if cost >= best:
                break
        if cost < best:
            best = cost
            plane[0], plane[1], plane[2], plane[3] = nx, ny, nz, offset
    return best / (square * count) if count else 1.0


@kernel
def compute_heights(points: Any, judged: Any, plane: Any, found: Any) -> None:
    """Height of each usable return above the plane; 0 for the others.

    Args:
        points: (n, 3) f32 metres.
        judged: (n,) u8, 0 where usable.
        plane: (4,) f64 normal and offset.
        found: (n,) f32; becomes metres.
    """
    a, b, c, d = plane[0], plane[1], plane[2], plane[3]
    for i in range(len(points)):
        if judged[i] == 0:
            found[i] = a * points[i, 0] + b * points[i, 1] + c * points[i, 2] + d
        else:
            found[i] = 0.0
