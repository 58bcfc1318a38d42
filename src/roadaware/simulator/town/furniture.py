"""What lies and stands on the ground of a town: surfaces and paint, lamp posts, signs, shelters, trees, traffic lights."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.config import Conditions, SceneConfig, Surroundings
from roadaware.simulator.layout import Junction, Lane, Layout, Prop, PropKind, Road, SignalSite
from roadaware.simulator.mesh import Material, Semantic
from roadaware.simulator.town.buildings import SUBURB_M
from roadaware.simulator.town.regions import (
    KERB_M,
    Coat,
    Colour,
    On,
    Pile,
    Regions,
    Rules,
    build_outs,
    build_word_symbol,
    lateral_offset,
    triangulate_polygon,
)
from roadaware.simulator.town.roads import Track, junction_kerbs, strip

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
    """The ground of a stretch of road."""
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
    """The ground of a junction and of the pavements round its corners."""
    pile.flat(triangulate_polygon(junction.outline), 0.0, palette.asphalt)
    for kerb, width in junction_kerbs(layout, junction):
        _lay_pavement(pile, kerb, -1, width, palette)


def add_terrain(pile: Pile, palette: Palette, place: tuple[float, float], far_m: float) -> None:
    """The ground below everything."""
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


# What stands on the pavements: lamp posts, trees, signs, bus shelters, bins and bollards.

SIGNS = ("give_way", "speed", "parking", "warning", "arrow")
"""Kinds of signs; the remainder of `look` by their number says which."""
LAMP_GAP_M = 27.0


@dataclass(eq=False)
class Kerb:
    """One side of a road with what stands at its kerb.

    Args:
        road: of it.
        side: 1 left of its line, -1 right.
        busy: (start, end) along the road that must stay free.
        regions: to keep off the road.
        poles: (n, 2) what stands there already.
    """

    road: Road
    side: int
    busy: list[tuple[float, float]]
    regions: Regions
    poles: list[Floats]

    def stand(
        self,
        kind: PropKind,
        s: float,
        out: float,
        size: tuple[float, float, float],
        look: int,
        turn: float = 0.0,
    ) -> list[Prop]:
        """One thing, or none where people cross, wait or something stands.

        Args:
            kind: what.
            s: along the road.
            out: from the kerb outwards.
            size: length, width, height.
            look: of it.
            turn: of its front from facing the road, in radians.
        """
        line = self.road.line
        if not 0.5 < s < line.length - 0.5 or any(low < s < high for low, high in self.busy):
            return []
        place = line.beside(s, self.side * (self.road.half_width_m + out))
        if self.poles and np.hypot(*(np.array(self.poles) - place).T).min() < 1.2:
            return []
        if self.regions.at(place).on[0] != On.PAVEMENT:
            return []
        self.poles.append(place)
        heading = float(line.heading(s)) - self.side * np.pi / 2 + turn
        return [Prop(kind, (float(place[0]), float(place[1])), heading, size, look)]


def generate_kerbside_props(
    layout: Layout, where: Surroundings, regions: Regions, rng: np.random.Generator
) -> list[Prop]:
    """Everything on the pavements of a layout.

    Args:
        layout: of roads.
        where: greenery and the side one drives on.
        regions: of the layout.
        rng: of the town.
    """
    found: list[Prop] = []
    poles = {road.number: _poles(layout, road) for road in layout.roads}
    for road in layout.roads:
        for side in (1, -1):
            own = [crossing for crossing in layout.crossings if crossing.road == road.number]
            kerb = Kerb(
                road,
                side,
                [(x.s_m - x.width_m / 2 - 1.2, x.s_m + x.width_m / 2 + 1.2) for x in own],
                regions,
                poles[road.number],
            )
            found += _shelters(layout, kerb)
            found += _signs(layout, kerb, where, rng)
            found += _lamps(kerb, rng)
            found += _trees(kerb, where, rng)
            found += _small(kerb, rng)
    return found


def _poles(layout: Layout, road: Road) -> list[Floats]:
    """Where the traffic lights near a road stand."""
    places = np.array([site.position[:2] for site in layout.signals]).reshape(-1, 2)
    if not len(places):
        return []
    gap = np.abs(road.line.project(places)[1])
    return list(places[gap < road.half_width_m + road.pavement_m + 8.0])


def _shelters(layout: Layout, kerb: Kerb) -> list[Prop]:
    """A bus shelter at the back of the pavement for each stop; nothing else stands before it."""
    found: list[Prop] = []
    for lane in (layout.lanes[number] for number in kerb.road.lanes):
        if lane.side != kerb.side:
            continue
        for start, end in lane.bays:
            place = lane.line.at(np.array([(start + end) / 2]))
            s = float(kerb.road.line.project(place)[0][0])
            line, out = kerb.road.line, kerb.road.half_width_m + kerb.road.pavement_m - 0.75
            spot = line.beside(s, kerb.side * out)
            heading = float(line.heading(s)) - kerb.side * np.pi / 2
            kerb.busy.append((s - 5.0, s + 5.0))
            found.append(
                Prop("bus_stop", (float(spot[0]), float(spot[1])), heading, (1.3, 3.8, 2.5), lane.number)
            )
    return found


def _signs(layout: Layout, kerb: Kerb, where: Surroundings, rng: np.random.Generator) -> list[Prop]:
    """Give-way signs where lanes give way, and others now and then; all face those who drive towards them."""
    found: list[Prop] = []
    near = 1 if where.drive_on == "left" else -1
    forward = kerb.side == near
    length = kerb.road.line.length
    stops = {number for junction in layout.junctions if not junction.signals for number in junction.stops}
    for lane in (layout.lanes[number] for number in kerb.road.lanes):
        if lane.number in stops and lane.side == kerb.side and lane.order == 0:
            s = length - 2.5 if forward else 2.5
            found += _sign(kerb, s, 0, forward, rng)
    for s in np.arange(rng.uniform(10.0, 40.0), length, 45.0):
        found += _sign(
            kerb, float(s + rng.uniform(0.0, 20.0)), int(rng.integers(1, len(SIGNS))), forward, rng
        )
    return found


def _sign(kerb: Kerb, s: float, kind: int, forward: bool, rng: np.random.Generator) -> list[Prop]:
    look = int(rng.integers(2**20)) * len(SIGNS) + kind
    # From facing the road to facing those who come: forward traffic comes from the road's start.
    turn = -kerb.side * np.pi / 2 if forward else kerb.side * np.pi / 2
    return kerb.stand("sign", s, 0.4, (0.1, 0.7, 2.7), look, turn)


def _lamps(kerb: Kerb, rng: np.random.Generator) -> list[Prop]:
    found: list[Prop] = []
    height = 6.5 if kerb.road.half_width_m < 6.0 else 8.0
    n = max(1, round(kerb.road.line.length / LAMP_GAP_M))
    places = np.linspace(3.0, kerb.road.line.length - 3.0, n + 1)
    # Those of the two sides stand in turn.
    for s in places if kerb.side == 1 else (places[1:] + places[:-1]) / 2:
        look = int(rng.integers(2**31))
        for moved in (0.0, 3.5, -3.5):
            stood = kerb.stand("lamp_post", float(s + moved), 0.5, (1.5, 0.16, height), look)
            if stood:
                found += stood
                break
    return found


def _trees(kerb: Kerb, where: Surroundings, rng: np.random.Generator) -> list[Prop]:
    found: list[Prop] = []
    if rng.random() > 0.25 + where.greenery:
        return found
    s = float(rng.uniform(4.0, 12.0))
    while s < kerb.road.line.length:
        look, draw = int(rng.integers(2**31)), float(rng.random())
        crown = float(rng.uniform(2.6, 4.6))
        size = (crown, crown, float(rng.uniform(4.8, 8.5)))
        if draw < where.greenery:
            found += kerb.stand("tree", s, 0.75, size, look, float(rng.uniform(-3.0, 3.0)))
        s += float(rng.uniform(8.0, 15.0))
    return found


def _small(kerb: Kerb, rng: np.random.Generator) -> list[Prop]:
    """Bins now and then, and rows of bollards."""
    found: list[Prop] = []
    length = kerb.road.line.length
    for s in np.arange(15.0, length, 38.0):
        look = int(rng.integers(2**31))
        found += kerb.stand("bin", float(s + rng.uniform(-9.0, 9.0)), 0.55, (0.5, 0.5, 1.1), look)
    for _ in range(int(rng.integers(0, 2) + length / 150)):
        start, look = float(rng.uniform(5.0, max(6.0, length - 15.0))), int(rng.integers(2**31))
        for k in range(int(rng.integers(3, 7))):
            found += kerb.stand("bollard", start + 1.7 * k, 0.35, (0.16, 0.16, 1.0), look)
    return found


WARM: Colour = (1.0, 0.72, 0.38)
AMBER: Colour = (1.0, 0.5, 0.06)
_FENCE: tuple[Colour, ...] = ((0.16, 0.1, 0.06), (0.5, 0.5, 0.48), (0.05, 0.06, 0.06))
_PLATE = {
    "white": Coat((0.68, 0.68, 0.68), Material.MATT, Semantic.TRAFFIC_SIGN),
    "red": Coat((0.5, 0.02, 0.02), Material.MATT, Semantic.TRAFFIC_SIGN),
    "blue": Coat((0.015, 0.08, 0.36), Material.MATT, Semantic.TRAFFIC_SIGN),
    "black": Coat((0.015, 0.015, 0.015), Material.MATT, Semantic.TRAFFIC_SIGN),
    "grey": Coat((0.2, 0.2, 0.2), Material.MATT, Semantic.TRAFFIC_SIGN),
}


def compute_lamp_position(prop: Prop) -> tuple[float, float, float]:
    """(x, y, z) of the lamp of a lamp post in the world."""
    arm, _, high = prop.size_m
    x, y = prop.position
    return (x + arm * float(np.cos(prop.heading)), y + arm * float(np.sin(prop.heading)), high + KERB_M - 0.1)


def build_lamp_post(prop: Prop, fine: bool, lit: bool) -> Pile:
    """A post with an arm over the road.

    Args:
        prop: length of the arm, thickness, height.
        fine: whether its foot is thicker.
        lit: whether it shines.
    """
    arm, thick, high = prop.size_m
    pile = Pile()
    pile.prism((0.0, 0.0), (thick * 0.55, thick * 0.35), KERB_M, high, STEEL, 6 if fine else 4)
    if fine:
        pile.prism((0.0, 0.0), (thick * 0.8, thick * 0.8), KERB_M, 1.1, STEEL, 6)
    pile.box((-0.05, -0.05, high - 0.05), (arm - 0.3, 0.05, high + 0.04), STEEL)
    pile.box((arm - 0.4, -0.16, high - 0.02), (arm + 0.4, 0.16, high + 0.14), STEEL)
    lamp = Coat(WARM if lit else (0.6, 0.6, 0.58), Material.LAMP, Semantic.POLE, 3.0 if lit else 0.0)
    pile.under((arm - 0.36, -0.14), (arm + 0.36, 0.14), high - 0.025, lamp)
    if lit:
        # A rim that shines too, so that it is seen from afar.
        rim = np.array([[arm - 0.36, -0.14], [arm + 0.36, -0.14], [arm + 0.36, 0.14], [arm - 0.36, 0.14]])
        pile.upright(np.stack([rim, np.roll(rim, -1, axis=0)], axis=1), high - 0.1, high - 0.025, lamp)
    return pile


def _disc(x: float, z: float, radius: float, n: int, start: float = 0.0) -> Floats:
    """(n, 3, 3) a regular plate that faces along x."""
    angle = start + np.arange(n + 1) * 2 * np.pi / n
    rim = np.stack([np.full(n + 1, x), radius * np.cos(angle), z + radius * np.sin(angle)], axis=1)
    hub = np.broadcast_to(np.array([x, 0.0, z]), (n, 3))
    return np.stack([hub, rim[:-1], rim[1:]], axis=1)


def _plate(pile: Pile, z: float, radius: float, n: int, start: float, border: str, face: str) -> None:
    pile.faces(_disc(0.05, z, radius, n, start), _PLATE[border])
    pile.faces(_disc(0.06, z, radius * 0.74, n, start), _PLATE[face])
    pile.faces(_disc(0.045, z, radius, n, start)[:, ::-1], _PLATE["grey"])


def _face_box(pile: Pile, left: float, low: float, wide: float, high: float, coat: Coat) -> None:
    """A rectangle on a plate that faces along x; left is its middle."""
    a, b = left - wide / 2, left + wide / 2
    pile.faces([[[0.07, a, low], [0.07, b, low], [0.07, b, low + high], [0.07, a, low + high]]], coat)


def _text(pile: Pile, text: str, z: float, wide: float, high: float, coat: Coat) -> None:
    """Letters on a plate that faces along x, for those who look at it."""
    shape = build_word_symbol(text, wide, high)
    level = np.full(shape.shape[:2], 0.07)
    pile.faces(np.stack([level, -shape[..., 1], z + shape[..., 0]], axis=2), coat)


def build_sign(prop: Prop, fine: bool) -> Pile:
    """A traffic sign on its post.

    Args:
        prop: its height; its look says which sign.
        fine: whether there is something on its face.
    """
    pile, z = Pile(), prop.size_m[2] - 0.2
    pile.prism((0.0, 0.0), (0.035, 0.035), KERB_M, prop.size_m[2] + 0.1, STEEL, 5 if fine else 4)
    kind = SIGNS[prop.look % len(SIGNS)]
    if kind == "give_way":
        _plate(pile, z, 0.45, 3, -np.pi / 2, "red", "white")
    elif kind == "warning":
        _plate(pile, z, 0.45, 3, np.pi / 2, "red", "white")
        _face_box(pile, 0.0, z - 0.12, 0.07, 0.22, _PLATE["black"])
    elif kind == "speed":
        _plate(pile, z, 0.33, 12, 0.0, "red", "white")
        if fine:
            number = ("20", "30", "50")[prop.look // len(SIGNS) % 3]
            _text(pile, number, z, 0.36, 0.28, _PLATE["black"])
    elif kind == "parking":
        _plate(pile, z, 0.4, 4, np.pi / 4, "white", "blue")
        if fine:
            _text(pile, "P", z, 0.22, 0.36, _PLATE["white"])
    else:
        _plate(pile, z, 0.33, 12, 0.0, "white", "blue")
        _face_box(pile, 0.0, z - 0.18, 0.07, 0.28, _PLATE["white"])
        pile.faces(
            [[[0.07, -0.15, z + 0.06], [0.07, 0.15, z + 0.06], [0.07, 0.0, z + 0.22]]], _PLATE["white"]
        )
    return pile


def build_bus_stop(prop: Prop, fine: bool, lit: bool) -> Pile:
    """A shelter at the back of the pavement and a pole with a flag before it.

    Args:
        prop: its size.
        fine: whether it has a bench and a timetable.
        lit: whether its advertisement shines.
    """
    deep, wide, high = prop.size_m[0] / 2, prop.size_m[1] / 2, prop.size_m[2] + KERB_M
    pile, ground = Pile(), KERB_M
    frame = Coat((0.07, 0.075, 0.08), Material.MATT, Semantic.OBJECT)
    pane = Coat((0.12, 0.15, 0.15), Material.GLASS, Semantic.OBJECT)
    pile.box((-deep, -wide, high - 0.14), (deep, wide, high), frame)
    pile.under((-deep, -wide), (deep, wide), high - 0.14, frame)
    for x, y in ((-deep + 0.05, -wide), (-deep + 0.05, wide - 0.08), (deep - 0.15, wide - 0.08)):
        pile.box((x, y, ground), (x + 0.08, y + 0.08, high - 0.1), frame)
    pile.box((-deep + 0.06, -wide, ground + 0.3), (-deep + 0.1, wide, high - 0.3), pane)
    poster = Coat((0.5, 0.45, 0.35), Material.LAMP, Semantic.OBJECT, 0.25 if lit else 0.0)
    pile.box((-deep + 0.1, -wide, ground + 0.2), (deep - 0.35, -wide + 0.12, high - 0.25), frame)
    pile.box((-deep + 0.18, -wide - 0.01, ground + 0.35), (deep - 0.43, -wide + 0.13, high - 0.4), poster)
    if fine:
        pile.box((-deep + 0.2, -wide * 0.7, ground + 0.45), (-deep + 0.55, wide * 0.7, ground + 0.52), frame)
        pile.under((-deep + 0.2, -wide * 0.7), (-deep + 0.55, wide * 0.7), ground + 0.45, frame)
    pole = (deep + 0.35, wide + 0.5)
    pile.prism(pole, (0.05, 0.05), ground, 3.0, STEEL, 6)
    flag = Coat((0.5, 0.02, 0.02), Material.MATT, Semantic.TRAFFIC_SIGN)
    x, y = pole
    pile.box((x, y - 0.02, 2.45), (x + 0.5, y + 0.02, 3.0), flag)
    pale = _PLATE["white"]
    pile.box((x + 0.06, y - 0.025, 2.62), (x + 0.44, y + 0.025, 2.86), pale)
    pile.box((x - 0.03, y - 0.17, ground + 1.1), (x + 0.03, y + 0.17, ground + 1.7), pale)
    return pile


def build_bin(prop: Prop, fine: bool) -> Pile:
    """A bin.

    Args:
        prop: its size; its look decides its colour.
        fine: whether it is round.
    """
    pile = Pile()
    green = Coat(((0.03, 0.07, 0.045), (0.06, 0.06, 0.065), (0.05, 0.06, 0.1))[prop.look % 3], Material.MATT)
    coat = green._replace(semantic=Semantic.OBJECT)
    radius, high = prop.size_m[0] / 2, prop.size_m[2] + KERB_M
    sides = 8 if fine else 5
    pile.prism((0.0, 0.0), (radius * 0.9, radius), KERB_M, high - 0.25, coat, sides)
    pile.prism((0.0, 0.0), (radius * 0.8, radius * 0.8), high - 0.25, high - 0.12, BLACK, sides)
    pile.prism((0.0, 0.0), (radius, radius * 0.6), high - 0.12, high, coat, sides, top=True)
    return pile


def build_bollard(prop: Prop, fine: bool) -> Pile:
    """A bollard with a pale band."""
    pile, radius, high = Pile(), prop.size_m[0] / 2, prop.size_m[2] + KERB_M
    coat = BLACK._replace(semantic=Semantic.POLE)
    pile.prism((0.0, 0.0), (radius, radius * 0.9), KERB_M, high, coat, 7 if fine else 4, top=True)
    if fine:
        band = Coat((0.6, 0.6, 0.58), Material.MATT, Semantic.POLE)
        pile.prism((0.0, 0.0), (radius * 1.05, radius * 1.03), high - 0.25, high - 0.12, band, 7)
    return pile


def build_fence(prop: Prop, fine: bool) -> Pile:
    """A low wall, a paling or a railing in its own axes, along y.

    Args:
        prop: thickness, length, height and look.
        fine: whether it has single bars.
    """
    pile, rng = Pile(), np.random.default_rng(prop.look)
    wide, high = prop.size_m[1] / 2, prop.size_m[2]
    if rng.random() < 0.45:
        shade = float(rng.uniform(0.8, 1.2))
        brick = Coat((0.24 * shade, 0.12 * shade, 0.08 * shade), Material.BRICK, Semantic.WALL)
        pile.box((-0.11, -wide, 0.0), (0.11, wide, high), brick)
        pile.box(
            (-0.15, -wide, high), (0.15, wide, high + 0.07), Coat((0.33, 0.32, 0.3), semantic=Semantic.WALL)
        )
        return pile
    coat = Coat(_FENCE[int(rng.integers(len(_FENCE)))], Material.MATT, Semantic.FENCE)
    if not fine:
        pile.box((-0.03, -wide, 0.1), (0.03, wide, high), coat)
        return pile
    for low in (0.25, high - 0.25):
        pile.box((-0.03, -wide, low), (0.03, wide, low + 0.07), coat)
    step = float(rng.choice([0.2, 0.26]))
    slat = 0.13 if step < 0.22 else 0.05
    middles = np.arange(-wide + step / 2, wide, step)
    a, b = middles - slat / 2, middles + slat / 2
    zero, top = np.zeros_like(a), np.full_like(a, high)
    faces = np.stack(
        [
            np.stack([zero + 0.04, a, zero + 0.1], axis=1),
            np.stack([zero + 0.04, b, zero + 0.1], axis=1),
            np.stack([zero + 0.04, b, top], axis=1),
            np.stack([zero + 0.04, a, top], axis=1),
        ],
        axis=1,
    )
    pile.faces(faces, coat)
    pile.faces(faces[:, ::-1] - np.array([0.08, 0.0, 0.0]), coat)
    return pile


def build_beacon() -> Pile:
    """A striped post with an amber globe that stands at both ends of a zebra crossing."""
    pile = Pile()
    white = Coat((0.6, 0.6, 0.58), Material.MATT, Semantic.POLE)
    for k in range(7):
        low = KERB_M + 0.35 * k
        pile.prism((0.0, 0.0), (0.06, 0.06), low, low + 0.35, white if k % 2 else BLACK, 6)
    globe = Coat(AMBER, Material.LAMP, Semantic.POLE, 0.8)
    pile.lump((0.0, 0.0, KERB_M + 2.62), (0.19, 0.19, 0.19), globe, np.ones(12))
    return pile


def build_crossing_sign() -> Pile:
    """A blue plate with a pale triangle that stands at both ends of a zebra crossing."""
    pile = Pile()
    pile.prism((0.0, 0.0), (0.035, 0.035), KERB_M, 2.9, STEEL, 5)
    for turn in (1.0, -1.0):
        flip = np.array([turn, turn, 1.0])
        pile.faces(_disc(0.05, 2.5, 0.45, 4, np.pi / 4) * flip, _PLATE["blue"])
        pile.faces(_disc(0.06, 2.44, 0.3, 3, np.pi / 2) * flip, _PLATE["white"])
        figure = np.array([[0.07, -0.05, 2.36], [0.07, 0.05, 2.36], [0.07, 0.03, 2.6], [0.07, -0.03, 2.6]])
        pile.faces((figure * flip)[None], _PLATE["black"])
    return pile


# Where traffic lights stand: at the stop line of each approach, again on the far side, and at crossings.

HEAD_M, WALKER_M = 2.9, 2.3
"""Height of the middle of the heads."""
BESIDE_M = 0.45
"""From the kerb to the pole."""


@dataclass(eq=False)
class Heads:
    """Traffic lights as they are put up.

    Args:
        sites: so far, by number.
        groups: how many there are so far.
    """

    sites: list[SignalSite] = field(default_factory=list)
    groups: int = 0

    def group(self) -> int:
        """A new group."""
        self.groups += 1
        return self.groups - 1

    def add(
        self,
        place: Floats,
        facing: float,
        group: int,
        lanes: tuple[int, ...] = (),
        junction: int = -1,
        crossing: int = -1,
    ) -> int:
        """Put one up and return its number.

        Args:
            place: (2,) of its pole.
            facing: where its face points, in radians.
            group: what it belongs to.
            lanes: that obey it; none for a light of walkers.
            junction: number of its junction.
            crossing: number of its crossing.
        """
        walkers = not lanes
        position = (float(place[0]), float(place[1]), WALKER_M if walkers else HEAD_M)
        heading = float((facing + np.pi) % (2 * np.pi) - np.pi)
        site = SignalSite(len(self.sites), position, heading, lanes, junction, crossing, walkers, group)
        self.sites.append(site)
        return site.number
