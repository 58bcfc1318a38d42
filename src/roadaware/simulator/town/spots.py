"""Where along a street people cross, buses stop and cars park."""

from __future__ import annotations

import numpy as np

from roadaware.simulator.config import SceneConfig
from roadaware.simulator.layout import CrossingKind
from roadaware.simulator.town.roads import BEHIND_M, BUILD_OUT_M, Spans, Spot, Street

STOP_GAP_M = 1.8
"""From a crossing with lights to its stop line."""
MOUTH_GAP_M = 1.2
"""From a junction to the crossing on its arm."""
BUS_STOP_M = 14.0
BAY_M = 5.8
"""Length of one parking bay."""


def stop_distance(street: Street, node: int) -> float:
    """From the end of a street at a junction back to the line where one stops, in metres."""
    for spot in street.spots:
        if spot.node == node and spot.kind == "signalled":
            return MOUTH_GAP_M + spot.width_m + STOP_GAP_M
    return 0.5


def add_crossings(
    streets: list[Street], signalled: list[bool], config: SceneConfig, rng: np.random.Generator
) -> None:
    """Put crossings on streets: on the arms of junctions with lights, and along the way.

    Args:
        streets: of the town.
        signalled: which junctions have traffic lights.
        config: how many crossings there are.
        rng: of the town.
    """
    for street in streets:
        for node, at_start in ((street.start_node, True), (street.end_node, False)):
            if node >= 0 and rng.random() < (0.85 if signalled[node] else 0.15):
                kind: CrossingKind = "signalled" if signalled[node] else "zebra"
                width = float(rng.uniform(2.6, 3.4))
                away = MOUTH_GAP_M + width / 2 + (0.0 if signalled[node] else 5.0)
                s = away if at_start else street.length - away
                street.spots.append(Spot(s, width, kind, node))
        if street.on_route:
            mean = config.surroundings.crossings * street.length / 100.0
            for _ in range(int(mean + rng.random())):
                _between(street, rng, 24.0, street.length - 24.0)
    if config.preset == "crossing":
        _ensure(streets, rng)


def _between(street: Street, rng: np.random.Generator, low: float, high: float) -> bool:
    """Put a crossing somewhere between two lengths, unless another is near; whether there is one now."""
    if high <= low:
        return False
    s = float(rng.uniform(low, high))
    kind: CrossingKind = "zebra" if rng.random() < 0.55 else "signalled"
    if all(abs(s - spot.s_m) > 28.0 for spot in street.spots):
        street.spots.append(Spot(s, float(rng.uniform(2.8, 4.0)), kind))
        return True
    return False


def _ensure(streets: list[Street], rng: np.random.Generator) -> None:
    """At least one crossing between junctions that the own vehicle reaches, where there is room."""
    way = [street for street in streets if street.on_route][:3]
    if any(spot.node < 0 for street in way for spot in street.spots if street.on_route):
        return
    for k, street in enumerate(way):
        if _between(street, rng, BEHIND_M + 30.0 if k == 0 else 20.0, street.length - 20.0):
            return


def add_bus_stops(street: Street, rng: np.random.Generator) -> None:
    """Put bus stops on a street of the way, one on a side at most.

    Args:
        street: with its crossings.
        rng: of the town.
    """
    if not street.on_route:
        return
    for side in (1, -1):
        if rng.random() > 0.6:
            continue
        taken = [(spot.s_m - 11.0, spot.s_m + 11.0) for spot in street.spots]
        free = [
            span for span in _free(taken, 9.0, street.length - 12.0) if span[1] - span[0] > BUS_STOP_M + 2
        ]
        if free:
            low, high = free[int(rng.integers(len(free)))]
            start = float(rng.uniform(low, high - BUS_STOP_M))
            street.stops[side] = ((start, start + BUS_STOP_M),)


def add_parking_bays(street: Street, rng: np.random.Generator) -> None:
    """Put rows of parking bays on a street that has room for them.

    Args:
        street: with its crossings and bus stops.
        rng: of the town.
    """
    if not street.profile.parking:
        return
    for side in (1, -1):
        taken = [(spot.s_m - 8.0, spot.s_m + 8.0) for spot in street.spots]
        taken += [(start - 3.0, end + 3.0) for start, end in street.stops[side]]
        low = 8.0 if street.start_node >= 0 else 1.0
        high = street.length - (8.0 if street.end_node >= 0 else 1.0)
        rows = []
        for start, end in _free(taken, low, high):
            at = start + BUILD_OUT_M
            while end - at - BUILD_OUT_M > 2 * BAY_M:
                most = int((end - at - BUILD_OUT_M) / BAY_M)
                n = min(most, int(rng.integers(3, 8)))
                if n < 2:
                    break
                rows.append((at, at + n * BAY_M))
                at += n * BAY_M + 2 * BUILD_OUT_M + (5.0 if rng.random() < 0.5 else 0.0)
        street.parking[side] = tuple(rows)


def _free(taken: list[tuple[float, float]], low: float, high: float) -> Spans:
    """What is left between two lengths outside spans that are taken."""
    found = []
    for start, end in sorted(taken):
        if start > low:
            found.append((low, min(start, high)))
        low = max(low, end)
    if high > low:
        found.append((low, high))
    return tuple(found)
