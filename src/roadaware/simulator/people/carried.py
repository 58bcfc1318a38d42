"""Things carried: flags, signs, phones, stones, flares, umbrellas, bags and sticks, as a hand holds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from roadaware.simulator.mesh import Material
from roadaware.simulator.people.clothes import Piece, Ring, loft, slab
from roadaware.simulator.people.outfits import Colour, Outfit
from roadaware.simulator.people.skeleton import CLOTH_M
from roadaware.simulator.people.statures import CLOTH_FAR, CLOTH_NEAR, HELD, Stature

Item = Literal[
    "", "phone", "screen", "flag", "sign", "stone", "flare", "umbrella", "stick", "shopping", "club"
]
_WOOD: Colour = (0.30, 0.19, 0.10)
_DARK: Colour = (0.012, 0.012, 0.014)
_PAPER: Colour = (0.80, 0.79, 0.74)
_BONE = {HELD: 1.0}


def build_carried_item(item: Item, body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    """The pieces of what somebody holds, around the origin of the hand.

    Args:
        item: what; "" for nothing.
        body: lengths of the bones.
        outfit: its colours.
        coarse: whether a few triangles are enough.
    """
    makers: dict[str, Callable[[Stature, Outfit, bool], list[Piece]]] = {
        "phone": _phone,
        "screen": _screen,
        "flag": _flag,
        "sign": _sign,
        "stone": _stone,
        "flare": _flare,
        "umbrella": _umbrella,
        "stick": _stick,
        "shopping": _shopping,
        "club": _club,
    }
    return makers[item](body, outfit, coarse) if item else []


def _rod(low: float, high: float, radius: float, colour: Colour, x: float = 0.0) -> Piece:
    rings = [(x, 0.0, z, radius, radius, _BONE) for z in (low, high)]
    return loft(rings, [colour], 3, Material.MATT, closed=(False, False))


def _column(rows: Sequence[tuple[float, float, float]], coarse: bool) -> list[Ring]:
    """Rings round the hand's upright: height and radii; from far away the first and last are enough."""
    rings: list[Ring] = [(0.0, 0.0, z, rx, ry, _BONE) for z, rx, ry in rows]
    return [rings[0], rings[-1]] if coarse else rings


def _board(
    wide: float, high: float, z: float, colour: Colour, material: Material, x: float, thick: float, rim: bool
) -> Piece:
    y, low, top = wide / 2, z - high / 2, z + high / 2
    corners = np.array([(x, -y, low), (x, y, low), (x, y, top), (x, -y, top)])
    return slab(corners, (-thick, 0.0, 0.0), [_BONE] * 4, colour, material, rim)


def _phone(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    corners = np.array(
        [(-0.04, 0.035, -0.05), (0.035, 0.035, -0.05), (0.035, 0.035, 0.1), (-0.04, 0.035, 0.1)]
    )
    return [slab(corners[::-1], (0.0, -0.014, 0.0), [_BONE] * 4, _DARK, Material.GLOSSY, not coarse)]


def _screen(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    return [_board(0.21, 0.11, 0.06, _DARK, Material.GLOSSY, 0.03, 0.014, not coarse)]


def _flag(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body
    top, low, middle = 1.55, 0.93, -CLOTH_M / 2
    near, bend, far = {CLOTH_NEAR: 1.0}, {CLOTH_NEAR: 0.5, CLOTH_FAR: 0.5}, {CLOTH_FAR: 1.0}
    pieces = [_rod(-0.55, top + 0.05, 0.018, _WOOD)]
    for x0, x1, start, end in ((0.0, middle, near, bend), (middle, -CLOTH_M, bend, far)):
        bones = [start, start, end, end]
        corners = np.array([(x0, 0.0, low), (x0, 0.0, top), (x1, 0.0, top), (x1, 0.0, low)])
        pieces.append(slab(corners, (0.0, 0.006, 0.0), bones, outfit.hat_colour, Material.CLOTH, rim=False))
        if not coarse:
            stripe = corners - (0.0, 0.008, 0.0)
            stripe[[0, 3], 2], stripe[[1, 2], 2] = low + 0.21, low + 0.41
            pieces.append(slab(stripe, (0.0, 0.022, 0.0), bones, _PAPER, Material.CLOTH, rim=False))
    return pieces


def _sign(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body
    board = _board(0.72, 0.5, 0.62, _PAPER, Material.MATT, 0.01, 0.02, not coarse)
    pieces = [_rod(-0.3, 0.55, 0.016, _WOOD, -0.02), board]
    if coarse:
        return pieces
    for z, wide in ((0.76, 0.56), (0.62, 0.44), (0.48, 0.52)):
        colour = outfit.bag_colour if z == 0.62 else _DARK
        pieces.append(_board(wide, 0.09, z, colour, Material.MATT, 0.016, 0.034, rim=False))
    return pieces


def _stone(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    rings = _column(((-0.05, 0.03, 0.03), (0.0, 0.055, 0.05), (0.05, 0.03, 0.03)), coarse)
    return [loft(rings, [(0.2, 0.19, 0.18)], 4 if coarse else 5, Material.MATT)]


def _flare(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    flame = _column(((0.22, 0.03, 0.03), (0.34, 0.075, 0.075), (0.52, 0.012, 0.012)), coarse)
    fire = loft(flame, [(1.0, 0.35, 0.2), (1.0, 0.6, 0.3)], 3 if coarse else 6, Material.LAMP, glow=4.0)
    return [_rod(-0.08, 0.24, 0.018, (0.45, 0.05, 0.04)), fire]


def _umbrella(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    low = 0.33 * body.height
    rings = _column(((low, 0.56, 0.56), (low + 0.13, 0.4, 0.4), (low + 0.22, 0.03, 0.03)), coarse)
    roof = loft(rings, [outfit.hat_colour], 5 if coarse else 8, closed=(True, not coarse))
    return [_rod(-0.06, low + 0.2, 0.01, _DARK), roof]


def _stick(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del outfit, coarse
    return [_rod(-0.44 * body.height, 0.0, 0.014, _WOOD)]


def _club(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del outfit
    size = body.body
    rows = ((-0.12 * size, 0.017, 0.017), (0.2 * size, 0.021, 0.021), (0.56 * size, 0.034, 0.034))
    return [loft(_column(rows, coarse), [_WOOD], 4, Material.MATT)]


def _shopping(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    size = body.body
    rows = ((-0.27 * size, 0.1 * size, 0.05 * size), (-0.06 * size, 0.085 * size, 0.025 * size))
    bag = loft(_column(rows, coarse), [outfit.bag_colour], 4, closed=(not coarse, not coarse))
    handle = _column(((-0.06 * size, 0.05 * size, 0.006), (0.0, 0.015 * size, 0.006)), coarse)
    return [bag] if coarse else [bag, loft(handle, [outfit.bag_colour], 3, closed=(False, False))]
