"""Lofts: closed surfaces through rings of points, each point moved by one or two bones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.scenes.simulator.mesh import Material
from roadaware.scenes.simulator.people.outfits import Colour
from roadaware.scenes.simulator.people.statures import BONES

Weights = dict[int, float]
Ring = tuple[float, float, float, float, float, Weights]
"""x, y and z of its middle, its radii along x and y, and the bones that move it."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Part of a body at rest.

    Args:
        points: (v, 3) metres in the actor's axes.
        weights: (v, 17) share of each bone.
        triangles: (t, 3) counter-clockwise seen from outside.
        colour: (t, 3).
        material: (t,).
        glow: (t,).
        uv: (t, 3, 2) metres along the surface.
    """

    points: Floats
    weights: Floats
    triangles: Ints
    colour: Floats
    material: Ints
    glow: Floats
    uv: Floats


def loft(
    rings: Sequence[Ring],
    colours: Sequence[Colour],
    sides: int,
    material: Material = Material.CLOTH,
    *,
    closed: tuple[bool, bool] = (True, True),
    front: float = 0.5,
    glow: float = 0.0,
) -> Piece:
    """A surface through rings that lie above each other, from the lowest to the highest.

    Args:
        rings: at least two.
        colours: of the stretches between rings; the last one repeats.
        sides: points of a ring.
        material: of all of it.
        closed: whether the lowest and highest ring are closed.
        front: where the first point lies, in steps from straight ahead.
        glow: light it gives off.
    """
    angle = 2 * np.pi * (np.arange(sides) + front) / sides
    shape = np.array([ring[:5] for ring in rings])
    points = np.empty((len(rings), sides, 3))
    points[:, :, 0] = shape[:, None, 0] + shape[:, None, 3] * np.cos(angle)
    points[:, :, 1] = shape[:, None, 1] + shape[:, None, 4] * np.sin(angle)
    points[:, :, 2] = shape[:, None, 2]
    weights = np.zeros((len(rings), sides, len(BONES)))
    for place, ring in enumerate(rings):
        for bone, share in ring[5].items():
            weights[place, :, bone] = share
    bands = [_band(place, sides) for place in range(len(rings) - 1)]
    shades = [[colours[min(place, len(colours) - 1)]] * (2 * sides) for place in range(len(bands))]
    fan = np.stack([np.zeros(sides - 2, np.int64), np.arange(1, sides - 1), np.arange(2, sides)], axis=1)
    if closed[0]:
        bands.append(fan[:, ::-1])
        shades.append([colours[0]] * len(fan))
    if closed[1]:
        bands.append(fan + sides * (len(rings) - 1))
        shades.append([colours[-1]] * len(fan))
    triangles = np.concatenate(bands)
    return _piece(
        points, weights, triangles, np.concatenate(shades), material, glow, _unrolled(shape, angle, triangles)
    )


def slab(
    corners: Floats,
    thick: Sequence[float],
    weights: Sequence[Weights],
    colour: Colour,
    material: Material,
    rim: bool = True,
) -> Piece:
    """A thin board or sheet, seen from both sides.

    Args:
        corners: (n, 3) of one face, counter-clockwise seen from that side.
        thick: (3,) from that face to the other one, metres.
        weights: of each corner.
        colour: of all of it.
        material: of all of it.
        rim: whether it has narrow faces all round.
    """
    n = len(corners)
    points = np.concatenate([corners, corners + np.asarray(thick)])
    shares = np.zeros((2 * n, len(BONES)))
    for place, bones in enumerate(weights):
        for bone, share in bones.items():
            shares[[place, place + n], bone] = share
    fan = np.stack([np.zeros(n - 2, np.int64), np.arange(1, n - 1), np.arange(2, n)], axis=1)
    here, there = np.arange(n), (np.arange(n) + 1) % n
    round_it = np.concatenate(
        [np.stack([there, here, here + n], axis=1), np.stack([there, here + n, there + n], axis=1)]
    )
    triangles = np.concatenate([fan, fan[:, ::-1] + n, round_it] if rim else [fan, fan[:, ::-1] + n])
    flat = np.argsort(np.ptp(corners, axis=0), kind="stable")[1:]
    uv = points[:, flat][triangles]
    return _piece(points, shares, triangles, np.array([colour] * len(triangles)), material, 0.0, uv)


def mirrored(piece: Piece, swap: Sequence[int]) -> Piece:
    """The same on the other side.

    Args:
        piece: of the left side.
        swap: (17,) the bone that takes each bone's place.
    """
    points = piece.points * (1.0, -1.0, 1.0)
    return Piece(
        points, piece.weights[:, list(swap)], piece.triangles[:, ::-1], piece.colour, piece.material,
        piece.glow, piece.uv[:, ::-1],
    )  # fmt: skip


def _band(place: int, sides: int) -> Ints:
    low = place * sides + np.arange(sides)
    low_next = place * sides + (np.arange(sides) + 1) % sides
    return np.concatenate(
        [
            np.stack([low, low_next, low_next + sides], axis=1),
            np.stack([low, low_next + sides, low + sides], axis=1),
        ]
    )


def _unrolled(shape: Floats, angle: Floats, triangles: Ints) -> Floats:
    radius = float(shape[:, 3:5].mean())
    across = np.tile(angle, len(shape))[triangles]
    seam = np.ptp(across, axis=1, keepdims=True) > np.pi
    across = np.where(seam & (across < np.pi), across + 2 * np.pi, across)
    return np.stack([radius * across, np.repeat(shape[:, 2], len(angle))[triangles]], axis=-1)


def _piece(
    points: Floats,
    weights: Floats,
    triangles: Ints,
    colour: Floats,
    material: Material,
    glow: float,
    uv: Floats,
) -> Piece:
    count = len(triangles)
    return Piece(
        points.reshape(-1, 3), weights.reshape(-1, len(BONES)), triangles, colour,
        np.full(count, int(material)), np.full(count, glow), uv,
    )  # fmt: skip
