"""Connectors: the ways through a junction from the lanes that enter it to the lanes that leave it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.scenes.simulator.layout import Connector, Lane, Line, Turn
from roadaware.scenes.simulator.town.tracks import swept


@dataclass(frozen=True, eq=False)
class Mouth:
    """One arm of a junction with the lanes that enter and leave there.

    Args:
        heading: of the arm away from the junction, in radians.
        entering: lanes that lead into the junction, by order.
        leaving: lanes that lead out of it, by order.
    """

    heading: float
    entering: tuple[Lane, ...]
    leaving: tuple[Lane, ...]


def turn_between(entering: float, leaving: float) -> Turn:
    """Which way one turns who comes in from one arm and leaves by another.

    Args:
        entering: heading of the first arm away from the junction.
        leaving: heading of the second.
    """
    change = (leaving - entering - np.pi + np.pi) % (2 * np.pi) - np.pi
    if abs(change) < np.deg2rad(40.0):
        return "straight"
    return "left" if change > 0 else "right"


def connect(mouths: list[Mouth], near: Turn) -> tuple[Connector, ...]:
    """All ways through a junction.

    Args:
        mouths: its arms.
        near: the turn that crosses no oncoming lane: left where traffic keeps to the left.
    """
    found: list[Connector] = []
    for a, came in enumerate(mouths):
        ways = [(turn_between(came.heading, to.heading), to) for b, to in enumerate(mouths) if b != a]
        turns = {turn for turn, _ in ways}
        for turn, to in ways:
            for start, end in _pairs(came, to, turn, turns, near):
                curve = swept(
                    start.line.points[-1],
                    float(start.line.heading(start.line.length)),
                    end.line.points[0],
                    float(end.line.heading(0.0)),
                )
                found.append(Connector(start.number, end.number, Line(curve.points), turn))
    return tuple(found)


def _pairs(came: Mouth, to: Mouth, turn: Turn, turns: set[Turn], near: Turn) -> list[tuple[Lane, Lane]]:
    """Which lanes lead to which on one way."""
    entering = [lane for lane in came.entering if lane.kind == "vehicle"]
    leaving = [lane for lane in to.leaving if lane.kind == "vehicle"]
    found: list[tuple[Lane, Lane]] = []
    if turn == "straight":
        found += [(lane, leaving[min(k, len(leaving) - 1)]) for k, lane in enumerate(entering)]
    else:
        start = entering[-1] if turn == near else entering[0]
        found += [(start, lane) for lane in leaving]
    # In a lane where no way would go on, one takes any.
    if turn == _only_turn(turns, near):
        served = {near: entering[-1:], "straight": entering}.get(turn, entering[:1])
        found += [
            (lane, leaving[min(k, len(leaving) - 1)]) for k, lane in enumerate(entering) if lane not in served
        ]
    special = [lane for lane in came.entering if lane.kind in ("bus", "cycle")]
    for lane in special:
        if turn in ("straight", near) or turns.isdisjoint({"straight", near}):
            same = [other for other in to.leaving if other.kind == lane.kind]
            found.append((lane, same[0] if same else leaving[-1]))
    return found


def _only_turn(turns: set[Turn], near: Turn) -> Turn | None:
    """The turn that lanes take which have no way of their own: none where one can go straight on."""
    if "straight" in turns:
        return None
    return near if near in turns else next(iter(turns))
