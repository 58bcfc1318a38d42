"""Clothes: what a person wears, drawn from the seed of their look, and the surfaces of trunk, limbs, head and
what is worn on them, closed and moved by bones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.simulator.mesh import Material
from roadaware.simulator.people.skeleton import (
    BONES,
    CHEST,
    FOOT,
    FOREARM,
    HEAD,
    PELVIS,
    SHIN,
    SPINE,
    THIGH,
    UPPER_ARM,
    Age,
    Figure,
    Stature,
)

Colour = tuple[float, float, float]
T = TypeVar("T", bound=str)
Hair = Literal["short", "long", "tail", "bun", "bald"]
Top = Literal["shirt", "t-shirt", "hoodie", "jacket", "coat", "dress"]
Bottom = Literal["trousers", "shorts", "skirt"]
Hat = Literal["none", "cap", "woolly", "brimmed", "helmet", "visor"]
Bag = Literal["none", "backpack", "handbag", "shopping"]

_SKIN: tuple[Colour, ...] = (
    (0.62, 0.40, 0.30),
    (0.56, 0.34, 0.24),
    (0.46, 0.26, 0.17),
    (0.33, 0.17, 0.10),
    (0.20, 0.10, 0.06),
    (0.11, 0.055, 0.035),
)
_HAIR: tuple[Colour, ...] = (
    (0.010, 0.008, 0.007),
    (0.035, 0.020, 0.012),
    (0.10, 0.05, 0.025),
    (0.30, 0.19, 0.08),
    (0.22, 0.07, 0.03),
)
_GREY: Colour = (0.42, 0.42, 0.42)
_CLOTH: tuple[Colour, ...] = (
    (0.015, 0.015, 0.018),
    (0.07, 0.07, 0.075),
    (0.25, 0.25, 0.26),
    (0.72, 0.71, 0.68),
    (0.02, 0.035, 0.11),
    (0.05, 0.14, 0.36),
    (0.40, 0.03, 0.035),
    (0.05, 0.18, 0.07),
    (0.55, 0.34, 0.05),
    (0.36, 0.22, 0.12),
    (0.52, 0.26, 0.34),
    (0.16, 0.05, 0.20),
)
_LEGS: tuple[Colour, ...] = (
    (0.02, 0.03, 0.075),
    (0.045, 0.075, 0.17),
    (0.014, 0.014, 0.016),
    (0.09, 0.09, 0.09),
    (0.30, 0.24, 0.15),
    (0.13, 0.09, 0.06),
)
_SHOES: tuple[Colour, ...] = (
    (0.012, 0.011, 0.011),
    (0.07, 0.035, 0.02),
    (0.65, 0.65, 0.63),
    (0.3, 0.04, 0.04),
)
_HELMETS: tuple[Colour, ...] = (
    (0.75, 0.75, 0.74),
    (0.02, 0.02, 0.022),
    (0.55, 0.03, 0.03),
    (0.03, 0.12, 0.5),
    (0.75, 0.6, 0.03),
)
HIGH_VISIBILITY: Colour = (0.62, 0.85, 0.06)


@dataclass(frozen=True)
class Outfit:
    """Outfit of a person; colours are linear.

    Args:
        figure: broad or slim.
        skin: colour.
        hair: style.
        hair_colour: of it.
        top: what covers the trunk.
        top_colour: of it.
        bottom: what covers the legs.
        bottom_colour: of it.
        shoes: colour.
        hat: on the head.
        hood: whether a hood is up.
        hat_colour: of hat, helmet and umbrella.
        bag: that is carried.
        bag_colour: of it.
        vest: whether a high-visibility vest is worn.
        stick: whether a walking stick is used.
        cuffs: whether bright gloves and sleeves show the arms, as cyclists wear them to signal.
    """

    figure: Figure
    skin: Colour
    hair: Hair
    hair_colour: Colour
    top: Top
    top_colour: Colour
    bottom: Bottom
    bottom_colour: Colour
    shoes: Colour
    hat: Hat
    hood: bool
    hat_colour: Colour
    bag: Bag
    bag_colour: Colour
    vest: bool
    stick: bool
    cuffs: bool = False


@lru_cache(maxsize=1024)
def sample_outfit(look: int, age: Age, figure: Figure, rides: str = "") -> Outfit:
    """Sample the outfit of a person.

    Args:
        look: seed of it.
        age: age group.
        figure: broad or slim.
        rides: kind of the machine they ride, "" for people on foot.
    """
    # Seeds may not be negative.
    rng = np.random.default_rng([look & 0xFFFFFFFF, 7])
    slim = figure == "slim"
    top, bottom = _clothes(rng, age, slim, rides)
    hair: Hair = _pick(rng, ("short", "long", "tail", "bun"), (1, 5, 3, 1) if slim else (12, 1, 0, 0))
    grey = age == "senior" and rng.random() < 0.85
    hair_colour = _GREY if grey else _HAIR[rng.integers(len(_HAIR))]
    if not slim and age in ("adult", "senior") and rng.random() < (0.4 if age == "senior" else 0.12):
        hair = "bald"
    hat: Hat = _pick(rng, ("none", "cap", "woolly", "brimmed"), (12, 3, 2, 2 if age == "senior" else 0))
    if rides:
        helmet = rng.random() < 0.75
        hat = "visor" if rides == "Mobike" else "helmet" if helmet else hat
    bag: Bag = _pick(rng, ("none", "backpack", "handbag", "shopping"), (8, 5, 5 if slim else 0, 3))
    if rides or age == "child":
        bag = "backpack" if bag == "backpack" else "none"
    top_colour, bottom_colour = _CLOTH[rng.integers(len(_CLOTH))], _LEGS[rng.integers(len(_LEGS))]
    hats = _HELMETS if hat in ("helmet", "visor") else _CLOTH
    return Outfit(
        figure=figure,
        skin=_SKIN[rng.integers(len(_SKIN))],
        hair=hair,
        hair_colour=hair_colour,
        top=top,
        top_colour=_sample_colour_shift(rng, top_colour),
        bottom=bottom,
        bottom_colour=_sample_colour_shift(
            rng, _CLOTH[rng.integers(len(_CLOTH))] if bottom == "skirt" else bottom_colour
        ),
        shoes=_SHOES[rng.integers(len(_SHOES))],
        hat=hat,
        hood=top == "hoodie" and hat == "none" and rng.random() < 0.3,
        hat_colour=_sample_colour_shift(rng, hats[rng.integers(len(hats))]),
        bag=bag,
        bag_colour=_sample_colour_shift(rng, _CLOTH[rng.integers(len(_CLOTH))]),
        vest=bool(rng.random() < (0.3 if rides else 0.05)) and age != "child",
        stick=age == "senior" and not rides and rng.random() < 0.5,
        cuffs=rides == "Cyc",
    )


def _clothes(rng: np.random.Generator, age: Age, slim: bool, rides: str) -> tuple[Top, Bottom]:
    tops: tuple[Top, ...] = ("shirt", "t-shirt", "hoodie", "jacket", "coat", "dress")
    shares = {
        "child": (3, 4, 4, 3, 0, 2 if slim else 0),
        "young": (3, 4, 6, 4, 1, 2 if slim else 0),
        "adult": (4, 4, 2, 5, 3, 2 if slim else 0),
        "senior": (4, 1, 0, 5, 5, 1 if slim else 0),
    }[age]
    top = _pick(rng, tops, (3, 3, 2, 4, 0, 0) if rides else shares)
    bottoms: tuple[Bottom, ...] = ("trousers", "shorts", "skirt")
    short = 3 if age in ("child", "young") else 1
    bottom = _pick(rng, bottoms, (10, short, 0) if rides or not slim else (7, short, 4))
    if top == "dress":
        bottom = "skirt"
    if rides == "Mobike":
        top, bottom = "jacket", "trousers"
    return top, "trousers" if top == "coat" and bottom == "shorts" else bottom


def _pick(rng: np.random.Generator, names: tuple[T, ...], shares: tuple[int, ...]) -> T:
    total = np.cumsum(shares)
    return names[int(np.searchsorted(total, rng.integers(total[-1]), side="right"))]


def _sample_colour_shift(rng: np.random.Generator, colour: Colour) -> Colour:
    red, green, blue = (np.array(colour) * rng.uniform(0.75, 1.25) * rng.uniform(0.92, 1.08, 3)).tolist()
    return red, green, blue


# Lofts: closed surfaces through rings of points, each point moved by one or two bones.

Weights = dict[int, float]
Ring = tuple[float, float, float, float, float, Weights]
"""x, y and z of its middle, its radii along x and y, and the bones that move it."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Part of a body at rest.

    Args:
        points: (v, 3) metres in the actor's axes.
        weights: (v, 17) share of each bone.
        triangles: (t, 3) counter-clockwise seen from outside.
        colour: (t, 3).
        material: (t,).
        glow: (t,).
        uv: (t, 3, 2) metres along the surface.
    """

    points: Floats
    weights: Floats
    triangles: Ints
    colour: Floats
    material: Ints
    glow: Floats
    uv: Floats


def loft(
    rings: Sequence[Ring],
    colours: Sequence[Colour],
    sides: int,
    material: Material = Material.CLOTH,
    *,
    closed: tuple[bool, bool] = (True, True),
    front: float = 0.5,
    glow: float = 0.0,
) -> Piece:
    """A surface through rings that lie above each other, from the lowest to the highest.

    Args:
        rings: at least two.
        colours: of the stretches between rings; the last one repeats.
        sides: points of a ring.
        material: of all of it.
        closed: whether the lowest and highest ring are closed.
        front: where the first point lies, in steps from straight ahead.
        glow: light it gives off.
    """
    angle = 2 * np.pi * (np.arange(sides) + front) / sides
    shape = np.array([ring[:5] for ring in rings])
    points = np.empty((len(rings), sides, 3))
    points[:, :, 0] = shape[:, None, 0] + shape[:, None, 3] * np.cos(angle)
    points[:, :, 1] = shape[:, None, 1] + shape[:, None, 4] * np.sin(angle)
    points[:, :, 2] = shape[:, None, 2]
    weights = np.zeros((len(rings), sides, len(BONES)))
    for place, ring in enumerate(rings):
        for bone, share in ring[5].items():
            weights[place, :, bone] = share
    bands = [_band(place, sides) for place in range(len(rings) - 1)]
    shades = [[colours[min(place, len(colours) - 1)]] * (2 * sides) for place in range(len(bands))]
    fan = np.stack([np.zeros(sides - 2, np.int64), np.arange(1, sides - 1), np.arange(2, sides)], axis=1)
    if closed[0]:
        bands.append(fan[:, ::-1])
        shades.append([colours[0]] * len(fan))
    if closed[1]:
        bands.append(fan + sides * (len(rings) - 1))
        shades.append([colours[-1]] * len(fan))
    triangles = np.concatenate(bands)
    return _piece(
        points,
        weights,
        triangles,
        np.concatenate(shades),
        material,
        glow,
        _compute_unrolled_uv(shape, angle, triangles),
    )


def slab(
    corners: Floats,
    thick: Sequence[float],
    weights: Sequence[Weights],
    colour: Colour,
    material: Material,
    rim: bool = True,
) -> Piece:
    """A thin board or sheet, seen from both sides.

    Args:
        corners: (n, 3) of one face, counter-clockwise seen from that side.
        thick: (3,) from that face to the other one, metres.
        weights: of each corner.
        colour: of all of it.
        material: of all of it.
        rim: whether it has narrow faces all round.
    """
    n = len(corners)
    points = np.concatenate([corners, corners + np.asarray(thick)])
    shares = np.zeros((2 * n, len(BONES)))
    for place, bones in enumerate(weights):
        for bone, share in bones.items():
            shares[[place, place + n], bone] = share
    fan = np.stack([np.zeros(n - 2, np.int64), np.arange(1, n - 1), np.arange(2, n)], axis=1)
    here, there = np.arange(n), (np.arange(n) + 1) % n
    round_it = np.concatenate(
        [np.stack([there, here, here + n], axis=1), np.stack([there, here + n, there + n], axis=1)]
    )
    triangles = np.concatenate([fan, fan[:, ::-1] + n, round_it] if rim else [fan, fan[:, ::-1] + n])
    flat = np.argsort(np.ptp(corners, axis=0), kind="stable")[1:]
    uv = points[:, flat][triangles]
    return _piece(points, shares, triangles, np.array([colour] * len(triangles)), material, 0.0, uv)


def mirror_piece(piece: Piece, swap: Sequence[int]) -> Piece:
    """The same on the other side.

    Args:
        piece: of the left side.
        swap: (17,) the bone that takes each bone's place.
    """
    points = piece.points * (1.0, -1.0, 1.0)
    return Piece(
        points, piece.weights[:, list(swap)], piece.triangles[:, ::-1], piece.colour, piece.material,
        piece.glow, piece.uv[:, ::-1],
    )  # fmt: skip


def _band(place: int, sides: int) -> Ints:
    low = place * sides + np.arange(sides)
    low_next = place * sides + (np.arange(sides) + 1) % sides
    return np.concatenate(
        [
            np.stack([low, low_next, low_next + sides], axis=1),
            np.stack([low, low_next + sides, low + sides], axis=1),
        ]
    )


def _compute_unrolled_uv(shape: Floats, angle: Floats, triangles: Ints) -> Floats:
    radius = float(shape[:, 3:5].mean())
    across = np.tile(angle, len(shape))[triangles]
    seam = np.ptp(across, axis=1, keepdims=True) > np.pi
    across = np.where(seam & (across < np.pi), across + 2 * np.pi, across)
    return np.stack([radius * across, np.repeat(shape[:, 2], len(angle))[triangles]], axis=-1)


def _piece(
    points: Floats,
    weights: Floats,
    triangles: Ints,
    colour: Floats,
    material: Material,
    glow: float,
    uv: Floats,
) -> Piece:
    count = len(triangles)
    return Piece(
        points.reshape(-1, 3), weights.reshape(-1, len(BONES)), triangles, colour,
        np.full(count, int(material)), np.full(count, glow), uv,
    )  # fmt: skip


OTHER_SIDE = (0, 1, 2, 3, 6, 7, 4, 5, 11, 12, 13, 8, 9, 10, 14, 15, 16)
_BULK = {"shirt": 1.0, "t-shirt": 0.98, "hoodie": 1.1, "jacket": 1.12, "coat": 1.16, "dress": 0.97}
_EYES: Colour = (0.01, 0.01, 0.01)
_BRIGHT: Colour = (0.85, 0.2, 0.02)


def build_clothed_body(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    """The pieces of a dressed person at rest.

    Args:
        body: lengths of its bones.
        outfit: what is worn.
        coarse: whether a few triangles are enough.
    """
    leg, arm = _leg(body, outfit, coarse), _arm(body, outfit, coarse)
    pieces = [
        _trunk(body, outfit, coarse),
        leg,
        mirror_piece(leg, OTHER_SIDE),
        arm,
        mirror_piece(arm, OTHER_SIDE),
    ]
    pieces += _head(body, outfit, coarse)
    if not coarse:
        y, bone = body.rest[FOOT[0], 1], {FOOT[0]: 1.0}
        size = body.height
        rings: list[Ring] = [
            (0.024 * size, y, 0.0, 0.074 * size, 0.026 * size, bone),
            (0.024 * size, y, 0.018 * size, 0.076 * size, 0.027 * size, bone),
            (-0.002 * size, y, 1.05 * body.ankle, 0.027 * size, 0.022 * size, bone),
        ]
        shoe = loft(rings, [outfit.shoes], 5, Material.GLOSSY, closed=(True, False), front=0.0)
        hand = _hand(body, outfit)
        pieces += [shoe, mirror_piece(shoe, OTHER_SIDE), hand, mirror_piece(hand, OTHER_SIDE)]
    if _has_covered_legs(outfit):
        pieces.append(_skirt(body, outfit, coarse))
    if outfit.bag != "none":
        pieces += _bag(body, outfit, coarse)
    return pieces


def _trunk(body: Stature, outfit: Outfit, coarse: bool) -> Piece:
    size, girth = body.body, body.girth * _BULK[outfit.top]
    waist, hips = (0.074, 0.098) if outfit.figure == "slim" else (0.086, 0.095)
    deep = 0.085 if body.age == "senior" else 0.075
    top = HIGH_VISIBILITY if outfit.vest else outfit.top_colour
    collar = top if outfit.hood else outfit.skin
    rows: tuple[tuple[float, float, float, float, Weights, Colour], ...] = (
        (0.0, 0.53, 0.064, 0.082, {PELVIS: 1.0}, _leg_colours(outfit)[1]),
        (0.0, 0.60, deep * 0.98, hips, {PELVIS: 1.0}, top),
        (0.002, 0.70, deep * 0.94, waist, {SPINE: 1.0}, top),
        (0.004, 0.84, deep * 1.06, 0.106, {CHEST: 1.0}, top),
        (0.0, 0.915, deep * 0.9, 0.108, {CHEST: 1.0}, top),
        (-0.004, 0.955, 0.042, 0.044, {CHEST: 1.0}, collar),
        (0.008, 1.02, 0.031, 0.03, {CHEST: 0.3, HEAD: 0.7}, collar),
    )
    if coarse:
        rows = (rows[0], rows[2], rows[4])
    rings: list[Ring] = [
        (x * size, 0.0, z * size, depth * size * girth, wide * size * girth, bones)
        for x, z, depth, wide, bones, _ in rows
    ]
    colours = [row[5] for row in rows[coarse:]]
    return loft(rings, colours, 4 if coarse else 8, closed=(False, coarse))


def _leg(body: Stature, outfit: Outfit, coarse: bool) -> Piece:
    size, girth = body.body, body.girth**0.5
    thigh, shin, foot = THIGH[0], SHIN[0], FOOT[0]
    y, knee = float(body.rest[thigh, 1]), body.ankle + body.shin
    lower, upper = _leg_colours(outfit)
    if coarse:
        rings: list[Ring] = [
            (0.012 * size, y, 0.0, 0.06 * size, 0.032 * size, {foot: 1.0}),
            (0.0, y, knee, 0.042 * size, 0.038 * size, {thigh: 0.5, shin: 0.5}),
            (0.0, 0.8 * y, body.hip - 0.03 * size, 0.07 * size, 0.05 * size, {thigh: 0.5, PELVIS: 0.5}),
        ]
        return loft(
            rings[:2] if _has_covered_legs(outfit) else rings,
            [lower, upper],
            3,
            closed=(False, False),
            front=0,
        )
    loose = 1.12 if outfit.bottom == "trousers" else 0.95
    rows: tuple[tuple[float, float, float, float, float, Weights], ...] = (
        (-0.002, y, 0.6 * body.ankle, 0.03 * loose, 0.028 * loose, {shin: 0.4, foot: 0.6}),
        (-0.006, y, body.ankle + 0.68 * body.shin, 0.038 * loose, 0.034 * loose, {shin: 1.0}),
        (0.002, y, knee - 0.02 * body.shin, 0.036 * loose, 0.034 * loose, {shin: 0.55, thigh: 0.45}),
        (0.0, 0.92 * y, knee + 0.55 * body.thigh, 0.053, 0.046, {thigh: 1.0}),
        (0.0, 0.8 * y, body.hip - 0.02 * size, 0.062, 0.046, {thigh: 0.5, PELVIS: 0.5}),
    )
    rings = [
        (at * size, out, z, rx * size * girth, ry * size * girth, bones) for at, out, z, rx, ry, bones in rows
    ]
    return loft(rings, [lower, lower, upper, upper], 5, closed=(False, False), front=0.0)


def _has_covered_legs(outfit: Outfit) -> bool:
    return outfit.bottom == "skirt" or outfit.top == "coat"


def _leg_colours(outfit: Outfit) -> tuple[Colour, Colour]:
    """Below and above the knee; what a skirt covers has its colour, so that no step bares it."""
    lower = outfit.bottom_colour if outfit.bottom == "trousers" else outfit.skin
    return lower, _skirt_colour(outfit) if _has_covered_legs(outfit) else outfit.bottom_colour


def _skirt_colour(outfit: Outfit) -> Colour:
    return outfit.top_colour if outfit.top in ("coat", "dress") else outfit.bottom_colour


def _arm(body: Stature, outfit: Outfit, coarse: bool) -> Piece:
    size, girth = body.body, body.girth**0.5 * _BULK[outfit.top]
    upper, fore = UPPER_ARM[0], FOREARM[0]
    y, shoulder = float(body.rest[upper, 1]), float(body.rest[upper, 2])
    elbow, wrist = shoulder - body.upper, shoulder - body.arm
    sleeve = outfit.top_colour
    lower = outfit.skin if outfit.top in ("t-shirt", "dress") else sleeve
    lower, cuff = (_BRIGHT, 0.027) if outfit.cuffs else (lower, 0.018)
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
        return loft(rings, [lower, sleeve], 3, closed=(False, False))
    rows: tuple[tuple[float, float, float, float, Weights], ...] = (
        (y, wrist, cuff, cuff, {fore: 1.0}),
        (y, elbow, 0.029, 0.028, {fore: 0.5, upper: 0.5}),
        (y, shoulder - 0.45 * body.upper, 0.031, 0.03, {upper: 1.0}),
        (y - 0.004 * size, shoulder - 0.03 * size, 0.037, 0.034, {upper: 0.85, CHEST: 0.15}),
        (y - 0.02 * size, shoulder + 0.025 * size, 0.024, 0.026, {upper: 0.4, CHEST: 0.6}),
    )
    rings = [(0.0, at, z, rx * size * girth, ry * size * girth, bones) for at, z, rx, ry, bones in rows]
    return loft(rings, [lower, lower, sleeve, sleeve], 5, closed=(False, True), front=0.0)


def _hand(body: Stature, outfit: Outfit) -> Piece:
    _, y, shoulder = body.rest[UPPER_ARM[0]]
    wrist, bone = shoulder - body.arm, {FOREARM[0]: 1.0}
    wide, long = (0.03 if outfit.cuffs else 0.02) * body.body, body.hand
    rings: list[Ring] = [
        (0.1 * long, y, wrist - 0.95 * long, 0.9 * wide, 0.45 * wide, bone),
        (0.08 * long, y, wrist - 0.5 * long, 1.25 * wide, 0.65 * wide, bone),
        (0.0, y, wrist + 0.05 * long, 0.7 * wide, 0.7 * wide, bone),
    ]
    colour = _BRIGHT if outfit.cuffs else outfit.skin
    return loft(rings, [colour], 4, Material.MATT, closed=(True, False))


def _skirt(body: Stature, outfit: Outfit, coarse: bool) -> Piece:
    size, girth = body.body, body.girth * _BULK[outfit.top]
    coat = outfit.top == "coat"
    low = 0.26 if coat else 0.30
    wide = 0.105 if coat else 0.115
    shape = ((low, wide * 0.95, wide * 1.02), (0.47, 0.092, 0.1), (0.62, 0.078, 0.095))
    rows = shape[::2] if coarse else shape
    rings: list[Ring] = [(0.0, 0.0, z * size, rx * size * girth, ry * size * girth, {}) for z, rx, ry in rows]
    piece = loft(rings, [_skirt_colour(outfit)], 4 if coarse else 8, closed=(not coarse, False))
    free = np.clip((0.62 * size - piece.points[:, 2]) / (0.3 * size), 0.0, 1.0) * 0.85
    left = np.clip(0.5 + piece.points[:, 1] / (0.16 * size), 0.0, 1.0)
    piece.weights[:, PELVIS] = 1.0 - free
    piece.weights[:, THIGH[0]] = free * left
    piece.weights[:, THIGH[1]] = free * (1.0 - left)
    return piece


def _head(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    head, x = body.head, float(body.rest[HEAD, 0]) + 0.1 * body.head
    chin, bone = body.body, {HEAD: 1.0}
    rows = _FAR_HEAD if coarse else _HEAD
    rings: list[Ring] = [
        (x + at * head, 0.0, chin + z * head, rx * head, ry * head, bone) for at, z, rx, ry in rows
    ]
    piece = loft(rings, [outfit.skin], 4 if coarse else 8, Material.MATT, closed=(not coarse, True))
    # Hair on the crown and the back of the head; the face stays free.
    # What is on top of the head; from far away, hats are no more than their colour.
    if coarse and outfit.hood:
        colour = outfit.top_colour
    elif coarse and outfit.hat != "none":
        colour = outfit.hat_colour
    else:
        colour = outfit.skin if outfit.hair == "bald" else outfit.hair_colour
    middle = piece.points[piece.triangles].mean(1)
    up, ahead = (middle[:, 2] - chin) / head, (middle[:, 0] - x) / head
    hairy = (up > 0.78) | ((ahead < 0.02) & (up > 0.2 + 0.3 * (ahead > -0.15)))
    piece.colour[hairy] = colour
    pieces = [piece]
    if not coarse:
        pieces.append(_nose(body, outfit, x))
        head, chin = body.head, body.body
        y, z = np.array([0.075, 0.195]) * head, chin + np.array([0.5, 0.59]) * head
        at = x + np.array([0.425, 0.375]) * head
        corners = np.array(
            [(at[0], y[0], z[0]), (at[1], y[1], z[0]), (at[1], y[1], z[1]), (at[0], y[0], z[1])]
        )
        left = slab(corners, (-0.02, 0.0, 0.0), [{HEAD: 1.0}] * 4, _EYES, Material.GLOSSY)
        chosen = slice(0, 2)
        left = Piece(
            left.points,
            left.weights,
            left.triangles[chosen],
            left.colour[chosen],
            left.material[chosen],
            left.glow[chosen],
            left.uv[chosen],
        )
        pieces += [left, mirror_piece(left, OTHER_SIDE)]
        pieces += _long_hair(body, outfit, x)
        if outfit.hood or outfit.hat != "none":
            pieces += _hat(body, outfit, x)
    return pieces


_HEAD = (
    (0.10, -0.02, 0.26, 0.23),
    (0.03, 0.22, 0.38, 0.34),
    (0.0, 0.55, 0.43, 0.355),
    (-0.02, 0.80, 0.4, 0.33),
    (-0.04, 0.99, 0.2, 0.17),
)
"""Rings of the head in its heights: ahead, above the chin, and radii."""


_FAR_HEAD = ((-0.05, -0.55, 0.26, 0.24), (0.0, 0.4, 0.46, 0.38), (-0.03, 1.0, 0.36, 0.3))


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
    triangles = np.array([(1, 0, 3), (2, 1, 3), (0, 2, 3)])
    shade = tuple(0.88 * part for part in outfit.skin)
    weights = np.zeros((4, len(OTHER_SIDE)))
    weights[:, HEAD] = 1.0
    return Piece(
        points, weights, triangles, np.array([shade] * 3), np.full(3, int(Material.MATT)), np.zeros(3),
        points[:, 1:][triangles],
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


_HATS: Mapping[str, tuple[tuple[float, float, float, float], ...]] = {
    "cap": ((0.03, 0.70, 0.47, 0.375), (-0.03, 1.05, 0.3, 0.25)),
    "woolly": ((0.0, 0.62, 0.46, 0.38), (-0.04, 0.95, 0.4, 0.33), (-0.06, 1.12, 0.14, 0.12)),
    "brimmed": ((0.0, 0.70, 0.72, 0.66), (0.0, 0.75, 0.45, 0.37), (-0.02, 1.12, 0.33, 0.27)),
    "helmet": ((0.0, 0.66, 0.56, 0.44), (-0.04, 0.95, 0.53, 0.42), (-0.06, 1.2, 0.3, 0.2)),
    "visor": ((-0.03, 0.02, 0.40, 0.38), (-0.03, 0.62, 0.56, 0.47), (-0.05, 1.15, 0.25, 0.22)),
    "hood": ((-0.28, -0.15, 0.28, 0.34), (-0.17, 0.45, 0.4, 0.42), (-0.1, 1.07, 0.24, 0.2)),
}
"""Rings of hats in heights of the head: ahead, above the chin, and radii."""
_VISOR: Colour = (0.02, 0.022, 0.025)


def _hat(body: Stature, outfit: Outfit, x: float) -> list[Piece]:
    head, chin, bone = body.head, body.body, {HEAD: 1.0}
    style = "hood" if outfit.hood else outfit.hat
    colour = outfit.top_colour if outfit.hood else outfit.hat_colour
    material = Material.GLOSSY if style in ("helmet", "visor") else Material.CLOTH
    rings: list[Ring] = [
        (x + at * head, 0.0, chin + z * head, rx * head, ry * head, bone) for at, z, rx, ry in _HATS[style]
    ]
    shell = loft(rings, [colour], 8, material, closed=(style == "brimmed", True))
    if style == "cap":
        corners = np.array([(0.38, 0.26, 0), (0.38, -0.26, 0), (0.78, -0.17, -0.06), (0.78, 0.17, -0.06)])
        peak = corners * head + (x, 0.0, chin + 0.72 * head)
        return [shell, slab(peak, (0.0, 0.0, -0.05 * head), [bone] * 4, colour, material)]
    if style == "helmet":
        # Slots from front to back.
        shell.colour[[16, 18, 20, 22, 24, 26, 28, 30]] = _VISOR
    if style == "visor":
        middle = shell.points[shell.triangles].mean(1)
        glass = (middle[:, 0] > x + 0.15 * head) & (middle[:, 2] < chin + 0.6 * head)
        shell.colour[glass] = _VISOR
    return [shell]


def _bag(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    size = body.body
    if outfit.bag == "backpack":
        rows = ((0.67, 0.055, 0.1), (0.70, 0.07, 0.11), (0.88, 0.055, 0.1))
        bones = {CHEST: 0.8, SPINE: 0.2}
        rings: list[Ring] = [
            (-0.125 * size, 0.0, z * size, rx * size, ry * size, bones) for z, rx, ry in rows
        ]
        if coarse:
            return [loft(rings[1:], [outfit.bag_colour], 3, closed=(False, False), front=1.5)]
        return [loft(rings, [outfit.bag_colour], 4)]
    if outfit.bag != "handbag" or coarse:
        return []
    y, bones = -0.14 * size * body.girth, {SPINE: 0.5, PELVIS: 0.5}
    bag: list[Ring] = [(-0.01 * size, y, z * size, rx * size, ry * size, bones) for z, rx, ry in _HANDBAG]
    thick, wide = 0.006 * size, 0.015 * size
    strap: list[Ring] = [
        (0.0, y, 0.68 * size, wide, thick, bones),
        (0.0, 0.75 * y, 0.955 * size, wide, thick, {CHEST: 1.0}),
    ]
    colours = [outfit.bag_colour]
    return [loft(bag, colours, 4), loft(strap, colours, 3, closed=(False, False))]


_HANDBAG = ((0.565, 0.1, 0.04), (0.69, 0.085, 0.03))
