"""Kernel for how uneven surfaces are."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inline_kernel, kernel


@kernel
def unevenness(
    depth: Any, instance: Any, view: Any, whose: Any, noise: Any, offset: Any, strength: float, factor: Any
) -> None:
    """Factor of the light of every pixel: noise that keeps to the surface it lies on.

    Args:
        depth: (h, w) f32 metres along the axis, inf for the sky.
        instance: (h, w) i32.
        view: (16,) f64 rotation from the camera to the world by rows, its place, focal lengths and the middle
            in pixels.
        whose: (n, 4) f64 x, y of each instance, and cosine and sine of its heading; row 0 is of what does not
            move.
        noise: (256, 256) f32.
        offset: (2,) f64 where the noise begins.
        strength: of it; 0 for none.
        factor: (h, w) f32, filled.
    """
    for i in range(depth.shape[0]):
        for j in range(depth.shape[1]):
            far = float(depth[i, j])
            factor[i, j] = 1.0
            # The sky is at infinity, where there is no surface.
            if not far < 1e9:
                continue
            right, down = (j + 0.5 - view[14]) / view[12] * far, (i + 0.5 - view[15]) / view[13] * far
            x = view[0] * right + view[1] * down + view[2] * far + view[9]
            y = view[3] * right + view[4] * down + view[5] * far + view[10]
            z = view[6] * right + view[7] * down + view[8] * far + view[11]
            own = whose[instance[i, j]]
            x, y = x - own[0], y - own[1]
            x, y = x * own[2] + y * own[3], y * own[2] - x * own[3]
            # In two directions that no wall, and no ground, stands square to.
            along, across = x + 0.35 * y + 0.62 * z, y - 0.4 * x + 0.77 * z
            found, pixel_m = 0.0, far / view[12]
            for size, share in ((0.12, 0.9), (0.7, 1.1)):
                # What is finer than a pixel is grey.
                seen = min(1.0, max(0.0, 1.5 - pixel_m / size))
                if seen > 0.0:
                    level = _between(noise, along / size + offset[0], across / size + offset[1])
                    found += share * seen * (level - 0.5)
            mine = strength * (0.45 if instance[i, j] > 0 else 1.0)
            # An exponential: dark and light are as likely by the same factor, and no light becomes negative.
            factor[i, j] = np.exp(2.0 * mine * found)


@inline_kernel
def _between(noise: Any, u: float, v: float) -> float:
    """Noise at a place, between four cells of a field that goes on and on."""
    row, column = int(np.floor(u)), int(np.floor(v))
    a, b = u - row, v - column
    # The field has 256 cells a side, so that a mask of bits wraps it, for negative places too.
    low = noise[row & 255, column & 255] * (1.0 - b) + noise[row & 255, (column + 1) & 255] * b
    high = noise[(row + 1) & 255, column & 255] * (1.0 - b) + noise[(row + 1) & 255, (column + 1) & 255] * b
    return float(low + (high - low) * a)
