"""Things lie ahead of the own vehicle, dogs run before it; streets sound like those who are there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from straight_street import comer, live, street

from roadaware.datasets.chaotic_vocabulary import find_canonical_name
from roadaware.simulator.actors import OBJECTS, VEHICLES, Actor, Ego, Lamp
from roadaware.simulator.config import Behaviour, CameraConfig, Conditions, SceneConfig, build_scene_config
from roadaware.simulator.episode import Episode
from roadaware.simulator.make import (
    Strewn,
    add_corner_objects,
    build_own_path,
    make_episode,
    simulate_blown_bags,
)
from roadaware.simulator.sound import collect_street_noises
from roadaware.simulator.town import make_layout
from roadaware.simulator.town.regions import On, Regions
from roadaware.simulator.traffic.loop import TrafficView, compute_start_position, simulate
from roadaware.simulator.walkers.crowd import Dog, Strays

FRAMES, FPS = 20, 5.0


def own(path, start: float, speed: float, frames: int = FRAMES, fps: float = FPS) -> Ego:
    """The own vehicle at an even speed along a line."""
    s = start + speed * np.arange(frames) / fps
    position = np.concatenate([path.at(s), np.zeros((frames, 1))], axis=1)
    none = np.zeros(frames)
    whole = np.zeros(frames, dtype=np.int64)
    return Ego(position, path.heading(s), np.full(frames, speed), none, none, whole, whole)


def vehicle(number: int, kind: str, x, y: float, speed: float, lamps: int = 0, model: str = "") -> Actor:
    """A vehicle that drives along x."""
    n = len(x)
    none = np.zeros(n)
    place = np.stack([x, np.full(n, y), none], axis=1)
    return Actor(
        number, kind, model, (4.5, 1.8, 1.5), 0, 0, place, none, np.full(n, speed),
        np.full(n, lamps, dtype=np.uint8), np.zeros(n, dtype=np.uint8), none, none,
        np.zeros(n, dtype=np.int64),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_things_lie_ahead_on_the_ground_in_nobodys_way(seed: int) -> None:
    base = build_scene_config("corner-cases")
    config = replace(base, behaviour=replace(base.behaviour, objects=12))
    layout = make_layout(config, np.random.default_rng(seed))
    path, start = build_own_path(layout), compute_start_position(layout)
    strewn = add_corner_objects(layout, config, start, np.random.default_rng(seed))
    again = add_corner_objects(layout, config, start, np.random.default_rng(seed))
    assert [a.kind for a in strewn.lying] == [a.kind for a in again.lying]
    assert len(strewn.lying) + len(strewn.dogs) + strewn.bags >= 9
    regions = Regions(layout)
    for number, thing in enumerate(strewn.lying):
        assert thing.number == number
        assert thing.kind in OBJECTS
        assert len(thing.heading) == config.n_frames
        assert np.ptp(thing.position, axis=0).max() == 0.0
        where = regions.at(thing.position[:1, :2])
        assert where.on[0] != On.OFF
        assert thing.position[0, 2] == pytest.approx(where.height_m[0])
        s = float(path.project(thing.position[[0], :2])[0][0])
        assert start + 8.0 < s < start + 33.4 + 60.0
        away = np.hypot(*(thing.position[0, :2] - path.at(start)))
        assert away > 5.0, "the own vehicle has room to brake"


def test_bags_blow_where_they_touch_nobody() -> None:
    config = build_scene_config("corner-cases")
    layout = make_layout(config, np.random.default_rng(1))
    ego = own(build_own_path(layout), 60.0, 8.0)
    bags = simulate_blown_bags(layout, ego, config, np.random.default_rng(2), 4, ())
    assert [bag.number for bag in bags] == list(range(len(bags)))
    assert bags
    for bag in bags:
        steps = np.hypot(*np.diff(bag.position[:, :2], axis=0).T) * FPS
        assert 0.0 < steps.max() < 6.0
        away = bag.position[:, :2] - ego.position[:, :2]
        ahead = away[:, 0] * np.cos(ego.heading) + away[:, 1] * np.sin(ego.heading)
        left = away[:, 1] * np.cos(ego.heading) - away[:, 0] * np.sin(ego.heading)
        assert not ((ahead > -1.0) & (ahead < 3.7) & (np.abs(left) < 1.0)).any()


class Nobody:
    """Nobody on foot."""

    def step(self, frame: int, view: TrafficView) -> None:
        pass

    def on_road(self):
        return np.zeros((0, 2)), np.zeros((0, 2))

    def waiting(self):
        return np.zeros((0, 2))


@pytest.mark.parametrize(("gap_m", "first"), [(28.0, True), (7.0, False)])
def test_dogs_run_before_who_can_brake_and_wait_for_who_cannot(gap_m: float, first: bool) -> None:
    layout = street()
    line = layout.roads[0].line
    dog = Dog(line, compute_start_position(layout) + gap_m, 1.0, 4.5, 4.5, 3.3, 0.0, 4.0, 0.0)
    config = SceneConfig(seconds=6.0, behaviour=Behaviour(vehicles=0.0, pedestrians=0.0, parked=0.0))
    strays = Strays(Nobody(), [dog], config.camera.fps)
    lived = simulate(layout, config, Conditions(), np.random.default_rng(0), strays)
    (track,) = strays.tracks()
    over = int(np.flatnonzero(track[:, 1] < -3.3)[0])
    front = line.project(lived.ego.position[:, :2])[0] + 3.5
    assert (front[over] < dog.along_m) == first
    assert lived.ego.speed.min() < 8.0, "drivers brake for dogs"
    for frame, (x, y, _) in enumerate(track):
        heading = lived.ego.heading[frame]
        away = np.array([x, y]) - lived.ego.position[frame, :2]
        ahead = away @ np.array([np.cos(heading), np.sin(heading)])
        left = away @ np.array([-np.sin(heading), np.cos(heading)])
        assert not (-0.9 < ahead < 3.5 and abs(left) < 0.91)


def inside(points: np.ndarray, xy: np.ndarray, heading: np.ndarray, size) -> np.ndarray:
    """(n,) whether any of (k, 2) points lies in a rectangle, in each of its places."""
    away = points[:, None] - xy
    c, s = np.cos(heading), np.sin(heading)
    along, left = away[..., 0] * c + away[..., 1] * s, away[..., 1] * c - away[..., 0] * s
    return ((np.abs(along) < size[0] / 2) & (np.abs(left) < size[1] / 2)).any(0)


@pytest.mark.slow
def test_nobody_drives_over_what_lies_there_and_some_go_round_it() -> None:
    around = stopped = 0
    for number in range(16):
        episode = make_episode(build_scene_config("corner-cases"), 0, number)
        ego, lying = (
            episode.ego,
            [a for a in episode.actors if a.kind in OBJECTS and not np.ptp(a.position, 0).any()],
        )
        middle = ego.position[:, :2] + 1.3 * np.stack([np.cos(ego.heading), np.sin(ego.heading)], axis=1)
        moving = [a for a in episode.actors if a.active and a.kind in VEHICLES]
        for thing in lying:
            turn, (long, wide, _) = thing.heading[0], thing.size_m
            grid = np.array([(x, y) for x in (-0.5, 0.0, 0.5) for y in (-0.5, 0.0, 0.5)]) * (long, wide)
            points = thing.position[0, :2] + grid @ [
                [np.cos(turn), np.sin(turn)],
                [-np.sin(turn), np.cos(turn)],
            ]
            assert not inside(points, middle, ego.heading, (4.4, 1.8)).any(), (number, thing.kind)
            for vehicle in moving:
                hit = inside(points, vehicle.position[:, :2], vehicle.heading, vehicle.size_m)
                assert not hit.any(), (number, thing.kind, vehicle.kind)
        aside = np.abs(build_own_path(episode.layout).project(middle)[1]).max()
        around += aside > 0.4
        stopped += ego.speed[-1] < 0.6 * ego.speed[0]
    assert around >= 2
    assert stopped >= 2


def test_no_objects_where_none_are_asked_for() -> None:
    config = SceneConfig(behaviour=Behaviour(objects=0))
    assert add_corner_objects(street(), config, 60.0, np.random.default_rng(0)) == Strewn()


def heard(actors: tuple[Actor, ...], ego: Ego, fps: float = 10.0) -> list[tuple[str, int | None]]:
    config = SceneConfig(seconds=len(ego.heading) / fps, camera=CameraConfig(fps=fps))
    episode = Episode("a", 0, config, Conditions(), street(), ego, actors)
    noises = collect_street_noises(episode)
    for noise in noises:
        assert 0.0 <= noise.start_s < noise.end_s <= len(ego.heading) / fps
    return [(noise.label, noise.actor) for noise in noises]


def test_sounds_come_from_those_who_make_them() -> None:
    ego = own(build_own_path(street()), 50.0, 0.0, 40, 10.0)
    x = 60.0 + np.arange(40) * 0.5
    ambulance = vehicle(0, "EmVeh", x, 1.6, 5.0, int(Lamp.BEACON), "ambulance")
    lorry, far = vehicle(1, "LarVeh", x, 1.6, 5.0), vehicle(2, "Car", x + 200.0, 1.6, 5.0)
    found = heard((ambulance, lorry, far), ego)
    assert ("siren (ambulance)", 0) in found
    assert ("truck engine", 1) in found
    assert ("engine", None) in found
    assert all(actor != 2 for _, actor in found)
    assert find_canonical_name("siren (ambulance)", "sound")
    assert find_canonical_name("honking", "sound")


def test_horn_is_heard_when_somebody_steps_out_close_in_front() -> None:
    layout = street()
    (actor,) = live(layout, [comer(layout, 0.5)], lambda s: [(105.0 + 0.4 * s, 0.4)])
    step = int(np.flatnonzero(actor.facts["crossing"])[0])
    for gap_s, honks in ((1.5, True), (6.0, False)):
        start = 150.0 - 10.0 * (step / 10.0 + gap_s)
        path = build_own_path(layout)
        ego = own(path, start, 10.0, 200, 10.0)
        assert (("honking", None) in heard((actor,), ego)) == honks
