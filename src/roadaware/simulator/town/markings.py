"""Markings at places on a road: stop and give-way lines, crossings, bays, arrows, words and symbols."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.layout import Crossing, Lane
from roadaware.simulator.town.brush import Brush
from roadaware.simulator.town.drawing import (
    bar,
    build_arrow_symbol,
    build_bicycle_symbol,
    build_word_symbol,
    dashes_across,
    teeth_across,
)
from roadaware.simulator.town.ground import MARKING_M, TACTILE
from roadaware.simulator.town.palette import WHITE, YELLOW
from roadaware.simulator.town.regions import KERB_M, lateral_offset
from roadaware.simulator.town.spots import BAY_M, STOP_GAP_M
from roadaware.simulator.town.tracks import strip

STRIPE_M = 0.6


def _road_s(brush: Brush, lane: Lane, s: float) -> float:
    """A length along a lane as one along its road."""
    return float(brush.road.line.project(lane.line.at(np.array([s])))[0][0])


def draw_stop_line(brush: Brush, lane: Lane) -> None:
    """The line where one stops or gives way before a junction, and an arrow where there are several lanes.

    Args:
        brush: of a stretch.
        lane: on it.
    """
    if lane.number not in brush.rules.stops:
        return
    at, lit = brush.rules.stops[lane.number]
    s, left = _road_s(brush, lane, at), lateral_offset(lane, brush.road)
    if lit:
        shape = bar(0.3, lane.width_m)
    elif brush.palette.left:
        row = dashes_across(lane.width_m, 0.6, 0.3, 0.2)
        shape = np.concatenate([row, row - np.array([0.4, 0.0])])
    else:
        shape = teeth_across(lane.width_m)
    brush.stamp(s, left, shape, WHITE, lane.forward)
    turns = brush.rules.turns.get(lane.number, ())
    same = [x for x in brush.road.lanes if brush.layout.lanes[x].kind == "vehicle"]
    if lane.kind == "vehicle" and len(same) > 2 and at > 14.0:
        back = -1.0 if lane.forward else 1.0
        for turn in turns:
            brush.stamp(s + 7.0 * back, left, build_arrow_symbol(turn), WHITE, lane.forward)


def draw_lane_symbols(brush: Brush, lane: Lane) -> None:
    """Words on bus lanes and bicycles on cycle lanes, again and again.

    Args:
        brush: of a stretch.
        lane: on it.
    """
    if lane.kind not in ("bus", "cycle"):
        return
    shape = build_word_symbol("BUS", 2.3, 4.2) if lane.kind == "bus" else build_bicycle_symbol()
    left = lateral_offset(lane, brush.road)
    for s in np.arange(14.0, brush.road.line.length - 8.0, 34.0 if lane.kind == "bus" else 26.0):
        if any(start + 2.0 < s < end - 2.0 for start, end in brush.free):
            brush.stamp(float(s), left, shape, WHITE, lane.forward)


def draw_parking_bays(brush: Brush, lane: Lane) -> None:
    """The boxes of a row of parking bays.

    Args:
        brush: of a stretch.
        lane: the row.
    """
    ends = sorted(_road_s(brush, lane, s) for s in (0.0, lane.line.length))
    left = lateral_offset(lane, brush.road)
    inner = left - lane.side * lane.width_m / 2
    brush.line(inner, 0.1, WHITE, ends[0], ends[1])
    n = max(1, round((ends[1] - ends[0]) / BAY_M))
    for s in np.linspace(ends[0], ends[1], n + 1):
        brush.stamp(float(s), left, bar(0.1, lane.width_m), WHITE, lane.forward)


def draw_bus_stops(brush: Brush, lane: Lane) -> None:
    """The box in which buses stop, with its words.

    Args:
        brush: of a stretch.
        lane: the stop lies on it or beside it.
    """
    for bay in lane.bays:
        start, end = sorted(_road_s(brush, lane, s) for s in bay)
        outer = abs(lateral_offset(lane, brush.road)) + lane.width_m / 2
        edge = brush.road.half_width_m - 0.15
        inner = outer if edge - outer > 1.8 else max(outer - 2.9, outer - lane.width_m + 0.2)
        for out in (inner, edge):
            brush.dashes(lane.side * out, 0.12, YELLOW, 1.0, 0.5, start, end - 1.0)
        middle, wide = lane.side * (inner + edge) / 2, edge - inner
        for s in (start, end):
            brush.stamp(s, middle, bar(0.12, wide), YELLOW, lane.forward)
        centre = (start + end) / 2
        for text, moved in (("BUS", -2.6), ("STOP", 1.6)):
            go = 1.0 if lane.forward else -1.0
            brush.stamp(
                centre + moved * go,
                middle,
                build_word_symbol(text, min(2.2, wide - 0.3), 3.2),
                YELLOW,
                lane.forward,
            )


def draw_crossing(brush: Brush, crossing: Crossing) -> None:
    """Stripes or studs, the lines before them, and the rough paving at the kerbs.

    Args:
        brush: of the stretch it lies on.
        crossing: of the road.
    """
    half, wide = brush.road.half_width_m, crossing.width_m / 2
    piece = brush.track.cut(crossing.s_m - wide, crossing.s_m + wide)
    if crossing.kind == "zebra":
        n = round(half / STRIPE_M)
        step = half / n
        for k in range(n):
            low = -half + step * (2 * k + 0.5)
            brush.pile.flat(strip(piece, low, low + step), MARKING_M, WHITE)
        _before_zebra(brush, crossing)
    else:
        _studs(brush, crossing)
        _crossing_stops(brush, crossing)
    for low in (half + 0.16, -half - 1.0):
        brush.pile.flat(strip(piece, low, low + 0.84), KERB_M + 0.005, TACTILE)


def _across(brush: Brush, s: float, shape: Floats) -> None:
    """Something across the whole road, painted with the stretch of its crossing wherever it lies."""
    here = brush.track.at(np.clip(np.array([s]), 0.0, brush.track.length))
    angle = float(here.headings[0])
    c, sine = np.cos(angle), np.sin(angle)
    brush.pile.flat(here.points[0] + shape @ np.array([[c, sine], [-sine, c]]), MARKING_M, WHITE)


def _before_zebra(brush: Brush, crossing: Crossing) -> None:
    away = crossing.width_m / 2 + 1.0
    shape = dashes_across(2 * brush.road.half_width_m - 0.4, 0.5, 0.5, 0.2)
    for side in (1, -1):
        _across(brush, crossing.s_m + side * away, shape)


def _studs(brush: Brush, crossing: Crossing) -> None:
    wide = 2 * brush.road.half_width_m - 0.4
    shape = dashes_across(wide, 0.14, 0.36, 0.14) if brush.palette.left else bar(0.25, wide)
    for side in (1, -1):
        _across(brush, crossing.s_m + side * crossing.width_m / 2, shape)


def _crossing_stops(brush: Brush, crossing: Crossing) -> None:
    """Stop lines of a crossing between junctions; on the arm of a junction it has the junction's own."""
    sites = [brush.layout.signals[number] for number in crossing.signals]
    if not sites or any(site.junction >= 0 for site in sites):
        return
    for lane in (brush.layout.lanes[number] for number in brush.road.lanes):
        if lane.kind in ("vehicle", "bus", "cycle"):
            back = -1 if lane.forward else 1
            s = crossing.s_m + back * (crossing.width_m / 2 + STOP_GAP_M)
            _across(brush, s, bar(0.3, lane.width_m, 0.0, lateral_offset(lane, brush.road)))
