"""Kernels for shadows on the ground: those that the sun casts, and soft ones below whatever stands there."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inlined, kernel
from roadaware.scenes.simulator.raster_kernels import ROWS, WORK, prepared, span


@kernel
def cast_shadows(corners: Any, casts: Any, sun: Any, pose: Any, lens: Any, mask: Any) -> None:
    """Mark pixels that would lie in shadow if they showed the ground.

    Args:
        corners: (t, 3, 3) f32 in the world.
        casts: (k,) i64 triangles that cast shadows.
        sun: unit vector towards the sun.
        pose: (3, 4) f64 from the world to the camera.
        lens: (4,) f64.
        mask: (h, w) u8 of zeros; becomes 1 in shadow.
    """
    work = np.empty(WORK)
    flat = np.empty((3, 3), dtype=np.float32)
    size = np.array(mask.shape)
    for t in casts:
        for k in range(3):
            height = max(corners[t, k, 2], 0.0)
            flat[k, 0] = corners[t, k, 0] - height * sun[0] / sun[2]
            flat[k, 1] = corners[t, k, 1] - height * sun[1] / sun[2]
            flat[k, 2] = 0.0
        if prepared(flat, pose, lens, size, True, work):
            for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
                start, end = span(work, y, size[1])
                mask[y, start:end] = 1


@kernel
def footprints(corners: Any, instance: Any, found: Any) -> None:
    """Rectangles around what is low of every instance, turned along its longer axis.

    Args:
        corners: (t, 3, 3) f32 in the world.
        instance: (t,) i32.
        found: (n, 7) f64 of zeros; row i becomes, of the value i + 1: x and y of the middle, the unit vector
            of the axis, half the length, half the width, and the height of the lowest point; length 0 where
            there is none.
    """
    sums = np.zeros((len(found), 7))
    for t in range(len(instance)):
        i = instance[t] - 1
        if 0 <= i < len(found):
            for k in range(3):
                x, y = np.float64(corners[t, k, 0]), np.float64(corners[t, k, 1])
                if sums[i, 0] == 0.0:
                    found[i, 0], found[i, 1], sums[i, 6] = x, y, np.inf
                x, y = x - found[i, 0], y - found[i, 1]
                sums[i, 0] += 1.0
                sums[i, 1] += x
                sums[i, 2] += y
                sums[i, 3] += x * x
                sums[i, 4] += y * y
                sums[i, 5] += x * y
                sums[i, 6] = min(sums[i, 6], corners[t, k, 2])
    # How far it reaches forward, back, left and right of its first corner.
    extent = np.full((len(found), 4), -np.inf)
    for i in range(len(found)):
        n = max(sums[i, 0], 1.0)
        x, y = sums[i, 1] / n, sums[i, 2] / n
        turn = 0.5 * np.arctan2(
            2.0 * (sums[i, 5] / n - x * y), sums[i, 3] / n - x * x - sums[i, 4] / n + y * y
        )
        found[i, 2], found[i, 3], found[i, 6] = np.cos(turn), np.sin(turn), sums[i, 6]
    for t in range(len(instance)):
        i = instance[t] - 1
        if 0 <= i < len(found):
            for k in range(3):
                x, y = corners[t, k, 0] - found[i, 0], corners[t, k, 1] - found[i, 1]
                along, aside = x * found[i, 2] + y * found[i, 3], y * found[i, 2] - x * found[i, 3]
                extent[i, 0], extent[i, 1] = max(extent[i, 0], along), max(extent[i, 1], -along)
                extent[i, 2], extent[i, 3] = max(extent[i, 2], aside), max(extent[i, 3], -aside)
    for i in range(len(found)):
        if sums[i, 0] > 0.0:
            along, aside = 0.5 * (extent[i, 0] - extent[i, 1]), 0.5 * (extent[i, 2] - extent[i, 3])
            found[i, 0] += along * found[i, 2] - aside * found[i, 3]
            found[i, 1] += along * found[i, 3] + aside * found[i, 2]
            found[i, 4], found[i, 5] = (
                0.5 * (extent[i, 0] + extent[i, 1]),
                0.5 * (extent[i, 2] + extent[i, 3]),
            )


@kernel
def soft_shadows(found: Any, depth_of: Any, dark: float, view: Any, pose: Any, contact: Any) -> None:
    """Darken the ground below things.

    Args:
        found: (n, 7) f64 of `footprints`.
        depth_of: (h, w) f32 1 / depth of what is seen.
        dark: how much, 0 to 1.
        view: turn (3, 3), eye (3,), lens (4,).
        pose: (3, 4) f64 from the world to the camera.
        contact: (h, w) f32 of ones; becomes the share of light that is left.
    """
    work = np.empty(WORK)
    flat = np.empty((3, 3), dtype=np.float32)
    size = np.array(contact.shape)
    for blob in found:
        if blob[4] <= 0.0:
            continue
        for half in range(2):
            for k in range(3):
                # Two triangles of a rectangle that is a little larger than the thing.
                corner = (k + 2 * half) % 4
                along = (blob[4] + 0.5) * (1.0 if corner == 0 or corner == 3 else -1.0)
                aside = (blob[5] + 0.5) * (1.0 if corner < 2 else -1.0)
                flat[k, 0] = blob[0] + along * blob[2] - aside * blob[3]
                flat[k, 1] = blob[1] + along * blob[3] + aside * blob[2]
                flat[k, 2] = blob[6]
            if prepared(flat, pose, view.lens, size, True, work):
                for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
                    start, end = span(work, y, size[1])
                    for x in range(start, end):
                        left = 1.0 - dark * _shade(blob, x, y, depth_of[y, x], view)
                        contact[y, x] = min(contact[y, x], left)


@inlined
def _shade(blob: Any, j: int, i: int, inverse: float, view: Any) -> float:
    """How deep in the soft shadow of a thing the surface at a pixel lies."""
    if inverse <= 0.0:
        return 0.0
    turn, lens, eye = view.turn, view.lens, view.eye
    a, b = (j + 0.5 - lens[2]) / lens[0], (i + 0.5 - lens[3]) / lens[1]
    x = eye[0] + (turn[0, 0] * a + turn[0, 1] * b + turn[0, 2]) / inverse - blob[0]
    y = eye[1] + (turn[1, 0] * a + turn[1, 1] * b + turn[1, 2]) / inverse - blob[1]
    along, aside = abs(x * blob[2] + y * blob[3]), abs(y * blob[2] - x * blob[3])
    away = np.hypot(max(0.0, along - blob[4] + 0.15), max(0.0, aside - blob[5] + 0.15))
    return float(max(0.0, 1.0 - away / 0.55) ** 2)
