"""Kernels that give every pixel its colour, instance, class and depth, and put weather before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inline_kernel, inner_kernel, kernel
from roadaware.simulator.mesh import CELL_M

# Kernels for the patterns of surfaces and of the sky, as functions of places on them.

# Those of `mesh.Material`, as plain numbers that kernels compile as constants.
MATT, GLOSSY, GLASS, ASPHALT, PAVING, GRASS, BRICK, FOLIAGE, MARKING, WINDOWS, CLOTH, LAMP = range(12)


@inner_kernel
def sample_cell_noise(noise: Any, u: float, v: float) -> float:
    """Noise from 0 to 1, one value per unit square."""
    return float(noise[int(np.floor(v)) & 255, int(np.floor(u)) & 255])


@inner_kernel
def sample_smooth_noise(noise: Any, u: float, v: float) -> float:
    """Smooth noise from 0 to 1 whose bumps are about a unit wide."""
    i, j = int(np.floor(v)), int(np.floor(u))
    a, b = v - i, u - j
    i0, i1, j0, j1 = i & 255, (i + 1) & 255, j & 255, (j + 1) & 255
    top = noise[i0, j0] * (1.0 - b) + noise[i0, j1] * b
    return float(top * (1.0 - a) + (noise[i1, j0] * (1.0 - b) + noise[i1, j1] * b) * a)


@inner_kernel
def _seen(cell: float, foot: float) -> float:
    """How much of a pattern with cells of a size is left where a pixel covers `foot` metres."""
    return min(1.0, max(0.0, 1.3 - 0.8 * foot / cell))


@inner_kernel
def _joint(place: float, cell: float, width: float, foot: float) -> float:
    """How much of a pixel is joint between stones."""
    at = place - np.floor(place / cell) * cell
    away = min(at, cell - at)
    half = 0.5 * max(width, foot)
    return float(max(0.0, min(1.0, (half - away) / half + 0.5)) * min(1.0, width / max(foot, 1e-6)))


@inner_kernel
def compute_pattern_tone(material: int, u: float, v: float, foot: float, noise: Any) -> float:
    """By how much a pattern makes a surface lighter or darker.

    Args:
        material: of the triangle.
        u: metres along the surface.
        v: metres along the surface.
        foot: metres of the surface in a pixel.
        noise: (256, 256) f32.
    """
    if material == ASPHALT:
        # From 1.625 m on `_seen` leaves nothing of cells of 1 m: most of a far road needs no noise.
        if foot > 1.7:
            return 1.0
        worn = (
            sample_smooth_noise(noise, u * 0.45, v * 0.45)
            # Shifted, or the bumps of both sizes would coincide at the origin.
            + 0.6 * sample_smooth_noise(noise, u * 1.7 + 31.0, v * 1.7)
            - 0.8
        )
        tone = 1.0 + 0.22 * worn * _seen(1.0, foot)
        # The same bound for grains of 24 mm; finer than a pixel they would flicker from frame to frame.
        if foot < 0.04:
            tone += 0.42 * (sample_cell_noise(noise, u * 42.0, v * 42.0) - 0.5) * _seen(0.024, foot)
        return float(tone)
    if material == PAVING:
        return _slabs(u, v, foot, noise)
    if material == BRICK:
        return _bricks(u, v, foot, noise)
    if material == GRASS:
        blades = sample_cell_noise(noise, u * 16.0, v * 9.0) - 0.5
        return (
            1.0 + 0.8 * blades * _seen(0.08, foot) + 0.5 * (sample_smooth_noise(noise, u * 0.8, v * 0.8) - 0.5)
        )  # fmt: skip
    if material == FOLIAGE:
        leaves = sample_smooth_noise(noise, u * 9.0, v * 9.0) - 0.5
        return (
            1.0
            + 1.1 * leaves * _seen(0.12, foot)
            + 0.9 * (sample_smooth_noise(noise, u * 2.6, v * 2.6) - 0.5)
        )
    if material == CLOTH:
        # Where `_seen` of folds of 0.1 m is 0.
        if foot > 0.17:
            return 1.0
        folds = sample_smooth_noise(noise, u * 13.0 + 1.5 * v, v * 3.0) - 0.5
        return 1.0 + 0.4 * folds * _seen(0.1, foot)
    if material == MARKING:
        return 1.0 - 0.35 * _seen(0.1, foot) * max(0.0, sample_smooth_noise(noise, u * 7.0, v * 7.0) - 0.55)
    if material == MATT:
        return 1.0 + 0.1 * (sample_smooth_noise(noise, u * 3.0, v * 3.0) - 0.5)
    return 1.0


@inline_kernel
def _slabs(u: float, v: float, foot: float, noise: Any) -> float:
    row = np.floor(v / 0.45)
    shifted = u + 0.3 * (row % 2.0)
    joint = max(_joint(v, 0.45, 0.02, foot), _joint(shifted, 0.6, 0.02, foot))
    slab = sample_cell_noise(noise, shifted / 0.6, row) - 0.5
    fine = sample_cell_noise(noise, u * 30.0, v * 30.0) - 0.5
    return (1.0 + 0.2 * slab * _seen(0.5, foot) + 0.14 * fine * _seen(0.035, foot)) * (1.0 - 0.5 * joint)


@inline_kernel
def _bricks(u: float, v: float, foot: float, noise: Any) -> float:
    row = np.floor(v / 0.1)
    shifted = u + 0.14 * (row % 2.0)
    joint = max(_joint(v, 0.1, 0.016, foot), _joint(shifted, 0.28, 0.016, foot))
    brick = sample_cell_noise(noise, shifted / 0.28, row) - 0.5
    stained = sample_smooth_noise(noise, u * 0.5, v * 0.3) - 0.5
    return (1.0 + 0.45 * brick * _seen(0.12, foot) + 0.2 * stained) * (1.0 + 0.45 * joint)


@inner_kernel
def compute_pane_coverage(u: float, v: float, foot: float) -> float:
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


@inner_kernel
def compute_clear_sky(x: float, y: float, z: float, air: Any) -> tuple[float, float, float]:
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


@inner_kernel
def compute_sky_colour(x: float, y: float, z: float, air: Any, noise: Any) -> tuple[float, float, float]:
    """Colour of the sky in a direction, with all that is in it.

    Args:
        x: of a unit vector.
        y: of it.
        z: of it, upwards.
        air: light and weather.
        noise: (256, 256) f32.
    """
    r, g, b = compute_clear_sky(x, y, z, air)
    up = max(z, 0.0)
    near = max(0.0, x * air.sun[0] + y * air.sun[1] + z * air.sun[2])
    if air.stars > 0.0 and up > 0.06:
        star = sample_cell_noise(noise, 420.0 * x / (1.0 + up), 420.0 * y / (1.0 + up))
        # Three cells of 2,000 hold a star.
        if star > 0.9985:
            bright = air.stars * 0.35 * (star - 0.9985) / 0.0015 * min(1.0, up * 4.0)
            r, g, b = r + bright, g + bright, b + bright
    cover = _cloud(x, y, up, air, noise)
    lit = 0.85 + 0.5 * near * near
    r += (air.cloud_rgb[0] * lit - r) * cover
    g += (air.cloud_rgb[1] * lit - g) * cover
    b += (air.cloud_rgb[2] * lit - b) * cover
    if near > 0.9 and air.disc > 0.0:
        # 0.99965 is the cosine of 1.5 degrees.
        halo = ((near - 0.9) * 10.0) ** 4
        shine = air.disc * (0.5 * halo * halo + (14.0 if near > 0.99965 else 0.0)) * (1.0 - 0.8 * cover)
        r, g, b = r + shine * air.sun_rgb[0], g + shine * air.sun_rgb[1], b + shine * air.sun_rgb[2]
    return r, g, b


@inline_kernel
def _cloud(x: float, y: float, up: float, air: Any, noise: Any) -> float:
    """How much of the sky a cloud covers in a direction."""
    if up < 0.015 or air.clouds <= 0.0:
        return 0.0
    # Clouds lie on a flat ceiling: small at the horizon, where 0.12 keeps them from shrinking to noise.
    u, v = 1.9 * x / (up + 0.12), 1.9 * y / (up + 0.12)
    dense = 0.55 * sample_smooth_noise(noise, u, v) + 0.28 * sample_smooth_noise(
        noise, 2.3 * u + 7.0, 2.3 * v
    )
    dense += 0.17 * sample_smooth_noise(noise, 5.1 * u, 5.1 * v + 3.0)
    cover = (dense - 0.78 + 0.62 * air.clouds) * 4.0
    return float(min(0.92, max(0.0, cover)) * min(1.0, (up - 0.015) * 9.0))


_SKY = 11
_CELLS_PER_M = 1.0 / CELL_M


@kernel
def shade(surfaces: Any, seen: Any, view: Any, air: Any, noise: Any, pools: Any, shown: Any) -> None:
    """Fill an image.

    Args:
        surfaces: kinds (k, 3) i32 and tints (k, 12) f32 as in `Surfaces`.
        seen: inverse (h, w) f32, face (h, w) i32, planes (k, 12) f64, shadow (h, w) u8, contact (h, w) f32.
        view: turn (3, 3) f64 from the camera to the world, eye (3,) f64, lens (4,) f64.
        air: light and weather.
        noise: (256, 256) f32.
        pools: (m, m, 3) f32 of `light_pools`.
        shown: light (h, w, 3) f32, instance (h, w) i32, semantic (h, w) u8, depth (h, w) f32; filled.
    """
    # Arrays are taken out of their tuples once: each time costs a count of who holds them.
    turn, lens, eye, face, inverse = view.turn, view.lens, view.eye, seen.face, seen.inverse
    kinds, tints, planes, light = surfaces.kinds, surfaces.tints, seen.planes, shown.light
    shadow, contact = seen.shadow, seen.contact
    narrow = 1.0 / lens[0]
    level = np.sqrt(turn[0, 2] ** 2 + turn[1, 2] ** 2)
    ahead_x, ahead_y = turn[0, 2] / level, turn[1, 2] / level
    instance, semantic, depths = shown.instance, shown.semantic, shown.depth
    for i in range(face.shape[0]):
        down = (i + 0.5 - lens[3]) / lens[1]
        x0 = turn[0, 1] * down + turn[0, 2]
        y0 = turn[1, 1] * down + turn[1, 2]
        z0 = turn[2, 1] * down + turn[2, 2]
        for j in range(face.shape[1]):
            across = (j + 0.5 - lens[2]) * narrow
            x, y, z = x0 + turn[0, 0] * across, y0 + turn[1, 0] * across, z0 + turn[2, 0] * across
            long = np.sqrt(x * x + y * y + z * z)
            t = face[i, j]
            if t < 0:
                short = 1.0 / long
                light[i, j, 0], light[i, j, 1], light[i, j, 2] = compute_sky_colour(
                    x * short, y * short, z * short, air, noise
                )  # fmt: skip
                semantic[i, j] = _SKY
                depths[i, j] = np.inf
                continue
            depth = 1.0 / inverse[i, j]
            semantic[i, j] = kinds[t, 1]
            instance[i, j] = kinds[t, 2]
            depths[i, j] = depth
            bare, sunny = 1.0, 1.0
            if tints[t, 11] > 0.0:
                bare = contact[i, j]
                sunny = bare * (1.0 - air.shadow * shadow[i, j])
            beam = 0.0
            if air.beams > 0.0:
                beam = air.beams * _beam(planes, t, x * depth, y * depth, z * depth, ahead_x, ahead_y)
            _surface(
                i, j, t, depth, long, x, y, z, kinds[t, 0], tints, planes, sunny, bare, beam, eye, air, noise,
                pools, light,
            )  # fmt: skip


@kernel
def compute_tints(kinds: Any, looks: Any, planes: Any, air: Any, tints: Any) -> None:
    """How triangles answer the light of a frame.

    Args:
        kinds: (k, 3) i32 material, semantic, instance.
        looks: (k, 4) f32 colour and glow.
        planes: (k, 12) f64 that end in unit normals.
        air: light and weather.
        tints: (k, 12) f32, filled as in `Surfaces`.
    """
    for t in range(len(kinds)):
        material, mover = kinds[t, 0], kinds[t, 2] > 0
        east, north, up = planes[t, 9], planes[t, 10], planes[t, 11]
        ground, lamp, glow = up > 0.6 and not mover, material == LAMP, looks[t, 3]
        facing = max(0.0, east * air.sun[0] + north * air.sun[1] + up * air.sun[2])
        # The sun's side of the sky is a little lighter, so that upright faces differ under clouds too.
        aside = 1.0 + 0.14 * (east * air.sun[0] + north * air.sun[1]) + 0.05 * east
        sky, below = 0.5 * air.fill * (0.5 + 0.5 * up) * aside, 0.5 - 0.5 * up
        # What a lamp that is out shows is darker than its colour, so that lit ones stand out.
        share = 0.45 if lamp and glow <= 0.0 else 1.0
        for k in range(3):
            tints[t, k] = looks[t, k] * share
            tints[t, 3 + k] = sky * (air.zenith[k] + air.horizon[k]) + below * air.bounce[k]
            tints[t, 6 + k] = facing * air.sun_rgb[k]
        tints[t, 9] = glow * air.glow
        # Who moves keeps panes and bonnet clear, and carries snow on the roof.
        bare = lamp or material == GLASS or up < (0.85 if mover else 0.3)
        tints[t, 10] = 0.0 if bare else air.snow * (1.0 if ground else min(0.75, up))
        tints[t, 11] = 1.0 if ground else 0.0


@inline_kernel
def _surface(i: int, j: int, t: int, depth: float, long: float, x: float, y: float, z: float, material: int,
             tints: Any, planes: Any, sunny: float, bare: float, beam: float, eye: Any, air: Any, noise: Any,
             pools: Any, light: Any) -> None:  # fmt: skip
    """Light that a surface sends to the camera, through the fog."""
    u, v, foot = _place(planes, t, i, j, depth)
    # Sums of noise may fall below 0, which would be light that is negative.
    keep = max(0.05, compute_pattern_tone(material, u, v, foot, noise))
    ground, white = tints[t, 11] > 0.0, 0.0
    if ground:
        keep *= 1.0 - 0.42 * air.wet
    if tints[t, 10] > 0.0:
        white = _snow(tints[t, 10], ground, material, eye[0] + x * depth, eye[1] + y * depth, noise)
    pane, lit = 0.0, 0.0
    if material == WINDOWS:
        pane = compute_pane_coverage(u, v, foot)
        keep *= 1.0 - 0.9 * pane if pane > 0.0 else 1.0 + 0.45 * pane
        pane = max(0.0, pane)
        if pane > 0.0 and air.windows > 0.0:
            lit = pane * _lit(u, v, tints[t, 0], tints[t, 1], air.windows, noise)
    row, column, dim, w00, w01, w10, w11 = 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0
    if air.lamps > 0.0:
        row, below = _cell(y * depth, len(pools))
        column, right = _cell(x * depth, len(pools))
        # Lamps hang above what they light; little of it goes up.
        dim = 1.0 / (1.0 + 0.5 * max(0.0, eye[2] + z * depth - 2.5))
        w00, w01 = dim * (1.0 - below) * (1.0 - right), dim * (1.0 - below) * right
        w10, w11 = dim * below * (1.0 - right), dim * below * right
    # About exp(-thick), and cheaper.
    thick = air.fog * depth * long
    through = 1.0 / (1.0 + thick * (1.0 + thick * (0.5 + 0.167 * thick)))
    share, flash, red, green, blue = 0.0, 0.0, 0.0, 0.0, 0.0
    if material in (GLOSSY, GLASS) or pane > 0.0:
        short = 1.0 / long
        share, flash, red, green, blue = _compute_reflection(
            x * short, y * short, z * short, planes, t, material, pane, air
        )  # fmt: skip
    for k in range(3):
        fall = tints[t, 3 + k] * bare + tints[t, 6 + k] * sunny + beam * (1.0, 0.95, 0.82)[k]
        if dim > 0.0:
            fall += w00 * pools[row, column, k] + w01 * pools[row, column + 1, k]
            fall += w10 * pools[row + 1, column, k] + w11 * pools[row + 1, column + 1, k]
        colour = tints[t, k]
        base = colour * keep * (1.0 - white) + 0.88 * white
        mirrored = (red, green, blue)[k] + flash * air.sun_rgb[k]
        out = base * fall + share * mirrored + colour * colour * tints[t, 9] + lit * (1.0, 0.72, 0.4)[k]
        haze = air.fog_rgb[k]
        light[i, j, k] = haze + (out - haze) * through


@inner_kernel
def _cell(away: float, cells: int) -> tuple[int, float]:
    """The cell of the map of lamp light before a place, and how far the place is on its way to the next."""
    # Held so that there is always a next cell; beyond the map the light of its edge goes on.
    place = min(cells - 2.0, max(0.0, away * _CELLS_PER_M + 0.5 * cells - 0.5))
    before = int(place)
    return before, place - before


@inline_kernel
def _place(planes: Any, t: int, i: int, j: int, depth: float) -> tuple[float, float, float]:
    """Where on the surface a pixel lies, in metres, and how much of the surface it covers."""
    x, y = j + 0.5, i + 0.5
    u = (planes[t, 3] * x + planes[t, 4] * y + planes[t, 5]) * depth
    v = (planes[t, 6] * x + planes[t, 7] * y + planes[t, 8]) * depth
    across = max(abs(planes[t, 3] - u * planes[t, 0]), abs(planes[t, 4] - u * planes[t, 1]))
    along = max(abs(planes[t, 6] - v * planes[t, 0]), abs(planes[t, 7] - v * planes[t, 1]))
    return u, v, max(across, along) * depth


@inline_kernel
def _snow(cover: float, ground: bool, material: int, px: float, py: float, noise: Any) -> float:
    """Share of a surface that snow covers; wheels wear it off the road."""
    if not ground:
        return cover
    patches = sample_smooth_noise(noise, px * 0.35, py * 0.35) + 0.5 * sample_smooth_noise(
        noise, px * 1.3, py * 1.3
    )
    if material == ASPHALT:
        return cover * min(0.62, max(0.08, 1.1 * patches - 0.45))
    if material == MARKING:
        return cover * min(0.3, max(0.08, 1.1 * patches - 0.45))
    return cover * min(0.95, 0.68 + 0.25 * patches)


@inline_kernel
def _beam(planes: Any, t: int, x: float, y: float, z: float, ahead_x: float, ahead_y: float) -> float:
    """Light of the own dipped head lamps, which sit 0.75 m below the camera and 2 m before it.

    x, y and z are those of the place less those of the eye.
    """
    far = x * ahead_x + y * ahead_y - 2.0
    if far < 0.2:
        return 0.0
    each = 1.0 / far
    side = (y * ahead_x - x * ahead_y) * each
    rise = (z + 0.75) * each
    wide, high = 1.0 + 2.5 * side * side, max(0.0, rise)
    cut = 900.0 * high * high
    # The lamps look ahead: the road right before them gets less than their light would give.
    light = 17.0 * min(1.0, 0.25 + 0.111 * far) * (1.0 + 0.12 * cut)
    light /= wide * wide * (20.0 + far * far) * (1.0 + cut)
    facing = -(planes[t, 9] * ahead_x + planes[t, 10] * ahead_y + planes[t, 11] * rise)
    return float(light * max(0.22, min(1.0, facing + 0.15)))


@inline_kernel
def _compute_reflection(x: float, y: float, z: float, planes: Any, t: int, material: int, pane: float,
              air: Any) -> tuple[float, float, float, float, float]:  # fmt: skip
    """How much a glossy surface mirrors, a flash of the sun in it, and the sky or ground that it shows."""
    n0, n1, n2 = planes[t, 9], planes[t, 10], planes[t, 11]
    across = -(x * n0 + y * n1 + z * n2)
    rx, ry, rz = x + 2.0 * across * n0, y + 2.0 * across * n1, z + 2.0 * across * n2
    # As Schlick's approximation of Fresnel's law, with a third power.
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
    r, g, b = air.bounce[0], air.bounce[1], air.bounce[2]
    if rz > 0.0:
        r, g, b = compute_clear_sky(rx, ry, rz, air)
    return share, flash, r * shown, g * shown, b * shown


@inline_kernel
def _lit(u: float, v: float, red: float, green: float, share: float, noise: Any) -> float:
    """Light from within a window; which ones are lit differs between houses of different colours."""
    # Primes, so that houses of nearly the same colour still differ.
    house = np.floor(red * 977.0) + np.floor(green * 613.0)
    chance = sample_cell_noise(noise, np.floor(u / 2.4) * 7.0 + house, np.floor(v / 3.0) * 11.0 + 3.0 * house)
    if chance >= share:
        return 0.0
    curtain = 0.75 + 0.5 * sample_cell_noise(noise, u * 5.0, 17.0)
    return float((0.25 + 0.6 * chance / share) * curtain)


# How uneven surfaces are: noise that keeps to what it lies on.


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
        cells[j], shares[j] = _locate_cell(j, small.shape[1])
    for i in range(light.shape[0]):
        y, a = _locate_cell(i, small.shape[0])
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
def _locate_cell(at: int, cells: int) -> tuple[int, float]:
    """The cell of the smaller image before a pixel, and how far the pixel is on its way to the next."""
    place = (at + 0.5) / SHRINK - 0.5
    before = min(max(int(place), 0), cells - 2)
    return before, min(1.0, max(place - before, 0.0))
