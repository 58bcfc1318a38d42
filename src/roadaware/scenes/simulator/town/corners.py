"""Where roads meet: how far a junction reaches into its arms, its outline, and its kerbs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.layout import Junction, Layout
from roadaware.scenes.simulator.town.tracks import Track, arc, track_of

STRAIGHT_ON = np.deg2rad(155.0)
"""Kerbs of two arms that open wider than this run straight from one to the other."""

CORNER_STEP = 0.13
"""Radians between the points of a corner: with a radius of 6 m its edges lie within 2 cm of the arc."""


@dataclass(frozen=True)
class Arm:
    """A road that leaves a junction.

    Args:
        heading: away from the junction, in radians.
        half_width_m: from the middle to the kerb.
    """

    heading: float
    half_width_m: float


def _tangents(first: Arm, second: Arm, radius: float) -> tuple[float, float] | None:
    """Where the arc between two kerbs touches them, in metres along each arm; None where they run on."""
    opening = (second.heading - first.heading) % (2 * np.pi)
    if opening > STRAIGHT_ON:
        return None
    # The kerbs meet at a corner; the arc touches them at radius / tan(opening / 2) beyond it.
    sine, cosine = np.sin(opening), np.cos(opening)
    a, b = first.half_width_m, second.half_width_m
    beyond = radius / np.tan(opening / 2)
    return (b + a * cosine) / sine + beyond, (a + b * cosine) / sine + beyond


def reaches(arms: list[Arm], radius: float) -> list[float]:
    """How far the junction reaches into each arm from where the middles of the roads meet, in metres.

    Args:
        arms: in counter-clockwise order, at least 2.
        radius: of the kerbs at its corners, in metres.
    """
    far = [6.0] * len(arms)
    for place in range(len(arms)):
        after = (place + 1) % len(arms)
        touched = _tangents(arms[place], arms[after], radius)
        if touched is not None:
            far[place] = max(far[place], touched[0] + 0.6)
            far[after] = max(far[after], touched[1] + 0.6)
    return far


def outline(centre: Floats, arms: list[Arm], far: list[float], radius: float) -> Floats:
    """(n, 2) the corners of a junction's area, counter-clockwise.

    Args:
        centre: (2,) where the middles of the roads meet.
        arms: in counter-clockwise order.
        far: what `reaches` found.
        radius: of the kerbs at the corners, in metres.
    """
    found = []
    for place, arm in enumerate(arms):
        after = (place + 1) % len(arms)
        found += [
            _on(centre, arm, far[place], -arm.half_width_m),
            _on(centre, arm, far[place], arm.half_width_m),
        ]
        touched = _tangents(arm, arms[after], radius)
        if touched is not None:
            start = _on(centre, arm, touched[0], arm.half_width_m)
            opening = (arms[after].heading - arm.heading) % (2 * np.pi)
            found += list(arc(start, arm.heading + np.pi, radius, -(np.pi - opening), CORNER_STEP).points)
    return np.array(found)


def _on(centre: Floats, arm: Arm, along: float, left: float) -> Floats:
    c, s = np.cos(arm.heading), np.sin(arm.heading)
    place: Floats = centre + along * np.array([c, s]) + left * np.array([-s, c])
    return place


def kerbs(layout: Layout, junction: Junction) -> list[tuple[Track, float]]:
    """The kerbs of a junction between its arms, each with the width of the pavement to its right.

    Args:
        layout: it lies in.
        junction: one of its.
    """
    numbers = {layout.lanes[way.start].road for way in junction.connectors}
    numbers |= {layout.lanes[way.end].road for way in junction.connectors}
    roads = [layout.roads[number] for number in sorted(numbers)]
    ends = np.array([road.line.points[end] for road in roads for end in (0, -1)])
    corners = junction.outline
    nexts = np.roll(corners, -1, axis=0)
    middles = (corners + nexts) / 2
    mouth = (np.hypot(*(middles[:, None] - ends).transpose(2, 0, 1)) < 0.3).any(1)
    if not mouth.any():
        return []
    width = roads[0].pavement_m
    first = int(np.flatnonzero(mouth)[0]) + 1
    chains: list[tuple[Track, float]] = []
    run: list[Floats] = []
    for step in range(len(corners)):
        edge = (first + step) % len(corners)
        if mouth[edge]:
            if run:
                chains.append((track_of(np.array([*run, corners[edge]])), width))
            run = []
        elif not run or np.hypot(*(run[-1] - corners[edge])) > 1e-3:
            run.append(corners[edge])
    return chains
