"""The spine of a town: the way of the own vehicle, leg by leg, and the junctions between the legs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.layout import Turn
from roadaware.scenes.simulator.town.tracks import Track, arc, chained, straight

BEHIND_M = 60.0
"""Road before the place where the own vehicle starts, so that others can come from behind."""
VIEW_M = 150.0
"""Road after the place where the own vehicle ends."""
TURNING = 0.22
"""Share of junctions where the own vehicle turns."""
MOST_TURNED = np.deg2rad(35.0)
"""A leg bends away from its main direction by this much at most, so that the way never meets itself."""


@dataclass(eq=False)
class Node:
    """A junction while the town is planned.

    Args:
        centre: (2,) where the middles of its roads meet.
        turn: of the own vehicle.
        arms: headings of its arms away from it, apart from the two on the way.
    """

    centre: Floats
    turn: Turn
    arms: dict[Turn, float] = field(default_factory=dict)


@dataclass(eq=False)
class Spine:
    """The way of the own vehicle.

    Args:
        legs: between junctions, through half of their areas.
        nodes: between the legs, one fewer.
    """

    legs: list[Track]
    nodes: list[Node]


def draw_spine(config: SceneConfig, rng: np.random.Generator, room_m: float, widest_m: float) -> Spine:
    """A way that is long enough for the whole scene.

    Args:
        config: gives length, bends and junctions.
        rng: of the town.
        room_m: straight road that each leg needs at both ends, for the junction.
        widest_m: from the middle of a road to the outer edge of its pavement, at most.
    """
    where = config.surroundings
    total = BEHIND_M + config.seconds * config.behaviour.ego_speed_kmh / 3.6 + VIEW_M
    legs: list[Track] = []
    nodes: list[Node] = []
    place, heading, base, last = np.zeros(2), 0.0, 0.0, "right" if rng.random() < 0.5 else "left"
    tightest = max(25.0 + 120.0 * (1.0 - where.bends), widest_m + 4.0)
    done = 0.0
    while True:
        length = max(2 * room_m + 25.0, _spacing(rng, where.junctions))
        if not nodes and where.junctions:
            length = max(length * 0.7, BEHIND_M + room_m + 25.0)
        is_last = done + length > total - 70.0
        length = max(total - done, 60.0) if is_last else length
        leg = _leg(rng, (place, heading, base), length, room_m, where.bends, tightest)
        legs.append(leg)
        done += leg.length
        if is_last:
            return Spine(legs, nodes)
        node = _node(rng, leg, last)
        nodes.append(node)
        place, heading = node.centre, float(leg.headings[-1])
        if node.turn != "straight":
            quarter = np.pi / 2 if node.turn == "left" else -np.pi / 2
            heading, base, last = heading + quarter, base + quarter, node.turn


def _spacing(rng: np.random.Generator, junctions: float) -> float:
    if junctions == 0:
        return np.inf
    return 100.0 / junctions * rng.uniform(0.65, 1.35)


def _node(rng: np.random.Generator, leg: Track, last: str) -> Node:
    """A junction at the end of a leg; the way turns left and right in alternation and never meets itself."""
    turn: Turn = "straight"
    if rng.random() < TURNING:
        turn = "left" if last == "right" else "right"
    centre, heading = leg.points[-1], float(leg.headings[-1])
    node = Node(centre, turn)
    skew = float(rng.uniform(-0.17, 0.17)) if turn == "straight" else 0.0
    free: list[Turn] = [way for way in ("straight", "left", "right") if way != turn]
    both = rng.random() < 0.4
    chosen = free if both else [free[int(rng.integers(len(free)))]]
    bearing = {"straight": heading, "left": heading + np.pi / 2 + skew, "right": heading - np.pi / 2 + skew}
    node.arms = {way: bearing[way] for way in chosen}
    return node


def _leg(
    rng: np.random.Generator,
    start: tuple[Floats, float, float],
    length: float,
    room_m: float,
    bends: float,
    tightest: float,
) -> Track:
    """Straights and bends, straight at both ends, from a place, a heading and the main direction."""
    place, heading, base = start
    pieces = [straight(place, heading, min(room_m + 8.0, length / 2))]
    left = length - 2 * pieces[0].length
    while left > 1.0:
        place, heading = pieces[-1].points[-1], float(pieces[-1].headings[-1])
        if rng.random() < 0.25 + 0.6 * bends and bends > 0 and left > 12.0:
            radius = float(np.exp(rng.uniform(np.log(tightest), np.log(max(200.0, tightest)))))
            aim = base + rng.uniform(-1.0, 1.0) * MOST_TURNED
            most = left / radius
            turn = float(np.clip(aim - heading, -most, most))
            if abs(turn) * radius > 4.0:
                pieces.append(arc(place, heading, radius, turn))
        else:
            pieces.append(straight(place, heading, min(left, float(rng.uniform(15.0, 45.0)))))
        left = length - pieces[0].length - sum(piece.length for piece in pieces)
    place, heading = pieces[-1].points[-1], float(pieces[-1].headings[-1])
    pieces.append(straight(place, heading, pieces[0].length))
    return chained(pieces)
