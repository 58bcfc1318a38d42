"""Traffic lights for vehicles and for walkers, on their poles."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from roadaware.scenes.simulator.actors import Light, Signal
from roadaware.scenes.simulator.figures.colours import PLASTIC, PLATE, SHADE, STEEL, Colour
from roadaware.scenes.simulator.figures.form import Bulb, Figure, Form, Paint
from roadaware.scenes.simulator.figures.shapes import Solid, box, cylinder, disc, loft, patch, window
from roadaware.scenes.simulator.mesh import Material, Mesh, Semantic, Soup, placed

LIT: dict[Light, Colour] = {
    Light.RED: (1.0, 0.03, 0.02),
    Light.AMBER: (1.0, 0.42, 0.02),
    Light.GREEN: (0.05, 0.95, 0.35),
}
"""Colours of lit lenses."""


def signal_mesh(signal: Signal, frame: int) -> Mesh:
    """A traffic light in a frame; its origin is the middle of its head, from which the pole goes down.

    Args:
        signal: position, state and whether it is for walkers.
        frame: of the scene; beyond its states the last one stays.
    """
    state = Light(int(signal.state[min(frame, len(signal.state) - 1)]))
    height = round(float(signal.position[2]), 2)
    return _lit(height, signal.for_walkers, state)


def signal_soup(signal: Signal, frame: int, instance: int) -> Soup:
    """A traffic light where it stands; its pole is not part of the instance, as boxes enclose heads only.

    Args:
        signal: position, heading, state and whether it is for walkers.
        frame: of the scene.
        instance: its value in instance masks.
    """
    soup = placed(signal_mesh(signal, frame), signal.position, signal.heading, instance)
    marks = np.where(soup.semantic == Semantic.POLE, 0, soup.instance).astype(np.int32)
    return replace(soup, instance=marks)


@lru_cache(maxsize=256)
def _lit(height: float, for_walkers: bool, state: Light) -> Mesh:
    return _head(height, for_walkers).lit(0 if state is Light.BLACK else 1 << state)


@lru_cache(maxsize=64)
def _head(height: float, for_walkers: bool) -> Figure:
    form = Form(Semantic.TRAFFIC_LIGHT)
    lenses = (Light.RED, Light.GREEN) if for_walkers else (Light.RED, Light.AMBER, Light.GREEN)
    pitch = 0.28 if for_walkers else 0.34
    half_wide, half_high = pitch * 0.54, pitch * (len(lenses) / 2 + 0.06)
    form.add(box((-0.2, -half_wide, -half_high), (0.0, half_wide, half_high)), PLASTIC)
    if not for_walkers:
        _board(form, half_wide + 0.14, half_high + 0.14)
    for place, light in enumerate(lenses):
        z = pitch * ((len(lenses) - 1) / 2 - place)
        red, green, blue = (0.06 * share for share in LIT[light])
        lens = disc((0.012, 0.0, z), pitch * 0.43, (1.0, 0.0, 0.0), 12)
        form.add(lens, Paint((red, green, blue), Material.LAMP), bulb=Bulb(1 << light, LIT[light], 1.5))
        form.add(_visor(z, pitch * 0.485), PLASTIC)
    if height > 0.5:
        pole = cylinder((-0.27, 0.0, -height), (-0.27, 0.0, half_high + 0.1), 0.06, 6)
        form.add(pole, STEEL, semantic=Semantic.POLE)
    return form.cast()


def _board(form: Form, wide: float, high: float) -> None:
    """The black board behind the head, with a white edge."""
    form.add(box((-0.12, -wide, -high), (-0.1, wide, high)), SHADE)
    face = [(-0.1, -wide, -high), (-0.1, wide, -high), (-0.1, wide, high), (-0.1, -wide, high)]
    for edge in (window(0.0, 0.05, 0.0, 1.0), window(0.95, 1.0, 0.0, 1.0), window(0.05, 0.95, 0.0, 0.025),
                 window(0.05, 0.95, 0.975, 1.0)):  # fmt: skip
        form.add(patch(face, edge, 0.004), PLATE)


def _visor(z: float, radius: float) -> Solid:
    """A hood over the upper half of a lens."""
    rings = []
    for angle in np.radians(np.linspace(-15, 195, 6)).tolist():
        deep = 0.11 if np.sin(angle) > 0 else 0.03
        rings.append([(x, share * radius * np.cos(angle), z + share * radius * np.sin(angle))
                      for x, share in ((0.0, 0.92), (deep, 0.92), (deep, 1.0), (0.0, 1.0))])  # fmt: skip
    return loft(rings)
