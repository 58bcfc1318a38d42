"""Kernels that measure how much of each instance a camera would see if nothing stood before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import kernel
from roadaware.simulator.raster_kernels import ROWS, WORK, compute_row_span, prepare_triangle

NEAR_M = 0.2
_SCALE = 11


@kernel
def measure(corners: Any, group: Any, pose: Any, lens: Any, found: Any) -> None:
    """The box of each group of triangles in the image's plane.

    Args:
        corners: (t, 3, 3) f32 in the world.
        group: (t,) i64 from 0.
        pose: (3, 4) f64 from the world to the camera.
        lens: (4,) f64 focal lengths and the middle, pixels.
        found: (n, 9) f64; row i becomes x1, y1, x2, y2 of the part before the camera, which may reach out of
            the image. Rows come as inf, inf, -inf, -inf, inf, inf, -inf, -inf, 0.
    """
    local = np.empty((3, 3))
    for t in range(len(corners)):
        row = found[group[t]]
        for k in range(3):
            for axis in range(3):
                local[k, axis] = pose[axis, 3]
                for other in range(3):
                    local[k, axis] += pose[axis, other] * corners[t, k, other]
        for k in range(3):
            a, b = local[k], local[(k + 1) % 3]
            if a[2] >= NEAR_M:
                _take(a[0], a[1], a[2], lens, row)
            if (a[2] >= NEAR_M) != (b[2] >= NEAR_M):
                # An edge through the near plane is cut there; its far end alone would make the box too small.
                share = (NEAR_M - a[2]) / (b[2] - a[2])
                _take(a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]), NEAR_M, lens, row)


@kernel
def count(edges: Any, group: Any, mark: Any, found: Any) -> None:
    """How many pixels each group of triangles covers, and their box.

    Args:
        edges: (k, 12) f64 of `edges_of`: fronts alone are drawn, so fronts alone are counted.
        group: (k,) i64 from 0, ascending.
        mark: (h, w) i32 of -1; room to note what was counted.
        found: (n, 9) f64 of `measure`, of which the rest becomes x1, y1, x2, y2 of pixels and their number.
    """
    for n in range(len(edges)):
        work, row = edges[n], found[group[n]]
        for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
            start, end = compute_row_span(work, y, mark.shape[1])
            if start < end:
                row[4], row[5] = min(row[4], start), min(row[5], y)
                row[6], row[7] = max(row[6], end), max(row[7], y + 1)
            for x in range(start, end):
                if mark[y, x] != group[n]:
                    mark[y, x] = group[n]
                    row[8] += 1


@kernel
def _take(x: float, y: float, z: float, lens: Any, row: Any) -> None:
    """Widen a box by a point."""
    across, down = lens[0] * x / z + lens[2], lens[1] * y / z + lens[3]
    row[0], row[1] = min(row[0], across), min(row[1], down)
    row[2], row[3] = max(row[2], across), max(row[3], down)


@kernel
def stack(corners: Any, instance: Any, pose: Any, lens: Any, inverse: Any, mask: Any) -> None:
    """Write for every pixel whose triangle is nearest.

    Args:
        corners: (t, 3, 3) f32 in the world.
        instance: (t,) i32.
        pose: (3, 4) f64 from the world to the camera.
        lens: (4,) f64.
        inverse: (h, w) f32 of zeros; becomes 1 / depth.
        mask: (h, w) i32 of zeros; becomes the instance.
    """
    work = np.empty(WORK)
    size = np.array(mask.shape)
    for t in range(len(corners)):
        if prepare_triangle(corners[t], pose, lens, size, work) <= 0:
            continue
        a, b = (work[0] + work[3] + work[6]) * work[_SCALE], (work[1] + work[4] + work[7]) * work[_SCALE]
        c = (work[2] + work[5] + work[8]) * work[_SCALE]
        for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
            start, end = compute_row_span(work, y, size[1])
            for x in range(start, end):
                near = a * (x + 0.5) + b * (y + 0.5) + c
                # 1 / depth is linear in the image, depth is not.
                if inverse[y, x] < near < 1.0 / NEAR_M:
                    inverse[y, x] = near
                    mask[y, x] = instance[t]
