"""Which traffic lights a junction's approach and a crossing get, and where they stand."""

from __future__ import annotations

import numpy as np

from roadaware.scenes.simulator.layout import Floats
from roadaware.scenes.simulator.town.profiles import Spot, Street
from roadaware.scenes.simulator.town.signals import BESIDE_M, Heads


def approach_heads(
    heads: Heads,
    centre: Floats,
    arm: float,
    stop: float,
    across: float,
    half_width: float,
    side: int,
    group: int,
    lanes: tuple[int, ...],
    junction: int,
) -> list[int]:
    """The light at the stop line of an approach and its repeat on the far side.

    Args:
        heads: gets them.
        centre: (2,) of the junction.
        arm: heading of the arm away from the junction, in radians.
        stop: from the centre to the stop line, in metres.
        across: from the centre to the far side, in metres.
        half_width: of the road, to its kerb.
        side: 1 where traffic keeps to the left, -1 to the right.
        group: that shows the same.
        lanes: that obey it.
        junction: its number.
    """
    travel = arm + np.pi
    go = np.array([np.cos(travel), np.sin(travel)])
    left = np.array([-go[1], go[0]])
    beside = side * (half_width + BESIDE_M) * left
    near = centre - (stop - 0.4) * go + beside
    far = centre + across * go + beside
    return [heads.add(place, arm, group, lanes, junction=junction) for place in (near, far)]


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
        for kerb in (own, -own):
            found.append(heads.add(here.beside(kerb * out)[0], facing, vehicles, lanes, -1, crossing))
    return tuple(found)
