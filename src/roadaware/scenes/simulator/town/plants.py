"""Trees and hedges."""

from __future__ import annotations

import numpy as np

from roadaware.scenes.simulator.layout import Prop
from roadaware.scenes.simulator.mesh import Material, Semantic
from roadaware.scenes.simulator.town.masonry import Coat, Colour, Pile

_LEAVES: tuple[Colour, ...] = (
    (0.06, 0.13, 0.025),
    (0.045, 0.1, 0.03),
    (0.09, 0.14, 0.025),
    (0.12, 0.12, 0.03),
    (0.035, 0.085, 0.04),
)
_BARK = Coat((0.09, 0.065, 0.045), Material.MATT, Semantic.VEGETATION)


def _leaves(rng: np.random.Generator) -> Coat:
    base = np.array(_LEAVES[int(rng.integers(len(_LEAVES)))]) * rng.uniform(0.8, 1.25)
    red, green, blue = base.tolist()
    return Coat((red, green, blue), Material.FOLIAGE, Semantic.VEGETATION)


def tree(prop: Prop, fine: bool) -> Pile:
    """A tree in its own axes: round, tall or a fir.

    Args:
        prop: diameter of its crown, height and look.
        fine: whether its crown has many parts.
    """
    rng = np.random.default_rng(prop.look)
    wide, _, high = prop.size_m
    pile, leaves, draw = Pile(), _leaves(rng), float(rng.random())
    trunk = 0.06 + 0.022 * high
    if draw < 0.15:
        pile.prism((0.0, 0.0), (trunk, trunk * 0.6), 0.0, high * 0.3, _BARK, 5)
        for k, low in enumerate((0.16, 0.4, 0.64)[: 3 if fine else 2]):
            radius = wide / 2 * (0.85 - 0.22 * k)
            coat = leaves.shaded(0.7 + 0.1 * k)
            pile.prism((0.0, 0.0), (radius, 0.0), high * low, high * min(1.0, low + 0.42), coat, 7)
        return pile
    foot = min(2.3, high * 0.4)
    pile.prism((0.0, 0.0), (trunk, trunk * 0.7), 0.0, foot + 0.3 * (high - foot), _BARK, 6 if fine else 4)
    radius, middle = wide / 2 * (0.65 if draw > 0.85 else 1.0), (foot + high) / 2
    tall = (high - foot) / 2
    lumps = [(0.0, 0.0, middle, 0.82, 0.95)]
    if fine:
        for angle in np.arange(4) * np.pi / 2 + rng.uniform(0.0, 1.5):
            out = radius * rng.uniform(0.32, 0.5)
            up = middle + tall * rng.uniform(-0.35, 0.4)
            lumps.append((out * np.cos(angle), out * np.sin(angle), float(up), 0.56, 0.58))
    for x, y, z, across, upward in lumps:
        shade = leaves.shaded(float(rng.uniform(0.85, 1.15)))
        bumps = rng.uniform(0.82, 1.12, 12)
        pile.lump((float(x), float(y), z), (radius * across, radius * across, tall * upward), shade, bumps)
    return pile


def hedge(prop: Prop, fine: bool) -> Pile:
    """A hedge in its own axes, with an uneven top.

    Args:
        prop: thickness, length, height and look.
        fine: whether its top is uneven.
    """
    rng = np.random.default_rng(prop.look)
    thick, wide, high = prop.size_m
    pile, leaves = Pile(), _leaves(rng)
    n = max(1, round(wide / 1.2)) if fine else 1
    edges = np.linspace(-wide / 2, wide / 2, n + 1)
    tops = high * rng.uniform(0.9, 1.08, n)
    for low, end, top in zip(edges, edges[1:], tops, strict=False):
        pile.box((-thick / 2, float(low), 0.0), (thick / 2, float(end), float(top)), leaves)
    return pile
