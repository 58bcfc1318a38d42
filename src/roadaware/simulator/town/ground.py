"""The ground of roads and junctions: the surfaces of one town, where they lie, and the paint on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.layout import Junction, Lane, Layout, Road
from roadaware.simulator.mesh import Material, Semantic
from roadaware.simulator.town.buildings import SUBURB_M
from roadaware.simulator.town.drawing import Coat, Colour, Pile, triangulate_polygon
from roadaware.simulator.town.regions import KERB_M, Rules, build_outs, lateral_offset
from roadaware.simulator.town.roads import junction_kerbs
from roadaware.simulator.town.tracks import Track, strip

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
    # How far from a kerb to one side its bends leave room: the least radius of those that turn there.
    steps = np.hypot(*np.diff(kerb.points, axis=0).T)
    turned = side * np.diff(kerb.headings)
    radii = steps[turned > 1e-3] / turned[turned > 1e-3]
    # A strip that is wider than the radius of its bend would fold over itself.
    out = min(width + VERGE_M, float(radii.min(initial=np.inf)) * 0.97)
    if out > width:
        bands.append((width, out, VERGE_HIGH_M, palette.verge))
    for start, end, height, coat in bands:
        low, high = sorted((side * start, side * end))
        pile.flat(strip(kerb, low, high), height, coat)


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


@dataclass(frozen=True, eq=False)
class Brush:
    """Paints a stretch of road.

    Args:
        pile: gets the paint.
        layout: the road lies in.
        road: of it.
        track: the road's line.
        palette: of the town.
        span: start and end along the road.
        rules: what holds on it.
    """

    pile: Pile
    layout: Layout
    road: Road
    track: Track
    palette: Palette
    span: tuple[float, float]
    rules: Rules

    @property
    def free(self) -> tuple[tuple[float, float], ...]:
        """(start, end) along the road between crossings, where lines run."""
        return self.rules.free[self.road.number]

    def line(self, left: float, width: float, coat: Coat, start: float = 0.0, end: float = np.inf) -> None:
        """A line along the road, as far as it lies in the stretch.

        Args:
            left: of its middle from the road's line.
            width: of it.
            coat: its paint.
            start: along the road.
            end: along the road.
        """
        for first, last in self.free:
            low, high = max(start, self.span[0], first), min(end, self.span[1], last)
            if high - low > 0.05:
                piece = self.track.cut(low, high, 15.0)
                self.pile.flat(strip(piece, left - width / 2, left + width / 2), MARKING_M, coat)

    def dashes(
        self,
        left: float,
        width: float,
        coat: Coat,
        mark: float,
        gap: float,
        start: float = 0.0,
        end: float = np.inf,
    ) -> None:
        """A broken line along the road; its dashes begin at multiples of mark and gap.

        Args:
            left: of its middle from the road's line.
            width: of it.
            coat: its paint.
            mark: length of a dash.
            gap: between dashes.
            start: along the road.
            end: along the road.
        """
        beat = mark + gap
        low, high = max(start, self.span[0]), min(end, self.span[1], self.track.length - mark)
        # At multiples counted from the start of the road, so that the
        # dashes of stretches that meet fit together.
        starts = np.arange(np.ceil(low / beat - 1e-9) * beat, high, beat)
        clear = [(starts >= first) & (starts + mark <= last) for first, last in self.free]
        starts = starts[np.any(clear, axis=0)] if clear else starts[:0]
        if not len(starts):
            return
        a, b = self.track.at(starts), self.track.at(starts + mark)
        near, far = left - width / 2, left + width / 2
        quads = np.stack([a.beside(near), b.beside(near), b.beside(far), a.beside(far)], axis=1)
        self.pile.flat(quads, MARKING_M, coat)

    def stamp(self, s: float, left: float, shape: Floats, coat: Coat, forward: bool = True) -> None:
        """Faces drawn around a point of the road, seen by those who drive along it.

        Args:
            s: along the road.
            left: of the point from the road's line.
            shape: (n, 4, 2) along and left of the direction of travel.
            coat: its paint.
            forward: whether travel is along the road's line.
        """
        if not self.span[0] <= s < self.span[1]:
            return
        here = self.track.at(np.array([s]))
        angle = float(here.headings[0]) + (0.0 if forward else np.pi)
        c, sine = np.cos(angle), np.sin(angle)
        self.pile.flat(here.beside(left)[0] + shape @ np.array([[c, sine], [-sine, c]]), MARKING_M, coat)
