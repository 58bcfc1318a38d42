"""Solids of a few triangles: boxes, lofts, cylinders, balls and patches on their faces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints

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
        """The same without some of its faces, for what nobody can see.

        Args:
            parts: to leave out.
        """
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


def flat_uv(corners: Floats) -> Floats:
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
