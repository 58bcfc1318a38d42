"""Tools that build a town: polygons as triangles, painted lines and shapes, and piles of faces, boxes and
prisms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.simulator.layout import Turn
from roadaware.simulator.mesh import Material, Semantic, Soup

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
    """(n, 4, 2) an arrow, 4 m long.

    Args:
        turn: where it leads.
    """
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
    """(n, 4, 2) triangles across a lane that point at those who give way.

    Args:
        width: of the lane.
    """
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
        """The same, darker or brighter.

        Args:
            share: of its light.
        """
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
