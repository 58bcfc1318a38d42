"""Rigs: everything of a person that does not change from frame to frame, ready for the bones' transforms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from roadaware.arrays import Bytes, Floats, Floats32, Ints32
from roadaware.scenes.simulator.mesh import Semantic
from roadaware.scenes.simulator.people.carried import Item, carried
from roadaware.scenes.simulator.people.clothes import dressed
from roadaware.scenes.simulator.people.outfits import Outfit
from roadaware.scenes.simulator.people.skeleton import CLOTH_M
from roadaware.scenes.simulator.people.statures import (
    BONES,
    CLOTH_FAR,
    CLOTH_NEAR,
    FOOT,
    FOREARM,
    HEAD,
    HELD,
    SHIN,
    THIGH,
    UPPER_ARM,
    Stature,
)


@dataclass(frozen=True, eq=False)
class Rig:
    """A body at rest.

    Args:
        weights: (v, 68) times the stacked transforms of the bones gives the vertices.
        triangles: (t, 3).
        colour: (t, 3).
        material: (t,).
        semantic: (t,).
        glow: (t,).
        uv: (t, 3, 2).
    """

    weights: Floats32
    triangles: Ints32
    colour: Floats32
    material: Bytes
    semantic: Bytes
    glow: Floats32
    uv: Floats32


@lru_cache(maxsize=256)
def rig(body: Stature, outfit: Outfit, item: Item, rides: bool, coarse: bool) -> Rig:
    """The rig of a person.

    Args:
        body: lengths of its bones.
        outfit: what is worn.
        item: what is held.
        rides: whether it counts as a rider.
        coarse: whether a few triangles are enough.
    """
    pieces = dressed(body, outfit, coarse)
    starts = _joints_at_rest(body)
    things = carried(item, body, outfit, coarse)
    weights = [_stacked(piece.points, piece.weights, starts) for piece in (*pieces, *things)]
    pieces += things
    heads = np.cumsum([0, *(len(piece.points) for piece in pieces[:-1])])
    triangles = np.concatenate([piece.triangles + head for piece, head in zip(pieces, heads, strict=True)])
    count = len(triangles)
    return Rig(
        np.concatenate(weights).astype(np.float32),
        triangles.astype(np.int32),
        np.concatenate([piece.colour for piece in pieces]).astype(np.float32).clip(0.0, 1.0),
        np.concatenate([piece.material for piece in pieces]).astype(np.uint8),
        np.full(count, int(Semantic.RIDER if rides else Semantic.PERSON), dtype=np.uint8),
        np.concatenate([piece.glow for piece in pieces]).astype(np.float32),
        np.concatenate([piece.uv for piece in pieces]).astype(np.float32),
    )


@lru_cache(maxsize=256)
def landmarks(body: Stature) -> Floats:
    """(17, 68) times the stacked transforms of the bones gives the joints in COCO order."""
    rest, head, chin = body.rest, body.head, body.body
    x = float(rest[HEAD, 0]) + 0.1 * head
    points = np.zeros((17, 3))
    bones = [HEAD] * 5
    points[0] = x + 0.5 * head, 0.0, chin + 0.4 * head
    for side, sign in enumerate((1, -1)):
        points[1 + side] = x + 0.39 * head, sign * 0.14 * head, chin + 0.545 * head
        points[3 + side] = x - 0.02 * head, sign * 0.33 * head, chin + 0.5 * head
    for place, bone in enumerate((*UPPER_ARM, *FOREARM, *FOREARM, *THIGH, *SHIN, *FOOT)):
        points[5 + place] = rest[bone]
        bones.append(bone)
    points[9:11, 2] -= body.fore
    weights = np.zeros((17, len(BONES)))
    weights[np.arange(17), bones] = 1.0
    return _stacked(points, weights, _joints_at_rest(body))


def _joints_at_rest(body: Stature) -> Floats:
    starts = body.rest.copy()
    starts[[HELD, CLOTH_NEAR, CLOTH_FAR]] = 0.0
    starts[CLOTH_FAR, 0] = -CLOTH_M / 2
    return starts


def _stacked(points: Floats, weights: Floats, starts: Floats) -> Floats:
    local = np.ones((len(points), len(BONES), 4))
    local[:, :, :3] = points[:, None] - starts
    stacked: Floats = (local * weights[:, :, None]).reshape(len(points), -1)
    return stacked
