"""Laws of everybody on foot: how they move, what is known of them, and how many cross."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from straight_street import FPS, HALF_M, LENGTH_M, live, somebody, street

from roadaware.simulator.actors import Actor, Pose
from roadaware.simulator.config import Behaviour, Conditions, SceneConfig, build_scene_config
from roadaware.simulator.town import make_layout
from roadaware.simulator.town.regions import On, Regions
from roadaware.simulator.traffic.loop import simulate
from roadaware.simulator.walkers import Walkers
from roadaware.simulator.walkers.persons import Start


def scene(config: SceneConfig, seed: int):
    """The layout, the lived traffic, and everybody on foot."""
    streams = np.random.default_rng(seed).spawn(3)
    layout = make_layout(config, streams[0])
    walkers = Walkers(layout, config, streams[1], config.n_frames, config.camera.fps)
    lived = simulate(layout, config, Conditions(), streams[2], walkers)
    return layout, lived, walkers.actors(0)


@pytest.fixture(scope="module")
def town():
    """One scene with many people; crossings and junctions included."""
    base = build_scene_config("crossing")
    busy = replace(base.behaviour, pedestrians=16.0, vehicles=2.0)
    config = replace(base, seconds=8.0, camera=replace(base.camera, fps=12.0), behaviour=busy)
    return config, *scene(config, 4)


def on_foot(actors: tuple[Actor, ...]) -> list[Actor]:
    return [actor for actor in actors if actor.kind == "Ped"]


def check_motion(actor: Actor, fps: float) -> None:
    """Nobody jumps, turns at once or slides: speed, gait and pose are those of the way they go."""
    step = np.diff(actor.position[:, :2], axis=0)
    pace = np.hypot(*step.T) * fps
    assert pace.max(initial=0.0) < 4.0
    assert np.abs(np.abs(actor.speed[1:]) - pace).max(initial=0.0) < 1e-6
    turn = np.abs((np.diff(actor.heading) + np.pi) % (2 * np.pi) - np.pi) * fps
    assert turn.max(initial=0.0) < 4.5
    assert np.abs(actor.gaze).max() < 1.4
    moving = (pace > 0.3) & np.isin(actor.pose[1:], (Pose.WALK, Pose.RUN)) & (actor.speed[1:] > 0)
    stride = 2 * np.pi * pace[moving] / fps / np.diff(actor.gait)[moving]
    # Metres in two steps.
    assert ((stride > 0.8) & (stride < 3.2)).all()
    standing = actor.pose[1:] == Pose.STAND
    assert pace[standing].max(initial=0.0) < 0.4


def check_place(actor: Actor, regions: Regions, fps: float) -> None:
    """Whoever is on the road is known to be, and began at the kerb."""
    where = regions.at(actor.position[:, :2])
    low = np.isin(where.on, (On.ROAD, On.JUNCTION, On.PARKING, On.CROSSING))
    low |= (where.on == On.BUS_STOP) & (where.height_m == 0)
    out = actor.facts["crossing"].astype(bool)
    # Lines of kerbs are drawn through points, to some millimetres: a frame more or less.
    near = out | np.append(out[1:], False) | np.append(False, out[:-1])
    assert not (low & ~near).any()
    assert (np.abs(actor.position[:, 2] - where.height_m)[~out] < 0.13).all()
    mind = actor.mind
    if mind is None or mind.crossing is None or mind.crossing == actor.first:
        return
    row = mind.crossing - actor.first
    assert out[row]
    assert not out[:row].any()
    # A step before they were on the pavement, a step on they are farther in.
    assert np.hypot(*(actor.position[row] - actor.position[row - 1])[:2]) < 0.5
    assert mind.start < mind.critical < mind.crossing


def check_mind(actor: Actor, fps: float, frames: int) -> None:
    mind = actor.mind
    if mind is None:
        return
    assert 0.0 <= mind.intention_prob <= 1.0
    assert actor.first <= mind.start < mind.critical < actor.end <= frames
    assert mind.critical - mind.start + 1 >= 0.5 * fps
    assert mind.age in ("child", "young", "adult", "senior")
    assert mind.signalized in ("n/a", "C", "S", "CS")
    assert not mind.crosses or (mind.crossing is not None and mind.wants)
    waits = actor.facts["waiting"].astype(bool)
    assert mind.wants or not (waits.any() or actor.facts["crossing"].any())


def test_everybody_keeps_the_laws(town) -> None:
    config, layout, _, actors = town
    people, fps = on_foot(actors), config.camera.fps
    regions = Regions(layout)
    assert len(people) > 25
    assert sum(actor.mind is not None for actor in people) >= 5
    assert sum(actor.facts["crossing"].any() for actor in people) >= 3
    for number, actor in enumerate(actors):
        assert actor.number == number
    for actor in people:
        check_motion(actor, fps)
        check_place(actor, regions, fps)
        check_mind(actor, fps, config.n_frames)


@pytest.mark.slow
def test_same_seed_same_people(town) -> None:
    config, _, _, actors = town
    _, _, again = scene(config, 4)
    _, _, others = scene(config, 5)
    assert len(actors) == len(again)
    for one, two in zip(actors, again, strict=True):
        assert np.array_equal(one.position, two.position)
        assert np.array_equal(one.gait, two.gait)
        assert one.mind == two.mind
        assert one.look == two.look
    assert [actor.look for actor in actors] != [actor.look for actor in others]


def test_people_who_meet_on_a_pavement_pass_each_other() -> None:
    layout = street()
    starts = [
        Start(somebody(wants=False, pace=1.3), 1, 100.0, 1.3, 1),
        Start(somebody(wants=False, pace=1.2), 1, 112.0, 1.25, -1),
    ]
    one, other = live(layout, starts, lambda s: [(105.0, 0.4)], seconds=15.0)
    assert np.hypot(*(one.position - other.position)[:, :2].T).min() > 0.45
    assert one.position[-1, 0] > other.position[-1, 0]
    for actor in (one, other):
        assert (np.abs(actor.position[:, 1]) > HALF_M + 0.2).all()
        check_motion(actor, FPS)


def test_whoever_is_far_from_the_own_vehicle_is_not_recorded() -> None:
    start = Start(somebody(wants=False), 1, LENGTH_M - 5.0, 1.0, -1)
    assert live(street(), [start], lambda s: [(5.0, 0.1)], seconds=2.0) == ()
    (late,) = live(street(), [start], lambda s: [(140.0 + 15 * s, 15.0)], seconds=4.0)
    assert late.first > 0


def test_nobody_is_about_where_nobody_is_asked_for() -> None:
    config = SceneConfig(seconds=1.0, behaviour=Behaviour(pedestrians=0.0))
    _, _, actors = scene(config, 1)
    assert on_foot(actors) == []


@pytest.mark.slow
def test_shares_of_twenty_scenes_and_speed() -> None:
    config = build_scene_config("crossing")
    config = replace(config, camera=replace(config.camera, fps=12.0))
    asked, wanted, crossed, guesses = 0, 0, 0, ([], [])
    for seed in range(20):
        layout, _, actors = scene(config, seed)
        regions = Regions(layout)
        for actor in on_foot(actors):
            check_motion(actor, config.camera.fps)
            check_place(actor, regions, config.camera.fps)
            check_mind(actor, config.camera.fps, config.n_frames)
            if actor.mind is not None:
                asked, wanted = asked + 1, wanted + actor.mind.wants
                crossed += actor.mind.crosses
                guesses[actor.mind.wants].append(actor.mind.intention_prob)
    assert asked > 100
    assert 0.3 < crossed / asked < 0.6
    assert crossed < wanted < 0.85 * asked
    assert np.mean(guesses[True]) > np.mean(guesses[False]) + 0.25
    assert np.max(guesses[False]) > 0.5
    assert np.min(guesses[True]) < 0.6
