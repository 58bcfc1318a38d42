"""Marches: scenes of protest: flags, signs and flares, barricades, fires that are set, the police beside."""

from __future__ import annotations

import math

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Pose
from roadaware.scenes.simulator.chaos.moves import RUN_MPS, leave, push_along, reach, unit
from roadaware.scenes.simulator.chaos.play import Play, Player, Script, Thing
from roadaware.scenes.simulator.chaos.things import kindle, nearest

_PACE_MPS = 0.75


def march(play: Play, cast: list[Player], spot: Floats) -> Script:
    """A column with flags and signs comes up the street, stops, chants and claps."""
    side = 1.0 if spot[1] < 0 else -1.0
    start = np.array([min(17.0, spot[0] + play.draw(3.5, 5.0)), spot[1]])
    rows = [(k // 3, k % 3 - (1 if len(cast) > 2 else 0)) for k in range(len(cast))]
    parts = [_marcher(play, who, k) for k, who in enumerate(cast)]
    anchor = start.copy()
    for frame in range(round(max(2.0, play.left_s) * play.fps)):
        cycle = frame / play.fps % 13.0
        moves = 0.4 < cycle < 6.0 and anchor[0] > spot[0] - 1.0
        turn = math.pi + 0.25 * side * (1.0 if moves else 0.0)
        if moves:
            anchor = anchor + unit(turn) * _PACE_MPS / play.fps
        for who, (row, column), part in zip(cast, rows, parts, strict=True):
            goal = anchor - unit(math.pi) * 1.35 * row + np.array([0.0, 1.25 * column])
            away = float(np.hypot(*(goal - play.at(who))))
            play.go(who, goal, min(2.0, _PACE_MPS + 1.2 * away) if away > 0.15 or moves else 0.0)
            if not moves and away < 0.3:
                play.bodies.face[who.number] = math.pi
            next(part)
            if row and moves and _follows(play, who, cast[column % min(3, len(cast))]):
                play.bond(who, "following after", cast[column % min(3, len(cast))])
        yield


def _follows(play: Play, who: Player, leader: Player) -> bool:
    """Whether somebody walks towards another one who walks too."""
    off = play.bearing(who, leader) - float(play.bodies.heading[who.number])
    pace = np.hypot(*play.bodies.velocity[[who.number, leader.number]].T)
    return abs((off + math.pi) % (2 * math.pi) - math.pi) < 0.8 and bool(pace.min() > 0.3)


def _marcher(play: Play, who: Player, place: int) -> Script:
    """What one of a march does with their hands: a flag, a sign, or chants, fists and claps by turns."""
    held = {0: Pose.HOLD_SIGN, 1: Pose.HOLD_FLAG, 2: Pose.HOLD_SIGN, 4: Pose.HOLD_FLAG, 6: Pose.HOLD_SIGN}
    while True:
        pose = held.get(place)
        loud = play.chance(0.6)
        chant = ("chanting/cheering",) if loud else ()
        if pose == Pose.HOLD_FLAG:
            play.act(who, pose, "holding flag", "waving flag", *chant)
        elif pose == Pose.HOLD_SIGN:
            play.act(who, pose, "holding signage", *chant)
        else:
            loud = _hands(play, who)
        label = "clapping" if who.pose == Pose.CLAP else "chanting/cheering"
        for _ in play.wait(play.draw(1.8, 5.0)):
            if loud:
                play.noise(label, who)
            yield


def _hands(play: Play, who: Player) -> bool:
    """Choose what to do with empty hands; returns whether it is heard."""
    kind = play.draw(0.0, 1.0)
    if kind < 0.35:
        play.act(who, Pose.SHOUT, "chanting/cheering", "shouting")
    elif kind < 0.6:
        play.act(who, Pose.WAVE, "raising fist", "chanting/cheering")
    elif kind < 0.85:
        play.act(who, Pose.CLAP, "clapping")
    else:
        play.act(who, Pose.WAVE, "waving hands")
        return False
    return True


def flares(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody brings a burning flare and swings it."""
    who = cast[0]
    who.flare = True
    play.act(who, None, "holding a burning stick")
    for _ in _heard(play, who, "flare", reach(play, who, spot, 1.3)):
        yield
    for _ in range(int(play.rng.integers(1, 3))):
        play.act(who, Pose.STAND, "waving flarestick", "holding a burning stick")
        turn = math.pi + play.draw(-0.9, 0.9)
        for _ in play.wait(play.draw(2.0, 5.0)):
            play.go(who, play.at(who), 0.0, play.at(who) + unit(turn))
            play.noise("flare", who)
            yield
        play.act(who, None, "holding a burning stick")
        near = play.ground.clamp(*(spot + play.rng.uniform(-1.5, 1.5, 2)).tolist())
        for _ in _heard(play, who, "flare", reach(play, who, near, 1.2, most_s=3.0)):
            yield


def _heard(play: Play, who: Player, label: str, script: Script) -> Script:
    for _ in script:
        play.noise(label, who)
        yield


def arson(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody sets a bin on fire with a flare, and runs off."""
    who = cast[0]
    target = nearest(play, spot, "dustbin")
    who.flare = True
    play.act(who, None, "holding a burning stick")
    if target is None:
        yield from reach(play, who, spot, 1.5)
        return
    away = play.at(who) - target.xy
    stand = target.xy + away / max(float(np.hypot(*away)), 1e-6) * 0.95
    yield from reach(play, who, stand, 1.8, 0.25)
    play.act(who, Pose.STAND, "burning/setting fire", "holding a burning stick")
    fire: Thing | None = None
    for step, _ in enumerate(play.wait(play.draw(2.0, 3.0))):
        play.go(who, play.at(who), 0.0, target.xy)
        if step == round(1.3 * play.fps):
            fire = kindle(play, target)
        if fire is not None:
            play.noise("sizzling", fire)
        yield
    who.flare = False
    play.act(who, None)
    yield from leave(play, who, RUN_MPS)


def smash(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody beats on a thing that stands about, again and again."""
    who = cast[0]
    target = nearest(play, spot, "dustbin", "Car", "barrier")
    if target is None:
        yield from reach(play, who, spot, 1.5)
        return
    long, wide, _ = target.size_m
    turn = target.heading
    local = play.at(who) - target.xy
    side = 1.0 if float(local @ np.array([-math.sin(turn), math.cos(turn)])) > 0 else -1.0
    stand = target.xy + np.array([-math.sin(turn), math.cos(turn)]) * side * (wide / 2 + 0.55)
    stand = stand + unit(turn) * play.draw(-0.2, 0.2) * long
    yield from reach(play, who, stand, 2.2, 0.25)
    face = stand - np.array([-math.sin(turn), math.cos(turn)]) * side
    for _ in range(int(play.rng.integers(2, 4))):
        play.act(who, Pose.PUNCH, "hitting an object/smashing", "destroying")
        for _ in play.wait(play.draw(1.6, 3.0)):
            play.go(who, stand, 0.5, face)
            play.noise("crashing" if target.kind == "Car" else "clanking (of metal)", target)
            yield
        play.act(who, Pose.SHOUT, "shouting")
        for _ in play.wait(1.5):
            play.noise("shouting", who)
            yield


def barricade(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody pushes a bin or barrier into the street, or pulls one out of it."""
    who = cast[0]
    thing = nearest(play, play.at(who), "dustbin", "barrier", free=True)
    if thing is None:
        yield from reach(play, who, spot, 1.5)
        return
    thing.pushed_by = who.number
    pulls = play.chance(0.4)
    line = spot - thing.xy
    turn = math.atan2(line[1], line[0])
    gap = 0.27 * who.size_m[2] + thing.size_m[0] / 2 + 0.02
    stand = thing.xy + unit(turn) * (gap if pulls else -gap)
    yield from reach(play, who, stand, 2.0, 0.2)
    play.act(who, Pose.PUSH_OBJECT, "pulling barricade" if pulls else "creating barricade")
    for step in range(round(7.0 * play.fps)):
        goal = spot + unit(turn) * gap if pulls else spot - unit(turn) * gap
        if np.hypot(*(play.at(who) - goal)) < 0.3:
            break
        ready = step > 0.5 * play.fps
        play.go(
            who, goal if ready else play.at(who), 0.9, play.at(who) + unit(turn + (np.pi if pulls else 0))
        )
        if ready:
            push_along(play, who, thing)
            play.noise("clanking (of metal)", thing)
        yield
    play.act(who, Pose.WAVE, "raising fist")
    for _ in play.wait(play.draw(1.5, 3.0)):
        play.halt(who, np.array([0.0, 0.0]))
        yield


def guard(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Police stand in a row and watch over the crowd."""
    places = [spot + np.array([0.0, 1.1 * (k - (len(cast) - 1) / 2)]) for k in range(len(cast))]
    for _ in range(round(5.0 * play.fps)):
        off = [float(np.hypot(*(play.at(who) - place))) for who, place in zip(cast, places, strict=True)]
        if max(off) < 0.3:
            break
        for who, place in zip(cast, places, strict=True):
            play.go(who, place, 1.6)
        yield
    for who, place in zip(cast, places, strict=True):
        play.act(who, Pose.STAND, "guarding")
        play.go(who, place, 0.4, np.array([4.0, 0.0]))
    for _ in play.wait(play.draw(5.0, 8.0)):
        for who, place in zip(cast, places, strict=True):
            play.go(who, place, 0.4, np.array([4.0, 0.0]))
        yield
