"""Rules: how hard each vehicle must brake for lights, lines, zebra crossings and bus stops ahead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadaware.scenes.simulator.actors import Light
from roadaware.scenes.simulator.traffic.following import HARDEST
from roadaware.scenes.simulator.traffic.junctions import SIGHT_M, Junctions
from roadaware.scenes.simulator.traffic.lights import READY, Lights
from roadaware.scenes.simulator.traffic.paths import Event
from roadaware.scenes.simulator.traffic.vehicle import Vehicle
from roadaware.scenes.simulator.traffic.zebras import Zebras

PASSED_M = 1.0
"""Beyond a line at which one no longer stops for it."""
SLOW = 4.5
"""m/s at which one comes to a line where one gives way."""
Coming = dict[int, list[tuple[Vehicle, Event]]]


class Rules:
    """The rules of the road.

    Args:
        lights: of the scene.
        zebras: with the people.
        junctions: and who holds them.
        rng: draws how long buses stop.
    """

    def __init__(
        self, lights: Lights, zebras: Zebras, junctions: Junctions, rng: np.random.Generator
    ) -> None:
        self.lights, self.zebras, self.junctions, self.rng = lights, zebras, junctions, rng
        self.crossings = {c.number: c for c in zebras.crossings}

    def coming(self, vehicles: Sequence[Vehicle], time_s: float) -> Coming:
        """Who comes to which junction and is not held up by a light.

        Args:
            vehicles: that move.
            time_s: now.
        """
        found: Coming = {}
        for vehicle in vehicles:
            junctions = (e for e in vehicle.path.events if e.kind == "junction")
            event = next((e for e in junctions if e.s + PASSED_M > vehicle.front), None)
            if event is None or event.s - vehicle.front > SIGHT_M or vehicle.hazard:
                continue
            if event.group >= 0 and self.lights.group(event.group, time_s) in (Light.RED, READY):
                continue
            if not self.junctions.holds(vehicle, event.number):
                found.setdefault(event.number, []).append((vehicle, event))
        return found

    def bound(self, vehicle: Vehicle, coming: Coming, others: Sequence[Vehicle], time_s: float) -> float:
        """m/s2 that lines ahead allow.

        Args:
            vehicle: that drives.
            coming: of `coming`.
            others: all vehicles, for who stands behind a junction.
            time_s: now.
        """
        horizon = vehicle.v**2 / 3.0 + 12.0 + vehicle.v
        found = self._inside(vehicle, coming, others)
        for event in vehicle.path.events:
            gap = event.s - vehicle.front
            if gap < -PASSED_M:
                continue
            if gap > horizon:
                break
            if self._stops(vehicle, event, gap, coming, others, time_s):
                found = min(found, halt(vehicle, gap))
                break
        return found

    def _inside(self, vehicle: Vehicle, coming: Coming, others: Sequence[Vehicle]) -> float:
        """m/s2 of one who waits inside a junction for a gap."""
        hold = self.junctions.inside(vehicle)
        if hold is None:
            return float(np.inf)
        room = _room_beyond(vehicle, hold.event, others)
        if room and self.junctions.proceed(hold, coming.get(hold.event.number, ())):
            return float(np.inf)
        return halt(vehicle, hold.leg.start + hold.until - vehicle.front)

    def _stops(
        self,
        vehicle: Vehicle,
        event: Event,
        gap: float,
        coming: Coming,
        others: Sequence[Vehicle],
        time_s: float,
    ) -> bool:
        if event.kind == "zebra":
            return self.zebras.stops(vehicle, self.crossings[event.number], gap)
        if event.kind == "lights":
            return self._light_stops(vehicle, event, gap, time_s)
        if event.kind == "bay":
            return self._serves(vehicle, event, gap, time_s)
        if self.junctions.holds(vehicle, event.number):
            return False
        if event.group >= 0 and self._light_stops(vehicle, event, gap, time_s):
            return True
        if gap > vehicle.v**2 / 4.0 + 5.0 + 0.8 * vehicle.v:
            return False
        if event.minor and vehicle.v > SLOW and not vehicle.beacon:
            return True
        if not _room_beyond(vehicle, event, others):
            return True
        return not self.junctions.ask(vehicle, event, coming.get(event.number, ()))

    def _light_stops(self, vehicle: Vehicle, event: Event, gap: float, time_s: float) -> bool:
        shows = self.lights.group(event.group, time_s)
        if shows == Light.GREEN:
            return False
        if shows == Light.AMBER:
            # Who cannot stop goes on, and so does who waited for a gap all through green.
            if vehicle.v**2 / (2 * max(gap, 0.1)) > 3.0 or (vehicle.v < 3.0 and gap < 2.0):
                vehicle.go_on_amber = event.s
            return vehicle.go_on_amber != event.s
        return vehicle.go_on_amber != event.s or vehicle.v**2 / (2 * max(gap, 0.1)) < 3.0

    def _serves(self, vehicle: Vehicle, event: Event, gap: float, time_s: float) -> bool:
        """Whether a bus stops at a bus stop, and stands there for a while."""
        if vehicle.kind != "Bus" or vehicle.served >= event.s - 1.0:
            return False
        if vehicle.hold == "bay":
            if time_s < vehicle.hold_until or vehicle.passed_by:
                return True
            vehicle.hold, vehicle.served = "", event.s
            return False
        if vehicle.v < 0.15 and gap < 2.5:
            vehicle.hold, vehicle.hold_until = "bay", time_s + float(self.rng.uniform(5.0, 11.0))
        return True


def halt(vehicle: Vehicle, gap: float) -> float:
    """m/s2 to stop at a line, smoothly where there is time.

    Args:
        vehicle: that drives.
        gap: metres to the line.
    """
    v = max(vehicle.v, 0.0)
    gap = max(gap - 0.2, 0.05)
    if v < 0.25 and gap < 1.2:
        return -1.0
    must = v * v / (2 * gap)
    wanted = 0.3 + 0.7 * v + v * v / (2 * float(np.sqrt(vehicle.manners.accelerate * 2.0)))
    smooth = vehicle.manners.accelerate * (1.0 - (wanted / gap) ** 2)
    return float(max(min(smooth, -must if must > 1.2 else np.inf), -max(1.15 * must, 1.0), -HARDEST))


def _room_beyond(vehicle: Vehicle, event: Event, others: Sequence[Vehicle]) -> bool:
    """Whether one could leave the junction again: nobody stands right behind it."""
    end = vehicle.path.legs[event.leg].end
    x, y, heading = vehicle.path.at(end + 0.5 * vehicle.length + 1.5)
    c, s = float(np.cos(heading)), float(np.sin(heading))
    for other in others:
        if other is vehicle or other.v > 1.5 or other.kind == "Cyc":
            continue
        dx, dy = other.x - x, other.y - y
        beside = abs(dy * c - dx * s) < (vehicle.width + other.width) / 2
        if beside and abs(dx * c + dy * s) < (vehicle.length + other.length) / 2 + 1.5:
            return False
    return True
