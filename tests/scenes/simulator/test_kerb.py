"""People at a kerb: boxes of those who cross and those who do not are alike, images and joints are not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from roadaware.errors import UsageError
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.simulator.actors import Actor, Pose
from roadaware.simulator.config import CameraConfig, build_scene_config
from roadaware.simulator.episode import Episode
from roadaware.simulator.make import build_kerb_actor, draw_stands, make_episode, select_kerb_place
from roadaware.simulator.mesh import Camera, build_camera, merge_soups
from roadaware.simulator.people import compute_joints
from roadaware.simulator.render import Stage, build_actor_soup, render
from roadaware.simulator.town.regions import Regions
from roadaware.simulator.truth import SeenCollector, build_scene_tables
from roadaware.simulator.truth.seen import compute_projected_boxes

CONFIG = build_scene_config("kerb")
FPS = CONFIG.camera.fps
LEFT_SHOULDER, RIGHT_SHOULDER = 5, 6


@cache
def scene(number: int) -> Episode:
    return make_episode(CONFIG, 0, number)


def boxes_of(actors: list[Actor], camera: Camera, frame: int) -> np.ndarray:
    """(n, 4) outlines as they fall into an endless image."""
    found = [
        compute_projected_boxes(camera, [merge_soups([build_actor_soup(actor, frame)])], len(actors))
        for actor in actors
    ]
    return np.array([rows[k, :4] for k, rows in enumerate(found)])


@pytest.mark.slow
def test_a_coin_that_falls_the_other_way_changes_no_box() -> None:
    """Each person as they would stand if they crossed and if they did not: outlines differ far less than
    from person to person, and on average by a tenth of a pixel."""
    kerb, ego = select_kerb_place(scene(0).layout, CONFIG, np.random.default_rng(1))
    camera = build_camera(ego, CONFIG, 5, 0)
    rng, regions, either = np.random.default_rng(2), Regions(scene(0).layout), {}
    stands = [stand for _ in range(10) for stand in draw_stands(CONFIG, rng)]
    for crosses in (True, False):
        people = [
            build_kerb_actor(replace(stand, crosses=crosses), kerb, regions, CONFIG, number)
            for number, stand in enumerate(stands)
        ]
        x1, y1, x2, y2 = boxes_of(people, camera, 5).T
        either[crosses] = np.stack([x1 + x2, y1, y2, x2 - x1, y2 - y1], axis=1)
    change, spread = either[True] - either[False], either[False].std(axis=0)
    assert (np.abs(change.mean(axis=0)) < 0.06 * spread + 0.1).all()
    assert (change.std(axis=0) < 0.35 * spread).all()


def test_joints_and_faces_tell_who_crosses() -> None:
    for number in range(4):
        episode = scene(number)
        camera = build_camera(episode.ego, CONFIG, 5, 0)
        for actor in episode.actors:
            pixels, _ = camera.project(compute_joints(actor, 5))
            faces_us = pixels[LEFT_SHOULDER, 0] > pixels[RIGHT_SHOULDER, 0]
            assert actor.mind is not None
            assert faces_us == actor.mind.crosses


def test_people_stand_until_a_second_before_the_end_and_then_some_step_on_the_road() -> None:
    crossers = 0
    for number in range(6):
        for actor in scene(number).actors:
            mind, still = actor.mind, actor.speed == 0
            assert mind is not None
            assert len(actor.heading) == CONFIG.n_frames
            if not mind.crosses:
                assert mind.crossing is None
                assert still.all()
                assert not actor.facts["crossing"].any()
                continue
            crossers += 1
            assert mind.crossing is not None
            assert still[: mind.crossing - round(0.95 * FPS)].all()
            assert mind.crossing == CONFIG.n_frames - 1
            assert np.flatnonzero(actor.facts["crossing"]).tolist() == [mind.crossing]
            steps = np.hypot(*np.diff(actor.position[:, :2], axis=0).T) * FPS
            assert steps.max() < 2.5
            assert set(np.unique(actor.pose)) <= {Pose.STAND, Pose.WAVE, Pose.WALK}
    assert 8 < crossers < 22


def test_people_stand_apart_and_as_many_as_find_room() -> None:
    crowded = replace(CONFIG, behaviour=replace(CONFIG.behaviour, crowd=40))
    for config, number in ((CONFIG, 5), (crowded, 7)):
        stands = draw_stands(config, np.random.default_rng(3))
        assert len(stands) == number
        assert np.diff([stand.along_m for stand in stands]).min() >= 0.9 - 1e-9


def test_the_same_seed_makes_the_same_scene() -> None:
    one, same, other = (make_episode(CONFIG, seed, 0) for seed in (0, 0, 1))
    for a, b in zip(one.actors, same.actors, strict=True):
        assert np.array_equal(a.position, b.position)
        assert (a.look, a.mind) == (b.look, b.mind)
    assert [actor.look for actor in one.actors] != [actor.look for actor in other.actors]


def test_a_scene_too_short_to_stand_in_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 2 s"):
        make_episode(replace(CONFIG, seconds=1.0), 0, 0)


def filmed(episode: Episode):
    stage, collector = Stage(episode), SeenCollector(episode)
    for frame in range(episode.n_frames):
        camera, soup = build_camera(episode.ego, episode.config, frame, episode.seed), stage.soup(frame)
        picture = render(soup, camera, episode.conditions, seed=episode.seed, frame=frame)
        collector.add(frame, camera, picture, soup)
    return build_scene_tables(episode, collector.seen())


@pytest.mark.slow
def test_a_protocol_cuts_one_sample_of_each_person_in_the_same_frames_before_anybody_moves() -> None:
    coarse = replace(CONFIG, camera=CameraConfig(240, 80, 7.5, 41.0, pitch_deg=-2.8))
    cut = sample(
        filmed(make_episode(coarse, 0, 0)),
        replace(
            get_protocol("jaad-action@iv2024", "default"),
            splits=("train",), observation_frames=4, tte_frames=(8, 8), prediction_frames=8,
        ),
    )  # fmt: skip
    people = make_episode(coarse, 0, 0).actors
    truth = {f"ped-{actor.number:04d}b": int(actor.mind.crosses) for actor in people if actor.mind}
    rows = cut.samples.join(cut.tubes.select("tube", "name"), on="tube")
    assert dict(rows.select("name", "label").rows()) == truth
    assert cut.samples["start_frame"].n_unique() == cut.samples["end_frame"].n_unique() == 1
    moved = {actor.number: np.flatnonzero(actor.speed > 0) for actor in people}
    for name, end in rows.select("name", "end_frame").rows():
        assert not (moved[int(name[4:8])] < end).any()


@pytest.mark.slow
def test_no_classifier_finds_more_than_chance_in_the_boxes() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    boxes, truth = [], []
    rng, layout = np.random.default_rng(9), scene(0).layout
    regions = Regions(layout)
    for _ in range(500):
        kerb, ego = select_kerb_place(layout, CONFIG, rng)
        actors = [
            build_kerb_actor(stand, kerb, regions, CONFIG, number)
            for number, stand in enumerate(draw_stands(CONFIG, rng))
        ]
        camera = build_camera(ego, CONFIG, 6, 0)
        soup = merge_soups([build_actor_soup(actor, 6) for actor in actors])
        boxes.append(compute_projected_boxes(camera, [soup], len(actors))[:, :4])
        truth += [actor.mind is not None and actor.mind.crosses for actor in actors]
    values, answers = np.concatenate(boxes), np.array(truth)
    half = len(values) // 2
    for model in (LogisticRegression(max_iter=2000), HistGradientBoostingClassifier(max_leaf_nodes=8)):
        model.fit(values[:half], answers[:half])
        assert abs(roc_auc_score(answers[half:], model.predict_proba(values[half:])[:, 1]) - 0.5) < 0.05
