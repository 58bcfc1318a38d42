"""Zebra crossings: who waits beside them and who walks on them, and which driver stops for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.scenes.simulator.layout import Crossing, Layout
from roadaware.scenes.simulator.traffic.vehicle import Vehicle

SAME_M = 0.6
"""Somebody who waits moves less than this in a frame."""
KERB_M = 3.0
"""How far from the kerb one waits at a crossing."""
PATIENCE_S = 7.0
"""Drivers who stand go on when nobody has stepped out until then."""


@dataclass(frozen=True, eq=False)
class Strip:
    """People at one crossing, in its axes.

    Args:
        walking: (p,) metres to the left of the middle of the road of those on it.
        drift: (p,) their m/s to the left.
        waiting: (q,) numbers of those who wait beside it.
    """

    walking: Floats
    drift: Floats
    waiting: npt.NDArray[np.int64]


class Zebras:
    """People at zebra crossings, frame by frame.

    Args:
        layout: with the crossings.
        rng: decides who stops for whom.
    """

    def __init__(self, layout: Layout, rng: np.random.Generator) -> None:
        self.rng = rng
        self.crossings = [c for c in layout.crossings if c.kind == "zebra"]
        roads = [layout.roads[c.road] for c in self.crossings]
        self.half = [road.half_width_m for road in roads]
        self.middle = [road.line.at(c.s_m) for c, road in zip(self.crossings, roads, strict=True)]
        self.turn = [float(road.line.heading(c.s_m)) for c, road in zip(self.crossings, roads, strict=True)]
        self.strips: dict[int, Strip] = {}
        self.waited = np.zeros((0, 2))
        self.numbers = np.zeros(0, dtype=np.int64)
        self.next = 0

    def see(self, people: Floats, velocity: Floats, waiting: Floats) -> None:
        """Look at a frame.

        Args:
            people: (p, 2) on the road.
            velocity: (p, 2) m/s.
            waiting: (q, 2) beside it.
        """
        self._recognise(waiting)
        for place, crossing in enumerate(self.crossings):
            along, left = self._axes(place, people)
            on = (np.abs(along) < crossing.width_m / 2 + 0.7) & (np.abs(left) < self.half[place] + 0.2)
            turn = self.turn[place]
            drift = velocity[:, 1] * np.cos(turn) - velocity[:, 0] * np.sin(turn)
            along, beside = self._axes(place, waiting)
            by = (np.abs(along) < crossing.width_m / 2 + 1.5) & (np.abs(beside) < self.half[place] + KERB_M)
            self.strips[crossing.number] = Strip(left[on], drift[on], self.numbers[by])

    def _axes(self, place: int, points: Floats) -> tuple[Floats, Floats]:
        away = points - self.middle[place]
        c, s = np.cos(self.turn[place]), np.sin(self.turn[place])
        return away[:, 0] * c + away[:, 1] * s, away[:, 1] * c - away[:, 0] * s

    def _recognise(self, waiting: Floats) -> None:
        """Give everybody who waits a number that stays."""
        numbers = np.full(len(waiting), -1, dtype=np.int64)
        if len(waiting) and len(self.waited):
            away = np.hypot(*(waiting[:, None] - self.waited).transpose(2, 0, 1))
            nearest = away.argmin(1)
            same = away[np.arange(len(waiting)), nearest] < SAME_M
            numbers[same] = self.numbers[nearest[same]]
        fresh = np.flatnonzero(numbers < 0)
        numbers[fresh] = np.arange(self.next, self.next + len(fresh))
        self.next += len(fresh)
        self.waited, self.numbers = waiting, numbers

    def stops(self, vehicle: Vehicle, crossing: Crossing, gap: float) -> bool:
        """Whether a driver stops at a zebra crossing now.

        Args:
            vehicle: that comes.
            crossing: that it comes to.
            gap: metres to the line.
        """
        strip = self.strips.get(crossing.number)
        if strip is None:
            return False
        return self._must(vehicle, crossing, strip, gap) or self._will(vehicle, strip, gap)

    def _must(self, vehicle: Vehicle, crossing: Crossing, strip: Strip, gap: float) -> bool:
        """Whether somebody is on the crossing who is, or will be, in the way."""
        if not len(strip.walking):
            return False
        place = self.crossings.index(crossing)
        own = float(self._axes(place, np.array([[vehicle.x, vehicle.y]]))[1][0])
        away = strip.walking - own
        band = vehicle.width / 2 + 1.0
        nearing = away * strip.drift < 0
        slow = np.abs(strip.drift) < 0.2
        return bool(((np.abs(away) < band) | nearing | (slow & (np.abs(away) < band + 1.5))).any())

    def _will(self, vehicle: Vehicle, strip: Strip, gap: float) -> bool:
        """Whether the driver lets somebody who waits go first; decided once for each."""
        wanted = False
        for number in strip.waiting.tolist():
            if number not in vehicle.decisions:
                can = vehicle.v**2 / (2 * max(gap, 0.1)) < 2.8
                likely = vehicle.manners.yielding if can and not vehicle.beacon else 0.0
                vehicle.decisions[number] = bool(self.rng.random() < likely)
            wanted |= vehicle.decisions[number]
        if wanted and vehicle.v < 0.2 and vehicle.waiting_s > PATIENCE_S:
            vehicle.decisions.update(dict.fromkeys(strip.waiting.tolist(), False))
        return wanted
