"""Paths: where a vehicle goes, as one finely sampled line with lines to stop at and speed limits of bends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.layout import Lane, Layout

STEP_M = 0.5
LEAD_M = 20.0
"""A path goes straight on before its start and after its end."""
SIDEWAYS = 2.2
"""m/s2 that drivers take in bends."""
EASE = 1.5
"""m/s2 with which they slow down for them."""


@dataclass(frozen=True)
class Leg:
    """A piece of a path: a lane, or a way through a junction.

    Args:
        lane: number of the lane; -1 in a junction.
        junction: number of the junction; -1 on a lane.
        way: place of the connector among those of the junction.
        turn: 1 left, -1 right, 0 straight.
        start: along the path, metres.
        end: along the path, metres.
    """

    lane: int
    junction: int
    way: int
    turn: int
    start: float
    end: float


@dataclass(frozen=True)
class Event:
    """A line on a path where one may have to stop.

    Args:
        kind: junction, zebra, lights or bay.
        s: of the line along the path, metres.
        number: of the junction, crossing or lane.
        group: of the traffic lights that hold there; -1 for none.
        leg: place of the leg behind the line, for a junction.
        minor: whether one gives way.
    """

    kind: str
    s: float
    number: int
    group: int = -1
    leg: int = -1
    minor: bool = False


@dataclass(frozen=True, eq=False)
class Path:
    """One line to drive along.

    Args:
        table: (n, 3) x, y and heading every `STEP_M`, from `LEAD_M` before the start.
        fastest: (n,) m/s that bends allow, brought forward to where one must slow down.
        legs: pieces in order.
        events: lines in order.
    """

    table: Floats
    fastest: Floats
    legs: tuple[Leg, ...]
    events: tuple[Event, ...]

    @property
    def end(self) -> float:
        """Where its last leg ends, in metres."""
        return self.legs[-1].end

    def at(self, s: float) -> tuple[float, float, float]:
        """x, y and heading at a length.

        Args:
            s: metres.
        """
        # Below the last row, so that there is always a next one to interpolate to.
        place = min(max((s + LEAD_M) / STEP_M, 0.0), len(self.table) - 1.001)
        row = int(place)
        share = place - row
        low, high = self.table[row], self.table[row + 1]
        x, y, heading = (low + share * (high - low)).tolist()
        beyond = (s + LEAD_M) - place * STEP_M
        if abs(beyond) > 0.01:
            x, y = x + beyond * np.cos(heading), y + beyond * np.sin(heading)
        return x, y, heading

    def many(self, s: Floats) -> Floats:
        """(n, 3) x, y and heading at lengths, held within the path's samples.

        Args:
            s: (n,) metres.
        """
        place = np.clip((s + LEAD_M) / STEP_M, 0.0, len(self.table) - 1.001)
        rows = place.astype(np.int64)
        low = self.table[rows]
        found: Floats = low + (place - rows)[:, None] * (self.table[rows + 1] - low)
        return found

    def limit(self, s: float) -> float:
        """m/s that bends allow at a length.

        Args:
            s: metres.
        """
        return float(self.fastest[min(max(int((s + LEAD_M) / STEP_M), 0), len(self.fastest) - 1)])

    def leg_at(self, s: float) -> int:
        """Place of the leg at a length.

        Args:
            s: metres.
        """
        for place, leg in enumerate(self.legs):
            if s < leg.end:
                return place
        return len(self.legs) - 1


def sample_path(points: Floats) -> tuple[Floats, Floats]:
    """(n, 3) the table and (n,) the speed limits of a path through points.

    Args:
        points: (m, 2) with no two alike in a row.
    """
    steps = np.hypot(*np.diff(points, axis=0).T)
    s = np.concatenate([[0.0], np.cumsum(steps)])
    first = (points[0] - points[1]) / steps[0]
    last = (points[-1] - points[-2]) / steps[-1]
    s = np.concatenate([[-LEAD_M], s, [s[-1] + 4 * LEAD_M]])
    points = np.concatenate([[points[0] + LEAD_M * first], points, [points[-1] + 4 * LEAD_M * last]])
    places = np.arange(-LEAD_M, s[-1], STEP_M)
    xy = np.stack([np.interp(places, s, points[:, axis]) for axis in (0, 1)], axis=1)
    along = np.gradient(xy, axis=0)
    # Unwrapped before it is smoothed and interpolated: the mean of 179 and -179 degrees is not 0.
    heading = np.unwrap(np.arctan2(along[:, 1], along[:, 0]))
    heading = _smooth(heading, 3)
    bend = np.abs(_smooth(np.gradient(heading, STEP_M), 5))
    # v^2 * bend is the acceleration sideways; the bounds are for straight lines and for corners of a polygon.
    limit = np.clip(np.sqrt(SIDEWAYS / np.maximum(bend, 1e-6)), 2.5, 60.0)
    # v^2 falls by 2 a s on the way: the least of what lies ahead, taken from the end, is how fast one may be.
    ahead = limit**2 + 2 * EASE * places
    fastest = np.sqrt(np.minimum.accumulate(ahead[::-1])[::-1] - 2 * EASE * places)
    return np.column_stack([xy, heading]), fastest


def _smooth(values: Floats, width: int) -> Floats:
    """The mean over neighbours, ends kept."""
    padded = np.pad(values, width // 2, mode="edge")
    found: Floats = np.convolve(padded, np.full(width, 1.0 / width), mode="valid")
    return found


# Net: lanes and ways of a layout as a graph, with the lines to stop at, out of which paths are made.

TURN = {"straight": 0, "left": 1, "right": -1}
ZEBRA_GAP_M, LIGHTS_GAP_M, JUNCTION_GAP_M = 1.2, 1.8, 0.5
"""From a crossing or junction to the line where one stops."""
WAYS = {0: 0.7, 1: 0.2, -1: 0.2}
"""How much drivers like to go straight on, left and right."""

Step = tuple[int, int, int]
"""A lane number and what follows it: junction and place of the connector, or -1 and -1 at the end."""


class Net:
    """Lanes and ways, and how they hang together.

    Args:
        layout: roads.
        inwards: 1 where the middle of the road lies to the left of traffic, -1 to the right.
    """

    def __init__(self, layout: Layout, inwards: int) -> None:
        self.layout = layout
        self.inwards = inwards
        self.out: dict[int, list[tuple[int, int]]] = {lane.number: [] for lane in layout.lanes}
        for junction in layout.junctions:
            for place, way in enumerate(junction.connectors):
                self.out[way.start].append((junction.number, place))
        self.groups: dict[int, int] = {}
        self.crossing_groups: dict[int, int] = {}
        for site in layout.signals:
            if site.for_walkers or not site.lanes:
                continue
            if site.crossing >= 0:
                self.crossing_groups[site.crossing] = site.group
            else:
                self.groups.update(dict.fromkeys(site.lanes, site.group))
        self.lines = {lane.number: self._lines(lane) for lane in layout.lanes}

    def _lines(self, lane: Lane) -> list[Event]:
        """The lines on a lane by length, except the one at its end."""
        found: list[Event] = []
        if lane.kind not in ("vehicle", "bus", "cycle"):
            return found
        road = self.layout.roads[lane.road]
        for crossing in self.layout.crossings:
            if crossing.road != road.number:
                continue
            middle = float(lane.line.project(road.line.at(crossing.s_m)[None])[0][0])
            group = self.crossing_groups.get(crossing.number, -1)
            if crossing.kind == "zebra":
                line = middle - crossing.width_m / 2 - ZEBRA_GAP_M
                found.append(Event("zebra", line, crossing.number))
            elif group >= 0:
                line = middle - crossing.width_m / 2 - LIGHTS_GAP_M
                found.append(Event("lights", line, crossing.number, group))
        found += [Event("bay", end - 1.0, lane.number) for _, end in lane.bays]
        return sorted(found, key=lambda event: event.s)

    def path(self, steps: Sequence[Step]) -> Path:
        """The path through lanes and ways.

        Args:
            steps: at least one.
        """
        legs: list[Leg] = []
        events: list[Event] = []
        pieces: list[Floats] = []
        done = 0.0
        for number, node, way in steps:
            lane = self.layout.lanes[number]
            legs.append(Leg(number, -1, -1, 0, done, done + lane.line.length))
            events += [
                Event(e.kind, done + e.s, e.number, e.group) for e in self.lines[number] if done + e.s > -5.0
            ]
            pieces.append(lane.line.points)
            done += lane.line.length
            if node >= 0:
                junction = self.layout.junctions[node]
                join = junction.connectors[way]
                line = done - lane.line.length + junction.stops.get(number, lane.line.length - JUNCTION_GAP_M)
                group = self.groups.get(number, -1)
                minor = group < 0 and number in junction.stops
                events.append(Event("junction", line, node, group, len(legs), minor))
                legs.append(Leg(-1, node, way, TURN[join.turn], done, done + join.line.length))
                pieces.append(join.line.points)
                done += join.line.length
        table, fastest = sample_path(_join_lines(pieces))
        events.sort(key=lambda event: event.s)
        return Path(table, fastest, tuple(legs), tuple(events))

    def wander(
        self, lane: int, rng: np.random.Generator, length_m: float, straight: bool = False
    ) -> list[Step]:
        """Lanes and ways from a lane on, by chance.

        Args:
            lane: number of the first.
            rng: draws the ways.
            length_m: of lanes and ways, at least, where the net goes on.
            straight: whether to turn only where there is no other way.
        """
        steps: list[Step] = []
        done = 0.0
        while True:
            done += self.layout.lanes[lane].line.length
            ways = self.out[lane]
            if done > length_m or not ways:
                return [*steps, (lane, -1, -1)]
            turns = [TURN[self.layout.junctions[node].connectors[way].turn] for node, way in ways]
            # Not 0: where a lane only turns, a long vehicle must go
            # somewhere, and weights that sum to 0 are none.
            weights = np.array([(0.001 if straight and turn else WAYS[turn]) for turn in turns])
            node, way = ways[int(rng.choice(len(ways), p=weights / weights.sum()))]
            steps.append((lane, node, way))
            join = self.layout.junctions[node].connectors[way]
            done += join.line.length
            lane = join.end

    def along(self, lane: int, roads: Sequence[int]) -> list[Step] | None:
        """Lanes and ways from a lane over roads in this order; None where that lane does not lead there.

        Args:
            lane: number of the first.
            roads: numbers of the roads after that of the lane.
        """
        if not roads:
            return [(lane, -1, -1)]
        for node, way in self.out[lane]:
            end = self.layout.junctions[node].connectors[way].end
            if self.layout.lanes[end].road == roads[0] and self.layout.lanes[end].kind == "vehicle":
                rest = self.along(end, roads[1:])
                if rest is not None:
                    return [(lane, node, way), *rest]
        return None

    def route(self) -> list[Step]:
        """The route of the own vehicle, lane by lane as the layout says, or over the same roads."""
        route = self.layout.route
        steps: list[Step] = []
        for k, (lane, after) in enumerate(pairwise(route)):
            ways = [w for w in self.out[lane] if self.layout.junctions[w[0]].connectors[w[1]].end == after]
            if not ways:
                roads = [self.layout.lanes[n].road for n in route[k + 1 :]]
                rest = self.along(lane, roads) or [(lane, -1, -1)]
                return [*steps, *rest]
            steps.append((lane, *ways[0]))
        return [*steps, (route[-1], -1, -1)]

    def beside(self, lane: Lane, left: int) -> Lane | None:
        """The vehicle lane of the same direction next to a lane.

        Args:
            lane: of vehicles.
            left: 1 for the one on its left, -1 right.
        """
        order = lane.order + (-1 if left == self.inwards else 1)
        for number in self.layout.roads[lane.road].lanes:
            other = self.layout.lanes[number]
            if (other.order, other.forward, other.kind) == (order, lane.forward, "vehicle"):
                return other
        return None

    def outside_m(self, lane: Lane) -> float:
        """Metres of lanes of the same direction between a lane and the kerb or parking bays.

        Args:
            lane: of a road.
        """
        others = [self.layout.lanes[number] for number in self.layout.roads[lane.road].lanes]
        return sum(
            other.width_m
            for other in others
            if other.forward == lane.forward
            and other.order > lane.order
            and other.kind in ("vehicle", "bus", "cycle")
        )


def _join_lines(pieces: list[Floats]) -> Floats:
    """Lines one after the other, without points that repeat."""
    points = np.concatenate(pieces)
    keep = np.concatenate([[True], np.hypot(*np.diff(points, axis=0).T) > 1e-3])
    found: Floats = points[keep]
    return found
