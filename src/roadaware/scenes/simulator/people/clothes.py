"""Clothes: the surfaces of trunk, limbs, head and what is worn on them, for one stature and outfit."""

from __future__ import annotations

import numpy as np

from roadaware.scenes.simulator.mesh import Material
from roadaware.scenes.simulator.people.lofts import Piece, Ring, loft, mirrored, slab
from roadaware.scenes.simulator.people.outfits import HIGH_VISIBILITY, Colour, Outfit
from roadaware.scenes.simulator.people.statures import (
    CHEST,
    FOOT,
    FOREARM,
    HEAD,
    PELVIS,
    SHIN,
    SPINE,
    THIGH,
    UPPER_ARM,
    Stature,
)

OTHER_SIDE = (0, 1, 2, 3, 6, 7, 4, 5, 11, 12, 13, 8, 9, 10, 14, 15, 16)
_BULK = {"shirt": 1.0, "t-shirt": 0.98, "hoodie": 1.1, "jacket": 1.12, "coat": 1.16, "dress": 0.97}
_EYES: Colour = (0.01, 0.01, 0.01)


def dressed(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    """The pieces of a dressed person at rest.

    Args:
        body: lengths of its bones.
        outfit: what is worn.
        coarse: whether a few triangles are enough.
    """
    leg, arm = _leg(body, outfit, coarse), _arm(body, outfit, coarse)
    pieces = [_trunk(body, outfit, coarse), leg, mirrored(leg, OTHER_SIDE), arm, mirrored(arm, OTHER_SIDE)]
    pieces += _head(body, outfit, coarse)
    if not coarse:
        shoe = _shoe(body, outfit)
        hand = _hand(body, outfit)
        pieces += [shoe, mirrored(shoe, OTHER_SIDE), hand, mirrored(hand, OTHER_SIDE)]
    if outfit.bottom == "skirt" or outfit.top == "coat":
        pieces.append(_skirt(body, outfit, coarse))
    if outfit.bag != "none":
        pieces += _bag(body, outfit, coarse)
    return pieces


def _trunk(body: Stature, outfit: Outfit, coarse: bool) -> Piece:
    size, girth = body.body, body.girth * _BULK[outfit.top]
    slim = outfit.figure == "slim"
    waist, hips = (0.072, 0.094) if slim else (0.083, 0.09)
    deep = 0.075 if body.age != "senior" else 0.085
    hem = outfit.bottom_colour
    top = HIGH_VISIBILITY if outfit.vest else outfit.top_colour
    rows = (
        (0.0, 0.545, 0.055, 0.075, {PELVIS: 1.0}, hem),
        (0.0, 0.60, deep * 0.98, hips, {PELVIS: 1.0}, top if outfit.top != "t-shirt" else hem),
        (0.002, 0.70, deep * 0.94, waist, {SPINE: 1.0}, top),
        (0.004, 0.83, deep * 1.05, 0.1, {CHEST: 1.0}, top),
        (0.0, 0.905, deep * 0.93, 0.108, {CHEST: 1.0}, top),
        (0.0, 0.95, 0.05, 0.06, {CHEST: 1.0}, outfit.skin if not outfit.hood else top),
        (0.008, 0.985, 0.034, 0.034, {CHEST: 0.4, HEAD: 0.6}, outfit.skin),
    )
    if coarse:
        rows = tuple(rows[place] for place in (0, 2, 4, 6))
    rings: list[Ring] = [
        (x * size, 0.0, z * size, deepness * size * girth, wide * size * girth, bones)
        for x, z, deepness, wide, bones, _ in rows
    ]
    colours = [row[5] for row in rows[1:]] if coarse else [row[5] for row in rows]
    if coarse:
        colours[0] = top
    return loft(rings, colours, 4 if coarse else 8, closed=(not coarse, False))


def _leg(body: Stature, outfit: Outfit, coarse: bool) -> Piece:
    size, girth = body.body, body.girth**0.5
    x, y, _ = body.rest[THIGH[0]]
    thigh, shin, foot = THIGH[0], SHIN[0], FOOT[0]
    knee = body.ankle + body.shin
    loose = 1.12 if outfit.bottom == "trousers" else 0.95
    lower = outfit.bottom_colour if outfit.bottom == "trousers" else outfit.skin
    upper = outfit.bottom_colour if outfit.bottom != "skirt" else outfit.skin
    if coarse:
        rings: list[Ring] = [
            (0.02 * size, y, 0.0, 0.07 * size, 0.035 * size, {foot: 1.0}),
            (0.0, y, knee, 0.042 * size, 0.038 * size, {thigh: 0.5, shin: 0.5}),
            (0.0, y, body.hip, 0.06 * size, 0.055 * size, {thigh: 0.5, PELVIS: 0.5}),
        ]
        return loft(rings, [lower, upper], 3, closed=(False, False), front=0.0)
    rows = (
        (-0.002, 0.6 * body.ankle, 0.03 * loose, 0.028 * loose, {shin: 0.4, foot: 0.6}),
        (-0.006, body.ankle + 0.68 * body.shin, 0.037 * loose, 0.035 * loose, {shin: 1.0}),
        (-0.002, knee - 0.06 * body.shin, 0.035 * loose, 0.034 * loose, {shin: 0.85, thigh: 0.15}),
        (0.002, knee + 0.08 * body.thigh, 0.038 * loose, 0.037 * loose, {shin: 0.15, thigh: 0.85}),
        (0.0, knee + 0.6 * body.thigh, 0.053, 0.048, {thigh: 1.0}),
        (0.0, body.hip + 0.02 * size, 0.062, 0.05, {thigh: 0.5, PELVIS: 0.5}),
    )
    rings = [
        (x + at * size, y, z, rx * size * girth, ry * size * girth, bones) for at, z, rx, ry, bones in rows
    ]
    return loft(rings, [lower, lower, upper, upper, upper], 6, closed=(False, False))


def _arm(body: Stature, outfit: Outfit, coarse: bool) -> Piece:
    size, girth = body.body, body.girth**0.5 * _BULK[outfit.top]
    _, y, shoulder = body.rest[UPPER_ARM[0]]
    upper, fore = UPPER_ARM[0], FOREARM[0]
    elbow, wrist = shoulder - body.upper, shoulder - body.arm
    sleeve, skin = outfit.top_colour, outfit.skin
    bare = outfit.top in ("t-shirt", "dress")
    if coarse:
        rings: list[Ring] = [
            (0.0, y, wrist - 0.8 * body.hand, 0.02 * size, 0.016 * size, {fore: 1.0}),
            (0.0, y, elbow, 0.032 * size, 0.03 * size, {fore: 0.5, upper: 0.5}),
            (
                0.0,
                y - 0.01 * size,
                shoulder + 0.01 * size,
                0.038 * size,
                0.035 * size,
                {upper: 0.6, CHEST: 0.4},
            ),
        ]
        return loft(rings, [skin if bare else sleeve, sleeve], 3, closed=(False, False))
    rows = (
        (y, wrist, 0.018, 0.018, {fore: 1.0}),
        (y, elbow - 0.1 * body.fore, 0.026, 0.025, {fore: 0.85, upper: 0.15}),
        (y, elbow + 0.1 * body.upper, 0.028, 0.027, {fore: 0.15, upper: 0.85}),
        (y, shoulder - 0.4 * body.upper, 0.032, 0.031, {upper: 1.0}),
        (y - 0.005 * size, shoulder - 0.02 * size, 0.038, 0.036, {upper: 0.85, CHEST: 0.15}),
        (y - 0.018 * size, shoulder + 0.027 * size, 0.022, 0.024, {upper: 0.4, CHEST: 0.6}),
    )
    rings = [(0.0, at, z, rx * size * girth, ry * size * girth, bones) for at, z, rx, ry, bones in rows]
    lower = skin if bare else sleeve
    return loft(rings, [lower, lower, lower, sleeve, sleeve], 6, closed=(False, True))


def _hand(body: Stature, outfit: Outfit) -> Piece:
    _, y, shoulder = body.rest[UPPER_ARM[0]]
    wrist, bone = shoulder - body.arm, {FOREARM[0]: 1.0}
    wide, long = 0.02 * body.body, body.hand
    rings: list[Ring] = [
        (0.1 * long, y, wrist - 0.95 * long, 0.9 * wide, 0.45 * wide, bone),
        (0.08 * long, y, wrist - 0.5 * long, 1.25 * wide, 0.65 * wide, bone),
        (0.0, y, wrist + 0.05 * long, 0.7 * wide, 0.7 * wide, bone),
    ]
    return loft(rings, [outfit.skin], 5, Material.MATT, closed=(True, False))


def _shoe(body: Stature, outfit: Outfit) -> Piece:
    y, bone = body.rest[FOOT[0], 1], {FOOT[0]: 1.0}
    size = body.height
    rings: list[Ring] = [
        (0.024 * size, y, 0.0, 0.074 * size, 0.026 * size, bone),
        (0.024 * size, y, 0.018 * size, 0.076 * size, 0.027 * size, bone),
        (-0.002 * size, y, 1.05 * body.ankle, 0.027 * size, 0.022 * size, bone),
    ]
    return loft(rings, [outfit.shoes], 6, Material.GLOSSY)


def _skirt(body: Stature, outfit: Outfit, coarse: bool) -> Piece:
    size, girth = body.body, body.girth * _BULK[outfit.top]
    coat = outfit.top == "coat"
    low = 0.26 if coat else 0.30
    wide = 0.105 if coat else 0.115
    rows = ((low, wide * 0.95, wide * 1.02), (0.47, 0.092, 0.1), (0.62, 0.078, 0.093))
    rows = rows[::2] if coarse else rows
    rings: list[Ring] = [(0.0, 0.0, z * size, rx * size * girth, ry * size * girth, {}) for z, rx, ry in rows]
    colour = outfit.top_colour if coat or outfit.top == "dress" else outfit.bottom_colour
    piece = loft(rings, [colour], 4 if coarse else 8, closed=(not coarse, False))
    free = np.clip((0.62 * size - piece.points[:, 2]) / (0.3 * size), 0.0, 1.0) * 0.85
    left = np.clip(0.5 + piece.points[:, 1] / (0.16 * size), 0.0, 1.0)
    piece.weights[:, PELVIS] = 1.0 - free
    piece.weights[:, THIGH[0]] = free * left
    piece.weights[:, THIGH[1]] = free * (1.0 - left)
    return piece


def _head(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    head, x = body.head, float(body.rest[HEAD, 0]) + 0.1 * body.head
    chin, bone = body.body, {HEAD: 1.0}
    rows = (
        (0.10, -0.02, 0.24, 0.2),
        (0.03, 0.22, 0.37, 0.3),
        (0.0, 0.55, 0.43, 0.345),
        (-0.02, 0.80, 0.4, 0.32),
        (-0.04, 0.99, 0.2, 0.17),
    )
    rows = (rows[0], rows[2], rows[4]) if coarse else rows
    rings: list[Ring] = [
        (x + at * head, 0.0, chin + z * head, rx * head, ry * head, bone) for at, z, rx, ry in rows
    ]
    piece = loft(rings, [outfit.skin], 4 if coarse else 8, Material.MATT, closed=(not coarse, True))
    if outfit.hair != "bald":
        _grow(piece, outfit, chin, head, x)
    pieces = [piece]
    if not coarse:
        pieces.append(_nose(body, outfit, x))
        pieces += _eyes(body, x)
        pieces += _long_hair(body, outfit, x)
    if outfit.hood or outfit.hat != "none":
        pieces += _hat(body, outfit, coarse, x)
    return pieces


def _grow(piece: Piece, outfit: Outfit, chin: float, head: float, x: float) -> None:
    """Hair on the crown and the back of the head; the face stays free."""
    middle = piece.points[piece.triangles].mean(1)
    up, ahead = (middle[:, 2] - chin) / head, (middle[:, 0] - x) / head
    hairy = (up > 0.78) | ((ahead < 0.02) & (up > 0.2 + 0.3 * (ahead > -0.15)))
    piece.colour[hairy] = outfit.hair_colour


def _nose(body: Stature, outfit: Outfit, x: float) -> Piece:
    head, chin = body.head, body.body
    tip = (x + 0.55 * head, 0.0, chin + 0.38 * head)
    points = np.array(
        [
            (x + 0.36 * head, 0.085 * head, chin + 0.33 * head),
            (x + 0.36 * head, -0.085 * head, chin + 0.33 * head),
            (x + 0.38 * head, 0.0, chin + 0.62 * head),
            tip,
        ]
    )
    triangles = np.array([(0, 1, 3), (1, 2, 3), (2, 0, 3)])
    shade = tuple(0.88 * part for part in outfit.skin)
    weights = np.zeros((4, len(OTHER_SIDE)))
    weights[:, HEAD] = 1.0
    return Piece(
        points, weights, triangles, np.array([shade] * 3), np.full(3, int(Material.MATT)), np.zeros(3),
        points[:, 1:][triangles],
    )  # fmt: skip


def _eyes(body: Stature, x: float) -> list[Piece]:
    head, chin = body.head, body.body
    y, z = np.array([0.075, 0.195]) * head, chin + np.array([0.5, 0.59]) * head
    at = x + np.array([0.425, 0.375]) * head
    corners = np.array([(at[0], y[0], z[0]), (at[1], y[1], z[0]), (at[1], y[1], z[1]), (at[0], y[0], z[1])])
    left = slab(corners, (-0.02, 0.0, 0.0), [{HEAD: 1.0}] * 4, _EYES, Material.GLOSSY)
    left = _faces(left, slice(0, 2))
    return [left, mirrored(left, OTHER_SIDE)]


def _faces(piece: Piece, chosen: slice) -> Piece:
    return Piece(
        piece.points, piece.weights, piece.triangles[chosen], piece.colour[chosen], piece.material[chosen],
        piece.glow[chosen], piece.uv[chosen],
    )  # fmt: skip


def _long_hair(body: Stature, outfit: Outfit, x: float) -> list[Piece]:
    head, chin, bone = body.head, body.body, {HEAD: 1.0}
    if outfit.hair == "long":
        rows = ((-0.34, -0.32, 0.1, 0.28), (-0.24, 0.3, 0.22, 0.37), (-0.2, 0.75, 0.26, 0.33))
    elif outfit.hair == "tail":
        rows = ((-0.5, -0.2, 0.06, 0.06), (-0.56, 0.3, 0.12, 0.12), (-0.42, 0.66, 0.08, 0.08))
    elif outfit.hair == "bun":
        rows = ((-0.42, 0.62, 0.12, 0.12), (-0.44, 0.78, 0.19, 0.19), (-0.38, 0.96, 0.1, 0.1))
    else:
        return []
    rings: list[Ring] = [
        (x + at * head, 0.0, chin + z * head, rx * head, ry * head, bone) for at, z, rx, ry in rows
    ]
    return [loft(rings, [outfit.hair_colour], 6, Material.MATT)]


def _hat(body: Stature, outfit: Outfit, coarse: bool, x: float) -> list[Piece]:
    head, chin, bone = body.head, body.body, {HEAD: 1.0}
    style = "hood" if outfit.hood else outfit.hat
    rows, colour, material = {
        "cap": (((0.03, 0.70, 0.47, 0.375), (-0.03, 1.05, 0.3, 0.25)), outfit.hat_colour, Material.CLOTH),
        "woolly": (((0.0, 0.62, 0.46, 0.38), (-0.04, 0.95, 0.4, 0.33), (-0.06, 1.12, 0.14, 0.12)), outfit.hat_colour, Material.CLOTH),
        "brimmed": (((0.0, 0.70, 0.72, 0.66), (0.0, 0.75, 0.45, 0.37), (-0.02, 1.12, 0.33, 0.27)), outfit.hat_colour, Material.CLOTH),
        "helmet": (((-0.04, 0.58, 0.53, 0.42), (-0.06, 0.95, 0.48, 0.38), (-0.08, 1.15, 0.2, 0.17)), outfit.hat_colour, Material.GLOSSY),
        "hood": (((-0.3, -0.2, 0.28, 0.34), (-0.16, 0.45, 0.4, 0.42), (-0.06, 0.85, 0.46, 0.39), (-0.1, 1.07, 0.22, 0.18)), outfit.top_colour, Material.CLOTH),
    }[style]  # fmt: skip
    rows = rows if not coarse else (rows[0], rows[-1])
    rings: list[Ring] = [
        (x + at * head, 0.0, chin + z * head, rx * head, ry * head, bone) for at, z, rx, ry in rows
    ]
    pieces = [loft(rings, [colour], 4 if coarse else 8, material, closed=(not coarse, True))]
    if style == "cap" and not coarse:
        z = chin + 0.72 * head
        corners = np.array([(0.38, 0.26, 0), (0.38, -0.26, 0), (0.78, -0.17, -0.06), (0.78, 0.17, -0.06)])
        peak = corners * head + (x, 0.0, z)
        pieces.append(slab(peak, (0.0, 0.0, 0.05 * head), [bone] * 4, colour, material))
    return pieces


def _bag(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    size, sides = body.body, 4
    rows: tuple[tuple[float, float, float], ...]
    if outfit.bag == "backpack":
        x, y, bones = -0.125 * size, 0.0, {CHEST: 0.8, SPINE: 0.2}
        rows = ((0.66, 0.05, 0.095), (0.69, 0.07, 0.11), (0.87, 0.06, 0.105), (0.92, 0.03, 0.08))
    elif outfit.bag == "handbag":
        x, y, bones = -0.01 * size, -0.15 * size * body.girth, {SPINE: 0.5, PELVIS: 0.5}
        rows = ((0.565, 0.1, 0.04), (0.69, 0.085, 0.03))
    else:
        x, y, bones = 0.01 * size, float(body.rest[FOREARM[0], 1]), {FOREARM[0]: 1.0}
        high = (float(body.rest[UPPER_ARM[0], 2]) - body.arm) / size - 0.09
        rows = ((high - 0.22, 0.1, 0.05), (high, 0.085, 0.02))
    rows = (rows[0], rows[-1]) if coarse else rows
    rings: list[Ring] = [(x, y, z * size, rx * size, ry * size, bones) for z, rx, ry in rows]
    pieces = [loft(rings, [outfit.bag_colour], sides, closed=(not coarse, not coarse))]
    if outfit.bag == "handbag" and not coarse:
        strap: list[Ring] = [
            (0.0, -0.15 * size * body.girth, 0.68 * size, 0.015 * size, 0.006 * size, bones),
            (0.0, -0.105 * size * body.girth, 0.95 * size, 0.015 * size, 0.006 * size, {CHEST: 1.0}),
        ]
        pieces.append(loft(strap, [outfit.bag_colour], 3, closed=(False, False)))
    return pieces
