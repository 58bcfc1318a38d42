"""How hard each vehicle must brake: for what lies on its way, for lights, lines, crossings and bus stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats
from roadaware.simulator.actors import Light
from roadaware.simulator.traffic.junctions import READY, SIGHT_M, Junctions, Lights, Zebras
from roadaware.simulator.traffic.vehicle import Event, Vehicle

SAMPLES = 28
"""Places on the way ahead that are considered."""
MARGIN_M = 0.25
"""Room to the side that is kept."""
HARDEST = 6.0
"""m/s2: as hard as one can brake."""
STANDING_M = 2.0
"""Room that is kept when everybody stands; more behind what one may want to pass."""
BEHIND_OBSTACLE_M = 8.5
MORE_M, NEAR_BERTH_M = 3.0, 16.0
"""More room behind who reverses, and from where on before the bay it is kept."""


@dataclass(frozen=True, eq=False)
class Bodies:
    """Everything on the road that has a body, the vehicles that move first.

    Args:
        x: (m,) metres.
        y: (m,) metres.
        heading: (m,) radians.
        length: (m,) metres.
        width: (m,) metres.
        speed: (m,) m/s along the heading.
        passable: (m,) whether it stands or crawls for reasons of its own, so that others pass it.
        lies: (m,) whether it is a thing that lies about, which faces nowhere.
        backs: (m,) whether it is about to reverse or does, so that others keep back.
    """

    x: Floats
    y: Floats
    heading: Floats
    length: Floats
    width: Floats
    speed: Floats
    passable: npt.NDArray[np.bool_]
    lies: npt.NDArray[np.bool_]
    backs: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sight:
    """Obstacles that vehicles see on their paths.

    Args:
        bound: (n,) m/s2 that they may have at most.
        leader: (n,) the body that binds them, -1 for none.
        gap: (n,) metres to it.
        for_people: (n,) m/s2 that people allow.
        bodies: (n, m) m/s2 that each body allows.
        people: (n, p) m/s2 that each person on the road allows.
    """

    bound: Floats
    leader: npt.NDArray[np.int64]
    gap: Floats
    for_people: Floats
    bodies: Floats
    people: Floats


def collect_bodies(vehicles: Sequence[Vehicle], things: Floats) -> Bodies:
    """The bodies of vehicles and of things that stand.

    Args:
        vehicles: that move.
        things: (k, 5) x, y, heading, length, width.
    """
    rows = [(v.x, v.y, v.heading, v.length, v.width, v.v, _is_passable(v)) for v in vehicles]
    table = np.array(rows, dtype=np.float64).reshape(-1, 7)
    still = np.column_stack([things, np.zeros(len(things)), np.ones(len(things))])
    table = np.concatenate([table, still])
    x, y, heading, length, width, speed, passable = table.T
    lies = np.arange(len(table)) >= len(vehicles)
    backs = np.array([_backs(v) for v in vehicles] + [False] * len(things))
    return Bodies(x, y, heading, length, width, speed, passable > 0, lies, backs)


def _is_passable(vehicle: Vehicle) -> bool:
    aside = vehicle.aside_for is not None
    stands = vehicle.hazard or vehicle.hold in ("bay", "berth", "parked")
    return vehicle.kind == "Cyc" or stands or aside or _backs(vehicle)


def _backs(vehicle: Vehicle) -> bool:
    """Whether somebody reverses, or is nearly where they will."""
    berth = vehicle.berth
    nears = berth is not None and vehicle.hold != "parked" and berth.stop_s - vehicle.s < NEAR_BERTH_M
    return nears or (vehicle.reverse_m > 0 and vehicle.hold != "kerb")


def find_obstacles_ahead(
    vehicles: Sequence[Vehicle], bodies: Bodies, people: Floats, velocity: Floats
) -> Sight:
    """Find obstacles on the paths of vehicles.

    Args:
        vehicles: that move.
        bodies: of `collect_bodies`.
        people: (p, 2) on the road.
        velocity: (p, 2) m/s.
    """
    way, ahead = _ways(vehicles)
    speed = np.array([max(v.v, 0.0) for v in vehicles])
    half = np.array([v.width / 2 for v in vehicles])
    gap, along = _gaps(way, ahead, half, bodies, np.array([v.length for v in vehicles]))
    accelerate = np.array([v.manners.accelerate for v in vehicles])
    headway = np.array([v.manners.headway_s for v in vehicles])
    small = np.array([v.kind == "Cyc" for v in vehicles])
    room = np.where(bodies.passable & ~small[:, None], BEHIND_OBSTACLE_M, STANDING_M)
    room = room + np.where(bodies.backs, MORE_M, 0.0)
    found = _compute_idm_acceleration(speed[:, None], gap, along, room, accelerate[:, None], headway[:, None])
    leader = found.argmin(1) if found.shape[1] else np.zeros(len(vehicles), dtype=np.int64)
    rows = np.arange(len(vehicles))
    bound = found[rows, leader] if found.shape[1] else np.full(len(vehicles), np.inf)
    near = gap[rows, leader] if found.shape[1] else np.full(len(vehicles), np.inf)
    leader = np.where(np.isfinite(near), leader, -1)
    each = _people_bounds(way, ahead, half, speed, people, velocity)
    for_people = np.maximum(each.min(axis=1, initial=np.inf), -HARDEST)
    return Sight(bound, leader, near, for_people, found, each)


def _ways(vehicles: Sequence[Vehicle]) -> tuple[Floats, Floats]:
    """(n, k, 3) where the middle of each bumper will be, and (n, k) metres until there."""
    way = np.empty((len(vehicles), SAMPLES, 3))
    ahead = np.empty((len(vehicles), SAMPLES))
    grid = np.arange(SAMPLES, dtype=np.float64)
    for row, vehicle in enumerate(vehicles):
        v = max(vehicle.v, 0.0)
        # As far as one needs to stop with reaction and 2 m/s2, and a room of its own.
        ahead[row] = grid * max(1.2, (12.0 + 2.2 * v + v * v / 4.0) / SAMPLES)
        s = vehicle.front + ahead[row]
        place = vehicle.path.many(s)
        left = vehicle.shift.many(s)
        way[row, :, 0] = place[:, 0] - left * np.sin(place[:, 2])
        way[row, :, 1] = place[:, 1] + left * np.cos(place[:, 2])
        way[row, :, 2] = place[:, 2]
    return way, ahead


def _gaps(way: Floats, ahead: Floats, half: Floats, bodies: Bodies, length: Floats) -> tuple[Floats, Floats]:
    """(n, m) metres free until each body, inf if not in the way, and (n, m) its speed along the way."""
    n, m = len(way), len(bodies.x)
    spacing = (ahead[:, 1] - ahead[:, 0])[:, None, None]
    turn = bodies.heading - way[:, :, 2:3]
    c, s = np.abs(np.cos(turn)), np.abs(np.sin(turn))
    dx, dy = way[:, :, 0:1] - bodies.x, way[:, :, 1:2] - bodies.y
    cos, sin = np.cos(bodies.heading), np.sin(bodies.heading)
    side = half[:, None, None] + MARGIN_M
    within = np.abs(dx * cos + dy * sin) < bodies.length / 2 + side * s + spacing / 2 * c
    within &= np.abs(dy * cos - dx * sin) < bodies.width / 2 + side * c + spacing / 2 * s
    # A body that is beside rather than ahead looks out for itself.
    front = way[:, 0]
    lon = (bodies.x - front[:, 0:1]) * np.cos(front[:, 2:3])
    lon += (bodies.y - front[:, 1:2]) * np.sin(front[:, 2:3])
    within &= (lon > -0.25 * length[:, None])[:, None, :]
    if m >= n:
        within[np.arange(n), :, np.arange(n)] = False
    first = within.argmax(1)
    hit = within.any(1)
    rows, columns = np.arange(n)[:, None], np.arange(m)[None]
    heading = way[rows, first, 2]
    away = -(dx[rows, first, columns] * np.cos(heading) + dy[rows, first, columns] * np.sin(heading))
    extent = bodies.length / 2 * c[rows, first, columns] + bodies.width / 2 * s[rows, first, columns]
    gap = np.where(hit, ahead[rows, first] + away - extent, np.inf)
    along = bodies.speed * np.cos(bodies.heading - heading)
    return gap, along


def _compute_idm_acceleration(
    v: Floats, gap: Floats, along: Floats, room: Floats, accelerate: Floats, headway: Floats
) -> Floats:
    """m/s2 behind bodies (Treiber, Hennecke and Helbing 2000)."""
    # Who comes towards one counts as standing: the model is of those who follow.
    closing = v - np.maximum(along, 0.0)
    wanted = room + np.maximum(v * headway + v * closing / (2 * np.sqrt(accelerate * 2.2)), 0.0)
    # Divided by below: bodies that touch, or overlap in their
    # corners, would give an infinite or a wrong sign.
    gap = np.maximum(gap, 0.15)
    found = accelerate * (1.0 - (wanted / gap) ** 2)
    # Physics first: what must be lost until there.
    must = np.where(closing > 0, -(closing**2) / (2 * np.maximum(gap - 0.8, 0.15)), 0.0)
    return np.where(np.isfinite(gap), np.maximum(np.minimum(found, must * 1.05), -HARDEST), np.inf)


def _people_bounds(
    way: Floats, ahead: Floats, half: Floats, speed: Floats, people: Floats, velocity: Floats
) -> Floats:
    """(n, p) m/s2 that each allows who is or will be in the way when one gets there."""
    if not len(people):
        return np.zeros((len(way), 0))
    dx, dy = people[:, 0] - way[:, :, 0:1], people[:, 1] - way[:, :, 1:2]
    near = (dx**2 + dy**2).argmin(1)
    rows, columns = np.arange(len(way))[:, None], np.arange(len(people))[None]
    heading = way[rows, near, 2]
    c, s = np.cos(heading), np.sin(heading)
    dx, dy = dx[rows, near, columns], dy[rows, near, columns]
    along = ahead[rows, near] + dx * c + dy * s
    left = dy * c - dx * s
    drift = velocity[:, 1] * c - velocity[:, 0] * s
    # At least 2 m/s: to one who stands, everybody on foot would otherwise be in the way at some time.
    until = np.clip(along, 0.0, None) / np.maximum(speed[:, None], 2.0) + 1.2
    later = left + drift * until
    band = half[:, None] + 0.75
    low, high = np.minimum(left, later), np.maximum(left, later)
    # Those who have passed the middle and walk on are out of the way soon.
    inside = (low < band) & (high > -band) & (along > -0.2) & (along < ahead[:, -1:] + 1.0)
    gap = np.maximum(along - 1.3, 0.1)
    must = speed[:, None] ** 2 / (2 * gap)
    bound = np.where(must > 1.6, -1.1 * must, np.inf)
    bound = np.where(along < 3.5, np.minimum(bound, -1.5), bound)
    result: Floats = np.where(inside, bound, np.inf)
    return result


# Rules: how hard each vehicle must brake for lights, lines, zebra crossings and bus stops ahead.

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
        """Vehicles that approach each junction and are not stopped by a light."""
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

    def bound(
        self, vehicle: Vehicle, coming: Coming, others: Sequence[Vehicle], time_s: float
    ) -> tuple[float, Event | None]:
        """m/s2 that lines ahead allow, and the line that allows least; None where none bounds it.

        Args:
            vehicle: that drives.
            coming: of `coming`.
            others: all vehicles, for who stands behind a junction.
            time_s: now.
        """
        # Lines beyond which even gentle braking begins in time need no look yet.
        horizon = vehicle.v**2 / 3.0 + 12.0 + vehicle.v
        found, line = self._inside(vehicle, coming, others)
        for event in vehicle.path.events:
            gap = event.s - vehicle.front
            if gap < -PASSED_M:
                continue
            if gap > horizon:
                break
            if self._stops(vehicle, event, gap, coming, others, time_s):
                least = stopping_acceleration(vehicle, gap)
                if least < found:
                    found, line = least, event
                break
        return found, line

    def _inside(
        self, vehicle: Vehicle, coming: Coming, others: Sequence[Vehicle]
    ) -> tuple[float, Event | None]:
        """m/s2 of one who waits inside a junction for a gap, and the line of that junction."""
        hold = self.junctions.inside(vehicle)
        if hold is None:
            return float(np.inf), None
        room = find_blocker_beyond(vehicle, hold.event, others) is None
        if room and self.junctions.proceed(hold, coming.get(hold.event.number, ())):
            return float(np.inf), None
        return stopping_acceleration(vehicle, hold.leg.start + hold.until - vehicle.front), hold.event

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
        if find_blocker_beyond(vehicle, event, others) is not None:
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


def stopping_acceleration(vehicle: Vehicle, gap: float) -> float:
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
    # The intelligent driver model again, with a line that stands as the one in front.
    wanted = 0.3 + 0.7 * v + v * v / (2 * float(np.sqrt(vehicle.manners.accelerate * 2.0)))
    smooth = vehicle.manners.accelerate * (1.0 - (wanted / gap) ** 2)
    return float(max(min(smooth, -must if must > 1.2 else np.inf), -max(1.15 * must, 1.0), -HARDEST))


def find_blocker_beyond(vehicle: Vehicle, event: Event, others: Sequence[Vehicle]) -> Vehicle | None:
    """Who stands right behind a junction, so that one could not leave it again; None where nobody does."""
    end = vehicle.path.legs[event.leg].end
    x, y, heading = vehicle.path.at(end + 0.5 * vehicle.length + 1.5)
    c, s = float(np.cos(heading)), float(np.sin(heading))
    for other in others:
        if other is vehicle or other.v > 1.5 or other.kind == "Cyc":
            continue
        dx, dy = other.x - x, other.y - y
        beside = abs(dy * c - dx * s) < (vehicle.width + other.width) / 2
        if beside and abs(dx * c + dy * s) < (vehicle.length + other.length) / 2 + 1.5:
            return other
    return None


# Strips: where everybody is beside the path of one vehicle, to see whether there is room for a manoeuvre.

GRID_M = 3.0
# Longer than any road, and finite: differences of it stay numbers, those of inf would be NaN.
FAR_M = 1e6
ROOM_M, URGENT_M = 0.35, 0.1
"""Between sides of vehicles, and when it is urgent."""


@dataclass(frozen=True, eq=False)
class Strip:
    """Bodies in the axes of a path.

    Args:
        along: (m,) metres along the path before its vehicle's middle, `FAR_M` for who is elsewhere.
        left: (m,) metres to the left of the path.
        onward: (m,) m/s along the path.
        facing: (m,) cosine of their heading against the path; 1 for things that lie about.
        half: (m,) half of the room they take across the path.
        reach: (m,) half of the room they take along it.
        lies: (m,) whether it is a thing that lies about.
    """

    along: Floats
    left: Floats
    onward: Floats
    facing: Floats
    half: Floats
    reach: Floats
    lies: Bools


def project_bodies(vehicle: Vehicle, bodies: Bodies, own: int, back_m: float, ahead_m: float) -> Strip:
    """Where bodies are beside the path of a vehicle.

    Args:
        vehicle: whose path it is.
        bodies: on the road.
        own: its own place among them; -1 for none.
        back_m: how far back to look.
        ahead_m: how far ahead.
    """
    # Between samples the heading hardly turns; the exact length follows from the offset to the nearest one.
    s = vehicle.s + np.arange(-back_m, ahead_m + GRID_M, GRID_M)
    table = vehicle.path.many(s)
    dx, dy = bodies.x - table[:, 0:1], bodies.y - table[:, 1:2]
    near = (dx**2 + dy**2).argmin(0)
    columns = np.arange(len(bodies.x))
    heading = table[near, 2]
    c, sn = np.cos(heading), np.sin(heading)
    dx, dy = dx[near, columns], dy[near, columns]
    lon = dx * c + dy * sn
    turn = bodies.heading - heading
    facing, across = np.cos(turn), np.abs(np.sin(turn))
    # Farther from the nearest sample than the grid allows a body lies beyond an end of the strip.
    along = np.where(np.abs(lon) < 2 * GRID_M, s[near] + lon - vehicle.s, FAR_M)
    if own >= 0:
        along[own] = FAR_M
    half = bodies.width / 2 * np.abs(facing) + bodies.length / 2 * across
    reach = bodies.length / 2 * np.abs(facing) + bodies.width / 2 * across
    onward, facing = bodies.speed * facing, np.where(bodies.lies, 1.0, facing)
    return Strip(along, dy * c - dx * sn, onward, facing, half, reach, bodies.lies)


def is_free(
    vehicle: Vehicle, strip: Strip, left_m: float, way_m: float, time_s: float, but: Sequence[int]
) -> bool:
    """Whether a vehicle can drive beside its path for a while and meets nobody.

    Args:
        vehicle: that wants to.
        strip: of its path.
        left_m: to the left of the path.
        way_m: how far it will drive there.
        time_s: how long.
        but: places of bodies that do not count.
    """
    room = URGENT_M if vehicle.beacon else ROOM_M
    side = np.abs(strip.left - left_m) < vehicle.width / 2 + strip.half + room
    side &= strip.along < FAR_M
    side[list(but)] = False
    own = vehicle.length / 2
    oncoming = strip.facing < -0.3
    comes = np.maximum(-strip.onward, 3.0) * time_s
    meets = oncoming & (strip.along > -own - 2) & (strip.along - strip.reach - comes < way_m + 8.0)
    faster = np.maximum(strip.onward - max(vehicle.v, 2.0), 0.0) * time_s
    back = -own - strip.reach - np.where(strip.lies, 0.0, 5.0 + faster)
    meets |= ~oncoming & (strip.along > back) & (strip.along - strip.reach < way_m + 6.0)
    return not bool((meets & side).any())


def is_free_of_people(vehicle: Vehicle, people: Floats, left_m: float, way_m: float) -> bool:
    """Whether nobody is on foot where a vehicle wants to drive.

    Args:
        vehicle: that wants to.
        people: (p, 2) on the road.
        left_m: to the left of its path.
        way_m: how far it will drive there.
    """
    if not len(people):
        return True
    table = vehicle.path.many(vehicle.s + np.arange(0.0, way_m + 6.0, 1.5))
    x = table[:, 0] - left_m * np.sin(table[:, 2])
    y = table[:, 1] + left_m * np.cos(table[:, 2])
    away = np.hypot(people[:, 0] - x[:, None], people[:, 1] - y[:, None])
    return bool(away.min() > vehicle.width / 2 + 1.6)
