"""Strips: where everybody is beside the path of one vehicle, to see whether there is room for a manoeuvre."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Floats
from roadaware.scenes.simulator.traffic.following import Bodies
from roadaware.scenes.simulator.traffic.vehicle import Vehicle

GRID_M = 3.0
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


def strip_of(vehicle: Vehicle, bodies: Bodies, own: int, back_m: float, ahead_m: float) -> Strip:
    """Where bodies are beside the path of a vehicle.

    Args:
        vehicle: whose path it is.
        bodies: on the road.
        own: its own place among them; -1 for none.
        back_m: how far back to look.
        ahead_m: how far ahead.
    """
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


def people_free(vehicle: Vehicle, people: Floats, left_m: float, way_m: float) -> bool:
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
