"""`make_layout`: a town beside the way of the own vehicle, with its traffic lights, crossings, bus stops
and parking.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.config import SceneConfig
from roadaware.simulator.layout import Crossing, Junction, Lane, Layout, Turn
from roadaware.simulator.town.furniture import BESIDE_M, Heads
from roadaware.simulator.town.roads import (
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
    compute_arm_reaches,
    connect,
    draw_spine,
    draw_stub,
    junction_outline,
    stop_distance,
)
from roadaware.simulator.town.scenery import add_props

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

    Args:
        config: of the scene.
        rng: draws everything.
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
    _cut(plan)
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
    junctions = tuple(_junction(plan, node, heads, near, crossings) for node in range(len(plan.ends)))
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


def _cut(plan: Plan) -> None:
    """Cut the streets where their junctions begin."""
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


def _junction(plan: Plan, node: int, heads: Heads, near: Turn, crossings: tuple[Crossing, ...]) -> Junction:
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
