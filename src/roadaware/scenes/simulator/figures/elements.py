"""Fire and water as figures: flames that lick and flicker, and the brown sheet of a flood."""

from __future__ import annotations

import numpy as np

from roadaware.scenes.simulator.actors import Lamp
from roadaware.scenes.simulator.figures.form import Bulb, Form, Joint, Paint, Size
from roadaware.scenes.simulator.figures.shapes import box, patch, pipe
from roadaware.scenes.simulator.mesh import Material, Semantic

_TONGUES = ((0.0, 0.0, 1.0), (0.55, 0.2, 0.72), (-0.5, 0.35, 0.62), (0.1, -0.55, 0.8), (-0.35, -0.4, 0.55))
"""Where tongues of fire stand, in shares of the half width, and how high they are."""
_RED = Bulb(int(Lamp.BEACON), (1.0, 0.16, 0.02), 1.6)
_ORANGE = (
    Bulb(int(Lamp.BEACON), (1.0, 0.42, 0.05), 2.6, turn=0),
    Bulb(int(Lamp.BEACON), (1.0, 0.3, 0.03), 2.0, turn=1),
)
_YELLOW = Bulb(int(Lamp.BEACON), (1.0, 0.72, 0.22), 3.2)
_EMBERS = Paint((0.35, 0.05, 0.01), Material.LAMP)


def fire(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """Tongues of fire that swing with the gait and flicker as beacons do.

    Args:
        size: length, width and height in metres.
        rng: of their places.
        coarse: whether a few triangles are enough.
    """
    form = Form(Semantic.OBJECT)
    long, wide, high = size
    sides = 4 if coarse else 6
    for number, (x, y, tall) in enumerate(_TONGUES[: 3 if coarse else 5]):
        foot = (0.5 * long * x * 0.7, 0.5 * wide * y * 0.7)
        top = high * tall * float(rng.uniform(0.9, 1.05))
        lean = rng.uniform(-0.12, 0.12, 2) * (long, wide)
        joint = Joint((*foot, 0.0), swing=0.13, phase=float(rng.uniform(0, 6.28)))
        for share, bulb in (
            (1.0, _RED if number % 2 else _ORANGE[0]),
            (0.68, _ORANGE[number % 2]),
            (0.4, _YELLOW),
        ):
            # The hot core stands before the flame on the sides it is seen from.
            spine = [
                (foot[0] + lean[0] * u, foot[1] + lean[1] * u, 0.02 + share * top * u)
                for u in (0.0, 0.3, 0.65, 1.0)
            ]
            girth = 0.27 * min(long, wide) * (1.12 - 0.12 / share if share < 1 else 1.0)
            radii = [girth * g for g in (0.75, 1.0, 0.55, 0.04)]
            form.add(pipe(spine, radii, sides), _EMBERS, joint=joint, bulb=bulb)
    return form


def flood(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A sheet of brown water with ripples of other browns.

    Args:
        size: length, width and height in metres.
        rng: of the ripples.
        coarse: whether a few triangles are enough.
    """
    form = Form(Semantic.TERRAIN)
    long, wide, high = size
    x, y = long / 2, wide / 2
    brown = Paint((0.16, 0.115, 0.065), Material.GLOSSY)
    form.add(box((-x, -y, 0.0), (x, y, high - 0.012)), brown)
    for _ in range(12 if coarse else 160):
        at, across = rng.uniform(-x + 2.0, x - 2.0), rng.uniform(-y + 1.0, y - 1.0)
        half, thin = rng.uniform(0.3, 1.0), rng.uniform(0.04, 0.12)
        quad = np.array(
            [(at - thin, across - half, high - 0.012), (at + thin, across - 0.8 * half, high - 0.012),
             (at + 1.5 * thin, across + 0.8 * half, high - 0.012), (at, across + half, high - 0.012)]
        )  # fmt: skip
        tone = float(rng.uniform(0.6, 1.9))
        form.add(patch(quad, lift=0.01), Paint((0.16 * tone, 0.12 * tone, 0.075 * tone), Material.GLOSSY))
    return form
