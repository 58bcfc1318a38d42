"""Mesh and Soup: triangles of one thing, and of all things in view, with what a camera or LiDAR must know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bytes, Floats32, Ints32

CELL_M = 0.5
"""Cells of the map of lamp light."""


class Material(IntEnum):
    """How a triangle answers light; lamps shine by themselves when they are lit."""

    MATT = 0
    GLOSSY = 1
    GLASS = 2
    ASPHALT = 3
    PAVING = 4
    GRASS = 5
    BRICK = 6
    FOLIAGE = 7
    MARKING = 8
    WINDOWS = 9
    CLOTH = 10
    LAMP = 11


class Semantic(IntEnum):
    """What a pixel shows, after the classes of Cityscapes; 0 is nothing."""

    VOID = 0
    ROAD = 1
    PAVEMENT = 2
    BUILDING = 3
    WALL = 4
    FENCE = 5
    POLE = 6
    TRAFFIC_LIGHT = 7
    TRAFFIC_SIGN = 8
    VEGETATION = 9
    TERRAIN = 10
    SKY = 11
    PERSON = 12
    RIDER = 13
    CAR = 14
    TRUCK = 15
    BUS = 16
    MOTORCYCLE = 17
    BICYCLE = 18
    OBJECT = 19
    MARKING = 20


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles of one thing in its own axes: x forward, y left, z up from the ground, metres.

    Args:
        vertices: (v, 3).
        triangles: (t, 3) places in `vertices`, counter-clockwise seen from outside.
        colour: (t, 3) of the surface, linear, 0 to 1.
        material: (t,) `Material`.
        semantic: (t,) `Semantic`.
        glow: (t,) light it gives off, 0 for none.
        uv: (t, 3, 2) metres along the surface at its corners, for patterns.
    """

    vertices: Floats32
    triangles: Ints32
    colour: Floats32
    material: Bytes
    semantic: Bytes
    glow: Floats32
    uv: Floats32


@dataclass(frozen=True, eq=False)
class Soup:
    """Triangles in the world, of many things.

    Args:
        corners: (t, 3, 3) in metres.
        colour: (t, 3).
        material: (t,).
        semantic: (t,).
        glow: (t,).
        uv: (t, 3, 2).
        instance: (t,) number of the actor + 1; signals follow the actors; 0 for what does not move.
    """

    corners: Floats32
    colour: Floats32
    material: Bytes
    semantic: Bytes
    glow: Floats32
    uv: Floats32
    instance: Ints32

    def __len__(self) -> int:
        return len(self.instance)


def placed(mesh: Mesh, position: npt.ArrayLike, heading: float, instance: int = 0) -> Soup:
    """A mesh turned by a heading and put in the world.

    Args:
        mesh: in its own axes.
        position: (3,) of its origin, in metres.
        heading: of its x axis, counter-clockwise from the world's, in radians.
        instance: its value in instance masks.
    """
    c, s = np.cos(heading), np.sin(heading)
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]], dtype=np.float32)
    vertices = mesh.vertices @ turn + np.asarray(position, dtype=np.float32)
    marks = np.full(len(mesh.triangles), instance, dtype=np.int32)
    return Soup(
        vertices[mesh.triangles], mesh.colour, mesh.material, mesh.semantic, mesh.glow, mesh.uv, marks
    )


def poured(parts: Sequence[Soup]) -> Soup:
    """Several soups as one.

    Args:
        parts: at least one.
    """
    if len(parts) == 1:
        return parts[0]
    names = ("corners", "colour", "material", "semantic", "glow", "uv", "instance")
    return Soup(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def joined(parts: Sequence[Mesh]) -> Mesh:
    """Several meshes in the same axes as one.

    Args:
        parts: at least one.
    """
    starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    triangles = np.concatenate([part.triangles + start for part, start in zip(parts, starts, strict=True)])
    rest = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("colour", "material", "semantic", "glow", "uv")
    )
    return Mesh(np.concatenate([part.vertices for part in parts]), triangles.astype(np.int32), *rest)
