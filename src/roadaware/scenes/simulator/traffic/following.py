"""Following: what lies on the way of each vehicle, and how hard it must brake for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.scenes.simulator.traffic.vehicle import Vehicle

SAMPLES = 28
"""Places on the way ahead that are looked at."""
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
    """What vehicles see on their ways.

    Args:
        bound: (n,) m/s2 that they may have at most.
        leader: (n,) the body that binds them, -1 for none.
        gap: (n,) metres to it.
        for_people: (n,) m/s2 that people allow.
    """

    bound: Floats
    leader: npt.NDArray[np.int64]
    gap: Floats
    for_people: Floats


def bodies_of(vehicles: Sequence[Vehicle], things: Floats) -> Bodies:
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


def look(vehicles: Sequence[Vehicle], bodies: Bodies, people: Floats, velocity: Floats) -> Sight:
    """What lies on the ways of vehicles.

    Args:
        vehicles: that move.
        bodies: of `bodies_of`.
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
    found = _bound(speed[:, None], gap, along, room, accelerate[:, None], headway[:, None])
    leader = found.argmin(1) if found.shape[1] else np.zeros(len(vehicles), dtype=np.int64)
    rows = np.arange(len(vehicles))
    bound = found[rows, leader] if found.shape[1] else np.full(len(vehicles), np.inf)
    near = gap[rows, leader] if found.shape[1] else np.full(len(vehicles), np.inf)
    leader = np.where(np.isfinite(near), leader, -1)
    for_people = _people_bound(way, ahead, half, speed, people, velocity)
    return Sight(bound, leader, near, for_people)


def _ways(vehicles: Sequence[Vehicle]) -> tuple[Floats, Floats]:
    """(n, k, 3) where the middle of each bumper will be, and (n, k) metres until there."""
    way = np.empty((len(vehicles), SAMPLES, 3))
    ahead = np.empty((len(vehicles), SAMPLES))
    grid = np.arange(SAMPLES, dtype=np.float64)
    for row, vehicle in enumerate(vehicles):
        v = max(vehicle.v, 0.0)
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


def _bound(
    v: Floats, gap: Floats, along: Floats, room: Floats, accelerate: Floats, headway: Floats
) -> Floats:
    """m/s2 behind bodies (Treiber, Hennecke and Helbing 2000)."""
    closing = v - np.maximum(along, 0.0)
    wanted = room + np.maximum(v * headway + v * closing / (2 * np.sqrt(accelerate * 2.2)), 0.0)
    gap = np.maximum(gap, 0.15)
    found = accelerate * (1.0 - (wanted / gap) ** 2)
    # Physics first: what must be lost until there.
    must = np.where(closing > 0, -(closing**2) / (2 * np.maximum(gap - 0.8, 0.15)), 0.0)
    return np.where(np.isfinite(gap), np.maximum(np.minimum(found, must * 1.05), -HARDEST), np.inf)


def _people_bound(
    way: Floats, ahead: Floats, half: Floats, speed: Floats, people: Floats, velocity: Floats
) -> Floats:
    """(n,) m/s2 that those allow who are or will be in the way when one gets there."""
    found = np.full(len(way), np.inf)
    if not len(people):
        return found
    dx, dy = people[:, 0] - way[:, :, 0:1], people[:, 1] - way[:, :, 1:2]
    near = (dx**2 + dy**2).argmin(1)
    rows, columns = np.arange(len(way))[:, None], np.arange(len(people))[None]
    heading = way[rows, near, 2]
    c, s = np.cos(heading), np.sin(heading)
    dx, dy = dx[rows, near, columns], dy[rows, near, columns]
    along = ahead[rows, near] + dx * c + dy * s
    left = dy * c - dx * s
    drift = velocity[:, 1] * c - velocity[:, 0] * s
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
    result: Floats = np.maximum(np.where(inside, bound, np.inf).min(1), -HARDEST)
    return result
