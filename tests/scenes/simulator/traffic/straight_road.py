"""A straight road, perhaps with a crossing or a side road, people who do as told, a world to look into."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.config import Behaviour, Conditions, SceneConfig, Surroundings
from roadaware.simulator.layout import (
    Connector,
    Crossing,
    Junction,
    Lane,
    LaneKind,
    Layout,
    Line,
    Road,
    SignalSite,
)
from roadaware.simulator.traffic.cast import Shift
from roadaware.simulator.traffic.loop import TrafficView, World
from roadaware.simulator.traffic.vehicle import Vehicle, draw_make

LENGTH_M, LANE_M = 400.0, 3.3
FPS = 12.0


class People:
    """People where functions of time put them: x, y and velocity on the road, x and y beside it."""

    def __init__(self, on_road=None, waiting=None) -> None:
        self._on_road, self._waiting = on_road or (lambda t: []), waiting or (lambda t: [])
        self.views: list[TrafficView] = []

    def step(self, frame: int, view: TrafficView) -> None:
        self.views.append(view)

    def on_road(self) -> tuple[Floats, Floats]:
        rows = np.array(self._on_road(self.views[-1].time_s), dtype=float).reshape(-1, 4)
        return rows[:, :2], rows[:, 2:]

    def waiting(self) -> Floats:
        return np.array(self._waiting(self.views[-1].time_s), dtype=float).reshape(-1, 2)


def config(seconds: float = 20.0, behaviour: Behaviour | None = None, lanes: int = 1) -> SceneConfig:
    """Traffic on the right, nobody but the own vehicle unless told."""
    town = Surroundings(drive_on="right", lanes=lanes)
    return SceneConfig(seconds=seconds, surroundings=town, behaviour=behaviour or Behaviour(vehicles=0.0))


def straight(
    kind: str | None = None, at: float = 150.0, lanes: int = 1, bays=(), bay_lane: bool = False
) -> Layout:
    """A road along x, traffic on the right; lanes 0.. go east, the rest west."""
    found: list[Lane] = []

    def add(
        lane_kind: LaneKind, y: float, width: float, forward: bool, order: int, span=(0.0, LENGTH_M)
    ) -> None:
        points = np.array([[span[0], y], [span[1], y]])
        line = Line(points if forward else points[::-1].copy())
        stops = tuple(bays) if forward and lane_kind == "vehicle" and order == lanes - 1 else ()
        found.append(Lane(len(found), 0, lane_kind, line, width, forward, -1 if y < 0 else 1, order, stops))

    for forward in (True, False):
        side = -1 if forward else 1
        for order in range(lanes):
            add("vehicle", side * LANE_M * (order + 0.5), LANE_M, forward, order)
        if bay_lane:
            add("parking", side * (LANE_M * lanes + 1.1), 2.2, forward, lanes, (95.0, 129.8))
    crossings: tuple[Crossing, ...] = ()
    sites: tuple[SignalSite, ...] = ()
    if kind is not None:
        if kind == "signalled":
            own = tuple(lane.number for lane in found if lane.kind == "vehicle")
            sites = (
                SignalSite(0, (at - 3, -4.0, 2.9), np.pi, own, -1, 0, False, 0),
                SignalSite(1, (at, 4.0, 2.3), -1.57, (), -1, 0, True, 1),
            )
        crossings = (Crossing(0, 0, at, 3.0, kind, tuple(s.number for s in sites)),)  # type: ignore[arg-type]
    half = LANE_M * lanes + (2.2 if bay_lane else 0.0)
    line = Line(np.array([[0.0, 0.0], [LENGTH_M, 0.0]]))
    road = Road(0, line, tuple(lane.number for lane in found), half, 2.5)
    return Layout((road,), tuple(found), (), crossings, sites, (), (0,))


def junction(signals: bool = False) -> Layout:
    """A side road from the south meets a road along x at 200 m; lane 4 comes out of it."""
    h = LANE_M / 2

    def lane(number: int, road: int, start, end) -> Lane:
        side = -1 if number in (0, 1, 4) else 1
        line = Line(np.array([start, end], dtype=float))
        return Lane(number, road, "vehicle", line, LANE_M, number in (0, 1, 4), side, 0)

    lanes = (
        lane(0, 0, (0, -h), (190, -h)),
        lane(1, 1, (210, -h), (400, -h)),
        lane(2, 1, (400, h), (210, h)),
        lane(3, 0, (190, h), (0, h)),
        lane(4, 2, (200 + h, -150), (200 + h, -10)),
        lane(5, 2, (200 - h, -10), (200 - h, -150)),
    )

    def way(a: int, b: int, turn) -> Connector:
        p, q = lanes[a].line.points[-1], lanes[b].line.points[0]
        u = lanes[a].line.points[1] - lanes[a].line.points[0]
        corner = p + u / np.hypot(*u) * abs(np.dot(q - p, u / np.hypot(*u)))
        t = np.linspace(0, 1, 30)[:, None]
        curve = (1 - t) ** 2 * p + 2 * t * (1 - t) * corner + t**2 * q
        straight_on = np.linspace(p, q, 30)
        return Connector(a, b, Line(straight_on if turn == "straight" else curve), turn)

    ways = (
        way(0, 1, "straight"),
        way(0, 5, "right"),
        way(2, 3, "straight"),
        way(2, 5, "left"),
        way(4, 1, "right"),
        way(4, 3, "left"),
    )
    outline = np.array([[190.0, -10.0], [210.0, -10.0], [210.0, 3.3], [190.0, 3.3]])
    stops = {4: 139.5} if not signals else {0: 189.0, 2: 189.0, 4: 139.0}
    sites: tuple[SignalSite, ...] = ()
    if signals:
        sites = (
            SignalSite(0, (189, -4, 2.9), np.pi, (0,), 0, -1, False, 0),
            SignalSite(1, (211, 4, 2.9), 0.0, (2,), 0, -1, False, 0),
            SignalSite(2, (204, -11, 2.9), -1.57, (4,), 0, -1, False, 1),
        )
    node = Junction(0, outline, ways, tuple(s.number for s in sites), stops)
    roads = (
        Road(0, Line(np.array([[0.0, 0.0], [190.0, 0.0]])), (0, 3), LANE_M, 2.5),
        Road(1, Line(np.array([[210.0, 0.0], [400.0, 0.0]])), (1, 2), LANE_M, 2.5),
        Road(2, Line(np.array([[200.0, -150.0], [200.0, -10.0]])), (4, 5), LANE_M, 2.5),
    )
    return Layout(roads, lanes, (node,), (), sites, (), (0, 1))


def world(layout: Layout, people: People | None = None, seed: int = 0, **about) -> World:
    """The world of a layout, with no vehicles but the own one unless the behaviour says so."""
    rng = np.random.default_rng(seed)
    setting = about.pop("setting", None) or config(**about)
    return World(layout, setting, Conditions(), rng, people or People(), np.zeros((0, 5)))


def put(
    there: World, kind: str, lane: int, s: float, v: float = 0.0, ways=(), left_m: float = 0.0, speed=None
) -> Vehicle:
    """One more vehicle on a lane, and on through the ways that are named."""
    rng = np.random.default_rng(int(100 * s) + lane)
    steps, at = [], lane
    for way in ways:
        steps.append((at, 0, way))
        at = there.net.layout.junctions[0].connectors[way].end
    make = draw_make(rng, kind, LANE_M, 11.0)
    made = there.cast.spawner.make(make, [*steps, (at, -1, -1)], s, left_m, 0)
    made.v = v
    made.manners = replace(made.manners, speed=speed or max(v, 0.5))
    made.shift = Shift(-1e6, 1.0, left_m, 0.0, left_m)
    there.cast.vehicles.append(made)
    return made


def run(there: World, until=None, seconds: float | None = None) -> int:
    """Live on until something is so; the frame in which it was, -1 if it never was."""
    frames = round((seconds or there.config.seconds) * FPS)
    for frame in range(frames):
        there.frame(frame, there.lights.shown(frame / FPS), last=False)
        if until is not None and until():
            return frame
    return -1
