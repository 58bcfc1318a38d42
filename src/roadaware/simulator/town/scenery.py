"""`Town`: the triangles of everything that does not move, by place; `make_layout`: a town beside the own vehicle's way."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.episode import Look
from roadaware.simulator.figures.form import rotate_hues
from roadaware.simulator.layout import Crossing, Junction, Lane, Layout, Prop, Turn
from roadaware.simulator.mesh import Material, Soup, merge_soups
from roadaware.simulator.town.buildings import Plots, build_hedge, build_house, build_tree, generate_buildings
from roadaware.simulator.town.furniture import (
    BESIDE_M,
    BLACK,
    MARKING_M,
    TACTILE,
    WHITE,
    YELLOW,
    Brush,
    Heads,
    add_junction_ground,
    add_road_ground,
    add_terrain,
    build_beacon,
    build_bin,
    build_bollard,
    build_bus_stop,
    build_crossing_sign,
    build_fence,
    build_lamp_post,
    build_palette,
    build_sign,
    compute_lamp_position,
    generate_kerbside_props,
)
from roadaware.simulator.town.regions import (
    KERB_M,
    Pile,
    Regions,
    bar,
    build_arrow_symbol,
    build_bicycle_symbol,
    build_rules,
    build_word_symbol,
    dashes_across,
    lateral_offset,
    teeth_across,
)
from roadaware.simulator.town.roads import (
    BAY_M,
    STOP_GAP_M,
    Arm,
    Mouth,
    Profile,
    Spine,
    Spot,
    Street,
    add_bus_stops,
    add_crossings,
    add_parking_bays,
    build_lanes,
    build_track,
    compute_arm_reaches,
    connect,
    draw_spine,
    draw_stub,
    junction_outline,
    stop_distance,
    strip,
)

# Markings at places on a road: stop and give-way lines, crossings, bays, arrows, words and symbols.


STRIPE_M = 0.6


def _road_s(brush: Brush, lane: Lane, s: float) -> float:
    """A length along a lane as one along its road."""
    return float(brush.road.line.project(lane.line.at(np.array([s])))[0][0])


def draw_stop_line(brush: Brush, lane: Lane) -> None:
    """The line where one stops or gives way before a junction, and an arrow where there are several lanes."""
    if lane.number not in brush.rules.stops:
        return
    at, lit = brush.rules.stops[lane.number]
    s, left = _road_s(brush, lane, at), lateral_offset(lane, brush.road)
    if lit:
        shape = bar(0.3, lane.width_m)
    elif brush.palette.left:
        row = dashes_across(lane.width_m, 0.6, 0.3, 0.2)
        shape = np.concatenate([row, row - np.array([0.4, 0.0])])
    else:
        shape = teeth_across(lane.width_m)
    brush.stamp(s, left, shape, WHITE, lane.forward)
    turns = brush.rules.turns.get(lane.number, ())
    same = [x for x in brush.road.lanes if brush.layout.lanes[x].kind == "vehicle"]
    if lane.kind == "vehicle" and len(same) > 2 and at > 14.0:
        back = -1.0 if lane.forward else 1.0
        for turn in turns:
            brush.stamp(s + 7.0 * back, left, build_arrow_symbol(turn), WHITE, lane.forward)


def draw_lane_symbols(brush: Brush, lane: Lane) -> None:
    """Words on bus lanes and bicycles on cycle lanes, again and again."""
    if lane.kind not in ("bus", "cycle"):
        return
    shape = build_word_symbol("BUS", 2.3, 4.2) if lane.kind == "bus" else build_bicycle_symbol()
    left = lateral_offset(lane, brush.road)
    for s in np.arange(14.0, brush.road.line.length - 8.0, 34.0 if lane.kind == "bus" else 26.0):
        if any(start + 2.0 < s < end - 2.0 for start, end in brush.free):
            brush.stamp(float(s), left, shape, WHITE, lane.forward)


def draw_parking_bays(brush: Brush, lane: Lane) -> None:
    """The boxes of a row of parking bays."""
    ends = sorted(_road_s(brush, lane, s) for s in (0.0, lane.line.length))
    left = lateral_offset(lane, brush.road)
    inner = left - lane.side * lane.width_m / 2
    brush.line(inner, 0.1, WHITE, ends[0], ends[1])
    n = max(1, round((ends[1] - ends[0]) / BAY_M))
    for s in np.linspace(ends[0], ends[1], n + 1):
        brush.stamp(float(s), left, bar(0.1, lane.width_m), WHITE, lane.forward)


def draw_bus_stops(brush: Brush, lane: Lane) -> None:
    """The box in which buses stop, with its words.

    Args:
        brush: of a stretch.
        lane: the stop lies on it or beside it.
    """
    for bay in lane.bays:
        start, end = sorted(_road_s(brush, lane, s) for s in bay)
        outer = abs(lateral_offset(lane, brush.road)) + lane.width_m / 2
        edge = brush.road.half_width_m - 0.15
        inner = outer if edge - outer > 1.8 else max(outer - 2.9, outer - lane.width_m + 0.2)
        for out in (inner, edge):
            brush.dashes(lane.side * out, 0.12, YELLOW, 1.0, 0.5, start, end - 1.0)
        middle, wide = lane.side * (inner + edge) / 2, edge - inner
        for s in (start, end):
            brush.stamp(s, middle, bar(0.12, wide), YELLOW, lane.forward)
        centre = (start + end) / 2
        for text, moved in (("BUS", -2.6), ("STOP", 1.6)):
            go = 1.0 if lane.forward else -1.0
            brush.stamp(
                centre + moved * go,
                middle,
                build_word_symbol(text, min(2.2, wide - 0.3), 3.2),
                YELLOW,
                lane.forward,
            )


def draw_crossing(brush: Brush, crossing: Crossing) -> None:
    """Stripes or studs, the lines before them, and the rough paving at the kerbs."""
    half, wide = brush.road.half_width_m, crossing.width_m / 2
    piece = brush.track.cut(crossing.s_m - wide, crossing.s_m + wide)
    if crossing.kind == "zebra":
        n = round(half / STRIPE_M)
        step = half / n
        for k in range(n):
            low = -half + step * (2 * k + 0.5)
            brush.pile.flat(strip(piece, low, low + step), MARKING_M, WHITE)
        away = crossing.width_m / 2 + 1.0
        shape = dashes_across(2 * brush.road.half_width_m - 0.4, 0.5, 0.5, 0.2)
        for side in (1, -1):
            _across(brush, crossing.s_m + side * away, shape)
    else:
        wide = 2 * brush.road.half_width_m - 0.4
        shape = dashes_across(wide, 0.14, 0.36, 0.14) if brush.palette.left else bar(0.25, wide)
        for side in (1, -1):
            _across(brush, crossing.s_m + side * crossing.width_m / 2, shape)
        # Stop lines of a crossing between junctions; on the arm of a junction it has the junction's
        # own
        sites = [brush.layout.signals[number] for number in crossing.signals]
        if not (not sites or any(site.junction >= 0 for site in sites)):
            for lane in (brush.layout.lanes[number] for number in brush.road.lanes):
                if lane.kind in ("vehicle", "bus", "cycle"):
                    back = -1 if lane.forward else 1
                    s = crossing.s_m + back * (crossing.width_m / 2 + STOP_GAP_M)
                    _across(brush, s, bar(0.3, lane.width_m, 0.0, lateral_offset(lane, brush.road)))
    for low in (half + 0.16, -half - 1.0):
        brush.pile.flat(strip(piece, low, low + 0.84), KERB_M + 0.005, TACTILE)


def _across(brush: Brush, s: float, shape: Floats) -> None:
    """Something across the whole road, painted with the stretch of its crossing wherever it lies."""
    here = brush.track.at(np.clip(np.array([s]), 0.0, brush.track.length))
    angle = float(here.headings[0])
    c, sine = np.cos(angle), np.sin(angle)
    brush.pile.flat(here.points[0] + shape @ np.array([[c, sine], [-sine, c]]), MARKING_M, WHITE)


def draw_road_markings(brush: Brush) -> None:
    """Everything that is painted on a stretch of road."""
    # Lines along the road: in its middle, between lanes and at the kerbs.
    road, palette = brush.road, brush.palette
    lanes = [brush.layout.lanes[number] for number in road.lanes]
    many = sum(lane.kind == "vehicle" for lane in lanes) > 2
    if many and not palette.left:
        for left in (0.11, -0.11):
            brush.line(left, 0.1, palette.centre)
    else:
        brush.dashes(0.0, 0.12, palette.centre, 2.0, 4.0)
    for side in (1, -1):
        own = [lane for lane in lanes if lane.side == side and lane.kind in ("vehicle", "bus", "cycle")]
        own.sort(key=lambda lane: lane.order)
        for inner, outer in pairwise(own):
            left = lateral_offset(inner, road) + side * inner.width_m / 2
            if outer.kind == "vehicle":
                brush.dashes(left, 0.1, WHITE, 2.0, 4.0)
            else:
                brush.line(left, 0.24 if outer.kind == "bus" else 0.12, WHITE)
        last = own[-1]
        out = abs(lateral_offset(last, road)) + last.width_m / 2
        if road.half_width_m - out > 1.0:
            if last.kind == "cycle":
                brush.line(side * out, 0.12, WHITE)
        elif palette.left:
            for away in (0.2, 0.42):
                brush.line(side * (road.half_width_m - away), 0.09, YELLOW)
        else:
            brush.line(side * (road.half_width_m - 0.25), 0.1, palette.edge)
    for number in brush.road.lanes:
        lane = brush.layout.lanes[number]
        draw_stop_line(brush, lane)
        draw_lane_symbols(brush, lane)
        draw_bus_stops(brush, lane)
        if lane.kind == "parking":
            draw_parking_bays(brush, lane)
    for crossing in brush.rules.crossings[brush.road.number]:
        if brush.span[0] <= crossing.s_m < brush.span[1]:
            draw_crossing(brush, crossing)


# Wires above the road, from lamp post to lamp post.


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


CHUNK_M = 40.0
FINE_M = 52.0
"""Chunks whose middle is farther away come in a coarser shape."""
BEHIND_M = 30.0
KEPT = 160
"""Chunks that are kept; a long scene forgets those it left behind."""
GRID_M = 20.0


@dataclass(frozen=True, eq=False)
class Chunk:
    """A piece of town.

    Args:
        middle: (2,) of it.
        road: number of its road, -1 for a junction.
        start: along the road; of a junction its number.
        end: along the road.
        props: that stand there.
    """

    middle: Floats
    road: int
    start: float
    end: float
    props: tuple[Prop, ...]


class Town:
    """Everything that does not move, as triangles.

    Args:
        layout: of the town.
        config: of the scene.
        conditions: at dusk and at night lamps are lit.
        look: of the scene; None for the usual one.
    """

    def __init__(
        self, layout: Layout, config: SceneConfig, conditions: Conditions, look: Look | None = None
    ) -> None:
        self._layout = layout
        self._coats = None if look is None else np.array(look.coats, dtype=np.float32)
        self._wires = wire_spans(layout) if look is not None and look.wires else []
        self._hue = config.surroundings.hue
        self._palette = build_palette(layout, config, conditions)
        self._rules = build_rules(layout)
        self._tracks = [build_track(road.line.points) for road in layout.roads]
        self._chunks = _chunks(layout)
        self._middles = np.array([chunk.middle for chunk in self._chunks])
        self._soups: OrderedDict[tuple[int, bool], Soup] = OrderedDict()
        self._last: tuple[tuple[int, ...], tuple[int, int], Soup] | None = None

    def near(
        self, position: npt.ArrayLike, heading: float, range_m: float, behind_m: float = BEHIND_M
    ) -> Soup:
        """Scenery around a place and in front of it.

        Args:
            position: (2,) or (3,) of who looks.
            heading: of who looks, in radians.
            range_m: how far ahead and aside.
            behind_m: how far back.
        """
        place = np.asarray(position, dtype=np.float64)[:2]
        away = self._middles - place
        gap = np.hypot(away[:, 0], away[:, 1])
        ahead = away[:, 0] * np.cos(heading) + away[:, 1] * np.sin(heading)
        wanted = np.flatnonzero((gap < range_m + CHUNK_M / 2) & (ahead > -behind_m - CHUNK_M / 2))
        key = tuple(int(2 * k + (gap[k] < FINE_M)) for k in wanted)
        tile = (int(place[0] // GRID_M), int(place[1] // GRID_M))
        if self._last is None or self._last[:2] != (key, tile):
            parts = [self._soup(k // 2, bool(k % 2)) for k in key]
            near = [soup for middle, soup in self._wires if np.hypot(*(middle - place)) < range_m]
            self._last = (key, tile, merge_soups([self._terrain(tile, range_m), *parts, *near]))
        return self._last[2]

    def _terrain(self, tile: tuple[int, int], range_m: float) -> Soup:
        pile = Pile()
        middle = ((tile[0] + 0.5) * GRID_M, (tile[1] + 0.5) * GRID_M)
        add_terrain(pile, self._palette, middle, range_m + 2 * CHUNK_M)
        return self._turned(pile.soup())

    def _soup(self, number: int, fine: bool) -> Soup:
        """The triangles of a chunk."""
        found = self._soups.get((number, fine))
        if found is None:
            found = self._turned(self._built(self._chunks[number], fine))
            if len(self._soups) >= KEPT:
                self._soups.popitem(last=False)
            self._soups[number, fine] = found
        self._soups.move_to_end((number, fine))
        return found

    def _built(self, chunk: Chunk, fine: bool) -> Soup:
        pile, layout, palette = Pile(), self._layout, self._palette
        parts: list[Soup] = []
        if chunk.road < 0:
            add_junction_ground(pile, layout, layout.junctions[int(chunk.start)], palette)
        else:
            road, track = layout.roads[chunk.road], self._tracks[chunk.road]
            span = (chunk.start, chunk.end)
            add_road_ground(pile, layout, road, track, palette, span)
            draw_road_markings(Brush(pile, layout, road, track, palette, span, self._rules))
            parts += self._crossing_posts(chunk)
        parts += [self._prop(prop, fine).soup(prop.position, prop.heading) for prop in chunk.props]
        return merge_soups([pile.soup(), *parts])

    def _crossing_posts(self, chunk: Chunk) -> list[Soup]:
        found = []
        road, track = self._layout.roads[chunk.road], self._tracks[chunk.road]
        for crossing in self._rules.crossings[chunk.road]:
            if crossing.kind == "zebra" and chunk.start <= crossing.s_m < chunk.end:
                for side in (1, -1):
                    here = track.at(np.array([crossing.s_m - side * (crossing.width_m / 2 + 0.35)]))
                    x, y = here.beside(side * (road.half_width_m + 0.4))[0].tolist()
                    post = build_beacon() if self._palette.left else build_crossing_sign()
                    found.append(post.soup((x, y), float(here.headings[0])))
        return found

    def _prop(self, prop: Prop, fine: bool) -> Pile:
        lit = self._palette.lit
        if prop.kind in ("lamp_post", "bus_stop"):
            return (build_lamp_post if prop.kind == "lamp_post" else build_bus_stop)(prop, fine, lit)
        makers = {
            "building": build_house,
            "tree": build_tree,
            "hedge": build_hedge,
            "fence": build_fence,
            "sign": build_sign,
            "bin": build_bin,
            "bollard": build_bollard,
        }
        return makers[prop.kind](prop, fine)

    def _turned(self, soup: Soup) -> Soup:
        """The soup with its hues turned and in the coats of its look; what shines keeps its own hue."""
        if self._coats is not None and len(soup):
            soup = replace(soup, colour=np.minimum(soup.colour * self._coats[soup.material], 0.95))
        if self._hue % 1.0 == 0.0 or not len(soup):
            return soup

        colour = rotate_hues(soup.colour, self._hue)
        kept = (soup.material == Material.LAMP) | (soup.glow > 0)
        colour[kept] = soup.colour[kept]
        return replace(soup, colour=colour)


def collect_street_lamps(layout: Layout, conditions: Conditions) -> Floats:
    """(n, 4) x, y, z and intensity of the street lamps that are lit; none by day.

    The same lamps glow in the triangles of `Town`: they are for those who need lamps that they do not see.
    """
    if conditions.time == "day":
        return np.zeros((0, 4))
    heads = [(*compute_lamp_position(prop), 1.0) for prop in layout.props if prop.kind == "lamp_post"]
    return np.array(heads, dtype=np.float64).reshape(-1, 4)


def _chunks(layout: Layout) -> list[Chunk]:
    """Roads in pieces of about 40 m, junctions whole, and to each what stands nearest to it."""
    bare: list[Chunk] = []
    for road in layout.roads:
        n = max(1, round(road.line.length / CHUNK_M))
        cuts = np.linspace(0.0, road.line.length, n + 1)
        for start, end in pairwise(cuts):
            middle = road.line.at(np.array([(start + end) / 2]))[0]
            bare.append(Chunk(middle, road.number, float(start), float(end), ()))
    bare += [Chunk(x.outline.mean(axis=0), -1, float(x.number), 0.0, ()) for x in layout.junctions]
    if not layout.props:
        return bare
    places = np.array([prop.position for prop in layout.props])
    away = places[:, None] - np.array([chunk.middle for chunk in bare])
    nearest = np.argmin((away * away).sum(-1), axis=1)
    order = np.argsort(nearest, kind="stable")
    bounds = np.searchsorted(nearest[order], np.arange(len(bare) + 1))
    return [
        replace(chunk, props=tuple(layout.props[k] for k in order[bounds[n] : bounds[n + 1]]))
        for n, chunk in enumerate(bare)
    ]


# What stands beside the roads: buildings with their gardens, and everything on the pavements.


def add_props(layout: Layout, config: SceneConfig, rng: np.random.Generator) -> Layout:
    """A layout with everything that stands beside its roads.

    Args:
        layout: without props.
        config: height of buildings and greenery.
        rng: of the town.
    """
    regions = Regions(layout)
    where = config.surroundings
    props = generate_kerbside_props(layout, where, regions, rng)
    props += generate_buildings(layout, where, Plots(regions), rng)
    return replace(layout, props=tuple(props))


# Which traffic lights a junction's approach and a crossing get, and where they stand.


def approach_heads(
    centre: Floats, arms: list[Arm], far: list[float], place: int, stop: float, side: int
) -> tuple[Floats, Floats]:
    """Positions of the light at the stop line of an approach, and of its repeat on the far side; (2,) each.

    Args:
        centre: (2,) of the junction.
        arms: of the junction.
        far: how far it reaches into each.
        place: of the approach among the arms.
        stop: from the centre to the stop line, in metres.
        side: 1 where traffic keeps to the left, -1 to the right.
    """
    own = arms[place]
    near = _beside(centre, own.heading + np.pi, -(stop - 0.4), side * (own.half_width_m + BESIDE_M))
    for k, arm in enumerate(arms):
        if is_opposite(own, arm):
            beside = side * (arm.half_width_m + BESIDE_M)
            return near, _beside(centre, arm.heading, far[k] + 0.8, beside)
    across = max(arm.half_width_m for k, arm in enumerate(arms) if k != place) + 1.0
    return near, _beside(centre, own.heading + np.pi, across, side * 2.0)


def is_opposite(first: Arm, second: Arm) -> bool:
    """Whether one goes straight on from one arm to the other."""
    return bool(abs((first.heading - second.heading) % (2 * np.pi) - np.pi) < np.deg2rad(40.0))


def _beside(centre: Floats, heading: float, along: float, left: float) -> Floats:
    c, s = np.cos(heading), np.sin(heading)
    place: Floats = centre + along * np.array([c, s]) + left * np.array([-s, c])
    return place


def add_crossing_heads(
    street: Street, spot: Spot, crossing: int, group: int, heads: Heads, side: int
) -> tuple[int, ...]:
    """The lights of a crossing: those of walkers, and between junctions those of vehicles, on both kerbs.

    Args:
        street: it lies on.
        spot: where.
        crossing: its number.
        group: of the walkers' lights of the junction; -1 for a new one.
        heads: gets them.
        side: 1 where traffic keeps to the left, -1 to the right.
    """
    out = street.profile.half_width_m + BESIDE_M
    found = []
    group = heads.group() if group < 0 else group
    node = spot.node
    for kerb in (1, -1):
        here = street.track.at(np.array([spot.s_m + kerb * (spot.width_m / 2 + 0.3)]))
        facing = float(here.headings[0]) - kerb * np.pi / 2
        found.append(heads.add(here.beside(kerb * out)[0], facing, group, (), node, crossing))
    if node >= 0:
        return tuple(found)
    vehicles = heads.group()
    for forward in (True, False):
        lanes = tuple(
            lane.number
            for lane in street.lanes
            if lane.kind in ("vehicle", "bus", "cycle") and lane.forward == forward
        )
        away = (spot.width_m / 2 + 0.9) * (-1 if forward else 1)
        here = street.track.at(np.array([spot.s_m + away]))
        facing = float(here.headings[0]) + (np.pi if forward else 0.0)
        own = side if forward else -side
        places = [here.beside(kerb * out)[0] for kerb in (own, -own)]
        found += [heads.add(place, facing, vehicles, lanes, -1, crossing) for place in places]
    return tuple(found)


@dataclass(frozen=True)
class End:
    """One arm of a junction: an end of a street.

    Args:
        street: its number.
        at_start: whether the junction lies at its start.
        heading: away from the junction, in radians.
    """

    street: int
    at_start: bool
    heading: float


@dataclass(eq=False)
class Plan:
    """A town while it is planned.

    Args:
        spine: the way of the own vehicle.
        streets: by number, those of the way first.
        ends: the arms of each junction, counter-clockwise.
        radius_m: of the kerbs at corners.
        signalled: which junctions have traffic lights.
        reach: how far each junction reaches into its arms.
    """

    spine: Spine
    streets: list[Street]
    ends: list[list[End]]
    radius_m: float
    signalled: list[bool] = field(default_factory=list)
    reach: list[list[float]] = field(default_factory=list)


def make_layout(config: SceneConfig, rng: np.random.Generator) -> Layout:
    """A town: roads, junctions, crossings, traffic lights and what stands beside them.

    The own vehicle's route starts with road 0, of which the first `spine.BEHIND_M` metres lie behind the
    place where it should start. Junctions without traffic lights have `stops` for the lanes that give way
    alone. Traffic lights of a junction form one group for each pair of opposite arms and one for the
    walkers of all its arms; those of a crossing one for vehicles and one for walkers.
    """
    # Streets and junctions, through each other.
    pavement = float(rng.uniform(2.3, 3.3))
    radius = pavement + float(rng.uniform(2.2, 4.0))
    widest = Profile(config.surroundings.lanes, config.surroundings.lane_width_m, True, True, True, pavement)
    half = widest.half_width_m
    spine = draw_spine(config, rng, 1.25 * half + 1.25 * radius + 1.5, half + pavement)
    streets: list[Street] = []
    profile = _profile(config, rng, pavement, config.surroundings.lanes)
    last = len(spine.legs) - 1
    for k, leg in enumerate(spine.legs):
        if k and spine.nodes[k - 1].turn != "straight":
            profile = _profile(config, rng, pavement, config.surroundings.lanes)
        streets.append(Street(leg, profile, k - 1, k if k < last else -1, True))
    ends = []
    for k, node in enumerate(spine.nodes):
        back = End(k, False, float(spine.legs[k].headings[-1]) + np.pi)
        arms = [back, End(k + 1, True, float(spine.legs[k + 1].headings[0]))]
        for way, heading in node.arms.items():
            own = streets[k].profile if way == "straight" else _side_profile(config, rng, pavement)
            track = draw_stub(node.centre, heading, k, streets, config, rng)
            if track is not None:
                arms.append(End(len(streets), True, heading))
                streets.append(Street(track, own, k, -1, False))
        ends.append(sorted(arms, key=lambda arm: (arm.heading - back.heading) % (2 * np.pi)))
    lit = [bool(rng.random() < config.surroundings.signals) and len(arms) > 2 for arms in ends]
    plan = Plan(spine, streets, ends, radius, lit)
    # Cut the streets where their junctions begin
    starts: dict[int, float] = {}
    stops: dict[int, float] = {}
    for arms in plan.ends:
        far = compute_arm_reaches(_arms(plan, arms), plan.radius_m)
        plan.reach.append(far)
        for end, reach in zip(arms, far, strict=True):
            (starts if end.at_start else stops)[end.street] = reach
    for number, street in enumerate(plan.streets):
        length = street.track.length
        street.track = street.track.cut(starts.get(number, 0.0), length - stops.get(number, 0.0))
    side = 1 if config.surroundings.drive_on == "left" else -1
    add_crossings(plan.streets, plan.signalled, config, rng)
    lanes: list[Lane] = []
    for number, street in enumerate(plan.streets):
        add_bus_stops(street, rng)
        add_parking_bays(street, rng)
        street.lanes = build_lanes(street, number, len(lanes), side)
        lanes += street.lanes
    heads = Heads()
    near: Turn = "left" if side == 1 else "right"
    walkers = [heads.group() if lit else -1 for lit in plan.signalled]
    crossings = _crossings(plan, heads, walkers, side)
    junctions = tuple(_junction(plan, node, heads, near) for node in range(len(plan.ends)))
    roads = tuple(street.road(number) for number, street in enumerate(plan.streets))
    route = _route(plan, near, rng)
    bare = Layout(roads, tuple(lanes), junctions, crossings, tuple(heads.sites), (), route)
    return add_props(bare, config, rng)


def _profile(config: SceneConfig, rng: np.random.Generator, pavement: float, lanes: int) -> Profile:
    where = config.surroundings
    bus, cycle, parking = (bool(x) for x in rng.random(3) < [where.bus_lane, where.cycle_lane, where.parking])
    width = where.lane_width_m
    return Profile(lanes, width, bus, cycle, parking, pavement)


def _side_profile(config: SceneConfig, rng: np.random.Generator, pavement: float) -> Profile:
    """Of a side road: one lane in each direction, seldom more beside them."""
    where = config.surroundings
    cycle, parking = (bool(x) for x in rng.random(2) < [0.3 * where.cycle_lane, where.parking])
    return Profile(1, where.lane_width_m, False, cycle, parking, pavement)


def _arms(plan: Plan, ends: list[End]) -> list[Arm]:
    return [Arm(end.heading, plan.streets[end.street].profile.half_width_m) for end in ends]


def _crossings(plan: Plan, heads: Heads, walkers: list[int], side: int) -> tuple[Crossing, ...]:
    """Crossings with their lights; those on the arms of a junction show the same to all walkers."""
    found: list[Crossing] = []
    for road, street in enumerate(plan.streets):
        for spot in street.spots:
            group = walkers[spot.node] if spot.node >= 0 and spot.kind == "signalled" else -1
            number = len(found)
            sites: tuple[int, ...] = ()
            if spot.kind == "signalled":
                sites = add_crossing_heads(street, spot, number, group, heads, side)
            found.append(Crossing(number, road, spot.s_m, spot.width_m, spot.kind, sites))
    return tuple(found)


def _junction(plan: Plan, node: int, heads: Heads, near: Turn) -> Junction:
    """One junction with its ways, lights and places to stop."""
    ends, lit = plan.ends[node], plan.signalled[node]
    centre, arms, reach = plan.spine.nodes[node].centre, _arms(plan, ends), plan.reach[node]
    mouths = [_mouth(plan.streets[end.street], end) for end in ends]
    # The two arms that go before the others: those most nearly opposite, and wide.
    best, found = np.inf, (0, 1)
    for a in range(len(arms)):
        for b in range(a + 1, len(arms)):
            bend = abs((arms[a].heading - arms[b].heading) % (2 * np.pi) - np.pi)
            bend -= 0.05 * (arms[a].half_width_m + arms[b].half_width_m)
            if bend < best:
                best, found = bend, (a, b)
    major = set(found)
    stops: dict[int, float] = {}
    own = [site.number for site in heads.sites if site.junction == node]
    groups = _groups(arms, heads) if lit else []
    for place, (end, mouth) in enumerate(zip(ends, mouths, strict=True)):
        away = stop_distance(plan.streets[end.street], node)
        if lit or place not in major:
            stops |= {lane.number: lane.line.length - away for lane in mouth.entering}
        if lit:
            numbers = tuple(lane.number for lane in mouth.entering)
            side = 1 if near == "left" else -1
            spots = approach_heads(centre, arms, reach, place, reach[place] + away, side)
            own += [heads.add(spot, end.heading, groups[place], numbers, node) for spot in spots]
    corners = junction_outline(centre, arms, reach, plan.radius_m)
    return Junction(node, corners, connect(mouths, near), tuple(sorted(own)), stops)


def _groups(arms: list[Arm], heads: Heads) -> list[int]:
    """The group of each arm's lights: opposite arms share theirs."""
    found: list[int] = []
    for arm in arms:
        pair = next((k for k in range(len(found)) if is_opposite(arm, arms[k])), None)
        found.append(heads.group() if pair is None else found[pair])
    return found


def _mouth(street: Street, end: End) -> Mouth:
    used = [lane for lane in street.lanes if lane.kind in ("vehicle", "bus", "cycle")]
    leaving = tuple(lane for lane in used if lane.forward == end.at_start)
    return Mouth(end.heading, tuple(lane for lane in used if lane not in leaving), leaving)


def _route(plan: Plan, near: Turn, rng: np.random.Generator) -> tuple[int, ...]:
    """Lanes of the own vehicle: in each leg the one from which it can take its next turn."""
    free = int(rng.integers(plan.streets[0].profile.lanes))
    wanted: list[int] = []
    for k in range(len(plan.spine.legs) - 1, -1, -1):
        turn = plan.spine.nodes[k].turn if k < len(plan.spine.nodes) else "straight"
        if turn != "straight":
            free = plan.streets[k].profile.lanes - 1 if turn == near else 0
        wanted.insert(0, free)
    chosen = []
    for street, order in zip(plan.streets, wanted, strict=False):
        own = [x for x in street.lanes if x.forward and x.kind == "vehicle"]
        chosen.append(own[order].number)
    return tuple(chosen)
