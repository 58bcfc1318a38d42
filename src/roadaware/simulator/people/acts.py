"""Acts: what people do with their arms, trunk and legs in crowds and quarrels, by pose and phase."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Pose
from roadaware.simulator.people import skeleton as place
from roadaware.simulator.people.skeleton import (
    LEFT,
    RIGHT,
    SIDES,
    THIGH,
    Stature,
    interpolate_legs,
    run,
    set_grip,
    set_hand,
    stand,
    walk,
)

Act = Callable[[Stature, float], Floats]


def _stance(wish: Floats, body: Stature, low: float, apart: float, twist: float = 0.0) -> None:
    """A wide stance, left foot first; shares of the height of the hips and of the height."""
    wish[place.BASE] = 0.0, 0.0, (1.0 - low) * body.hip
    wish[place.PELVIS_TURN] = twist, 0.05, 0.0
    for side, foot in enumerate(SIDES):
        wide = 1.5 * body.rest[THIGH[0], 1]
        wish[place.FEET[side]] = foot * apart * body.height, foot * wide, body.ankle


def push_object(body: Stature, gait: float) -> Floats:
    """Walking behind something that is pushed."""
    wish = walk(body, gait)
    wish[place.BACK_TURN] = 0.0, body.stoop + 0.22, 0.0
    wish[place.HEAD_TURN] = 0.0, 0.12, 0.0
    for side, foot in enumerate(SIDES):
        point = (0.27 * body.height, foot * 0.13 * body.height, 0.575 * body.height)
        set_grip(wish, side, point, (-0.8, 0.8, -0.4))
    return wish


def wave(body: Stature, gait: float) -> Floats:
    """One arm up, its forearm to and fro."""
    wish = stand(body, 0.0)
    wish[place.BACK_TURN] = 0.0, body.stoop, -0.06
    set_hand(
        wish, RIGHT, 0.06, 0.42 + 0.3 * math.sin(gait), 0.84 - 0.12 * abs(math.sin(gait)), (0.0, 1.0, -0.6)
    )
    return wish


def punch(body: Stature, gait: float) -> Floats:
    """Fists up, left and right struck out in turn."""
    wish = stand(body, 0.0)
    right, left = max(0.0, math.sin(gait)) ** 1.5, max(0.0, -math.sin(gait)) ** 1.5
    _stance(wish, body, 0.09, 0.15)
    wish[place.BASE.start] = 0.05 * body.height * max(right, left)
    wish[place.PELVIS_TURN] = 0.3 * (right - left) - 0.2, 0.05, 0.0
    wish[place.BACK_TURN] = 0.5 * (right - left) - 0.15, 0.2 + 0.1 * right, 0.0
    wish[place.HEAD_TURN] = 0.0, 0.12, 0.0
    for side, out in ((RIGHT, right), (LEFT, left)):
        set_hand(wish, side, 0.34 + 0.68 * out, 0.02 - 0.3 * out, 0.05 + 0.1 * out, (-0.2, 0.5, -1.0))
    return wish


def shove(body: Stature, gait: float) -> Floats:
    """Both palms thrust forward at once, one leg behind."""
    wish = stand(body, 0.0)
    out = 0.5 - 0.5 * math.cos(gait)
    _stance(wish, body, 0.12, 0.19)
    wish[place.BASE.start] = (-0.04 + 0.11 * out) * body.height
    wish[place.PELVIS_TURN] = 0.0, 0.1 + 0.12 * out, 0.0
    wish[place.BACK_TURN] = 0.0, 0.12 + 0.22 * out, 0.0
    for side in (LEFT, RIGHT):
        set_hand(wish, side, 0.42 + 0.54 * out, -0.04, -0.02 + 0.22 * out, (-0.3, 0.6, -0.9))
    return wish


def lie(body: Stature, gait: float) -> Floats:
    """On the back, arms spread, one knee a little up."""
    wish = stand(body, 0.0)
    flat = 0.062 * body.height
    wish[place.BASE] = 0.0, 0.0, flat
    wish[place.BASE_TURN] = 0.0, -math.pi / 2, 0.0
    wish[place.PELVIS_TURN] = wish[place.BACK_TURN] = 0.0, 0.0, 0.0
    wish[place.HEAD_TURN] = 0.35, 0.1, 0.0
    for side, foot in enumerate(SIDES):
        bent = 0.8 if side == LEFT else 0.99
        wish[place.FEET[side]] = (
            bent * body.leg,
            foot * 0.12 * body.height,
            body.ankle if side == LEFT else flat,
        )
        wish[place.FOOT_TURNS[side]] = 0.0, 1.1 if side == LEFT else 0.25, 0.0
        wish[place.KNEES[side]] = 1.0, 0.3 * foot, 0.0
    set_hand(wish, LEFT, -0.06 + 0.01 * math.sin(gait), 0.62, 0.55, (-0.3, 0.8, -0.8))
    set_hand(wish, RIGHT, -0.08, 0.72, -0.55, (-0.3, 1.0, 0.1))
    return wish


def film(body: Stature, gait: float) -> Floats:
    """A phone held up before the face with both hands."""
    wish = stand(body, 0.3 * gait)
    wish[place.BACK_TURN] = 0.12 * math.sin(0.5 * gait), body.stoop - 0.04, 0.0
    wish[place.HELD_TURN] = 0.12 * math.sin(0.5 * gait), 0.0, 0.0
    wish[place.HELD_LEFT] = 0.5
    bob = 0.02 * math.sin(gait)
    inward = _inward(body, 0.05)
    for side in (LEFT, RIGHT):
        set_hand(wish, side, 0.78, inward, 0.3 + bob, (-0.1, 1.0, -0.8))
    return wish


THROWN = 0.62
"""Share of a throw after which the hand is empty."""
_THROW_PHASE = np.array([0.0, 0.25, 0.45, 0.55, 0.62, 0.72, 0.85, 1.0])
_THROW = np.array(
    [
        # ahead, out, up, twist of the back, lean, base ahead
        [0.25, 0.10, -0.35, 0.0, 0.05, 0.00],
        [-0.45, 0.35, 0.25, -0.5, -0.10, -0.05],
        [-0.62, 0.35, 0.55, -0.7, -0.20, -0.07],
        [-0.30, 0.30, 0.85, -0.2, -0.05, 0.00],
        [0.45, 0.15, 0.82, 0.3, 0.20, 0.05],
        [0.85, -0.15, 0.10, 0.6, 0.35, 0.07],
        [0.55, -0.40, -0.50, 0.5, 0.35, 0.06],
        [0.25, 0.10, -0.35, 0.0, 0.05, 0.00],
    ]
)


def throw(body: Stature, gait: float) -> Floats:
    """An arm drawn back and flung forward once in a cycle; what it holds leaves it on the way."""
    wish = stand(body, 0.0)
    phase = (gait / (2 * math.pi)) % 1.0
    ahead, out, up, twist, lean, base = (float(np.interp(phase, _THROW_PHASE, row)) for row in _THROW.T)
    _stance(wish, body, 0.07, 0.14, 0.5 * twist)
    wish[place.BASE.start] = base * body.height
    wish[place.BACK_TURN] = twist, lean, 0.0
    set_hand(wish, RIGHT, ahead, out, up, (-0.5, 0.9, -0.3))
    set_hand(wish, LEFT, 0.75 - 0.6 * max(0.0, lean), 0.15, 0.15 - 1.2 * max(0.0, lean), (-0.3, 0.8, -0.6))
    wish[place.HELD_SIZE] = 1.0 if phase < THROWN else 0.0
    return wish


def hold_flag(body: Stature, gait: float) -> Floats:
    """A flag on a pole, swung from side to side with both hands."""
    wish = stand(body, gait)
    swing = math.sin(gait)
    wish[place.BACK_TURN] = 0.12 * swing, body.stoop, 0.08 * swing
    set_hand(wish, RIGHT, 0.55, -0.1 - 0.12 * swing, 0.42, (-0.2, 1.0, -0.7))
    set_hand(wish, LEFT, 0.5, _inward(body, 0.02) * 2.0 + 0.2 - 0.1 * swing, -0.12, (-0.4, 0.9, -0.6))
    wish[place.HELD_TURN] = 0.5 * math.cos(gait), 0.18, 0.42 * swing
    wish[place.CLOTH] = 0.3 * math.sin(2 * gait), 0.55 * math.sin(2 * gait - 1.2)
    return wish


def hold_sign(body: Stature, gait: float) -> Floats:
    """A board on a stick, held up high with both hands."""
    wish = stand(body, 0.0)
    bob = 0.06 * math.sin(gait)
    inward = _inward(body, 0.03)
    set_hand(wish, RIGHT, 0.42, inward, 0.52 + bob, (0.1, 1.0, -0.5))
    set_hand(wish, LEFT, 0.44, inward, 0.2 + bob, (-0.1, 1.0, -0.6))
    wish[place.HELD_TURN] = 0.0, 0.05 * math.sin(gait), 0.06 * math.sin(0.5 * gait)
    return wish


def kneel(body: Stature, gait: float) -> Floats:
    """On the right knee, the hands at something on the ground in front."""
    wish = stand(body, 0.0)
    wish[place.BASE] = -0.02 * body.height, 0.0, 0.57 * body.hip
    wish[place.PELVIS_TURN] = 0.0, 0.15, 0.0
    wish[place.BACK_TURN] = 0.0, 0.5 + 0.05 * math.sin(gait), 0.0
    wish[place.HEAD_TURN] = 0.0, 0.5, 0.0
    hips = body.rest[THIGH[0], 1]
    wish[place.FEET[LEFT]] = 0.19 * body.height, 1.2 * hips, body.ankle
    wish[place.FEET[RIGHT]] = -0.26 * body.height, -1.2 * hips, 0.095 * body.height
    wish[place.FOOT_TURNS[RIGHT]] = 0.0, 1.35, 0.0
    wish[place.KNEES[RIGHT]] = 1.0, -0.1, -0.6
    for side, half in ((LEFT, 0.0), (RIGHT, math.pi)):
        set_hand(wish, side, 0.58, -0.05, -0.66 + 0.08 * math.sin(gait + half), (-0.5, 0.8, 0.0))
    return wish


def hug(body: Stature, gait: float) -> Floats:
    """Arms round somebody who stands close in front."""
    wish = stand(body, gait)
    wish[place.BACK_TURN] = 0.0, body.stoop + 0.14, 0.05 * math.sin(gait)
    wish[place.HEAD_TURN] = 0.35, 0.2, -0.2
    inward = _inward(body, 0.02)
    set_hand(wish, LEFT, 0.56, inward - 0.08, 0.1, (0.1, 1.0, -0.15))
    set_hand(wish, RIGHT, 0.56, inward - 0.08, -0.16, (0.1, 1.0, -0.15))
    return wish


def argue(body: Stature, gait: float) -> Floats:
    """Leaning in; one hand stabs at the other person, the other one is flung out."""
    wish = stand(body, 0.0)
    _stance(wish, body, 0.03, 0.07)
    stab = math.sin(2 * gait)
    wish[place.BACK_TURN] = 0.15 * math.sin(gait), body.stoop + 0.2, 0.0
    wish[place.HEAD_TURN] = 0.0, 0.05 + 0.08 * stab, 0.1 * math.sin(gait)
    set_hand(wish, RIGHT, 0.76 + 0.12 * stab, -0.1, 0.02 + 0.16 * stab, (-0.3, 0.8, -1.0))
    set_hand(wish, LEFT, 0.42, 0.55 + 0.15 * math.cos(gait), -0.3 + 0.18 * math.sin(gait), (-0.8, 0.4, -0.8))
    return wish


def shout(body: Stature, gait: float) -> Floats:
    """One hand beside the mouth, the other a fist that is pumped into the air."""
    wish = stand(body, 0.0)
    push = 0.5 + 0.5 * math.sin(2 * gait)
    wish[place.BACK_TURN] = 0.12, body.stoop + 0.16 * push - 0.06, 0.1 * push
    wish[place.HEAD_TURN] = 0.0, -0.25, 0.0
    set_hand(wish, LEFT, 0.3, _inward(body, 0.075), 0.16, (0.1, 1.0, -0.7))
    set_hand(wish, RIGHT, 0.24, 0.16, 0.5 + 0.46 * push, (0.3, 1.0, -0.5))
    return wish


def phone(body: Stature, gait: float) -> Floats:
    """A phone at the right ear."""
    wish = stand(body, gait)
    wish[place.HEAD_TURN] = 0.0, 0.08, 0.12
    set_hand(wish, RIGHT, 0.22, _inward(body, 0.07), 0.17, (0.3, 0.5, -1.0))
    wish[place.HELD_TURN] = 0.0, 0.3, 0.1
    return wish


def clap(body: Stature, gait: float) -> Floats:
    """Hands brought together before the chest, twice in a cycle."""
    wish = stand(body, 0.0)
    apart = 0.5 - 0.5 * math.cos(2 * gait)
    for side in (LEFT, RIGHT):
        set_hand(wish, side, 0.56, _inward(body, 0.035) + 0.42 * apart, -0.1, (-0.3, 0.5, -1.0))
    return wish


def flinch(body: Stature, gait: float) -> Floats:
    """Ducking, arms over the head."""
    wish = stand(body, 0.0)
    shiver = 0.03 * math.sin(3 * gait)
    _stance(wish, body, 0.2, 0.07)
    wish[place.BASE.start] = -0.06 * body.height
    wish[place.PELVIS_TURN] = 0.0, 0.3, 0.0
    wish[place.BACK_TURN] = 0.15, 0.55 + shiver, 0.0
    wish[place.HEAD_TURN] = 0.25, 0.7, 0.0
    for side in (LEFT, RIGHT):
        set_hand(wish, side, 0.3, _inward(body, 0.07), 0.5 + shiver, (0.6, 0.9, -0.1))
    return wish


def kick(body: Stature, gait: float) -> Floats:
    """The right leg swung up in front once in a cycle, arms out for balance."""
    wish = stand(body, 0.0)
    swing = math.sin(gait)
    out, back = max(0.0, swing) ** 1.3, max(0.0, -swing)
    _stance(wish, body, 0.05, 0.1, 0.25 * swing)
    wish[place.BASE.start] = 0.05 * body.height * out
    wish[place.PELVIS_TURN] = 0.3 * out, -0.12 * out, 0.0
    wish[place.BACK_TURN] = -0.2 * out, 0.12 - 0.34 * out + 0.1 * back, 0.0
    hips = body.rest[THIGH[0], 1]
    ahead, up = -0.12 - 0.1 * back + 0.58 * out, 0.06 * back + 0.42 * out
    wish[place.FEET[RIGHT]] = ahead * body.height, -hips, body.ankle + up * body.height
    wish[place.FOOT_TURNS[RIGHT]] = 0.0, 0.5 * back - 0.7 * out, 0.0
    set_hand(wish, RIGHT, 0.1 - 0.35 * out, 0.55 + 0.2 * out, -0.2, (-0.6, 0.7, -0.3))
    set_hand(wish, LEFT, 0.45, 0.35 + 0.2 * out, 0.0, (-0.2, 0.8, -0.6))
    return wish


def threaten(body: Stature, gait: float) -> Floats:
    """A club raised over the shoulder and brought down a little, the other hand out at somebody."""
    wish = stand(body, 0.0)
    down = 0.5 - 0.5 * math.cos(gait)
    _stance(wish, body, 0.07, 0.16)
    wish[place.PELVIS_TURN] = -0.15, 0.06, 0.0
    wish[place.BACK_TURN] = -0.25 + 0.2 * down, 0.06 + 0.16 * down, 0.0
    wish[place.HEAD_TURN] = 0.25, 0.05, 0.0
    set_hand(wish, RIGHT, -0.05 + 0.4 * down, 0.34, 0.72 - 0.12 * down, (-0.4, 1.0, -0.1))
    set_hand(wish, LEFT, 0.7, 0.12, 0.05, (-0.2, 0.8, -0.7))
    wish[place.HELD_TURN] = 0.0, -0.75 + 1.1 * down, 0.15
    return wish


def dance(body: Stature, gait: float) -> Floats:
    """Both arms up and swaying, hips from side to side, knees lifted in turn."""
    wish = stand(body, 0.0)
    sway, beat = math.sin(gait), abs(math.sin(gait))
    wish[place.BASE] = 0.0, 0.045 * sway * body.height, (0.95 + 0.03 * beat) * body.hip
    wish[place.PELVIS_TURN] = 0.3 * sway, 0.04, 0.12 * sway
    wish[place.BACK_TURN] = -0.4 * sway, body.stoop - 0.02, -0.2 * sway
    wish[place.HEAD_TURN] = 0.2 * sway, 0.0, -0.1 * sway
    hips = 1.3 * body.rest[THIGH[0], 1]
    for side, foot in enumerate(SIDES):
        lift = max(0.0, -foot * sway)
        wish[place.FEET[side]] = (
            0.07 * lift * body.height,
            foot * hips,
            body.ankle + 0.13 * lift * body.height,
        )
        wish[place.FOOT_TURNS[side]] = 0.0, 0.5 * lift, 0.0
        set_hand(wish, side, 0.25, 0.45 + 0.25 * foot * sway, 0.68 + 0.16 * foot * sway, (-0.1, 1.0, -0.4))
    return wish


def fall(body: Stature, gait: float) -> Floats:
    """Tumbling on the back in half a cycle, arms flung out."""
    share = min(1.0, (gait % (2 * math.pi)) / math.pi)
    share *= share * (3.0 - 2.0 * share)
    start, end = stand(body, 0.0), lie(body, 0.0)
    wish = start + share * (end - start)
    arms = math.sin(math.pi * share)
    wish[place.BACK_TURN] = 0.0, 0.5 * arms, 0.0
    wish[place.HEAD_TURN] = 0.35 * share, 0.1 + 0.4 * arms, 0.0
    if share < 0.98:
        for side in (LEFT, RIGHT):
            set_hand(wish, side, 0.5 - 0.6 * share, 0.62, 0.45 * arms, (-0.3, 0.8, -0.5))
    return wish


def hands_up(body: Stature, gait: float) -> Floats:
    """Both hands up beside the head, palms forward."""
    wish = stand(body, 0.3 * gait)
    tremble = 0.02 * math.sin(3 * gait)
    for side in (LEFT, RIGHT):
        set_hand(wish, side, 0.16, 0.34, 0.74 + tremble, (-0.2, 1.0, -0.8))
    return wish


def aim(body: Stature, gait: float) -> Floats:
    """A long gun held level before the shoulder, one foot behind."""
    wish = stand(body, 0.0)
    breath = 0.015 * math.sin(gait)
    _stance(wish, body, 0.05, 0.13, -0.35)
    wish[place.BACK_TURN] = -0.2, body.stoop + 0.06, 0.0
    wish[place.HEAD_TURN] = 0.1, 0.08, -0.12
    set_hand(wish, RIGHT, 0.34, _inward(body, 0.05), 0.08 + breath, (-0.4, 0.9, -0.6))
    set_hand(wish, LEFT, 0.86, _inward(body, 0.0), 0.1 + breath, (-0.1, 0.6, -1.0))
    return wish


def spray(body: Stature, gait: float) -> Floats:
    """A can held out at arm's length, moved in small rounds."""
    wish = stand(body, 0.3 * gait)
    wish[place.BACK_TURN] = -0.15, body.stoop + 0.08, 0.0
    set_hand(wish, RIGHT, 0.88, 0.16 * math.sin(gait), 0.12 + 0.12 * math.cos(gait), (-0.3, 0.8, -0.6))
    return wish


def paint(body: Stature, gait: float) -> Floats:
    """A brush drawn up and down before the body."""
    wish = stand(body, 0.0)
    stroke = math.sin(gait)
    wish[place.BACK_TURN] = -0.1, body.stoop + 0.06 - 0.05 * stroke, 0.0
    wish[place.HEAD_TURN] = 0.0, -0.05 - 0.15 * stroke, 0.0
    set_hand(wish, RIGHT, 0.72, -0.05, 0.15 + 0.45 * stroke, (-0.3, 0.8, -0.6))
    return wish


def pray(body: Stature, gait: float) -> Floats:
    """Palms together before the chest, the head bowed."""
    wish = stand(body, 0.2 * gait)
    bow = 0.08 * math.sin(gait)
    wish[place.BACK_TURN] = 0.0, body.stoop + 0.14 + bow, 0.0
    wish[place.HEAD_TURN] = 0.0, 0.5 + bow, 0.0
    for side in (LEFT, RIGHT):
        set_hand(wish, side, 0.46, _inward(body, 0.02), 0.04, (-0.2, 0.9, -0.8))
    return wish


def drum(body: Stature, gait: float) -> Floats:
    """Hands that beat by turns on a drum at the waist."""
    wish = stand(body, 0.0)
    wish[place.BACK_TURN] = 0.06 * math.sin(gait), body.stoop + 0.04, 0.0
    wish[place.HEAD_TURN] = 0.0, 0.15 + 0.06 * math.sin(2 * gait), 0.0
    for side, beat in ((LEFT, math.sin(gait)), (RIGHT, -math.sin(gait))):
        set_hand(wish, side, 0.56, 0.0, -0.34 + 0.2 * max(0.0, beat), (-0.6, 0.8, -0.4))
    return wish


def trumpet(body: Stature, gait: float) -> Floats:
    """An instrument at the mouth, held with both hands."""
    wish = stand(body, 0.3 * gait)
    sway = 0.05 * math.sin(gait)
    wish[place.BACK_TURN] = 2 * sway, body.stoop - 0.08, 0.0
    wish[place.HEAD_TURN] = 0.0, -0.1, 0.0
    set_hand(wish, LEFT, 0.5, _inward(body, 0.03), 0.26 + sway, (-0.1, 1.0, -0.5))
    set_hand(wish, RIGHT, 0.62, _inward(body, 0.02), 0.28 + sway, (-0.1, 1.0, -0.5))
    return wish


def strum(body: Stature, gait: float) -> Floats:
    """A guitar across the body: one hand at its neck, the other over the strings."""
    wish = stand(body, gait)
    wish[place.BACK_TURN] = 0.06 * math.sin(gait), body.stoop + 0.05, 0.0
    wish[place.HEAD_TURN] = 0.3, 0.2 + 0.06 * math.sin(2 * gait), 0.0
    set_hand(wish, LEFT, 0.5, 0.55, -0.16, (-0.5, 0.6, -0.8))
    set_hand(wish, RIGHT, 0.42, _inward(body, 0.06), -0.42 + 0.1 * math.sin(4 * gait), (-0.7, 0.9, -0.3))
    return wish


def microphone(body: Stature, gait: float) -> Floats:
    """A microphone before the mouth, the other hand moving with the words."""
    wish = stand(body, 0.3 * gait)
    wish[place.BACK_TURN] = 0.08 * math.sin(gait), body.stoop, 0.0
    wish[place.HEAD_TURN] = 0.0, -0.06 + 0.04 * math.sin(2 * gait), 0.0
    set_hand(wish, RIGHT, 0.34, _inward(body, 0.02), 0.16, (-0.1, 0.7, -1.0))
    set_hand(wish, LEFT, 0.5, 0.3 + 0.2 * math.sin(gait), -0.3 + 0.2 * math.cos(gait), (-0.7, 0.5, -0.7))
    wish[place.HELD_TURN] = 0.0, -0.35, 0.0
    return wish


def hold_hands(body: Stature, gait: float) -> Floats:
    """Both hands held out to the sides and down, where those beside have theirs."""
    wish = stand(body, 0.3 * gait)
    swing = 0.1 * math.sin(gait)
    for side in (LEFT, RIGHT):
        set_hand(wish, side, 0.1 + swing, 0.5, -0.8, (-0.6, 0.5, -0.2))
    return wish


def raise_can(body: Stature, gait: float) -> Floats:
    """A small can held up above the head, as one sounds an air horn."""
    wish = stand(body, 0.3 * gait)
    wish[place.BACK_TURN] = 0.0, body.stoop - 0.06, -0.05
    wish[place.HEAD_TURN] = 0.2, -0.1, 0.0
    set_hand(wish, RIGHT, 0.16, 0.1, 0.92 + 0.03 * math.sin(gait), (-0.1, 0.9, -0.4))
    set_hand(wish, LEFT, 0.3, _inward(body, 0.08), 0.3, (0.1, 1.0, -0.5))
    return wish


def _inward(body: Stature, apart: float) -> float:
    """How far out, in lengths of the arm, a wrist must be to lie beside the middle.

    Args:
        body: lengths of the bones.
        apart: distance from the middle as a share of the height.
    """
    return (apart * body.height - float(body.rest[4, 1])) / body.arm


ACTS: Mapping[Pose, Act] = {
    Pose.STAND: stand,
    Pose.WALK: walk,
    Pose.RUN: run,
    Pose.PUSH_OBJECT: push_object,
    Pose.WAVE: wave,
    Pose.PUNCH: punch,
    Pose.SHOVE: shove,
    Pose.LIE: lie,
    Pose.FILM: film,
    Pose.THROW: throw,
    Pose.HOLD_FLAG: hold_flag,
    Pose.HOLD_SIGN: hold_sign,
    Pose.KNEEL: kneel,
    Pose.HUG: hug,
    Pose.ARGUE: argue,
    Pose.SHOUT: shout,
    Pose.PHONE: phone,
    Pose.CLAP: clap,
    Pose.FLINCH: flinch,
    Pose.KICK: kick,
    Pose.THREATEN: threaten,
    Pose.DANCE: dance,
    Pose.FALL: fall,
    Pose.HANDS_UP: hands_up,
    Pose.AIM: aim,
    Pose.SPRAY: spray,
    Pose.PAINT: paint,
    Pose.PRAY: pray,
    Pose.DRUM: drum,
    Pose.TRUMPET: trumpet,
    Pose.STRUM: strum,
    Pose.MICROPHONE: microphone,
    Pose.HOLD_HANDS: hold_hands,
    Pose.RAISE_CAN: raise_can,
}
"""All poses but riding, which hangs on the machine."""
_ON_FOOT = (
    Pose.STAND, Pose.WAVE, Pose.FILM, Pose.HOLD_FLAG, Pose.HOLD_SIGN, Pose.ARGUE, Pose.SHOUT,
    Pose.PHONE, Pose.CLAP, Pose.THREATEN, Pose.HANDS_UP, Pose.DRUM, Pose.TRUMPET, Pose.STRUM, Pose.MICROPHONE,
    Pose.HOLD_HANDS, Pose.RAISE_CAN,
)  # fmt: skip


def compute_pose(pose: Pose, body: Stature, gait: float, speed: float) -> Floats:
    """(60,) what a pose wants; whoever moves while they wave, film, shout, ... walks or runs meanwhile.

    Args:
        pose: any but `RIDE`.
        body: lengths of the bones.
        gait: phase in radians.
        speed: m/s.
    """
    wish = ACTS[pose](body, gait)
    if pose in _ON_FOOT and abs(speed) > 0.15:
        legs = run(body, gait) if abs(speed) > 2.4 else walk(body, gait)
        interpolate_legs(wish, legs, min(1.0, (abs(speed) - 0.15) / 0.25))
    return wish
