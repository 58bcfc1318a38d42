"""Spawn: who is on the roads at the start of a scene, and who comes and goes where nobody looks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.layout import Lane
from roadaware.scenes.simulator.traffic.following import BEHIND_OBSTACLE_M
from roadaware.scenes.simulator.traffic.kinds import (
    LONGEST_TURNING_M,
    SHARES,
    TWO_WHEELED,
    Make,
    draw_kind,
    draw_make,
    draw_manners,
)
from roadaware.scenes.simulator.traffic.manoeuvres import home_of
from roadaware.scenes.simulator.traffic.net import Net, Step
from roadaware.scenes.simulator.traffic.vehicle import Shift, Vehicle

AROUND_M = 140.0
"""Where there is traffic."""
GONE_M = 165.0
"""Where it ends."""
HIDDEN_M, AHEAD_M = 70.0, 100.0
"""Nearest place to come from, and nearest in front."""
PATH_M = 350.0
TRIES = 6


class Spawner:
    """Brings vehicles and takes them away.

    Args:
        net: roads.
        config: how many, and how fast.
        rng: draws them.
        things: (k, 5) x, y, heading, length and width of what lies on the road.
    """

    def __init__(self, net: Net, config: SceneConfig, rng: np.random.Generator, things: Floats) -> None:
        self.net, self.config, self.rng, self.things = net, config, rng, things
        self.born = 0
        self.shares = dict(SHARES)
        places: list[tuple[float, ...]] = []
        for lane in net.layout.lanes:
            uses = self._uses(lane)
            if any(uses):
                s = np.arange(4.0, lane.line.length - 6.0, 5.0)
                weight = 1.0 if any(lane.road == net.layout.lanes[n].road for n in net.layout.route) else 0.45
                places += [
                    (lane.number, at, x, y, weight, *uses)
                    for at, (x, y) in zip(s.tolist(), lane.line.at(s).tolist(), strict=True)
                ]
        self.places: Floats = np.array(places, dtype=np.float64).reshape(-1, 8)

    def _uses(self, lane: Lane) -> tuple[bool, bool, bool]:
        """Whether cars, buses and cyclists come on a lane."""
        lanes = [self.net.layout.lanes[n] for n in self.net.layout.roads[lane.road].lanes]
        own = [o for o in lanes if o.forward == lane.forward and o.kind in ("vehicle", "bus", "cycle")]
        outer = max((o.order for o in own if o.kind != "cycle"), default=-1) == lane.order
        kinds = {o.kind for o in own}
        cycle = lane.kind == "cycle" or (outer and "cycle" not in kinds and lane.kind in ("vehicle", "bus"))
        bus = lane.kind == "bus" or (outer and lane.kind == "vehicle")
        return lane.kind == "vehicle", bus, cycle

    def wanted(self, x: float, y: float) -> int:
        """How many vehicles should be about.

        Args:
            x: of the own vehicle.
            y: of the own vehicle.
        """
        near = np.hypot(self.places[:, 2] - x, self.places[:, 3] - y) < AROUND_M
        cars = self.places[near & (self.places[:, 5] > 0)]
        # Two directions of one road count once.
        road_m = 5.0 * float(cars[:, 4].sum()) / 2 / max(self.config.surroundings.lanes, 1)
        return round(self.config.behaviour.vehicles * road_m / 100.0)

    def come(
        self, vehicles: Sequence[Vehicle], ego: Vehicle, frame: int, *, first: bool, kind: str = ""
    ) -> Vehicle | None:
        """One more vehicle somewhere; None where there was no room.

        Args:
            vehicles: that are there.
            ego: the own vehicle.
            frame: now.
            first: whether the scene begins, so that nobody has looked yet.
            kind: of it; drawn by its share unless told.
        """
        kind = kind or draw_kind(self.rng, self.shares)
        use = {"Bus": 6, "Cyc": 7}.get(kind, 5)
        dx, dy = self.places[:, 2] - ego.x, self.places[:, 3] - ego.y
        away = np.hypot(dx, dy)
        ahead = dx * np.cos(ego.heading) + dy * np.sin(ego.heading)
        least = 8.0 if first else np.where(ahead > 0.4 * away, AHEAD_M, HIDDEN_M)
        fit = (away < AROUND_M) & (away > least) & (self.places[:, use] > 0)
        rows = np.flatnonzero(fit)
        if not len(rows):
            return None
        weights = self.places[rows, 4]
        for row in self.rng.choice(rows, TRIES, p=weights / weights.sum()).tolist():
            lane = self.net.layout.lanes[int(self.places[row, 0])]
            made = self.placed(kind, lane, float(self.places[row, 1]), vehicles, frame)
            if made is not None:
                return made
        return None

    def placed(
        self, kind: str, lane: Lane, s: float, vehicles: Sequence[Vehicle], frame: int
    ) -> Vehicle | None:
        """A vehicle of a kind at a place, None where it does not fit.

        Args:
            kind: of it.
            lane: it drives on.
            s: metres along the lane.
            vehicles: that are there.
            frame: now.
        """
        if lane.line.length < 25.0:
            return None
        width = lane.width_m if lane.kind != "cycle" else 3.0
        make = draw_make(self.rng, kind, width)
        behaviour = self.config.behaviour
        usual = behaviour.ego_speed_kmh / 3.6
        manners = draw_manners(self.rng, kind, usual, behaviour.yielding)
        steps = self.net.wander(lane.number, self.rng, PATH_M, straight=make.size_m[0] > 7.0)
        path = self.net.path(steps)
        if make.size_m[0] > LONGEST_TURNING_M and any(leg.turn for leg in path.legs):
            return None
        home = home_of(kind, lane.kind, lane.width_m, self.net.inwards)
        vehicle = self.make(make, steps, s, home, frame)
        vehicle.manners = manners
        vehicle.beacon = kind == "EmVeh" and bool(self.rng.random() < 0.6)
        half = vehicle.length / 2
        if vehicle.front > lane.line.length - 1.0 or vehicle.rear < 0.5:
            return None
        if any(vehicle.rear - 9.0 < e.s < vehicle.front + 1.5 for e in path.events if e.kind != "bay"):
            return None
        limits = [manners.speed, path.limit(vehicle.front)]
        limits += [
            np.sqrt(3.2 * max(e.s - s - half - 1.0, 0.0))
            for e in path.events
            if e.s > s and (e.kind != "bay" or kind == "Bus")
        ]
        limits.append(pace_before(free_m(vehicle, self.things)))
        vehicle.v = float(min(limits))
        return vehicle if self.fits(vehicle, vehicles) else None

    def make(self, make: Make, steps: Sequence[Step], s: float, left_m: float, frame: int) -> Vehicle:
        """A vehicle on a path, standing.

        Args:
            make: what it is.
            steps: lanes and ways.
            s: of its middle along the path, metres.
            left_m: to the left of the path.
            frame: now.
        """
        behaviour = self.config.behaviour
        manners = draw_manners(self.rng, make.kind, behaviour.ego_speed_kmh / 3.6, behaviour.yielding)
        shift = Shift(-1e6, 1.0, left_m, 0.0, left_m)
        vehicle = Vehicle(self.born, make, manners, self.net.path(steps), s, 0.0, shift, frame)
        self.born += 1
        vehicle.home_m = left_m
        length = make.size_m[0]
        vehicle.tail_m = (0.21 if make.kind not in TWO_WHEELED else 0.18) * length
        vehicle.base_m = (0.58 if make.kind not in TWO_WHEELED else 0.64) * length
        vehicle.place()
        return vehicle

    def fits(self, vehicle: Vehicle, vehicles: Sequence[Vehicle]) -> bool:
        """Whether nobody is too near; who follows somebody starts no faster than it could stop.

        Args:
            vehicle: that would come.
            vehicles: that are there.
        """
        c, s = float(np.cos(vehicle.heading)), float(np.sin(vehicle.heading))
        if free_m(vehicle, self.things) < 3.0:
            return False
        for other in vehicles:
            dx, dy = other.x - vehicle.x, other.y - vehicle.y
            lon, lat = dx * c + dy * s, dy * c - dx * s
            if abs(lon) > 60.0 or abs(lat) > (vehicle.width + other.width) / 2 + 0.5 + 0.04 * abs(lon):
                continue
            gap = abs(lon) - (vehicle.length + other.length) / 2
            behind = vehicle if lon > 0 else other
            if gap < 4.0 + 1.3 * max(behind.v, 0.0):
                return False
        return True


def free_m(vehicle: Vehicle, things: Floats) -> float:
    """Metres on the way of a vehicle, from its bumper on, that are free of things; negative where it stands.

    Args:
        vehicle: that would drive.
        things: (k, 5) x, y, heading, length and width of what lies on the road.
    """
    if not len(things):
        return float(np.inf)
    s = np.arange(vehicle.rear - 1.0, vehicle.front + 70.0, 0.5)
    table = vehicle.path.many(s)
    x = table[:, 0] - vehicle.left_m * np.sin(table[:, 2])
    y = table[:, 1] + vehicle.left_m * np.cos(table[:, 2])
    reach = np.hypot(things[:, 3], things[:, 4]) / 2
    away = np.hypot(things[:, 0] - x[:, None], things[:, 1] - y[:, None])
    hit = (away < reach + vehicle.width / 2 + 0.3).any(1)
    return float(s[hit.argmax()] - vehicle.front) if hit.any() else float(np.inf)


def pace_before(free: float) -> float:
    """m/s at which one can stop behind what lies there without haste.

    Args:
        free: metres until there.
    """
    return float(np.sqrt(3.2 * max(free - BEHIND_OBSTACLE_M - 1.0, 0.0)))


def is_gone(vehicle: Vehicle, ego: Vehicle) -> bool:
    """Whether a vehicle has left the scene.

    Args:
        vehicle: that moves.
        ego: the own vehicle.
    """
    away = float(np.hypot(vehicle.x - ego.x, vehicle.y - ego.y))
    over = vehicle.rear - vehicle.path.end
    return away > GONE_M or (over > -1.0 and away > 60.0) or over > 60.0
