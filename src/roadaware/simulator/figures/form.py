"""Form, on which figures are modelled part by part out of simple solids, Figure, which is posed frame by
frame, and their colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.simulator.actors import Lamp
from roadaware.simulator.mesh import Material, Mesh, Semantic

# Solids of a few triangles: boxes, lofts, cylinders, balls and patches on their faces.

Point = Sequence[float] | Floats


@dataclass(frozen=True, eq=False)
class Solid:
    """Triangles without paint.

    Args:
        vertices: (v, 3) in metres.
        triangles: (t, 3) places in `vertices`, counter-clockwise seen from outside.
        part: (t,) which face of the solid a triangle belongs to.
    """

    vertices: Floats
    triangles: Ints
    part: Ints

    def moved(self, offset: Point) -> Solid:
        """The same, elsewhere.

        Args:
            offset: (3,) in metres.
        """
        return Solid(self.vertices + np.asarray(offset), self.triangles, self.part)

    def spun(self, degrees: float, axis: int = 2, about: Point = (0.0, 0.0, 0.0)) -> Solid:
        """The same, turned counter-clockwise about an axis through a point.

        Args:
            degrees: how far.
            axis: 0 is x, 1 is y, 2 is z.
            about: (3,) the point.
        """
        first, second = (axis + 1) % 3, (axis + 2) % 3
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        away = self.vertices - np.asarray(about)
        turned = away.copy()
        turned[:, first] = c * away[:, first] - s * away[:, second]
        turned[:, second] = s * away[:, first] + c * away[:, second]
        return Solid(turned + np.asarray(about), self.triangles, self.part)

    def mirrored(self) -> Solid:
        """The same on the other side of the plane through x and z, still seen from outside."""
        return Solid(self.vertices * [1.0, -1.0, 1.0], self.triangles[:, ::-1], self.part)

    def without(self, *parts: int) -> Solid:
        """The same without some of its faces, for what nobody can see."""
        kept = ~np.isin(self.part, parts)
        return Solid(self.vertices, self.triangles[kept], self.part[kept])


def volume(vertices: npt.NDArray[np.floating], triangles: npt.NDArray[np.integer]) -> float:
    """Signed volume in cubic metres of what triangles enclose; positive where they face outwards.

    Args:
        vertices: (v, 3) in metres.
        triangles: (t, 3) places in `vertices`.
    """
    a, b, c = np.asarray(vertices, dtype=np.float64)[triangles].transpose(1, 0, 2)
    return float((a * np.cross(b, c)).sum() / 6.0)


def loft(rings: npt.ArrayLike) -> Solid:
    """Skin over rings of points, closed by a face at both ends.

    Parts: side j joins points j and j + 1 of the rings; k is the first end, k + 1 the last.

    Args:
        rings: (s, k, 3) rings of k points in order around, in metres; ends should be convex.
    """
    points = np.asarray(rings, dtype=np.float64)
    count, k = points.shape[:2]
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(count - 1), np.arange(k), indexing="ij"))
    near, far = i * k + j, i * k + (j + 1) % k
    sides = np.concatenate(
        [np.stack([near, far, far + k], axis=1), np.stack([near, far + k, near + k], axis=1)]
    )
    fan = np.stack([np.zeros(k - 2, dtype=np.int64), np.arange(1, k - 1), np.arange(2, k)], axis=1)
    triangles = np.concatenate([sides, fan[:, ::-1], fan + (count - 1) * k])
    part = np.concatenate([j, j, np.full(k - 2, k), np.full(k - 2, k + 1)])
    return _outwards(points.reshape(-1, 3), triangles, part)


def box(low: Point, high: Point) -> Solid:
    """A box between two corners; parts 0 to 5 are -x, +x, -y, +y, -z, +z.

    Args:
        low: (3,) smallest coordinates in metres.
        high: (3,) largest.
    """
    (x0, y0, z0), (x1, y1, z1) = low, high
    return wedge((x0, x1, y0, y1, z0), (x0, x1, y0, y1, z1))


def wedge(base: Sequence[float], top: Sequence[float]) -> Solid:
    """A block between two level rectangles; parts 0 to 5 look to -x, +x, -y, +y, -z, +z.

    Args:
        base: x from, x to, y from, y to and z in metres of the lower rectangle.
        top: of the upper.
    """
    corners = [
        (x, y, z) for x0, x1, y0, y1, z in (base, top) for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))
    ]
    quads = np.array(
        [(0, 4, 7, 3), (1, 2, 6, 5), (0, 1, 5, 4), (2, 3, 7, 6), (0, 3, 2, 1), (4, 5, 6, 7)], dtype=np.int64
    )
    triangles = quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    return _outwards(np.array(corners, dtype=np.float64), triangles, np.repeat(np.arange(6), 2))


def prism(plan: npt.ArrayLike, low: float, high: float) -> Solid:
    """A column over a level outline; part j is the wall after corner j.

    Args:
        plan: (k, 2) corners, convex, in metres.
        low: height of its foot.
        high: of its top.
    """
    corners = np.asarray(plan, dtype=np.float64)
    foot = np.column_stack([corners, np.full(len(corners), low)])
    return loft(np.stack([foot, foot + np.array([0.0, 0.0, high - low])]))


def cylinder(
    start: Point, end: Point, radius: float, sides: int = 8, end_radius: float | None = None
) -> Solid:
    """A cylinder or cone between two points; part `sides` closes its start and `sides + 1` its end.

    Args:
        start: (3,) in metres.
        end: (3,).
        radius: at its start, in metres.
        sides: of its section.
        end_radius: at its end, the same by default.
    """
    return pipe(
        np.array([start, end], dtype=np.float64),
        [radius, radius if end_radius is None else end_radius],
        sides,
    )


def pipe(path: npt.ArrayLike, radius: Sequence[float] | float, sides: int = 5) -> Solid:
    """A round body along a line of points.

    Args:
        path: (n, 3) in metres.
        radius: at each point, or everywhere.
        sides: of its section.
    """
    points = np.asarray(path, dtype=np.float64)
    wide = np.broadcast_to(np.asarray(radius, dtype=np.float64), len(points))
    along = np.gradient(points, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    # One guide for the whole line keeps its section from twisting.
    guide = np.eye(3)[np.abs(along).sum(0).argmin()]
    across = np.cross(along, guide)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    up = np.cross(along, across)
    angle = (np.arange(sides) + 0.5) * (2 * np.pi / sides)
    spread = np.cos(angle)[None, :, None] * across[:, None] + np.sin(angle)[None, :, None] * up[:, None]
    return loft(points[:, None] + wide[:, None, None] * spread)


def ball(middle: Point, radii: Point, sides: int = 8, rows: int = 4) -> Solid:
    """An egg with its axis upright.

    Args:
        middle: (3,) in metres.
        radii: (3,) along x, y and z.
        sides: around.
        rows: from pole to pole, at least 2.
    """
    angle = np.arange(sides) * (2 * np.pi / sides)
    # The poles are small faces, which keeps every triangle's area above zero.
    tilt = np.linspace(-np.pi / 2 + 0.15, np.pi / 2 - 0.15, rows + 1)
    level = np.cos(tilt)[:, None]
    rings = np.stack(
        [
            level * np.cos(angle),
            level * np.sin(angle),
            np.broadcast_to(np.sin(tilt)[:, None], (rows + 1, sides)),
        ],
        axis=-1,
    )
    return loft(rings / np.sin(tilt[-1]) ** np.array([0, 0, 1]) * np.asarray(radii) + np.asarray(middle))


def ring(
    middle: Point, radius: float, thick: float, wide: float, *, sides: int = 14, section: int = 4
) -> Solid:
    """A ring that stands on the ground like a wheel, its axle along y.

    Parts count around the section, which begins at the tread.

    Args:
        middle: (3,) in metres.
        radius: to its outside.
        thick: from inside to outside.
        wide: along its axle.
        sides: around.
        section: corners of its section, at least 3.
    """
    turn = np.arange(sides) * (2 * np.pi / sides) - np.pi / 2
    bend = (np.arange(section) + (0.5 if section == 4 else 0.0)) * (2 * np.pi / section)
    grow = np.array([np.cos(bend), np.sin(bend)])
    grow /= np.abs(grow).max(axis=1, keepdims=True)
    away = radius - thick / 2 + grow[0] * thick / 2
    points = np.stack(
        [
            np.cos(turn)[:, None] * away,
            np.broadcast_to(grow[1] * wide / 2, (sides, section)),
            np.sin(turn)[:, None] * away,
        ],
        axis=-1,
    )
    places = np.arange(sides * section).reshape(sides, section)
    right, below = np.roll(places, -1, axis=0), np.roll(places, -1, axis=1)
    both = np.roll(below, -1, axis=0)
    quads = np.stack([places, below, both, right], axis=-1).reshape(-1, 4)
    part = np.tile(np.repeat(np.arange(section), 2), sides)
    triangles = quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    return _outwards(points.reshape(-1, 3) + np.asarray(middle), triangles, part)


def patch(quad: npt.ArrayLike, outline: npt.ArrayLike | None = None, lift: float = 0.008) -> Solid:
    """A flat piece a little above a four-cornered face: a window, a lamp, a stripe.

    Args:
        quad: (4, 3) corners of the face in metres, counter-clockwise seen from outside.
        outline: (n, 2) convex piece of it in shares: along its first side, and up from it. All by default.
        lift: how far it stands off, in metres.
    """
    a, b, c, d = np.asarray(quad, dtype=np.float64)
    share = np.array([(0, 0), (1, 0), (1, 1), (0, 1)] if outline is None else outline, dtype=np.float64)
    u, v = share[:, :1], share[:, 1:]
    flat = (1 - v) * ((1 - u) * a + u * b) + v * ((1 - u) * d + u * c)
    off = np.cross(c - a, d - b)
    vertices = flat + off / np.linalg.norm(off) * lift
    n = len(vertices)
    fan = np.stack([np.zeros(n - 2, dtype=np.int64), np.arange(1, n - 1), np.arange(2, n)], axis=1)
    return Solid(vertices, fan, np.zeros(n - 2, dtype=np.int64))


def window(u0: float, u1: float, v0: float, v1: float) -> list[tuple[float, float]]:
    """The outline of an upright rectangle for `patch`, in shares."""
    return [(u0, v0), (u1, v0), (u1, v1), (u0, v1)]


def disc(middle: Point, radius: float, facing: Point, sides: int = 10) -> Solid:
    """A round flat piece.

    Args:
        middle: (3,) in metres.
        radius: in metres.
        facing: (3,) the direction it is seen from.
        sides: corners.
    """
    out = np.asarray(facing, dtype=np.float64) / np.linalg.norm(facing)
    across = np.cross(np.eye(3)[np.abs(out).argmin()], out)
    across /= np.linalg.norm(across)
    angle = (np.arange(sides) + 0.5) * (2 * np.pi / sides)
    rim = np.cos(angle)[:, None] * across + np.sin(angle)[:, None] * np.cross(out, across)
    fan = np.stack(
        [np.zeros(sides - 2, dtype=np.int64), np.arange(1, sides - 1), np.arange(2, sides)], axis=1
    )
    return Solid(np.asarray(middle) + radius * rim, fan, np.arange(sides - 2))


def compute_planar_uv(corners: Floats) -> Floats:
    """(t, 3, 2) metres along the surface: coordinates in the axis plane that a triangle faces most.

    Args:
        corners: (t, 3, 3) in metres.
    """
    normal = np.abs(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    pair = np.array([(1, 2), (0, 2), (0, 1)])[normal.argmax(1)]
    return np.take_along_axis(corners, np.repeat(pair[:, None], 3, axis=1), axis=2)


def _outwards(vertices: Floats, triangles: Ints, part: Ints) -> Solid:
    if volume(vertices, triangles) < 0:
        triangles = triangles[:, ::-1]
    return Solid(vertices, triangles, np.asarray(part, dtype=np.int64))


Size = tuple[float, float, float]
"""Length, width and height in metres. What builds a figure takes it, a random generator for colours and details, and
`coarse`: whether a few triangles are enough, as for what is far away."""
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
    """Parts that move together.

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
            compute_planar_uv(vertices[triangles]).astype(np.float32),
        )
        joints = tuple(_scale_joint(joint, np.asarray(scale), np.asarray(offset)) for joint in self._joints)
        bulb, joint = np.array(self._bulb, dtype=np.int64), np.array(self._joint, dtype=np.int64)
        return Figure(mesh, self.wheelbase_m, tuple(self._bulbs), bulb, joints, joint)


def _scale_joint(joint: Joint, scale: Floats, offset: Floats) -> Joint:
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


# Colours of figures, and turning the hues of finished meshes.

Colour = tuple[float, float, float]

RUBBER = Paint((0.012, 0.012, 0.013))
RIM = Paint((0.34, 0.35, 0.37), Material.GLOSSY)
RIM_DARK = Paint((0.06, 0.06, 0.065))
SHADE = Paint((0.008, 0.008, 0.009))
GLASS = Paint((0.018, 0.024, 0.028), Material.GLASS)
PLASTIC = Paint((0.028, 0.028, 0.03))
METAL = Paint((0.3, 0.31, 0.33), Material.GLOSSY)
STEEL = Paint((0.14, 0.145, 0.155))
PLATE = Paint((0.72, 0.72, 0.72))
INK = Paint((0.01, 0.01, 0.01))
WHITE = Paint((0.72, 0.73, 0.73), Material.GLOSSY)

CAR_COLOURS: tuple[Colour, ...] = (
    (0.62, 0.63, 0.63),
    (0.32, 0.33, 0.34),
    (0.09, 0.095, 0.1),
    (0.02, 0.02, 0.022),
    (0.03, 0.06, 0.16),
    (0.22, 0.02, 0.02),
    (0.02, 0.07, 0.045),
    (0.24, 0.2, 0.14),
    (0.06, 0.16, 0.3),
    (0.3, 0.1, 0.02),
)
"""Muted, about in the order of how often they are seen; from white and grey to orange."""
CAR_WEIGHTS = (0.24, 0.2, 0.16, 0.13, 0.09, 0.07, 0.03, 0.03, 0.03, 0.02)
_MOST_TURNED = 1024
# Colours by the identity of what they were turned from, which is held so that its identity stays its own.
_TURNED: dict[tuple[int, float], tuple[Floats32, Floats32]] = {}


def sample_car_paint(rng: np.random.Generator) -> Paint:
    """A coat of paint as cars have it, sometimes dusty."""
    colour = np.array(CAR_COLOURS[int(rng.choice(len(CAR_COLOURS), p=CAR_WEIGHTS))])
    colour = colour * rng.uniform(0.85, 1.15)
    dust = rng.uniform(0.1, 0.35) if rng.random() < 0.15 else 0.0
    return gloss(colour * (1 - dust) + np.array([0.2, 0.17, 0.13]) * dust)


def gloss(colour: npt.ArrayLike) -> Paint:
    """A glossy coat.

    Args:
        colour: (3,) linear.
    """
    red, green, blue = np.clip(np.asarray(colour, dtype=np.float64), 0.0, 1.0).tolist()
    return Paint((red, green, blue), Material.GLOSSY)


def matt(colour: npt.ArrayLike, material: Material = Material.MATT) -> Paint:
    """A dull surface.

    Args:
        colour: (3,) linear.
        material: how it answers light.
    """
    red, green, blue = np.clip(np.asarray(colour, dtype=np.float64), 0.0, 1.0).tolist()
    return Paint((red, green, blue), material)


def scale_brightness(paint: Paint, share: float) -> Paint:
    """The same paint, darker or brighter.

    Args:
        paint: to change.
        share: of its light, below 1 for darker.
    """
    return matt(np.asarray(paint.colour) * share, paint.material)


def rotate_mesh_hue(mesh: Mesh, hue: float) -> Mesh:
    """A mesh with its hues turned around the circle; greys, lamps and what glows stay.

    Number plates are of grey, so that they stay too.

    Args:
        mesh: of anything.
        hue: 0 to 1, a full turn.
    """
    if hue % 1.0 == 0.0:
        return mesh
    # Frames of a figure share their colours, and arrays of meshes are never written to.
    key = (id(mesh.colour), hue)
    if key not in _TURNED:
        if len(_TURNED) >= _MOST_TURNED:
            _TURNED.clear()
        colour = rotate_hues(mesh.colour, hue)
        kept = (mesh.material == Material.LAMP) | (mesh.glow > 0)
        colour[kept] = mesh.colour[kept]
        _TURNED[key] = (mesh.colour, colour)
    return replace(mesh, colour=_TURNED[key][1])


def rotate_hues(colour: Floats32, hue: float) -> Floats32:
    """(n, 3) colours with another hue, and the saturation and value they had.

    Args:
        colour: (n, 3), 0 to 1.
        hue: 0 to 1, a full turn.
    """
    high, low = colour.max(axis=1), colour.min(axis=1)
    span = np.maximum(high - low, 1e-12)
    red, green, blue = colour.T
    sixth = np.where(
        high == red,
        (green - blue) / span,
        np.where(high == green, 2.0 + (blue - red) / span, 4.0 + (red - green) / span),
    )
    # The hexagon of hues: channel k falls from the highest value to the lowest and back.
    k = (np.array([5.0, 3.0, 1.0]) + (sixth + 6.0 * hue)[:, None]) % 6.0
    fall = np.clip(np.minimum(k, 4.0 - k), 0.0, 1.0)
    found: Floats32 = (high[:, None] - (high - low)[:, None] * fall).astype(np.float32)
    return found
