"""Which traffic lights a junction's approach and a crossing get, and where they stand."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.town.corners import Arm
from roadaware.scenes.simulator.town.profiles import Spot, Street
from roadaware.scenes.simulator.town.signals import BESIDE_M, Heads


def approach_heads(
    centre: Floats, arms: list[Arm], far: list[float], place: int, stop: float, side: int
) -> tuple[Floats, Floats]:
    """Where the light at the stop line of an approach stands, and its repeat on the far side; (2,) each.

    Args:
        centre: (2,) of the junction.
        arms: of the junction.
        far: how far it reaches into each.
        place: of the approach among the arms.
        stop: from the centre to the stop line, in metres.
        side: 1 where traffic keeps to the left, -1 to the right.
    """
    own = arms[place]
    near = _beside(centre, own.heading + np.pi, -(stop - 0.4), side * (own.half_width_m + BESIDE_M))
    for k, arm in enumerate(arms):
        if opposite(own, arm):
            beside = side * (arm.half_width_m + BESIDE_M)
            return near, _beside(centre, arm.heading, far[k] + 0.8, beside)
    across = max(arm.half_width_m for k, arm in enumerate(arms) if k != place) + 1.0
    return near, _beside(centre, own.heading + np.pi, across, side * 2.0)


def opposite(first: Arm, second: Arm) -> bool:
    """Whether one goes straight on from one arm to the other."""
    return bool(abs((first.heading - second.heading) % (2 * np.pi) - np.pi) < np.deg2rad(40.0))


def _beside(centre: Floats, heading: float, along: float, left: float) -> Floats:
    c, s = np.cos(heading), np.sin(heading)
    place: Floats = centre + along * np.array([c, s]) + left * np.array([-s, c])
    return place


def crossing_heads(
    street: Street, spot: Spot, crossing: int, group: int, heads: Heads, side: int
) -> tuple[int, ...]:
    """The lights of a crossing: those of walkers, and between junctions those of vehicles, on both kerbs.

    Args:
        street: it lies on.
        spot: where.
        crossing: its number.
        group: of the walkers' lights of the junction; -1 for a new one.
        heads: gets them.
        side: 1 where traffic keeps to the left, -1 to the right.
    """
    out = street.profile.half_width_m + BESIDE_M
    found = []
    group = heads.group() if group < 0 else group
    node = spot.node
    for kerb in (1, -1):
        here = street.track.at(np.array([spot.s_m + kerb * (spot.width_m / 2 + 0.3)]))
        facing = float(here.headings[0]) - kerb * np.pi / 2
        found.append(heads.add(here.beside(kerb * out)[0], facing, group, (), node, crossing))
    if node >= 0:
        return tuple(found)
    vehicles = heads.group()
    for forward in (True, False):
        lanes = tuple(
            lane.number
            for lane in street.lanes
            if lane.kind in ("vehicle", "bus", "cycle") and lane.forward == forward
        )
        away = (spot.width_m / 2 + 0.9) * (-1 if forward else 1)
        here = street.track.at(np.array([spot.s_m + away]))
        facing = float(here.headings[0]) + (np.pi if forward else 0.0)
        own = side if forward else -side
        places = [here.beside(kerb * out)[0] for kerb in (own, -own)]
        found += [heads.add(place, facing, vehicles, lanes, -1, crossing) for place in places]
    return tuple(found)
