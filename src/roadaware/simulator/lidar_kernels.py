"""Kernels that find where the rays of a spinning LiDAR meet triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inline_kernel, inner_kernel, kernel

FRONTS, PAINT = 9, 8
"""Floats that describe a triangle to the rays, and the material that lies flat on the road."""
# Paint lies in the plane of the road, and rounding alone would decide which of them a ray meets. This is
# 2 mm at 100 m, far less than the noise along a ray, and it changes what is compared, not what is measured.
LIFT = 1.00002


@kernel
def cast(corners: Any, material: Any, pose: Any, columns: Any, slopes: Any, stretch: Any, range_m: float,
         nearest: Any, ranges: Any, facing: Any, face: Any) -> None:  # fmt: skip
    """Write for every ray which triangle it meets first, and how.

    A ray of column (c, s) and slope t has the direction (c, s, t). It meets a triangle where it lies on the
    same side of the three planes through the origin and an edge. In one column these are three bounds of t,
    so only rays between them are tested. Triangles seen from behind are not there, as in the image.

    Args:
        corners: (t, 3, 3) f32 in the world.
        material: (t,) u8.
        pose: (3, 4) f64 from the world to the LiDAR.
        columns: (c, 2) f64 cosine and sine of azimuths, evenly around the circle from 0.
        slopes: (r,) f64 tangents of elevations, rising.
        stretch: (r,) f64 length of a ray's direction.
        range_m: farthest hit.
        nearest: (r, c) f64 of inf; what hits are compared by, in which paint lies above the road.
        ranges: (r, c) f64 of inf; becomes metres.
        facing: (r, c) f64 of zeros; becomes the cosine between ray and normal.
        face: (r, c) i32 of -1; becomes the triangle.
    """
    work, planes = np.empty(9), np.empty(FRONTS)
    count = len(columns)
    for t in range(len(corners)):
        _transform_triangle(corners[t], pose, work)
        if not _fronts(work, planes) or _out_of_range(work, range_m):
            continue
        volume = work[0] * planes[0] + work[1] * planes[1] + work[2] * planes[2]
        normal_x = planes[0] + planes[3] + planes[6]
        normal_y = planes[1] + planes[4] + planes[7]
        normal_z = planes[2] + planes[5] + planes[8]
        size = np.sqrt(normal_x * normal_x + normal_y * normal_y + normal_z * normal_z)
        lift = LIFT if material[t] == PAINT else 1.0
        first, end = _window(work, count)
        for step in range(first, end):
            j = step % count
            c, s = columns[j, 0], columns[j, 1]
            e0, e1, e2 = (
                planes[0] * c + planes[1] * s,
                planes[3] * c + planes[4] * s,
                planes[6] * c + planes[7] * s,
            )
            low, high = _slopes_between(e0, e1, e2, planes, slopes)
            for i in range(low, high):
                tangent = slopes[i]
                d0, d1, d2 = e0 + planes[2] * tangent, e1 + planes[5] * tangent, e2 + planes[8] * tangent
                # 0 counts as inside: a ray on the edge of two neighbours
                # meets both, and none slips through the seam.
                if d0 < 0.0 or d1 < 0.0 or d2 < 0.0:
                    continue
                across = d0 + d1 + d2
                metres = volume / across * stretch[i]
                if metres / lift < nearest[i, j] and metres <= range_m:
                    nearest[i, j] = metres / lift
                    ranges[i, j] = metres
                    facing[i, j] = across / (size * stretch[i])
                    face[i, j] = t


@inline_kernel
def _transform_triangle(corners: Any, pose: Any, work: Any) -> None:
    for k in range(3):
        x, y, z = np.float64(corners[k, 0]), np.float64(corners[k, 1]), np.float64(corners[k, 2])
        for row in range(3):
            work[3 * k + row] = pose[row, 0] * x + pose[row, 1] * y + pose[row, 2] * z + pose[row, 3]


@inline_kernel
def _fronts(work: Any, planes: Any) -> bool:
    """Planes through the origin and each edge, towards the inside; False where only the back is seen."""
    for k in range(3):
        p, q = 3 * ((k + 1) % 3), 3 * ((k + 2) % 3)
        # The triangle turns the other way round when it is seen from its front, hence q before p.
        planes[3 * k] = work[q + 1] * work[p + 2] - work[q + 2] * work[p + 1]
        planes[3 * k + 1] = work[q + 2] * work[p] - work[q] * work[p + 2]
        planes[3 * k + 2] = work[q] * work[p + 1] - work[q + 1] * work[p]
    return bool(work[0] * planes[0] + work[1] * planes[1] + work[2] * planes[2] > 0.0)


@inline_kernel
def _out_of_range(work: Any, range_m: float) -> bool:
    """Whether the ball around the triangle's middle lies beyond the range."""
    x, y, z = (
        (work[0] + work[3] + work[6]) / 3,
        (work[1] + work[4] + work[7]) / 3,
        (work[2] + work[5] + work[8]) / 3,
    )
    reach = 0.0
    for k in (0, 3, 6):
        reach = max(reach, (work[k] - x) ** 2 + (work[k + 1] - y) ** 2 + (work[k + 2] - z) ** 2)
    return bool(np.sqrt(x * x + y * y + z * z) - np.sqrt(reach) > range_m)


@inline_kernel
def _window(work: Any, count: int) -> tuple[int, int]:
    """First column and end that a triangle may touch; the end may lie a turn further on."""
    start = np.arctan2(work[1], work[0])
    low, high = 0.0, 0.0
    for k in (3, 6):
        # Against the first corner, so that a triangle across the cut of arctan2 stays in one piece.
        turn = np.arctan2(work[k + 1], work[k]) - start
        turn -= 2 * np.pi * np.floor((turn + np.pi) / (2 * np.pi))
        low, high = min(low, turn), max(high, turn)
    # Whoever surrounds the axis spans half a turn or more, and its corners then bound no window.
    if high - low > np.pi - 1e-6:  # above or below the sensor
        return 0, count
    width = 2 * np.pi / count
    # A column too many is harmless, since the planes decide; one too few would leave a slit.
    first = int(np.ceil((start + low) / width - 1e-6))
    end = int(np.floor((start + high) / width + 1e-6)) + 1
    turns = count if first < 0 else 0
    # At most one turn, or a column would be cast twice.
    return first + turns, min(end, first + count) + turns


@inline_kernel
def _slopes_between(e0: float, e1: float, e2: float, planes: Any, slopes: Any) -> tuple[int, int]:
    """First ray of a column and end that may meet a triangle, a hair too many rather than one too few."""
    low, high = slopes[0], slopes[-1]
    for e, rise in ((e0, planes[2]), (e1, planes[5]), (e2, planes[8])):
        if rise > 0.0:
            low = max(low, -e / rise - 1e-9)
        elif rise < 0.0:
            high = min(high, -e / rise + 1e-9)
        elif e < 0.0:
            return 0, 0
    if low > high:
        return 0, 0
    return _steeper(slopes, low, False), _steeper(slopes, high, True)


@inner_kernel
def _steeper(slopes: Any, least: float, over: bool) -> int:
    """The first of rising slopes that is at least so steep, or steeper."""
    # numpy's own search also knows of complex numbers and NaN, which takes most of a second to compile.
    first, end = 0, len(slopes)
    while first < end:
        middle = (first + end) // 2
        if slopes[middle] < least or (over and slopes[middle] == least):
            first = middle + 1
        else:
            end = middle
    return first
