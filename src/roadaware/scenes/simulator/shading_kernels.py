"""Kernels that give every pixel its colour, instance, class and depth, once it is known what it shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inlined, kernel
from roadaware.scenes.simulator.pattern_kernels import (
    ASPHALT,
    GLASS,
    GLOSSY,
    MARKING,
    WINDOWS,
    glow_of,
    grain_of,
    pane_of,
    sky_of,
    tone_of,
    waves_of,
)
from roadaware.scenes.simulator.shading import CELL_M

_SKY = 11


@kernel
def shade(surfaces: Any, seen: Any, view: Any, air: Any, noise: Any, pools: Any, shown: Any) -> None:
    """Fill a picture.

    Args:
        surfaces: kinds (t, 3) i32 and tints (t, 12) f32 as in `Surfaces`.
        seen: inverse (h, w) f32, face (h, w) i32, planes (t, 12) f64, shadow (h, w) u8, contact (h, w) f32.
        view: turn (3, 3) f64 from the camera to the world, eye (3,) f64, lens (4,) f64.
        air: light and weather.
        noise: (256, 256) f32.
        pools: (m, m, 3) f32 of `light_pools`.
        shown: light (h, w, 3) f32, instance (h, w) i32, semantic (h, w) u8, depth (h, w) f32; filled.
    """
    turn, lens, face = view.turn, view.lens, seen.face
    for i in range(face.shape[0]):
        for j in range(face.shape[1]):
            a, b = (j + 0.5 - lens[2]) / lens[0], (i + 0.5 - lens[3]) / lens[1]
            x = turn[0, 0] * a + turn[0, 1] * b + turn[0, 2]
            y = turn[1, 0] * a + turn[1, 1] * b + turn[1, 2]
            z = turn[2, 0] * a + turn[2, 1] * b + turn[2, 2]
            long = np.sqrt(x * x + y * y + z * z)
            x, y, z = x / long, y / long, z / long
            pixel, t = shown.light[i, j], face[i, j]
            if t < 0:
                pixel[0], pixel[1], pixel[2] = sky_of(x, y, z, air, noise)
                shown.semantic[i, j] = _SKY
                shown.depth[i, j] = np.inf
                continue
            depth = 1.0 / seen.inverse[i, j]
            shown.semantic[i, j] = surfaces.kinds[t, 1]
            shown.instance[i, j] = surfaces.kinds[t, 2]
            shown.depth[i, j] = depth
            sunny = seen.contact[i, j] * (1.0 - air.shadow * seen.shadow[i, j])
            _surface(
                i, j, depth, depth * long, x, y, z, surfaces.kinds[t, 0], surfaces.tints[t], seen.planes[t],
                sunny, seen.contact[i, j], view, air, noise, pools, pixel,
            )  # fmt: skip


@inlined
def _surface(i: int, j: int, depth: float, away: float, x: float, y: float, z: float, material: int,
             tint: Any, plane: Any, sunny: float, bare: float, view: Any, air: Any, noise: Any, pools: Any,
             pixel: Any) -> None:  # fmt: skip
    """Light that a surface sends to the camera, through the fog."""
    u, v, foot = _place(plane, i, j, depth)
    ground = tint[11] > 0.0
    px, py, pz = view.eye[0] + x * away, view.eye[1] + y * away, view.eye[2] + z * away
    keep = max(0.05, tone_of(material, u, v, foot, noise))
    if ground:
        keep *= 1.0 - 0.42 * air.wet
    white = 0.0
    if tint[10] > 0.0:
        white = _snow(tint[10], ground, material, px, py, noise)
    pane, lit = 0.0, 0.0
    if material == WINDOWS:
        pane = pane_of(u, v, foot)
        keep *= 1.0 - 0.9 * pane if pane > 0.0 else 1.0 + 0.45 * pane
        pane = max(0.0, pane)
        lit = pane * _lit(u, v, tint, air, noise)
    beam = 0.0
    if air.beams > 0.0:
        beam = air.beams * _beam(plane, px, py, pz, view)
    pool = pools[_cell(py - view.eye[1], len(pools)), _cell(px - view.eye[0], len(pools))]
    # Lamps hang above what they light; little of it goes up.
    dim = 1.0 / (1.0 + 0.5 * max(0.0, pz - 2.5))
    # About exp(-thick), and cheaper.
    thick = air.fog * away
    through = 1.0 / (1.0 + thick * (1.0 + thick * (0.5 + 0.167 * thick)))
    share, flash, red, green, blue = 0.0, 0.0, 0.0, 0.0, 0.0
    if material in (GLOSSY, GLASS) or pane > 0.0:
        share, flash, red, green, blue = _mirrored(x, y, z, plane, material, pane, air)
    if not ground:
        sunny, bare = 1.0, 1.0
    for k in range(3):
        fall = tint[3 + k] * bare + tint[6 + k] * sunny + pool[k] * dim + beam * (1.0, 0.95, 0.82)[k]
        base = tint[k] * keep * (1.0 - white) + 0.88 * white
        mirrored = (red, green, blue)[k] + flash * air.sun_rgb[k]
        out = base * fall + share * mirrored + tint[k] * tint[k] * tint[9] + lit * (1.0, 0.72, 0.4)[k]
        haze = air.fog_rgb[k]
        pixel[k] = haze + (out - haze) * through


@inlined
def _cell(away: float, cells: int) -> int:
    """Which cell of the map of lamp light a place lies in."""
    return min(cells - 1, max(0, int(away / CELL_M + 0.5 * cells)))


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
def _snow(cover: float, ground: bool, material: int, px: float, py: float, noise: Any) -> float:
    """Share of a surface that snow covers; wheels wear it off the road."""
    if not ground:
        return cover
    patches = waves_of(noise, px * 0.35, py * 0.35) + 0.5 * waves_of(noise, px * 1.3, py * 1.3)
    if material == ASPHALT:
        return cover * min(0.62, max(0.08, 1.1 * patches - 0.45))
    if material == MARKING:
        return cover * min(0.3, max(0.08, 1.1 * patches - 0.45))
    return cover * min(0.95, 0.68 + 0.25 * patches)


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
    cone = 1.0 / (1.0 + 2.5 * side * side) ** 2
    cut = 1.0 if rise < 0.0 else 1.0 / (1.0 + 900.0 * rise * rise)
    facing = -(plane[9] * ahead_x + plane[10] * ahead_y + plane[11] * rise)
    # The lamps look ahead: the road right before them gets less than their light would give.
    cone *= min(1.0, 0.25 + far / 9.0)
    return float(17.0 * cone * (0.12 + 0.88 * cut) * max(0.22, min(1.0, facing + 0.15)) / (20.0 + far * far))


@inlined
def _mirrored(x: float, y: float, z: float, plane: Any, material: int, pane: float,
              air: Any) -> tuple[float, float, float, float, float]:  # fmt: skip
    """How much a glossy surface mirrors, a flash of the sun in it, and the sky or ground that it shows."""
    across = -(x * plane[9] + y * plane[10] + z * plane[11])
    rx, ry, rz = x + 2.0 * across * plane[9], y + 2.0 * across * plane[10], z + 2.0 * across * plane[11]
    edge = (1.0 - min(1.0, max(0.0, across))) ** 3
    share = 0.07 + 0.5 * edge
    # Houses across the street stand in the lower part of what windows show.
    shown = 0.35 + 0.65 * min(1.0, max(0.0, rz) * 3.0)
    if material == GLASS:
        share = 0.35 + 0.55 * edge
    elif material == GLOSSY:
        shown = 1.0
    else:
        share = pane * (0.35 + 0.5 * edge)
    flash = max(0.0, rx * air.sun[0] + ry * air.sun[1] + rz * air.sun[2])
    flash = 1.6 * air.shadow * (flash * flash) ** 16
    r, g, b = air.bounce
    if rz > 0.0:
        r, g, b = glow_of(rx, ry, rz, air)
    return share, flash, r * shown, g * shown, b * shown


@inlined
def _lit(u: float, v: float, tint: Any, air: Any, noise: Any) -> float:
    """Light from within a window; which ones are lit differs between houses of different colours."""
    house = np.floor(tint[0] * 977.0) + np.floor(tint[1] * 613.0)
    chance = grain_of(noise, np.floor(u / 2.4) * 7.0 + house, np.floor(v / 3.0) * 11.0 + 3.0 * house)
    if chance >= air.windows:
        return 0.0
    curtain = 0.75 + 0.5 * grain_of(noise, u * 5.0, 17.0)
    return float((0.25 + 0.6 * chance / air.windows) * curtain)
