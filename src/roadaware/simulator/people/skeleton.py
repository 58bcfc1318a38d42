"""The skeleton: lengths of bones, their transforms from what a pose wants, and where limbs are while walking or riding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Actor

Age = Literal["child", "young", "adult", "senior"]
Figure = Literal["broad", "slim"]

BONES = (
    "pelvis", "spine", "chest", "head",
    "left_upper_arm", "left_forearm", "right_upper_arm", "right_forearm",
    "left_thigh", "left_shin", "left_foot", "right_thigh", "right_shin", "right_foot",
    "held", "cloth_near", "cloth_far",
)  # fmt: skip
"""Bones in the order of their transforms; the last three carry what is held and the cloth of a flag."""
PELVIS, SPINE, CHEST, HEAD = 0, 1, 2, 3
UPPER_ARM, FOREARM, THIGH, SHIN, FOOT = (4, 6), (5, 7), (8, 11), (9, 12), (10, 13)
HELD, CLOTH_NEAR, CLOTH_FAR = 14, 15, 16

_HEAD_SHARE = {"child": 0.16, "young": 0.138, "adult": 0.128, "senior": 0.13}
_LEG_SHARE = {"child": 0.575, "young": 0.6, "adult": 0.602, "senior": 0.595}
_STEP_SHARE = {"child": 0.42, "young": 0.43, "adult": 0.425, "senior": 0.35}
RUNNING_STEP = 1.88
"""Length of a step, running, in steps of walking."""
_STOOP = {"child": 0.0, "young": 0.03, "adult": 0.02, "senior": 0.24}


@dataclass(frozen=True)
class PersonModel:
    """One kind of person that may be drawn.

    Args:
        name: as `Actor.model` has it.
        size_m: length of a stride from toe to toe, width, and height, standing.
        weight: how often, relative to the others.
    """

    name: str
    size_m: tuple[float, float, float]
    weight: float


PEOPLE_MODELS = (
    PersonModel("child", (0.74, 0.46, 1.22), 0.10),
    PersonModel("young", (0.98, 0.60, 1.62), 0.18),
    PersonModel("adult_a", (1.08, 0.66, 1.80), 0.20),
    PersonModel("adult_b", (1.02, 0.62, 1.67), 0.18),
    PersonModel("adult_c", (1.04, 0.68, 1.74), 0.12),
    PersonModel("adult_d", (1.04, 0.64, 1.72), 0.12),
    PersonModel("senior", (0.86, 0.60, 1.66), 0.10),
)
_RIDER_HEIGHTS = (1.68, 1.74, 1.80, 1.72)


@dataclass(frozen=True, eq=False)
class Stature:
    """Lengths of a body in metres; see `build_stature`.

    Args:
        age: age group.
        height: standing upright.
        body: from the ground to the chin.
        head: from the chin to the crown.
        hip: height of the hip joints.
        ankle: height of the ankles.
        thigh: hip to knee.
        shin: knee to ankle.
        upper: shoulder to elbow.
        fore: elbow to wrist.
        hand: wrist to finger tips.
        girth: how broad it is, 1 is usual.
        stoop: how far the back is bent, radians.
        step: length of a step, walking.
        rest: (17, 3) where each bone begins, standing upright with the arms down.
        limbs: (2, 4, 1) upper and lower lengths of left arm, right arm, left leg, right leg.
    """

    age: Age
    height: float
    body: float
    head: float
    hip: float
    ankle: float
    thigh: float
    shin: float
    upper: float
    fore: float
    hand: float
    girth: float
    stoop: float
    step: float
    rest: Floats
    limbs: Floats

    @property
    def arm(self) -> float:
        """Shoulder to wrist."""
        return self.upper + self.fore

    @property
    def leg(self) -> float:
        """Hip to ankle."""
        return self.thigh + self.shin


@lru_cache(maxsize=256)
def build_stature(height_m: float, age: Age, girth: float) -> Stature:
    """The lengths of a body.

    Args:
        height_m: from the ground to the crown.
        age: sets the proportions.
        girth: how broad it is, 1 is usual.
    """
    head = _HEAD_SHARE[age] * height_m
    body = height_m - head
    hip = _LEG_SHARE[age] * body
    ankle = 0.088 * hip
    thigh, shin = 0.47 * hip, 0.442 * hip
    upper, fore = 0.192 * body, 0.165 * body
    shoulder, hips = 0.116 * body * girth, 0.06 * body
    rest = np.zeros((len(BONES), 3))
    rest[[PELVIS, SPINE, CHEST, HEAD], 2] = hip, 0.67 * body, 0.79 * body, 0.975 * body
    rest[HEAD, 0] = 0.012 * body
    for place, side in enumerate((1, -1)):
        rest[UPPER_ARM[place]] = 0.0, side * shoulder, 0.925 * body
        rest[FOREARM[place]] = 0.0, side * shoulder, 0.925 * body - upper
        rest[THIGH[place]] = 0.0, side * hips, hip
        rest[SHIN[place]] = 0.0, side * hips, hip - thigh
        rest[FOOT[place]] = 0.0, side * hips, ankle
    return Stature(
        age, height_m, body, head, hip, ankle, thigh, shin, upper, fore, 0.1 * body, girth, _STOOP[age],
        _STEP_SHARE[age] * height_m, rest,
        np.array([upper, upper, thigh, thigh, fore, fore, shin, shin]).reshape(2, 4, 1),
    )  # fmt: skip


def get_age_group(model: str) -> Age:
    """The age group of a model; riders, whose model is that of their machine, are adults."""
    ages: tuple[Age, ...] = ("child", "young", "senior")
    return next((age for age in ages if model.startswith(age)), "adult")


def get_body_type(actor: Actor) -> Figure:
    """Whether somebody is of broad or slim build."""
    if actor.model in ("adult_a", "adult_c"):
        return "broad"
    if actor.model in ("adult_b", "adult_d"):
        return "slim"
    return "broad" if actor.look % 2 else "slim"


def height_m(actor: Actor) -> float:
    """Height of a person or rider standing upright, in metres."""
    if actor.kind == "Ped":
        return float(actor.size_m[2])
    return _RIDER_HEIGHTS[actor.look % len(_RIDER_HEIGHTS)]


def get_stature(actor: Actor) -> Stature:
    """The lengths of somebody's body."""
    girth = 1.12 if actor.model == "adult_c" else {"broad": 1.04, "slim": 0.95}[get_body_type(actor)]
    return build_stature(round(height_m(actor), 3), get_age_group(actor.model), girth)


def compute_stride(model: str, height_m: float, running: bool = False) -> float:
    """Metres that somebody moves in two steps, that is while the gait goes on by 2 pi.

    Args:
        model: one of `PEOPLE_MODELS`.
        height_m: of the person.
        running: rather than walking.
    """
    walking = 2.0 * _STEP_SHARE[get_age_group(model)] * height_m
    return walking * (RUNNING_STEP if running else 1.0)


# Places in a vector of wishes. Turns are yaw, pitch (forward is positive) and roll (to the right is
# positive), in radians. What is linear in them can be blended; lengths of limbs cannot change by it.
BASE, BASE_TURN = slice(0, 3), slice(3, 6)
PELVIS_TURN, BACK_TURN, HEAD_TURN = slice(6, 9), slice(9, 12), slice(12, 15)
FEET = (slice(15, 18), slice(18, 21))
FOOT_TURNS = (slice(21, 24), slice(24, 27))
KNEES = (slice(27, 30), slice(30, 33))
HANDS = (slice(33, 36), slice(36, 39))
GRIPS = (slice(39, 42), slice(42, 45))
GRIPPING = (45, 46)
ELBOWS = (slice(47, 50), slice(50, 53))
HELD_TURN, HELD_LEFT, HELD_SIZE = slice(53, 56), 56, 57
CLOTH = slice(58, 60)
WISHES = 60
"""Places of a vector: base and its turn; turns of pelvis and back, of the head from the base; ankles; turns
of feet; where knees point; wrists from the shoulders along the chest's axes in lengths of the arm; wrists in
the actor's axes, and how much those count; where elbows point; turn, share in the left hand and size of what
is held; turns of a flag's two halves."""

_TURNED = np.array([*range(3, 15), *range(21, 27), *range(53, 56), 58, 58, 58, 59, 59, 59])
_LIMBS_ROOT = np.array([*UPPER_ARM, *THIGH])
_LIMBS_MIDDLE = np.array([*FOREARM, *SHIN])
_BEND = np.array([[-1.0], [-1.0], [1.0], [1.0]])


def compute_rotations(angles: Floats) -> Floats:
    """(n, 3, 3) the axes, in rows, after turns.

    Args:
        angles: (n, 3) yaw, pitch and roll in radians.
    """
    c, s = np.cos(angles), np.sin(angles)
    cy, cp, cr = c.T
    sy, sp, sr = s.T
    axes = np.empty((len(angles), 3, 3))
    axes[:, 0, 0], axes[:, 0, 1], axes[:, 0, 2] = cy * cp, sy * cp, -sp
    axes[:, 1, 0], axes[:, 1, 1], axes[:, 1, 2] = cy * sp * sr - sy * cr, sy * sp * sr + cy * cr, cp * sr
    axes[:, 2, 0], axes[:, 2, 1], axes[:, 2, 2] = cy * sp * cr + sy * sr, sy * sp * cr - cy * sr, cp * cr
    return axes


def compute_bone_transforms(wishes: Floats, bodies: Sequence[Stature]) -> Floats:
    """(n, 17, 4, 3) the transforms of all bones in each actor's axes: `[x, y, z, 1] @ transform`.

    Each body comes out the same, whoever else is asked for.

    Args:
        wishes: (n, 60) what the poses want.
        bodies: lengths of their bones.
    """
    n = len(bodies)
    angles = wishes[:, _TURNED].reshape(n, 9, 3)
    angles[:, 2] *= 0.5
    angles[:, 7:, 1:] = 0.0
    angles[:, 8, 0] += angles[:, 7, 0]
    turns = compute_rotations(angles.reshape(-1, 3)).reshape(n, 9, 3, 3)
    base, half = turns[:, 0], turns[:, 2]
    bones = np.empty((n, len(BONES), 4, 3))
    rest = np.array([body.rest for body in bodies])
    bones[:, PELVIS, :3] = turns[:, 1] @ base
    bones[:, PELVIS, 3] = wishes[:, BASE]
    _hang(bones, SPINE, PELVIS, rest, half)
    _hang(bones, CHEST, SPINE, rest, half)
    bones[:, HEAD, :3] = turns[:, 3] @ base
    bones[:, HEAD, 3] = _transform_bone_origin(bones, CHEST, rest, HEAD)
    _limbs(bones, wishes, rest, bodies)
    bones[:, FOOT, :3] = turns[:, 4:6] @ base[:, None]
    turns[:, 6] = turns[:, 6] @ base
    _attach_held_item(bones, wishes, turns[:, 6:], bodies)
    return bones


def _transform_bone_origin(bones: Floats, parent: int, rest: Floats, bone: int) -> Floats:
    """(n, 3) where a bone begins that is fixed to another one."""
    offset = rest[:, None, bone] - rest[:, None, parent]
    found: Floats = bones[:, parent, 3] + (offset @ bones[:, parent, :3])[:, 0]
    return found


def _hang(bones: Floats, bone: int, parent: int, rest: Floats, turn: Floats) -> None:
    bones[:, bone, :3] = turn @ bones[:, parent, :3]
    bones[:, bone, 3] = _transform_bone_origin(bones, parent, rest, bone)


def _limbs(bones: Floats, wishes: Floats, rest: Floats, bodies: Sequence[Stature]) -> None:
    n, chest, pelvis = len(bodies), bones[:, CHEST, :3], bones[:, PELVIS, :3]
    parents = (CHEST, CHEST, PELVIS, PELVIS)
    root = np.stack(
        [
            _transform_bone_origin(bones, parent, rest, bone)
            for parent, bone in zip(parents, _LIMBS_ROOT, strict=True)
        ],
        axis=1,
    )
    target = wishes[:, 15:39].reshape(n, 8, 3)[:, [6, 7, 0, 1]]
    grip = wishes[:, 45:47, None]
    arms = np.array([body.arm for body in bodies])[:, None, None]
    loose = root[:, :2] + arms * target[:, :2] @ chest
    target[:, :2] = loose + grip * (wishes[:, 39:45].reshape(n, 2, 3) - loose)
    elbows, knees = wishes[:, 47:53].reshape(n, 2, 3), wishes[:, 27:33].reshape(n, 2, 3)
    pole = np.concatenate([elbows @ chest, knees @ pelvis], axis=1)
    upper, lower = np.array([body.limbs for body in bodies]).swapaxes(0, 1)
    way = target - root
    # A target in the joint itself has no direction.
    far = np.sqrt(_square(way)) + 1e-9
    way /= far
    # What two bones can reach: a straight or folded limb has no plane to bend in, and a target out of reach
    # would put the cosine beyond 1.
    far = np.clip(far, 1.05 * np.abs(upper - lower) + 0.03 * upper, 0.9995 * (upper + lower))
    # Only what is square to the limb says where its elbow or knee points.
    pole -= (pole * way).sum(-1, keepdims=True) * way
    pole /= np.sqrt(_square(pole)) + 1e-9
    # The law of cosines in the triangle of two bones and the way to the target.
    cosine = (upper * upper + far * far - lower * lower) / (2.0 * upper * far)
    bent = upper * (cosine * way + np.sqrt(np.maximum(0.0, 1.0 - cosine * cosine)) * pole)
    hinge = _cross(pole, way) * _BEND
    for places, start, along in (
        (_LIMBS_ROOT, root, -bent / upper),
        (_LIMBS_MIDDLE, root + bent, (bent - far * way) / lower),
    ):
        bones[:, places, 0] = _cross(hinge, along)
        bones[:, places, 1] = hinge
        bones[:, places, 2] = along
        bones[:, places, 3] = start
    # From the bounded distance: a foot beyond reach would come off its leg.
    bones[:, FOOT, 3] = root[:, 2:] + far[:, 2:] * way[:, 2:]


def _attach_held_item(bones: Floats, wishes: Floats, turns: Floats, bodies: Sequence[Stature]) -> None:
    reach = np.array([body.fore + 0.55 * body.hand for body in bodies])[:, None, None]
    palms = bones[:, FOREARM, 3] - reach * bones[:, FOREARM, 2]
    held = wishes[:, HELD_SIZE, None, None] * turns[:, 0]
    bones[:, HELD:, :3] = held[:, None]
    bones[:, CLOTH_NEAR, :3] = turns[:, 1] @ held
    bones[:, CLOTH_FAR, :3] = turns[:, 2] @ held
    left = wishes[:, HELD_LEFT, None]
    bones[:, HELD:, 3] = (palms[:, 1] + left * (palms[:, 0] - palms[:, 1]))[:, None]
    bones[:, CLOTH_FAR, 3] -= (CLOTH_M / 2) * bones[:, CLOTH_NEAR, 0]


CLOTH_M = 0.95
"""Length of a flag's cloth, which trails behind the pole."""


def _square(a: Floats) -> Floats:
    found: Floats = (a * a).sum(-1, keepdims=True)
    return found


def _cross(a: Floats, b: Floats) -> Floats:
    # By hand: np.cross turns axes about and checks them, which costs more than such small products.
    found = np.empty_like(a)
    found[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    found[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    found[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return found


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
    wish = np.zeros(WISHES)
    sway = 0.01 * body.height * math.sin(gait)
    wish[BASE] = 0.25 * sway, sway, 0.996 * body.hip
    wish[PELVIS_TURN] = 0.0, 0.0, 0.03 * math.sin(gait)
    wish[BACK_TURN] = 0.0, body.stoop, -0.05 * math.sin(gait)
    for side, foot in enumerate(SIDES):
        wish[FEET[side]] = -0.01 * side, foot * 1.35 * body.rest[THIGH[0], 1], body.ankle
        wish[FOOT_TURNS[side]] = 0.18 * foot, 0.0, 0.0
        wish[KNEES[side]] = 1.0, 0.12 * foot, 0.0
        set_hand(wish, side, 0.06, 0.08, -0.97)
    wish[HELD_SIZE] = 1.0
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
    wish[HANDS[side]] = ahead, SIDES[side] * out, up
    wish[ELBOWS[side]] = elbow[0], SIDES[side] * elbow[1], elbow[2]
    wish[GRIPPING[side]] = 0.0


def set_grip(
    wish: Floats, side: int, point: tuple[float, float, float], elbow: tuple[float, float, float]
) -> None:
    """Put a wrist on a point in the actor's axes, metres."""
    wish[GRIPS[side]] = point
    wish[ELBOWS[side]] = elbow[0], SIDES[side] * elbow[1], elbow[2]
    wish[GRIPPING[side]] = 1.0


def interpolate_legs(wish: Floats, other: Floats, share: float) -> None:
    """Take a share of the hips and legs of another vector of wishes."""
    for part in (BASE, PELVIS_TURN, slice(15, 33)):
        wish[part] += share * (other[part] - wish[part])


def apply_kerb_stance(wish: Floats, body: Stature, share: float) -> None:
    """Let somebody who stands wait to cross: one foot set to the kerb's edge, leaning out over it.

    Args:
        wish: of somebody who stands, changed.
        body: lengths of the bones.
        share: 0 not at all, 1 all of it.
    """
    ready = stand(body, 0.0)
    ready[BASE] = 0.045 * body.height, 0.0, 0.97 * body.hip
    ready[PELVIS_TURN] = -0.1, 0.1, 0.0
    ready[BACK_TURN] = 0.0, body.stoop + 0.16, 0.0
    for side, ahead in ((LEFT, 0.13), (RIGHT, -0.09)):
        ready[FEET[side]] = ahead * body.height, SIDES[side] * body.rest[THIGH[0], 1], body.ankle
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
        wish[BASE][1] += 0.014 * body.height
        wish[PELVIS_TURN][2] += 0.05


def extend_arm(wish: Floats, side: int, share: float) -> None:
    """Let a rider stretch an arm out to a side, straight and a little raised, before they turn.

    Args:
        wish: of a rider, changed.
        side: `LEFT` or `RIGHT`.
        share: 0 the hand is on the handle, 1 the arm is out.
    """
    set_hand(wish, side, 0.1, 0.96, 0.26, (-0.4, 0.2, -1.0))
    wish[GRIPPING[side]] = 1.0 - share


def walk(body: Stature, gait: float) -> Floats:
    """(60,) walking: a left heel strikes where the gait is a multiple of 2 pi."""
    wish = stand(body, 0.0)
    stride = 2.0 * body.step
    wish[BASE] = (
        0.0,
        0.012 * body.height * math.sin(gait),
        (0.968 - 0.014 * math.cos(2 * gait)) * body.hip,
    )
    turn = 0.11 * math.cos(gait)
    wish[PELVIS_TURN] = -turn, 0.03, 0.035 * math.sin(gait)
    wish[BACK_TURN] = 2.2 * turn, body.stoop + 0.03, -0.03 * math.sin(gait)
    wish[HEAD_TURN] = 0.0, 0.02 * math.cos(2 * gait), 0.0
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
    wish[BASE] = 0.0, 0.0, (0.95 - 0.035 * bounce) * body.hip
    turn = 0.2 * math.cos(gait)
    wish[PELVIS_TURN] = -turn, 0.14, 0.0
    wish[BACK_TURN] = 2.2 * turn, 0.16 + 0.5 * body.stoop, 0.0
    wish[HEAD_TURN] = 0.0, 0.05, 0.0
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
    wish[FEET[side]] = x, SIDES[side] * wide, z
    wish[FOOT_TURNS[side]] = 0.1 * SIDES[side], pitch, 0.0


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
    wish[BASE] = seat_x + 0.02 + 0.22 * (lower > 0) * still, 0.03 * still, hip - lower
    wish[PELVIS_TURN] = 0.0, 0.55 * saddle.lean, 0.03 * math.sin(gait) * pedals
    wish[BACK_TURN] = 0.0, 1.0 * saddle.lean - 0.1 * still, 0.0
    wish[HEAD_TURN] = 0.0, 0.12, 0.0
    for side, foot in enumerate(SIDES):
        angle = gait + math.pi * side
        x = saddle.crank[0] + saddle.crank_m * math.sin(angle) - (0.06 if pedals else 0.02) * body.height
        z = saddle.crank[1] + saddle.crank_m * math.cos(angle) + body.ankle + 0.02 * pedals
        down = still if side == 0 or not pedals else 0.0
        ground = (seat_x + (0.25 if pedals else 0.22), foot * (0.26 if pedals else 0.34), body.ankle)
        mixed = [a + down * (b - a) for a, b in zip((x, foot * saddle.pedal_y, z), ground, strict=True)]
        wish[FEET[side]] = mixed
        wish[FOOT_TURNS[side]] = 0.0, 0.2 * pedals * (1.0 - down), 0.0
        wish[KNEES[side]] = 1.0, (0.1 if pedals else 0.35) * foot, 0.2
        grips_x, grips_y, grips_z = saddle.grips
        point = (grips_x - 0.75 * body.hand, foot * grips_y, grips_z + 0.03)
        set_grip(wish, side, point, (-0.5, 0.7, -0.6))
    return wish
