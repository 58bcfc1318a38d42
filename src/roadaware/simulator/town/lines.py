"""Lines along a road: in its middle, between lanes and at its kerbs; and all else that is painted on it."""

from __future__ import annotations

from itertools import pairwise

from roadaware.simulator.town.brush import Brush
from roadaware.simulator.town.markings import (
    draw_bus_stops,
    draw_crossing,
    draw_lane_symbols,
    draw_parking_bays,
    draw_stop_line,
)
from roadaware.simulator.town.palette import WHITE, YELLOW
from roadaware.simulator.town.regions import lateral_offset


def draw_road_markings(brush: Brush) -> None:
    """Everything that is painted on a stretch of road.

    Args:
        brush: of the stretch.
    """
    _lines(brush)
    for number in brush.road.lanes:
        lane = brush.layout.lanes[number]
        draw_stop_line(brush, lane)
        draw_lane_symbols(brush, lane)
        draw_bus_stops(brush, lane)
        if lane.kind == "parking":
            draw_parking_bays(brush, lane)
    for crossing in brush.rules.crossings[brush.road.number]:
        if brush.span[0] <= crossing.s_m < brush.span[1]:
            draw_crossing(brush, crossing)


def _lines(brush: Brush) -> None:
    """Lines along the road: in its middle, between lanes and at the kerbs."""
    road, palette = brush.road, brush.palette
    lanes = [brush.layout.lanes[number] for number in road.lanes]
    many = sum(lane.kind == "vehicle" for lane in lanes) > 2
    if many and not palette.left:
        for left in (0.11, -0.11):
            brush.line(left, 0.1, palette.centre)
    else:
        brush.dashes(0.0, 0.12, palette.centre, 2.0, 4.0)
    for side in (1, -1):
        own = [lane for lane in lanes if lane.side == side and lane.kind in ("vehicle", "bus", "cycle")]
        own.sort(key=lambda lane: lane.order)
        for inner, outer in pairwise(own):
            left = lateral_offset(inner, road) + side * inner.width_m / 2
            if outer.kind == "vehicle":
                brush.dashes(left, 0.1, WHITE, 2.0, 4.0)
            else:
                brush.line(left, 0.24 if outer.kind == "bus" else 0.12, WHITE)
        last = own[-1]
        out = abs(lateral_offset(last, road)) + last.width_m / 2
        if road.half_width_m - out > 1.0:
            if last.kind == "cycle":
                brush.line(side * out, 0.12, WHITE)
        elif palette.left:
            for away in (0.2, 0.42):
                brush.line(side * (road.half_width_m - away), 0.09, YELLOW)
        else:
            brush.line(side * (road.half_width_m - 0.25), 0.1, palette.edge)
