"""Kernels for what lies between scene and image: wet mirrors, bloom, glare, rain, snow, the sensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inline_kernel, inner_kernel, kernel
from roadaware.simulator.shading_kernels import sample_smooth_noise

SHRINK = 4
"""By how much the image is smaller that bloom is made of."""
# Depths, over that of the wet ground, at which a mirrored ray is compared with what stands there.
# Each is about 1.18 times the one before: steps that grow with depth, as pixels of the road do.
_STEPS = np.array((1.19, 1.41, 1.67, 1.97, 2.31, 2.71, 3.17, 3.71, 4.33))
_RISES = 2.0 / _STEPS - 1.0


@kernel
def add_pools(lamps: Any, pools: Any) -> None:
    """Light of lamps on the ground.

    Args:
        lamps: (n, 7) f64 column, row, height and reach in cells, and colour.
        pools: (m, m, 3) f32, changed.
    """
    n = len(pools)
    for lamp in lamps:
        u, v, square_height, reach = lamp[0], lamp[1], lamp[2] * lamp[2], lamp[3]
        for i in range(max(0, int(v - reach)), min(n, int(v + reach) + 1)):
            for j in range(max(0, int(u - reach)), min(n, int(u + reach) + 1)):
                square = (i + 0.5 - v) ** 2 + (j + 0.5 - u) ** 2
                if square >= reach * reach:
                    continue
                fall = square_height / (square_height + square)
                light = (1.0 - square / (reach * reach)) * fall * np.sqrt(fall)
                for k in range(3):
                    pools[i, j, k] += light * lamp[4 + k]


@kernel
def add_wet_reflections(light: Any, seen: Any, tints: Any, view: Any, air: Any, noise: Any) -> None:
    """Let wet ground mirror what stands behind it, found by walking along the mirrored ray in the image.

    Args:
        light: (h, w, 3) f32, changed.
        seen: inverse (h, w), face (h, w), planes (t, 12).
        tints: (t, 12) f32.
        view: turn, eye, lens.
        air: light and weather.
        noise: (256, 256) f32.
    """
    turn, lens, eye = view.turn, view.lens, view.eye
    face, inverse = seen.face, seen.inverse
    rows, columns = face.shape
    horizon = lens[3] + lens[1] * turn[2, 2]
    # From below: what a pixel mirrors lies above it, and must not hold a reflection yet.
    for i in range(rows - 1, -1, -1):
        until, wet, ripple = 0, 0.0, 0.0
        for j in range(columns):
            t = face[i, j]
            if t < 0 or tints[t, 11] == 0.0:
                continue
            a, b = (j + 0.5 - lens[2]) / lens[0], (i + 0.5 - lens[3]) / lens[1]
            drop = turn[2, 0] * a + turn[2, 1] * b + turn[2, 2]
            depth = 1.0 / inverse[i, j]
            ground = eye[2] + drop * depth
            if drop >= -1e-3 or ground > 0.5:
                continue
            if j >= until:
                # Ponds and ripples are wide: one look at them does for two pixels.
                until = j + 2
                x = eye[0] + (turn[0, 0] * a + turn[0, 1] * b + turn[0, 2]) * depth
                y = eye[1] + (turn[1, 0] * a + turn[1, 1] * b + turn[1, 2]) * depth
                pond = sample_smooth_noise(noise, x * 0.55, y * 0.55) + 0.4 * sample_smooth_noise(
                    noise, x * 2.1, y * 2.1
                )
                wet = air.wet * min(1.0, max(0.35, 2.4 * pond - 0.9))
                ripple = (sample_smooth_noise(noise, x * 6.0, y * 6.0) - 0.5) * 0.012 * columns
            edge = 1.0 + drop / np.sqrt(a * a + b * b + 1.0)
            share = wet * (0.03 + 0.5 * edge**4)
            _mix_mirrored(light, i, j, depth, share, ripple, inverse, horizon)


@inner_kernel
def _mix_mirrored(light: Any, i: int, j: int, depth: float, share: float, ripple: float, inverse: Any,
                  horizon: float) -> None:  # fmt: skip
    """Mix in what the mirrored ray meets first, in growing steps of depth."""
    rows, columns = inverse.shape
    below = i + 0.5 - horizon
    side = min(columns - 1, max(0, int(j + ripple)))
    row = 0
    for step in range(len(_STEPS)):
        row = int(horizon + below * _RISES[step])
        if row < 0 or row >= rows:
            break
        hit = inverse[row, side] * depth * _STEPS[step]
        if 1.0 / 1.12 < hit < 1.0 / 0.72:
            break
    row = min(rows - 1, max(0, row))
    for k in range(3):
        # A lamp is far brighter than white: without the bound one of its pixels would draw a streak.
        light[i, j, k] += share * (min(6.0, light[row, side, k]) - light[i, j, k])


@kernel
def extract_highlights(light: Any, small: Any) -> None:
    """What of the light is more than the sensor holds, in a smaller image.

    Args:
        light: (h, w, 3) f32.
        small: (h / 4, w / 4, 3) f32, filled; rows and columns that are left over belong to no cell.
    """
    for i in range(small.shape[0]):
        for j in range(small.shape[1]):
            red, green, blue = 0.0, 0.0, 0.0
            for p in range(SHRINK):
                for q in range(SHRINK):
                    y, x = i * SHRINK + p, j * SHRINK + q
                    r, g, b = light[y, x, 0], light[y, x, 1], light[y, x, 2]
                    most = max(r, g, b)
                    # All three colours by one factor, so that bloom keeps the hue of its lamp.
                    if most > 0.85:
                        share = min(6.0, most - 0.85) / (most * SHRINK * SHRINK)
                        red, green, blue = (
                            red + share * r, green + share * g, blue + share * b
                        )  # fmt: skip
            small[i, j, 0], small[i, j, 1], small[i, j, 2] = red, green, blue


@kernel
def add_glints(light: Any, glints: Any, seen: Any, tints: Any) -> None:
    """Draw the upright glints of lamps on wet ground.

    Args:
        light: (h, w, 3) f32, changed.
        glints: (n, 8) f64 x, y, half width, half height in pixels, 1 / depth, colour.
        seen: inverse (h, w) f32, face (h, w) i32.
        tints: (t, 12) f32.
    """
    rows, columns = seen.face.shape
    for s in glints:
        for i in range(max(0, int(s[1] - 2.0 * s[3])), min(rows, int(s[1] + 2.0 * s[3]) + 1)):
            down = (i + 0.5 - s[1]) / s[3]
            for j in range(max(0, int(s[0] - 2.5 * s[2])), min(columns, int(s[0] + 2.5 * s[2]) + 1)):
                t = seen.face[i, j]
                if t >= 0 and tints[t, 11] > 0.0 and seen.inverse[i, j] > s[4]:
                    across = (j + 0.5 - s[0]) / s[2]
                    power = np.exp(-1.2 * across * across - 1.6 * down * down)
                    for k in range(3):
                        light[i, j, k] += power * s[5 + k]


@kernel
def add_drops(light: Any, drops: Any, inverse: Any, colour: Any) -> None:
    """Draw streaks of rain or flakes of snow that are nearer than the scene.

    Args:
        light: (h, w, 3) f32, changed.
        drops: (n, 6) f64 x, y, how far it slants, half width, half height in pixels, and 1 / depth.
        inverse: (h, w) f32.
        colour: rgb and opacity.
    """
    rows, columns = inverse.shape
    for drop in drops:
        for i in range(max(0, int(drop[1] - drop[4])), min(rows, int(drop[1] + drop[4]) + 1)):
            down = (i + 0.5 - drop[1]) / drop[4]
            middle = drop[0] + drop[2] * down
            # As wide as a circle for flakes, whose width is their height; a line for streaks.
            wide = drop[3] * np.sqrt(max(0.0, 1.0 - down * down))
            for j in range(max(0, int(middle - wide)), min(columns, int(middle + wide) + 1)):
                if inverse[i, j] < drop[5]:
                    share = colour[3] * max(0.0, min(1.0, wide - abs(j + 0.5 - middle) + 0.5))
                    for k in range(3):
                        light[i, j, k] += share * (colour[k] - light[i, j, k])


@kernel
def apply_exposure(
    light: Any, small: Any, exposure: float, glare: Any, tones: Any, grain: float, seed: int, rgb: Any
) -> None:
    """Light to grey levels, with glare of the sun in the lens and the noise of the sensor.

    Args:
        light: (h, w, 3) f32.
        small: (h / 4, w / 4, 3) f32 light to add, `SHRINK` times smaller.
        exposure: factor.
        glare: x, y in pixels, radius in pixels, and colour; no colour for none.
        tones: (n,) f32 grey levels over light from 0 to 4.
        grain: spread of the noise in grey levels.
        seed: of the noise.
        rgb: (h, w, 3) u8, filled.
    """
    last, wide = len(tones) - 1, light.shape[1]
    steps = exposure * last / 4.0
    lit = glare[3] + glare[4] + glare[5] > 0.0
    veil = 0.0
    cells, shares, bloom = np.empty(wide, np.int64), np.empty(wide), np.empty((small.shape[1], 3))
    for j in range(wide):
        cells[j], shares[j] = _between(j, small.shape[1])
    for i in range(light.shape[0]):
        y, a = _between(i, small.shape[0])
        for x in range(small.shape[1]):
            for k in range(3):
                bloom[x, k] = small[y, x, k] * (1.0 - a) + small[y + 1, x, k] * a
        for j in range(wide):
            if lit:
                away = np.hypot(j - glare[0], i - glare[1]) / glare[2]
                veil = 0.16 / (0.08 + away * away) + 0.28 * np.exp(-2.5 * away)
            # A hash of the pixel (after Wang), whose four bytes add up to about a bell curve.
            # By pixel rather than from a generator: no state, and the same
            # bytes in whatever order pixels are filled.
            h = (seed ^ ((i * wide + j) * 2654435761)) & 0xFFFFFFFF
            h = ((h ^ 61) ^ (h >> 16)) * 9 & 0xFFFFFFFF
            h = (h ^ (h >> 4)) * 668265261 & 0xFFFFFFFF
            h = h ^ (h >> 15)
            # 510 and 147.8 are mean and deviation of the sum of four bytes; 0.5 rounds what is cut below.
            noise = grain * ((h & 255) + ((h >> 8) & 255) + ((h >> 16) & 255) + (h >> 24) - 510) / 147.8 + 0.5
            x, b = cells[j], shares[j]
            for k in range(3):
                level = (
                    light[i, j, k] + veil * glare[3 + k] + bloom[x, k] + (bloom[x + 1, k] - bloom[x, k]) * b
                )
                tone = tones[min(last, int(max(0.0, level * steps) + 0.5))]
                # Each colour has a little noise of its own.
                tint = 0.004 * grain * (((h >> (8 * k)) & 255) - 127.5)
                rgb[i, j, k] = np.uint8(min(255.0, max(0.0, tone + noise + tint)))


@inline_kernel
def _between(at: int, cells: int) -> tuple[int, float]:
    """The cell of the smaller image before a pixel, and how far the pixel is on its way to the next."""
    place = (at + 0.5) / SHRINK - 0.5
    before = min(max(int(place), 0), cells - 2)
    return before, min(1.0, max(place - before, 0.0))
