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
def footprints_of(corners: Any, instance: Any, sums: Any, found: Any) -> None:
    """Rectangles around instances, turned along the longer axis of where their corners lie.

    Args:
        corners: (t, 3, 3) f32 in the world.
        instance: (t,) i32, those of 0 are left out.
        sums: (n, 10) f64 of zeros, room to add up.
        found: (n, 7) f64 of zeros; row i becomes that of instance i: x and y of the middle, the unit vector
            of the axis, half the length and width, and the lowest height; zeros for those without triangles.
    """
    for t in range(len(corners)):
        row = sums[instance[t]]
        for k in range(3 if instance[t] > 0 else 0):
            x, y, z = corners[t, k, 0], corners[t, k, 1], corners[t, k, 2]
            row[9] = z if row[0] == 0.0 else min(row[9], z)
            row[0], row[1], row[2] = row[0] + 1.0, row[1] + x, row[2] + y
    for t in range(len(corners)):
        row = sums[instance[t]]
        for k in range(3 if instance[t] > 0 else 0):
            x, y = corners[t, k, 0] - row[1] / row[0], corners[t, k, 1] - row[2] / row[0]
            row[3], row[4], row[5] = row[3] + x * x, row[4] + y * y, row[5] + x * y
    for i in range(len(sums)):
        row = sums[i]
        if row[0] > 0.0:
            turn = 0.5 * np.arctan2(2.0 * row[5], row[3] - row[4])
            found[i, 2], found[i, 3] = np.cos(turn), np.sin(turn)
            row[1], row[2] = row[1] / row[0], row[2] / row[0]
            row[5], row[6], row[7], row[8] = np.inf, -np.inf, np.inf, -np.inf
    for t in range(len(corners)):
        row, c, s = sums[instance[t]], found[instance[t], 2], found[instance[t], 3]
        for k in range(3 if instance[t] > 0 else 0):
            x, y = corners[t, k, 0] - row[1], corners[t, k, 1] - row[2]
            along, aside = x * c + y * s, y * c - x * s
            row[5], row[6], row[7], row[8] = (
                min(row[5], along), max(row[6], along), min(row[7], aside), max(row[8], aside)
            )  # fmt: skip
    for i in range(len(sums)):
        row, c, s = sums[i], found[i, 2], found[i, 3]
        if row[0] > 0.0:
            shift, lift = 0.5 * (row[5] + row[6]), 0.5 * (row[7] + row[8])
            found[i, 0], found[i, 1] = row[1] + shift * c - lift * s, row[2] + shift * s + lift * c
            found[i, 4], found[i, 5], found[i, 6] = 0.5 * (row[6] - row[5]), 0.5 * (row[8] - row[7]), row[9]


@kernel
def soft_shadows(found: Any, edges: Any, which: Any, depth_of: Any, dark: float, view: Any,
                 contact: Any) -> None:  # fmt: skip
    """Darken the ground below things.

    Args:
        found: (n, 7) f64 of `footprints_of`.
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
