"""Profiles: which lanes a road has beside each other, and what a road under construction knows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.layout import CrossingKind, Lane, LaneKind, Line, Road
from roadaware.scenes.simulator.town.tracks import Track

BUS_M, CYCLE_M, PARKING_M = 3.3, 1.6, 2.2
BUILD_OUT_M = 1.5
"""Length of the pieces of pavement that shield both ends of a row of parking bays."""

Spans = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Profile:
    """What lies beside each other on a road, the same on both sides of its line.

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


def lanes_of(street: Street, road: int, first: int, forward_side: int) -> list[Lane]:
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
