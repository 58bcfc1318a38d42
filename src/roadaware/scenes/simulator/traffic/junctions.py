"""Junctions: who may drive through, so that no two ways that meet are driven at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.scenes.simulator.traffic.net import Net
from roadaware.scenes.simulator.traffic.paths import Event, Leg
from roadaware.scenes.simulator.traffic.vehicle import Vehicle

GAP_S = 1.3
"""Between two who cross, when nobody is impatient."""
SIGHT_M = 60.0


@dataclass(eq=False)
class Hold:
    """Somebody who may drive through a junction, or does.

    Args:
        vehicle: that drives.
        way: place of its connector.
        leg: the piece of its path.
    """

    vehicle: Vehicle
    way: int
    leg: Leg


class Junctions:
    """Who may drive through which junction.

    Args:
        net: with the ways.
    """

    def __init__(self, net: Net) -> None:
        self.net = net
        self.held: dict[int, list[Hold]] = {j.number: [] for j in net.layout.junctions}
        self.meeting: dict[tuple[int, int, int, float], tuple[float, float, float, float] | None] = {}

    def meets(self, node: int, a: int, b: int, room_m: float) -> tuple[float, float, float, float] | None:
        """Where two ways meet: start and end on the first, start and end on the second; None where not.

        Args:
            node: number of the junction.
            a: place of the one.
            b: place of the other.
            room_m: between their middles that both vehicles need.
        """
        key = (node, a, b, room_m)
        if key not in self.meeting:
            self.meeting[key] = self._measured(*key)
        return self.meeting[key]

    def _measured(self, node: int, a: int, b: int, room_m: float) -> tuple[float, float, float, float] | None:
        ways = self.net.layout.junctions[node].connectors
        if ways[a].start == ways[b].start:
            return None
        one, two = ways[a].line, ways[b].line
        s, t = np.arange(-1.0, one.length + 1.0, 0.5), np.arange(-1.0, two.length + 1.0, 0.5)
        p, q = one.at(np.clip(s, 0, None)), two.at(np.clip(t, 0, None))
        near = np.hypot(*(p[:, None] - q).transpose(2, 0, 1)) < room_m
        if not near.any():
            return None
        i, j = np.flatnonzero(near.any(1)), np.flatnonzero(near.any(0))
        return float(s[i[0]]), float(s[i[-1]]), float(t[j[0]]), float(t[j[-1]])

    def holds(self, vehicle: Vehicle, node: int) -> bool:
        """Whether a vehicle may drive through.

        Args:
            vehicle: that asks.
            node: number of the junction.
        """
        return any(hold.vehicle is vehicle for hold in self.held[node])

    def release(self, gone: Sequence[Vehicle]) -> None:
        """Let others in where vehicles have left.

        Args:
            gone: vehicles that are no longer there.
        """
        for holds in self.held.values():
            holds[:] = [h for h in holds if h.vehicle.rear < h.leg.end + 0.5 and h.vehicle not in gone]

    def rank(self, vehicle: Vehicle, event: Event) -> int:
        """Who goes first: higher before lower.

        Args:
            vehicle: on its way to the junction.
            event: its line.
        """
        leg = vehicle.path.legs[event.leg]
        far = leg.turn == self.net.inwards
        if vehicle.beacon:
            return 5
        return (0 if event.minor else 2) + (0 if far else 1)

    def ask(self, vehicle: Vehicle, event: Event, coming: Sequence[tuple[Vehicle, Event]]) -> bool:
        """Ask to drive through; nobody whose way meets this one gets in before it has left, if so.

        Args:
            vehicle: that asks.
            event: its line.
            coming: others on their ways to this junction who are not held up by a light.
        """
        node = event.number
        leg = vehicle.path.legs[event.leg]
        for hold in self.held[node]:
            met = self.meets(node, leg.way, hold.way, _room(vehicle, hold.vehicle))
            if met and hold.vehicle.rear - hold.leg.start < met[3]:
                return False
        for other, theirs in coming:
            if other is not vehicle and not self._may_precede(vehicle, event, other, theirs):
                return False
        self.held[node].append(Hold(vehicle, leg.way, leg))
        return True

    def _may_precede(self, vehicle: Vehicle, event: Event, other: Vehicle, theirs: Event) -> bool:
        """Whether a vehicle is through before another one comes, or goes first by the rules."""
        if self.rank(other, theirs) <= self.rank(vehicle, event) or (other.v < 0.5 and other.waiting_s > 1.0):
            return True
        leg, way = vehicle.path.legs[event.leg], other.path.legs[theirs.leg]
        met = self.meets(event.number, leg.way, way.way, _room(vehicle, other))
        if met is None:
            return True
        through = leg.start + met[1] - vehicle.rear
        arrives = max(way.start + met[2] - other.front, 0.0) / max(other.v, 0.5 * other.manners.speed)
        patience = min(vehicle.waiting_s / vehicle.manners.patience_s, 1.0)
        return _time(vehicle, through) + GAP_S * (1.0 - 0.5 * patience) < arrives


def _time(vehicle: Vehicle, distance: float) -> float:
    """Seconds in which it gets there as it speeds up."""
    v, a = max(vehicle.v, 0.0), 0.8 * vehicle.manners.accelerate
    most = min(vehicle.manners.speed, 7.0)
    until = max(most - v, 0.0) / a
    way = v * until + a * until**2 / 2
    if way > distance:
        return float((np.sqrt(v * v + 2 * a * distance) - v) / a)
    return until + (distance - way) / max(most, v)


def _room(a: Vehicle, b: Vehicle) -> float:
    """Metres between the middles of two ways so that both can be driven at a time."""
    room = (a.width + b.width) / 2 + 0.3
    return float(np.ceil(room * 4) / 4) if max(a.length, b.length) < 7 else max(room, 2.95)
