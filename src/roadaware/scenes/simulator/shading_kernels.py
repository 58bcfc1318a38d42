"""Kernels that give every pixel its colour, instance, class and depth, once it is known what it shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inlined, kernel
from roadaware.scenes.simulator.pattern_kernels import (
    ASPHALT,
    GLASS,
    GLOSSY,
    LAMP,
    MARKING,
    WINDOWS,
    glow_of,
    grain_of,
    pane_of,
    sky_of,
    tone_of,
    waves_of,
)

_SKY = 11
CELL_M = 1.0
"""Cells of the map of lamp light."""


@kernel
def shade(triangles: Any, seen: Any, view: Any, air: Any, noise: Any, pools: Any, picture: Any) -> None:
    """Fill a picture.

    Args:
        triangles: of the soup: colour (t, 3) f32, material (t,) u8, semantic (t,) u8, glow (t,) f32,
            instance (t,) i32.
        seen: inverse (h, w) f32, face (h, w) i32, planes (t, 12) f64, shadow (h, w) u8, contact (h, w) f32.
        view: turn (3, 3) f64 from the camera to the world, eye (3,) f64, lens (4,) f64.
        air: light and weather.
        noise: (256, 256) f32.
        pools: (m, m, 3) f32 light of lamps on the ground around the eye, in cells of `CELL_M`.
        picture: light (h, w, 3) f32, instance (h, w) i32, semantic (h, w) u8, depth (h, w) f32; filled.
    """
    turn, lens = view.turn, view.lens
    face = seen.face
    for i in range(face.shape[0]):
        for j in range(face.shape[1]):
            a, b = (j + 0.5 - lens[2]) / lens[0], (i + 0.5 - lens[3]) / lens[1]
            x = turn[0, 0] * a + turn[0, 1] * b + turn[0, 2]
            y = turn[1, 0] * a + turn[1, 1] * b + turn[1, 2]
            z = turn[2, 0] * a + turn[2, 1] * b + turn[2, 2]
            long = np.sqrt(x * x + y * y + z * z)
            pixel = picture.light[i, j]
            t = face[i, j]
            if t < 0:
                pixel[0], pixel[1], pixel[2] = sky_of(x / long, y / long, z / long, air, noise)
                picture.semantic[i, j] = _SKY
                picture.depth[i, j] = np.inf
                continue
            depth = 1.0 / seen.inverse[i, j]
            picture.instance[i, j] = triangles.instance[t]
            picture.semantic[i, j] = triangles.semantic[t]
            picture.depth[i, j] = depth
            _surface(t, i, j, depth, (x, y, z), long, triangles, seen, view, air, noise, pools, pixel)


@inlined
def _surface(t: int, i: int, j: int, depth: float, way: Any, long: float, triangles: Any, seen: Any,
             view: Any, air: Any, noise: Any, pools: Any, pixel: Any) -> None:  # fmt: skip
    """Light that a surface sends to the camera, through the fog."""
    plane = seen.planes[t]
    u, v, foot = _place(plane, i, j, depth)
    material = triangles.material[t]
    px, py = view.eye[0] + way[0] * depth, view.eye[1] + way[1] * depth
    pz = view.eye[2] + way[2] * depth
    flat = plane[11] > 0.6 and triangles.instance[t] == 0
    tone = max(0.05, tone_of(material, u, v, foot, noise))
    white = _snow(air, material, plane[11], flat, px, py, noise)
    if flat and air.wet > 0.0:
        tone *= 1.0 - 0.42 * air.wet
    red, green, blue = _falling(plane, i, j, px, py, pz, flat, seen, view, air, pools)
    colour = triangles.colour[t]
    pane = pane_of(u, v, foot) if material == WINDOWS else 0.0
    if pane < 0.0:
        tone *= 1.0 - 0.45 * -pane
        pane = 0.0
    shine = (0.0, 0.0, 0.0)
    if material in (GLOSSY, GLASS) or pane > 0.0:
        shine = _mirrored(way, long, plane, material, pane, air)
    keep = (1.0 - white) * tone * (1.0 - 0.9 * pane)
    if material == LAMP and triangles.glow[t] <= 0.0:
        keep *= 0.45
    gain = triangles.glow[t] * air.glow
    through = np.exp(-air.fog * depth * long)
    lit = _lit(material, u, v, colour, air, noise) * pane
    warm = (1.0, 0.72, 0.4)
    for k in range(3):
        fall = (red, green, blue)[k]
        base = colour[k] * keep + 0.88 * white
        out = base * fall + shine[k] * (1.0 - white) + colour[k] * gain + lit * warm[k]
        haze = air.fog_rgb[k]
        pixel[k] = haze + (out - haze) * through


@inlined
def _place(plane: Any, i: int, j: int, depth: float) -> tuple[float, float, float]:
    """Where on the surface a pixel lies, in metres, and how much of the surface it covers."""
    x, y = j + 0.5, i + 0.5
    u = (plane[3] * x + plane[4] * y + plane[5]) * depth
    v = (plane[6] * x + plane[7] * y + plane[8]) * depth
    across = max(abs(plane[3] - u * plane[0]), abs(plane[4] - u * plane[1]))
    along = max(abs(plane[6] - v * plane[0]), abs(plane[7] - v * plane[1]))
    return u, v, max(across, along) * depth


@inlined
def _snow(air: Any, material: int, up: float, flat: bool, px: float, py: float, noise: Any) -> float:
    """Share of a surface that snow covers; wheels wear it off the road."""
    if air.snow <= 0.0 or up < 0.3 or material == LAMP:
        return 0.0
    if not flat:
        return air.snow * min(0.75, up)
    patches = waves_of(noise, px * 0.35, py * 0.35) + 0.5 * waves_of(noise, px * 1.3, py * 1.3)
    if material in (ASPHALT, MARKING):
        most = 0.62 if material == ASPHALT else 0.3
        return air.snow * min(most, max(0.08, 1.1 * patches - 0.45))
    return air.snow * min(0.95, 0.68 + 0.25 * patches)


@inlined
def _falling(plane: Any, i: int, j: int, px: float, py: float, pz: float, flat: bool, seen: Any,
             view: Any, air: Any, pools: Any) -> tuple[float, float, float]:  # fmt: skip
    """Light that falls on a surface: sky, sun or moon, lamps, own head lamps."""
    up = 0.5 + 0.5 * plane[11]
    direct = max(0.0, plane[9] * air.sun[0] + plane[10] * air.sun[1] + plane[11] * air.sun[2])
    soft = air.fill
    if flat:
        soft *= seen.contact[i, j]
        direct *= seen.contact[i, j]
        if seen.shadow[i, j]:
            direct *= 1.0 - air.shadow
    # Turned to the sun's side of the sky is a little lighter, so that upright faces differ.
    soft *= 1.0 + 0.14 * (plane[9] * air.sun[0] + plane[10] * air.sun[1]) + 0.05 * plane[9]
    beam = 0.0
    if air.beams > 0.0:
        beam = air.beams * _beam(plane, px, py, pz, view)
    pool = (0.0, 0.0, 0.0)
    if air.lamps > 0.0:
        pool = _pooled(px, py, pz, view, pools)
    low, down, sky = air.bounce, 1.0 - up, 0.5 * soft * up
    return (
        low[0] * down + sky * (air.zenith[0] + air.horizon[0]) + direct * air.sun_rgb[0] + pool[0] + beam,
        low[1] * down
        + sky * (air.zenith[1] + air.horizon[1])
        + direct * air.sun_rgb[1]
        + pool[1]
        + 0.95 * beam,
        low[2] * down
        + sky * (air.zenith[2] + air.horizon[2])
        + direct * air.sun_rgb[2]
        + pool[2]
        + 0.82 * beam,
    )


@inlined
def _beam(plane: Any, px: float, py: float, pz: float, view: Any) -> float:
    """Light of the own dipped head lamps, which sit 0.65 m high and 2 m before the camera."""
    ahead_x, ahead_y = view.turn[0, 2], view.turn[1, 2]
    size = np.sqrt(ahead_x * ahead_x + ahead_y * ahead_y)
    ahead_x, ahead_y = ahead_x / size, ahead_y / size
    x, y = px - view.eye[0], py - view.eye[1]
    z = pz - view.eye[2] + 0.75
    far = x * ahead_x + y * ahead_y - 2.0
    if far < 0.2:
        return 0.0
    side = (y * ahead_x - x * ahead_y) / far
    rise = z / far
    cone = np.exp(-4.5 * side * side)
    cut = 1.0 if rise < 0.0 else 1.0 / (1.0 + 900.0 * rise * rise)
    facing = -(plane[9] * ahead_x + plane[10] * ahead_y + plane[11] * rise)
    return float(34.0 * cone * (0.12 + 0.88 * cut) * max(0.22, min(1.0, facing + 0.15)) / (20.0 + far * far))


@inlined
def _pooled(px: float, py: float, pz: float, view: Any, pools: Any) -> tuple[float, float, float]:
    """Light of the lamps near a place, from the map of it."""
    half = 0.5 * len(pools)
    u, v = (px - view.eye[0]) / CELL_M + half - 0.5, (py - view.eye[1]) / CELL_M + half - 0.5
    if u < 0.0 or v < 0.0 or u >= len(pools) - 1 or v >= len(pools) - 1:
        return 0.0, 0.0, 0.0
    i, j = int(v), int(u)
    a, b = v - i, u - j
    # Lamps hang above what they light; little of it goes up.
    dim = 1.0 if pz < 3.0 else 1.0 / (1.0 + 0.35 * (pz - 3.0))
    w00, w01, w10, w11 = (1 - a) * (1 - b) * dim, (1 - a) * b * dim, a * (1 - b) * dim, a * b * dim
    c00, c01, c10, c11 = pools[i, j], pools[i, j + 1], pools[i + 1, j], pools[i + 1, j + 1]
    return (
        c00[0] * w00 + c01[0] * w01 + c10[0] * w10 + c11[0] * w11,
        c00[1] * w00 + c01[1] * w01 + c10[1] * w10 + c11[1] * w11,
        c00[2] * w00 + c01[2] * w01 + c10[2] * w10 + c11[2] * w11,
    )


@inlined
def _mirrored(way: Any, long: float, plane: Any, material: int, pane: float,
              air: Any) -> tuple[float, float, float]:  # fmt: skip
    """What a glossy surface mirrors: the sky, or the ground, and a flash of the sun."""
    x, y, z = way[0] / long, way[1] / long, way[2] / long
    across = -(x * plane[9] + y * plane[10] + z * plane[11])
    rx, ry, rz = x + 2.0 * across * plane[9], y + 2.0 * across * plane[10], z + 2.0 * across * plane[11]
    r, g, b = air.bounce
    if rz > 0.0:
        r, g, b = glow_of(rx, ry, rz, air)
    # Houses across the street stand in the lower part of what windows show.
    shown = 1.0 if material == GLOSSY else 0.35 + 0.65 * min(1.0, max(0.0, rz) * 3.0)
    flash = max(0.0, rx * air.sun[0] + ry * air.sun[1] + rz * air.sun[2])
    flash = 1.6 * (flash * flash) ** 16 * air.shadow
    edge = (1.0 - min(1.0, max(0.0, across))) ** 3
    share = 0.07 + 0.5 * edge
    if material != GLOSSY:
        share = 0.35 + 0.55 * edge if material == GLASS else pane * (0.35 + 0.5 * edge)
    return (
        share * (r * shown + flash * air.sun_rgb[0]),
        share * (g * shown + flash * air.sun_rgb[1]),
        share * (b * shown + flash * air.sun_rgb[2]),
    )


@inlined
def _lit(material: int, u: float, v: float, colour: Any, air: Any, noise: Any) -> float:
    """Light from within a window; which ones are lit differs between houses of different colours."""
    if material != WINDOWS or air.windows <= 0.0:
        return 0.0
    house = np.floor(colour[0] * 977.0) + np.floor(colour[1] * 613.0)
    column, floor = np.floor(u / 2.4), np.floor(v / 3.0)
    chance = grain_of(noise, column * 7.0 + house, floor * 11.0 + 3.0 * house)
    if chance > air.windows:
        return 0.0
    curtain = 0.75 + 0.5 * grain_of(noise, u * 5.0, 17.0)
    return float((0.25 + 0.6 * chance / air.windows) * curtain)
