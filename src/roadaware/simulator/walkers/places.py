"""Places where people cross a road: marked crossings, corners, and elsewhere where nobody parks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roadaware.simulator.layout import Layout
from roadaware.simulator.town.roads import BUILD_OUT_M
from roadaware.simulator.walkers.ways import Ways

PlaceKind = Literal["zebra", "signalled", "junction", "midblock"]
SIGNALIZED = {"zebra": "C", "signalled": "CS", "junction": "n/a", "midblock": "n/a"}
"""What regulates a place, as PIE says it: lines (C), lines and a signal (CS)."""
CORNER_M = 1.4
"""From the end of a road to where people cross it beside a junction."""


@dataclass(frozen=True)
class Place:
    """A crossing place, seen from one side.

    Args:
        band: number of the pavement they come from.
        far: number of the pavement they go to.
        road: number of the road.
        s: metres along the road.
        spread_m: how far to both sides they may stray.
        kind: how it is marked.
        walker_lights: numbers of the signals for those who walk.
        vehicle_lights: numbers of the signals that stop vehicles here.
        near_m: how far the pavement is built out into the road on this side.
        far_m: the same on the other side.
    """

    band: int
    far: int
    road: int
    s: float
    spread_m: float
    kind: PlaceKind
    walker_lights: tuple[int, ...] = ()
    vehicle_lights: tuple[int, ...] = ()
    near_m: float = 0.0
    far_m: float = 0.0


def collect_marked_places(layout: Layout, ways: Ways) -> tuple[Place, ...]:
    """Both sides of all zebra and signalled crossings.

    Args:
        layout: a town.
        ways: its pavements.
    """
    found = []
    for crossing in layout.crossings:
        lights = [layout.signals[number] for number in crossing.signals]
        walkers = tuple(light.number for light in lights if light.for_walkers)
        others = tuple(light.number for light in lights if not light.for_walkers)
        sides = ways.bands_of(crossing.road)
        spread = max(0.3, crossing.width_m / 2 - 0.5)
        for band, far in (sides, sides[::-1]):
            found.append(
                Place(band, far, crossing.road, crossing.s_m, spread, crossing.kind, walkers, others)
            )
    return tuple(found)


def find_unmarked_place(layout: Layout, ways: Ways, band: int, s: float) -> Place | None:
    """A place without marks; None where parking bays are in the way, or a marked crossing is near.

    Args:
        layout: a town.
        ways: its pavements.
        band: number of the pavement somebody comes from, beside a road.
        s: metres along the road.
    """
    here = ways.bands[band]
    left, right = ways.bands_of(here.road)
    far = right if band == left else left
    if not 1.0 <= s <= here.length_m - 1.0:
        return None
    if any(other.road == here.road and abs(other.s_m - s) < 4.5 for other in layout.crossings):
        return None
    near_m, far_m = (kerb_shift(layout, here.road, side, s) for side in (here.side, -here.side))
    if near_m is None or far_m is None:
        return None
    at_end = min(s, here.length_m - s) < 3.0
    return Place(
        band, far, here.road, s, 0.25, "junction" if at_end else "midblock", near_m=near_m, far_m=far_m
    )


def kerb_shift(layout: Layout, road: int, side: int, s: float) -> float | None:
    """How far the pavement reaches into the road at a length of it; None where cars may park.

    Args:
        layout: a town.
        road: number of the road.
        side: 1 left, -1 right.
        s: metres along the road.
    """
    for number in layout.roads[road].lanes:
        lane = layout.lanes[number]
        if lane.kind != "parking" or lane.side != side:
            continue
        along = layout.roads[road].line.project(lane.line.points[[0, -1]])[0]
        start, end = float(along.min()), float(along.max())
        # Half a body and a little: nobody squeezes between two bumpers.
        if start - 0.45 < s < end + 0.45:
            return None
        if start - BUILD_OUT_M - 0.45 < s < end + BUILD_OUT_M + 0.45:
            inside = start - BUILD_OUT_M + 0.45 < s < end + BUILD_OUT_M - 0.45
            return lane.width_m if inside else None
    return 0.0


def stop_places(layout: Layout) -> tuple[tuple[int, float], ...]:
    """(band, s) of the middle of all bus stops.

    Args:
        layout: a town.
    """
    found = []
    for lane in layout.lanes:
        for start, end in lane.bays:
            point = lane.line.at([(start + end) / 2])
            s = float(layout.roads[lane.road].line.project(point)[0][0])
            found.append((2 * lane.road + (0 if lane.side > 0 else 1), s))
    return tuple(found)
