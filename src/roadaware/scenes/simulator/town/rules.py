"""Rules: what holds on each road and lane of a layout, looked up by number."""

from __future__ import annotations

from dataclasses import dataclass

from roadaware.scenes.simulator.layout import Crossing, Layout, Turn
from roadaware.scenes.simulator.town.spots import STOP_GAP_M

MOUTH_M = 9.0
"""Lines end at a crossing that lies nearer than this to the end of its road."""
_ORDER: tuple[Turn, ...] = ("left", "straight", "right")


@dataclass(frozen=True, eq=False)
class Rules:
    """What holds where.

    Args:
        crossings: of each road, by its number.
        free: (start, end) along each road between its crossings, by its number.
        stops: lane number to where on it one stops, and whether a light says so.
        turns: lane number to where one may go from it.
    """

    crossings: dict[int, tuple[Crossing, ...]]
    free: dict[int, tuple[tuple[float, float], ...]]
    stops: dict[int, tuple[float, bool]]
    turns: dict[int, tuple[Turn, ...]]


def rules_of(layout: Layout) -> Rules:
    """The rules of a layout.

    Args:
        layout: a town.
    """
    crossings: dict[int, list[Crossing]] = {road.number: [] for road in layout.roads}
    for crossing in layout.crossings:
        crossings[crossing.road].append(crossing)
    free = {road.number: _free(crossings[road.number], road.line.length) for road in layout.roads}
    stops: dict[int, tuple[float, bool]] = {}
    turns: dict[int, set[Turn]] = {}
    for junction in layout.junctions:
        for lane, s in junction.stops.items():
            stops[lane] = (s, bool(junction.signals))
        for way in junction.connectors:
            turns.setdefault(way.start, set()).add(way.turn)
    ordered = {lane: tuple(turn for turn in _ORDER if turn in ways) for lane, ways in turns.items()}
    return Rules({number: tuple(own) for number, own in crossings.items()}, free, stops, ordered)


def _free(crossings: list[Crossing], length: float) -> tuple[tuple[float, float], ...]:
    found, low = [], 0.0
    for crossing in sorted(crossings, key=lambda x: x.s_m):
        half = crossing.width_m / 2 + STOP_GAP_M
        start, end = crossing.s_m - half, crossing.s_m + half
        if start - low > (MOUTH_M if low == 0.0 else 0.0):
            found.append((low, start))
        low = end
    if length - low > (MOUTH_M if low > 0.0 else 0.0):
        found.append((low, length))
    return tuple(found)
