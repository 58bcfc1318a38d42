from __future__ import annotations

import numpy as np
import pytest

from roadaware.arrays import Floats
from roadaware.simulator.config import PRESETS
from roadaware.simulator.layout import Crossing, Lane, Layout
from roadaware.simulator.town import On, Regions, make_layout
from roadaware.simulator.town.regions import KERB_M, triangulate_polygon
from roadaware.simulator.town.roads import Profile, Street, build_lanes, straight

START = np.array([20.0, -30.0])
# Lane next to the middle, bus lane, cycle lane, parking strip; kerb at 10.4 m, pavement to 13.4 m.
PROFILE = Profile(1, 3.3, True, True, True, 3.0)


def street_layout(heading: float, forward_side: int) -> Layout:
    """100 m of road with bus stops from 60 to 74 m, bays from 10 to 33.2 m and a crossing at 45 m."""
    street = Street(straight(START, heading, 100.0), PROFILE, -1, -1, True)
    for side in (1, -1):
        street.stops[side] = ((60.0, 74.0),)
        street.parking[side] = ((10.0, 33.2),)
    street.lanes = build_lanes(street, 0, 0, forward_side)
    crossing = Crossing(0, 0, 45.0, 4.0, "zebra")
    return Layout((street.road(0),), tuple(street.lanes), (), (crossing,), (), (), (0,))


def place(heading: float, along: float, left: float) -> Floats:
    go = np.array([np.cos(heading), np.sin(heading)])
    return np.asarray(START + along * go + left * np.array([-go[1], go[0]]))


def under(regions: Regions, heading: float, along: float, left: float) -> tuple[On, int, int, int, float]:
    found = regions.at(place(heading, along, left))
    return (
        On(found.on[0]),
        int(found.lane[0]),
        int(found.road[0]),
        int(found.crossing[0]),
        float(found.height_m[0]),
    )


@pytest.mark.parametrize("forward_side", [1, -1])
@pytest.mark.parametrize("heading", [0.0, 2.1, -1.3])
def test_hand_built_places_on_both_sides(heading: float, forward_side: int) -> None:
    layout = street_layout(heading, forward_side)
    regions = Regions(layout)

    def lane_at(along: float, left: float) -> Lane:
        return layout.lanes[under(regions, heading, along, left)[1]]

    for side in (1, -1):
        for left, kind in ((1.6, "vehicle"), (5.0, "bus"), (7.4, "cycle")):
            lane = lane_at(40.0, side * left)
            assert (lane.kind, lane.side, lane.forward) == (kind, side, side == forward_side)
            assert under(regions, heading, 40.0, side * left)[0] == On.ROAD
        assert under(regions, heading, 20.0, side * 9.3)[0] == On.PARKING
        assert lane_at(20.0, side * 9.3).kind == "parking"
        # Without bays the strip is road; at both ends of a row it is built out.
        assert under(regions, heading, 40.0, side * 9.3) == (On.ROAD, -1, 0, -1, 0.0)
        for along in (9.2, 34.0):
            assert under(regions, heading, along, side * 9.3)[::4] == (On.PAVEMENT, KERB_M)
        assert under(regions, heading, 50.0, side * 12.0)[::4] == (On.PAVEMENT, KERB_M)
        assert lane_at(50.0, side * 12.0).kind == "pavement"
        assert under(regions, heading, 50.0, side * 13.6) == (On.OFF, -1, -1, -1, 0.0)
        # Buses stop on the strip beside the cycle lane, people wait behind it.
        assert under(regions, heading, 62.0, side * 9.3)[::4] == (On.BUS_STOP, 0.0)
        assert under(regions, heading, 62.0, side * 12.0)[0] == On.PAVEMENT
        assert under(regions, heading, 67.0, side * 12.0)[::4] == (On.BUS_STOP, KERB_M)
        for left in (0.5, 5.0, 10.3):
            assert under(regions, heading, 46.9, side * left)[::3] == (On.CROSSING, 0)
            assert under(regions, heading, 47.1, side * left)[3] == -1
        assert under(regions, heading, 45.0, side * 10.6)[::3] == (On.PAVEMENT, -1)
    assert under(regions, heading, -0.5, 0.0)[0] == On.OFF
    assert under(regions, heading, 1e6, 0.0)[0] == On.OFF


def test_bus_stop_without_a_strip_lies_on_the_lane() -> None:
    street = Street(straight(START, 0.0, 100.0), Profile(2, 3.0, False, False, False, 2.5), -1, -1, True)
    street.stops[1] = ((30.0, 44.0),)
    street.lanes = build_lanes(street, 0, 0, 1)
    layout = Layout((street.road(0),), tuple(street.lanes), (), (), (), (), (0,))
    regions = Regions(layout)
    assert under(regions, 0.0, 31.0, 4.5)[0] == On.BUS_STOP
    assert layout.lanes[under(regions, 0.0, 31.0, 4.5)[1]].bays == ((30.0, 44.0),)
    assert under(regions, 0.0, 31.0, 1.5)[0] == On.ROAD
    assert under(regions, 0.0, 31.0, -4.5)[0] == On.ROAD


def test_junctions_and_the_pavements_round_their_corners() -> None:
    layout = make_layout(PRESETS["road@1"], np.random.default_rng(3))
    regions = Regions(layout)
    for junction in layout.junctions:
        for way in junction.connectors:
            found = regions.at(way.line.at(np.linspace(0.3, way.line.length - 0.3, 9)))
            assert (found.on == On.JUNCTION).all()
            assert (found.junction == junction.number).all()
            assert (found.lane == -1).all()
        # Kerbs go on round the corner: just outside of the area lies road or raised pavement.
        edges = np.stack([junction.outline, np.roll(junction.outline, -1, axis=0)])
        go = edges[1] - edges[0]
        out = np.stack([go[:, 1], -go[:, 0]], axis=1) / np.hypot(go[:, 0], go[:, 1])[:, None]
        outside = regions.at(edges.mean(axis=0) + 0.3 * out)
        assert set(outside.on.tolist()) <= {On.ROAD, On.CROSSING, On.PAVEMENT}
        assert (outside.height_m == np.where(outside.on == On.PAVEMENT, KERB_M, 0.0)).all()
        assert (outside.on == On.PAVEMENT).any()


def test_points_on_seams_and_none_at_all() -> None:
    regions = Regions(street_layout(0.0, 1))
    s = np.linspace(1.0, 99.0, 50)
    seams = np.concatenate([START + np.stack([s, np.full(50, y)], axis=1) for y in (0.0, 3.3, -6.6, 8.2)])
    assert (regions.at(seams).on != On.OFF).all()
    assert regions.at(np.zeros((0, 2))).on.shape == (0,)


def test_ear_clipping_covers_a_polygon_once() -> None:
    for junction in make_layout(PRESETS["road@1"], np.random.default_rng(8)).junctions:
        ring = junction.outline
        after = np.roll(ring, -1, axis=0)
        area = (ring[:, 0] * after[:, 1] - ring[:, 1] * after[:, 0]).sum() / 2
        a, b, c = triangulate_polygon(ring).transpose(1, 0, 2)
        parts = ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
        assert (parts > -1e-9).all()
        assert parts.sum() == pytest.approx(area, rel=1e-9)
