"""What stands on the pavements: lamp posts, trees, signs, bus shelters, bins and bollards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.config import Surroundings
from roadaware.scenes.simulator.layout import Layout, Prop, PropKind, Road
from roadaware.scenes.simulator.town.regions import On, Regions

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


def place_kerbside(
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
            kerb = Kerb(road, side, _busy(layout, road), regions, poles[road.number])
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


def _busy(layout: Layout, road: Road) -> list[tuple[float, float]]:
    own = [crossing for crossing in layout.crossings if crossing.road == road.number]
    return [(x.s_m - x.width_m / 2 - 1.2, x.s_m + x.width_m / 2 + 1.2) for x in own]


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
