"""Paths: where a vehicle goes, as one finely sampled line with lines to stop at and speed limits of bends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats

STEP_M = 0.5
LEAD_M = 20.0
"""A path goes straight on before its start and after its end."""
SIDEWAYS = 2.2
"""m/s2 that drivers take in bends."""
EASE = 1.5
"""m/s2 with which they slow down for them."""


@dataclass(frozen=True)
class Leg:
    """A piece of a path: a lane, or a way through a junction.

    Args:
        lane: number of the lane; -1 in a junction.
        junction: number of the junction; -1 on a lane.
        way: place of the connector among those of the junction.
        turn: 1 left, -1 right, 0 straight.
        start: along the path, metres.
        end: along the path, metres.
    """

    lane: int
    junction: int
    way: int
    turn: int
    start: float
    end: float


@dataclass(frozen=True)
class Event:
    """A line on a path where one may have to stop.

    Args:
        kind: junction, zebra, lights or bay.
        s: of the line along the path, metres.
        number: of the junction, crossing or lane.
        group: of the traffic lights that hold there; -1 for none.
        leg: place of the leg behind the line, for a junction.
        minor: whether one gives way.
    """

    kind: str
    s: float
    number: int
    group: int = -1
    leg: int = -1
    minor: bool = False


@dataclass(frozen=True, eq=False)
class Path:
    """One line to drive along.

    Args:
        table: (n, 3) x, y and heading every `STEP_M`, from `LEAD_M` before the start.
        fastest: (n,) m/s that bends allow, brought forward to where one must slow down.
        legs: pieces in order.
        events: lines in order.
    """

    table: Floats
    fastest: Floats
    legs: tuple[Leg, ...]
    events: tuple[Event, ...]

    @property
    def end(self) -> float:
        """Where its last leg ends, in metres."""
        return self.legs[-1].end

    def at(self, s: float) -> tuple[float, float, float]:
        """x, y and heading at a length.

        Args:
            s: metres.
        """
        place = min(max((s + LEAD_M) / STEP_M, 0.0), len(self.table) - 1.001)
        row = int(place)
        share = place - row
        low, high = self.table[row], self.table[row + 1]
        x, y, heading = (low + share * (high - low)).tolist()
        beyond = (s + LEAD_M) - place * STEP_M
        if abs(beyond) > 0.01:
            x, y = x + beyond * np.cos(heading), y + beyond * np.sin(heading)
        return x, y, heading

    def many(self, s: Floats) -> Floats:
        """(n, 3) x, y and heading at lengths, held within the path's samples.

        Args:
            s: (n,) metres.
        """
        place = np.clip((s + LEAD_M) / STEP_M, 0.0, len(self.table) - 1.001)
        rows = place.astype(np.int64)
        low = self.table[rows]
        found: Floats = low + (place - rows)[:, None] * (self.table[rows + 1] - low)
        return found

    def limit(self, s: float) -> float:
        """m/s that bends allow at a length.

        Args:
            s: metres.
        """
        return float(self.fastest[min(max(int((s + LEAD_M) / STEP_M), 0), len(self.fastest) - 1)])

    def leg_at(self, s: float) -> int:
        """Place of the leg at a length.

        Args:
            s: metres.
        """
        for place, leg in enumerate(self.legs):
            if s < leg.end:
                return place
        return len(self.legs) - 1


def sampled(points: Floats) -> tuple[Floats, Floats]:
    """(n, 3) the table and (n,) the speed limits of a path through points.

    Args:
        points: (m, 2) with no two alike in a row.
    """
    steps = np.hypot(*np.diff(points, axis=0).T)
    s = np.concatenate([[0.0], np.cumsum(steps)])
    first = (points[0] - points[1]) / steps[0]
    last = (points[-1] - points[-2]) / steps[-1]
    s = np.concatenate([[-LEAD_M], s, [s[-1] + 4 * LEAD_M]])
    points = np.concatenate([[points[0] + LEAD_M * first], points, [points[-1] + 4 * LEAD_M * last]])
    places = np.arange(-LEAD_M, s[-1], STEP_M)
    xy = np.stack([np.interp(places, s, points[:, axis]) for axis in (0, 1)], axis=1)
    along = np.gradient(xy, axis=0)
    heading = np.unwrap(np.arctan2(along[:, 1], along[:, 0]))
    heading = _smooth(heading, 3)
    bend = np.abs(_smooth(np.gradient(heading, STEP_M), 5))
    limit = np.clip(np.sqrt(SIDEWAYS / np.maximum(bend, 1e-6)), 2.5, 60.0)
    ahead = limit**2 + 2 * EASE * places
    fastest = np.sqrt(np.minimum.accumulate(ahead[::-1])[::-1] - 2 * EASE * places)
    return np.column_stack([xy, heading]), fastest


def _smooth(values: Floats, width: int) -> Floats:
    """The mean over neighbours, ends kept."""
    padded = np.pad(values, width // 2, mode="edge")
    found: Floats = np.convolve(padded, np.full(width, 1.0 / width), mode="valid")
    return found
