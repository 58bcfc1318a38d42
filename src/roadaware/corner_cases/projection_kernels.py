"""Compiled projection of clusters to the image."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inline_kernel, kernel


@kernel
def compute_bounds(points: Any, found: Any, slot: Any, heights: Any, plane: Any, standing: float, pose: Any,
           lens: Any, size: Any, near: float, edges: Any, counts: Any) -> None:  # fmt: skip
    """Bounds in pixels of the returns of each cluster.

    Args:
        points: (n, 3) f32 metres in the LiDAR's frame.
        found: (n,) i32 cluster of each return, 0 for none.
        slot: (k + 1,) i32 row of a cluster's box; -1 for clusters without.
        heights: (n,) f32 metres above the ground; empty where there is none.
        plane: (4,) f64 normal and offset of the ground.
        standing: returns lower than this above the ground stand on it.
        pose: (3, 4) f64 from the LiDAR to the camera.
        lens: (3, 3) f64 camera matrix.
        size: (2,) f64 width and height of the image in pixels.
        near: metres before the camera from which on something is seen.
        edges: (m, 4) f64 of inf, inf, -inf, -inf; become x1, y1, x2, y2 in pixels, inside the image.
        counts: (m, 2) i32 of zeros; become the returns in the image, and those behind the camera.
    """
    spot = np.empty(3)
    for i in range(len(found)):
        at = slot[found[i]]
        if at < 0:
            continue
        x, y, z = np.float64(points[i, 0]), np.float64(points[i, 1]), np.float64(points[i, 2])
        _seen(x, y, z, pose, lens, spot)
        if spot[2] < near:
            counts[at, 1] += 1
            continue
        if 0.0 <= spot[0] < size[0] and 0.0 <= spot[1] < size[1]:
            counts[at, 0] += 1
        _reach(edges, at, spot, size)
        # The foot of the return on the plane counts as well: removing the ground has cut it off.
        if len(heights) and 0.0 < heights[i] < standing:
            high = np.float64(heights[i])
            _seen(x - plane[0] * high, y - plane[1] * high, z - plane[2] * high, pose, lens, spot)
            if spot[2] >= near:
                _reach(edges, at, spot, size)


@kernel
def count_class_returns(points: Any, found: Any, slot: Any, pose: Any, lens: Any, near: float, classes: Any, wanted: Any,
           counts: Any) -> None:  # fmt: skip
    """Count the returns of each cluster that lie in the image, and on pixels of some classes.

    Args:
        points: (n, 3) f32 metres in the LiDAR's frame.
        found: (n,) i32 cluster of each return, 0 for none.
        slot: (k + 1,) i32 row of a cluster's box; -1 for clusters without.
        pose: (3, 4) f64 from the LiDAR to the camera.
        lens: (3, 3) f64 camera matrix.
        near: metres before the camera from which on something is seen.
        classes: (H, W) whole numbers.
        wanted: (c,) bool of the classes.
        counts: (m, 2) i64 of zeros; become the returns on such pixels, and all in the image.
    """
    spot = np.empty(3)
    height, width = classes.shape
    for i in range(len(found)):
        at = slot[found[i]]
        if at < 0:
            continue
        _seen(np.float64(points[i, 0]), np.float64(points[i, 1]), np.float64(points[i, 2]), pose, lens, spot)
        if spot[2] >= near and 0.0 <= spot[0] < width and 0.0 <= spot[1] < height:
            counts[at, 1] += 1
            code = classes[int(spot[1]), int(spot[0])]
            # Codes without a name may lie beyond the table, or below 0: they are no background.
            counts[at, 0] += 0 <= code < len(wanted) and wanted[code]


@inline_kernel
def _seen(x: float, y: float, z: float, pose: Any, lens: Any, spot: Any) -> None:
    """Pixel and depth of a place; the pixel means nothing behind the camera."""
    a = pose[0, 0] * x + pose[0, 1] * y + pose[0, 2] * z + pose[0, 3]
    b = pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z + pose[1, 3]
    c = pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z + pose[2, 3]
    # lens[0, 1] is the skew; Camera has checked that the other places are 0 and 1.
    spot[0] = (lens[0, 0] * a + lens[0, 1] * b) / c + lens[0, 2]
    spot[1] = lens[1, 1] * b / c + lens[1, 2]
    spot[2] = c


@inline_kernel
def _reach(edges: Any, at: int, spot: Any, size: Any) -> None:
    """Stretch a box to a pixel; one beside the image stretches it to the border in that direction only."""
    across, down = 0.0 <= spot[0] < size[0], 0.0 <= spot[1] < size[1]
    if down:
        edges[at, 0] = min(edges[at, 0], max(spot[0], 0.0))
        edges[at, 2] = max(edges[at, 2], min(spot[0], size[0]))
    if across:
        edges[at, 1] = min(edges[at, 1], max(spot[1], 0.0))
        edges[at, 3] = max(edges[at, 3], min(spot[1], size[1]))
