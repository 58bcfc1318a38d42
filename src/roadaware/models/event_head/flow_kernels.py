"""Compiled sparse optical flow: pyramids, corners by grid cell, Lucas and Kanade."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Pixels
from roadaware.geometry.compiled import inline_kernel, inner_kernel, kernel

HALF = 4
"""Half of the window, which has 9 x 9 pixels."""
_ITERATIONS = 8
_STILL_PX = 0.02
_LEAST_EIGENVALUE = 12.0
"""Of the gradients' matrix, by pixel: weaker corners are noise of the sensor or of the codec."""
_ROUND = 0.12
_WORST = 14.0
"""Mean difference of grey levels in a window that was followed well."""


@kernel
def downscale_to_grey(image: Pixels, factor: int) -> Floats32:
    """(h, w) grey levels of a (H, W, 3) image, each the mean of factor x factor pixels."""
    height, width = image.shape[0] // factor, image.shape[1] // factor
    found = np.empty((height, width), np.float32)
    # The weights 1, 2, 1 of the colours add up to 4.
    share = np.float32(1.0 / (4 * factor * factor))
    for i in range(height):
        for j in range(width):
            total = 0
            for a in range(i * factor, (i + 1) * factor):
                for b in range(j * factor, (j + 1) * factor):
                    # Green counts half, as it does about in what the eye sees.
                    total += int(image[a, b, 0]) + 2 * int(image[a, b, 1]) + int(image[a, b, 2])
            found[i, j] = share * np.float32(total)
    return found


@kernel
def downsample_grey(grey: Floats32) -> Floats32:
    """Every second pixel of an image smoothed by 1, 2, 1 in both directions."""
    height, width = grey.shape[0] // 2, grey.shape[1] // 2
    found = np.empty((height, width), np.float32)
    for i in range(height):
        for j in range(width):
            total = np.float32(0.0)
            for a in range(-1, 2):
                for b in range(-1, 2):
                    y = min(max(2 * i + a, 0), grey.shape[0] - 1)
                    x = min(max(2 * j + b, 0), grey.shape[1] - 1)
                    total += np.float32((2 - abs(a)) * (2 - abs(b))) * grey[y, x]
            found[i, j] = total / np.float32(16.0)
    return found


@kernel
def detect_corners(grey: Floats32, cell: int, taken: Floats) -> Floats:
    """(n, 2) x, y of the best corner of each cell that is one, none of them in the boxes.

    Args:
        grey: image.
        cell: side of the cells, pixels.
        taken: (m, 4) boxes in pixels of the grey image.
    """
    height, width = grey.shape
    found = np.empty(((height // cell + 1) * (width // cell + 1), 2))
    n, edge = 0, HALF + 2
    for top in range(edge, height - edge, cell):
        for left in range(edge, width - edge, cell):
            best, best_x, best_y = _LEAST_EIGENVALUE, -1, -1
            # Every second pixel: a corner is wider than one.
            for y in range(top, min(top + cell, height - edge), 2):
                for x in range(left, min(left + cell, width - edge), 2):
                    value = _eigenvalue(grey, x, y)
                    if value > best:
                        best, best_x, best_y = value, x, y
            if best_x >= 0 and not _inside(taken, best_x, best_y):
                found[n, 0], found[n, 1] = best_x, best_y
                n += 1
    return found[:n]


@inner_kernel
def _inside(boxes: Floats, x: float, y: float) -> bool:
    inside = False
    for box in boxes:
        inside = inside or (box[0] <= x <= box[2] and box[1] <= y <= box[3])
    return inside


@inner_kernel
def _eigenvalue(grey: Floats32, x: int, y: int) -> float:
    """The smaller eigenvalue of the mean matrix of the gradients in a window of 5 x 5."""
    xx, xy, yy = 0.0, 0.0, 0.0
    for b in range(y - 2, y + 3):
        for a in range(x - 2, x + 3):
            gx = 0.5 * (grey[b, a + 1] - grey[b, a - 1])
            gy = 0.5 * (grey[b + 1, a] - grey[b - 1, a])
            xx, xy, yy = xx + gx * gx, xy + gx * gy, yy + gy * gy
    root = np.sqrt(0.25 * (xx - yy) ** 2 + xy * xy)
    small, large = 0.5 * (xx + yy) - root, 0.5 * (xx + yy) + root
    # Along an edge, such as the line of a lane, nothing can be followed.
    return float(small / 25.0 if small > _ROUND * large else 0.0)


@inline_kernel
def _at(grey: Floats32, x: float, y: float) -> float:
    """The grey level between pixels."""
    i, j = int(y), int(x)
    a, b = y - i, x - j
    upper = grey[i, j] * (1.0 - b) + grey[i, j + 1] * b
    lower = grey[i + 1, j] * (1.0 - b) + grey[i + 1, j + 1] * b
    level: float = upper * (1.0 - a) + lower * a
    return level


@inner_kernel
def track_point(
    before: Floats32, after: Floats32, x: float, y: float, dx: float, dy: float
) -> tuple[float, float, float]:
    """Where the window around a point went on one level, and the mean difference there; -1 where it is lost.

    Source: Lucas and Kanade, IJCAI 1981; Bouguet, Pyramidal implementation, 2001.
    """
    height, width = before.shape
    # Half the window, a pixel for its gradients, and the pixel beside each where it is read between pixels.
    edge = HALF + 1.01
    if not (edge <= x < width - edge - 1 and edge <= y < height - edge - 1):
        return dx, dy, -1.0
    side = 2 * HALF + 1
    window, gx, gy = np.empty((side, side)), np.empty((side, side)), np.empty((side, side))
    # A window without texture would divide by 0.
    xx, xy, yy = 1e-6, 0.0, 1e-6
    for b in range(side):
        for a in range(side):
            u, v = x + a - HALF, y + b - HALF
            window[b, a] = _at(before, u, v)
            gx[b, a] = 0.5 * (_at(before, u + 1, v) - _at(before, u - 1, v))
            gy[b, a] = 0.5 * (_at(before, u, v + 1) - _at(before, u, v - 1))
            xx, xy, yy = xx + gx[b, a] ** 2, xy + gx[b, a] * gy[b, a], yy + gy[b, a] ** 2
    # Of the gradients of the first image alone: the matrix is the same in all rounds.
    whole = xx * yy - xy * xy
    off = -1.0
    for _ in range(_ITERATIONS):
        if not (edge <= x + dx < width - edge - 1 and edge <= y + dy < height - edge - 1):
            return dx, dy, -1.0
        bx, by, off = 0.0, 0.0, 0.0
        for b in range(side):
            for a in range(side):
                left = window[b, a] - _at(after, x + dx + a - HALF, y + dy + b - HALF)
                bx, by, off = bx + left * gx[b, a], by + left * gy[b, a], off + abs(left)
        step_x, step_y = (yy * bx - xy * by) / whole, (xx * by - xy * bx) / whole
        dx, dy = dx + step_x, dy + step_y
        if abs(step_x) + abs(step_y) < _STILL_PX:
            break
    return dx, dy, off / (side * side)


@kernel
def track_points(
    before: Floats32,
    after: Floats32,
    before_2: Floats32,
    after_2: Floats32,
    before_4: Floats32,
    after_4: Floats32,
    points: Floats,
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(n, 2) flow of points in pixels over three levels, and (n,) which were followed well."""
    flow, good = np.zeros(points.shape), np.zeros(len(points), np.bool_)
    for k in range(len(points)):
        x, y = points[k, 0], points[k, 1]
        dx, dy, off = track_point(before_4, after_4, x / 4, y / 4, 0.0, 0.0)
        # Lost on a coarse level, where more points are near the border: the finer one begins without a guess.
        if off < 0:
            dx, dy = 0.0, 0.0
        dx, dy, off = track_point(before_2, after_2, x / 2, y / 2, 2 * dx, 2 * dy)
        if off < 0:
            dx, dy = 0.0, 0.0
        dx, dy, off = track_point(before, after, x, y, 2 * dx, 2 * dy)
        flow[k, 0], flow[k, 1] = dx, dy
        good[k] = 0.0 <= off < _WORST
    return flow, good
