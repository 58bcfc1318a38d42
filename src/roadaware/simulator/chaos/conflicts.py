"""Scenes of two or three who fight, push, argue, chase, talk to or hug each other, and scenes of protest."""

from __future__ import annotations

import math

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos.cast import (
    RUN_MPS,
    WALK_MPS,
    add_flames,
    close_in,
    fall_down,
    find_nearest_thing,
    heading_vector,
    keep,
    move_face_to_face,
    move_out_of_view,
    move_pushed_thing,
    move_to,
    select_exit,
)
from roadaware.simulator.chaos.play import Play, Player, Script, Thing


def simulate_brawl(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Two beat and shove each other; a third one may pull them apart."""
    one, other = cast[:2]
    yield from move_face_to_face(play, one, other, spot, 0.85, 2.2)
    yield from close_in(play, one, other, 0.85, 2.0, 3.0)
    for turn in range(int(play.rng.integers(3, 6))):
        if play.chance(0.5):
            one, other = other, one
        kind = play.draw(0.0, 1.0)
        shoved = 0.3 if turn else 0.5
        act = simulate_shoves if kind < shoved else simulate_kicks if kind < shoved + 0.25 else simulate_blows
        yield from act(play, one, other)
    if len(cast) > 2:
        yield from _separate_fighters(play, one, other, cast[2])
        return
    end = play.chance(0.5)
    if end and play.left_s > 3.0:
        yield from fall_down(play, other, play.bearing(other, one))
        # Shout at somebody who lies on the ground, and leave.
        play.act(one, Pose.SHOUT, "shouting")
        for _ in play.wait(play.draw(1.5, 3.0)):
            keep(play, one, other, 1.1)
            play.bond(one, "shouting at", other)
            play.noise("shouting", one)
            yield
        play.act(one, None)
        yield from move_out_of_view(play, one, RUN_MPS)
        yield from play.wait(play.left_s)
    else:
        yield from simulate_chase(play, [one, other], spot)


def simulate_blows(play: Play, one: Player, other: Player) -> Script:
    """One strikes, the other strikes back or covers up."""
    both = play.chance(0.55)
    play.act(one, Pose.PUNCH, "punching", "fighting")
    play.act(other, Pose.PUNCH if both else Pose.FLINCH, *(("punching",) if both else ()), "fighting")
    loud = play.chance(0.4)
    for _ in play.wait(play.draw(1.6, 3.2)):
        keep(play, one, other, 0.8)
        keep(play, other, one, 0.8)
        play.bond(one, "fighting", other)
        play.bond(other, "fighting", one)
        if loud:
            play.noise("shouting", other)
        yield


def simulate_kicks(play: Play, one: Player, other: Player) -> Script:
    """One kicks, the other covers up and gives way."""
    play.act(one, Pose.KICK, "fighting")
    play.act(other, Pose.FLINCH, "fighting")
    for _ in play.wait(play.draw(1.2, 2.4)):
        keep(play, one, other, 0.92)
        back = play.at(other) + heading_vector(play.bearing(one, other)) * 0.4
        play.go(other, play.ground.clamp(*back.tolist()), 0.35, one)
        play.bond(one, "kicking", other)
        play.bond(one, "fighting", other)
        play.bond(other, "fighting", one)
        play.noise("shouting", other)
        yield


def simulate_threat(play: Play, cast: list[Player], spot: Floats) -> Script:
    """One raises a club against another one, who puts the hands up, backs off and runs."""
    one, other = cast[:2]
    yield from move_face_to_face(play, one, other, spot, 2.0, 1.8)
    play.act(one, Pose.THREATEN, "holding weapon")
    for turn in range(2):
        play.act(
            other, Pose.HANDS_UP if turn == 0 else Pose.FLINCH, "raising hands" if turn == 0 else "retreating"
        )
        for _ in play.wait(play.draw(2.0, 3.5)):
            goal = play.at(other) + heading_vector(play.bearing(one, other)) * 0.6
            play.go(other, play.ground.clamp(*goal.tolist()), 0.5, one)
            keep(play, one, other, 1.7, 0.9)
            play.bond(one, "shouting at", other)
            play.noise("shouting", one)
            yield
    yield from simulate_chase(play, [one, other], spot)


def simulate_dance(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Several dance in a ring."""
    angles = {who.number: 2 * np.pi * k / len(cast) + 0.7 for k, who in enumerate(cast)}
    ring = 0.9 if len(cast) > 1 else 0.0
    for who in cast:
        play.act(who, None)
    for _ in range(round(4.0 * play.fps)):
        goals = {who.number: spot + ring * heading_vector(angles[who.number]) for who in cast}
        if all(np.hypot(*(play.at(who) - goals[who.number])) < 0.3 for who in cast):
            break
        for who in cast:
            play.go(who, goals[who.number], WALK_MPS)
        yield
    for who in cast:
        play.halt(who, spot + 1e-3)
        play.act(who, Pose.DANCE, "dancing")
    for _ in play.wait(play.draw(3.5, 7.0)):
        play.noise("chanting/cheering", cast[0])
        yield


def simulate_shoves(play: Play, one: Player, other: Player, *more: str) -> Script:
    """One shoves, the other staggers back."""
    play.act(one, Pose.SHOVE, "pushing", *more)
    play.act(other, Pose.FLINCH, "retreating")
    for _ in play.wait(play.draw(1.6, 2.4)):
        back = play.at(other) + heading_vector(play.bearing(one, other)) * 0.8
        play.go(other, play.ground.clamp(*back.tolist()), 0.75, one)
        keep(play, one, other, 0.72)
        play.bond(one, "pushing", other)
        play.noise("shouting", one)
        yield


def _separate_fighters(play: Play, one: Player, other: Player, third: Player) -> Script:
    """A third one pulls one of two away from the other, who shouts after them."""
    play.act(one, Pose.SHOUT, "shouting")
    play.act(other, Pose.ARGUE, "arguing")
    play.halt(other, one)
    yield from close_in(play, third, one, 0.8, 2.6)
    if play.gap(third, one) > 1.3:
        return
    play.act(third, Pose.PUSH_OBJECT, "walking")
    away = heading_vector(play.bearing(other, one))
    for _ in play.wait(play.draw(2.2, 3.5)):
        goal = play.ground.clamp(*(play.at(third) + away * 0.9).tolist())
        play.go(third, goal, 0.8, one)
        keep(play, one, third, 0.7)
        play.bodies.face[one.number] = play.bearing(one, other)
        play.bond(third, "pulling", one)
        play.bond(one, "shouting at", other)
        play.noise("shouting", one)
        yield
    play.act(third, None, "speaking/talking")
    play.act(other, None)
    play.act(one, None)
    for _ in play.wait(play.draw(1.5, 3.0)):
        keep(play, third, one, 1.0)
        keep(play, one, third, 1.0)
        play.bond(third, "speaking to", one)
        play.noise("speaking", third)
        yield


def simulate_quarrel(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Two argue and shout by turns, then shove, make it up or walk off."""
    one, other = cast[:2]
    yield from move_face_to_face(play, one, other, spot, 1.0, 1.6)
    for _ in range(int(play.rng.integers(3, 6))):
        if play.chance(0.6):
            one, other = other, one
        loud = play.chance(0.35)
        both = not loud and play.chance(0.35)
        play.act(one, Pose.SHOUT if loud else Pose.ARGUE, "shouting" if loud else "arguing")
        play.act(other, Pose.ARGUE if both else None, *(("arguing",) if both else ()))
        for _ in play.wait(play.draw(1.6, 3.4)):
            keep(play, one, other, 0.95)
            keep(play, other, one, 0.95)
            play.bond(one, "shouting at" if loud else "arguing with", other)
            if both:
                play.bond(other, "arguing with", one)
            play.noise("shouting" if loud else "arguing", one)
            yield
    end = play.draw(0.0, 1.0)
    if end < 0.35:
        yield from simulate_embrace(play, one, other)
    elif end < 0.7:
        yield from simulate_shoves(play, one, other)
        yield from move_out_of_view(play, other, WALK_MPS * 1.2)
    else:
        play.act(other, None)
        # One leaves, the other one comes after them.
        play.act(one, None)
        goal = select_exit(play, one)
        for step in range(round(min(7.0, play.left_s) * play.fps)):
            play.go(one, goal, 1.7)
            late = step < 0.6 * play.fps
            play.go(other, play.at(other) if late else play.at(one), 0.0 if late else 1.5)
            if not late and float(np.hypot(*play.bodies.velocity[other.number])) > 0.6:
                play.bond(other, "following after", one)
            yield


def simulate_embrace(play: Play, one: Player, other: Player) -> Script:
    """Two step up to each other and hug."""
    a, b = one.number, other.number
    play.act(one, None)
    play.act(other, None)
    play.bodies.touch(a, b, 0.3)
    for _ in play.wait(2.0):
        keep(play, one, other, 0.36)
        keep(play, other, one, 0.36)
        if play.gap(one, other) < 0.45:
            break
        yield
    near = play.gap(one, other) < 0.7
    for who in group_players(one, other):
        play.act(who, Pose.HUG if near else None, *(("hugging",) if near else ()))
        play.root(who, near)
    for _ in play.wait(play.draw(2.0, 4.0)):
        for who, to in ((one, other), (other, one)):
            play.halt(who, to)
            if near:
                play.bond(who, "hugging", to)
        yield
    for who in group_players(one, other):
        play.act(who, None)
        play.root(who, False)
    for _ in play.wait(0.8):
        keep(play, one, other, 0.9)
        yield
    play.bodies.touch(a, b, None)


def group_players(*players: Player) -> tuple[Player, ...]:
    """Several players."""
    return players


def simulate_reunion(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Two run towards each other, and hug."""
    one, other = cast[:2]
    for _ in play.wait(play.draw(0.2, 1.5)):
        for who, to in ((one, other), (other, one)):
            play.halt(who, to)
        yield
    for _ in range(round(5.0 * play.fps)):
        if play.gap(one, other) < 1.0:
            break
        for who, to in ((one, other), (other, one)):
            play.go(who, play.at(to), 2.9)
            if play.gap(one, other) > 1.6:
                play.bond(who, "running towards", to)
        yield
    yield from simulate_embrace(play, one, other)
    yield from simulate_chat(play, cast, (play.at(one) + play.at(other)) / 2)


def simulate_chat(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Two stand and talk by turns."""
    one, other = cast[:2]
    yield from move_face_to_face(play, one, other, spot, 1.0, WALK_MPS)
    for _ in range(int(play.rng.integers(2, 4))):
        one, other = other, one
        play.act(one, None, "speaking/talking")
        play.act(other, None)
        for _ in play.wait(play.draw(1.6, 3.5)):
            for who, to in ((one, other), (other, one)):
                play.go(who, play.at(who), 0.0, to)
                who.eyes = to
            play.bond(one, "speaking to", other)
            play.noise("speaking", one)
            yield


def simulate_chase(play: Play, cast: list[Player], spot: Floats) -> Script:
    """One runs away, another one comes after them and falls behind."""
    hunter, runner = cast[:2]
    play.act(runner, None)
    play.act(hunter, None, "chasing")
    x, y = play.at(runner).tolist()
    across = play.ground.clamp(x + play.draw(-2.5, 2.5), -np.sign(y or 1.0) * play.draw(2.5, 5.0))
    clear = float((across - play.at(runner)) @ (play.at(hunter) - play.at(runner))) < 0
    goals = [across, None] if clear and abs(y) > 1.0 else [None]
    out = select_exit(play, runner)
    pace = play.draw(3.9, 4.5)
    for goal in goals:
        end = out if goal is None else goal
        for _ in range(round(9.0 * play.fps)):
            if np.hypot(*(play.at(runner) - end)) < 1.2:
                break
            play.go(runner, end, pace)
            play.go(hunter, play.at(runner), pace - 1.0)
            if float(np.hypot(*play.bodies.velocity[runner.number])) > 1.5:
                play.bond(runner, "running away from", hunter)
                play.bond(hunter, "following after", runner)
            play.noise("shouting", hunter)
            yield
    # The hunter shouts after the runner, who is gone
    if play.left_s < 25.0:
        play.bodies.here[runner.number] = False
        runner.away = True
    play.halt(runner)
    play.act(hunter, Pose.SHOUT, "shouting")
    for _ in play.wait(play.draw(1.5, 2.5)):
        play.halt(hunter)
        play.noise("shouting", hunter)
        yield


def simulate_stone_throwing(play: Play, cast: list[Player], spot: Floats) -> Script:
    """One throws stones at another one, who backs off."""
    one, other = cast[:2]
    play.go(other, play.at(other), 0.0, one)
    yield from move_to(play, one, spot, 2.0)
    for _ in range(int(play.rng.integers(2, 5))):
        if other.away or play.gap(one, other) > 12.0:
            break
        play.act(one, Pose.THROW, "throwing object")
        play.halt(one, other)
        back = play.gap(one, other) < 9.0 and play.chance(0.8)
        play.act(other, Pose.FLINCH if back else None, *(("retreating",) if back else ()))
        for _ in play.wait(1.6):
            play.go(one, play.at(one), 0.0, other)
            goal = play.at(other) + heading_vector(play.bearing(one, other)) * 0.6
            play.go(other, play.ground.clamp(*goal.tolist()), 0.5 if back else 0.0, one)
            play.bond(one, "throwing objects at", other)
            yield
        play.act(one, Pose.SHOUT, "shouting")
        for _ in play.wait(1.5):
            play.bond(one, "shouting at", other)
            play.noise("shouting", one)
            yield
    play.act(one, None)
    play.act(other, None)


# Marches: scenes of protest: flags, signs and flares, barricades, fires that are set, the police beside.

_PACE_MPS = 0.75


def simulate_march(play: Play, cast: list[Player], spot: Floats) -> Script:
    """A column with flags and signs comes up the street, stops, chants and claps."""
    side = 1.0 if spot[1] < 0 else -1.0
    start = np.array([min(play.ground.far_m - 1.0, spot[0] + play.draw(3.5, 5.0)), spot[1]])
    rows = [(k // 3, k % 3 - (1 if len(cast) > 2 else 0)) for k in range(len(cast))]
    parts = [_marcher(play, who, k) for k, who in enumerate(cast)]
    anchor = start.copy()
    for frame in range(round(max(2.0, play.left_s) * play.fps)):
        cycle = frame / play.fps % 13.0
        moves = 0.4 < cycle < 6.0 and anchor[0] > spot[0] - 1.0
        turn = math.pi + 0.25 * side * (1.0 if moves else 0.0)
        if moves:
            anchor = anchor + heading_vector(turn) * _PACE_MPS / play.fps
        for who, (row, column), part in zip(cast, rows, parts, strict=True):
            goal = anchor - heading_vector(math.pi) * 1.35 * row + np.array([0.0, 1.25 * column])
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


def simulate_flares(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody brings a burning flare and swings it."""
    who = cast[0]
    who.flare = True
    play.act(who, None, "holding a burning stick")
    for _ in _heard(play, who, "flare", move_to(play, who, spot, 1.3)):
        yield
    for _ in range(int(play.rng.integers(1, 3))):
        play.act(who, Pose.STAND, "waving flarestick", "holding a burning stick")
        turn = math.pi + play.draw(-0.9, 0.9)
        for _ in play.wait(play.draw(2.0, 5.0)):
            play.go(who, play.at(who), 0.0, play.at(who) + heading_vector(turn))
            play.noise("flare", who)
            yield
        play.act(who, None, "holding a burning stick")
        near = play.ground.clamp(*(spot + play.rng.uniform(-1.5, 1.5, 2)).tolist())
        for _ in _heard(play, who, "flare", move_to(play, who, near, 1.2, most_s=3.0)):
            yield


def _heard(play: Play, who: Player, label: str, script: Script) -> Script:
    for _ in script:
        play.noise(label, who)
        yield


def simulate_arson(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody sets a bin on fire with a flare, and runs off."""
    who = cast[0]
    target = find_nearest_thing(play, spot, "dustbin")
    who.flare = True
    play.act(who, None, "holding a burning stick")
    if target is None:
        yield from move_to(play, who, spot, 1.5)
        return
    away = play.at(who) - target.xy
    stand = target.xy + away / max(float(np.hypot(*away)), 1e-6) * 0.95
    yield from move_to(play, who, stand, 1.8, 0.25)
    play.act(who, Pose.STAND, "burning/setting fire", "holding a burning stick")
    fire: Thing | None = None
    for step, _ in enumerate(play.wait(play.draw(2.0, 3.0))):
        play.go(who, play.at(who), 0.0, target.xy)
        if step == round(1.3 * play.fps):
            fire = add_flames(play, target)
        if fire is not None:
            play.noise("sizzling", fire)
        yield
    who.flare = False
    play.act(who, None)
    yield from move_out_of_view(play, who, RUN_MPS)


def simulate_vandalism(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody beats on a thing that stands about, again and again."""
    who = cast[0]
    target = find_nearest_thing(play, spot, "dustbin", "Car", "barrier")
    if target is None:
        yield from move_to(play, who, spot, 1.5)
        return
    long, wide, _ = target.size_m
    turn = target.heading
    local = play.at(who) - target.xy
    side = 1.0 if float(local @ np.array([-math.sin(turn), math.cos(turn)])) > 0 else -1.0
    stand = target.xy + np.array([-math.sin(turn), math.cos(turn)]) * side * (wide / 2 + 0.55)
    stand = stand + heading_vector(turn) * play.draw(-0.2, 0.2) * long
    yield from move_to(play, who, stand, 2.2, 0.25)
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


def simulate_barricade(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody pushes a bin or barrier into the street, or pulls one out of it."""
    who = cast[0]
    thing = find_nearest_thing(play, play.at(who), "dustbin", "barrier", free=True)
    if thing is None:
        yield from move_to(play, who, spot, 1.5)
        return
    thing.pushed_by = who.number
    pulls = play.chance(0.4)
    line = spot - thing.xy
    turn = math.atan2(line[1], line[0])
    gap = 0.27 * who.size_m[2] + thing.size_m[0] / 2 + 0.02
    stand = thing.xy + heading_vector(turn) * (gap if pulls else -gap)
    yield from move_to(play, who, stand, 2.0, 0.2)
    play.act(who, Pose.PUSH_OBJECT, "pulling barricade" if pulls else "creating barricade")
    for step in range(round(7.0 * play.fps)):
        goal = spot + heading_vector(turn) * gap if pulls else spot - heading_vector(turn) * gap
        if np.hypot(*(play.at(who) - goal)) < 0.3:
            break
        ready = step > 0.5 * play.fps
        play.go(
            who,
            goal if ready else play.at(who),
            0.9,
            play.at(who) + heading_vector(turn + (np.pi if pulls else 0)),
        )
        if ready:
            move_pushed_thing(play, who, thing)
            play.noise("clanking (of metal)", thing)
        yield
    play.act(who, Pose.WAVE, "raising fist")
    for _ in play.wait(play.draw(1.5, 3.0)):
        play.halt(who, np.array([0.0, 0.0]))
        yield


def simulate_police_line(play: Play, cast: list[Player], spot: Floats) -> Script:
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
