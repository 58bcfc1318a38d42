"""Scenes of music, speeches, prayer, reports, paint and guns, of a collision, and of vehicles that are heard."""

from __future__ import annotations

import math

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos.cast import (
    RUN_MPS,
    WALK_MPS,
    add_thing,
    close_in,
    find_nearest_thing,
    heading_vector,
    lie_down,
    move_face_to_face,
    move_out_of_view,
    move_to,
    select_exit,
)
from roadaware.simulator.chaos.play import Play, Player, Script

PODIUM_M = 0.45
_CAMERA = np.zeros(2)
_SHOT_S, _FLASH_S = 0.45, 0.1
"""Between two shots, and how long the flash of one is seen."""


def simulate_solo(
    play: Play,
    cast: list[Player],
    spot: Floats,
    *,
    pose: Pose,
    doing: tuple[str, ...],
    label: str | None = None,
    at: tuple[str, ...] = (),
) -> Script:
    """One does something again and again, and is heard; whoever else is cast watches.

    Args:
        play: the scene.
        cast: who does it first, then those who watch.
        spot: (2,) where.
        pose: that shows it.
        doing: the official actions.
        label: of the sound; None for none.
        at: kinds of things that it is done to, if one is near.
    """
    who, watchers = cast[0], cast[1:]
    target = find_nearest_thing(play, spot, *at) if at else None
    face = play.ground.clamp(float(spot[0]) - 3.0, float(spot[1]) + play.draw(-2.0, 2.0))
    if target is not None:
        # (2,) where one stands at the longer side of a thing, and (2,) its middle.
        across = heading_vector(target.heading) if target.size_m[1] >= target.size_m[0] else np.array(
            [-math.sin(target.heading), math.cos(target.heading)]
        )  # fmt: skip
        side = 1.0 if float((play.at(who) - target.xy) @ across) > 0 else -1.0
        away = min(target.size_m[:2]) / 2 + 0.62
        spot, face = target.xy + side * away * across, target.xy.copy()
    yield from move_to(play, who, spot, WALK_MPS * 1.3)
    for _ in range(int(play.rng.integers(2, 4))):
        play.act(who, pose, *doing)
        for _ in play.wait(play.draw(2.6, 5.0)):
            play.go(who, play.at(who), 0.0, face)
            if label is not None:
                play.noise(label, who)
            _watch(play, watchers, who)
            yield
        play.act(who, None)
        for _ in play.wait(play.draw(0.6, 1.4)):
            play.go(who, play.at(who), 0.0, face)
            _watch(play, watchers, who)
            yield


def _watch(play: Play, watchers: list[Player], who: Player) -> None:
    """In this frame, have some stand and look at somebody."""
    for one in watchers:
        if one.pose is None:
            play.act(one, None, "watching")
        one.eyes = who
        near = play.gap(one, who) < 4.0
        play.go(one, play.at(one) if near else play.at(who), 0.0 if near else WALK_MPS, who)
        if near:
            play.bond(one, "watching", who)


def simulate_hand_in_hand(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Two walk side by side, hand in hand, stop and walk on."""
    one, other = cast[:2]
    play.bodies.touch(one.number, other.number, 0.55)
    turn = math.pi + play.draw(-0.7, 0.7)
    for _ in range(3):
        goal = play.ground.clamp(float(spot[0]) + play.draw(-3.0, 3.0), play.draw(-3.5, 3.5))
        for who in (one, other):
            play.act(who, None)
        for step in range(round(6.0 * play.fps)):
            away = goal - play.at(one)
            far = float(np.hypot(*away))
            if far < 0.4:
                break
            turn = math.atan2(away[1], away[0]) if far > 0.8 else turn
            side = play.at(one) + 0.74 * heading_vector(turn - math.pi / 2)
            joined = float(np.hypot(*(side - play.at(other)))) < 0.35 and play.gap(one, other) < 1.05
            play.go(one, goal, 0.95 if joined or step > 2.5 * play.fps else 0.3)
            play.go(other, side + 0.25 * heading_vector(turn), 1.5)
            _join_hands(play, one, other, joined)
            yield
        for _ in play.wait(play.draw(1.5, 3.0)):
            side = play.at(one) + 0.74 * heading_vector(turn - math.pi / 2)
            joined = play.gap(one, other) < 1.05
            ahead = heading_vector(turn)
            play.go(one, play.at(one), 0.0, play.at(one) + ahead)
            play.go(other, side, 0.8, play.at(other) + ahead)
            _join_hands(play, one, other, joined)
            yield
    for who in (one, other):
        play.act(who, None)
    play.bodies.touch(one.number, other.number, None)


def _join_hands(play: Play, one: Player, other: Player, joined: bool) -> None:
    for who, to in ((one, other), (other, one)):
        play.act(who, Pose.HOLD_HANDS if joined else None, *(("holding hands",) if joined else ()))
        if joined:
            play.bond(who, "holding onto", to)


def simulate_speech(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody speaks from a platform; those around listen, clap and boo."""
    speaker, crowd = cast[0], cast[1:]
    stage = add_thing(play, "debris", spot, math.pi, "podium", (1.3, 1.3, PODIUM_M))
    for _ in move_to(play, speaker, spot, WALK_MPS * 1.3, 0.2, 5.0):
        _listen(play, crowd, speaker)
        yield
    play.root(speaker, True)
    while speaker.lift < PODIUM_M:
        speaker.lift = min(PODIUM_M, speaker.lift + 1.4 / play.fps)
        play.bodies.xy[speaker.number] += 0.2 * (stage.xy - play.at(speaker))
        yield
    for turn in range(4):
        booed = turn % 2 == 1 and bool(play.chance(0.7))
        play.act(speaker, Pose.MICROPHONE, "speaking on stage", "speaking/talking")
        for _ in play.wait(play.draw(2.4, 4.0)):
            play.go(speaker, play.at(speaker), 0.0, _CAMERA)
            play.noise("speaking", speaker)
            _listen(play, crowd, speaker)
            for one in crowd:
                play.bond(speaker, "speaking to", one)
            yield
        for one in crowd:
            play.act(one, *((Pose.SHOUT, "shouting") if booed else (Pose.CLAP, "clapping")))
        for _ in play.wait(play.draw(1.6, 2.6)):
            play.go(speaker, play.at(speaker), 0.0, _CAMERA)
            for one in crowd:
                play.go(one, play.at(one), 0.0, speaker)
                play.noise("booing" if booed else "clapping", one)
                if booed:
                    play.bond(one, "shouting at", speaker)
            yield
        for one in crowd:
            play.act(one, None, "watching")
    while speaker.lift > 0.0:
        speaker.lift = max(0.0, speaker.lift - 1.4 / play.fps)
        yield
    play.rest(speaker)


def _listen(play: Play, crowd: list[Player], speaker: Player) -> None:
    """In this frame, have a crowd gather at both sides of a speaker."""
    for k, one in enumerate(crowd):
        side = heading_vector(math.pi + (1.25 if k % 2 else -1.25))
        place = play.at(speaker) + (1.9 + 0.4 * (k // 2)) * side
        near = float(np.hypot(*(place - play.at(one)))) < 0.5
        if near:
            play.act(one, None, "watching")
            play.bond(one, "watching", speaker)
        play.go(one, place, 0.0 if near else 1.7, speaker if near else None)
        one.eyes = speaker


def simulate_report(play: Play, cast: list[Player], spot: Floats) -> Script:
    """A reporter speaks into a microphone, and another one films it."""
    reporter, camera = cast[:2]
    place = play.ground.clamp(float(spot[0]) - 2.0, float(spot[1]) + (1.3 if spot[1] < 0 else -1.3))
    for _ in range(round(5.0 * play.fps)):
        away = [float(np.hypot(*(play.at(who) - to))) for who, to in ((reporter, spot), (camera, place))]
        if max(away) < 0.4:
            break
        play.go(reporter, spot, 1.8)
        play.go(camera, place, 1.8)
        yield
    for _ in range(2):
        play.act(reporter, Pose.MICROPHONE, "reporting live", "speaking/talking")
        play.act(camera, Pose.FILM, "recording")
        for _ in play.wait(play.draw(3.5, 5.5)):
            play.go(reporter, play.at(reporter), 0.0, camera)
            play.go(camera, play.at(camera), 0.0, reporter)
            play.bond(camera, "recording", reporter)
            play.bond(reporter, "speaking to", camera)
            play.noise("speaking", reporter)
            yield
        play.act(reporter, None)
        yield from play.wait(0.8)


def simulate_gun_threat(play: Play, cast: list[Player], spot: Floats) -> Script:
    """One aims a gun at another one, who puts the hands up and backs off."""
    one, other = cast[:2]
    yield from move_face_to_face(play, one, other, spot, 2.2, 1.8)
    for turn in range(2):
        play.act(one, Pose.AIM, "aiming weapon", "holding weapon")
        play.act(other, Pose.HANDS_UP, "raising hands")
        for _ in play.wait(play.draw(2.2, 3.6)):
            back = play.at(other) + heading_vector(play.bearing(one, other)) * 0.4
            play.go(other, play.ground.clamp(*back.tolist()), 0.25 if turn else 0.0, one)
            play.go(one, play.at(one), 0.0, other)
            play.bond(one, "shouting at", other)
            play.noise("shouting", one)
            yield
    play.act(one, None)
    play.act(other, None)
    for _ in range(round(min(4.0, play.left_s) * play.fps)):
        play.go(other, select_exit(play, other, False), RUN_MPS)
        play.go(one, play.at(one), 0.0, other)
        play.bond(other, "running away from", one)
        yield


def simulate_shooting(play: Play, cast: list[Player], spot: Floats, *, alarm: bool = False) -> Script:
    """Somebody aims a gun down the street, and fires it again and again.

    Args:
        play: the scene.
        cast: who.
        spot: (2,) where.
        alarm: whether everybody else flees.
    """
    who = cast[0]
    yield from move_to(play, who, spot, 1.8)
    side = play.ground.left_m if spot[1] < 0 else play.ground.right_m
    face = np.array([float(spot[0]) + play.draw(-2.0, 3.0), side])
    for burst in range(3):
        play.act(who, Pose.AIM, "aiming weapon", "holding weapon")
        for _ in play.wait(play.draw(1.2, 2.0)):
            play.go(who, play.at(who), 0.0, face)
            yield
        if alarm and burst == 0:
            play.alarm = play.at(who).copy()
        play.act(who, Pose.AIM, "shooting/firing", "holding weapon")
        for step, _ in enumerate(play.wait(play.draw(1.6, 2.6))):
            play.go(who, play.at(who), 0.0, face)
            who.flare = step / play.fps % _SHOT_S < _FLASH_S
            play.noise("gunshot/firing", who)
            yield
        who.flare = False
    play.act(who, None)
    yield from move_out_of_view(play, who, RUN_MPS)


def simulate_window_breaking(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody beats in the windows of a car."""
    who = cast[0]
    car = find_nearest_thing(play, spot, "Car")
    if car is None:
        yield from move_to(play, who, spot, 1.5)
        return
    along = heading_vector(car.heading)
    across = np.array([-along[1], along[0]])
    side = 1.0 if float((play.at(who) - car.xy) @ across) > 0 else -1.0
    stand = car.xy + side * across * (car.size_m[1] / 2 + 0.55) + along * play.draw(-0.6, 0.6)
    yield from move_to(play, who, stand, 2.2, 0.25)
    for _ in range(2):
        play.act(who, Pose.PUNCH, "hitting an object/smashing", "destroying")
        for _ in play.wait(play.draw(1.8, 3.0)):
            play.go(who, stand, 0.5, stand - side * across)
            play.noise("shattering", car)
            yield
        play.act(who, Pose.SHOUT, "shouting")
        for _ in play.wait(1.5):
            play.go(who, stand, 0.5)
            yield


def simulate_vehicle_sound(play: Play, cast: list[Player], spot: Floats, *, kind: str, label: str) -> Script:
    """A vehicle that stands by is heard for a while, and again.

    Args:
        play: the scene.
        cast: nobody.
        spot: (2,) near which.
        kind: of the vehicle.
        label: of its sound.
    """
    del cast
    vehicle = find_nearest_thing(play, spot, kind)
    while vehicle is not None:
        yield from play.wait(play.draw(0.3, 2.0))
        for _ in play.wait(play.draw(2.0, 4.5)):
            play.noise(label, vehicle)
            yield
    yield


def simulate_collision(play: Play, cast: list[Player], spot: Floats) -> Script:
    """A car runs into another one that stands; somebody is hurt, another one runs up and phones for help."""
    del spot
    cars = [thing for thing in play.things if thing.kind == "Car"][-2:]
    if len(cars) < 2:
        return
    standing, moving = cars
    end = standing.xy + heading_vector(standing.heading) * (standing.size_m[0] + moving.size_m[0]) / 2
    away, gone, speed = moving.xy - end, 0.0, 9.0
    length = float(np.hypot(*away))
    start = moving.xy.copy()
    hurt = cast[1] if len(cast) > 1 else None
    helper = cast[0]
    inward = np.array([0.0, -np.sign(standing.xy[1]) * (standing.size_m[1] / 2 + 1.0)])
    while gone < length:
        gone = min(length, gone + speed / play.fps)
        moving.xy = start - away * gone / length
        if hurt is not None:
            play.go(hurt, play.ground.clamp(*(standing.xy + inward).tolist()), 2.0)
        yield
    if hurt is not None and not hurt.away:
        play.act(hurt, Pose.FALL)
    for step, _ in enumerate(play.wait(1.1)):
        play.noise("crashing", moving)
        if hurt is not None and step == round(0.7 * play.fps):
            lie_down(play, hurt)
        yield
    target = hurt or None
    if target is not None:
        for _ in close_in(play, helper, target, 1.1, RUN_MPS):
            play.bond(helper, "running towards", target)
            play.noise("crying", target)
            yield
    play.act(helper, Pose.PHONE, "speaking/talking")
    for _ in play.wait(play.draw(3.0, 5.0)):
        play.go(helper, play.at(helper), 0.0, play.at(target) if target is not None else moving.xy)
        play.noise("speaking", helper)
        if target is not None:
            play.bond(helper, "watching", target)
        yield
    play.act(helper, Pose.WAVE, "waving hands")
    for _ in play.wait(max(1.0, min(4.0, play.left_s))):
        play.go(helper, play.at(helper), 0.0, _CAMERA)
        play.noise("shouting for help", helper)
        yield


def simulate_shelter(play: Play, cast: list[Player], spot: Floats) -> Script:
    """People duck with their arms over their heads, run a little, and duck again."""
    for _ in range(3):
        for who in cast:
            play.act(who, Pose.FLINCH, "retreating")
        for _ in play.wait(play.draw(1.8, 3.0)):
            for who in cast:
                back = play.at(who) + 0.4 * heading_vector(play.bearing(who, spot) + math.pi)
                play.go(who, play.ground.clamp(*back.tolist()), 0.4, spot)
            yield
        spot = play.ground.clamp(float(spot[0]) + play.draw(-2.5, 2.5), play.draw(-3.0, 3.0))
        for who in cast:
            play.act(who, None)
        for _ in play.wait(play.draw(0.9, 1.6)):
            for k, who in enumerate(cast):
                play.go(who, spot + 0.8 * k, 3.2)
            yield
