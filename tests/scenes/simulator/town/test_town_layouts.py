from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from roadaware.simulator.config import DOMAINS, PRESETS, Behaviour, SceneConfig, Surroundings
from roadaware.simulator.layout import Layout
from roadaware.simulator.town import Regions, make_layout
from roadaware.simulator.town.regions import On
from roadaware.simulator.town.roads import VIEW_M, draw_spine


def drawn_config(seed: int) -> SceneConfig:
    """Any town that may be asked for."""
    rng = np.random.default_rng([seed, 99])
    share = [float(x) for x in rng.random(6)]
    if seed % 5 == 0:
        share = [float(round(x)) for x in share]
    where = Surroundings(
        drive_on="left" if seed % 2 else "right",
        lanes=1 + seed % 3,
        lane_width_m=float(rng.uniform(2.5, 5.0)),
        bus_lane=share[0],
        cycle_lane=share[1],
        parking=share[2],
        bends=share[3],
        junctions=float(rng.uniform(0.0, 4.0)) if seed % 7 else 0.0,
        crossings=float(rng.uniform(0.0, 4.0)),
        signals=share[4],
        height_m=float(rng.uniform(0.0, 80.0)),
        greenery=share[5],
    )
    speed = float(rng.uniform(0.0, 80.0))
    return SceneConfig(
        seconds=float(rng.uniform(0.5, 25.0)), behaviour=Behaviour(ego_speed_kmh=speed), surroundings=where
    )


def drawn(seed: int) -> tuple[SceneConfig, Layout]:
    config = drawn_config(seed)
    return config, make_layout(config, np.random.default_rng(seed))


def turn_between(a: float, b: float) -> float:
    return abs((a - b + np.pi) % (2 * np.pi) - np.pi)


def check_lanes(layout: Layout, forward_side: int) -> None:
    assert [lane.number for lane in layout.lanes] == list(range(len(layout.lanes)))
    for road in layout.roads:
        for number in road.lanes:
            lane = layout.lanes[number]
            assert lane.road == road.number
            middle = lane.line.at([lane.line.length / 2])
            along, left = road.line.project(middle)
            assert np.sign(left[0]) == lane.side
            ahead = turn_between(
                float(lane.line.heading(lane.line.length / 2)), float(road.line.heading(along[0]))
            )
            assert (ahead < 0.3) == lane.forward
            if lane.kind == "pavement":
                assert abs(left[0]) == pytest.approx(road.half_width_m + road.pavement_m / 2, abs=0.1)
            else:
                assert lane.forward == (lane.side == forward_side)
                assert abs(left[0]) + lane.width_m / 2 <= road.half_width_m + 0.1
    assert sum(len(road.lanes) for road in layout.roads) == len(layout.lanes)


def check_ways(layout: Layout) -> None:
    for junction in layout.junctions:
        starts = {way.start for way in junction.connectors}
        for way in junction.connectors:
            start, end = layout.lanes[way.start].line, layout.lanes[way.end].line
            assert np.hypot(*(start.points[-1] - way.line.points[0])) < 0.2
            assert np.hypot(*(end.points[0] - way.line.points[-1])) < 0.2
            assert turn_between(
                float(start.heading(start.length)), float(way.line.heading(0.0))
            ) < np.deg2rad(20)
            assert turn_between(
                float(way.line.heading(way.line.length)), float(end.heading(0.0))
            ) < np.deg2rad(20)
            turned = turn_between(float(start.heading(start.length)), float(end.heading(0.0)))
            assert (turned < np.deg2rad(45)) == (way.turn == "straight")
        for lane, s in junction.stops.items():
            assert lane in starts
            assert 0 < s < layout.lanes[lane].line.length


def check_ends(layout: Layout, regions: Regions) -> None:
    """No lane ends at a junction without a way on."""
    served = {way.start for junction in layout.junctions for way in junction.connectors}
    used = [lane for lane in layout.lanes if lane.kind in ("vehicle", "bus", "cycle")]
    ends = np.array([lane.line.at(lane.line.length + 0.3) for lane in used])
    for lane, on in zip(used, regions.at(ends).on, strict=True):
        assert (on == On.JUNCTION) == (lane.number in served)


def check_route(layout: Layout, config: SceneConfig) -> None:
    ways = {(way.start, way.end): way.line for junction in layout.junctions for way in junction.connectors}
    assert layout.lanes[layout.route[0]].road == 0
    assert all(layout.lanes[n].kind == "vehicle" and layout.lanes[n].forward for n in layout.route)
    length = sum(layout.lanes[n].line.length for n in layout.route)
    length += sum(ways[pair].length for pair in pairwise(layout.route))
    assert length > config.seconds * config.behaviour.ego_speed_kmh / 3.6 + VIEW_M


def check_signals(layout: Layout) -> None:
    groups: dict[int, set[tuple[bool, int]]] = {}
    for number, site in enumerate(layout.signals):
        assert site.number == number
        assert site.for_walkers == (not site.lanes)
        assert site.junction >= 0 or site.crossing >= 0
        groups.setdefault(site.group, set()).add((site.for_walkers, site.junction))
        for lane in site.lanes:
            line = layout.lanes[lane].line
            s = line.project(np.array([site.position[:2]]))[0][0]
            # Heads face those who come.
            assert turn_between(site.heading, float(line.heading(s)) + np.pi) < 0.6
        if site.crossing >= 0:
            assert number in layout.crossings[site.crossing].signals
        if site.junction >= 0:
            assert number in layout.junctions[site.junction].signals
    assert all(len(kinds) == 1 for kinds in groups.values())
    for crossing in layout.crossings:
        assert bool(crossing.signals) == (crossing.kind == "signalled")
        assert 0 < crossing.s_m < layout.roads[crossing.road].line.length


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [0, 15, *(pytest.param(first, marks=pytest.mark.slow) for first in (30, 45))]
)
def test_any_town_holds_together(first: int) -> None:
    for seed in range(first, first + 15):
        config, layout = drawn(seed)
        regions = Regions(layout)
        check_lanes(layout, 1 if config.surroundings.drive_on == "left" else -1)
        check_ways(layout)
        check_ends(layout, regions)
        check_route(layout, config)
        check_signals(layout)


@pytest.mark.slow
def test_nothing_stands_on_a_road() -> None:
    for seed in range(3):
        _, layout = drawn(seed)
        regions = Regions(layout)
        solid = [prop for prop in layout.props if prop.kind != "bus_stop"]
        on = regions.at(np.array([prop.position for prop in solid])).on
        assert set(on.tolist()) <= {On.OFF, On.PAVEMENT, On.BUS_STOP}
        houses = [prop for prop in solid if prop.kind == "building"]
        assert len(houses) > 20
        assert (regions.at(np.array([prop.position for prop in houses])).on == On.OFF).all()
        heads = np.array([site.position[:2] for site in layout.signals]).reshape(-1, 2)
        assert not np.isin(regions.at(heads).on, (On.ROAD, On.JUNCTION, On.CROSSING)).any()


@pytest.mark.slow
def test_the_generator_alone_decides() -> None:
    config = PRESETS["road@1"]
    one, two, other = (make_layout(config, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert one.props == two.props
    assert one.signals == two.signals
    assert one.route == two.route
    assert all((a.line.points == b.line.points).all() for a, b in zip(one.lanes, two.lanes, strict=True))
    assert one.props != other.props


@pytest.mark.slow
def test_towns_have_what_they_are_asked_for() -> None:
    base = DOMAINS["city-b@1"]
    where = replace(
        base.surroundings, bus_lane=1.0, cycle_lane=1.0, parking=1.0, bends=0.0, junctions=0.0, crossings=0.0
    )
    straight = make_layout(replace(base, surroundings=where), np.random.default_rng(0))
    assert not straight.junctions
    assert not straight.crossings
    assert len(straight.roads) == 1
    kinds = {lane.kind for lane in straight.lanes}
    assert kinds == {"vehicle", "bus", "cycle", "parking", "pavement"}
    assert np.ptp(straight.roads[0].line.points[:, 1]) < 1e-9
    lit = replace(base, surroundings=replace(where, junctions=2.0, signals=1.0))
    layouts = [make_layout(lit, np.random.default_rng(seed)) for seed in range(6)]
    assert all(junction.signals for layout in layouts for junction in layout.junctions)
    turns = {way.turn for layout in layouts for junction in layout.junctions for way in junction.connectors}
    assert turns == {"straight", "left", "right"}
    arms = [
        {layout.lanes[way.start].road for way in j.connectors} for layout in layouts for j in layout.junctions
    ]
    assert {len(roads) for roads in arms} == {3, 4}
    crossing = PRESETS["crossing@1"]
    found = [make_layout(crossing, np.random.default_rng(seed)).crossings for seed in range(3)]
    assert all(found)


def test_ways_turn_now_and_then_and_never_meet_themselves() -> None:
    config = replace(PRESETS["road@1"], seconds=60.0)
    turned = 0
    for seed in range(30):
        spine = draw_spine(config, np.random.default_rng(seed), 20.0, 10.0)
        turned += any(node.turn != "straight" for node in spine.nodes)
        points = np.concatenate([leg.cut(0.0, leg.length, 5.0).points[1:] for leg in spine.legs])
        gaps = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
        apart = np.abs(np.subtract.outer(np.arange(len(points)), np.arange(len(points)))) > 40
        assert (gaps[apart] > 25).all()
    assert 15 <= turned <= 29
