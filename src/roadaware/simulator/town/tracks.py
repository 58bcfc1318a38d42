"""Tracks: lines with their exact direction at each point, out of straights, arcs and sweeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats

TURN_STEP = 0.04
"""Radians between the points of an arc: 2 cm away from it at a radius of 100 m."""


@dataclass(frozen=True, eq=False)
class Track:
    """A line that knows where it points.

    Args:
        points: (n, 2) in metres.
        headings: (n,) direction of travel at the points, in radians, without jumps of a whole turn.
    """

    points: Floats
    headings: Floats

    @property
    def s(self) -> Floats:
        """(n,) metres from the start to each point."""
        steps = np.hypot(*np.diff(self.points, axis=0).T)
        return np.concatenate([[0.0], np.cumsum(steps)])

    @property
    def length(self) -> float:
        """In metres."""
        return float(self.s[-1])

    def beside(self, left_m: float) -> Floats:
        """(n, 2) the points moved to the left; right is negative."""
        normal = np.stack([-np.sin(self.headings), np.cos(self.headings)], axis=1)
        moved: Floats = self.points + left_m * normal
        return moved

    def at(self, s: Floats) -> Track:
        """The track through its points at the given lengths, which increase.

        Args:
            s: (m,) metres from the start, within the track.
        """
        own = self.s
        x, y = (np.interp(s, own, self.points[:, axis]) for axis in (0, 1))
        return Track(np.stack([x, y], axis=1), np.interp(s, own, self.headings))

    def cut(self, start: float, end: float, spacing: float = np.inf) -> Track:
        """The piece between two lengths, with its own points and more where they lie too far apart.

        Args:
            start: metres.
            end: metres, after the start.
            spacing: metres between points, at most.
        """
        own = self.s
        inner = own[(own > start + 1e-3) & (own < end - 1e-3)]
        stops = np.concatenate([[start], inner, [end]])
        if np.isfinite(spacing):
            counts = np.maximum(1, np.ceil(np.diff(stops) / spacing).astype(int))
            pieces = [
                np.linspace(a, b, n, endpoint=False)
                for a, b, n in zip(stops, stops[1:], counts, strict=False)
            ]
            stops = np.concatenate([*pieces, [end]])
        return self.at(stops)

    def back(self) -> Track:
        """The same way in the other direction."""
        return Track(self.points[::-1], self.headings[::-1] + np.pi)


def straight(start: Floats, heading: float, length: float) -> Track:
    """A straight line.

    Args:
        start: (2,) its first point.
        heading: in radians.
        length: in metres.
    """
    end = start + length * np.array([np.cos(heading), np.sin(heading)])
    return Track(np.stack([start, end]), np.full(2, float(heading)))


def arc(start: Floats, heading: float, radius: float, turn: float, step: float = TURN_STEP) -> Track:
    """A part of a circle.

    Args:
        start: (2,) its first point.
        heading: at the start, in radians.
        radius: in metres.
        turn: how far it turns in radians, left positive.
        step: radians between its points, at most.
    """
    n = max(2, int(np.ceil(abs(turn) / step)) + 1)
    turned = np.linspace(0.0, turn, n)
    side = np.sign(turn)
    centre = start + radius * side * np.array([-np.sin(heading), np.cos(heading)])
    headings = heading + turned
    spokes = np.stack([np.sin(headings), -np.cos(headings)], axis=1) * radius * side
    return Track(centre + spokes, headings)


def join_tracks(pieces: list[Track]) -> Track:
    """Tracks, each of which begins where the one before ends, as one."""
    points = [pieces[0].points, *(piece.points[1:] for piece in pieces[1:])]
    headings = [pieces[0].headings, *(piece.headings[1:] for piece in pieces[1:])]
    return Track(np.concatenate(points), np.concatenate(headings))


def connect_poses(
    start: Floats, heading: float, end: Floats, end_heading: float, spacing: float = 0.7
) -> Track:
    """A smooth curve from one place and direction to another.

    Args:
        start: (2,) where it begins.
        heading: at the start, in radians.
        end: (2,) where it ends.
        end_heading: at the end, in radians.
        spacing: metres between its points, about.
    """
    gap = float(np.hypot(*(end - start)))
    turn = abs((end_heading - heading + np.pi) % (2 * np.pi) - np.pi)
    # The handles of a cubic that follows a circle: 4/3 tan(turn / 4) of its radius.
    reach = gap / 3 if turn < 0.05 else 4 / 3 * np.tan(turn / 4) * gap / (2 * np.sin(turn / 2))
    go, come = (np.array([np.cos(angle), np.sin(angle)]) for angle in (heading, end_heading))
    t = np.linspace(0.0, 1.0, max(3, int(np.ceil(gap * 1.1 / spacing)) + 1))[:, None]
    a, b = start + reach * go, end - reach * come
    points = (1 - t) ** 3 * start + 3 * (1 - t) ** 2 * t * a + 3 * (1 - t) * t**2 * b + t**3 * end
    slope = 3 * (1 - t) ** 2 * (a - start) + 6 * (1 - t) * t * (b - a) + 3 * t**2 * (end - b)
    return Track(points, np.unwrap(np.arctan2(slope[:, 1], slope[:, 0])))


def build_track(points: Floats) -> Track:
    """A track through points whose directions nobody noted: the mean of those of their neighbours.

    Args:
        points: (n, 2) in metres, n at least 2.
    """
    steps = np.diff(points, axis=0)
    steps = steps / np.maximum(np.hypot(steps[:, 0], steps[:, 1]), 1e-9)[:, None]
    mean = np.concatenate([steps[:1], steps[:-1] + steps[1:], steps[-1:]])
    return Track(points, np.unwrap(np.arctan2(mean[:, 1], mean[:, 0])))


def strip(track: Track, right_m: float, left_m: float) -> Floats:
    """(n - 1, 4, 2) the quadrilaterals of a band along a track, counter-clockwise.

    Args:
        track: the middle.
        right_m: where the band begins, to the left of the track (negative: to its right).
        left_m: where it ends.
    """
    low, high = track.beside(right_m), track.beside(left_m)
    quads: Floats = np.stack([low[:-1], low[1:], high[1:], high[:-1]], axis=1)
    return quads
