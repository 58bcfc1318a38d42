"""Kernels for shadows on the ground: those that the sun casts, and soft ones below whatever stands there."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inlined, kernel
from roadaware.scenes.simulator.raster_kernels import ROWS, span


@kernel
def flattened(corners: Any, casts: Any, sun: Any, flat: Any) -> int:
    """Triangles along the sun's rays on the ground, one after the other; returns how many there are.

    Of closed things the side that is turned to the sun casts the whole shadow, so the other is left out.

    Args:
        corners: (t, 3, 3) f32 in the world.
        casts: (t,) bool which cast shadows.
        sun: unit vector towards the sun.
        flat: (t, 3, 3) f32 whose first rows are filled.
    """
    n, east, north = 0, sun[0] / sun[2], sun[1] / sun[2]
    for t in range(len(corners)):
        if not casts[t]:
            continue
        for k in range(3):
            height = max(corners[t, k, 2], 0.0)
            flat[n, k, 0] = corners[t, k, 0] - height * east
            flat[n, k, 1] = corners[t, k, 1] - height * north
            flat[n, k, 2] = 0.0
        # What is turned to the sun stays counter-clockwise seen from above.
        across = (flat[n, 1, 0] - flat[n, 0, 0]) * (flat[n, 2, 1] - flat[n, 0, 1])
        if across > (flat[n, 1, 1] - flat[n, 0, 1]) * (flat[n, 2, 0] - flat[n, 0, 0]):
            n += 1
    return n


@kernel
def darken(edges: Any, mask: Any) -> None:
    """Mark pixels that would lie in shadow if they showed the ground.

    Args:
        edges: (k, 12) f64 of triangles on the ground.
        mask: (h, w) u8 of zeros; becomes 1 in shadow.
    """
    for work in edges:
        for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
            start, end = span(work, y, mask.shape[1])
            for x in range(start, end):
                mask[y, x] = 1


@kernel
def soft_shadows(found: Any, edges: Any, which: Any, depth_of: Any, dark: float, view: Any,
                 contact: Any) -> None:  # fmt: skip
    """Darken the ground below things.

    Args:
        found: (n, 7) f64 of `footprints`.
        edges: (k, 12) f64 of triangles, two of each rectangle, that are a little larger than it.
        which: (k,) i32 numbers of the triangles.
        depth_of: (h, w) f32 1 / depth of what is seen.
        dark: how much, 0 to 1.
        view: turn (3, 3), eye (3,), lens (4,).
        contact: (h, w) f32 of ones; becomes the share of light that is left.
    """
    turn, lens, eye = view.turn, view.lens, view.eye
    for n in range(len(edges)):
        blob, work = found[which[n] // 2], edges[n]
        for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
            start, end = span(work, y, contact.shape[1])
            for x in range(start, end):
                left = 1.0 - dark * _shade(blob, x, y, depth_of[y, x], turn, lens, eye)
                contact[y, x] = min(contact[y, x], left)


@inlined
def _shade(blob: Any, j: int, i: int, inverse: float, turn: Any, lens: Any, eye: Any) -> float:
    """How deep in the soft shadow of a thing the surface at a pixel lies."""
    if inverse <= 0.0:
        return 0.0
    a, b = (j + 0.5 - lens[2]) / lens[0], (i + 0.5 - lens[3]) / lens[1]
    x = eye[0] + (turn[0, 0] * a + turn[0, 1] * b + turn[0, 2]) / inverse - blob[0]
    y = eye[1] + (turn[1, 0] * a + turn[1, 1] * b + turn[1, 2]) / inverse - blob[1]
    along, aside = abs(x * blob[2] + y * blob[3]), abs(y * blob[2] - x * blob[3])
    away = np.hypot(max(0.0, along - blob[4] + 0.15), max(0.0, aside - blob[5] + 0.15))
    return float(max(0.0, 1.0 - away / 0.55) ** 2)
