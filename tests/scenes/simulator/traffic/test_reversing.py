"""Drivers back into bays, along the kerb and out of bays, and wait while somebody is behind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from straight_road import FPS, LANE_M, People, config, put, run, straight, world

from roadaware.simulator.actors import AV_ACTIONS, Lamp
from roadaware.simulator.config import Behaviour, Conditions
from roadaware.simulator.traffic import cast
from roadaware.simulator.traffic.loop import World, simulate
from roadaware.simulator.traffic.manoeuvres import BESIDE_M, compute_berth, find_bays_beside

H = LANE_M / 2
EMPTY = Behaviour(vehicles=0.0, parked=0.0)


def parking(people: People | None = None, seconds: float = 30.0) -> tuple[World, object]:
    """A car that will back into a bay beside the road."""
    there = world(straight(bay_lane=True), people, seconds=seconds, behaviour=EMPTY)
    there.ego.hazard = True
    bays = find_bays_beside(there.net.layout, there.net.layout.lanes[0])
    car = put(there, "Car", 0, 95.0, 6.0, speed=6.0)
    car.berth = compute_berth(car, bays[3])
    return there, car


def test_a_driver_stops_beyond_the_bay_and_backs_into_it_with_the_reverse_lamp_lit() -> None:
    there, car = parking()
    bay = car.berth.bay_s
    assert abs(car.berth.left_m) < BESIDE_M
    assert run(there, lambda: car.hold == "parked") > 0
    run(there, seconds=1.0)
    rows = np.array(car.trail)
    assert rows[-1, :2] == pytest.approx([bay, -LANE_M - 1.1], abs=0.6)
    assert abs(rows[-1, 2]) < 0.03, "it stands along the kerb"
    back = rows[:, 3] < -0.15
    assert back.sum() > 3 * FPS
    lamps = rows[:, 4].astype(int)
    assert ((lamps[back] & Lamp.REVERSE) > 0).all()
    assert not (lamps[rows[:, 3] > 0.3] & Lamp.REVERSE).any()
    before = np.flatnonzero(back)[0]
    assert (rows[before - int(2 * FPS) : before, 10] == -1).all(), "it indicates towards the kerb before"
    assert rows[:before, 0].max() > bay + 8.0
    turn = np.abs(np.diff(rows[:, 2]))
    steps = np.hypot(*np.diff(rows[:, :2], axis=0).T)
    assert (turn <= 0.35 * steps + 1e-6).all()


def test_nobody_reverses_while_somebody_walks_behind() -> None:
    at = (122.0, -4.0)
    there, car = parking(People(lambda t: [(*at, 0.0, 0.0)] if t < 16 else []), seconds=40.0)
    run(there, seconds=16.0)
    rows = np.array(car.trail)
    assert ((rows[:, 0] - car.length / 2)[rows[:, 3] < -0.1] > at[0]).all()


def test_who_follows_keeps_back_from_who_is_going_to_reverse() -> None:
    there, car = parking(seconds=40.0)
    follower = put(there, "Car", 0, 75.0, 6.0, speed=6.0)
    run(there, lambda: car.hold == "parked")
    assert car.hold == "parked"
    mine, theirs = np.array(car.trail), np.array(follower.trail)
    along, beside = np.abs(mine[:, 0] - theirs[:, 0]), np.abs(mine[:, 1] - theirs[:, 1])
    long, wide = (car.length + follower.length) / 2, (car.width + follower.width) / 2
    assert ((along > long + 0.3) | (beside > wide + 0.1)).all()


def test_a_van_backs_up_along_the_kerb_with_hazard_lights_on_and_then_stands() -> None:
    there = world(straight(), seconds=12.0, behaviour=EMPTY)
    van = put(there, "MedVeh", 0, 160.0, left_m=-0.5)
    van.hazard, van.reverse_m = True, 4.0
    run(there)
    rows = np.array(van.trail)
    assert rows[0, 0] - rows[-1, 0] == pytest.approx(4.0, abs=0.3)
    assert abs(rows[-1, 3]) < 0.01
    assert (rows[:, 10] == 2).all()


def test_the_own_vehicle_may_start_in_a_bay_from_where_it_backs_and_pulls_out(monkeypatch) -> None:
    monkeypatch.setattr(cast, "OWN_PARKED", 1.0)
    setting = replace(config(20.0), behaviour=replace(EMPTY, parked=1.0, vehicles=0.0))
    lived = simulate(straight(bay_lane=True), setting, Conditions(), np.random.default_rng(0), People())
    ego = lived.ego
    assert ego.position[0, 1] == pytest.approx(-LANE_M - 1.1, abs=0.05)
    assert ego.speed.min() < -0.3
    assert ego.position[-1, 1] == pytest.approx(-H, abs=0.1)
    assert {"AV-Stop", "AV-Mov", "AV-MovLft"} <= {AV_ACTIONS[k] for k in np.unique(ego.action)}
    steps = np.diff(ego.position[:, :2], axis=0) * FPS
    slip = steps[:, 1] * np.cos(ego.heading[1:]) - steps[:, 0] * np.sin(ego.heading[1:])
    assert np.abs(slip).max() < 0.35
    for parked in lived.vehicles:
        assert np.hypot(*(parked.position[0, :2] - ego.position[0, :2])) > 6.0
