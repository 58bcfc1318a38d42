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
LONGEST_INSIDE_M = 7.5
"""Longer vehicles wait at the line."""
LEAST_INSIDE_M = 2.0
"""Nobody drives on for less."""
INSIDE_ROOM_M = 2.5
"""Between the middles of the ways of who waits inside and who passes."""


@dataclass(eq=False)
class Hold:
    """Somebody who may drive through a junction, or does.

    Args:
        vehicle: that drives.
        way: place of its connector.
        leg: the piece of its path.
        event: its line.
        until: metres along the way at which it waits inside for oncoming traffic; infinite once it may go on.
    """

    vehicle: Vehicle
    way: int
    leg: Leg
    event: Event
    until: float = np.inf


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
        leg = vehicle.path.legs[event.leg]
        if self._is_clear(vehicle, event, coming):
            self.held[event.number].append(Hold(vehicle, leg.way, leg, event))
            return True
        until = self._waiting_m(vehicle, event, coming)
        if until is None:
            return False
        self.held[event.number].append(Hold(vehicle, leg.way, leg, event, until))
        return True

    def inside(self, vehicle: Vehicle) -> Hold | None:
        """The hold of a vehicle that waits inside a junction, or is on its way to there.

        Args:
            vehicle: that drives.
        """
        holds = (hold for each in self.held.values() for hold in each)
        return next((hold for hold in holds if hold.vehicle is vehicle and np.isfinite(hold.until)), None)

    def proceed(self, hold: Hold, coming: Sequence[tuple[Vehicle, Event]]) -> bool:
        """Ask to go on from inside a junction: oncoming traffic goes first, everybody else waits.

        Args:
            hold: of who waits.
            coming: others on their ways to this junction who are not held up by a light.
        """
        oncoming = [
            (v, e) for v, e in coming if self._opposes(hold.event, hold.leg.way, v.path.legs[e.leg].way)
        ]
        if self._is_clear(hold.vehicle, hold.event, oncoming):
            hold.until = float(np.inf)
        return hold.until == np.inf

    def _is_clear(self, vehicle: Vehicle, event: Event, coming: Sequence[tuple[Vehicle, Event]]) -> bool:
        """Whether a vehicle can drive all through: no way that is driven meets its own, and none will."""
        leg = vehicle.path.legs[event.leg]
        for hold in self.held[event.number]:
            if hold.vehicle is vehicle:
                continue
            met = self.meets(event.number, leg.way, hold.way, _room(vehicle, hold.vehicle))
            waits = met and hold.until < met[2] and self._opposes(event, leg.way, hold.way)
            if met and not waits and hold.vehicle.rear - hold.leg.start < met[3]:
                return False
        return all(
            other is vehicle or self._may_precede(vehicle, event, other, theirs) for other, theirs in coming
        )

    def _waiting_m(
        self, vehicle: Vehicle, event: Event, coming: Sequence[tuple[Vehicle, Event]]
    ) -> float | None:
        """Metres into a junction at which one who turns across oncoming traffic waits; None for at the line.

        That far no way may meet its own but those of oncoming traffic, and nobody waits inside before it.
        """
        leg = vehicle.path.legs[event.leg]
        ways = self.net.layout.junctions[event.number].connectors
        if leg.turn != self.net.inwards or event.minor or vehicle.length > LONGEST_INSIDE_M:
            return None
        against = [k for k in range(len(ways)) if self._opposes(event, leg.way, k)]
        met = [self.meets(event.number, leg.way, k, INSIDE_ROOM_M) for k in against]
        until = min((each[0] for each in met if each), default=0.0) - 0.3
        held, rest = self.held[event.number], [(v, e) for v, e in coming if v is not vehicle]
        if until < LEAST_INSIDE_M or any(ways[h.way].start == ways[leg.way].start for h in held):
            return None
        for hold in held:
            crossed = self.meets(event.number, leg.way, hold.way, _room(vehicle, hold.vehicle))
            left = crossed is not None and hold.vehicle.rear - hold.leg.start >= crossed[3]
            if hold.way not in against and crossed and not left:
                return None
        others = [(v, e) for v, e in rest if v.path.legs[e.leg].way not in against]
        return until if all(self._may_precede(vehicle, event, v, e) for v, e in others) else None

    def _opposes(self, event: Event, way: int, other: int) -> bool:
        """Whether another way comes from the opposite side of a junction."""
        ways = self.net.layout.junctions[event.number].connectors
        one, two = (float(ways[k].line.heading(0.0)) for k in (way, other))
        return float(np.cos(one - two)) < -0.7

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
