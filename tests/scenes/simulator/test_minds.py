"""Causes and minds of simulated scenes: those who are named stand where the driver saw them, and minds agree with deeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.errors import DamagedError
from roadaware.simulator.actors import AV_ACTIONS, Cause, Pose
from roadaware.simulator.episode import Episode
from roadaware.simulator.make import make_episode
from roadaware.simulator.minds import (
    GOALS,
    SEES_M,
    TURNS,
    Culprits,
    has_noticed,
    list_culprits,
    list_minds,
)
from roadaware.training.events.scenes import (
    CAUSE_KINDS,
    IMAGE_PX,
    MindedScene,
    count_step,
    draw_config,
    load_minded_scene,
    make_minded_scene,
    render_small_images,
    save_minded_scene,
)

SEED, NUMBER = 301, 0
"""A town in which the own vehicle stands at a zebra crossing."""


@pytest.fixture(scope="module")
def episode() -> Episode:
    return make_episode(draw_config(SEED, NUMBER, "usual"), SEED, NUMBER)


@pytest.fixture(scope="module")
def scene() -> MindedScene:
    return make_minded_scene(SEED, NUMBER)


def test_every_cause_has_a_face_and_bounds_the_vehicle(episode: Episode) -> None:
    found = list_culprits(episode)
    assert len(found) == len(episode.ego.causes) == episode.n_frames - 1
    for frame, (each, causes) in enumerate(zip(found, episode.ego.causes, strict=True)):
        assert each.allows <= each.without
        # The tightest comes first, and a road that is free is always among them.
        assert [cause.allows for cause in causes] == sorted(cause.allows for cause in causes)
        assert causes[-1].kind == "free"
        places = np.concatenate([cause.places for cause in causes])
        for number in each.actors:
            actor = episode.actors[number]
            row = actor.at(frame)
            assert row is not None
            # Whoever pushes something answers for it, from 1.5 m behind.
            away = np.hypot(*(places - actor.position[row, :2]).T)
            assert away.min() < (1.6 if actor.with_object is not None else 0.3)
        for culprit in each.causes:
            assert culprit.actors or culprit.signals
            if culprit.kind == "zebra":
                assert all(episode.actors[n].kind == "Ped" for n in culprit.actors)
        if each.kind == "free":
            assert not each.causes


def test_a_stop_has_all_that_hold_it_and_what_it_would_stand_for_next(episode: Episode) -> None:
    nobody = np.zeros((0, 2))
    walker, driver = (
        next(a for a in episode.actors if a.kind == kind and a.thoughts is not None)
        for kind in ("Ped", "Car")
    )
    frame = next(
        f for f in range(episode.n_frames - 1) if walker.at(f) is not None and driver.at(f) is not None
    )
    places = [a.position[[a.at(frame)], :2] for a in (walker, driver)]
    group = (
        next(site.group for site in episode.layout.signals if not site.for_walkers)
        if episode.layout.signals
        else -1
    )
    causes = (
        Cause("person", places[0], -1, -1.5),
        Cause("vehicle", places[1], -1, 0.2),
        Cause("lights", nobody, group, 1.0),
        Cause("free", nobody, -1, 1.4),
    )

    def list_at(speed: float, held: tuple[Cause, ...]) -> Culprits:
        ego = replace(
            episode.ego,
            causes=tuple(held for _ in episode.ego.causes),
            speed=np.full(episode.n_frames, speed),
        )
        return list_culprits(replace(episode, ego=ego))[frame]

    found = list_at(0.0, causes)
    assert (found.kind, found.allows, found.without) == ("person", -1.5, 1.4)
    assert found.actors == {walker.number, driver.number}
    assert bool(found.signals) == (group >= 0)
    assert [each.binds for each in found.causes] == [True, True, False][: len(found.causes)]
    # One that drives is held by no light that it need not brake for yet.
    moving = list_at(5.0, causes)
    assert not moving.signals
    assert moving.without == 1.0
    # Nobody is to blame for a line at which it slows down all the same.
    line = list_at(0.0, (Cause("other", nobody, -1, -0.5), *causes[1:]))
    assert (line.kind, line.without) == ("line", -0.5)
    assert line.actors == {driver.number}


def test_who_stands_has_a_cause_and_who_goes_without_it_would_speed_up(episode: Episode) -> None:
    stands = episode.ego.action[:-1] == AV_ACTIONS.index("AV-Stop")
    found = list_culprits(episode)
    blamed = np.array([bool(each.actors or each.signals) for each in found])
    assert stands.sum() > 20
    # But for the moments in which it sets off again.
    assert blamed[stands].mean() > 0.8
    held = np.array([each.allows for each in found])
    assert (held[stands & blamed] < 0.5).all()
    # Where it speeds up all along, nothing holds it back.
    assert not any(each.actors for each, a in zip(found, held, strict=True) if a > 2.5)


def test_minds_agree_with_deeds(episode: Episode) -> None:
    minds = list_minds(episode)
    people = minds.filter(pl.col("kind") == "Ped")
    assert set(people["goal"].unique()) <= set(GOALS)
    assert set(minds.filter(pl.col("kind") != "Ped")["goal"].drop_nulls().unique()) <= set(TURNS)
    assert people["margin_s"].min() > 0  # type: ignore[operator]
    # Nobody is on the road who does not mean to cross it.
    assert people.filter("on_road")["goal"].unique().to_list() == ["cross"]
    # What was noticed stays so.
    assert (
        people.group_by("actor", maintain_order=True)
        .agg(pl.col("noticed").cast(pl.Int8).diff().min())["noticed"]
        .min()
        >= 0
    )  # type: ignore[operator]
    for (number,), rows in minds.partition_by("actor", as_dict=True).items():
        actor = episode.actors[int(str(number))]
        assert rows["frame"].to_list() == list(range(actor.first, actor.end))


def test_a_head_that_turns_to_the_vehicle_has_noticed_it(episode: Episode) -> None:
    someone = next(a for a in episode.actors if a.kind == "Ped" and len(a.heading) > 10)
    n = len(someone.heading)
    # 20 m to the west of somebody who looks north, then west, then north again.
    gaze = np.zeros(n)
    gaze[4] = np.pi / 2
    there = replace(someone, heading=np.full(n, np.pi / 2), gaze=gaze, pose=np.full(n, Pose.STAND, np.uint8))
    away = np.tile([20.0, 0.0], (n, 1))
    assert has_noticed(there, away).tolist() == [k >= 4 for k in range(n)]
    assert not has_noticed(there, away * (SEES_M / 20 + 0.1)).any()


def test_rows_are_those_of_the_boxes(scene: MindedScene, episode: Episode, tmp_path: Path) -> None:
    truth, n = scene.truth, len(scene.truth.frame)
    walks = truth.agent == 0
    assert ((scene.goal >= 0) <= walks).all()
    assert len(scene.culprit) == n
    assert scene.culprit.any()
    held = np.isin(np.arange(truth.n_frames), truth.frame[scene.culprit])
    assert (scene.several[held] > 0).all()
    assert not scene.unseen[scene.several == 0].any()
    assert not len(scene.image)
    # A culprit that is seen is seen in a frame that has its cause.
    frames = np.unique(truth.frame[scene.culprit])
    assert "free" not in {CAUSE_KINDS[k] for k in scene.kind[frames]}
    out = scene.on_road == 1
    assert (scene.steps_out[out] == -1).all()
    known = np.isfinite(scene.moved_m).all(axis=1)
    assert known.any()
    assert np.hypot(*scene.moved_m[known].T).max() < 10
    save_minded_scene(scene, tmp_path / "a.npz")
    again = load_minded_scene(tmp_path / "a.npz")
    for name in ("kind", "allows", "without", "several", "unseen", "culprit", "goal", "margin_s", "moved_m"):
        np.testing.assert_array_equal(getattr(again, name), getattr(scene, name))
    assert again.truth.size_px == truth.size_px
    assert again.truth.fps == truth.fps
    (tmp_path / "b.npz").write_bytes(b"no archive")
    with pytest.raises(DamagedError):
        load_minded_scene(tmp_path / "b.npz")


def test_small_images_show_every_moment_that_is_learnt_from(episode: Episode) -> None:
    # The first second alone: two images or more at any rate.
    n = round(episode.config.camera.fps)
    short = replace(episode, ego=replace(episode.ego, **{
        name: getattr(episode.ego, name)[:n]
        for name in ("position", "heading", "speed", "acceleration", "yaw_rate", "action", "lane")
    }))  # fmt: skip
    found = render_small_images(short)
    assert found.shape == (len(range(0, n, count_step(episode.config.camera.fps))), *IMAGE_PX[::-1], 3)
    assert found.dtype == np.uint8
    assert found.std() > 10
    assert count_step(30.0) == 8
    assert count_step(2.0) == 1
