"""`Regions`: what lies under a point on the ground, and how high the ground is there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.simulator.layout import Crossing, Lane, Layout, Road, Turn
from roadaware.simulator.town.drawing import split_quads, triangulate_polygon
from roadaware.simulator.town.roads import BUILD_OUT_M, STOP_GAP_M, junction_kerbs
from roadaware.simulator.town.tracks import build_track, strip

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
    """All pieces of the ground of a layout.

    Args:
        layout: a town.
    """
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
    """(t, 3, 2) the area of a crossing, from kerb to kerb.

    Args:
        crossing: of it.
        road: it lies on.
    """
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
    """How far left of the road's line the middle of a lane lies, in metres.

    Args:
        lane: of the road.
        road: it belongs to.
    """
    return float(road.line.project(lane.line.at(np.array([lane.line.length / 2])))[1][0])


def build_outs(lane: Lane) -> list[Floats]:
    """(1, 4, 2) each: the pieces of pavement before and after a row of parking bays.

    Args:
        lane: the row.
    """
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
    """The rules of a layout.

    Args:
        layout: a town.
    """
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
