"""The skeleton: from what a pose wants of trunk, hands and feet to the transforms of all bones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.people.statures import (
    BONES,
    CHEST,
    CLOTH_FAR,
    CLOTH_NEAR,
    FOOT,
    FOREARM,
    HEAD,
    HELD,
    PELVIS,
    SHIN,
    SPINE,
    THIGH,
    UPPER_ARM,
    Stature,
)

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
