"""Street furniture: lamp posts, signs, bus shelters, bins, bollards, trees and traffic lights, and
where.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.config import Surroundings
from roadaware.simulator.layout import Layout, Prop, PropKind, Road, SignalSite
from roadaware.simulator.mesh import Material, Semantic
from roadaware.simulator.town.drawing import Coat, Colour, Pile, build_word_symbol
from roadaware.simulator.town.ground import BLACK, STEEL
from roadaware.simulator.town.regions import KERB_M, On, Regions

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
    """(x, y, z) of the lamp of a lamp post in the world.

    Args:
        prop: a lamp post.
    """
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
    """A bollard with a pale band.

    Args:
        prop: its size.
        fine: whether it is round.
    """
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
