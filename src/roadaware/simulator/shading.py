"""Lighting that is constant over a triangle or a frame, computed before pixels are drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32
from roadaware.simulator.mesh import CELL_M, Soup

_CELLS = 288


class Surfaces(NamedTuple):
    """Triangles in view as kernels shade them.

    Args:
        kinds: (k, 3) i32 material, semantic, instance.
        tints: (k, 12) f32 colour; light of the sky and from below; light straight from the sun; brightness
            as a lamp; share that snow covers; 1 for the ground.
    """

    kinds: npt.NDArray[np.int32]
    tints: Floats32


def prepare_surfaces(soup: Soup, which: npt.NDArray[np.int32], planes: Floats, air: np.record) -> Surfaces:
    """How triangles in view answer the light of a frame.

    Args:
        soup: (t,) triangles.
        which: (k,) of them are in view.
        planes: (k, 12) that end in unit normals.
        air: light and weather, packed.
    """
    from roadaware.simulator.shading_kernels import compute_tints

    kinds = np.stack([soup.material[which], soup.semantic[which], soup.instance[which]], axis=1)
    looks = np.column_stack([soup.colour[which], soup.glow[which]])
    tints = np.empty((len(which), 12), np.float32)
    compute_tints(kinds, looks, planes, air, tints)
    return Surfaces(kinds, tints)


def compute_light_pools(lamps: Floats, eye: Floats, ahead: Floats, gain: float) -> Floats32:
    """(m, m, 3) light of lamps on the ground around the eye, in cells of `CELL_M`, rows along y.

    Lamps that light only what lies behind the eye are left out.

    Args:
        lamps: (n, 7) x, y, z in metres, intensity, colour.
        eye: (3,) in the middle of the map.
        ahead: (3,) where it looks.
        gain: of all lamps; 0 for none.
    """
    from roadaware.simulator.weather_kernels import add_pools

    pools = np.zeros((_CELLS, _CELLS, 3), np.float32)
    if gain > 0 and len(lamps):
        # Places in cells of the map; the light of a lamp ends at a few times its height.
        high = np.clip(lamps[:, 2], 0.7, 7.0)
        far = (lamps[:, :2] - eye[:2]) @ ahead[:2] / np.hypot(*ahead[:2])
        kept = far + 3.2 * high + 3.0 > -1.0
        lamps, height = lamps[kept], high[kept] / CELL_M
        place = (lamps[:, :2] - eye[:2]) / CELL_M + 0.5 * _CELLS
        reach = 3.2 * height + 3.0 / CELL_M
        colour = gain * lamps[:, 3:4] * lamps[:, 4:]
        add_pools(np.concatenate([place, height[:, None], reach[:, None], colour], axis=1), pools)
    return pools


def footprints(corners: Floats32, instance: npt.NDArray[np.int32]) -> Floats:
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
    numbers = np.repeat(instance[rows], 3)
    first = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    count = np.diff(first, append=len(numbers))
    x, y, z = corners[rows].reshape(-1, 3).astype(np.float64).T.copy()
    middle_x, middle_y = (np.add.reduceat(part, first) / count for part in (x, y))
    x, y = x - np.repeat(middle_x, count), y - np.repeat(middle_y, count)
    xx, yy, xy = (np.add.reduceat(part, first) for part in (x * x, y * y, x * y))
    turn = 0.5 * np.arctan2(2.0 * xy, xx - yy)
    c, s = np.cos(turn), np.sin(turn)
    each_c, each_s = np.repeat(c, count), np.repeat(s, count)
    along, aside = x * each_c + y * each_s, y * each_c - x * each_s
    back, right = (np.minimum.reduceat(part, first) for part in (along, aside))
    front, left = (np.maximum.reduceat(part, first) for part in (along, aside))
    shift, lift = 0.5 * (back + front), 0.5 * (right + left)
    middle_x, middle_y = middle_x + shift * c - lift * s, middle_y + shift * s + lift * c
    low = np.minimum.reduceat(z, first)
    return np.stack([middle_x, middle_y, c, s, 0.5 * (front - back), 0.5 * (left - right), low], axis=1)


def build_footprint_triangles(found: Floats) -> Floats32:
    """(2 n, 3, 3) corners of two triangles for each rectangle, which is made half a metre larger all round.

    Args:
        found: (n, 7) of `footprints`.
    """
    middle, axis, half = found[:, None, :2], found[:, None, 2:4], found[:, None, 4:6] + 0.5
    along, aside = half[..., :1] * axis, half[..., 1:] * axis[..., ::-1] * (-1.0, 1.0)
    quad = np.empty((len(found), 4, 3), np.float32)
    for place, (far, left) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        quad[:, place, :2] = (middle + far * along + left * aside)[:, 0]
    quad[:, :, 2] = found[:, 6:]
    return quad[:, [[0, 1, 2], [2, 3, 0]]].reshape(-1, 3, 3)
