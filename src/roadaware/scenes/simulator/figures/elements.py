"""Fire and water as figures: flames that lick and flicker, and the brown sheet of a flood."""

from __future__ import annotations

import numpy as np

from roadaware.scenes.simulator.actors import Lamp
from roadaware.scenes.simulator.figures.form import Bulb, Form, Joint, Paint, Size
from roadaware.scenes.simulator.figures.shapes import box, patch, pipe
from roadaware.scenes.simulator.mesh import Material, Semantic

_TONGUES = ((0.0, 0.0, 1.0), (0.55, 0.2, 0.72), (-0.5, 0.35, 0.62), (0.1, -0.55, 0.8), (-0.35, -0.4, 0.55))
"""Where tongues of fire stand, in shares of the half width, and how high they are."""
_HEIGHTS, _GIRTHS = (0.0, 0.28, 0.62, 1.0), (0.75, 1.0, 0.6, 0.04)
_TIP, _MIDDLE, _FOOT = (1.0, 0.13, 0.015), (1.0, 0.36, 0.04), (1.0, 0.68, 0.2)
_GLOWS = (0.8, 1.1, 1.4)


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
        joint = Joint((*foot, 0.0), swing=0.16, phase=float(rng.uniform(0, 6.28)))
        spine = [(foot[0] + lean[0] * u, foot[1] + lean[1] * u, 0.02 + top * u) for u in _HEIGHTS]
        radii = [0.27 * min(long, wide) * girth for girth in _GIRTHS]
        for part, colour in enumerate((_FOOT, _MIDDLE, _TIP)):
            # The tips flicker by turns.
            bulb = Bulb(int(Lamp.BEACON), colour, _GLOWS[2 - part], turn=number % 2 if part == 2 else -1)
            piece = pipe(spine[part : part + 2], radii[part : part + 2], sides)
            form.add(piece, Paint(colour, Material.LAMP), joint=joint, bulb=bulb)
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
    brown = Paint((0.085, 0.062, 0.035), Material.GLOSSY)
    form.add(box((-x, -y, 0.0), (x, y, high - 0.012)), brown)
    for _ in range(12 if coarse else 240):
        at, across = rng.uniform(-x + 2.0, x - 2.0), rng.uniform(-y + 1.0, y - 1.0)
        half, thin = rng.uniform(0.3, 1.0), rng.uniform(0.04, 0.12)
        quad = np.array(
            [(at - thin, across - half, high - 0.012), (at + thin, across - 0.8 * half, high - 0.012),
             (at + 1.5 * thin, across + 0.8 * half, high - 0.012), (at, across + half, high - 0.012)]
        )  # fmt: skip
        tone = float(rng.uniform(0.4, 2.4))
        form.add(patch(quad, lift=0.01), Paint((0.085 * tone, 0.065 * tone, 0.04 * tone), Material.GLOSSY))
    return form
