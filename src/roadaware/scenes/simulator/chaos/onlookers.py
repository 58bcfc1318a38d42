"""Onlookers: what people do who play no scene: watch, film, phone, shout, clap, wave, chant and stroll."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Pose
from roadaware.scenes.simulator.chaos.moves import WALK_MPS, reach
from roadaware.scenes.simulator.chaos.play import Play, Player, Script

_NEAR_M, _FAR_M = 2.4, 7.0
"""Between these distances from what happens onlookers like to stand."""
_POSES: Mapping[str, tuple[Pose | None, tuple[str, ...]]] = {
    "watch": (None, ("watching",)),
    "film": (Pose.FILM, ("recording",)),
    "phone": (Pose.PHONE, ("speaking/talking",)),
    "shout": (Pose.SHOUT, ("shouting",)),
    "clap": (Pose.CLAP, ("clapping",)),
    "wave": (Pose.WAVE, ("waving hands",)),
    "guard": (Pose.STAND, ("guarding",)),
    "chant": (Pose.WAVE, ("raising fist", "chanting/cheering")),
}
_ON_GUARD = {"guard": 4.0, "phone": 1.0, "stroll": 1.0}
_NOISES = {"phone": "speaking", "shout": "shouting", "clap": "clapping", "chant": "chanting/cheering"}
_BONDS = {"watch": "watching", "film": "recording", "shout": "shouting at"}


def onlook(play: Play, who: Player, idle: Mapping[str, float]) -> Script:
    """One thing after the other, for ever.

    Args:
        play: the scene.
        who: looks on.
        idle: how often they do what.
    """
    chosen = _ON_GUARD if who.guard else idle
    names, shares = list(chosen), np.array(list(chosen.values()), dtype=np.float64)
    while True:
        target = _target(play, who)
        if target is not None and not _well_placed(play, who, target):
            yield from _move(play, who, _ring_place(play, who, target))
        name = names[int(play.rng.choice(len(names), p=shares / shares.sum()))]
        if name == "stroll":
            x, y = play.draw(8.0, 18.0), play.draw(-7.0, 7.0)
            yield from _move(play, who, play.ground.clamp(x, y))
        else:
            yield from _stand(play, who, name, target)


def enter(play: Play, who: Player, then: Script) -> Script:
    """Come into the picture after a while: from behind the camera, or up the street.

    Args:
        play: the scene.
        who: comes.
        then: what they do when they have come.
    """
    yield from play.wait(play.draw(0.08, 0.4) * min(play.left_s, 20.0))
    ground = play.ground
    if play.chance(0.5):
        left = ground.left_m > 3.0 and (play.chance(0.5) or ground.right_m > -3.0)
        start = np.array([-2.5, 3.2 if left else -3.2])
    else:
        start = np.array([30.0, play.draw(ground.right_m + 1.0, ground.left_m - 1.0)])
    while _taken(play, start):
        yield
    play.place(who, start, 0.0 if start[0] < 0 else np.pi)
    goal = ground.clamp(play.draw(9.0, 16.0), start[1] * 1.1 + play.draw(-1.5, 1.5))
    play.act(who, None)
    yield from reach(play, who, goal, play.draw(1.3, 2.6), 0.4, 14.0)
    yield from then


def _taken(play: Play, place: Floats) -> bool:
    """Whether somebody is where somebody else wants to come in."""
    away = play.bodies.xy[play.bodies.here] - place
    return bool((np.hypot(away[:, 0], away[:, 1]) < 0.8).any())


def _target(play: Play, who: Player) -> Player | None:
    """The nearest of those who are worth a look."""
    found = [hot for hot in play.focus if hot is not who and play.bodies.here[hot.number]]
    return min(found, key=lambda hot: (play.gap(who, hot), hot.number), default=None)


def _well_placed(play: Play, who: Player, target: Player) -> bool:
    x, y = play.at(who).tolist()
    u, v = play.at(target).tolist()
    hides = x < u - 1.0 and abs(y / max(x, 1.0) - v / max(u, 1.0)) < 0.12
    return _NEAR_M < play.gap(who, target) < _FAR_M and play.ground.in_view(x, abs(y) + 0.5) and not hides


def _ring_place(play: Play, who: Player, target: Player) -> Floats:
    """(2,) a free place around somebody, not between them and the camera."""
    best, cost = play.at(who).copy(), np.inf
    here = play.bodies.here.copy()
    here[who.number] = False
    others = play.bodies.xy[here]
    for _ in range(12):
        turn, far = play.draw(-2.3, 2.3), play.draw(2.8, 5.0)
        point = play.at(target) + far * np.array([np.cos(turn), np.sin(turn)])
        point = play.ground.clamp(*point.tolist())
        gap = float(np.hypot(*(others - point).T).min()) if len(others) else 9.0
        way = float(np.hypot(*(point - play.at(who))))
        found = way + 8.0 * max(0.0, 1.1 - gap)
        if found < cost:
            best, cost = point, found
    return best


def _move(play: Play, who: Player, goal: Floats) -> Script:
    play.act(who, None)
    who.eyes = None
    pace = play.draw(1.1, 1.8)
    for _ in reach(play, who, goal, max(pace, WALK_MPS * 0.8), 0.4, 5.0):
        yield
        if play.chance(0.02):
            who.eyes = _target(play, who)


def _stand(play: Play, who: Player, name: str, target: Player | None) -> Script:
    """Stand for a while and do one thing, turned to whoever is worth a look; step back if they come near."""
    pose, doing = _POSES[name]
    looks_on = name != "phone"
    if target is None and name == "watch":
        pose, doing = None, ()
    play.act(who, pose, *doing)
    ahead = play.ground.clamp(11.0, 0.0)
    for _ in play.wait(play.draw(1.7, 6.0)):
        if target is not None and not play.bodies.here[target.number]:
            target = None
        to: Player | Floats = target if target is not None else ahead
        near = target is not None and play.gap(who, target) < 1.8
        if near and target is not None:
            back = play.at(who) - 1.2 * (play.at(target) - play.at(who))
            play.go(who, play.ground.clamp(*back.tolist()), 1.0, to)
        else:
            play.go(who, play.at(who), 0.0, to)
        who.eyes = to if looks_on else None
        predicate = _BONDS.get(name)
        if target is not None and predicate is not None and play.gap(who, target) < 14.0:
            play.bond(who, predicate, target)
        if name in _NOISES:
            play.noise(_NOISES[name], who)
        yield
    who.eyes = None
