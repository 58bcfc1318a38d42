"""The ground of roads and junctions, and everything painted on it."""

from __future__ import annotations

import numpy as np

from roadaware.simulator.layout import Junction, Lane, Layout, Road
from roadaware.simulator.mesh import Material, Semantic
from roadaware.simulator.town.drawing import Coat, Pile, triangulate_polygon
from roadaware.simulator.town.palette import Palette
from roadaware.simulator.town.regions import KERB_M, build_outs, lateral_offset
from roadaware.simulator.town.roads import junction_kerbs
from roadaware.simulator.town.tracks import Track, strip

COLOURED_M, MARKING_M = 0.005, 0.01
"""How high coloured surfaces and markings lie above the asphalt."""
STONE_M = 0.15
VERGE_M, VERGE_HIGH_M = 8.0, 0.1
SPACING_M = 12.0


def add_road_ground(
    pile: Pile, layout: Layout, road: Road, track: Track, palette: Palette, span: tuple[float, float]
) -> None:
    """The ground of a stretch of road.

    Args:
        pile: gets it.
        layout: it lies in.
        road: of the layout.
        track: the road's line.
        palette: of the town.
        span: start and end along the road.
    """
    piece = track.cut(*span, SPACING_M)
    half = road.half_width_m
    pile.flat(strip(piece, -half, half), 0.0, palette.asphalt)
    for number in road.lanes:
        lane = layout.lanes[number]
        coat = {"bus": palette.bus, "cycle": palette.cycle}.get(lane.kind, palette.asphalt)
        if coat is not palette.asphalt:
            middle, wide = lateral_offset(lane, road), lane.width_m / 2
            pile.flat(strip(piece, middle - wide, middle + wide), COLOURED_M, coat)
        if lane.kind == "parking":
            _lay_build_outs(pile, lane, road, palette, span)
    for side in (1, -1):
        edge = Track(piece.beside(side * half), piece.headings)
        _lay_pavement(pile, edge, side, road.pavement_m, palette)


def _lay_pavement(pile: Pile, kerb: Track, side: int, width: float, palette: Palette) -> None:
    """Kerb stones, pavement and verge on one side (1 left, -1 right) of a kerb line."""
    foot = np.stack([kerb.points[:-1], kerb.points[1:]], axis=1)
    pile.upright(foot if side == 1 else foot[:, ::-1], 0.0, KERB_M, palette.kerb)
    bands = [(0.0, STONE_M, KERB_M, palette.kerb), (STONE_M, width, KERB_M, palette.paving)]
    out = min(width + VERGE_M, _room(kerb, side))
    if out > width:
        bands.append((width, out, VERGE_HIGH_M, palette.verge))
    for start, end, height, coat in bands:
        low, high = sorted((side * start, side * end))
        pile.flat(strip(kerb, low, high), height, coat)


def _room(kerb: Track, side: int) -> float:
    """How far from a kerb to one side its bends leave room: the least radius of those that turn there."""
    steps = np.hypot(*np.diff(kerb.points, axis=0).T)
    turned = side * np.diff(kerb.headings)
    radii = steps[turned > 1e-3] / turned[turned > 1e-3]
    # A strip that is wider than the radius of its bend would fold over itself.
    return float(radii.min(initial=np.inf)) * 0.97


def _lay_build_outs(pile: Pile, lane: Lane, road: Road, palette: Palette, span: tuple[float, float]) -> None:
    for piece in build_outs(lane):
        s = float(road.line.project(piece[0].mean(axis=0))[0][0])
        if span[0] <= s < span[1]:
            pile.flat(piece, KERB_M, palette.paving)
            ring = piece[0]
            pile.upright(np.stack([ring, np.roll(ring, -1, axis=0)], axis=1), 0.0, KERB_M, palette.kerb)


def add_junction_ground(pile: Pile, layout: Layout, junction: Junction, palette: Palette) -> None:
    """The ground of a junction and of the pavements round its corners.

    Args:
        pile: gets it.
        layout: it lies in.
        junction: of the layout.
        palette: of the town.
    """
    pile.flat(triangulate_polygon(junction.outline), 0.0, palette.asphalt)
    for kerb, width in junction_kerbs(layout, junction):
        _lay_pavement(pile, kerb, -1, width, palette)


def add_terrain(pile: Pile, palette: Palette, place: tuple[float, float], far_m: float) -> None:
    """The ground below everything.

    Args:
        pile: gets it.
        palette: of the town.
        place: its middle.
        far_m: how far it reaches.
    """
    x, y = place
    for a, b in ((-1, -1), (0, -1), (-1, 0), (0, 0)):
        low = np.array([x + a * far_m, y + b * far_m])
        square = low + far_m * np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        # Below all other ground, or the two would flicker through each other.
        pile.flat(square[None], -0.05, palette.terrain)


TACTILE = Coat((0.38, 0.3, 0.17), Material.PAVING, Semantic.PAVEMENT)
