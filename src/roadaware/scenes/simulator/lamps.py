"""Lamps of a frame as points of light: those handed in, and those that glowing triangles make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.scenes.simulator.mesh import Material, Semantic, Soup

_WARM = (1.0, 0.78, 0.5)
_RANGE_M = 90.0
_HIGH_M = 2.8
_MARK, _SIGNAL = 0.3, 0.2
"""Shares of the light of coloured lamps and of traffic lights that fall on what is near: they are there to be
seen, not to light the street."""


def lamps_of(soup: Soup, lights: npt.ArrayLike | Sequence[object], eye: Floats) -> Floats:
    """(n, 7) lamps near the camera: x, y, z in metres, intensity, and linear colour.

    Glowing triangles of one thing that are close together and face one way are one lamp; those of a street
    lamp may face any way.

    Args:
        soup: of the frame.
        lights: (m, 4) or (m, 7) more lamps: x, y, z, intensity, colour if it is not warm white.
        eye: (3,) where the camera stands.

    Raises:
        UsageError: if `lights` have another number of columns.
    """
    found = np.concatenate([_given(lights), _glowing(soup)])
    away = np.hypot(found[:, 0] - eye[0], found[:, 1] - eye[1])
    near: Floats = found[away < _RANGE_M]
    return near


def _given(lights: npt.ArrayLike | Sequence[object]) -> Floats:
    given = np.asarray(lights, dtype=np.float64)
    if given.size == 0:
        return np.zeros((0, 7))
    if given.ndim != 2 or given.shape[1] not in (4, 7):
        raise UsageError(
            f"lights are rows of x, y, z, intensity and perhaps r, g, b, not of shape {given.shape}"
        )
    if given.shape[1] == 4:
        given = np.concatenate([given, np.tile(_WARM, (len(given), 1))], axis=1)
    return given


def _glowing(soup: Soup) -> Floats:
    rows = np.flatnonzero((soup.material == Material.LAMP) & (soup.glow > 0))
    if not len(rows):
        return np.zeros((0, 7))
    corners = soup.corners[rows].astype(np.float64)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(cross, axis=1) / 2
    middle = corners.mean(1)
    outward = cross / np.maximum(2 * area, 1e-9)[:, None]
    # What stands high above the street and belongs to nobody is there to light it; others only shine.
    high = (middle[:, 2] > _HIGH_M) & (soup.instance[rows] == 0)
    side = np.where(high[:, None], 0.0, np.round(outward[:, :2]))
    keys = np.concatenate([soup.instance[rows, None], np.floor(middle / 1.5), side], axis=1).astype(np.int64)
    # One number for each row of keys, in the same order.
    low = keys.min(axis=0)
    _, lamp = np.unique(np.ravel_multi_index((keys - low).T, np.ptp(keys, axis=0) + 1), return_inverse=True)
    weight = np.maximum(area * soup.glow[rows], 1e-6)
    marks = _marks(soup, rows)
    columns = np.concatenate([middle + 0.6 * outward * [1, 1, 0], soup.colour[rows], marks], axis=1)
    total = np.bincount(lamp, weight)
    means = np.stack([np.bincount(lamp, weight * column) / total for column in columns.T], axis=1)
    power = np.where(np.bincount(lamp, high) > 0, 1.0, np.minimum(0.35, 4.0 * total))
    return np.concatenate([means[:, :3], power[:, None] * means[:, 6:], means[:, 3:6]], axis=1)


def _marks(soup: Soup, rows: npt.NDArray[np.intp]) -> Floats:
    """(n, 1) share of the light of each glowing triangle that falls on what is near."""
    colour, semantic = soup.colour[rows], soup.semantic[rows]
    pure = colour.min(axis=1) < 0.07 * colour.max(axis=1)
    driven = (semantic >= Semantic.CAR) & (semantic <= Semantic.BICYCLE)
    signal = semantic == Semantic.TRAFFIC_LIGHT
    share: Floats = np.where(signal, _SIGNAL, np.where(driven & pure, _MARK, 1.0))[:, None]
    return share
