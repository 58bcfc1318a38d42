"""What stands beside the roads: buildings with their gardens, and everything on the pavements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.layout import Layout
from roadaware.scenes.simulator.town.kerbside import place_kerbside
from roadaware.scenes.simulator.town.plots import Plots, place_buildings
from roadaware.scenes.simulator.town.regions import Regions


def place_props(layout: Layout, config: SceneConfig, rng: np.random.Generator) -> Layout:
    """A layout with everything that stands beside its roads.

    Args:
        layout: without props.
        config: height of buildings and greenery.
        rng: of the town.
    """
    regions = Regions(layout)
    where = config.surroundings
    props = place_kerbside(layout, where, regions, rng)
    props += place_buildings(layout, where, Plots(regions), rng)
    return replace(layout, props=tuple(props))
