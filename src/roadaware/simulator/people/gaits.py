"""How long bones are, where hips, feet and arms are while somebody walks or rides, and where a rider
touches the machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Actor
from roadaware.simulator.people import skeleton as place
from roadaware.simulator.people.skeleton import RUNNING_STEP, THIGH, UPPER_ARM, Stature

# Where a rider touches a bicycle or motorbike; machines are built around these points.


@dataclass(frozen=True)
class Saddle:
    """Points of contact in the machine's axes: x forward from its middle, y left, z up; metres.

    The left pedal lies at `crank + crank_m * (sin gait, cos gait)` in x and z, the right one opposite.

    Args:
        seat: x and z of the top of the saddle.
        grips: x, distance from the middle and z of the handles.
        crank: x and z of the axle of the pedals; of a motorbike, of the foot rests.
        crank_m: length of a crank, 0 for foot rests.
        pedal_y: distance of a pedal from the middle.
        lean: how far its rider bends forward, in radians.
    """

    seat: tuple[float, float]
    grips: tuple[float, float, float]
    crank: tuple[float, float]
    crank_m: float
    pedal_y: float
    lean: float


MACHINE_SHARE = {
    "bicycle": 1.08 / 1.83,
    "cargo_bike": 1.12 / 1.92,
    "motorbike": 1.2 / 1.76,
    "scooter": 1.15 / 1.76,
}
"""Share of the height of machine and rider that the machine has."""
_SADDLES: dict[str, tuple[tuple[float, float, float], Saddle]] = {
    "bicycle": (
        (1.75, 0.6, 1.08),
        Saddle((-0.26, 0.93), (0.34, 0.26, 1.04), (-0.06, 0.29), 0.165, 0.12, 0.5),
    ),
    "cargo_bike": (
        (2.45, 0.72, 1.12),
        Saddle((-0.66, 0.93), (-0.10, 0.28, 1.08), (-0.46, 0.29), 0.165, 0.12, 0.22),
    ),
    "motorbike": (
        (2.1, 0.78, 1.2),
        Saddle((-0.28, 0.80), (0.36, 0.36, 1.02), (-0.14, 0.34), 0.0, 0.22, 0.35),
    ),
    "scooter": (
        (1.85, 0.7, 1.15),
        Saddle((-0.34, 0.76), (0.34, 0.31, 1.0), (0.12, 0.24), 0.0, 0.15, 0.12),
    ),
}


def get_saddle(actor: Actor) -> Saddle:
    """The points of contact of a `Cyc` or `Mobike`, by its model and size."""
    usual = "motorbike" if actor.kind == "Mobike" else "bicycle"
    model = actor.model if actor.model in _SADDLES else usual
    return scale_saddle(model, machine_size(model, actor.size_m))


def machine_size(model: str, size_m: tuple[float, float, float]) -> tuple[float, float, float]:
    """Length, width and height in metres of what is ridden, without who rides it.

    Args:
        model: name of a machine, or of anything without a rider, whose size stays.
        size_m: length, width and height, with the rider where it has one.
    """
    long, wide, high = size_m
    return long, wide, high * MACHINE_SHARE.get(model, 1.0)


@lru_cache(maxsize=256)
def scale_saddle(model: str, size_m: tuple[float, float, float]) -> Saddle:
    """The points of contact of a machine.

    Args:
        model: bicycle, cargo_bike, motorbike or scooter.
        size_m: its length, width and height without a rider; the points stretch with it.
    """
    usual, found = _SADDLES[model]
    along, wide, high = (real / plain for real, plain in zip(size_m, usual, strict=True))
    seat, grips, crank = found.seat, found.grips, found.crank
    return Saddle(
        (seat[0] * along, seat[1] * high),
        (grips[0] * along, grips[1] * wide, grips[2] * high),
        (crank[0] * along, crank[1] * high),
        found.crank_m * high,
        found.pedal_y * wide,
        found.lean,
    )


SIDES = (1, -1)
LEFT, RIGHT = 0, 1


def stand(body: Stature, gait: float) -> Floats:
    """(60,) what somebody who stands and sways a little wants; the start of all other poses."""
    wish = np.zeros(place.WISHES)
    sway = 0.01 * body.height * math.sin(gait)
    wish[place.BASE] = 0.25 * sway, sway, 0.996 * body.hip
    wish[place.PELVIS_TURN] = 0.0, 0.0, 0.03 * math.sin(gait)
    wish[place.BACK_TURN] = 0.0, body.stoop, -0.05 * math.sin(gait)
    for side, foot in enumerate(SIDES):
        wish[place.FEET[side]] = -0.01 * side, foot * 1.35 * body.rest[THIGH[0], 1], body.ankle
        wish[place.FOOT_TURNS[side]] = 0.18 * foot, 0.0, 0.0
        wish[place.KNEES[side]] = 1.0, 0.12 * foot, 0.0
        set_hand(wish, side, 0.06, 0.08, -0.97)
    wish[place.HELD_SIZE] = 1.0
    return wish


def set_hand(
    wish: Floats,
    side: int,
    ahead: float,
    out: float,
    up: float,
    elbow: tuple[float, float, float] = (-1.0, 0.25, -0.1),
) -> None:
    """Put a wrist, in lengths of the arm from its shoulder; `elbow` is where it points, outwards positive."""
    wish[place.HANDS[side]] = ahead, SIDES[side] * out, up
    wish[place.ELBOWS[side]] = elbow[0], SIDES[side] * elbow[1], elbow[2]
    wish[place.GRIPPING[side]] = 0.0


def set_grip(
    wish: Floats, side: int, point: tuple[float, float, float], elbow: tuple[float, float, float]
) -> None:
    """Put a wrist on a point in the actor's axes, metres."""
    wish[place.GRIPS[side]] = point
    wish[place.ELBOWS[side]] = elbow[0], SIDES[side] * elbow[1], elbow[2]
    wish[place.GRIPPING[side]] = 1.0


def interpolate_legs(wish: Floats, other: Floats, share: float) -> None:
    """Take a share of the hips and legs of another vector of wishes."""
    for part in (place.BASE, place.PELVIS_TURN, slice(15, 33)):
        wish[part] += share * (other[part] - wish[part])


def apply_kerb_stance(wish: Floats, body: Stature, share: float) -> None:
    """Let somebody who stands wait to cross: one foot set to the kerb's edge, leaning out over it.

    Args:
        wish: of somebody who stands, changed.
        body: lengths of the bones.
        share: 0 not at all, 1 all of it.
    """
    ready = stand(body, 0.0)
    ready[place.BASE] = 0.045 * body.height, 0.0, 0.97 * body.hip
    ready[place.PELVIS_TURN] = -0.1, 0.1, 0.0
    ready[place.BACK_TURN] = 0.0, body.stoop + 0.16, 0.0
    for side, ahead in ((LEFT, 0.13), (RIGHT, -0.09)):
        ready[place.FEET[side]] = ahead * body.height, SIDES[side] * body.rest[THIGH[0], 1], body.ankle
    set_hand(ready, LEFT, 0.36, 0.06, -0.82, (-1.0, 0.3, -0.1))
    set_hand(ready, RIGHT, -0.1, 0.14, -0.92, (-1.0, 0.4, 0.0))
    wish += share * (ready - wish)


def apply_idle_habit(wish: Floats, body: Stature, habit: int) -> None:
    """Give somebody who only stands a habit: arms folded, hands on the hips, or hands joined before them.

    Args:
        wish: of somebody who stands, changed.
        body: lengths of the bones.
        habit: 0 to 2 in this order; others for none.
    """
    shoulder = float(body.rest[UPPER_ARM[0], 1]) / body.arm
    if habit == 0:
        set_hand(wish, LEFT, 0.34, -1.5 * shoulder, -0.4, (-0.1, 1.0, -0.6))
        set_hand(wish, RIGHT, 0.4, -1.5 * shoulder, -0.44, (-0.1, 1.0, -0.6))
    elif habit == 1:
        for side in (LEFT, RIGHT):
            set_hand(wish, side, 0.02, 0.0, -0.76, (-1.0, 0.6, 0.0))
    elif habit == 2:
        for side in (LEFT, RIGHT):
            set_hand(wish, side, 0.26, -0.92 * shoulder, -0.78, (-0.5, 0.8, 0.0))
    if habit in (0, 1, 2):
        wish[place.BASE][1] += 0.014 * body.height
        wish[place.PELVIS_TURN][2] += 0.05


def extend_arm(wish: Floats, side: int, share: float) -> None:
    """Let a rider stretch an arm out to a side, straight and a little raised, before they turn.

    Args:
        wish: of a rider, changed.
        side: `LEFT` or `RIGHT`.
        share: 0 the hand is on the handle, 1 the arm is out.
    """
    set_hand(wish, side, 0.1, 0.96, 0.26, (-0.4, 0.2, -1.0))
    wish[place.GRIPPING[side]] = 1.0 - share


def walk(body: Stature, gait: float) -> Floats:
    """(60,) walking: a left heel strikes where the gait is a multiple of 2 pi."""
    wish = stand(body, 0.0)
    stride = 2.0 * body.step
    wish[place.BASE] = (
        0.0,
        0.012 * body.height * math.sin(gait),
        (0.968 - 0.014 * math.cos(2 * gait)) * body.hip,
    )
    turn = 0.11 * math.cos(gait)
    wish[place.PELVIS_TURN] = -turn, 0.03, 0.035 * math.sin(gait)
    wish[place.BACK_TURN] = 2.2 * turn, body.stoop + 0.03, -0.03 * math.sin(gait)
    wish[place.HEAD_TURN] = 0.0, 0.02 * math.cos(2 * gait), 0.0
    for side, half in enumerate((0.0, math.pi)):
        phase = ((gait + half) / (2 * math.pi)) % 1.0
        _step(wish, side, body, phase, stride, duty=0.6, lead=0.235, lift=0.035, roll=0.85)
        swing = -0.12 - 0.42 * math.cos(gait + half)
        _swing(wish, side, body, swing + 0.16, 0.22 + 0.32 * max(0.0, swing + 0.3))
    return wish


def run(body: Stature, gait: float) -> Floats:
    """(60,) running, with both feet in the air between steps."""
    wish = stand(body, 0.0)
    bounce = math.cos(2 * gait - 1.1)
    wish[place.BASE] = 0.0, 0.0, (0.95 - 0.035 * bounce) * body.hip
    turn = 0.2 * math.cos(gait)
    wish[place.PELVIS_TURN] = -turn, 0.14, 0.0
    wish[place.BACK_TURN] = 2.2 * turn, 0.16 + 0.5 * body.stoop, 0.0
    wish[place.HEAD_TURN] = 0.0, 0.05, 0.0
    for side, half in enumerate((0.0, math.pi)):
        phase = ((gait + half) / (2 * math.pi)) % 1.0
        _step(wish, side, body, phase, 2.0 * RUNNING_STEP * body.step, duty=0.3, lead=0.1, lift=0.3, roll=1.1)
        _swing(wish, side, body, -0.2 - 0.85 * math.cos(gait + half), 1.55)
    return wish


def _step(
    wish: Floats,
    side: int,
    body: Stature,
    phase: float,
    stride: float,
    *,
    duty: float,
    lead: float,
    lift: float,
    roll: float,
) -> None:
    """One foot: on the ground for a share `duty` of the cycle, moving back as the body moves forward."""
    heel, ball, high = 0.035 * body.height, 0.086 * body.height, body.ankle
    if phase < duty:
        x, z, pitch = _compute_planted_ankle(phase, duty, stride, lead, roll, heel, ball, high)
    else:
        u = (phase - duty) / (1.0 - duty)
        x0, z0, p0 = _compute_planted_ankle(duty, duty, stride, lead, roll, heel, ball, high)
        x1, z1, p1 = _compute_planted_ankle(0.0, duty, stride, lead, roll, heel, ball, high)
        ease = u * u * (3.0 - 2.0 * u)
        over = math.sin(math.pi * min(1.0, u * 1.15)) if lift > 0.1 else math.sin(math.pi * u)
        x, pitch = x0 + (x1 - x0) * ease, p0 + (p1 - p0) * min(1.0, 1.25 * ease)
        z = z0 + (z1 - z0) * ease + lift * body.hip * over**1.3 * (1.0 - 0.55 * u)
        pitch += 0.5 * over * (1.0 - u) if lift > 0.1 else 0.0
    wide = 0.75 * body.rest[THIGH[0], 1]
    wish[place.FEET[side]] = x, SIDES[side] * wide, z
    wish[place.FOOT_TURNS[side]] = 0.1 * SIDES[side], pitch, 0.0


def _compute_planted_ankle(
    phase: float,
    duty: float,
    stride: float,
    lead: float,
    roll: float,
    heel: float,
    ball: float,
    high: float,
) -> tuple[float, float, float]:
    """x, z and pitch of an ankle whose heel or ball stays on one spot of the ground."""
    flat = stride * (lead - phase)
    landing, rise = 0.14 * duty, 0.55 * duty
    if phase < landing:
        pitch = -0.3 * (1.0 - phase / landing)
        at, arm = flat - heel, heel
    elif phase > rise:
        pitch = roll * ((phase - rise) / (duty - rise)) ** 1.6
        at, arm = flat + ball, -ball
    else:
        return flat, high, 0.0
    c, s = math.cos(pitch), math.sin(pitch)
    return at + arm * c + high * s, -arm * s + high * c, pitch


def _swing(wish: Floats, side: int, body: Stature, shoulder: float, elbow: float) -> None:
    """An arm that swings forward by the angle of its shoulder, bent at the elbow; radians."""
    upper, fore = body.upper / body.arm, body.fore / body.arm
    lower = shoulder + elbow
    ahead = upper * math.sin(shoulder) + fore * math.sin(lower)
    up = -upper * math.cos(shoulder) - fore * math.cos(lower)
    set_hand(wish, side, ahead, 0.1 if elbow < 1.0 else 0.02, up, (-1.0, 0.3, -0.4))


def ride(body: Stature, saddle: Saddle, gait: float, still: float) -> Floats:
    """(60,) on a bicycle or motorbike; where it stands still, feet reach for the ground.

    Args:
        body: lengths of the bones.
        saddle: the points of contact of the machine.
        gait: angle of the cranks.
        still: 1 where it stands, 0 where it rolls.
    """
    wish = stand(body, 0.0)
    pedals = saddle.crank_m > 0
    seat_x, seat_z = saddle.seat
    hip = seat_z + 0.05 * body.height
    lower = still * max(0.0, hip - 0.52 * body.height) if pedals else 0.0
    wish[place.BASE] = seat_x + 0.02 + 0.22 * (lower > 0) * still, 0.03 * still, hip - lower
    wish[place.PELVIS_TURN] = 0.0, 0.55 * saddle.lean, 0.03 * math.sin(gait) * pedals
    wish[place.BACK_TURN] = 0.0, 1.0 * saddle.lean - 0.1 * still, 0.0
    wish[place.HEAD_TURN] = 0.0, 0.12, 0.0
    for side, foot in enumerate(SIDES):
        angle = gait + math.pi * side
        x = saddle.crank[0] + saddle.crank_m * math.sin(angle) - (0.06 if pedals else 0.02) * body.height
        z = saddle.crank[1] + saddle.crank_m * math.cos(angle) + body.ankle + 0.02 * pedals
        down = still if side == 0 or not pedals else 0.0
        ground = (seat_x + (0.25 if pedals else 0.22), foot * (0.26 if pedals else 0.34), body.ankle)
        mixed = [a + down * (b - a) for a, b in zip((x, foot * saddle.pedal_y, z), ground, strict=True)]
        wish[place.FEET[side]] = mixed
        wish[place.FOOT_TURNS[side]] = 0.0, 0.2 * pedals * (1.0 - down), 0.0
        wish[place.KNEES[side]] = 1.0, (0.1 if pedals else 0.35) * foot, 0.2
        grips_x, grips_y, grips_z = saddle.grips
        point = (grips_x - 0.75 * body.hand, foot * grips_y, grips_z + 0.03)
        set_grip(wish, side, point, (-0.5, 0.7, -0.6))
    return wish
