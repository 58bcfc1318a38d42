"""`Ways`: the pavements of a layout, beside roads and round corners, with coordinates along and across."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.simulator.layout import Layout, Line
from roadaware.simulator.town.roads import junction_kerbs
from roadaware.simulator.town.tracks import Track, build_track

SPACING_M = 1.0
LINK_M = 0.6
"""Ends of pavements that lie nearer than this to each other are joined."""


@dataclass(frozen=True)
class Band:
    """A pavement along a line.

    Somebody's place on it is `s`, metres along the line, and `u`, metres from the kerb away from the road;
    where `u` is negative they are on the road.

    Args:
        line: number of its line; roads come first, under their own numbers.
        side: 1 if it lies left of the line, -1 right.
        half_m: from the line to the kerb.
        width_m: of the pavement.
        length_m: of the line.
        road: number of the road; -1 round a corner.
    """

    line: int
    side: int
    half_m: float
    width_m: float
    length_m: float
    road: int


class Ways:
    """Where people walk.

    Args:
        layout: a town, or roads alone.
    """

    def __init__(self, layout: Layout) -> None:
        tracks = [
            build_track(road.line.points).cut(0.0, road.line.length, SPACING_M) for road in layout.roads
        ]
        bands: list[Band] = []
        for road, track in zip(layout.roads, tracks, strict=True):
            bands += [
                Band(road.number, side, road.half_width_m, road.pavement_m, track.length, road.number)
                for side in (1, -1)
            ]
        for junction in layout.junctions:
            for kerb, width in junction_kerbs(layout, junction):
                if kerb.length > 0.5:
                    bands.append(Band(len(tracks), -1, 0.0, width, kerb.length, -1))
                    tracks.append(kerb.cut(0.0, kerb.length, 0.5 * SPACING_M))
        self.bands = tuple(bands)
        self._lay(tracks)
        self.links = self._linked()
        self.route = build_route_line(layout)

    def _lay(self, tracks: list[Track]) -> None:
        """Put all lines one after the other, so that one look-up serves people on any of them."""
        lengths = np.array([track.length for track in tracks])
        self._base = np.concatenate([[0.0], np.cumsum(lengths + 1.0)])[:-1]
        self._at = np.concatenate([track.s + base for track, base in zip(tracks, self._base, strict=True)])
        points = np.concatenate([track.points for track in tracks])
        self._x, self._y = points.T.copy()
        self._turn = np.concatenate([np.unwrap(track.headings) for track in tracks])
        self._bend = np.concatenate([np.gradient(np.unwrap(track.headings), track.s) for track in tracks])
        self._line = np.array([band.line for band in self.bands], dtype=np.int64)
        self.side = np.array([band.side for band in self.bands], dtype=np.float64)
        self.half = np.array([band.half_m for band in self.bands])
        self.width = np.array([band.width_m for band in self.bands])
        self.length = np.array([band.length_m for band in self.bands])

    def frame(self, band: Ints, s: Floats) -> tuple[Floats, Floats, Floats]:
        """The line of bands at lengths along it: (n, 2) points, (n,) headings, (n,) curvatures in 1/m.

        Args:
            band: (n,) numbers of bands.
            s: (n,) metres; beyond the ends, the ends.
        """
        g = self._base[self._line[band]] + np.clip(s, 0.0, self.length[band])
        point = np.stack([np.interp(g, self._at, self._x), np.interp(g, self._at, self._y)], axis=1)
        return point, np.interp(g, self._at, self._turn), np.interp(g, self._at, self._bend)

    def world(self, band: Ints, s: Floats, u: Floats) -> Floats:
        """(n, 2) places in the world.

        Args:
            band: (n,) numbers of bands.
            s: (n,) metres along them.
            u: (n,) metres from their kerbs.
        """
        point, turn, _ = self.frame(band, s)
        left = self.side[band] * (self.half[band] + u)
        found: Floats = point + left[:, None] * np.stack([-np.sin(turn), np.cos(turn)], axis=1)
        return found

    def place(self, band: int, s: float, u: float) -> Floats:
        """(2,) one place in the world."""
        found: Floats = self.world(np.array([band]), np.array([s]), np.array([u]))[0]
        return found

    def bands_of(self, road: int) -> tuple[int, int]:
        """The pavements of a road, left one first."""
        return 2 * road, 2 * road + 1

    def _linked(self) -> dict[tuple[int, int], tuple[int, int]]:
        """(band, end) to the (band, end) that goes on from there; ends are 0 and 1."""
        ends = [(band, end) for band in range(len(self.bands)) for end in (0, 1)]
        places = np.array([self.place(band, end * self.bands[band].length_m, 0.0) for band, end in ends])
        away = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for row, (band, end) in enumerate(ends):
            near = [k for k in np.flatnonzero(away[row] < LINK_M) if ends[k][0] != band]
            # Round corners rather than straight on to a road that begins where another ends.
            near.sort(key=lambda k: (self.bands[ends[k][0]].road >= 0, away[row, k], k))
            if near:
                found[band, end] = ends[near[0]]
        return found


def build_route_line(layout: Layout) -> Line:
    """The middle of the roads that the own vehicle takes, straight through junctions.

    Args:
        layout: with a route.
    """
    pieces: list[Floats] = []
    before = -1
    for number in layout.route:
        lane = layout.lanes[number]
        if lane.road != before:
            points = layout.roads[lane.road].line.points
            pieces.append(points if lane.forward else points[::-1])
        before = lane.road
    points = np.concatenate(pieces)
    apart = np.hypot(*np.diff(points, axis=0).T) > 1e-6
    return Line(points[np.concatenate([[True], apart])])
