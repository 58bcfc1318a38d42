"""The roads of a town: lines with exact directions, lanes, junctions, and where people cross, buses stop and cars park."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.config import SceneConfig
from roadaware.simulator.layout import (
    Connector,
    CrossingKind,
    Junction,
    Lane,
    LaneKind,
    Layout,
    Line,
    Road,
    Turn,
)

TURN_STEP = 0.04
"""Radians between the points of an arc: 2 cm away from it at a radius of 100 m."""


@dataclass(frozen=True, eq=False)
class Track:
    """A line that knows where it points.

    Args:
        points: (n, 2) in metres.
        headings: (n,) direction of travel at the points, in radians, without jumps of a whole turn.
    """

    points: Floats
    headings: Floats

    @property
    def s(self) -> Floats:
        """(n,) metres from the start to each point."""
        steps = np.hypot(*np.diff(self.points, axis=0).T)
        return np.concatenate([[0.0], np.cumsum(steps)])

    @property
    def length(self) -> float:
        """In metres."""
        return float(self.s[-1])

    def beside(self, left_m: float) -> Floats:
        """(n, 2) the points moved to the left; right is negative."""
        normal = np.stack([-np.sin(self.headings), np.cos(self.headings)], axis=1)
        moved: Floats = self.points + left_m * normal
        return moved

    def at(self, s: Floats) -> Track:
        """The track through its points at the given lengths, which increase.

        Args:
            s: (m,) metres from the start, within the track.
        """
        own = self.s
        x, y = (np.interp(s, own, self.points[:, axis]) for axis in (0, 1))
        return Track(np.stack([x, y], axis=1), np.interp(s, own, self.headings))

    def cut(self, start: float, end: float, spacing: float = np.inf) -> Track:
        """The piece between two lengths, with its own points and more where they lie too far apart.

        Args:
            start: metres.
            end: metres, after the start.
            spacing: metres between points, at most.
        """
        own = self.s
        inner = own[(own > start + 1e-3) & (own < end - 1e-3)]
        stops = np.concatenate([[start], inner, [end]])
        if np.isfinite(spacing):
            counts = np.maximum(1, np.ceil(np.diff(stops) / spacing).astype(int))
            pieces = [
                np.linspace(a, b, n, endpoint=False)
                for a, b, n in zip(stops, stops[1:], counts, strict=False)
            ]
            stops = np.concatenate([*pieces, [end]])
        return self.at(stops)

    def back(self) -> Track:
        """The same way in the other direction."""
        return Track(self.points[::-1], self.headings[::-1] + np.pi)


def straight(start: Floats, heading: float, length: float) -> Track:
    """A straight line.

    Args:
        start: (2,) its first point.
        heading: in radians.
        length: in metres.
    """
    end = start + length * np.array([np.cos(heading), np.sin(heading)])
    return Track(np.stack([start, end]), np.full(2, float(heading)))


def arc(start: Floats, heading: float, radius: float, turn: float, step: float = TURN_STEP) -> Track:
    """A part of a circle.

    Args:
        start: (2,) its first point.
        heading: at the start, in radians.
        radius: in metres.
        turn: how far it turns in radians, left positive.
        step: radians between its points, at most.
    """
    n = max(2, int(np.ceil(abs(turn) / step)) + 1)
    turned = np.linspace(0.0, turn, n)
    side = np.sign(turn)
    centre = start + radius * side * np.array([-np.sin(heading), np.cos(heading)])
    headings = heading + turned
    spokes = np.stack([np.sin(headings), -np.cos(headings)], axis=1) * radius * side
    return Track(centre + spokes, headings)


def join_tracks(pieces: list[Track]) -> Track:
    """Tracks, each of which begins where the one before ends, as one."""
    points = [pieces[0].points, *(piece.points[1:] for piece in pieces[1:])]
    headings = [pieces[0].headings, *(piece.headings[1:] for piece in pieces[1:])]
    return Track(np.concatenate(points), np.concatenate(headings))


def connect_poses(
    start: Floats, heading: float, end: Floats, end_heading: float, spacing: float = 0.7
) -> Track:
    """A smooth curve from one place and direction to another.

    Args:
        start: (2,) where it begins.
        heading: at the start, in radians.
        end: (2,) where it ends.
        end_heading: at the end, in radians.
        spacing: metres between its points, about.
    """
    gap = float(np.hypot(*(end - start)))
    turn = abs((end_heading - heading + np.pi) % (2 * np.pi) - np.pi)
    # The handles of a cubic that follows a circle: 4/3 tan(turn / 4) of its radius.
    reach = gap / 3 if turn < 0.05 else 4 / 3 * np.tan(turn / 4) * gap / (2 * np.sin(turn / 2))
    go, come = (np.array([np.cos(angle), np.sin(angle)]) for angle in (heading, end_heading))
    t = np.linspace(0.0, 1.0, max(3, int(np.ceil(gap * 1.1 / spacing)) + 1))[:, None]
    a, b = start + reach * go, end - reach * come
    points = (1 - t) ** 3 * start + 3 * (1 - t) ** 2 * t * a + 3 * (1 - t) * t**2 * b + t**3 * end
    slope = 3 * (1 - t) ** 2 * (a - start) + 6 * (1 - t) * t * (b - a) + 3 * t**2 * (end - b)
    return Track(points, np.unwrap(np.arctan2(slope[:, 1], slope[:, 0])))


def build_track(points: Floats) -> Track:
    """A track through points whose directions nobody noted: the mean of those of their neighbours.

    Args:
        points: (n, 2) in metres, n at least 2.
    """
    steps = np.diff(points, axis=0)
    steps = steps / np.maximum(np.hypot(steps[:, 0], steps[:, 1]), 1e-9)[:, None]
    mean = np.concatenate([steps[:1], steps[:-1] + steps[1:], steps[-1:]])
    return Track(points, np.unwrap(np.arctan2(mean[:, 1], mean[:, 0])))


def strip(track: Track, right_m: float, left_m: float) -> Floats:
    """(n - 1, 4, 2) the quadrilaterals of a band along a track, counter-clockwise.

    Args:
        track: the middle.
        right_m: where the band begins, to the left of the track (negative: to its right).
        left_m: where it ends.
    """
    low, high = track.beside(right_m), track.beside(left_m)
    quads: Floats = np.stack([low[:-1], low[1:], high[1:], high[:-1]], axis=1)
    return quads


BEHIND_M = 60.0
"""Road before the place where the own vehicle starts, so that others can come from behind."""
VIEW_M = 150.0
"""Road after the place where the own vehicle ends."""
TURNING = 0.22
"""Share of junctions where the own vehicle turns."""
MOST_TURNED = np.deg2rad(35.0)
"""A leg bends away from its main direction by this much at most, so that the way never meets itself."""


@dataclass(eq=False)
class Node:
    """A junction while the town is planned.

    Args:
        centre: (2,) where the middles of its roads meet.
        turn: of the own vehicle.
        arms: headings of its arms away from it, apart from the two on the way.
    """

    centre: Floats
    turn: Turn
    arms: dict[Turn, float] = field(default_factory=dict)


@dataclass(eq=False)
class Spine:
    """The way of the own vehicle.

    Args:
        legs: between junctions, through half of their areas.
        nodes: between the legs, one fewer.
    """

    legs: list[Track]
    nodes: list[Node]


def draw_spine(config: SceneConfig, rng: np.random.Generator, room_m: float, widest_m: float) -> Spine:
    """A way that is long enough for the whole scene.

    Args:
        config: gives length, bends and junctions.
        rng: of the town.
        room_m: straight road that each leg needs at both ends, for the junction.
        widest_m: from the middle of a road to the outer edge of its pavement, at most.
    """
    where = config.surroundings
    total = BEHIND_M + config.seconds * config.behaviour.ego_speed_kmh / 3.6 + VIEW_M
    legs: list[Track] = []
    nodes: list[Node] = []
    place, heading, base, last = np.zeros(2), 0.0, 0.0, "right" if rng.random() < 0.5 else "left"
    tightest = max(25.0 + 120.0 * (1.0 - where.bends), widest_m + 4.0)
    done = 0.0
    while True:
        length = max(2 * room_m + 25.0, _spacing(rng, where.junctions))
        if not nodes and where.junctions:
            length = max(length * 0.7, BEHIND_M + room_m + 25.0)
        is_last = done + length > total - 70.0
        length = max(total - done, 60.0) if is_last else length
        leg = _leg(rng, (place, heading, base), length, room_m, where.bends, tightest)
        legs.append(leg)
        done += leg.length
        if is_last:
            return Spine(legs, nodes)
        node = _node(rng, leg, last)
        nodes.append(node)
        place, heading = node.centre, float(leg.headings[-1])
        if node.turn != "straight":
            quarter = np.pi / 2 if node.turn == "left" else -np.pi / 2
            heading, base, last = heading + quarter, base + quarter, node.turn


def _spacing(rng: np.random.Generator, junctions: float) -> float:
    if junctions == 0:
        return np.inf
    return 100.0 / junctions * rng.uniform(0.65, 1.35)


def _node(rng: np.random.Generator, leg: Track, last: str) -> Node:
    """A junction at the end of a leg; the way turns left and right in alternation and never meets itself."""
    turn: Turn = "straight"
    if rng.random() < TURNING:
        turn = "left" if last == "right" else "right"
    centre, heading = leg.points[-1], float(leg.headings[-1])
    node = Node(centre, turn)
    skew = float(rng.uniform(-0.17, 0.17)) if turn == "straight" else 0.0
    free: list[Turn] = [way for way in ("straight", "left", "right") if way != turn]
    both = rng.random() < 0.4
    chosen = free if both else [free[int(rng.integers(len(free)))]]
    bearing = {"straight": heading, "left": heading + np.pi / 2 + skew, "right": heading - np.pi / 2 + skew}
    node.arms = {way: bearing[way] for way in chosen}
    return node


def _leg(
    rng: np.random.Generator,
    start: tuple[Floats, float, float],
    length: float,
    room_m: float,
    bends: float,
    tightest: float,
) -> Track:
    """Straights and bends, straight at both ends, from a place, a heading and the main direction."""
    place, heading, base = start
    pieces = [straight(place, heading, min(room_m + 8.0, length / 2))]
    left = length - 2 * pieces[0].length
    while left > 1.0:
        place, heading = pieces[-1].points[-1], float(pieces[-1].headings[-1])
        if rng.random() < 0.25 + 0.6 * bends and bends > 0 and left > 12.0:
            radius = float(np.exp(rng.uniform(np.log(tightest), np.log(max(200.0, tightest)))))
            aim = base + rng.uniform(-1.0, 1.0) * MOST_TURNED
            most = left / radius
            turn = float(np.clip(aim - heading, -most, most))
            if abs(turn) * radius > 4.0:
                pieces.append(arc(place, heading, radius, turn))
        else:
            pieces.append(straight(place, heading, min(left, float(rng.uniform(15.0, 45.0)))))
        left = length - pieces[0].length - sum(piece.length for piece in pieces)
    place, heading = pieces[-1].points[-1], float(pieces[-1].headings[-1])
    pieces.append(straight(place, heading, pieces[0].length))
    return join_tracks(pieces)


# Profiles: which lanes a road has beside each other, and what a road under construction knows.

BUS_M, CYCLE_M, PARKING_M = 3.3, 1.6, 2.2
BUILD_OUT_M = 1.5
"""Length of the pieces of pavement that shield both ends of a row of parking bays."""

Spans = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Profile:
    """Cross-section of a road, the same on both sides of its line.

    Args:
        lanes: vehicle lanes in each direction.
        lane_width_m: of one.
        bus: whether a bus lane follows.
        cycle: whether a cycle lane follows.
        parking: whether there is a strip for parking at the kerb.
        pavement_m: width of the pavement.
    """

    lanes: int
    lane_width_m: float
    bus: bool
    cycle: bool
    parking: bool
    pavement_m: float

    @property
    def strips(self) -> tuple[tuple[LaneKind, float, float], ...]:
        """Kind, middle and width in metres of the lanes of one side, from the road's line outwards."""
        widths: list[tuple[LaneKind, float]] = [("vehicle", self.lane_width_m)] * self.lanes
        extra: tuple[tuple[bool, LaneKind, float], ...] = (
            (self.bus, "bus", BUS_M),
            (self.cycle, "cycle", CYCLE_M),
            (self.parking, "parking", PARKING_M),
        )
        widths += [(kind, width) for there, kind, width in extra if there]
        widths.append(("pavement", self.pavement_m))
        edges = np.cumsum([0.0, *(width for _, width in widths)])
        return tuple(
            (kind, float(edge + width / 2), width) for (kind, width), edge in zip(widths, edges, strict=False)
        )

    @property
    def half_width_m(self) -> float:
        """From the road's line to the kerb."""
        _, middle, width = self.strips[-1]
        return middle - width / 2


@dataclass(frozen=True)
class Spot:
    """Where people cross a street.

    Args:
        s_m: along the street.
        width_m: along the street.
        kind: zebra or signalled.
        node: number of the junction whose arm it lies on, -1 for none.
    """

    s_m: float
    width_m: float
    kind: CrossingKind
    node: int = -1


@dataclass(eq=False)
class Street:
    """A road while the town is planned.

    Args:
        track: its middle, from junction to junction, through their areas.
        profile: of it.
        start_node: number of the junction at its start, -1 for none.
        end_node: number of the junction at its end, -1 for none.
        on_route: whether the own vehicle takes it, from its start to its end.
        spots: where people cross it.
        stops: (start, end) of bus stops by side, along the road.
        parking: (start, end) of rows of parking bays by side, along the road.
        lanes: of it, once they are made.
    """

    track: Track
    profile: Profile
    start_node: int
    end_node: int
    on_route: bool
    spots: list[Spot] = field(default_factory=list)
    stops: dict[int, Spans] = field(default_factory=lambda: {1: (), -1: ()})
    parking: dict[int, Spans] = field(default_factory=lambda: {1: (), -1: ()})
    lanes: list[Lane] = field(default_factory=list)

    @property
    def length(self) -> float:
        """In metres."""
        return self.track.length

    def road(self, number: int) -> Road:
        """It as part of a layout."""
        profile = self.profile
        numbers = tuple(lane.number for lane in self.lanes)
        return Road(number, Line(self.track.points), numbers, profile.half_width_m, profile.pavement_m)


def build_lanes(street: Street, road: int, first: int, forward_side: int) -> list[Lane]:
    """The lanes of a street: vehicle lanes, bus and cycle lanes, rows of parking bays, pavements.

    Args:
        street: with its bus stops and parking placed.
        road: its number.
        first: number of the first lane.
        forward_side: 1 where traffic keeps to the left, -1 to the right.
    """
    found: list[Lane] = []
    for side in (forward_side, -forward_side):
        strips = street.profile.strips
        used = max(i for i, (kind, _, _) in enumerate(strips) if kind in ("vehicle", "bus"))
        for order, (kind, middle, width) in enumerate(strips):
            spans = street.parking[side] if kind == "parking" else ((0.0, street.length),)
            for start, end in spans:
                line = street.track.cut(start, end).beside(side * middle)
                forward = side == forward_side or kind == "pavement"
                made = Line(line if forward else line[::-1].copy())
                bays = _along(street, made, side * middle, side) if order == used else ()
                found.append(Lane(first + len(found), road, kind, made, width, forward, side, order, bays))
    return found


def _along(street: Street, line: Line, left_m: float, side: int) -> Spans:
    """The bus stops of a side in metres along a lane."""
    found = []
    for start, end in street.stops[side]:
        ends: Floats = street.track.at(np.array([start, end])).beside(left_m)
        along = np.sort(line.project(ends)[0])
        found.append((float(along[0]), float(along[1])))
    return tuple(sorted(found))


# Side roads: the other arms of junctions, as far as one can look into them.

NEAR_STREETS = 6
"""Streets before and after a junction that its side roads might meet."""


def draw_stub(
    centre: Floats,
    heading: float,
    node: int,
    streets: list[Street],
    config: SceneConfig,
    rng: np.random.Generator,
) -> Track | None:
    """A side road that meets no other road; None where there is no room.

    Args:
        centre: (2,) of its junction.
        heading: away from it, in radians.
        node: number of the junction.
        streets: so far.
        config: gives the bends.
        rng: of the town.
    """
    length = float(rng.uniform(75.0, 120.0))
    first = float(rng.uniform(45.0, 60.0))
    bend = float(rng.uniform(-0.5, 0.5)) if rng.random() < config.surroundings.bends else 0.0
    pieces = [straight(centre, heading, first)]
    if abs(bend) > 0.1:
        pieces.append(arc(pieces[-1].points[-1], heading, float(rng.uniform(40.0, 120.0)), bend))
    done = sum(piece.length for piece in pieces)
    pieces.append(straight(pieces[-1].points[-1], float(pieces[-1].headings[-1]), max(15.0, length - done)))
    track = join_tracks(pieces)
    # How far a side road goes before it comes near another road, in metres.
    near = [s for s in streets if _is_near(s, node)]
    widest = max(street.profile.half_width_m + street.profile.pavement_m for street in near)
    others = np.concatenate([s.track.cut(0.0, s.track.length, 5.0).points for s in near])
    # The arms of its own junction start where it starts.
    others = others[np.hypot(*(others - centre).T) > 40.0]
    if not len(others):
        free = float("inf")
    else:
        stops = np.arange(40.0, track.length + 1.0, 4.0)
        places = track.at(np.minimum(stops, track.length)).points
        gaps = np.hypot(*(places[:, None] - others).transpose(2, 0, 1)).min(1)
        close = np.flatnonzero(gaps < 2 * widest + 6.0)
        free = float(stops[close[0]]) - 6.0 if len(close) else float("inf")
    return track.cut(0.0, min(track.length, free)) if free > 45.0 else None


def _is_near(street: Street, node: int) -> bool:
    ends = [end for end in (street.start_node, street.end_node) if end >= 0]
    return any(abs(end - node) <= NEAR_STREETS for end in ends)


# Connectors: the ways through a junction from the lanes that enter it to the lanes that leave it.


@dataclass(frozen=True, eq=False)
class Mouth:
    """One arm of a junction with the lanes that enter and leave there.

    Args:
        heading: of the arm away from the junction, in radians.
        entering: lanes that lead into the junction, by order.
        leaving: lanes that lead out of it, by order.
    """

    heading: float
    entering: tuple[Lane, ...]
    leaving: tuple[Lane, ...]


def turn_between(entering: float, leaving: float) -> Turn:
    """Direction of the turn from one arm of a junction to another.

    Args:
        entering: heading of the first arm away from the junction.
        leaving: heading of the second.
    """
    change = (leaving - entering - np.pi + np.pi) % (2 * np.pi) - np.pi
    if abs(change) < np.deg2rad(40.0):
        return "straight"
    return "left" if change > 0 else "right"


def connect(mouths: list[Mouth], near: Turn) -> tuple[Connector, ...]:
    """All ways through a junction.

    Args:
        mouths: its arms.
        near: the turn that crosses no oncoming lane: left where traffic keeps to the left.
    """
    found: list[Connector] = []
    for a, came in enumerate(mouths):
        ways = [(turn_between(came.heading, to.heading), to) for b, to in enumerate(mouths) if b != a]
        turns = {turn for turn, _ in ways}
        for turn, to in ways:
            for start, end in _pairs(came, to, turn, turns, near):
                curve = connect_poses(
                    start.line.points[-1],
                    float(start.line.heading(start.line.length)),
                    end.line.points[0],
                    float(end.line.heading(0.0)),
                )
                found.append(Connector(start.number, end.number, Line(curve.points), turn))
    return tuple(found)


def _pairs(came: Mouth, to: Mouth, turn: Turn, turns: set[Turn], near: Turn) -> list[tuple[Lane, Lane]]:
    """Which lanes lead to which on one way."""
    entering = [lane for lane in came.entering if lane.kind == "vehicle"]
    leaving = [lane for lane in to.leaving if lane.kind == "vehicle"]
    found: list[tuple[Lane, Lane]] = []
    if turn == "straight":
        found += [(lane, leaving[min(k, len(leaving) - 1)]) for k, lane in enumerate(entering)]
    else:
        start = entering[-1] if turn == near else entering[0]
        found += [(start, lane) for lane in leaving]
    # In a lane where no way would go on, one takes any.
    if turn == _only_turn(turns, near):
        served = {near: entering[-1:], "straight": entering}.get(turn, entering[:1])
        found += [
            (lane, leaving[min(k, len(leaving) - 1)]) for k, lane in enumerate(entering) if lane not in served
        ]
    special = [lane for lane in came.entering if lane.kind in ("bus", "cycle")]
    for lane in special:
        if turn in ("straight", near) or turns.isdisjoint({"straight", near}):
            same = [other for other in to.leaving if other.kind == lane.kind]
            found.append((lane, same[0] if same else leaving[-1]))
    return found


def _only_turn(turns: set[Turn], near: Turn) -> Turn | None:
    """The turn that lanes take which have no way of their own: none where one can go straight on."""
    if "straight" in turns:
        return None
    return near if near in turns else next(iter(turns))


# Where roads meet: how far a junction reaches into its arms, its outline, and its kerbs.

STRAIGHT_ON = np.deg2rad(155.0)
"""Kerbs of two arms that open wider than this run straight from one to the other."""

CORNER_STEP = 0.13
"""Radians between the points of a corner: with a radius of 6 m its edges lie within 2 cm of the arc."""


@dataclass(frozen=True)
class Arm:
    """A road that leaves a junction.

    Args:
        heading: away from the junction, in radians.
        half_width_m: from the middle to the kerb.
    """

    heading: float
    half_width_m: float


def _tangents(first: Arm, second: Arm, radius: float) -> tuple[float, float] | None:
    """Where the arc between two kerbs touches them, in metres along each arm; None where they run on."""
    opening = (second.heading - first.heading) % (2 * np.pi)
    if opening > STRAIGHT_ON:
        return None
    # The kerbs meet at a corner; the arc touches them at radius / tan(opening / 2) beyond it.
    sine, cosine = np.sin(opening), np.cos(opening)
    a, b = first.half_width_m, second.half_width_m
    beyond = radius / np.tan(opening / 2)
    return (b + a * cosine) / sine + beyond, (a + b * cosine) / sine + beyond


def compute_arm_reaches(arms: list[Arm], radius: float) -> list[float]:
    """How far the junction reaches into each arm from where the middles of the roads meet, in metres.

    Args:
        arms: in counter-clockwise order, at least 2.
        radius: of the kerbs at its corners, in metres.
    """
    far = [6.0] * len(arms)
    for place in range(len(arms)):
        after = (place + 1) % len(arms)
        touched = _tangents(arms[place], arms[after], radius)
        if touched is not None:
            far[place] = max(far[place], touched[0] + 0.6)
            far[after] = max(far[after], touched[1] + 0.6)
    return far


def junction_outline(centre: Floats, arms: list[Arm], far: list[float], radius: float) -> Floats:
    """(n, 2) the corners of a junction's area, counter-clockwise.

    Args:
        centre: (2,) where the middles of the roads meet.
        arms: in counter-clockwise order.
        far: what `compute_arm_reaches` found.
        radius: of the kerbs at the corners, in metres.
    """
    found = []
    for place, arm in enumerate(arms):
        after = (place + 1) % len(arms)
        found += [
            _on(centre, arm, far[place], -arm.half_width_m),
            _on(centre, arm, far[place], arm.half_width_m),
        ]
        touched = _tangents(arm, arms[after], radius)
        if touched is not None:
            start = _on(centre, arm, touched[0], arm.half_width_m)
            opening = (arms[after].heading - arm.heading) % (2 * np.pi)
            found += list(arc(start, arm.heading + np.pi, radius, -(np.pi - opening), CORNER_STEP).points)
    return np.array(found)


def _on(centre: Floats, arm: Arm, along: float, left: float) -> Floats:
    c, s = np.cos(arm.heading), np.sin(arm.heading)
    place: Floats = centre + along * np.array([c, s]) + left * np.array([-s, c])
    return place


def junction_kerbs(layout: Layout, junction: Junction) -> list[tuple[Track, float]]:
    """The kerbs of a junction between its arms, each with the width of the pavement to its right."""
    numbers = {layout.lanes[way.start].road for way in junction.connectors}
    numbers |= {layout.lanes[way.end].road for way in junction.connectors}
    roads = [layout.roads[number] for number in sorted(numbers)]
    ends = np.array([road.line.points[end] for road in roads for end in (0, -1)])
    corners = junction.outline
    nexts = np.roll(corners, -1, axis=0)
    middles = (corners + nexts) / 2
    mouth = (np.hypot(*(middles[:, None] - ends).transpose(2, 0, 1)) < 0.3).any(1)
    if not mouth.any():
        return []
    width = roads[0].pavement_m
    first = int(np.flatnonzero(mouth)[0]) + 1
    chains: list[tuple[Track, float]] = []
    run: list[Floats] = []
    for step in range(len(corners)):
        edge = (first + step) % len(corners)
        if mouth[edge]:
            if run:
                chains.append((build_track(np.array([*run, corners[edge]])), width))
            run = []
        elif not run or np.hypot(*(run[-1] - corners[edge])) > 1e-3:
            run.append(corners[edge])
    return chains


STOP_GAP_M = 1.8
"""From a crossing with lights to its stop line."""
MOUTH_GAP_M = 1.2
"""From a junction to the crossing on its arm."""
BUS_STOP_M = 14.0
BAY_M = 5.8
"""Length of one parking bay."""


def stop_distance(street: Street, node: int) -> float:
    """From the end of a street at a junction back to the line where one stops, in metres."""
    for spot in street.spots:
        if spot.node == node and spot.kind == "signalled":
            return MOUTH_GAP_M + spot.width_m + STOP_GAP_M
    return 0.5


def add_crossings(
    streets: list[Street], signalled: list[bool], config: SceneConfig, rng: np.random.Generator
) -> None:
    """Put crossings on streets: on the arms of junctions with lights, and along the way."""
    for street in streets:
        for node, at_start in ((street.start_node, True), (street.end_node, False)):
            if node >= 0 and rng.random() < (0.85 if signalled[node] else 0.15):
                kind: CrossingKind = "signalled" if signalled[node] else "zebra"
                width = float(rng.uniform(2.6, 3.4))
                away = MOUTH_GAP_M + width / 2 + (0.0 if signalled[node] else 5.0)
                s = away if at_start else street.length - away
                street.spots.append(Spot(s, width, kind, node))
        if street.on_route:
            mean = config.surroundings.crossings * street.length / 100.0
            for _ in range(int(mean + rng.random())):
                _between(street, rng, 24.0, street.length - 24.0)
    if config.preset == "crossing":
        _ensure(streets, rng)


def _between(street: Street, rng: np.random.Generator, low: float, high: float) -> bool:
    """Put a crossing somewhere between two lengths, unless another is near; whether there is one now."""
    if high <= low:
        return False
    s = float(rng.uniform(low, high))
    kind: CrossingKind = "zebra" if rng.random() < 0.55 else "signalled"
    if all(abs(s - spot.s_m) > 28.0 for spot in street.spots):
        street.spots.append(Spot(s, float(rng.uniform(2.8, 4.0)), kind))
        return True
    return False


def _ensure(streets: list[Street], rng: np.random.Generator) -> None:
    """At least one crossing between junctions that the own vehicle reaches, where there is room."""
    way = [street for street in streets if street.on_route][:3]
    if any(spot.node < 0 for street in way for spot in street.spots if street.on_route):
        return
    for k, street in enumerate(way):
        if _between(street, rng, BEHIND_M + 30.0 if k == 0 else 20.0, street.length - 20.0):
            return


def add_bus_stops(street: Street, rng: np.random.Generator) -> None:
    """Put bus stops on a street of the way, one on a side at most.

    Args:
        street: with its crossings.
        rng: of the town.
    """
    if not street.on_route:
        return
    for side in (1, -1):
        if rng.random() > 0.6:
            continue
        taken = [(spot.s_m - 11.0, spot.s_m + 11.0) for spot in street.spots]
        free = [
            span for span in _free(taken, 9.0, street.length - 12.0) if span[1] - span[0] > BUS_STOP_M + 2
        ]
        if free:
            low, high = free[int(rng.integers(len(free)))]
            start = float(rng.uniform(low, high - BUS_STOP_M))
            street.stops[side] = ((start, start + BUS_STOP_M),)


def add_parking_bays(street: Street, rng: np.random.Generator) -> None:
    """Put rows of parking bays on a street that has room for them.

    Args:
        street: with its crossings and bus stops.
        rng: of the town.
    """
    if not street.profile.parking:
        return
    for side in (1, -1):
        taken = [(spot.s_m - 8.0, spot.s_m + 8.0) for spot in street.spots]
        taken += [(start - 3.0, end + 3.0) for start, end in street.stops[side]]
        low = 8.0 if street.start_node >= 0 else 1.0
        high = street.length - (8.0 if street.end_node >= 0 else 1.0)
        rows = []
        for start, end in _free(taken, low, high):
            at = start + BUILD_OUT_M
            while end - at - BUILD_OUT_M > 2 * BAY_M:
                most = int((end - at - BUILD_OUT_M) / BAY_M)
                n = min(most, int(rng.integers(3, 8)))
                if n < 2:
                    break
                rows.append((at, at + n * BAY_M))
                at += n * BAY_M + 2 * BUILD_OUT_M + (5.0 if rng.random() < 0.5 else 0.0)
        street.parking[side] = tuple(rows)


def _free(taken: list[tuple[float, float]], low: float, high: float) -> Spans:
    """What is left between two lengths outside spans that are taken."""
    found = []
    for start, end in sorted(taken):
        if start > low:
            found.append((low, min(start, high)))
        low = max(low, end)
    if high > low:
        found.append((low, high))
    return tuple(found)
