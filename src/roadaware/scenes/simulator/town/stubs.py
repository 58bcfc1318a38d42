"""Side roads: the other arms of junctions, as far as one can look into them."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.town.profiles import Street
from roadaware.scenes.simulator.town.tracks import Track, arc, chained, straight

NEAR_STREETS = 6
"""Streets before and after a junction that its side roads might meet."""


def draw_stub(
    centre: Floats,
    heading: float,
    node: int,
    streets: list[Street],
    config: SceneConfig,
    rng: np.random.Generator,
) -> Track | None:
    """A side road that meets no other road; None where there is no room.

    Args:
        centre: (2,) of its junction.
        heading: away from it, in radians.
        node: number of the junction.
        streets: so far.
        config: gives the bends.
        rng: of the town.
    """
    length = float(rng.uniform(75.0, 120.0))
    first = float(rng.uniform(45.0, 60.0))
    bend = float(rng.uniform(-0.5, 0.5)) if rng.random() < config.surroundings.bends else 0.0
    pieces = [straight(centre, heading, first)]
    if abs(bend) > 0.1:
        pieces.append(arc(pieces[-1].points[-1], heading, float(rng.uniform(40.0, 120.0)), bend))
    done = sum(piece.length for piece in pieces)
    pieces.append(straight(pieces[-1].points[-1], float(pieces[-1].headings[-1]), max(15.0, length - done)))
    track = chained(pieces)
    free = _free_length(track, centre, node, streets)
    return track.cut(0.0, min(track.length, free)) if free > 45.0 else None


def _free_length(track: Track, centre: Floats, node: int, streets: list[Street]) -> float:
    """How far a side road goes before it comes near another road, in metres."""
    near = [s for s in streets if _is_near(s, node)]
    widest = max(street.profile.half_width_m + street.profile.pavement_m for street in near)
    others = np.concatenate([s.track.cut(0.0, s.track.length, 5.0).points for s in near])
    # The arms of its own junction start where it starts.
    others = others[np.hypot(*(others - centre).T) > 40.0]
    if not len(others):
        return float("inf")
    stops = np.arange(40.0, track.length + 1.0, 4.0)
    places = track.at(np.minimum(stops, track.length)).points
    gaps = np.hypot(*(places[:, None] - others).transpose(2, 0, 1)).min(1)
    close = np.flatnonzero(gaps < 2 * widest + 6.0)
    return float(stops[close[0]]) - 6.0 if len(close) else float("inf")


def _is_near(street: Street, node: int) -> bool:
    ends = [end for end in (street.start_node, street.end_node) if end >= 0]
    return any(abs(end - node) <= NEAR_STREETS for end in ends)
