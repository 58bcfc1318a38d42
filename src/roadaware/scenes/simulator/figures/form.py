"""Form, on which figures are modelled part by part, and Figure, which is posed frame by frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.scenes.simulator.actors import Lamp
from roadaware.scenes.simulator.figures.shapes import Solid, flat_uv
from roadaware.scenes.simulator.mesh import Material, Mesh, Semantic

Size = tuple[float, float, float]
Kind = TypeVar("Kind")
TAIL_SHARE = 0.035
"""Light of a brake lamp that shines as tail lamp only, so that braking stands out at night."""


@dataclass(frozen=True)
class Paint:
    """A surface.

    Args:
        colour: linear, 0 to 1.
        material: how it answers light.
    """

    colour: tuple[float, float, float]
    material: Material = Material.MATT


@dataclass(frozen=True)
class Bulb:
    """A lamp.

    Args:
        lamp: the flags that light it, any of them.
        lit: its colour when it shines.
        glow: light it gives off.
        tail: whether head lamps light it dimly too.
        turn: 0 or 1 for beacons that take turns, -1 for others.
    """

    lamp: int
    lit: tuple[float, float, float]
    glow: float = 3.0
    tail: bool = False
    turn: int = -1


@dataclass(frozen=True)
class Joint:
    """What moves together.

    Args:
        pivot: (3,) a point that stays where it is.
        radius: of a wheel that rolls; 0 for none.
        steers: whether it turns left and right with the front wheel.
        hinge: (3,) a point of the upright line about which it steers; its pivot by default.
        swing: how far it swings to and fro with the gait, in radians.
        phase: of the swing.
        cranks: whether it goes round with the gait.
    """

    pivot: tuple[float, float, float]
    radius: float = 0.0
    steers: bool = False
    swing: float = 0.0
    phase: float = 0.0
    cranks: bool = False
    hinge: tuple[float, float, float] | None = None


@dataclass(frozen=True, eq=False)
class Figure:
    """A thing that can be posed.

    Args:
        mesh: with all lamps dark.
        wheelbase_m: between its axles.
        bulbs: kinds of lamps.
        bulb: (t,) place in `bulbs`, -1 for what is no lamp.
        joints: what moves.
        joint: (v,) place in `joints`, -1 for what stays.
    """

    mesh: Mesh
    wheelbase_m: float
    bulbs: tuple[Bulb, ...]
    bulb: Ints
    joints: tuple[Joint, ...]
    joint: Ints

    def lit(self, lamps: int, turn: int = 0) -> Mesh:
        """The mesh with some lamps lit.

        Args:
            lamps: flags of `Lamp`.
            turn: 0 or 1, whose turn it is among the beacons.
        """
        colour, glow = self.mesh.colour.copy(), self.mesh.glow.copy()
        for place, bulb in enumerate(self.bulbs):
            full = bulb.lamp & lamps and bulb.turn in (-1, turn)
            dim = bulb.tail and lamps & Lamp.HEAD
            if full or dim:
                chosen = self.bulb == place
                colour[chosen] = bulb.lit
                glow[chosen] = bulb.glow if full else TAIL_SHARE * bulb.glow
        plain = self.mesh
        return Mesh(plain.vertices, plain.triangles, colour, plain.material, plain.semantic, glow, plain.uv)

    def posed(self, way_m: float, steer: float, gait: float) -> Floats32:
        """(v, 3) vertices with wheels turned, steered, and legs swung.

        Args:
            way_m: travelled since the start.
            steer: of the front wheels in radians, left positive.
            gait: phase in radians.
        """
        vertices = self.mesh.vertices
        if not self.joints:
            return vertices
        moving, which, pivot, hinge = self._moving
        roll, yaw = np.array([_angles(joint, way_m, steer, gait) for joint in self.joints]).T
        x, y, z = (vertices[moving] - pivot).T
        c, s = np.cos(roll)[which], np.sin(roll)[which]
        x, z = x * c + z * s, z * c - x * s
        moved = np.stack([x, y, z], axis=1) + pivot
        if steer:
            x, y, _ = (moved - hinge).T
            c, s = np.cos(yaw)[which], np.sin(yaw)[which]
            moved[:, 0], moved[:, 1] = x * c - y * s + hinge[:, 0], x * s + y * c + hinge[:, 1]
        posed = vertices.copy()
        posed[moving] = moved
        if any(joint.swing for joint in self.joints):
            # Legs that swing lift their feet: the body sinks until one is on the ground again.
            posed[:, 2] -= posed[:, 2].min()
        return posed

    @cached_property
    def _moving(self) -> tuple[Ints, Ints, Floats, Floats]:
        """Which vertices move, with which joint, and its pivot and hinge for each."""
        moving = np.flatnonzero(self.joint >= 0)
        which = self.joint[moving]
        pivots = np.array([joint.pivot for joint in self.joints])
        hinges = np.array([joint.hinge or joint.pivot for joint in self.joints])
        return moving, which, pivots[which], hinges[which]


def _angles(joint: Joint, way_m: float, steer: float, gait: float) -> tuple[float, float]:
    roll = way_m / joint.radius if joint.radius else 0.0
    if joint.swing:
        roll += joint.swing * float(np.sin(gait + joint.phase))
    if joint.cranks:
        roll += gait
    return roll, steer if joint.steers else 0.0


class Form:
    """A figure in the making.

    Args:
        semantic: of all its parts.
    """

    def __init__(self, semantic: Semantic) -> None:
        self.semantic = semantic
        self.wheelbase_m = 2.5
        self._vertices: list[Floats] = []
        self._triangles: list[Ints] = []
        self._paint: list[Paint] = []
        self._semantic: list[Semantic] = []
        self._bulbs: list[Bulb] = []
        self._bulb: list[int] = []
        self._joints: list[Joint] = []
        self._joint: list[int] = []
        self._trim: list[bool] = []

    def add(
        self,
        solid: Solid,
        paint: Paint,
        faces: Mapping[int, Paint] | None = None,
        *,
        joint: Joint | None = None,
        bulb: Bulb | None = None,
        trim: bool = False,
        semantic: Semantic | None = None,
    ) -> None:
        """Put a solid on it.

        Args:
            solid: in the figure's axes.
            paint: of its faces.
            faces: of some of its faces, by part.
            joint: what it moves with.
            bulb: what it is as a lamp.
            trim: whether it sticks out of the figure's size, as mirrors do.
            semantic: of this solid, if it is another.
        """
        self._vertices.append(solid.vertices)
        self._triangles.append(solid.triangles + len(self._joint))
        other = faces or {}
        number = _place(self._bulbs, bulb)
        self._paint += [other.get(part, paint) for part in solid.part.tolist()]
        self._semantic += [self.semantic if semantic is None else semantic] * len(solid.part)
        self._bulb += [number] * len(solid.part)
        self._joint += [_place(self._joints, joint)] * len(solid.vertices)
        self._trim += [trim] * len(solid.vertices)

    def figure(self, size: Size) -> Figure:
        """The figure, stretched to fill a box on the ground around its origin.

        Args:
            size: length, width and height in metres.
        """
        body = np.concatenate(self._vertices)[~np.array(self._trim)]
        low, high = body.min(0), body.max(0)
        scale = np.asarray(size) / (high - low)
        return self.cast(scale, np.array([-size[0] / 2, -size[1] / 2, 0.0]) - low * scale)

    def cast(self, scale: Floats | float = 1.0, offset: Floats | float = 0.0) -> Figure:
        """The figure as it was made, or stretched and moved.

        Args:
            scale: (3,) along each axis.
            offset: (3,) in metres, added afterwards.
        """
        vertices = np.concatenate(self._vertices) * scale + offset
        triangles = np.concatenate(self._triangles)
        mesh = Mesh(
            vertices.astype(np.float32),
            triangles.astype(np.int32),
            np.array([paint.colour for paint in self._paint], dtype=np.float32),
            np.array([paint.material for paint in self._paint], dtype=np.uint8),
            np.array(self._semantic, dtype=np.uint8),
            np.zeros(len(triangles), dtype=np.float32),
            flat_uv(vertices[triangles]).astype(np.float32),
        )
        joints = tuple(_stretched(joint, np.asarray(scale), np.asarray(offset)) for joint in self._joints)
        bulb, joint = np.array(self._bulb, dtype=np.int64), np.array(self._joint, dtype=np.int64)
        return Figure(mesh, self.wheelbase_m, tuple(self._bulbs), bulb, joints, joint)


def _stretched(joint: Joint, scale: Floats, offset: Floats) -> Joint:
    def moved(point: tuple[float, float, float]) -> tuple[float, float, float]:
        x, y, z = (np.asarray(point) * scale + offset).tolist()
        return x, y, z

    radius = joint.radius * float(np.broadcast_to(scale, 3)[2])
    hinge = None if joint.hinge is None else moved(joint.hinge)
    return replace(joint, pivot=moved(joint.pivot), hinge=hinge, radius=radius)


def _place(known: list[Kind], item: Kind | None) -> int:
    if item is None:
        return -1
    if item not in known:
        known.append(item)
    return known.index(item)
