"""Moves: the small steps of which scenes are made: meeting, standing close, pushing things, leaving."""

from __future__ import annotations

import math

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Pose
from roadaware.scenes.simulator.chaos.play import Play, Player, Script, Thing

WALK_MPS, RUN_MPS = 1.4, 3.6
_HANDS = 0.27
"""How far before the body hands push, as a share of the height."""


def unit(turn: float) -> Floats:
    """(2,) the direction of a heading."""
    return np.array([math.cos(turn), math.sin(turn)])


def reach(
    play: Play, who: Player, goal: Floats, pace: float, within: float = 0.3, most_s: float = 7.0
) -> Script:
    """Move to a place, until it is reached or it takes too long."""
    for _ in range(round(most_s * play.fps)):
        if np.hypot(*(play.at(who) - goal)) < within:
            break
        play.go(who, goal, pace)
        yield
    play.halt(who)


def meet(play: Play, one: Player, other: Player, spot: Floats, gap: float, pace: float) -> Script:
    """Two come to a place from where they are, and face each other."""
    turn = play.bearing(one, other)
    if abs(math.sin(turn)) < 0.5:
        # From aside one sees what two do to each other.
        turn = math.copysign(math.pi / 2, math.sin(turn) or 1.0) + play.draw(-0.4, 0.4)
    ends = (spot - unit(turn) * gap / 2, spot + unit(turn) * gap / 2)
    for _ in range(round(6.0 * play.fps)):
        off = [float(np.hypot(*(play.at(who) - end))) for who, end in zip((one, other), ends, strict=True)]
        if max(off) < 0.2 and play.gap(one, other) < gap + 0.3:
            break
        for who, end, away, to in zip((one, other), ends, off, (other, one), strict=True):
            play.go(who, end, pace, to if away < 0.9 else None)
        yield
    for who, to in ((one, other), (other, one)):
        play.halt(who, to)


def close_in(play: Play, who: Player, target: Player, gap: float, pace: float, most_s: float = 6.0) -> Script:
    """Move to somebody until one can reach them; they may move."""
    for _ in range(round(most_s * play.fps)):
        if play.gap(who, target) < gap + 0.12:
            break
        away = play.at(who) - play.at(target)
        size = max(float(np.hypot(*away)), 1e-6)
        play.go(who, play.at(target) + away / size * gap, pace)
        yield
    play.halt(who, target)


def keep(play: Play, who: Player, target: Player, gap: float, pace: float = 1.6) -> None:
    """In this frame, stay at a distance from somebody, facing them."""
    away = play.at(who) - play.at(target)
    size = max(float(np.hypot(*away)), 1e-6)
    play.go(who, play.at(target) + away / size * gap, pace, target)


def lie_down(play: Play, who: Player, turn: float | None = None) -> None:
    """Let somebody lie on the ground, injured."""
    play.halt(who)
    k = who.number
    if turn is not None:
        play.bodies.heading[k] = turn
    play.bodies.face[k] = play.bodies.heading[k]
    play.bodies.wide[k] = 0.45
    play.root(who, True)
    play.act(who, Pose.LIE, "injured")


def fall_down(play: Play, who: Player, turn: float) -> Script:
    """Let somebody tumble on the back, and lie there injured.

    Args:
        play: the scene.
        who: falls.
        turn: where their front points.
    """
    play.halt(who)
    play.bodies.face[who.number] = turn
    play.act(who, Pose.FALL)
    yield from play.wait(0.8)
    lie_down(play, who)


def get_up(play: Play, who: Player) -> Script:
    """Let somebody who lies get on their knees, and then on their feet."""
    play.bodies.wide[who.number] = 0.0
    play.act(who, Pose.KNEEL, "kneeling")
    yield from play.wait(play.draw(1.2, 2.0))
    play.rest(who)


def beside(play: Play, lying: Player, who: Player, away_m: float = 0.62) -> Floats:
    """(2,) the place at the side of somebody who lies, on the side of who comes."""
    turn = float(play.bodies.heading[lying.number])
    side = np.array([-math.sin(turn), math.cos(turn)])
    near = 1.0 if float((play.at(who) - play.at(lying)) @ side) > 0 else -1.0
    # The trunk lies behind the middle of the body, towards the head.
    return play.at(lying) - unit(turn) * 0.3 + near * away_m * side


def kneel_by(play: Play, who: Player, lying: Player, pace: float) -> Script:
    """Go to somebody who lies and kneel beside them."""
    play.bodies.touch(who.number, lying.number, 0.36)
    yield from reach(play, who, beside(play, lying, who), pace, 0.2)
    play.halt(who, lying)
    play.root(who, True)
    who.eyes = lying


def way_out(play: Play, who: Player, far: bool | None = None) -> Floats:
    """(2,) a place out of sight: behind the camera, past its side, or far down the street."""
    x, y = play.at(who).tolist()
    if far is None:
        far = x > 15.0 or play.chance(0.35)
    ground = play.ground
    if far:
        return np.array(
            [48.0, float(np.clip(y * 1.1 + play.draw(-2, 2), ground.right_m + 1, ground.left_m - 1))]
        )
    left = y > 0 if abs(y) > 1.0 else play.chance(0.5)
    room = ground.left_m if left else -ground.right_m
    side = min(max(2.6, abs(y) * 0.6), room - 0.3)
    return np.array([-6.0, side if left else -side])


def leave(play: Play, who: Player, pace: float, goal: Floats | None = None, *doing: str) -> Script:
    """Move out of sight, and then either stay away or wait there."""
    goal = way_out(play, who) if goal is None else goal
    play.act(who, None, *doing)
    yield from reach(play, who, goal, pace, 0.8, 18.0)
    who.doing = ()
    if play.left_s < 25.0:
        play.bodies.here[who.number] = False
        who.away = True


def push_along(play: Play, who: Player, thing: Thing, rolls: bool = True) -> None:
    """In this frame, have a thing right before the hands of somebody."""
    turn = float(play.bodies.heading[who.number])
    ahead = _HANDS * who.size_m[2] + thing.size_m[0] / 2 + 0.02
    thing.xy = play.at(who) + unit(turn) * ahead
    thing.heading = turn
    if thing.pushed_by is None:
        thing.pushed_by = who.number
    if not rolls:
        thing.z = 0.42 * who.size_m[2]


def pull_along(play: Play, who: Player, thing: Thing) -> None:
    """In this frame, have a thing at the right hand of somebody."""
    turn = float(play.bodies.heading[who.number])
    right = np.array([math.sin(turn), -math.cos(turn)])
    thing.xy = play.at(who) + 0.36 * right - 0.16 * unit(turn)
    thing.heading = turn
    if thing.pushed_by is None:
        thing.pushed_by = who.number
