"""Drivers follow, stop, give way, yield, pass and make way, on hand-built roads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from straight_road import FPS, LANE_M, People, junction, put, run, straight, world

from roadaware.simulator.actors import Lamp, Light
from roadaware.simulator.config import Behaviour
from roadaware.simulator.traffic.cast import Parked
from roadaware.simulator.traffic.junctions import READY, Cycle
from roadaware.simulator.traffic.record import build_ego
from roadaware.simulator.traffic.vehicle import Shift, draw_make

H = LANE_M / 2


def put_aside(there) -> None:
    """The own vehicle stands off the road, near enough for all others to stay in the scene."""
    there.ego.hazard = True
    there.ego.x, there.ego.y = 200.0, 60.0


def behaviour(**more) -> Behaviour:
    return Behaviour(vehicles=0.0, parked=more.pop("parked", 0.0), **more)


def test_own_vehicle_keeps_its_speed_on_an_empty_road_and_arrays_are_differences_of_each_other():
    there = world(straight())
    run(there)
    ego = build_ego(there.ego, FPS)
    assert ego.speed == pytest.approx(30 / 3.6, abs=0.05)
    steps = np.diff(ego.position[:, 0]) * FPS
    assert steps == pytest.approx((ego.speed[1:] + ego.speed[:-1]) / 2, abs=0.02)
    assert ego.acceleration == pytest.approx(np.gradient(ego.speed) * FPS)
    assert ego.yaw_rate == pytest.approx(np.zeros(len(ego.yaw_rate)), abs=1e-9)
    assert (ego.lane == 0).all()
    assert (ego.action == 1).all()


def test_a_follower_stops_behind_who_stands_and_lights_its_brake_lamps_before():
    there = world(straight())
    lead = put(there, "Car", 0, 200.0, 0.0, speed=0.01)
    follower = put(there, "Car", 0, 110.0, 8.0)
    run(there, seconds=18)
    gap = lead.rear - follower.front
    assert 1.0 < gap < 3.5
    assert follower.v < 0.05
    lamps = [int(row[4]) for row in follower.trail]
    lit = [k for k, lamp in enumerate(lamps) if lamp & Lamp.BRAKE]
    assert lit
    assert follower.trail[lit[0]][3] > 4.0, "lamps are lit while it still moves fast"
    speeds = np.array([row[3] for row in follower.trail])
    assert np.abs(np.diff(speeds)).max() * FPS < 4.0, "seen early, braked for gently"


def test_vehicles_stand_at_red_and_go_at_green_in_that_order():
    there = world(straight("signalled"))
    there.lights.black = -1
    car = put(there, "Car", 0, 100.0, 8.0)
    passed = run(there, lambda: car.rear > 150.0, seconds=60)
    assert passed > 0
    states = [there.lights.group(0, k / FPS) for k in range(passed + 1)]
    over = next(k for k, row in enumerate(car.trail) if row[0] + car.length / 2 > 147.0)
    assert states[over] in (Light.GREEN, Light.AMBER)
    shown = np.array([there.lights.shown(k / FPS) for k in range(900)])
    both = (shown[:, 0] != Light.RED) & (shown[:, 1] == Light.GREEN)
    assert not both.any(), "walkers have green only while vehicles have red"
    assert set(np.unique(shown[:, 0])) == {Light.RED, Light.AMBER, Light.GREEN}
    assert READY not in shown


@pytest.mark.parametrize("yielding", [0.0, 1.0])
def test_drivers_yield_to_who_waits_at_a_zebra_as_often_as_they_are_told(yielding):
    people = People(waiting=lambda t: [(150.0, -H * 2 - 0.8)])
    there = world(straight("zebra"), people, behaviour=behaviour(yielding=yielding))
    cars = [put(there, "Car", 0, 105.0, 8.0), put(there, "Car", 1, 220.0, 8.0)]
    run(there, seconds=10)
    for car in cars:
        stood = min(row[3] for row in car.trail) < 0.5
        assert stood == bool(yielding)


def test_nobody_drives_through_somebody_on_the_road_however_late_they_come():
    for start_s in (1.0, 2.0, 3.0):

        def on_road(t, start_s=start_s):
            return [(150.0, -4.0 + 1.4 * (t - start_s), 0.0, 1.4)] if start_s < t < start_s + 6 else []

        there = world(straight(), People(on_road), behaviour=behaviour())
        car = put(there, "Car", 0, 110.0, 8.0)
        run(there, seconds=14)
        for k, row in enumerate(car.trail):
            for x, y, _, _ in on_road(k / FPS):
                ahead, beside = abs(x - row[0]) - car.length / 2, abs(y - row[1]) - car.width / 2
                assert ahead > 0.1 or beside > 0.1 or row[3] < 0.2
        speeds = np.array([row[3] for row in car.trail])
        assert (np.diff(speeds) * FPS).min() > -6.6


def test_who_comes_out_of_a_side_road_gives_way_and_goes_in_a_gap():
    there = world(junction())
    there.ego.hazard = True  # out of the way
    main = [put(there, "Car", 0, s, 8.0, [0]) for s in (100.0, 125.0, 150.0)]
    side = put(there, "Car", 4, 110.0, 5.0, [5], speed=7.0)
    entered = run(there, lambda: side.front > 145.0, seconds=30)
    assert entered > 0
    assert all(car.rear > 200.0 or car.front < 150.0 for car in main)
    turned = [int(row[7]) for row in side.trail]
    run(there, seconds=6)
    turned = [int(row[7]) for row in side.trail]
    signals = [int(row[10]) for row in side.trail]
    first = turned.index(1)
    assert signals[first - 1] == 1
    assert signals[: first - 1].count(1) >= 2 * FPS, "it indicates before it turns"
    assert set(turned) == {0, 1}


def test_a_turn_across_traffic_waits_for_it():
    there = world(junction())
    put_aside(there)
    oncoming = put(there, "Car", 0, 120.0, 8.0, [0])
    turning = put(there, "Car", 2, 130.0, 8.0, [3])
    run(there, lambda: turning.leg == 1 and turning.front > turning.path.legs[1].start + 4.0, seconds=20)
    assert oncoming.rear > 195.0


@pytest.mark.slow
@pytest.mark.parametrize("signals", [False, True])
def test_a_turn_across_traffic_waits_inside_the_junction_for_a_gap(signals):
    there = world(junction(signals))
    if signals:
        there.lights.cycles = {
            0: Cycle(100.0, 0.0, (0.0, 12.0, 15.0), (2, 1, 0)),
            1: Cycle(100.0, 0.0, (0.0,), (0,)),
        }
    put_aside(there)
    stream = [put(there, "Car", 0, s, 8.0, [0]) for s in (80.0, 100.0, 120.0, 140.0, 160.0)]
    turning = put(there, "Car", 2, 160.0, 8.0, [3], speed=8.0)
    behind = put(there, "Car", 2, 130.0, 8.0, [2], speed=8.0)
    run(there, lambda: turning.rear > turning.path.legs[1].end, seconds=25)
    stood = [row for row in turning.trail if row[3] < 0.3]
    assert stood
    for row in stood:
        front = turning.length / 2 * np.array([np.cos(row[2]), np.sin(row[2])]) + row[:2]
        assert 200.0 < front[0] < 209.0, "it stands inside, beyond the line"
        assert front[1] > 0.3, "and keeps clear of the oncoming lane"
    assert all(car.front > 205.0 for car in stream)
    assert turning.rear > turning.path.legs[1].end, "and it gets through"
    assert behind.s < turning.path.legs[1].end


def test_cyclists_hold_out_the_arm_before_a_turn_and_steer_with_both_hands_in_it():
    there = world(junction())
    put_aside(there)
    cyclists = [put(there, "Cyc", 2, 150.0, 5.0, [3]), put(there, "Cyc", 0, 130.0, 5.0, [1])]
    for cyclist, look in zip(cyclists, (7, 99), strict=True):
        cyclist.make = replace(cyclist.make, look=look)
    run(there, lambda: all(c.leg == 2 for c in cyclists), seconds=30)
    arms = [np.array([int(row[10]) for row in c.trail]) for c in cyclists]
    turns = [np.array([int(row[7]) for row in c.trail]) for c in cyclists]
    assert set(arms[0]) == {0, 1}
    assert (arms[0][turns[0] != 0] == 0).all()
    assert np.flatnonzero(arms[0])[-1] > np.flatnonzero(turns[0])[0] - FPS
    assert np.count_nonzero(arms[0]) > FPS
    assert not arms[1].any(), "some never do"
    assert not any(int(row[4]) & (Lamp.LEFT | Lamp.RIGHT) for row in cyclists[0].trail)


def test_a_cyclist_is_overtaken_over_the_middle_line_with_indicators_out_and_back():
    there = world(straight(), seconds=25)
    cyclist = put(there, "Cyc", 0, 110.0, 4.0, left_m=-(H - 0.6))
    cyclist.home_m = -(H - 0.6)
    run(there)
    rows = np.array(there.ego.trail)
    overtaking = rows[:, 9] > 0
    assert overtaking.any()
    assert there.ego.rear > cyclist.front
    shift = rows[:, 8][rows[:, 8] != 0]
    assert shift[0] == 1
    assert shift[-1] == -1
    beside = np.abs(rows[:, 0] - np.array([row[0] for row in cyclist.trail])) < 3.0
    room = np.abs(rows[beside, 1] - np.array([row[1] for row in cyclist.trail])[beside])
    assert room.min() > 1.9, "at least a metre between them"
    begun = int(np.flatnonzero(rows[:, 8] == 1)[0])
    assert (rows[begun - 8 : begun, 10] == 1).all(), "it indicates before it pulls out"
    assert {1, 6} <= set(build_ego(there.ego, FPS).action.tolist())


def test_who_stands_with_hazard_lights_is_passed_only_when_nobody_comes():
    there = world(straight(), seconds=30)
    stopped = put(there, "Car", 0, 130.0, left_m=-0.6)
    stopped.hazard = True
    oncoming = [put(there, "Car", 1, s, 8.0) for s in (200.0, 216.0, 232.0)]
    run(there)
    assert there.ego.rear > stopped.front
    rows = np.array(there.ego.trail)
    out = np.flatnonzero(np.abs(rows[:, 1] + H) > 1.2)
    for car in oncoming:
        other = np.array([row[:2] for row in car.trail])
        assert (np.abs(other[out, 0] - rows[out, 0]) > 6.0).all()
    assert {int(row[8]) for row in there.ego.trail} == {-1, 0, 1}
    assert not (rows[:, 9] > 0).any(), "passing what stands is no overtaking"
    lamps = np.array([int(row[4]) for row in stopped.trail])
    both = int(Lamp.LEFT | Lamp.RIGHT)
    lit = (lamps & both) == both
    assert lit.mean() == pytest.approx(0.5, abs=0.05)
    assert np.count_nonzero(np.diff(lit.astype(int)) == 1) == pytest.approx(1.5 * 30, abs=1.5)


def test_two_lanes_let_one_change_with_the_indicator_before():
    for seed in range(8):
        there = world(straight(lanes=2), seed=seed, lanes=2, seconds=20)
        put(there, "Car", 0, 115.0, 4.0, speed=4.0)
        run(there)
        rows = np.array(there.ego.trail)
        if (rows[:, 8] == -1).any():
            first = int(np.flatnonzero(rows[:, 8] == -1)[0])
            assert (rows[first - 12 : first, 10] == -1).all()
            assert int(rows[-1, 5]) == 1
            return
    raise AssertionError("nobody ever changed lanes")


def test_others_pull_aside_for_a_beacon_that_gets_past():
    there = world(straight(), seconds=25)
    car = put(there, "Car", 0, 110.0, 7.0)
    oncoming = put(there, "Car", 1, 220.0, 7.0)
    emergency = put(there, "EmVeh", 0, 75.0, 9.0)
    there.ego.s, there.ego.v = 20.0, 0.0
    there.ego.place()
    emergency.beacon = True
    run(there)
    for other in (car, oncoming):
        assert min(row[1] if other is car else -row[1] for row in other.trail) < -H - 0.3
    assert emergency.rear > car.front
    assert all(int(row[4]) & Lamp.BEACON for row in emergency.trail)


def test_a_bus_serves_its_stop_and_pulls_away():
    there = world(straight(bays=[(180.0, 194.0)]), seconds=40)
    bus = put(there, "Bus", 0, 120.0, 7.0)
    there.ego.hazard = True
    run(there)
    stood = np.array([row[0] for row in bus.trail if row[3] == 0.0])
    assert len(stood) > 4 * FPS
    assert 190.0 < stood.mean() + bus.length / 2 < 194.5
    assert bus.s > 210.0
    signals = [int(row[10]) for row in bus.trail]
    assert -1 in signals
    assert signals.index(-1) < signals.index(1), "towards the kerb, then away from it"


def test_parked_vehicles_reverse_in_their_bay_and_pull_out_when_nobody_comes():
    there = world(straight(bay_lane=True), seconds=30, behaviour=behaviour())
    make = draw_make(np.random.default_rng(0), "Car", 2.2, 4.8)
    there.cast.parked = [Parked(make, 150.0, -4.4, 0.0, 1, True, 2.5)]
    there.cast.config = world(straight(), behaviour=Behaviour(vehicles=1e-9)).config
    run(there)
    actors = there.cast.actors(360, FPS)
    still = next(a for a in actors if not a.active)
    moved = next(a for a in actors if a.active and a.first == still.end)
    assert np.allclose(still.position[-1], moved.position[0], atol=0.05)
    assert moved.speed.min() < -0.5
    reverse = (moved.lamps & Lamp.REVERSE) > 0
    assert reverse.any()
    assert not (moved.speed[reverse] > 0.1).any()
    assert moved.position[-1, 1] == pytest.approx(-H, abs=0.05)
    assert still.number < len(actors)
    assert not still.lamps.any()


def test_a_sideways_move_is_smooth_and_ends_where_it_should():
    move = Shift(10.0, 20.0, 0.5, 0.1, -2.0)
    s = np.linspace(5.0, 35.0, 601)
    left = np.array([move.at(float(x))[0] for x in s])
    slope = np.array([move.at(float(x))[1] for x in s])
    inside = (s > 10.1) & (s < 29.9)
    assert np.gradient(left, s)[inside] == pytest.approx(slope[inside], abs=2e-3)
    assert left[-1] == -2.0
    assert move.many(s[s > 10])[-1] == pytest.approx(-2.0)
    assert move.many(s[s >= 10]) == pytest.approx(left[s >= 10], abs=1e-9)
