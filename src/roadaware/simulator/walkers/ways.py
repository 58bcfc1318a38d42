"""`Ways`: the pavements of a layout and where people cross; and the bodies on them, which keep apart and off the road."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.simulator.layout import Layout, Line
from roadaware.simulator.town.roads import BUILD_OUT_M, Track, build_track, junction_kerbs

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


PlaceKind = Literal["zebra", "signalled", "junction", "midblock"]
SIGNALIZED = {"zebra": "C", "signalled": "CS", "junction": "n/a", "midblock": "n/a"}
"""What regulates a place, as PIE says it: lines (C), lines and a signal (CS)."""


@dataclass(frozen=True)
class Place:
    """A crossing place, seen from one side.

    Args:
        band: number of the pavement they come from.
        far: number of the pavement they go to.
        road: number of the road.
        s: metres along the road.
        spread_m: how far to both sides they may stray.
        kind: how it is marked.
        walker_lights: numbers of the signals for those who walk.
        vehicle_lights: numbers of the signals that stop vehicles here.
        near_m: how far the pavement is built out into the road on this side.
        far_m: the same on the other side.
    """

    band: int
    far: int
    road: int
    s: float
    spread_m: float
    kind: PlaceKind
    walker_lights: tuple[int, ...] = ()
    vehicle_lights: tuple[int, ...] = ()
    near_m: float = 0.0
    far_m: float = 0.0


def collect_marked_places(layout: Layout, ways: Ways) -> tuple[Place, ...]:
    """Both sides of all zebra and signalled crossings."""
    found = []
    for crossing in layout.crossings:
        lights = [layout.signals[number] for number in crossing.signals]
        walkers = tuple(light.number for light in lights if light.for_walkers)
        others = tuple(light.number for light in lights if not light.for_walkers)
        sides = ways.bands_of(crossing.road)
        spread = max(0.3, crossing.width_m / 2 - 0.5)
        for band, far in (sides, sides[::-1]):
            found.append(
                Place(band, far, crossing.road, crossing.s_m, spread, crossing.kind, walkers, others)
            )
    return tuple(found)


def find_unmarked_place(layout: Layout, ways: Ways, band: int, s: float) -> Place | None:
    """A place without marks; None where parking bays are in the way, or a marked crossing is near.

    Args:
        layout: a town.
        ways: its pavements.
        band: number of the pavement somebody comes from, beside a road.
        s: metres along the road.
    """
    here = ways.bands[band]
    left, right = ways.bands_of(here.road)
    far = right if band == left else left
    if not 1.0 <= s <= here.length_m - 1.0:
        return None
    if any(other.road == here.road and abs(other.s_m - s) < 4.5 for other in layout.crossings):
        return None
    near_m, far_m = (kerb_shift(layout, here.road, side, s) for side in (here.side, -here.side))
    if near_m is None or far_m is None:
        return None
    at_end = min(s, here.length_m - s) < 3.0
    return Place(
        band, far, here.road, s, 0.25, "junction" if at_end else "midblock", near_m=near_m, far_m=far_m
    )


def kerb_shift(layout: Layout, road: int, side: int, s: float) -> float | None:
    """How far the pavement reaches into the road at a length of it; None where cars may park.

    Args:
        layout: a town.
        road: number of the road.
        side: 1 left, -1 right.
        s: metres along the road.
    """
    for number in layout.roads[road].lanes:
        lane = layout.lanes[number]
        if lane.kind != "parking" or lane.side != side:
            continue
        along = layout.roads[road].line.project(lane.line.points[[0, -1]])[0]
        start, end = float(along.min()), float(along.max())
        # Half a body and a little: nobody squeezes between two bumpers.
        if start - 0.45 < s < end + 0.45:
            return None
        if start - BUILD_OUT_M - 0.45 < s < end + BUILD_OUT_M + 0.45:
            inside = start - BUILD_OUT_M + 0.45 < s < end + BUILD_OUT_M - 0.45
            return lane.width_m if inside else None
    return 0.0


def stop_places(layout: Layout) -> tuple[tuple[int, float], ...]:
    """(band, s) of the middle of all bus stops."""
    found = []
    for lane in layout.lanes:
        for start, end in lane.bays:
            point = lane.line.at([(start + end) / 2])
            s = float(layout.roads[lane.road].line.project(point)[0][0])
            found.append((2 * lane.road + (0 if lane.side > 0 else 1), s))
    return tuple(found)


EDGE_M = 0.25
"""Nobody who walks on comes nearer to the edges of a pavement."""
PUSH_OFF = 2.6
TURN_RAD_S = 4.0
LAG_S = 0.35


class Bodies:
    """Positions, speeds and headings of people on bands.

    Args:
        ways: the pavements.
        band: (n,) numbers of bands.
        s: (n,) metres along them.
        u: (n,) metres from their kerbs.
        party: (n,) people of a number belong together.
        keep_left: whether people dodge to the left.
    """

    def __init__(
        self, ways: Ways, band: Ints, s: Floats, u: Floats, party: Ints, keep_left: bool, obstacles: Floats
    ) -> None:
        n = len(band)
        self.ways, self.band, self.s, self.u = ways, band.copy(), s.copy(), u.copy()
        self.party, self._dodge = party, 1.0 if keep_left else -1.0
        self.vs, self.vu = np.zeros(n), np.zeros(n)
        self.goal_s, self.goal_u = np.zeros(n), np.zeros(n)
        self.facing = np.full(n, np.nan)
        self.free = np.zeros(n, dtype=np.bool_)
        self.still = np.zeros(n, dtype=np.bool_)
        self.narrow = np.zeros(n, dtype=np.bool_)
        self.xy = ways.world(band, s, u)
        self.velocity = np.zeros((n, 2))
        self.heading = np.zeros(n)
        self.road_turn = np.zeros(n)
        self._lag = np.zeros((n, 2))
        self._obstacles = obstacles

    def switch(self, k: int, band: int, s: float, u: float, turned: bool) -> None:
        """Describe somebody by another band without moving them.

        Args:
            k: who.
            band: number of the new band.
            s: metres along it.
            u: metres from its kerb.
            turned: whether the new line runs the other way.
        """
        self.band[k], self.s[k], self.u[k] = band, s, u
        if turned:
            self.vs[k] = -self.vs[k]
        self._lag[k] = self.xy[k] - self.ways.place(band, s, u)

    def step(self, dt: float, who: Ints) -> None:
        """Move those who are about.

        Args:
            dt: seconds.
            who: (m,) rows.
        """
        _, turn, bend = self.ways.frame(self.band[who], self.s[who])
        side = self.ways.side[self.band[who]]
        along, out = np.stack([np.cos(turn), np.sin(turn)], 1), np.stack([-np.sin(turn), np.cos(turn)], 1)
        slow, push = self._avoid(who)
        # Where the pavement is built out into the road there is no room to step aside.
        goal_s = self.goal_s[who] * slow + np.where(self.narrow[who], 0.0, (push * along).sum(1))
        goal_u = self.goal_u[who] * slow + side * (push * out).sum(1)
        change = np.stack([goal_s - self.vs[who], goal_u - self.vu[who]], 1)
        size = np.maximum(np.hypot(change[:, 0], change[:, 1]), 1e-9)
        # At most 3 m/s2, in whatever direction: nobody starts or stops at once.
        change *= np.minimum(1.0, 3.0 * dt / size)[:, None]
        self.vs[who] += change[:, 0]
        self.vu[who] += change[:, 1]
        self._advance(dt, who, bend * side * (self.ways.half[self.band[who]] + self.u[who]))
        _, turn, _ = self.ways.frame(self.band[who], self.s[who])
        self.road_turn[who] = turn
        self._turn(dt, who, turn)

    def _advance(self, dt: float, who: Ints, bend: Floats) -> None:
        """Take a step, on the inside of bends a shorter one along the line."""
        # Bounded, since beyond the centre of a tight bend the factor would be 0 or turn round.
        self.s[who] += self.vs[who] * dt / np.clip(1.0 - bend, 0.3, 3.0)
        u = self.u[who] + self.vu[who] * dt
        band = self.band[who]
        kept = np.clip(u, EDGE_M, self.ways.width[band] - EDGE_M)
        self.u[who] = np.where(self.free[who], u, kept)
        # An exponential, so that how fast it dies away does not depend on the length of a step.
        self._lag[who] *= np.exp(-dt / LAG_S)
        before = self.xy[who]
        self.xy[who] = self.ways.world(band, self.s[who], self.u[who]) + self._lag[who]
        self.velocity[who] = (self.xy[who] - before) / dt

    def _turn(self, dt: float, who: Ints, road: Floats) -> None:
        """Turn towards where they go, or where they want to face while they stand or step back."""
        facing = self.facing[who]
        going = np.arctan2(self.velocity[who, 1], self.velocity[who, 0])
        moving = np.hypot(self.velocity[who, 0], self.velocity[who, 1]) > 0.25
        aim = np.where(np.isnan(facing), np.where(moving, going, self.heading[who]), road + facing)
        off = (aim - self.heading[who] + np.pi) % (2 * np.pi) - np.pi
        self.heading[who] += np.clip(off, -TURN_RAD_S * dt, TURN_RAD_S * dt)

    def _avoid(self, who: Ints) -> tuple[Floats, Floats]:
        """(m,) how much to slow down, and (m, 2) a velocity that leads out of others' way."""
        xy, velocity = self.xy[who], self.velocity[who]
        pace = np.hypot(velocity[:, 0], velocity[:, 1])
        # Who stands has no direction; far from 0, or trembling would be blown up to one.
        front = velocity / np.maximum(pace, 0.05)[:, None]
        blocks = np.concatenate([xy, self._near_obstacles(xy)])
        away = blocks[None] - xy[:, None]
        # Everybody is 0 m from themselves.
        apart = np.hypot(away[..., 0], away[..., 1]) + 1e-9
        others = len(blocks) - len(who)
        same = np.zeros((len(who), len(blocks)), dtype=np.bool_)
        same[:, : len(who)] = self.party[who][:, None] == self.party[who]
        room = np.where(same, 0.5, 0.75)
        mine = np.zeros_like(same)
        np.fill_diagonal(mine, True)
        press = np.where(mine, 0.0, np.maximum(room - apart, 0.0))
        push: Floats = -PUSH_OFF * (press[..., None] * away / apart[..., None]).sum(1)
        ahead = away[..., 0] * front[:, None, 0] + away[..., 1] * front[:, None, 1]
        left = front[:, None, 0] * away[..., 1] - front[:, None, 1] * away[..., 0]
        theirs = np.concatenate([velocity, np.zeros((others, 2))])
        closing = pace[:, None] - (front[:, None] * theirs[None]).sum(2)
        # Looks 1.8 s ahead by the speed at which they close, so that nobody dodges who walks the same way.
        met = ~same & (ahead > 0.2) & (ahead < 0.6 + 1.8 * closing) & (np.abs(left) < 0.7) & (closing > 0.2)
        met &= (pace > 0.3)[:, None]
        # Head on both would choose by rounding, and into each other's
        # way: then by the side that a country drives on.
        sign = np.where(np.abs(left) > 0.15, -np.sign(left), self._dodge)
        sway = np.where(met, sign * (0.75 - np.abs(left)), 0.0)
        most = np.abs(sway).argmax(1)
        chosen = 1.1 * np.take_along_axis(sway, most[:, None], 1)[:, 0]
        push = push + chosen[:, None] * np.stack([-front[:, 1], front[:, 0]], 1)
        hard: Bools = met & (ahead < 0.9) & (np.abs(left) < 0.4)
        slow = np.where(hard.any(1), 0.45, 1.0)
        # Who waits stands his ground, or a crowd at the kerb would drift on to the road.
        push[self.still[who]] *= 0.0
        return slow, push

    def _near_obstacles(self, xy: Floats) -> Floats:
        """The things that stand on pavements near anybody."""
        if not len(self._obstacles) or not len(xy):
            return np.zeros((0, 2))
        low, high = xy.min(0) - 3.0, xy.max(0) + 3.0
        inside = ((self._obstacles > low) & (self._obstacles < high)).all(1)
        found: npt.NDArray[np.float64] = self._obstacles[inside]
        return found
