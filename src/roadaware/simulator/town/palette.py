"""Palette: what the surfaces of one town look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.layout import Layout
from roadaware.simulator.mesh import Material, Semantic
from roadaware.simulator.town.buildings import SUBURB_M
from roadaware.simulator.town.drawing import Coat, Colour

WHITE = Coat((0.66, 0.66, 0.63), Material.MARKING, Semantic.MARKING)
YELLOW = Coat((0.62, 0.38, 0.03), Material.MARKING, Semantic.MARKING)
STEEL = Coat((0.16, 0.165, 0.17), Material.MATT, Semantic.POLE)
BLACK = Coat((0.02, 0.02, 0.022), Material.MATT, Semantic.POLE)


@dataclass(frozen=True)
class Palette:
    """Surfaces of a town.

    Args:
        asphalt: of roads.
        paving: of pavements.
        kerb: of kerb stones.
        verge: beside the pavements.
        terrain: everywhere else.
        bus: of bus lanes.
        cycle: of cycle lanes.
        centre: of the line between the directions.
        edge: of the line at the kerb.
        left: whether one drives on the left.
        lit: whether lamps are lit.
    """

    asphalt: Coat
    paving: Coat
    kerb: Coat
    verge: Coat
    terrain: Coat
    bus: Coat
    cycle: Coat
    centre: Coat
    edge: Coat
    left: bool
    lit: bool


_PAVINGS: tuple[Colour, ...] = ((0.25, 0.24, 0.22), (0.3, 0.27, 0.23), (0.2, 0.2, 0.2), (0.27, 0.22, 0.19))
_LANES: tuple[Colour, ...] = ((0.2, 0.05, 0.035), (0.03, 0.11, 0.045), (0.035, 0.07, 0.14))


def build_palette(layout: Layout, config: SceneConfig, conditions: Conditions) -> Palette:
    """The surfaces of a town; the same for the same layout.

    Args:
        layout: the look of the last thing that stands there decides.
        config: the side one drives on and the height of buildings.
        conditions: whether lamps are lit.
    """
    look = layout.props[-1].look if layout.props else 0
    rng = np.random.default_rng([look, 7])
    grey = float(rng.uniform(0.05, 0.085))
    warm = float(rng.uniform(-0.003, 0.004))
    asphalt = Coat((grey + warm, grey, grey - warm), Material.ASPHALT, Semantic.ROAD)
    paving = Coat(_PAVINGS[int(rng.integers(len(_PAVINGS)))], Material.PAVING, Semantic.PAVEMENT)
    suburb = config.surroundings.height_m < SUBURB_M
    grass = Coat((0.055, 0.1, 0.025), Material.GRASS, Semantic.TERRAIN)
    yard = Coat((0.17, 0.165, 0.155), Material.PAVING, Semantic.TERRAIN)
    painted = rng.random(2) < 0.65
    first = int(rng.integers(len(_LANES)))
    lanes = [Coat(_LANES[(first + k) % 3], Material.ASPHALT, Semantic.ROAD) for k in range(2)]
    left = config.surroundings.drive_on == "left"
    return Palette(
        asphalt,
        paving,
        Coat((0.33, 0.325, 0.31), Material.MATT, Semantic.PAVEMENT),
        grass if suburb else yard,
        grass,
        lanes[0] if painted[0] else asphalt,
        lanes[1] if painted[1] else asphalt,
        WHITE if left else YELLOW,
        YELLOW if left else WHITE,
        left,
        conditions.time != "day",
    )
