"""What is the same all over a triangle, or a frame, of its light: computed before pixels are drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roadaware.scenes.simulator.mesh import Material, Soup
from roadaware.scenes.simulator.weather import Air

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

CELL_M = 0.5
"""Cells of the map of lamp light."""
_CELLS = 288


class Surfaces(NamedTuple):
    """Triangles as kernels shade them.

    Args:
        kinds: (t, 3) i32 material, semantic, instance.
        tints: (t, 12) f32 colour; light of the sky and from below; light straight from the sun; brightness
            as a lamp; share that snow covers; 1 for the ground.
    """

    kinds: npt.NDArray[np.int32]
    tints: Singles


def surfaces_of(soup: Soup, normals: Floats, air: Air) -> Surfaces:
    """How triangles answer the light of a frame.

    Args:
        soup: (t,) triangles.
        normals: (t, 3) unit vectors, zeros where nothing is in view.
        air: light and weather.
    """
    kinds, tints = np.zeros((len(soup), 3), np.int32), np.zeros((len(soup), 12), np.float32)
    rows = np.flatnonzero(normals.any(axis=1))
    kinds[rows] = np.stack([soup.material[rows], soup.semantic[rows], soup.instance[rows]], axis=1)
    tints[rows] = _tints(soup.colour[rows], soup.glow[rows], kinds[rows], normals[rows], air)
    return Surfaces(kinds, tints)


def _tints(
    colour: Singles, glow: Singles, kinds: npt.NDArray[np.int32], normals: Floats, air: Air
) -> Singles:
    up, sun = normals[:, 2], np.array(air.sun)
    ground = (up > 0.6) & (kinds[:, 2] == 0)
    facing = np.maximum(normals @ sun, 0.0)
    # Turned to the sun's side of the sky is a little lighter, so that upright faces differ under clouds too.
    sky = air.fill * (0.5 + 0.5 * up) * (1.0 + 0.14 * (normals[:, :2] @ sun[:2]) + 0.05 * normals[:, 0])
    above = 0.5 * (np.array(air.zenith) + np.array(air.horizon))
    lamp = kinds[:, 0] == Material.LAMP
    tints = np.empty((len(up), 12), np.float32)
    # What a lamp that is out shows is darker than its colour, so that lit ones stand out.
    tints[:, :3] = colour * np.where(lamp & (glow <= 0), 0.45, 1.0)[:, None]
    tints[:, 3:6] = sky[:, None] * above + (0.5 - 0.5 * up)[:, None] * np.array(air.bounce)
    tints[:, 6:9] = facing[:, None] * np.array(air.sun_rgb)
    tints[:, 9] = glow * air.glow
    # Who moves keeps panes and bonnet clear, and carries snow on the roof.
    bare = lamp | (kinds[:, 0] == Material.GLASS) | (up < np.where(kinds[:, 2] > 0, 0.85, 0.3))
    tints[:, 10] = np.where(bare, 0.0, air.snow * np.where(ground, 1.0, np.minimum(0.75, up)))
    tints[:, 11] = ground
    return tints


def light_pools(lamps: Floats, eye: Floats, gain: float) -> Singles:
    """(m, m, 3) light of lamps on the ground around the eye, in cells of `CELL_M`, rows along y.

    Args:
        lamps: (n, 7) x, y, z in metres, intensity, colour.
        eye: (3,) in the middle of the map.
        gain: of all lamps; 0 for none.
    """
    from roadaware.scenes.simulator.weather_kernels import add_pools

    pools = np.zeros((_CELLS, _CELLS, 3), np.float32)
    if gain > 0 and len(lamps):
        # Places in cells of the map; the light of a lamp ends at a few times its height.
        height = np.clip(lamps[:, 2], 0.7, 7.0) / CELL_M
        place = (lamps[:, :2] - eye[:2]) / CELL_M + 0.5 * _CELLS
        reach = 3.2 * height + 3.0 / CELL_M
        colour = gain * lamps[:, 3:4] * lamps[:, 4:]
        add_pools(np.concatenate([place, height[:, None], reach[:, None], colour], axis=1), pools)
    return pools


def footprints(corners: Singles, instance: npt.NDArray[np.int32]) -> Floats:
    """(n, 7) rectangles around every instance, turned along its longer axis.

    x and y of the middle, the unit vector of the axis, half the length, half the width, all in metres, and
    the height of its lowest point.

    Args:
        corners: (t, 3, 3) in the world.
        instance: (t,), those of 0 are left out.
    """
    rows = np.flatnonzero(instance > 0)
    if not len(rows):
        return np.zeros((0, 7))
    rows = rows[np.argsort(instance[rows], kind="stable")]
    _, first, count = np.unique(instance[rows], return_index=True, return_counts=True)
    points = corners[rows].astype(np.float64)
    whose = np.repeat(np.arange(len(first)), count)
    n = 3.0 * count
    middle = np.add.reduceat(points.sum(1), first)[:, :2] / n[:, None]
    away = points[:, :, :2] - middle[whose][:, None]
    xx, yy, xy = (
        np.add.reduceat((away[:, :, a] * away[:, :, b]).sum(1), first) for a, b in ((0, 0), (1, 1), (0, 1))
    )
    turn = 0.5 * np.arctan2(2.0 * xy, xx - yy)
    c, s = np.cos(turn), np.sin(turn)
    along = away[:, :, 0] * c[whose, None] + away[:, :, 1] * s[whose, None]
    aside = away[:, :, 1] * c[whose, None] - away[:, :, 0] * s[whose, None]
    ends = [
        (np.minimum.reduceat(part.min(1), first), np.maximum.reduceat(part.max(1), first))
        for part in (along, aside)
    ]
    (back, front), (right, left) = ends
    shift, lift = 0.5 * (back + front), 0.5 * (right + left)
    low = np.minimum.reduceat(points[:, :, 2].min(1), first)
    x, y = middle[:, 0] + shift * c - lift * s, middle[:, 1] + shift * s + lift * c
    return np.stack([x, y, c, s, 0.5 * (front - back), 0.5 * (left - right), low], axis=1)
