"""Moments planted in simulated films are where, when and as hidden as they are said to be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks import triage_films
from benchmarks.triage import FPS, KINDS, Plant
from benchmarks.triage_films import SIZE, list_alarms, plant

from roadaware.analysis.triage import Drive
from roadaware.simulator.config import adapt_scene_config, build_scene_config
from roadaware.simulator.episode import Episode
from roadaware.simulator.make import make_episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.truth.seen import SeenCollector, build_block_soup, render_triangle_ids


@pytest.fixture(scope="module")
def episode() -> Episode:
    config = adapt_scene_config(build_scene_config("road@1"), seconds=16, size=SIZE, fps=FPS)
    return make_episode(config, 3, 0)


def count_pixels(episode: Episode, instance: int, at_s: float) -> int:
    """How many pixels show an instance at a time."""
    frame = round(at_s * FPS)
    camera = build_camera(episode.ego, episode.config, frame, episode.seed)
    soup = build_block_soup(episode, frame)
    seen = SeenCollector(episode, joints=False).add(frame, camera, render_triangle_ids(camera, soup), soup)
    return int(seen.visible_px[seen.instance == instance].sum())


def planted(episode: Episode, kind: str) -> tuple[Episode, Plant]:
    found = plant(episode, kind, np.random.default_rng(0))
    assert found is not None
    return found


def test_a_car_comes_over_from_behind_until_it_is_close_ahead(episode: Episode) -> None:
    changed, moment = planted(episode, "cut_in")
    car, ego = changed.actors[-1], changed.ego
    start, end = round(moment.start_s * FPS), round(moment.end_s * FPS)

    def away(frame: int) -> np.ndarray:
        """(F,) metres to where the vehicle is in each frame."""
        return np.hypot(*(ego.position[:, :2] - car.position[frame - car.first, :2]).T)

    behind = car.position[0, :2] - ego.position[car.first, :2]
    heading = ego.heading[car.first]
    assert behind @ [np.cos(heading), np.sin(heading)] < 0
    assert away(start).min() > 2.5
    assert away(end).min() < 0.8
    assert 9.0 < away(end)[end] < 11.5  # 8 m to its rear
    assert count_pixels(changed, car.number, moment.end_s) > 500


def test_a_child_is_hidden_by_the_van_until_it_steps_out(episode: Episode) -> None:
    changed, moment = planted(episode, "child")
    van, child = changed.actors[-2:]
    assert (van.active, child.kind) == (False, "Ped")
    assert child.size_m[2] < 1.5
    before, after = (count_pixels(changed, child.number, moment.start_s + s) for s in (-0.4, 0.8))
    assert before == 0
    assert after > 500
    at = child.at(round(moment.start_s * FPS))
    assert at is not None
    steps = np.hypot(*np.diff(child.position[at : at + 6, :2], axis=0).T) * FPS
    assert steps == pytest.approx(1.4, abs=0.05)


def test_an_object_lies_where_the_vehicle_drives(episode: Episode) -> None:
    changed, moment = planted(episode, "object")
    thing = changed.actors[-1]
    assert np.ptp(thing.position, axis=0).max() == 0
    away = np.hypot(*(changed.ego.position[:, :2] - thing.position[0, :2]).T)
    assert away.min() < 1.6
    assert abs(int(away.argmin()) - moment.end_s * FPS) < 5
    assert count_pixels(changed, thing.number, moment.end_s - 1.0) > 50


def test_a_light_of_the_own_way_is_red(episode: Episode) -> None:
    changed, moment = planted(episode, "red_light")
    light = changed.signals[-1]
    assert not light.state.any()
    assert set(light.lanes) <= set(changed.layout.route)
    away = np.hypot(*(changed.ego.position[:, :2] - light.position[:2]).T)
    assert abs(int(away.argmin()) - moment.end_s * FPS) < 5
    assert count_pixels(changed, len(changed.actors) + light.number, moment.start_s + 2.0) > 20


def test_a_siren_is_heard_for_four_seconds_and_nothing_else_changes(episode: Episode) -> None:
    changed, moment = planted(episode, "siren")
    noise = changed.noises[-1]
    assert noise.label.startswith("siren")
    assert (noise.start_s, noise.end_s) == (moment.start_s, moment.end_s)
    assert noise.end_s - noise.start_s == pytest.approx(4.0)
    assert changed.actors == episode.actors


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_vehicle_stands_nothing_is_planted(episode: Episode, kind: str) -> None:
    still = replace(episode, ego=replace(episode.ego, speed=np.zeros_like(episode.ego.speed)))
    assert plant(still, kind, np.random.default_rng(0)) is None


def test_an_alarm_is_true_in_each_of_its_seconds() -> None:
    sounds = pl.DataFrame(
        {
            "t_s": [2.0, 5.0],
            "end_s": [4.5, 9.0],
            "name": ["siren (police)", "speaking"],
            "score": [1.0, 1.0],
        }
    )
    t_s = np.arange(50) / 5
    nothing = pl.DataFrame(schema={"frame": pl.Int64, "tube": pl.Int64})
    still = Drive("v", (640.0, 360.0), np.arange(50), t_s, t_s, t_s, nothing, np.zeros((0, 0)), sounds=sounds)
    assert list_alarms(still).rows() == [
        ("v", "alarm", 2.0, 1.0),
        ("v", "alarm", 3.0, 1.0),
        ("v", "alarm", 4.0, 1.0),
    ]


def test_makers_that_meet_leave_each_other_alone(
    episode: Episode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = tmp_path / "films-truth" / "films-0003"
    truth.mkdir(parents=True)
    (truth / "of-one-that-was-killed").touch()
    drawn = []

    def draw(_: Episode, room: Path, **__: Any) -> None:
        assert not list(room.iterdir())
        (room / triage_films.VIDEO).write_bytes(b"film")
        triage_films.make_film(tmp_path, "films", 3)  # the other maker comes by
        drawn.append((room / triage_films.VIDEO).read_bytes())

    monkeypatch.setattr(triage_films, "make_planted", lambda *_: (episode, None))
    monkeypatch.setattr(triage_films, "render_scene", draw)
    for _ in range(2):
        triage_films.make_film(tmp_path, "films", 3)
    assert drawn == [b"film"]
    assert [path.name for path in (tmp_path / "films").iterdir()] == ["films-0003.mp4"]
    assert [path.name for path in truth.iterdir()] == ["plant.json"]
