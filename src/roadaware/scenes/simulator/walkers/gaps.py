"""Gaps: what somebody who wants to cross sees coming, and whether there is time to walk over before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Floats
from roadaware.scenes.simulator.layout import Layout
from roadaware.scenes.simulator.view import TrafficView
from roadaware.scenes.simulator.walkers.places import Place

YIELDING_M_S = 2.0
"""Drivers who are slower than this before a crossing let people over it."""
BODY_M = 0.55
"""Room that somebody on foot keeps to the side of a vehicle."""
HORIZON_S = 12.0


@dataclass(frozen=True, eq=False)
class Coming:
    """Vehicles that pass, or could pass, a place where people cross; one row for each.

    Args:
        arrival_s: (v,) until its front reaches the line that people walk on; 0 if it stands on it.
        leaving_s: (v,) until its rear has left it.
        left_m: (v,) where it passes, in metres left of the middle of the road.
        half_m: (v,) half its width.
        distance_m: (v,) from its front to the line.
        speed: (v,) towards the line, m/s.
        row: (v,) in the view; 0 is the own vehicle.
    """

    arrival_s: Floats
    leaving_s: Floats
    left_m: Floats
    half_m: Floats
    distance_m: Floats
    speed: Floats
    row: Floats


class Lookout:
    """What can be seen of the traffic in one frame from the places where people cross.

    Args:
        layout: roads.
        view: the traffic of the frame.
    """

    def __init__(self, layout: Layout, view: TrafficView) -> None:
        self._layout = layout
        self.view = view
        self._roads: dict[int, tuple[Floats, Floats, Floats]] = {}
        self._seen: dict[tuple[int, float], Coming] = {}

    def coming(self, place: Place) -> Coming:
        """The vehicles that matter at a place."""
        key = (place.road, place.s)
        if key not in self._seen:
            self._seen[key] = self._look(place)
        return self._seen[key]

    def _on_road(self, road: int) -> tuple[Floats, Floats, Floats]:
        """Each vehicle's length along a road, distance left of it, and speed along it."""
        if road not in self._roads:
            line = self._layout.roads[road].line
            s, left = line.project(self.view.position)
            along = self.view.speed * np.cos(self.view.heading - line.heading(s))
            self._roads[road] = s, left, along
        return self._roads[road]

    def _look(self, place: Place) -> Coming:
        view, road = self.view, self._layout.roads[place.road]
        s, left, along = self._on_road(place.road)
        centre, turn = road.line.at(place.s), float(road.line.heading(place.s))
        on = np.abs(left) < road.half_width_m + 0.5
        # Who is not on this road yet, as inside a junction, is expected to go straight on.
        away = view.position - centre
        ahead = np.array([np.cos(turn), np.sin(turn)])
        side = np.array([-ahead[1], ahead[0]])
        velocity = view.speed[:, None] * np.stack([np.cos(view.heading), np.sin(view.heading)], axis=1)
        offset = np.where(on, s - place.s, away @ ahead)
        speed = np.where(on, along, velocity @ ahead)
        toward = -np.sign(speed) * offset
        pace = np.abs(speed)
        middle_s = np.where(pace > 0.3, toward / np.maximum(pace, 0.3), np.inf)
        passing = np.where(on, left, away @ side + (velocity @ side) * np.clip(middle_s, 0.0, HORIZON_S))
        half = view.length / 2
        standing = pace <= 0.3
        blocks = standing & (np.abs(offset) < half + 0.4)
        reach = np.where(blocks, 0.0, np.where(standing, np.inf, (toward - half) / np.maximum(pace, 0.3)))
        gone = np.where(standing, np.inf, (toward + half + 0.3) / np.maximum(pace, 0.3))
        relevant = (np.abs(passing) < road.half_width_m + 0.5) & (gone > 0.0) & (reach < HORIZON_S)
        rows = np.flatnonzero(relevant)
        distance = np.where(standing, np.abs(offset), toward) - half
        return Coming(
            np.maximum(reach, 0.0)[rows], gone[rows], passing[rows], view.width[rows] / 2, distance[rows],
            pace[rows], rows.astype(np.float64),
        )  # fmt: skip


def needed(coming: Coming, left_m: float, way: int, pace: float) -> tuple[Floats, Floats]:
    """Seconds until somebody who walks enters the path of each vehicle, and until they have left it.

    Args:
        coming: the vehicles.
        left_m: where they are, in metres left of the middle of the road.
        way: 1 if they walk to the left, -1 to the right.
        pace: of theirs, m/s.
    """
    ahead = way * (coming.left_m - left_m)
    room = coming.half_m + BODY_M
    return np.maximum(ahead - room, 0.0) / pace, (ahead + room) / pace


def threatening(
    coming: Coming, left_m: float, way: int, pace: float, margin_s: float, trust: float = 1.0
) -> Bools:
    """(v,) which vehicles leave too little time.

    Args:
        coming: the vehicles.
        left_m: where the walker is, in metres left of the middle of the road.
        way: 1 if they walk to the left, -1 to the right.
        pace: of theirs, m/s.
        margin_s: time they want to spare.
        trust: times of arrival appear longer by this factor.
    """
    enter, leave = needed(coming, left_m, way, pace)
    late = coming.arrival_s * trust < leave + margin_s
    early = coming.leaving_s > enter - 0.3 * margin_s
    found: Bools = (leave > 0.0) & late & early
    return found


def yielding(coming: Coming) -> Bools:
    """(v,) which vehicles let people over a crossing: slow before it."""
    found: Bools = (coming.speed < YIELDING_M_S) & (coming.distance_m > 0.6)
    return found
