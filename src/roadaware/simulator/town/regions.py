"""Tools that build a town out of triangles, and `Regions`: what lies under a point, and how high the ground is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.simulator.layout import Crossing, Lane, Layout, Road, Turn
from roadaware.simulator.mesh import Material, Semantic, Soup
from roadaware.simulator.town.roads import BUILD_OUT_M, STOP_GAP_M, build_track, junction_kerbs, strip

_FONT = {
    "0": ("###", "#.#", "#.#", "#.#", "###"),
    "2": ("###", "..#", "###", "#..", "###"),
    "3": ("###", "..#", "###", "..#", "###"),
    "5": ("###", "#..", "###", "..#", "###"),
    "A": (".#.", "#.#", "###", "#.#", "#.#"),
    "B": ("##.", "#.#", "##.", "#.#", "##."),
    "E": ("###", "#..", "##.", "#..", "###"),
    "L": ("#..", "#..", "#..", "#..", "###"),
    "N": ("#.#", "###", "###", "###", "#.#"),
    "O": ("###", "#.#", "#.#", "#.#", "###"),
    "P": ("###", "#.#", "###", "#..", "#.."),
    "S": ("###", "#..", "###", "..#", "###"),
    "T": ("###", ".#.", ".#.", ".#.", ".#."),
    "U": ("#.#", "#.#", "#.#", "#.#", "###"),
    "W": ("#.#", "#.#", "###", "###", "#.#"),
}


def bar(along: float, across: float, at: float = 0.0, left: float = 0.0) -> Floats:
    """(1, 4, 2) a rectangle.

    Args:
        along: its length in the direction of travel.
        across: its width.
        at: of its middle, along.
        left: of its middle.
    """
    x, y = along / 2, across / 2
    return np.array([[[at - x, left - y], [at + x, left - y], [at + x, left + y], [at - x, left + y]]])


def stroke(start: tuple[float, float], end: tuple[float, float], width: float) -> Floats:
    """(1, 4, 2) a line between two points.

    Args:
        start: along and left.
        end: along and left.
        width: of it.
    """
    a, b = np.array(start), np.array(end)
    go = (b - a) / np.hypot(*(b - a))
    aside = width / 2 * np.array([-go[1], go[0]])
    return np.stack([a - aside, b - aside, b + aside, a + aside])[None]


@cache
def build_word_symbol(text: str, wide: float, high: float) -> Floats:
    """(n, 4, 2) a word that drivers read.

    Args:
        text: of the letters that roads need.
        wide: of the word, metres across the lane.
        high: of its letters, metres along the lane.
    """
    cell = wide / (4 * len(text) - 1)
    row_m = high / 5
    quads = []
    for place, letter in enumerate(text):
        for column in range(3):
            filled = [_FONT[letter][row][column] == "#" for row in range(5)]
            left = wide / 2 - (4 * place + column + 0.5) * cell
            # (start, end) of runs of True.
            steps = np.flatnonzero(np.diff([False, *filled, False]))
            for first, last in [(int(a), int(b)) for a, b in steps.reshape(-1, 2)]:
                top, bottom = high / 2 - first * row_m, high / 2 - last * row_m
                quads.append(bar(top - bottom, cell, (top + bottom) / 2, left))
    return np.concatenate(quads)


def _tooth(tip: tuple[float, float], base: tuple[float, float], width: float) -> Floats:
    """(1, 4, 2) a triangle from the middle of its base to its tip."""
    a, b = np.array(base), np.array(tip)
    go = (b - a) / np.hypot(*(b - a))
    aside = width / 2 * np.array([-go[1], go[0]])
    return np.stack([a - aside, b, b, a + aside])[None]


@cache
def build_arrow_symbol(turn: Turn) -> Floats:
    """(n, 4, 2) an arrow, 4 m long."""
    if turn == "straight":
        return np.concatenate([bar(2.6, 0.16, -0.7), _tooth((2.0, 0.0), (0.6, 0.0), 0.7)])
    side = 1.0 if turn == "left" else -1.0
    bent = [
        bar(1.7, 0.16, -1.15),
        stroke((-0.4, -0.02 * side), (0.35, 0.35 * side), 0.2),
        _tooth((0.75, 1.0 * side), (0.3, 0.3 * side), 0.8),
    ]
    return np.concatenate(bent)


@cache
def build_bicycle_symbol() -> Floats:
    """(n, 4, 2) a bicycle, 1.9 m long and 1.1 m wide."""
    angle = np.linspace(0.0, 2 * np.pi, 9)
    quads = []
    for hub in (-0.32, 0.32):
        rim = [(-0.5 + 0.38 * np.cos(a), hub + 0.22 * np.sin(a)) for a in angle]
        quads += [stroke(a, b, 0.07) for a, b in pairwise(rim)]
    frame = [
        ((-0.5, 0.32), (0.1, 0.2)),
        ((-0.5, 0.32), (-0.45, 0.02)),
        ((-0.45, 0.02), (0.15, 0.16)),
        ((-0.45, 0.02), (0.2, -0.18)),
        ((0.1, 0.2), (0.1, -0.17)),
        ((-0.5, -0.32), (0.5, -0.14)),
        ((0.5, -0.24), (0.5, -0.02)),
        ((0.28, 0.28), (0.28, 0.1)),
    ]
    quads += [stroke(a, b, 0.07) for a, b in frame]
    return np.concatenate(quads)


@cache
def dashes_across(width: float, mark: float, gap: float, thick: float) -> Floats:
    """(n, 4, 2) a broken line across a lane.

    Args:
        width: of the lane.
        mark: length of a dash.
        gap: between dashes.
        thick: of the dashes, along the lane.
    """
    n = max(1, int((width + gap) / (mark + gap)))
    lefts = (np.arange(n) - (n - 1) / 2) * (mark + gap)
    return np.concatenate([bar(thick, mark, 0.0, float(left)) for left in lefts])


@cache
def teeth_across(width: float) -> Floats:
    """(n, 4, 2) triangles across a lane that point at those who give way."""
    n = max(1, int(width / 0.75))
    lefts = (np.arange(n) - (n - 1) / 2) * 0.75
    return np.concatenate([_tooth((-0.35, float(left)), (0.35, float(left)), 0.5) for left in lefts])


# Polygons of the ground as triangles.


def triangulate_polygon(corners: Floats) -> Floats:
    """(n - 2, 3, 2) a polygon without holes as triangles, counter-clockwise.

    Args:
        corners: (n, 2) counter-clockwise, in metres.
    """
    left = list(range(len(corners)))
    found = []
    while len(left) > 3:
        place = _ear(corners, left)
        n = len(left)
        found.append([left[place - 1], left[place], left[(place + 1) % n]])
        left.pop(place)
    found.append(left)
    triangles: Floats = corners[np.array(found)]
    return triangles


def _ear(corners: Floats, left: list[int]) -> int:
    """The place of a corner that can be cut off: the fattest of those that hold no other corner."""
    now = corners[left]
    before, after = np.roll(now, 1, axis=0), np.roll(now, -1, axis=0)
    area = _cross(now - before, after - now)
    best, found = -np.inf, int(area.argmax())
    for place in np.argsort(-area):
        # From the largest on: at the first corner that turns inwards all the rest do.
        if area[place] <= 0 or area[place] <= best:
            break
        a, b, c = before[place], now[place], after[place]
        inside = (
            # Corners of the ear itself lie on its edges, and must not count as inside by rounding.
            (_cross(b - a, now - a) > 1e-9)
            & (_cross(c - b, now - b) > 1e-9)
            & (_cross(a - c, now - c) > 1e-9)
        )
        if not inside.any():
            best, found = float(area[place]), int(place)
    return found


def _cross(a: Floats, b: Floats) -> Floats:
    product: Floats = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


def split_quads(quads: Floats) -> Floats:
    """(2 n, 3, d) quadrilaterals as triangles.

    Args:
        quads: (n, 4, d).
    """
    return quads[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, quads.shape[-1])


# Pile: faces, boxes, prisms and lumps put together and set down in the world as a Soup.

Colour = tuple[float, float, float]


class Coat(NamedTuple):
    """A surface.

    Args:
        colour: linear, 0 to 1.
        material: how it answers light.
        semantic: what it belongs to.
        glow: light it gives off.
    """

    colour: Colour
    material: Material = Material.MATT
    semantic: Semantic = Semantic.BUILDING
    glow: float = 0.0

    def shaded(self, share: float) -> Coat:
        """The same, darker or brighter."""
        red, green, blue = (min(1.0, part * share) for part in self.colour)
        return self._replace(colour=(red, green, blue))


@dataclass(eq=False)
class Pile:
    """Triangles in the axes of one thing, x forward, y left, z up.

    Args:
        parts: (n, 3 or 4, 3) faces, their coat, and their (n, 3 or 4, 2) uv; None where it is to be measured.
    """

    parts: list[tuple[Floats, Coat, Floats | None]] = field(default_factory=list)

    def faces(self, faces: npt.ArrayLike, coat: Coat, uv: Floats | None = None) -> None:
        """Flat faces.

        Args:
            faces: (n, 3, 3) or (n, 4, 3), counter-clockwise seen from outside.
            coat: of all.
            uv: (n, 3 or 4, 2) metres along them (default: measured along their first edges).
        """
        shape = np.asarray(faces, dtype=np.float64)
        if len(shape):
            self.parts.append((shape, coat, uv))

    def flat(self, polygons: Floats, height: float, coat: Coat) -> None:
        """Ground, with patterns that run on from one piece to the next.

        Args:
            polygons: (n, 3, 2) or (n, 4, 2), counter-clockwise.
            height: of it in metres.
            coat: of all.
        """
        if len(polygons):
            level = np.full((*polygons.shape[:2], 1), height)
            self.faces(np.concatenate([polygons, level], axis=2), coat, polygons)

    def upright(self, feet: Floats, low: float, high: float, coat: Coat) -> None:
        """Walls above lines on the ground, seen from the right of their direction.

        Args:
            feet: (n, 2, 2) start and end of each.
            low: height of their foot.
            high: height of their top.
            coat: of all.
        """
        walls = np.concatenate([feet, feet[:, ::-1]], axis=1)
        level = np.broadcast_to(np.array([low, low, high, high])[:, None], (len(feet), 4, 1))
        self.faces(np.concatenate([walls, level], axis=2), coat)

    def box(self, low: tuple[float, float, float], high: tuple[float, float, float], coat: Coat) -> None:
        """A box without a bottom.

        Args:
            low: its least x, y, z.
            high: its greatest.
            coat: of all sides.
        """
        (x0, y0, z0), (x1, y1, z1) = low, high
        ring = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
        self.upright(np.stack([ring, np.roll(ring, -1, axis=0)], axis=1), z0, z1, coat)
        top = np.concatenate([ring, np.full((4, 1), z1)], axis=1)
        self.faces(top[None], coat)

    def under(self, low: tuple[float, float], high: tuple[float, float], height: float, coat: Coat) -> None:
        """A level face that is seen from below.

        Args:
            low: its least x and y.
            high: its greatest.
            height: of it.
            coat: of it.
        """
        (x0, y0), (x1, y1) = low, high
        self.faces([[[x0, y0, height], [x0, y1, height], [x1, y1, height], [x1, y0, height]]], coat)

    def prism(
        self,
        place: tuple[float, float],
        radii: tuple[float, float],
        low: float,
        high: float,
        coat: Coat,
        sides: int = 6,
        top: bool = False,
    ) -> None:
        """A post: a prism or a cut cone.

        Args:
            place: x and y of its axis.
            radii: at foot and top.
            low: height of its foot.
            high: of its top.
            coat: of it.
            sides: how many.
            top: whether it is closed above.
        """
        angle = np.arange(sides + 1) * 2 * np.pi / sides
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        foot = np.column_stack([np.array(place) + radii[0] * ring, np.full(sides + 1, low)])
        head = np.column_stack([np.array(place) + radii[1] * ring, np.full(sides + 1, high)])
        if radii[1] > 1e-6:
            self.faces(np.stack([foot[:-1], foot[1:], head[1:], head[:-1]], axis=1), coat)
        else:
            self.faces(np.stack([foot[:-1], foot[1:], head[1:]], axis=1), coat)
        if top:
            middle = np.broadcast_to(np.array([*place, high]), (sides, 3))
            self.faces(np.stack([head[:-1], head[1:], middle], axis=1), coat)

    def lump(
        self, place: tuple[float, float, float], radii: tuple[float, float, float], coat: Coat, bumps: Floats
    ) -> None:
        """A bumpy ball with twenty faces.

        Args:
            place: of its middle.
            radii: along the three axes.
            coat: of it.
            bumps: (12,) how far its corners stand out, 1 for a smooth one.
        """
        corners = np.array(place) + _ICO_CORNERS * np.array(radii) * bumps[:, None]
        self.faces(corners[_ICO_FACES], coat)

    def soup(self, place: tuple[float, float] = (0.0, 0.0), heading: float = 0.0) -> Soup:
        """Everything, set down in the world.

        Args:
            place: x and y of its origin.
            heading: of its x axis, in radians.
        """
        kinds = [self._triangles(n) for n in (3, 4)]
        corners, uv = (np.concatenate([kind[k] for kind in kinds]) for k in (0, 1))
        coats, counts = kinds[0][2] + kinds[1][2], kinds[0][3] + kinds[1][3]
        if not coats:
            return _EMPTY
        if heading != 0.0 or place != (0.0, 0.0):
            c, s = np.cos(heading), np.sin(heading)
            turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
            corners = corners @ turn + np.array([*place, 0.0])
        colour, material, semantic, glow = zip(*coats, strict=True)
        return Soup(
            corners.astype(np.float32),
            np.repeat(np.array(colour, dtype=np.float32), counts, axis=0),
            np.repeat(np.array(material, dtype=np.uint8), counts),
            np.repeat(np.array(semantic, dtype=np.uint8), counts),
            np.repeat(np.array(glow, dtype=np.float32), counts),
            uv.astype(np.float32),
            np.zeros(len(corners), dtype=np.int32),
        )

    def _triangles(self, n: int) -> tuple[Floats, Floats, list[Coat], list[int]]:
        """Corners and uv of the faces with n corners as triangles, and the coat and number of each part."""
        parts = [part for part in self.parts if part[0].shape[1] == n]
        if not parts:
            return np.zeros((0, 3, 3)), np.zeros((0, 3, 2)), [], []
        faces = np.concatenate([part[0] for part in parts])
        # Measured for all at once: most parts are single faces, for which a call costs more than the work.
        marks, start = _compute_face_uv(faces), 0
        for shape, _, uv in parts:
            if uv is not None:
                marks[start : start + len(shape)] = uv
            start += len(shape)
        counts = [len(part[0]) * (n - 2) for part in parts]
        if n == 4:
            faces, marks = split_quads(faces), split_quads(marks)
        return faces, marks, [part[1] for part in parts], counts


def _compute_face_uv(faces: Floats) -> Floats:
    """Metres along the first edge of each face and across it; z counts from the ground where it stands."""
    first = faces[:, 1] - faces[:, 0]
    first /= np.maximum(np.linalg.norm(first, axis=1), 1e-9)[:, None]
    normal = np.cross(first, faces[:, 2] - faces[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-9)[:, None]
    across = np.cross(normal, first)
    away = faces - faces[:, :1]
    marks: Floats = np.stack([(away * first[:, None]).sum(2), (away * across[:, None]).sum(2)], axis=2)
    marks[..., 1] += faces[:, :1, 2]
    return marks


def _icosahedron() -> tuple[Floats, npt.NDArray[np.int64]]:
    """Corners and faces of an icosahedron with a radius of 1."""
    g = (1 + np.sqrt(5)) / 2
    corners = np.array([[0, a, b * g] for a in (-1, 1) for b in (-1, 1)])
    corners = np.concatenate([corners, corners[:, [2, 0, 1]], corners[:, [1, 2, 0]]])
    gaps = np.linalg.norm(corners[:, None] - corners, axis=2)
    faces = []
    for a in range(12):
        for b in range(a + 1, 12):
            for c in range(b + 1, 12):
                if max(gaps[a, b], gaps[b, c], gaps[a, c]) < 2.1:
                    out = np.cross(corners[b] - corners[a], corners[c] - corners[a]) @ corners[a]
                    faces.append((a, b, c) if out > 0 else (a, c, b))
    return corners / np.sqrt(1 + g * g), np.array(faces)


_ICO_CORNERS, _ICO_FACES = _icosahedron()
_EMPTY = Soup(
    np.zeros((0, 3, 3), np.float32),
    np.zeros((0, 3), np.float32),
    np.zeros(0, np.uint8),
    np.zeros(0, np.uint8),
    np.zeros(0, np.float32),
    np.zeros((0, 3, 2), np.float32),
    np.zeros(0, np.int32),
)


KERB_M = 0.12
"""How high pavements lie above roads."""
# Some times the size of a lane's width: a point is then held against a few triangles, and a triangle lies in
# a few cells.
CELL_M = 8.0
SHELTER_M = 3.5
"""How far the waiting area of a bus stop reaches to both sides of its middle."""


class On(IntEnum):
    """Ground type under a point; of several the greatest counts."""

    OFF = 0
    ROAD = 1
    JUNCTION = 2
    PARKING = 3
    PAVEMENT = 4
    BUS_STOP = 5
    CROSSING = 6


@dataclass(frozen=True, eq=False)
class Where:
    """Ground types under points.

    Args:
        lane: (n,) number of the lane, pavements and parking included; -1 for none.
        on: (n,) `On`.
        road: (n,) number of the road, pavements included; -1 in junctions and off the roads.
        crossing: (n,) number of the crossing, -1 for none.
        junction: (n,) number of the junction, pavements round its corners included; -1 for none.
        height_m: (n,) of the ground: pavements lie higher than roads.
    """

    lane: Ints
    on: Ints
    road: Ints
    crossing: Ints
    junction: Ints
    height_m: Floats


@dataclass(frozen=True, eq=False)
class Patch:
    """A piece of ground.

    Args:
        triangles: (t, 3, 2) in metres.
        on: what it is.
        lane: number of its lane, -1 for none.
        road: number of its road, -1 for none.
        crossing: number of its crossing, -1 for none.
        junction: number of its junction, -1 for none.
        raised: whether it lies as high as pavements.
    """

    triangles: Floats
    on: On
    lane: int = -1
    road: int = -1
    crossing: int = -1
    junction: int = -1
    raised: bool = False


class Regions:
    """The ground of a layout by place.

    Args:
        layout: a town.
    """

    def __init__(self, layout: Layout) -> None:
        patches = build_ground_patches(layout)
        counts = [len(patch.triangles) for patch in patches]
        marks = [
            (patch.lane, int(patch.on), patch.road, patch.crossing, patch.junction, int(patch.raised) - 1)
            for patch in patches
        ]
        self._marks = np.repeat(np.array(marks, dtype=np.int64), counts, axis=0)
        corners = np.concatenate([patch.triangles for patch in patches])
        self._start = corners
        self._edge = np.roll(corners, -1, axis=1) - corners
        self._lowest = np.floor(corners.min((0, 1)) / CELL_M).astype(np.int64)
        self._cells(corners)

    def _cells(self, corners: Floats) -> None:
        """Note for each cell of a grid which triangles touch it."""
        low = np.floor(corners.min(1) / CELL_M).astype(np.int64) - self._lowest
        high = np.floor(corners.max(1) / CELL_M).astype(np.int64) - self._lowest
        self._size = high.max(0) + 1
        wide = high - low + 1
        counts = wide.prod(1)
        owner = np.repeat(np.arange(len(corners)), counts)
        step = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        cell = (
            (low[owner, 0] + step // wide[owner, 1]) * self._size[1] + low[owner, 1] + step % wide[owner, 1]
        )
        order = np.argsort(cell, kind="stable")
        self._members = owner[order]
        # A dictionary of used cells would be slower than a search in their sorted numbers.
        self._used, self._first = np.unique(cell[order], return_index=True)
        self._last = np.append(self._first[1:], len(order))

    def at(self, points: npt.ArrayLike) -> Where:
        """Ground types under points.

        Args:
            points: (n, 2) in metres.
        """
        places = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        found = np.full((len(places), 6), -1, dtype=np.int64)
        row, triangle = self._candidates(places)
        away = places[row, None] - self._start[triangle]
        edge = self._edge[triangle]
        # Points on a seam belong to both sides.
        inside = (edge[..., 0] * away[..., 1] - edge[..., 1] * away[..., 0] > -1e-7).all(1)
        # Unbuffered: a point may be in several triangles, and plain indexing would keep the last of them.
        np.maximum.at(found, row[inside], self._marks[triangle[inside]])
        on = np.maximum(found[:, 1], 0)
        return Where(
            found[:, 0], on, found[:, 2], found[:, 3], found[:, 4], np.where(found[:, 5] == 0, KERB_M, 0.0)
        )

    def _candidates(self, places: Floats) -> tuple[Ints, Ints]:
        """Pairs of a point and a triangle that may hold it."""
        at = np.floor(places / CELL_M).astype(np.int64) - self._lowest
        valid = ((at >= 0) & (at < self._size)).all(1)
        cell = at[:, 0] * self._size[1] + at[:, 1]
        # Only cells that hold anything are stored; the comparison below finds those that are not.
        slot = np.minimum(np.searchsorted(self._used, cell), len(self._used) - 1)
        valid &= self._used[slot] == cell
        counts = np.where(valid, self._last[slot] - self._first[slot], 0)
        row = np.repeat(np.arange(len(places)), counts)
        step = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        return row, self._members[self._first[slot[row]] + step]


def build_ground_patches(layout: Layout) -> list[Patch]:
    """All pieces of the ground of a layout."""
    found: list[Patch] = []
    for road in layout.roads:
        band = build_track(road.line.points).cut(0.0, road.line.length, 10.0)
        whole = strip(band, -road.half_width_m, road.half_width_m)
        found.append(Patch(split_quads(whole), On.ROAD, road=road.number))
        for number in road.lanes:
            found += _lane_patches(layout.lanes[number], road)
    for junction in layout.junctions:
        found.append(Patch(triangulate_polygon(junction.outline), On.JUNCTION, junction=junction.number))
        for kerb, width in junction_kerbs(layout, junction):
            corner = split_quads(strip(kerb, -width, 0.0))
            found.append(Patch(corner, On.PAVEMENT, junction=junction.number, raised=True))
    for crossing in layout.crossings:
        road = layout.roads[crossing.road]
        found.append(Patch(crossing_triangles(crossing, road), On.CROSSING, -1, road.number, crossing.number))
    return found


def crossing_triangles(crossing: Crossing, road: Road) -> Floats:
    """(t, 3, 2) the area of a crossing, from kerb to kerb."""
    half = crossing.width_m / 2
    piece = build_track(road.line.points).cut(crossing.s_m - half, crossing.s_m + half)
    return split_quads(strip(piece, -road.half_width_m, road.half_width_m))


def _lane_patches(lane: Lane, road: Road) -> list[Patch]:
    """A lane, its bus stops, and the build-outs at both ends of a row of parking bays."""
    track = build_track(lane.line.points).cut(0.0, lane.line.length, 10.0)
    half = lane.width_m / 2
    kind = {"pavement": On.PAVEMENT, "parking": On.PARKING}.get(lane.kind, On.ROAD)
    raised = lane.kind == "pavement"
    found = [
        Patch(split_quads(strip(track, -half, half)), kind, lane.number, road.number, raised=raised),
    ]
    found += [_stop_patch(lane, road, bay) for bay in lane.bays]
    if lane.bays:
        found += [_waiting_patch(lane, road, bay) for bay in lane.bays]
    if lane.kind == "parking":
        for piece in build_outs(lane):
            found.append(Patch(split_quads(piece), On.PAVEMENT, -1, road.number, raised=True))
    return found


def lateral_offset(lane: Lane, road: Road) -> float:
    """How far left of the road's line the middle of a lane lies, in metres."""
    return float(road.line.project(lane.line.at(np.array([lane.line.length / 2])))[1][0])


def build_outs(lane: Lane) -> list[Floats]:
    """(1, 4, 2) each: the pieces of pavement before and after a row of parking bays."""
    half, length = lane.width_m / 2, lane.line.length
    found = []
    for start, end in ((-BUILD_OUT_M, 0.0), (length, length + BUILD_OUT_M)):
        ends = np.array([start, end])
        low, high = lane.line.beside(ends, -half), lane.line.beside(ends, half)
        found.append(np.stack([low[0], low[1], high[1], high[0]])[None])
    return found


def _outwards(lane: Lane, road: Road, bay: tuple[float, float], near: float, far: float) -> Floats:
    """(t, 3, 2) the ground beside a stretch of a lane between two distances from the road's line."""
    track = build_track(lane.line.points).cut(max(bay[0], 0.0), min(bay[1], lane.line.length), 10.0)
    side = lane.side if lane.forward else -lane.side
    own = abs(lateral_offset(lane, road))
    edges = sorted((side * (near - own), side * (far - own)))
    return split_quads(strip(track, edges[0], edges[1]))


def _stop_patch(lane: Lane, road: Road, bay: tuple[float, float]) -> Patch:
    """Where buses stop: beside the lane where there is room up to the kerb, else on it."""
    inner = abs(lateral_offset(lane, road)) - lane.width_m / 2
    outer = inner + lane.width_m
    beside = road.half_width_m - outer > 2.0
    area = _outwards(lane, road, bay, outer if beside else inner, road.half_width_m)
    return Patch(area, On.BUS_STOP, -1, road.number)


def _waiting_patch(lane: Lane, road: Road, bay: tuple[float, float]) -> Patch:
    """Where people wait for the bus."""
    middle = (bay[0] + bay[1]) / 2
    span = (middle - SHELTER_M, middle + SHELTER_M)
    area = _outwards(lane, road, span, road.half_width_m, road.half_width_m + road.pavement_m)
    return Patch(area, On.BUS_STOP, -1, road.number, raised=True)


# Rules: what holds on each road and lane of a layout, looked up by number.

MOUTH_M = 9.0
"""Lines end at a crossing that lies nearer than this to the end of its road."""
_ORDER: tuple[Turn, ...] = ("left", "straight", "right")


@dataclass(frozen=True, eq=False)
class Rules:
    """Traffic rules by region.

    Args:
        crossings: of each road, by its number.
        free: (start, end) along each road between its crossings, by its number.
        stops: lane number to where on it one stops, and whether a light says so.
        turns: lane number to where one may go from it.
    """

    crossings: dict[int, tuple[Crossing, ...]]
    free: dict[int, tuple[tuple[float, float], ...]]
    stops: dict[int, tuple[float, bool]]
    turns: dict[int, tuple[Turn, ...]]


def build_rules(layout: Layout) -> Rules:
    """The rules of a layout."""
    crossings: dict[int, list[Crossing]] = {road.number: [] for road in layout.roads}
    for crossing in layout.crossings:
        crossings[crossing.road].append(crossing)
    free = {road.number: _free(crossings[road.number], road.line.length) for road in layout.roads}
    stops: dict[int, tuple[float, bool]] = {}
    turns: dict[int, set[Turn]] = {}
    for junction in layout.junctions:
        for lane, s in junction.stops.items():
            stops[lane] = (s, bool(junction.signals))
        for way in junction.connectors:
            turns.setdefault(way.start, set()).add(way.turn)
    ordered = {lane: tuple(turn for turn in _ORDER if turn in ways) for lane, ways in turns.items()}
    return Rules({number: tuple(own) for number, own in crossings.items()}, free, stops, ordered)


def _free(crossings: list[Crossing], length: float) -> tuple[tuple[float, float], ...]:
    found, low = [], 0.0
    for crossing in sorted(crossings, key=lambda x: x.s_m):
        half = crossing.width_m / 2 + STOP_GAP_M
        start, end = crossing.s_m - half, crossing.s_m + half
        if start - low > (MOUTH_M if low == 0.0 else 0.0):
            found.append((low, start))
        low = end
    if length - low > (MOUTH_M if low > 0.0 else 0.0):
        found.append((low, length))
    return tuple(found)
