"""Compiled steps on the returns of a sweep: which are usable, where they lie in the image, their rings."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import kernel

USABLE, NOT_FINITE, AT_ORIGIN, OWN, BEYOND = range(5)


@kernel
def judge(points: Any, near: float, far: float, found: Any) -> None:
    """What each return is.

    Args:
        points: (n, 3) f32 metres.
        near: horizontal range below which a return is of the own vehicle.
        far: coordinates beyond this are none.
        found: (n,) u8; becomes USABLE, NOT_FINITE, ...
    """
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
def polar(points: Any, judged: Any, columns: int, ranges: Any, slopes: Any, column: Any) -> None:
    """Range, tangent of the elevation, and column of each usable return.

    Args:
        points: (n, 3) f32 metres.
        judged: (n,) u8 of `judge`.
        columns: of the image; 0 is ahead, they count counter-clockwise.
        ranges: (n,) f32; becomes metres, 0 for returns that are not usable.
        slopes: (n,) f32; becomes z over horizontal range, 0 for those.
        column: (n,) i32; becomes the column, -1 for those.
    """
    per_radian = columns / (2 * np.pi)
    for i in range(len(points)):
        if judged[i] != USABLE:
            ranges[i], slopes[i], column[i] = 0.0, 0.0, -1
            continue
        x, y, z = np.float64(points[i, 0]), np.float64(points[i, 1]), np.float64(points[i, 2])
        flat = x * x + y * y
        ranges[i] = np.sqrt(flat + z * z)
        slopes[i] = z / np.sqrt(flat) if flat > 0.0 else np.sign(z) * 1e6
        at = int(np.floor(np.arctan2(y, x) * per_radian + 0.5))
        column[i] = at + columns if at < 0 else at
        if column[i] >= columns:
            column[i] = 0


@kernel
def turns(points: Any, judged: Any, clockwise: bool, ring: Any) -> int:
    """Number rings by the turns that returns make around the LiDAR, in the order they are written.

    A turn ends where returns pass the direction of the first one after they have been behind it, so that
    noise in the azimuth there makes no turn of its own.

    Args:
        points: (n, 3) f32 metres.
        judged: (n,) u8 of `judge`; returns of the own vehicle take part.
        clockwise: seen from above.
        ring: (n,) i32; becomes the number of the turn, -1 where a return is not usable.

    Returns:
        The number of turns.
    """
    turn, behind, began = 0, False, False
    cosine, sine = 1.0, 0.0
    for i in range(len(points)):
        ring[i] = -1
        if judged[i] != USABLE and judged[i] != OWN:
            continue
        x, y = np.float64(points[i, 0]), np.float64(points[i, 1])
        if not began:
            # A degree before the first return: the first ones of a ring need not be in order.
            flat = np.sqrt(x * x + y * y)
            if flat == 0.0:
                continue
            angle = np.arctan2(y, x) + (0.0175 if clockwise else -0.0175)
            cosine, sine, began = np.cos(angle), np.sin(angle), True
        ahead = x * cosine + y * sine
        left = y * cosine - x * sine
        if clockwise:
            left = -left
        if ahead < 0.0:
            behind = True
        elif behind and left >= 0.0:
            turn, behind = turn + 1, False
        if judged[i] == USABLE:
            ring[i] = turn
    return turn + 1 if began else 0


@kernel
def rotation(points: Any, judged: Any) -> int:
    """How many steps from a usable return to the next go counter-clockwise, less those that go clockwise."""
    found, before = 0, -1
    for i in range(len(points)):
        if judged[i] != USABLE:
            continue
        if before >= 0:
            cross = points[before, 0] * points[i, 1] - points[before, 1] * points[i, 0]
            found += 1 if cross > 0 else -1
        before = i
    return found


@kernel
def ring_slopes(ring: Any, slopes: Any, sums: Any, squares: Any, counts: Any) -> None:
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
def rows_between(slopes: Any, column: Any, edges: Any, row: Any) -> None:
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
        if column[i] < 0 or slope > edges[0] or slope <= edges[rows]:
            row[i] = -1
            continue
        first, end = 0, rows
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
            if there <= 0.0 or here < there:
                image[row[i], column[i]] = here
        elif there == 0.0 or (there < 0.0 and -here > there):
            image[row[i], column[i]] = -here
