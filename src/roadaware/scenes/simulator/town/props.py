"""What stands beside the roads: buildings, gardens, trees, lamp posts, bus shelters, signs and small things."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.layout import Layout, Prop


def place_props(layout: Layout, config: SceneConfig, rng: np.random.Generator) -> Layout:
    """A layout with everything that stands beside its roads.

    Args:
        layout: without props.
        config: height of buildings and greenery.
        rng: of the town.
    """
    props: list[Prop] = []
    for road in layout.roads:
        for side in (1, -1):
            for s in np.arange(8.0, road.line.length - 8.0, 14.0):
                out = road.half_width_m + road.pavement_m + 6.0
                place = road.line.beside(s, side * out)
                facing = float(road.line.heading(s)) - side * np.pi / 2
                size = (9.0, 12.0, float(config.surroundings.height_m * rng.uniform(0.7, 1.4)))
                look = int(rng.integers(2**31))
                props.append(Prop("building", (float(place[0]), float(place[1])), facing, size, look))
    return replace(layout, props=tuple(props))
