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
        if prepared(flat, pose, lens, size, work) != 0:
            for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
                start, end = span(work, y, size[1])
                mask[y, start:end] = 1


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
        for half in range(2):
            for k in range(3):
                # Two triangles of a rectangle that is a little larger than the thing.
                corner = (k + 2 * half) % 4
                along = (blob[4] + 0.5) * (1.0 if corner == 0 or corner == 3 else -1.0)
                aside = (blob[5] + 0.5) * (1.0 if corner < 2 else -1.0)
                flat[k, 0] = blob[0] + along * blob[2] - aside * blob[3]
                flat[k, 1] = blob[1] + along * blob[3] + aside * blob[2]
                flat[k, 2] = blob[6]
            if prepared(flat, pose, view.lens, size, work) != 0:
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
