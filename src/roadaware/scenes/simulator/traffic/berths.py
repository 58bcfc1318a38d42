"""Berths: parking bays that are backed into, and what reversing needs behind."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.layout import Lane, Layout
from roadaware.scenes.simulator.traffic.following import Bodies
from roadaware.scenes.simulator.traffic.strips import strip_of
from roadaware.scenes.simulator.traffic.vehicle import Berth, Shift, Vehicle

BAY_M = 5.8
"""Length of a bay."""
SIDEWAYS_M = 7.0
"""Of the path over which one moves into a bay."""
PATIENCE_S = 12.0
"""After which who finds no room behind drives on."""
BESIDE_M = 3.4
"""Farthest bay from the middle of the lane."""


def berth_beside(vehicle: Vehicle, bay: tuple[float, float]) -> Berth:
    """How a vehicle would back into a bay.

    Args:
        vehicle: on its lane.
        bay: metres along and to the left of its path.
    """
    along, left = bay
    return Berth(along + vehicle.base_m + SIDEWAYS_M + 0.2, along, left, SIDEWAYS_M)


def bays_beside(layout: Layout, lane: Lane) -> list[tuple[float, float]]:
    """Bays beside a lane that one can back into, metres along and to the left of it.

    Args:
        layout: roads.
        lane: of vehicles.
    """
    found: list[tuple[float, float]] = []
    for number in layout.roads[lane.road].lanes:
        row = layout.lanes[number]
        if row.kind == "parking" and row.forward == lane.forward and row.order == lane.order + 1:
            along, left = lane.line.project(bays_of(row))
            places = zip(along.tolist(), left.tolist(), strict=True)
            found += [(s, x) for s, x in places if abs(x) < BESIDE_M]
    return found


def bays_of(row: Lane) -> Floats:
    """(k, 2) the middles of the bays of a row.

    Args:
        row: of parking bays.
    """
    n = max(round(row.line.length / BAY_M), 1)
    found: Floats = row.line.at((np.arange(n) + 0.5) * row.line.length / n)
    return found


def back_in(vehicle: Vehicle, time_s: float) -> None:
    """Begin to back into the bay when nobody is behind, stand when done, or give it up.

    Args:
        vehicle: that has stopped beyond the bay.
        time_s: now.
    """
    berth = vehicle.berth
    if berth is None or time_s < vehicle.hold_until:
        return
    if vehicle.shift.target_m == vehicle.home_m and vehicle.shift.length == berth.length_m:
        if vehicle.reverse_m <= 0:
            vehicle.hold = "parked"
    elif not vehicle.blocked:
        bay = min(berth.bay_s, vehicle.s - vehicle.base_m - berth.length_m - 0.1)
        start = bay - vehicle.length / 2 + vehicle.tail_m + vehicle.base_m
        vehicle.shift = Shift(start, berth.length_m, berth.left_m, 0.0, vehicle.left_m)
        vehicle.home_m, vehicle.reverse_m = vehicle.left_m, vehicle.s - bay
    elif time_s - vehicle.hold_until > PATIENCE_S:
        vehicle.hold, vehicle.berth, vehicle.blocked = "", None, False


def clear_behind(vehicle: Vehicle, row: int, bodies: Bodies, people: Floats) -> bool:
    """Whether nobody is where somebody wants to reverse, or will soon be.

    Args:
        vehicle: that stands or reverses.
        row: its place among the bodies.
        bodies: of vehicles and things.
        people: (p, 2) on the road.
    """
    berth = vehicle.berth
    way = vehicle.reverse_m if berth is None or vehicle.reverse_m > 0 else vehicle.s - berth.bay_s
    strip = strip_of(vehicle, bodies, row, 45.0, 3.0)
    side = [vehicle.left_m, vehicle.left_m if berth is None else berth.left_m]
    low, high = min(side) - vehicle.width / 2 - 0.3, max(side) + vehicle.width / 2 + 0.3
    beside = (strip.left + strip.half > low) & (strip.left - strip.half < high)
    back = -vehicle.length / 2 - strip.reach
    fast = np.maximum(strip.onward, 0.0)
    # Who has stopped in good time keeps out of the way; the bay lies beside, not behind.
    room = min(way, 6.0) + 0.8 + np.where(fast > 2.0, 2.5 * fast, 0.0)
    near = (strip.along < 0) & (strip.along > back - room)
    if bool((beside & near).any()):
        return False
    c, s = np.cos(vehicle.heading), np.sin(vehicle.heading)
    dx, dy = (people - (vehicle.x, vehicle.y)).reshape(-1, 2).T
    ahead, left = dx * c + dy * s, dy * c - dx * s
    tail = -vehicle.length / 2
    behind = (ahead < tail + 0.5) & (ahead > tail - min(way, 4.0) - 1.2)
    left = left + vehicle.left_m
    return not bool((behind & (left > low - 0.6) & (left < high + 0.6)).any())
