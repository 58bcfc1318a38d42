"""Lines along a road: in its middle, between lanes and at its kerbs; and all else that is painted on it."""

from __future__ import annotations

from itertools import pairwise

from roadaware.simulator.town.brush import Brush
from roadaware.simulator.town.markings import (
    paint_bays,
    paint_bus_stops,
    paint_crossing,
    paint_stop,
    paint_symbols,
)
from roadaware.simulator.town.palette import WHITE, YELLOW
from roadaware.simulator.town.regions import lateral


def paint_road(brush: Brush) -> None:
    """Everything that is painted on a stretch of road.

    Args:
        brush: of the stretch.
    """
    _lines(brush)
    for number in brush.road.lanes:
        lane = brush.layout.lanes[number]
        paint_stop(brush, lane)
        paint_symbols(brush, lane)
        paint_bus_stops(brush, lane)
        if lane.kind == "parking":
            paint_bays(brush, lane)
    for crossing in brush.rules.crossings[brush.road.number]:
        if brush.span[0] <= crossing.s_m < brush.span[1]:
            paint_crossing(brush, crossing)


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
            left = lateral(inner, road) + side * inner.width_m / 2
            if outer.kind == "vehicle":
                brush.dashes(left, 0.1, WHITE, 2.0, 4.0)
            else:
                brush.line(left, 0.24 if outer.kind == "bus" else 0.12, WHITE)
        last = own[-1]
        out = abs(lateral(last, road)) + last.width_m / 2
        if road.half_width_m - out > 1.0:
            if last.kind == "cycle":
                brush.line(side * out, 0.12, WHITE)
        elif palette.left:
            for away in (0.2, 0.42):
                brush.line(side * (road.half_width_m - away), 0.09, YELLOW)
        else:
            brush.line(side * (road.half_width_m - 0.25), 0.1, palette.edge)
