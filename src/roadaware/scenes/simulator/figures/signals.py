"""Traffic lights for vehicles and for walkers, on their poles."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from roadaware.scenes.simulator.actors import Light, Signal
from roadaware.scenes.simulator.figures.colours import PLASTIC, SHADE, STEEL, Colour
from roadaware.scenes.simulator.figures.form import Bulb, Figure, Form, Paint
from roadaware.scenes.simulator.figures.shapes import Solid, cylinder, disc, loft, wedge
from roadaware.scenes.simulator.mesh import Material, Mesh, Semantic

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


@lru_cache(maxsize=256)
def _lit(height: float, for_walkers: bool, state: Light) -> Mesh:
    return _head(height, for_walkers).lit(0 if state is Light.BLACK else 1 << state)


@lru_cache(maxsize=64)
def _head(height: float, for_walkers: bool) -> Figure:
    form = Form(Semantic.TRAFFIC_LIGHT)
    lenses = (Light.RED, Light.GREEN) if for_walkers else (Light.RED, Light.AMBER, Light.GREEN)
    pitch = 0.26 if for_walkers else 0.3
    half_wide, half_high = pitch * 0.56, pitch * (len(lenses) / 2 + 0.08)
    back = wedge(
        (-0.16, 0.0, -half_wide, half_wide, -half_high), (-0.16, 0.0, -half_wide, half_wide, half_high)
    )
    form.add(back, PLASTIC)
    if not for_walkers:
        wide, high = half_wide + 0.13, half_high + 0.13
        board = wedge((-0.1, -0.08, -wide, wide, -high), (-0.1, -0.08, -wide, wide, high))
        form.add(board, SHADE)
        for sign in (-1, 1):
            edge = wedge(
                (-0.1, -0.075, sign * wide - 0.015, sign * wide + 0.015, -high),
                (-0.1, -0.075, sign * wide - 0.015, sign * wide + 0.015, high),
            )
            form.add(edge, Paint((0.7, 0.7, 0.7)))
    for place, light in enumerate(lenses):
        z = pitch * ((len(lenses) - 1) / 2 - place)
        dark = tuple(0.04 * share for share in LIT[light])
        lens = disc((0.012, 0.0, z), pitch * 0.4, (1.0, 0.0, 0.0), 10)
        bulb = Bulb(1 << light, LIT[light], 3.0)
        form.add(lens, Paint((dark[0], dark[1], dark[2]), Material.LAMP), bulb=bulb)
        form.add(_visor(z, pitch * 0.44), PLASTIC)
    if height > 0.5:
        pole = cylinder((-0.22, 0.0, -height), (-0.22, 0.0, half_high + 0.1), 0.06, 6)
        form.add(pole, STEEL, semantic=Semantic.POLE)
    return form.cast()


def _visor(z: float, radius: float) -> Solid:
    """A hood over the upper half of a lens, thin and closed."""
    angle = np.linspace(np.radians(-20), np.radians(200), 7)
    outer = np.stack([np.cos(angle), np.sin(angle)], axis=1) * radius
    rim = np.concatenate([outer, outer[::-1] * 0.9])
    depth = np.where(rim[:, 1] > 0, 0.17, 0.06)
    near = np.column_stack([np.zeros(len(rim)), rim[:, 0], rim[:, 1] + z])
    return loft([near, near + depth[:, None] * [1.0, 0.0, 0.0]])
