"""Statures: how long the bones of a person are, by height, age and build."""

from __future__ import annotations

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
