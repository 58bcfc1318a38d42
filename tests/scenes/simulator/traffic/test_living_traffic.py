"""Whole scenes: nobody collides, jumps, speeds or appears from nowhere; chance is the rng's."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from straight_road import People, config, straight

from roadaware.simulator.actors import AV_ACTIONS, Actor, Lamp, Light
from roadaware.simulator.config import Behaviour, Conditions, SceneConfig, build_scene_config
from roadaware.simulator.town import make_layout
from roadaware.simulator.traffic.loop import Lived, simulate
from roadaware.simulator.walkers import Walkers

OWN_M = (4.4, 1.82)
FACTS = ("turning", "shifting", "overtaking", "signals", "braking")


def scene(
    seed: int, setting: SceneConfig, on_foot: bool = False, time="day"
) -> tuple[Lived, Walkers | People]:
    layout = make_layout(setting, np.random.default_rng([seed, 0]))
    people: Walkers | People = People()
    if on_foot:
        frames, fps = setting.n_frames, setting.camera.fps
        people = Walkers(layout, setting, np.random.default_rng([seed, 1]), frames, fps)
    rng = np.random.default_rng([seed, 2])
    return simulate(layout, setting, Conditions(time, "clear"), rng, people), people


def corners(x: float, y: float, heading: float, size) -> np.ndarray:
    c, s = np.cos(heading), np.sin(heading)
    half = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * np.array(size[:2]) / 2
    return np.array([x, y]) + half @ np.array([[c, s], [-s, c]])


def overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two rectangles overlap: no side of either parts them."""
    for box in (a, b):
        for k in range(2):
            axis = box[k + 1] - box[k]
            p, q = a @ axis, b @ axis
            if p.max() <= q.min() or q.max() <= p.min():
                return False
    return True


def bodies(lived: Lived):
    """(first, end, xy, heading, size, active, kind) of everybody on wheels, the own vehicle last."""
    rows = [(a.first, a.end, a.position, a.heading, a.size_m, a.active, a.kind) for a in lived.vehicles]
    ego = lived.ego
    middle = ego.position[:, :2] + 1.3 * np.stack([np.cos(ego.heading), np.sin(ego.heading)], axis=1)
    return [*rows, (0, len(ego.heading), middle, ego.heading, OWN_M, True, "own")]


def collisions(lived: Lived, every: int) -> list[tuple[int, str, str]]:
    found = []
    everybody = bodies(lived)
    for frame in range(0, len(lived.ego.heading), every):
        there = [b for b in everybody if b[0] <= frame < b[1]]
        xy = np.array([b[2][frame - b[0], :2] for b in there])
        away = np.hypot(*(xy[:, None] - xy).transpose(2, 0, 1))
        for i, j in zip(*np.nonzero(np.triu(away < 14.0, 1)), strict=True):
            a, b = there[i], there[j]
            if (a[5] or b[5]) and overlap(
                corners(*xy[i], a[3][frame - a[0]], a[4]), corners(*xy[j], b[3][frame - b[0]], b[4])
            ):
                found.append((frame, a[6], b[6]))
    return found


def check_motion(lived: Lived, fps: float, usual: float) -> None:
    for actor in [a for a in lived.vehicles if a.active and len(a.heading) > 3]:
        rate = np.gradient(actor.position[:, :2], axis=0) * fps
        assert np.hypot(*rate.T) == pytest.approx(np.abs(actor.speed), abs=0.11)
        assert np.abs(np.gradient(actor.speed) * fps).max() < 7.0
        # A third of a radian per metre is a circle of three metres: cyclists at a corner.
        steps = np.hypot(*np.diff(actor.position[:, :2], axis=0).T)
        assert (np.abs(np.diff(actor.heading)) <= 0.35 * steps + 1e-6).all()
        if actor.kind != "EmVeh":
            assert actor.speed.max() < 1.15 * usual
        assert set(FACTS) <= set(actor.facts)
        assert all(len(v) == len(actor.heading) for v in actor.facts.values())


def check_ego(lived: Lived, fps: float) -> None:
    ego = lived.ego
    rate = np.gradient(ego.position[:, :2], axis=0) * fps
    assert np.hypot(*rate.T) == pytest.approx(ego.speed, abs=0.11)
    assert ego.acceleration == pytest.approx(np.gradient(ego.speed) * fps)
    assert ego.yaw_rate == pytest.approx(np.gradient(ego.heading) * fps)
    assert np.abs(ego.acceleration).max() < 7.0
    # The rear axle does not slip sideways.
    slip = rate[:, 1] * np.cos(ego.heading) - rate[:, 0] * np.sin(ego.heading)
    assert np.abs(slip).max() < 0.35
    assert (ego.speed[ego.action == AV_ACTIONS.index("AV-Stop")] < 0.3).all()
    assert (ego.lane[ego.action == AV_ACTIONS.index("AV-TurLft")] == -1).all()


def check_entrances(lived: Lived, n_frames: int) -> None:
    ego = lived.ego.position[:, :2]
    left_bay = {(a.end, *a.position[-1, :2].round(0)) for a in lived.vehicles if not a.active}
    for actor in [a for a in lived.vehicles if a.active]:
        came = np.hypot(*(actor.position[0, :2] - ego[actor.first]))
        was_parked = (actor.first, *actor.position[0, :2].round(0)) in left_bay
        assert actor.first == 0 or came > 50.0 or was_parked
        assert actor.end == n_frames or np.hypot(*(actor.position[-1, :2] - ego[actor.end - 1])) > 50.0


def of_numbers(lived: Lived) -> None:
    assert [a.number for a in lived.vehicles] == list(range(len(lived.vehicles)))
    assert [s.number for s in lived.signals] == list(range(len(lived.signals)))
    assert all(len(s.state) == len(lived.ego.heading) for s in lived.signals)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "domain", "seed"),
    [
        ("road", None, 3),
        ("road", None, 5),
        ("crossing", None, 1),
        ("road", "city-b", 2),
        ("corner-cases", None, 0),
    ],
)
def test_traffic_keeps_the_laws_of_motion_and_nobody_collides(preset, domain, seed):
    setting = build_scene_config(preset, domain)
    lived, _ = scene(seed, setting)
    fps = setting.camera.fps
    of_numbers(lived)
    assert collisions(lived, max(round(fps / 4), 1)) == []
    check_motion(lived, fps, setting.behaviour.ego_speed_kmh / 3.6)
    check_ego(lived, fps)
    check_entrances(lived, setting.n_frames)


def same(a: Actor, b: Actor) -> bool:
    lines = ("position", "heading", "speed", "lamps", "lane", "gait")
    return (a.kind, a.model, a.look, a.first) == (b.kind, b.model, b.look, b.first) and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in lines
    )


@pytest.mark.slow
def test_the_same_rng_gives_the_same_traffic_and_another_gives_another():
    setting = replace(build_scene_config("road"), seconds=6.0)
    first, again, other = (scene(seed, setting, on_foot=True)[0] for seed in (4, 4, 5))
    assert len(first.vehicles) == len(again.vehicles)
    assert all(same(a, b) for a, b in zip(first.vehicles, again.vehicles, strict=True))
    assert np.array_equal(first.ego.position, again.ego.position)
    assert all(np.array_equal(a.state, b.state) for a, b in zip(first.signals, again.signals, strict=True))
    assert not np.array_equal(first.ego.position[:5], other.ego.position[:5])


def test_people_see_the_own_vehicle_first_and_the_lights_of_each_frame():
    people = People()
    setting = config(5.0, Behaviour(vehicles=5.0))
    layout = straight("signalled")
    lived = simulate(layout, setting, Conditions(), np.random.default_rng(0), people)
    assert [view.frame for view in people.views] == list(range(setting.n_frames))
    ego = lived.ego
    for view in people.views[::7]:
        turn = ego.heading[view.frame]
        middle = ego.position[view.frame, :2] + 1.3 * np.array([np.cos(turn), np.sin(turn)])
        assert view.position[0] == pytest.approx(middle, abs=0.02)
        assert view.time_s == pytest.approx(view.frame / 12)
        assert len(view.position) == len(view.speed) == len(view.width) > 1
        assert view.signal(1) == Light(int(lived.signals[1].state[view.frame]))


def test_head_lamps_are_lit_at_night_and_parked_vehicles_are_dark():
    setting = replace(build_scene_config("road"), seconds=1.0)
    day, _ = scene(5, setting)
    night, _ = scene(5, setting, time="night")
    assert not any((a.lamps & Lamp.HEAD).any() for a in day.vehicles)
    for actor in night.vehicles:
        assert ((actor.lamps & Lamp.HEAD) > 0).all() == actor.active


def test_vehicles_drive_round_what_lies_on_their_lane_or_stop_before_it():
    layout, people = straight(), People()
    setting = config(20.0, Behaviour(vehicles=0.0, parked=0.0))
    none = np.zeros(1)
    for y, passes in ((-2.6, True), (0.0, False)):
        size = (1.0, 1.0, 0.5) if passes else (1.0, 6.0, 0.5)
        thing = Actor(
            0, "debris", "debris", size, 0, 0, np.array([[130.0, y, 0.0]]), none, none,
            none.astype(np.uint8), none.astype(np.uint8), none, none, none.astype(np.int64),
        )  # fmt: skip
        lived = simulate(layout, setting, Conditions(), np.random.default_rng(0), people, [thing])
        assert (lived.ego.position[-1, 0] > 150.0) == passes
        assert passes or lived.ego.speed[-1] < 0.1


@pytest.mark.slow
def test_twenty_scenes_without_a_collision_and_nobody_on_foot_is_hit():
    setting = build_scene_config("road")
    for seed in range(20):
        lived, walkers = scene(seed, setting, on_foot=True)
        assert collisions(lived, 2) == []
        check_motion(lived, 12.0, setting.behaviour.ego_speed_kmh / 3.6)
        check_ego(lived, 12.0)
        check_entrances(lived, setting.n_frames)
        for person in [p for p in walkers.actors(0) if p.kind == "Ped"]:
            for first, end, xy, heading, size, active, _ in bodies(lived):
                low, high = max(first, person.first), min(end, person.end)
                if low < high and active:
                    away = person.position[low - person.first : high - person.first, :2]
                    away = away - xy[low - first : high - first, :2]
                    c, s = (
                        np.cos(heading[low - first : high - first]),
                        np.sin(heading[low - first : high - first]),
                    )
                    along, left = away[:, 0] * c + away[:, 1] * s, away[:, 1] * c - away[:, 0] * s
                    assert not ((np.abs(along) < size[0] / 2) & (np.abs(left) < size[1] / 2)).any()


@pytest.mark.slow
def test_everything_that_vehicles_do_happens_in_some_of_thirty_scenes():
    setting = build_scene_config("road")
    seen: Counter[str] = Counter()
    for seed in range(30):
        lived, _ = scene(seed, setting)
        seen.update(AV_ACTIONS[k] for k in np.unique(lived.ego.action))
        seen.update(f"light {k}" for s in lived.signals for k in np.unique(s.state))
        for actor in [a for a in lived.vehicles if a.active]:
            seen[actor.kind] += 1
            seen.update(f"{name} {k}" for name, values in actor.facts.items() for k in np.unique(values) if k)
            seen.update(f"lamp {lamp.name}" for lamp in Lamp if (actor.lamps & lamp).any())
    wanted = [*AV_ACTIONS, "Car", "Cyc", "MedVeh", "LarVeh", "Bus", "Mobike", "EmVeh", "overtaking 1"]
    wanted += [f"{name} {k}" for name in ("turning", "shifting", "signals") for k in (-1, 1)]
    wanted += ["signals 2", "braking 1", *(f"light {int(k)}" for k in Light)]
    wanted += [f"lamp {lamp.name}" for lamp in Lamp if lamp is not Lamp.HEAD]
    assert [name for name in wanted if not seen[name]] == []
    assert seen["Car"] > seen["Cyc"] > seen["MedVeh"] > seen["LarVeh"] > seen["EmVeh"]
