"""Kernels for the patterns of surfaces and of the sky, as functions of places on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inlined, kernel

MATT, GLOSSY, GLASS, ASPHALT, PAVING, GRASS, BRICK, FOLIAGE, MARKING, WINDOWS, CLOTH, LAMP = range(12)


@kernel
def grain_of(noise: Any, u: float, v: float) -> float:
    """Noise from 0 to 1, one value per unit square."""
    return float(noise[int(np.floor(v)) & 255, int(np.floor(u)) & 255])


@kernel
def waves_of(noise: Any, u: float, v: float) -> float:
    """Smooth noise from 0 to 1 whose bumps are about a unit wide."""
    i, j = int(np.floor(v)), int(np.floor(u))
    a, b = v - i, u - j
    i0, i1, j0, j1 = i & 255, (i + 1) & 255, j & 255, (j + 1) & 255
    top = noise[i0, j0] * (1.0 - b) + noise[i0, j1] * b
    return float(top * (1.0 - a) + (noise[i1, j0] * (1.0 - b) + noise[i1, j1] * b) * a)


@kernel
def _seen(cell: float, foot: float) -> float:
    """How much of a pattern with cells of a size is left where a pixel covers `foot` metres."""
    return min(1.0, max(0.0, 1.3 - 0.8 * foot / cell))


@kernel
def _joint(place: float, cell: float, width: float, foot: float) -> float:
    """How much of a pixel is joint between stones."""
    at = place - np.floor(place / cell) * cell
    away = min(at, cell - at)
    half = 0.5 * max(width, foot)
    return float(max(0.0, min(1.0, (half - away) / half + 0.5)) * min(1.0, width / max(foot, 1e-6)))


@kernel
def tone_of(material: int, u: float, v: float, foot: float, noise: Any) -> float:
    """By how much a pattern makes a surface lighter or darker.

    Args:
        material: of the triangle.
        u: metres along the surface.
        v: metres along the surface.
        foot: metres of the surface in a pixel.
        noise: (256, 256) f32.
    """
    if material == ASPHALT:
        if foot > 1.7:
            return 1.0
        worn = waves_of(noise, u * 0.45, v * 0.45) + 0.6 * waves_of(noise, u * 1.7 + 31.0, v * 1.7) - 0.8
        tone = 1.0 + 0.22 * worn * _seen(1.0, foot)
        if foot < 0.04:
            tone += 0.42 * (grain_of(noise, u * 42.0, v * 42.0) - 0.5) * _seen(0.024, foot)
        return float(tone)
    if material == PAVING:
        return _slabs(u, v, foot, noise)
    if material == BRICK:
        return _bricks(u, v, foot, noise)
    if material == GRASS:
        blades = grain_of(noise, u * 16.0, v * 9.0) - 0.5
        return (
            1.0 + 0.8 * blades * _seen(0.08, foot) + 0.5 * (waves_of(noise, u * 0.8, v * 0.8) - 0.5)
        )  # fmt: skip
    if material == FOLIAGE:
        leaves = waves_of(noise, u * 9.0, v * 9.0) - 0.5
        return 1.0 + 1.1 * leaves * _seen(0.12, foot) + 0.9 * (waves_of(noise, u * 2.6, v * 2.6) - 0.5)
    if material == CLOTH:
        if foot > 0.17:
            return 1.0
        folds = waves_of(noise, u * 13.0 + 1.5 * v, v * 3.0) - 0.5
        return 1.0 + 0.4 * folds * _seen(0.1, foot)
    if material == MARKING:
        return 1.0 - 0.35 * _seen(0.1, foot) * max(0.0, waves_of(noise, u * 7.0, v * 7.0) - 0.55)
    if material == MATT:
        return 1.0 + 0.1 * (waves_of(noise, u * 3.0, v * 3.0) - 0.5)
    return 1.0


@inlined
def _slabs(u: float, v: float, foot: float, noise: Any) -> float:
    row = np.floor(v / 0.45)
    shifted = u + 0.3 * (row % 2.0)
    joint = max(_joint(v, 0.45, 0.02, foot), _joint(shifted, 0.6, 0.02, foot))
    slab = grain_of(noise, shifted / 0.6, row) - 0.5
    fine = grain_of(noise, u * 30.0, v * 30.0) - 0.5
    return (1.0 + 0.2 * slab * _seen(0.5, foot) + 0.14 * fine * _seen(0.035, foot)) * (1.0 - 0.5 * joint)


@inlined
def _bricks(u: float, v: float, foot: float, noise: Any) -> float:
    row = np.floor(v / 0.1)
    shifted = u + 0.14 * (row % 2.0)
    joint = max(_joint(v, 0.1, 0.016, foot), _joint(shifted, 0.28, 0.016, foot))
    brick = grain_of(noise, shifted / 0.28, row) - 0.5
    stained = waves_of(noise, u * 0.5, v * 0.3) - 0.5
    return (1.0 + 0.45 * brick * _seen(0.12, foot) + 0.2 * stained) * (1.0 + 0.45 * joint)


@kernel
def pane_of(u: float, v: float, foot: float) -> float:
    """How much of a pixel of a facade is window pane: 0 wall, 1 pane, below 0 the frame around it."""
    across = u / 2.4 - np.floor(u / 2.4)
    up = v / 3.0 - np.floor(v / 3.0)
    # Distances in metres into the opening, which is 1.2 m wide and 1.5 m high.
    inside = min(0.6 - abs(across - 0.5) * 2.4, 0.75 - abs(up - 0.55) * 3.0)
    soft = max(foot, 0.01)
    if inside < 0.09:
        return -float(min(1.0, max(0.0, inside / soft + 0.5)))
    bar = max(0.0, 1.0 - max(abs(across - 0.5) * 2.4, 0.0) / max(0.035, 0.6 * foot)) * min(1.0, 0.07 / soft)
    return float(min(1.0, max(0.0, (inside - 0.09) / soft + 0.5)) * (1.0 - bar))


@kernel
def glow_of(x: float, y: float, z: float, air: Any) -> tuple[float, float, float]:
    """Colour of the open sky in a direction, without clouds, stars or sun.

    Args:
        x: of a unit vector.
        y: of it.
        z: of it, upwards.
        air: light and weather.
    """
    up = max(z, 0.0)
    share = np.sqrt(up)
    near = max(0.0, x * air.sun[0] + y * air.sun[1] + z * air.sun[2])
    warm = near * near * near * near * (1.0 - min(1.0, 1.6 * up)) * (1.0 - 0.4 * share)
    return (
        air.horizon[0] + (air.zenith[0] - air.horizon[0]) * share + air.dawn[0] * warm,
        air.horizon[1] + (air.zenith[1] - air.horizon[1]) * share + air.dawn[1] * warm,
        air.horizon[2] + (air.zenith[2] - air.horizon[2]) * share + air.dawn[2] * warm,
    )


@kernel
def sky_of(x: float, y: float, z: float, air: Any, noise: Any) -> tuple[float, float, float]:
    """Colour of the sky in a direction, with all that is in it.

    Args:
        x: of a unit vector.
        y: of it.
        z: of it, upwards.
        air: light and weather.
        noise: (256, 256) f32.
    """
    r, g, b = glow_of(x, y, z, air)
    up = max(z, 0.0)
    near = max(0.0, x * air.sun[0] + y * air.sun[1] + z * air.sun[2])
    if air.stars > 0.0 and up > 0.06:
        star = grain_of(noise, 420.0 * x / (1.0 + up), 420.0 * y / (1.0 + up))
        if star > 0.9985:
            bright = air.stars * 0.35 * (star - 0.9985) / 0.0015 * min(1.0, up * 4.0)
            r, g, b = r + bright, g + bright, b + bright
    cover = _cloud(x, y, up, air, noise)
    lit = 0.85 + 0.5 * near * near
    r += (air.cloud_rgb[0] * lit - r) * cover
    g += (air.cloud_rgb[1] * lit - g) * cover
    b += (air.cloud_rgb[2] * lit - b) * cover
    if near > 0.9 and air.disc > 0.0:
        halo = ((near - 0.9) * 10.0) ** 4
        shine = air.disc * (0.5 * halo * halo + (14.0 if near > 0.99965 else 0.0)) * (1.0 - 0.8 * cover)
        r, g, b = r + shine * air.sun_rgb[0], g + shine * air.sun_rgb[1], b + shine * air.sun_rgb[2]
    return r, g, b


@inlined
def _cloud(x: float, y: float, up: float, air: Any, noise: Any) -> float:
    """How much of the sky a cloud covers in a direction."""
    if up < 0.015 or air.clouds <= 0.0:
        return 0.0
    u, v = 1.9 * x / (up + 0.12), 1.9 * y / (up + 0.12)
    dense = 0.55 * waves_of(noise, u, v) + 0.28 * waves_of(noise, 2.3 * u + 7.0, 2.3 * v)
    dense += 0.17 * waves_of(noise, 5.1 * u, 5.1 * v + 3.0)
    cover = (dense - 0.78 + 0.62 * air.clouds) * 4.0
    return float(min(0.92, max(0.0, cover)) * min(1.0, (up - 0.015) * 9.0))
