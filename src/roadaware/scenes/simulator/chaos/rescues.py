"""Rescues: scenes of help for who lies injured, of arrests, and of fires that are put out."""

from __future__ import annotations

import math

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Pose
from roadaware.scenes.simulator.chaos.moves import (
    RUN_MPS,
    beside,
    close_in,
    get_up,
    kneel_by,
    lie_down,
    reach,
    unit,
    way_out,
)
from roadaware.scenes.simulator.chaos.play import Play, Player, Script
from roadaware.scenes.simulator.chaos.things import nearest

_LIFT_M = 0.72
_CARRY_MPS = 0.75
_CARRIER_M = 1.12
"""From the middle of who is carried to each of those who carry."""


def rescue(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody lies injured; one comes and kneels beside them; two carry them away."""
    hurt, helper = cast[:2]
    lie_down(play, hurt, play.draw(-0.5, 0.5) + (math.pi / 2 if play.chance(0.5) else -math.pi / 2))
    for _ in _coming(play, helper, hurt):
        yield
    yield from _tended(play, helper, hurt)
    if len(cast) == 2 and play.chance(0.5):
        yield from helped_up(play, helper, hurt)
    elif len(cast) > 2 and play.left_s > 3.0:
        yield from carried(play, cast, spot)
    else:
        while play.left_s > 0.2:
            yield from _tended(play, helper, hurt)


def _coming(play: Play, helper: Player, hurt: Player) -> Script:
    for _ in kneel_by(play, helper, hurt, RUN_MPS * 0.85):
        if play.gap(helper, hurt) > 1.6 and float(np.hypot(*play.bodies.velocity[helper.number])) > 1.5:
            play.bond(helper, "running towards", hurt)
        play.noise("crying", hurt)
        yield


def _tended(play: Play, helper: Player, hurt: Player) -> Script:
    """Kneel beside somebody, hands on them, now and then calling for help."""
    play.act(helper, Pose.KNEEL, "kneeling")
    for _ in play.wait(play.draw(2.2, 4.5)):
        play.halt(helper, hurt)
        play.bond(helper, "holding onto", hurt)
        play.noise("crying", hurt)
        yield
    if play.chance(0.5):
        play.act(helper, Pose.SHOUT, "shouting")
        for _ in play.wait(1.6):
            play.go(helper, play.at(helper), 0.0, np.array([0.0, 0.0]))
            play.noise("shouting for help", helper)
            yield
        play.act(helper, Pose.KNEEL, "kneeling")


def helped_up(play: Play, helper: Player, hurt: Player) -> Script:
    """One pulls another one who lies to their feet, and leads them away."""
    play.act(helper, Pose.PUSH_OBJECT, "walking")
    play.bodies.touch(helper.number, hurt.number, 0.5)
    for _ in get_up(play, hurt):
        play.halt(helper, hurt)
        play.bond(helper, "pulling", hurt)
        yield
    play.root(helper, False)
    helper.eyes = None
    play.act(helper, None)
    goal = way_out(play, hurt)
    for _ in range(round(min(8.0, max(0.2, play.left_s)) * play.fps)):
        play.go(hurt, goal, 0.8)
        side = unit(play.bearing(hurt, goal) + math.pi / 2)
        play.go(helper, play.at(hurt) + 0.6 * side, 1.3)
        play.bond(helper, "holding onto", hurt)
        yield


def carried(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Two lift somebody who lies and carry them down the street."""
    hurt, front, back = cast[:3]
    turn = float(play.bodies.heading[hurt.number])
    play.act(front, None)
    play.act(back, None)
    for who, sign in ((front, 1.0), (back, -1.0)):
        play.bodies.touch(who.number, hurt.number, 0.3)
        play.root(who, False)
        who.eyes = None
        # Round the body, not across it.
        clear = beside(play, hurt, who, 1.0) + unit(turn) * 1.3 * sign
        yield from reach(play, who, clear, 2.4, 0.4, 4.0)
        yield from reach(play, who, play.at(hurt) + unit(turn) * _CARRIER_M * sign, 1.5, 0.12, 3.0)
        play.halt(who, hurt)
    play.act(front, Pose.PUSH_OBJECT, "carrying casualty")
    play.act(back, Pose.PUSH_OBJECT, "carrying casualty")
    for who in (front, back):
        play.root(who, True)
    xy = play.at(hurt).copy()
    for _ in range(round(min(7.5, play.left_s) * play.fps)):
        ready = _take_hold(play, hurt, front, back, turn)
        hurt.lift = min(_LIFT_M, hurt.lift + 0.6 / play.fps) if ready else hurt.lift
        if hurt.lift == _LIFT_M and _clear(play, xy + 2.0 * unit(turn), cast):
            xy = xy + unit(turn) * _CARRY_MPS / play.fps
        play.bodies.xy[hurt.number] = xy
        for who in (front, back) if ready else ():
            play.bond(who, "holding onto", hurt)
        play.noise("crying", hurt)
        yield
    while hurt.lift > play.level:
        hurt.lift = max(play.level, hurt.lift - 0.6 / play.fps)
        yield
    for who in (front, back):
        play.root(who, False)
        play.act(who, None)
    while play.left_s > 0.2:
        yield from kneel_by(play, front, hurt, 1.2)
        yield from _tended(play, front, hurt)


def _take_hold(play: Play, hurt: Player, front: Player, back: Player, turn: float) -> bool:
    """Bring two to head and feet of somebody, by small steps; whether they are there."""
    most, there = 1.6 / play.fps, True
    for who, sign in ((front, 1.0), (back, -1.0)):
        off = play.at(hurt) + unit(turn) * _CARRIER_M * sign - play.at(who)
        away = float(np.hypot(*off))
        play.bodies.xy[who.number] = play.at(who) + off * min(1.0, most / max(away, 1e-9))
        play.go(who, play.at(who).copy(), 0.0, hurt)
        there = there and away < 0.15
    return there


def _clear(play: Play, ahead: Floats, cast: list[Player]) -> bool:
    """Whether nobody else and no edge is where somebody is carried to."""
    low, high = play.ground.reach(float(ahead[0]), 0.3)
    if not (low < ahead[1] < high and 5.5 < ahead[0] < 24.0):
        return False
    others = [who.number for who in play.players if who not in cast and play.bodies.here[who.number]]
    away = play.bodies.xy[others] - ahead
    return not bool((np.hypot(away[:, 0], away[:, 1]) < 0.8).any())


def arrest(play: Play, cast: list[Player], spot: Floats) -> Script:
    """The police run to somebody who is on the loose, bring them down and pin them to the ground."""
    officer, wanted = cast[:2]
    play.act(wanted, Pose.SHOUT, "shouting")
    play.halt(wanted, officer)
    for _ in close_in(play, officer, wanted, 0.8, RUN_MPS):
        if play.gap(officer, wanted) > 1.8 and float(np.hypot(*play.bodies.velocity[officer.number])) > 1.5:
            play.bond(officer, "running towards", wanted)
        play.noise("shouting", wanted)
        yield
    if play.gap(officer, wanted) > 1.5:
        return
    play.act(officer, Pose.PUSH_OBJECT, "arresting")
    play.act(wanted, Pose.FLINCH)
    for _ in play.wait(1.6):
        play.halt(officer, wanted)
        play.halt(wanted, officer)
        play.bond(officer, "grabbing", wanted)
        play.bond(officer, "arresting", wanted)
        yield
    lie_down(play, wanted, play.bearing(officer, wanted) + 0.5 * math.pi)
    play.act(wanted, Pose.LIE)
    for _ in kneel_by(play, officer, wanted, 1.2):
        play.bond(officer, "arresting", wanted)
        yield
    play.act(officer, Pose.KNEEL, "pinning", "arresting", "kneeling")
    for _ in play.wait(max(2.0, play.left_s)):
        play.bond(officer, "arresting", wanted)
        play.bond(officer, "holding onto", wanted)
        play.noise("shouting", wanted)
        yield


def put_out(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody runs up to a fire and puts it out."""
    who = cast[0]
    fires = [thing for thing in play.things if thing.model == "fire" and thing.here]
    if not fires:
        yield from reach(play, who, spot, 1.4)
        return
    fire = min(fires, key=lambda thing: float(np.hypot(*(thing.xy - play.at(who)))))
    away = play.at(who) - fire.xy
    turn = math.atan2(away[1], away[0])
    yield from reach(play, who, fire.xy + unit(turn) * 1.5, RUN_MPS * 0.9, 0.3)
    play.act(who, Pose.PUSH_OBJECT, "extinguishing fire")
    for _ in play.wait(play.draw(3.0, 5.0)):
        play.go(who, play.at(who), 0.0, fire.xy)
        play.noise("sizzling", fire)
        yield
    fire.here = False
    play.act(who, Pose.WAVE, "waving hands")
    for _ in play.wait(play.draw(1.6, 3.0)):
        play.go(who, play.at(who), 0.0, np.array([0.0, 0.0]))
        yield


def call_help(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody stops near a fire or wreck and phones, then waves for help."""
    who = cast[0]
    yield from reach(play, who, spot, 1.6)
    thing = nearest(play, spot, "debris", "dustbin", "EmVeh")
    play.act(who, Pose.PHONE, "speaking/talking")
    for _ in play.wait(play.draw(2.5, 5.0)):
        play.go(who, play.at(who), 0.0, thing.xy if thing is not None else np.array([0.0, 0.0]))
        play.noise("speaking", who)
        yield
    play.act(who, Pose.WAVE, "waving hands")
    for _ in play.wait(play.draw(1.6, 3.0)):
        play.go(who, play.at(who), 0.0, np.array([0.0, 0.0]))
        play.noise("shouting for help", who)
        yield
