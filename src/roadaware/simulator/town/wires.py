"""Wires above the road, from lamp post to lamp post."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.layout import Layout
from roadaware.simulator.mesh import Soup
from roadaware.simulator.town.drawing import Pile
from roadaware.simulator.town.furniture import compute_lamp_position
from roadaware.simulator.town.palette import BLACK

_LEAST_M, _MOST_M = 6.0, 45.0
_NEXT = 2
_HALF_M = 0.02
_PARTS = 6


def wire_spans(layout: Layout) -> list[tuple[Floats, Soup]]:
    """The wires of a town: the (2,) middle and the triangles of each, which hang from posts near each other.

    Args:
        layout: of the town, with what stands there.
    """
    heads = np.array(
        [compute_lamp_position(prop) for prop in layout.props if prop.kind == "lamp_post"]
    ).reshape(-1, 3)
    away = np.hypot(*(heads[:, None, :2] - heads[None, :, :2]).transpose(2, 0, 1))
    away[(away < _LEAST_M) | (away > _MOST_M)] = np.inf
    pairs = set()
    for post in range(len(heads)):
        for other in np.argsort(away[post], kind="stable")[:_NEXT].tolist():
            if np.isfinite(away[post, other]):
                pairs.add((min(post, other), max(post, other)))
    return [((heads[a, :2] + heads[b, :2]) / 2, _span(heads[a], heads[b])) for a, b in sorted(pairs)]


def _span(start: Floats, end: Floats) -> Soup:
    """Two ribbons across each other, seen from both sides."""
    share = np.linspace(0.0, 1.0, _PARTS + 1)[:, None]
    line = start + share * (end - start)
    line[:, 2] -= 4 * (share * (1 - share))[:, 0] * 0.025 * float(np.hypot(*(end - start)[:2]))
    aside = np.array([-(end - start)[1], (end - start)[0], 0.0])
    pile = Pile()
    for way in (np.array([0.0, 0.0, _HALF_M]), _HALF_M * aside / max(float(np.hypot(*aside[:2])), 1e-9)):
        faces = np.stack([line[:-1] - way, line[1:] - way, line[1:] + way, line[:-1] + way], axis=1)
        pile.faces(faces, BLACK)
        pile.faces(faces[:, ::-1], BLACK)
    return pile.soup()
