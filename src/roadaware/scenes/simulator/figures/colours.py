"""Colours of figures, and turning the hues of finished meshes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats32
from roadaware.scenes.simulator.figures.form import Paint
from roadaware.scenes.simulator.mesh import Material, Mesh

Colour = tuple[float, float, float]

RUBBER = Paint((0.012, 0.012, 0.013))
RIM = Paint((0.34, 0.35, 0.37), Material.GLOSSY)
RIM_DARK = Paint((0.06, 0.06, 0.065))
SHADE = Paint((0.008, 0.008, 0.009))
GLASS = Paint((0.018, 0.024, 0.028), Material.GLASS)
PLASTIC = Paint((0.028, 0.028, 0.03))
METAL = Paint((0.3, 0.31, 0.33), Material.GLOSSY)
STEEL = Paint((0.14, 0.145, 0.155))
PLATE = Paint((0.72, 0.72, 0.72))
INK = Paint((0.01, 0.01, 0.01))
WHITE = Paint((0.72, 0.73, 0.73), Material.GLOSSY)

CAR_COLOURS: tuple[Colour, ...] = (
    (0.62, 0.63, 0.63),
    (0.32, 0.33, 0.34),
    (0.09, 0.095, 0.1),
    (0.02, 0.02, 0.022),
    (0.03, 0.06, 0.16),
    (0.22, 0.02, 0.02),
    (0.02, 0.07, 0.045),
    (0.24, 0.2, 0.14),
    (0.06, 0.16, 0.3),
    (0.3, 0.1, 0.02),
)
"""Muted, about in the order of how often they are seen; from white and grey to orange."""
CAR_WEIGHTS = (0.24, 0.2, 0.16, 0.13, 0.09, 0.07, 0.03, 0.03, 0.03, 0.02)
_MOST_TURNED = 1024
# Colours by the identity of what they were turned from, which is held so that its identity stays its own.
_TURNED: dict[tuple[int, float], tuple[Floats32, Floats32]] = {}


def car_paint(rng: np.random.Generator) -> Paint:
    """A coat of paint as cars have it, sometimes dusty.

    Args:
        rng: makes the choice.
    """
    colour = np.array(CAR_COLOURS[int(rng.choice(len(CAR_COLOURS), p=CAR_WEIGHTS))])
    colour = colour * rng.uniform(0.85, 1.15)
    dust = rng.uniform(0.1, 0.35) if rng.random() < 0.15 else 0.0
    return gloss(colour * (1 - dust) + np.array([0.2, 0.17, 0.13]) * dust)


def gloss(colour: npt.ArrayLike) -> Paint:
    """A glossy coat.

    Args:
        colour: (3,) linear.
    """
    red, green, blue = np.clip(np.asarray(colour, dtype=np.float64), 0.0, 1.0).tolist()
    return Paint((red, green, blue), Material.GLOSSY)


def matt(colour: npt.ArrayLike, material: Material = Material.MATT) -> Paint:
    """A dull surface.

    Args:
        colour: (3,) linear.
        material: how it answers light.
    """
    red, green, blue = np.clip(np.asarray(colour, dtype=np.float64), 0.0, 1.0).tolist()
    return Paint((red, green, blue), material)


def shaded(paint: Paint, share: float) -> Paint:
    """The same paint, darker or brighter.

    Args:
        paint: to change.
        share: of its light, below 1 for darker.
    """
    return matt(np.asarray(paint.colour) * share, paint.material)


def turned(mesh: Mesh, hue: float) -> Mesh:
    """A mesh with its hues turned around the circle; greys, lamps and what glows stay.

    Number plates are of grey, so that they stay too.

    Args:
        mesh: of anything.
        hue: 0 to 1, a full turn.
    """
    if hue % 1.0 == 0.0:
        return mesh
    # Frames of a figure share their colours, and arrays of meshes are never written to.
    key = (id(mesh.colour), hue)
    if key not in _TURNED:
        if len(_TURNED) >= _MOST_TURNED:
            _TURNED.clear()
        colour = turned_colours(mesh.colour, hue)
        kept = (mesh.material == Material.LAMP) | (mesh.glow > 0)
        colour[kept] = mesh.colour[kept]
        _TURNED[key] = (mesh.colour, colour)
    return replace(mesh, colour=_TURNED[key][1])


def turned_colours(colour: Floats32, hue: float) -> Floats32:
    """(n, 3) colours with another hue, and the saturation and value they had.

    Args:
        colour: (n, 3), 0 to 1.
        hue: 0 to 1, a full turn.
    """
    high, low = colour.max(axis=1), colour.min(axis=1)
    span = np.maximum(high - low, 1e-12)
    red, green, blue = colour.T
    sixth = np.where(
        high == red,
        (green - blue) / span,
        np.where(high == green, 2.0 + (blue - red) / span, 4.0 + (red - green) / span),
    )
    # The hexagon of hues: channel k falls from the highest value to the lowest and back.
    k = (np.array([5.0, 3.0, 1.0]) + (sixth + 6.0 * hue)[:, None]) % 6.0
    fall = np.clip(np.minimum(k, 4.0 - k), 0.0, 1.0)
    found: Floats32 = (high[:, None] - (high - low)[:, None] * fall).astype(np.float32)
    return found
