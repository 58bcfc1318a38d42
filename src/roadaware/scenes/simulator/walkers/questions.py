"""Questions: of whom one would ask whether they want to cross, when, and what watchers would answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Floats
from roadaware.scenes.simulator.actors import Mind
from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.layout import Layout
from roadaware.scenes.simulator.walkers.places import SIGNALIZED
from roadaware.scenes.simulator.walkers.states import Stage, Walker
from roadaware.scenes.simulator.walkers.ways import Ways

VIEW_M = 55.0
PASSING_M = 3.0
"""The own vehicle passes somebody who is less than this ahead of its middle."""
IN_THE_WAY_M = 1.6
"""To both sides of its middle one is in the way of the own vehicle."""
NEAR_KERB_M = 1.8
SHORTEST_S, LONGEST_S = 0.5, 6.0
ASKED_ANYWAY = 0.2
"""Share of those who just pass, about whom one asks too."""
SPREAD = 0.9


@dataclass(frozen=True, eq=False)
class Past:
    """What is known when a scene is over.

    Args:
        own: (F, 2) where the own vehicle was.
        own_heading: (F,) where it pointed.
        layout: a town.
        ways: its pavements.
        config: of the scene.
    """

    own: Floats
    own_heading: Floats
    layout: Layout
    ways: Ways
    config: SceneConfig


def mind_of(walker: Walker, part: dict[str, Floats], past: Past) -> Mind | None:
    """What somebody wanted, and the time in which one would ask; None where one would not.

    Args:
        walker: somebody.
        part: what they did in each frame.
        past: what else happened.
    """
    person = walker.person
    if walker.aimed is None and person.chance > ASKED_ANYWAY:
        return None
    out = np.flatnonzero(part["over"] < 0.0)
    step = int(out[0]) if len(out) else None
    span = _asked(walker, part, past, step)
    # Whether somebody crosses is not known while they wait and the own vehicle is yet to come.
    open_end = step is None and walker.place is not None and person.wants
    if span is None or (open_end and _ahead(part, past)[0][-1] > PASSING_M):
        return None
    first = int(part["frame"][0])
    crossing = None if step is None else first + step
    ahead = step is not None and _before_own(part, past, step)
    return Mind(
        _guessed(walker, part, past, span), wants_to_cross(walker), first + span[0], first + span[1], ahead,
        crossing, person.age, _signalized(walker, part, past, span[1]),
    )  # fmt: skip


def wants_to_cross(walker: Walker) -> bool:
    """Whether somebody came to want to cross, in the time in which they were about."""
    return walker.person.wants and walker.aimed is not None


def _asked(walker: Walker, part: dict[str, Floats], past: Past, step: int | None) -> tuple[int, int] | None:
    """First and last row of the time in which somebody is in view and near the kerb, before they step out."""
    fps = past.config.camera.fps
    candidate = _in_view(part, past) & (part["over"] < NEAR_KERB_M) & (part["over"] >= 0.0)
    end = len(candidate) if step is None else step
    stage = part["stage"]
    if walker.aimed is not None:
        stood = np.flatnonzero(np.isin(stage[:end], (Stage.WAIT, Stage.LINGER)))
        if step is None and len(stood):
            end = min(end, int(stood[-1]) + 1)
    candidate[end:] = False
    runs = _runs(candidate)
    if not runs:
        return None
    start, stop = max(runs, key=lambda run: (run[1] == step, run[1] - run[0]))
    if stop - start < max(2.0, SHORTEST_S * fps):
        return None
    longest = round(fps * (2.0 + (LONGEST_S - 2.0) * walker.person.chance))
    return max(start, stop - longest), stop - 1


def _runs(mask: Bools) -> list[tuple[int, int]]:
    """Half-open stretches where a mask holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _ahead(part: dict[str, Floats], past: Past) -> tuple[Floats, Floats]:
    """(n,) how far before and left of the own vehicle's middle somebody is."""
    frames = part["frame"].astype(np.int64)
    away = np.stack([part["x"], part["y"]], axis=1) - past.own[frames]
    c, s = np.cos(past.own_heading[frames]), np.sin(past.own_heading[frames])
    return away[:, 0] * c + away[:, 1] * s, away[:, 1] * c - away[:, 0] * s


def _in_view(part: dict[str, Floats], past: Past) -> Bools:
    ahead, left = _ahead(part, past)
    widest = np.deg2rad(0.46 * past.config.camera.fov_deg)
    found: Bools = (ahead > PASSING_M) & (ahead < VIEW_M) & (np.abs(left) < np.tan(widest) * ahead)
    return found


def _before_own(part: dict[str, Floats], past: Past, step: int) -> bool:
    """Whether somebody crosses the way of the own vehicle before it comes by, as far as the scene shows."""
    road = past.ways.bands[int(part["band"][step])].road
    roads = {past.layout.lanes[number].road for number in past.layout.route}
    ahead, left = _ahead(part, past)
    on = np.flatnonzero(part["over"][step:] >= 0.0)
    end = step + int(on[0]) if len(on) else len(ahead)
    met = np.flatnonzero(np.abs(left[step:end]) < IN_THE_WAY_M)
    row = step + int(met[0]) if len(met) else max(end - 1, step)
    return road in roads and bool(ahead[step] > PASSING_M) and bool(ahead[row] > PASSING_M)


def _signalized(walker: Walker, part: dict[str, Floats], past: Past, row: int) -> str:
    """What regulates crossing where somebody is at a row."""
    if walker.aimed is not None and walker.start.errand != "bus":
        return SIGNALIZED[walker.aimed.kind]
    road, s = past.ways.bands[int(part["band"][row])].road, part["s"][row]
    for crossing in past.layout.crossings:
        if crossing.road == road and abs(crossing.s_m - s) < 5.0:
            return SIGNALIZED[crossing.kind]
    return "n/a"


def _guessed(walker: Walker, part: dict[str, Floats], past: Past, span: tuple[int, int]) -> float:
    """The mean answer of ten people on a scale of five steps, by what they see and what is so."""
    rows = slice(span[0], span[1] + 1)
    turned = np.cos(part["heading"][rows] - part["inward"][rows])
    at_kerb = part["over"][rows] < 0.8
    stands = np.isin(part["stage"][rows], (Stage.WAIT, Stage.LINGER, Stage.APPROACH))
    marked = _signalized(walker, part, past, span[1]) != "n/a"
    evidence = -1.9 + 1.6 * float(np.mean(turned * at_kerb)) + 0.8 * float(np.mean(stands))
    evidence += 0.8 * float(np.mean(part["looking"][rows])) + 0.5 * marked + 1.3 * wants_to_cross(walker)
    chances = 1.0 / (1.0 + np.exp(-(evidence + SPREAD * np.array(walker.person.guesses))))
    return float(np.mean(np.round(4.0 * chances) / 4.0))
