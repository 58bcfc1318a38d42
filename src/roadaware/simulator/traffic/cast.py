"""Cast: the own vehicle, all others that move, and those that are parked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Floats
from roadaware.simulator.actors import Actor, Pose
from roadaware.simulator.config import SceneConfig
from roadaware.simulator.layout import Lane
from roadaware.simulator.traffic.driving import BEHIND_OBSTACLE_M
from roadaware.simulator.traffic.manoeuvres import (
    BAY_M,
    BESIDE_M,
    compute_bay_centres,
    compute_berth,
    compute_lane_offset,
    find_bays_beside,
)
from roadaware.simulator.traffic.record import FACTS, build_vehicle_actor
from roadaware.simulator.traffic.vehicle import (
    LONGEST_TURNING_M,
    PARKED,
    SHARES,
    TWO_WHEELED,
    Make,
    Manners,
    Net,
    Shift,
    Step,
    Vehicle,
    draw_kind,
    draw_make,
    draw_manners,
)

# Spawn: who is on the roads at the start of a scene, and who comes and goes where nobody looks.

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
        """How many vehicles should be about."""
        near = np.hypot(self.places[:, 2] - x, self.places[:, 3] - y) < AROUND_M
        cars = self.places[near & (self.places[:, 5] > 0)]
        # Two directions of one road count once.
        # Places are 5 m apart.
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
            kind: of it (default: drawn by its share).
        """
        kind = kind or draw_kind(self.rng, self.shares)
        use = {"Bus": 6, "Cyc": 7}.get(kind, 5)
        dx, dy = self.places[:, 2] - ego.x, self.places[:, 3] - ego.y
        away = np.hypot(dx, dy)
        ahead = dx * np.cos(ego.heading) + dy * np.sin(ego.heading)
        # After the start nobody may appear out of nothing in view; at the start everybody is there already.
        least = 8.0 if first else np.where(ahead > 0.4 * away, AHEAD_M, HIDDEN_M)
        fit = (away < AROUND_M) & (away > least) & (self.places[:, use] > 0)
        rows = np.flatnonzero(fit)
        if not len(rows):
            return None
        weights = self.places[rows, 4]
        # Several at once, since a place may be taken; none is not an error, somebody else comes later.
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
        home = compute_lane_offset(kind, lane.kind, lane.width_m, self.net.inwards)
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
        limits.append(compute_approach_speed(free_m(vehicle, self.things)))
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
        # Begun so far back that it is over.
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
        """Whether nobody is too near; who follows somebody starts no faster than it could stop."""
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


def compute_approach_speed(free: float) -> float:
    """m/s at which one can stop behind what lies there without haste.

    Args:
        free: metres until there.
    """
    return float(np.sqrt(3.2 * max(free - BEHIND_OBSTACLE_M - 1.0, 0.0)))


def is_gone(vehicle: Vehicle, ego: Vehicle) -> bool:
    """Whether a vehicle has left the scene."""
    away = float(np.hypot(vehicle.x - ego.x, vehicle.y - ego.y))
    over = vehicle.rear - vehicle.path.end
    return away > GONE_M or (over > -1.0 and away > 60.0) or over > 60.0


EGO_SIZE_M = (4.4, 1.82, 1.5)
START_M = 60.0
"""Of road that lies behind the own vehicle at the start."""
CLEAR_M = 8.0
"""Nobody is parked nearer to something that lies about."""
SEEN_M = 150.0
"""Within which parked vehicles are recorded."""
RENEW_S = 0.5
"""Between looks at whether somebody should come."""
STOPPED_AHEAD, STOPPED_ELSEWHERE, EMERGENCY = 0.26, 0.14, 0.06
"""Shares of scenes in which somebody stands in the own lane with hazard lights, in another, and in which an
emergency vehicle comes."""
CYCLIST_AHEAD, BUS_AHEAD = 0.24, 0.12
"""Shares of scenes in which one of them starts before the own vehicle."""
LEAVING, AT_ONCE = 0.5, 2
"""Share of parked vehicles that would leave when the own vehicle comes, and how many do at a time."""
PARKER, BACKING, OWN_PARKED = 0.5, 0.3, 0.03
"""Shares of scenes in which somebody backs into a bay ahead, of those with hazard lights who back up first,
and of scenes in which the own vehicle starts in a bay."""
REVERSING = 0.7
"""Share of them that reverse first; nobody is parked behind them."""


@dataclass(eq=False)
class Parked:
    """One that is parked.

    Args:
        make: what it is.
        x: of its middle, metres.
        y: of its middle, metres.
        heading: radians.
        lane: number of its row of bays.
        leaves: whether it wants to leave when the own vehicle comes.
        reverse_m: how far it reverses before.
        first: first frame in which it is near; -1 for never so far.
        end: frame after the last.
    """

    make: Make
    x: float
    y: float
    heading: float
    lane: int
    leaves: bool
    reverse_m: float
    first: int = -1
    end: int = -1


class Cast:
    """Everybody on wheels.

    Args:
        net: roads.
        config: of the scene.
        rng: draws everybody.
        things: (k, 5) x, y, heading, length and width of what lies on the road.
    """

    def __init__(
        self, net: Net, config: SceneConfig, rng: np.random.Generator, things: Floats | None = None
    ) -> None:
        self.net, self.config, self.rng = net, config, rng
        self.things = np.zeros((0, 5)) if things is None else things
        self.spawner = Spawner(net, config, rng, self.things)
        self.ego = self._ego()
        self.vehicles: list[Vehicle] = [self.ego]
        self.gone: list[Vehicle] = []
        self.parked = [p for lane in net.layout.lanes if lane.kind == "parking" for p in self._row(lane)]
        if config.behaviour.vehicles > 0:
            self._specials()
            for _ in range(2 * self.spawner.wanted(self.ego.x, self.ego.y)):
                if len(self.vehicles) <= self.spawner.wanted(self.ego.x, self.ego.y):
                    self._come(0, first=True)

    def _ego(self) -> Vehicle:
        """The own vehicle at its start, at speed."""
        steps = self.net.route()
        make = Make("Car", "own", EGO_SIZE_M, 0)
        lane = self.net.layout.lanes[steps[0][0]]
        ego = self.spawner.make(make, steps, start_m(lane), 0.0, 0)
        speed = self.config.behaviour.ego_speed_kmh / 3.6
        ego.manners = Manners(max(speed, 0.5), 1.7, 2.2, 1.3, 6.0, self.config.behaviour.yielding)
        # Its rear axle keeps to the line and it points along it: acceleration and yaw rate are exact.
        ego.tail_m, ego.base_m = 0.9, 0.3
        ego.place()
        # Corner cases lie on the way ahead: their vehicle starts on the road.
        if self.rng.random() < OWN_PARKED and not len(self.things) and self._in_bay(ego, lane):
            return ego
        gaps = [e.s - ego.front for e in ego.path.events if e.s > ego.front and e.kind != "bay"]
        stop = np.sqrt(3.2 * max(min(gaps, default=np.inf) - 1.0, 0.0))
        seen = compute_approach_speed(free_m(ego, self.things))
        ego.v = float(min(speed, ego.path.limit(ego.front), stop, seen))
        return ego

    def _in_bay(self, ego: Vehicle, lane: Lane) -> bool:
        """Let the own vehicle start in a parking bay, from where it backs a little and pulls out."""
        lanes = [self.net.layout.lanes[number] for number in self.net.layout.roads[lane.road].lanes]
        for row in lanes:
            if row.kind != "parking" or row.forward != lane.forward or row.order != lane.order + 1:
                continue
            along, left = lane.line.project(row.line.at(row.line.length * np.array([0.3, 0.5])))
            s = float(along[0])
            if abs(float(left[0])) < BESIDE_M and 20.0 < s < lane.line.length - 40.0:
                ego.s, ego.left_m, ego.v = s, float(left[0]), 0.0
                ego.shift = Shift(-1e6, 1.0, ego.left_m, 0.0, ego.left_m)
                ego.home_m, ego.hold, ego.reverse_m, ego.hold_until = 0.0, "kerb", 1.8, 3.0
                ego.place()
                return True
        return False

    def _row(self, lane: Lane) -> list[Parked]:
        """Who is parked in a row of bays."""
        middles = compute_bay_centres(lane)
        n = len(middles)
        taken: Bools = self.rng.random(n) < self.config.behaviour.parked
        if self.ego.hold:
            taken &= np.hypot(*(middles - (self.ego.x, self.ego.y)).T) > CLEAR_M
        found: list[Parked] = []
        for k in np.flatnonzero(taken).tolist():
            make = draw_make(self.rng, draw_kind(self.rng, PARKED), lane.width_m, 5.45)
            s = (k + 0.5) * lane.line.length / n + float(self.rng.normal(0, 0.1))
            beside, turn, leaves, back = self.rng.random(4)
            x, y = lane.line.beside(s, 0.25 * (beside - 0.5)).tolist()
            heading = float(lane.line.heading(s)) + 0.04 * (turn - 0.5)
            room_before = k + 1 < n and not taken[k + 1]
            goes = room_before and leaves < LEAVING and make.kind != "Mobike"
            reverse = 2.5 if goes and k > 0 and back < REVERSING else 0.0
            # Who reverses needs the bay behind, so that its vehicle, the last that was put down, goes again.
            if reverse and taken[k - 1]:
                found.pop()
            if len(self.things) and np.hypot(*(self.things[:, :2] - (x, y)).T).min() < CLEAR_M:
                taken[k] = False
                continue
            found.append(Parked(make, x, y, heading, lane.number, goes, reverse))
        return found

    def _come(self, frame: int, *, first: bool) -> None:
        made = self.spawner.come(self.vehicles, self.ego, frame, first=first)
        if made is not None:
            self.vehicles.append(made)

    def _specials(self) -> None:
        """Somebody who stands in a lane with hazard lights, an emergency vehicle: now and then."""
        ahead, elsewhere, emergency, cyclist, bus, parker = self.rng.random(6)
        for kind, chosen in (("Cyc", cyclist < CYCLIST_AHEAD), ("Bus", bus < BUS_AHEAD)):
            if chosen:
                self._ahead(kind)
        own = [leg.lane for leg in self.ego.path.legs if leg.lane >= 0]
        if parker < PARKER:
            self._parker([self.net.layout.lanes[n] for n in own])
        if ahead < STOPPED_AHEAD:
            self._stop_somebody([self.net.layout.lanes[n] for n in own])
        if elsewhere < STOPPED_ELSEWHERE:
            roads = {self.net.layout.lanes[n].road for n in own}
            others = [x for x in self.net.layout.lanes if x.road in roads and x.number not in own]
            self._stop_somebody([lane for lane in others if lane.kind == "vehicle"])
        if emergency < EMERGENCY:
            for _ in range(4):
                made = self.spawner.come(self.vehicles, self.ego, 0, first=True, kind="EmVeh")
                if made is not None:
                    made.beacon = True
                    self.vehicles.append(made)
                    break

    def _ahead(self, kind: str) -> None:
        """Put one of a kind before the own vehicle, where there is room."""
        lane = self.net.layout.lanes[self.ego.lane]
        for away in self.rng.uniform(14.0, 45.0, 4).tolist():
            made = self.spawner.placed(kind, lane, self.ego.s + away, self.vehicles, 0)
            if made is not None:
                self.vehicles.append(made)
                return

    def _parker(self, own: list[Lane]) -> None:
        """Let somebody come who backs into a bay ahead of the own vehicle, on either side of its roads."""
        roads = {lane.road for lane in own}
        chosen: list[tuple[Lane, tuple[float, float]]] = []
        for lane in self.net.layout.lanes:
            if lane.road not in roads or lane.kind != "vehicle":
                continue
            for bay in find_bays_beside(self.net.layout, lane):
                dx, dy = lane.line.at(bay[0]) - (self.ego.x, self.ego.y)
                ahead = dx * np.cos(self.ego.heading) + dy * np.sin(self.ego.heading)
                if 28.0 < ahead < 85.0 and bay[0] > 30.0:
                    chosen.append((lane, bay))
        for k in self.rng.permutation(len(chosen))[:6].tolist():
            lane, bay = chosen[k]
            made = self.spawner.placed(
                "Car", lane, bay[0] - float(self.rng.uniform(2.0, 16.0)), self.vehicles, 0
            )
            if made is not None:
                made.berth = compute_berth(made, bay)
                made.v = min(made.v, float(np.sqrt(2.4 * (made.berth.stop_s - made.s))))
                self.vehicles.append(made)
                x, y = lane.line.beside(*bay).tolist()
                self.parked = [p for p in self.parked if np.hypot(p.x - x, p.y - y) > 1.6 * BAY_M]
                return

    def _stop_somebody(self, lanes: list[Lane]) -> None:
        """Stand with hazard lights near the kerb of one of these lanes, away from all lines."""
        places = []
        for lane in lanes:
            near = lane.order == max(
                o.order
                for o in (self.net.layout.lanes[n] for n in self.net.layout.roads[lane.road].lanes)
                if o.kind == "vehicle" and o.forward == lane.forward
            )
            spans = [(e.s - 28.0, e.s + 14.0) for e in self.net.lines[lane.number]]
            for s in np.arange(16.0, lane.line.length - 30.0, 3.0) if near else ():
                x, y = lane.line.at(s).tolist()
                away = float(np.hypot(x - self.ego.x, y - self.ego.y))
                if 30.0 < away < 140.0 and not any(low < s < high for low, high in spans):
                    places.append((lane, float(s)))
        if not places:
            return
        lane, s = places[int(self.rng.integers(len(places)))]
        kind = "MedVeh" if self.rng.random() < 0.4 else "Car"
        make = draw_make(self.rng, kind, lane.width_m)
        left = -self.net.inwards * (lane.width_m / 2 - make.size_m[1] / 2 - 0.1)
        steps = self.net.wander(lane.number, self.rng, 200.0)
        vehicle = self.spawner.make(make, steps, s, left, 0)
        vehicle.hazard = True
        if self.rng.random() < BACKING:
            vehicle.reverse_m = float(self.rng.uniform(3.0, 6.0))
        # Behind the own vehicle nobody would ever see it.
        ahead = (vehicle.x - self.ego.x) * np.cos(self.ego.heading)
        ahead += (vehicle.y - self.ego.y) * np.sin(self.ego.heading)
        if ahead > 25.0 and self.spawner.fits(vehicle, self.vehicles):
            self.vehicles.append(vehicle)

    def renew(self, frame: int) -> list[Vehicle]:
        """Take away who is far, let others come; returns who went."""
        gone = [v for v in self.vehicles[1:] if is_gone(v, self.ego)]
        if gone:
            self.vehicles = [v for v in self.vehicles if v not in gone]
            self.gone += [v for v in gone if v.trail]
        every = max(round(RENEW_S * self.config.camera.fps), 1)
        wanted = self.spawner.wanted(self.ego.x, self.ego.y)
        if frame % every == 0 and len(self.vehicles) <= wanted:
            self._come(frame, first=False)
        return gone

    def see_parked(self, frame: int, time_s: float) -> None:
        """Note which parked vehicles are near, and let one leave now and then."""
        c, s = np.cos(self.ego.heading), np.sin(self.ego.heading)
        waiting = sum(v.hold == "kerb" for v in self.vehicles)
        most = AT_ONCE - waiting if self.config.behaviour.vehicles > 0 else 0
        for parked in self.parked:
            dx, dy = parked.x - self.ego.x, parked.y - self.ego.y
            if parked.end >= 0 or abs(dx) > SEEN_M or abs(dy) > SEEN_M:
                if parked.first >= 0 and parked.end < 0:
                    parked.end = frame
                continue
            if parked.first < 0:
                parked.first = frame
            if parked.leaves and most > 0 and 14.0 < dx * c + dy * s < 55.0 and abs(dy * c - dx * s) < 15.0:
                parked.leaves = False
                if self._leave(parked, frame, time_s):
                    parked.end = frame
                    most -= 1

    def _leave(self, parked: Parked, frame: int, time_s: float) -> bool:
        """Make a parked vehicle one that moves: it reverses or indicates, and waits for a gap."""
        row = self.net.layout.lanes[parked.lane]
        lanes = [self.net.layout.lanes[n] for n in self.net.layout.roads[row.road].lanes]
        own = [o for o in lanes if o.kind == "vehicle" and o.forward == row.forward]
        lane = max(own, key=lambda o: o.order)
        along, left = lane.line.project(np.array([[parked.x, parked.y]]))
        if float(along[0]) > lane.line.length - 25.0:
            return False
        steps = self.net.wander(lane.number, self.rng, 250.0)
        vehicle = self.spawner.make(parked.make, steps, float(along[0]), float(left[0]), frame)
        vehicle.home_m, vehicle.hold = 0.0, "kerb"
        vehicle.reverse_m = parked.reverse_m
        vehicle.hold_until = time_s + float(self.rng.uniform(1.5, 3.0)) + parked.reverse_m
        self.vehicles.append(vehicle)
        return True

    def actors(self, n_frames: int, fps: float) -> tuple[Actor, ...]:
        """All actors but the own vehicle, moving ones first, in the order of their entry.

        Args:
            n_frames: of the scene.
            fps: frames per second.
        """
        # By birth: numbers of actors must not depend on when a vehicle went out of range.
        moved = sorted((v for v in [*self.gone, *self.vehicles[1:]] if v.trail), key=lambda v: v.number)
        found = [build_vehicle_actor(vehicle, number, fps) for number, vehicle in enumerate(moved)]
        for parked in self.parked:
            end = n_frames if parked.end < 0 else parked.end
            if 0 <= parked.first < end:
                found.append(_still(parked, len(found), end))
        return tuple(found)


def start_m(lane: Lane) -> float:
    """Metres along its first lane at which the middle of the own vehicle starts."""
    return min(START_M, 0.3 * lane.line.length) + 1.3


def _still(parked: Parked, number: int, end: int) -> Actor:
    """A parked vehicle as an actor that does not count."""
    n = end - parked.first
    zeros = np.zeros(n)
    return Actor(
        number,
        parked.make.kind,
        parked.make.model,
        parked.make.size_m,
        parked.make.look,
        parked.first,
        np.tile([parked.x, parked.y, 0.0], (n, 1)),
        np.full(n, parked.heading),
        zeros,
        np.zeros(n, dtype=np.uint8),
        np.full(n, Pose.STAND, dtype=np.uint8),
        zeros,
        zeros,
        np.full(n, parked.lane, dtype=np.int64),
        False,
        {name: np.zeros(n, dtype=np.int8) for name in FACTS},
    )
