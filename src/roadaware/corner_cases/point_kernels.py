"""Compiled steps on the returns of a sweep: which are usable, where they lie in the image, their rings."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import kernel

USABLE, NOT_FINITE, AT_ORIGIN, OWN, BEYOND = range(5)
OUT_OF_ORDER = 0.03
"""By no more than this, in radians, do returns of one ring lie out of order."""


@kernel
def label_points(points: Any, near: float, far: float, found: Any) -> None:
    """Label each return: usable, or the reason why not.

    Args:
        points: (n, 3) f32 metres.
        near: horizontal range below which a return is of the own vehicle.
        far: coordinates beyond this are none.
        found: (n,) u8; becomes USABLE, NOT_FINITE, ...
    """
    # Squares are compared with squares: no root for each return.
    square = near * near
    for i in range(len(points)):
        x, y, z = np.float64(points[i, 0]), np.float64(points[i, 1]), np.float64(points[i, 2])
        if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
            found[i] = NOT_FINITE
        elif x == 0.0 and y == 0.0 and z == 0.0:
            found[i] = AT_ORIGIN
        elif abs(x) > far or abs(y) > far or abs(z) > far:
            found[i] = BEYOND
        elif x * x + y * y < square:
            found[i] = OWN
        else:
            found[i] = USABLE


@kernel
def compute_polar(points: Any, judged: Any, ranges: Any, slopes: Any, azimuth: Any) -> None:
    """Range, tangent of the elevation, and azimuth of each usable return; nothing of the others.

    Args:
        points: (n, 3) f32 metres.
        judged: (n,) u8 of `label_points`.
        ranges: (n,) f32 of zeros; becomes metres.
        slopes: (n,) f32 of zeros; becomes z over horizontal range.
        azimuth: (n,) f32 of zeros; becomes radians counter-clockwise from ahead, from -pi to pi.
    """
    for i in range(len(points)):
        if judged[i] == USABLE:
            x, y, z = np.float64(points[i, 0]), np.float64(points[i, 1]), np.float64(points[i, 2])
            flat = x * x + y * y
            ranges[i] = np.sqrt(flat + z * z)
            # Slopes lie in the order of the elevations and need no arc tangent; straight up is finite, too.
            slopes[i] = z / np.sqrt(flat) if flat > 0.0 else np.sign(z) * 1e6
            azimuth[i] = np.arctan2(y, x)


@kernel
def assign_columns(azimuth: Any, judged: Any, columns: int, found: Any) -> None:
    """The column of each return, the nearest of those that divide a turn.

    Args:
        azimuth: (n,) f32 radians.
        judged: (n,) u8 of `label_points`.
        columns: of the image; 0 is ahead, they count counter-clockwise.
        found: (n,) i32; becomes the column, -1 for returns that are not usable.
    """
    for i in range(len(azimuth)):
        if judged[i] != USABLE:
            found[i] = -1
            continue
        # Rounded to the nearest column; what rounds up to a whole turn is column 0 again.
        at = int(np.floor(azimuth[i] * (columns / (2 * np.pi)) + 0.5))
        at = at + columns if at < 0 else at
        found[i] = 0 if at >= columns else at


@kernel
def count_rotation_steps(azimuth: Any, judged: Any) -> int:
    """How many steps from one return to the next go counter-clockwise, less those that go clockwise.

    Args:
        azimuth: (n,) f32 radians.
        judged: (n,) u8 of `label_points`.
    """
    found, before = 0, -1
    for i in range(len(azimuth)):
        if judged[i] != USABLE:
            continue
        if before >= 0:
            step = azimuth[i] - azimuth[before]
            # The shorter way round: a step over the seam is a small one.
            step -= 2 * np.pi * np.floor((step + np.pi) / (2 * np.pi))
            found += 1 if step > 0.0 else -1
        before = i
    return found


@kernel
def assign_rings(azimuth: Any, judged: Any, seam: float, clockwise: bool, ring: Any) -> int:
    """Number rings by the turns that returns make around the LiDAR, in the order they are written.

    Args:
        azimuth: (n,) f32 radians.
        judged: (n,) u8 of `label_points`.
        seam: radians; where turns end.
        clockwise: seen from above.
        ring: (n,) i32; becomes the number of the turn, -1 where a return is not usable.

    Returns:
        The number of turns.
    """
    turn, before = 0, -1.0
    for i in range(len(azimuth)):
        ring[i] = -1
        if judged[i] != USABLE:
            continue
        here = seam - azimuth[i] if clockwise else azimuth[i] - seam
        here -= 2 * np.pi * np.floor(here / (2 * np.pi))
        # Just after the seam, a return from just before it belongs to the turn that has begun.
        trembles = 0.0 <= before < OUT_OF_ORDER and here > 2 * np.pi - OUT_OF_ORDER
        if here < before - OUT_OF_ORDER:
            turn, before = turn + 1, here
        # The greatest so far, or else many small steps back would never add up to the end of a turn.
        elif not trembles:
            before = max(before, here)
        ring[i] = turn
    return turn + 1 if before >= 0.0 else 0


@kernel
def accumulate_ring_slopes(ring: Any, slopes: Any, sums: Any, squares: Any, counts: Any) -> None:
    """Sums of the slopes of each ring, of their squares, and how many there are.

    Args:
        ring: (n,) i32, -1 for none.
        slopes: (n,) f32.
        sums: (r,) f64 of zeros.
        squares: (r,) f64 of zeros.
        counts: (r,) i64 of zeros.
    """
    for i in range(len(ring)):
        if ring[i] >= 0:
            slope = np.float64(slopes[i])
            sums[ring[i]] += slope
            squares[ring[i]] += slope * slope
            counts[ring[i]] += 1


@kernel
def assign_rows(slopes: Any, column: Any, edges: Any, row: Any) -> None:
    """The row of each return by its slope.

    Args:
        slopes: (n,) f32.
        column: (n,) i32, -1 where a return is not usable.
        edges: (r + 1,) f64 falling; row i lies between edges i and i + 1.
        row: (n,) i32; becomes the row, -1 above the first edge, below the last, or where not usable.
    """
    rows = len(edges) - 1
    for i in range(len(slopes)):
        slope = slopes[i]
        # Edges fall: a row holds its upper edge and not its lower one, so that no slope is in two rows.
        if column[i] < 0 or slope > edges[0] or slope <= edges[rows]:
            row[i] = -1
            continue
        first, end = 0, rows
        # Bisection: edges of a named LiDAR are not evenly spaced.
        while end - first > 1:
            middle = (first + end) // 2
            if slope > edges[middle]:
                end = middle
            else:
                first = middle
        row[i] = first


@kernel
def fill(row: Any, column: Any, ranges: Any, solid: Any, image: Any) -> None:
    """Write the nearest solid return of each pixel; where there is none, minus the nearest other one.

    Args:
        row: (n,) i32, -1 for returns that are in no pixel.
        column: (n,) i32.
        ranges: (n,) f32 metres.
        solid: (n,) bool; others are ground.
        image: (r, c) f32 of zeros.
    """
    for i in range(len(row)):
        if row[i] < 0 or column[i] < 0:
            continue
        there, here = image[row[i], column[i]], ranges[i]
        if solid[i]:
            # The nearest return stands for the pixel; the published C++ code keeps the farthest.
            if there <= 0.0 or here < there:
                image[row[i], column[i]] = here
        # Ground is written as minus its range: it blocks the search for neighbours, but is no return to join.
        elif there == 0.0 or (there < 0.0 and -here > there):
            image[row[i], column[i]] = -here
