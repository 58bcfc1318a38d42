"""Net: lanes and ways of a layout as a graph, with the lines to stop at, out of which paths are made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.layout import Lane, Layout
from roadaware.scenes.simulator.traffic.paths import Event, Leg, Path, sampled

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
        table, fastest = sampled(_joined(pieces))
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


def _joined(pieces: list[Floats]) -> Floats:
    """Lines one after the other, without points that repeat."""
    points = np.concatenate(pieces)
    keep = np.concatenate([[True], np.hypot(*np.diff(points, axis=0).T) > 1e-3])
    found: Floats = points[keep]
    return found
