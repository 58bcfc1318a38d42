"""Staged crowds: all events and classes come, sounds are few at a time, sentences are true of one person alone."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.datasets import read
from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, EVENT_CATEGORIES, list_label_names
from roadaware.errors import UsageError
from roadaware.scenes.tables import Scenes
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos.making import ACTS, STAGED_PLOTS, STAGED_PROGRAMMES, select_acts
from roadaware.simulator.chaos.play import DEEDS, PREFIX
from roadaware.simulator.chaos.recording import mix_noises
from roadaware.simulator.chaos.sentences import BONDS
from roadaware.simulator.chaos.sentences import DEEDS as SAID
from roadaware.simulator.config import PRESETS, SceneConfig, Staging, build_scene_config
from roadaware.simulator.episode import Episode, Noise
from roadaware.simulator.generate import Kept, Order, generate_scenes
from roadaware.simulator.make import make_episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.people import describe_appearance
from roadaware.simulator.truth.terms import POSES, STAGED_POSES

STAGED = PRESETS["chaos@2"]
QUICK = replace(STAGED, camera=replace(STAGED.camera, fps=10.0))
FPS = QUICK.camera.fps


@cache
def scene(number: int) -> Episode:
    return make_episode(QUICK, 0, number)


def some(n: int = 10) -> list[Episode]:
    return [scene(number) for number in range(n)]


def people(episode: Episode) -> list:
    return [actor for actor in episode.actors if actor.kind == "Ped"]


def digest(scenes: Scenes) -> str:
    """Of all tables: whole numbers and texts as they are, others to a thousandth."""
    found = hashlib.blake2b(digest_size=8)
    for name, table in sorted(scenes.filled().items()):
        plain = table.with_columns(pl.selectors.float().cast(pl.Float64).round(3))
        nested = [c for c, kind in table.schema.items() if kind.is_nested()]
        plain = plain.drop(nested)
        found.update(f"{name} {table.columns} {[str(kind) for kind in table.dtypes]}\n".encode())
        found.update(plain.write_csv().encode())
    return found.hexdigest()


CHAOS_1 = {"chaos@1": "51f1ebd6fcd7405b", "chaos@1 in city-b@1": "4547f6fa85108f96"}
"""What the first version made when the second one came."""


@pytest.mark.parametrize("name", CHAOS_1)
def test_the_first_version_stays_as_it_was(name: str, tmp_path: Path) -> None:
    config = build_scene_config("chaos@1", "city-b@1" if "city-b" in name else None)
    config = replace(config, seconds=4.0, camera=replace(config.camera, fps=8.0, width_px=160, height_px=90))
    generate_scenes(Order(config, 3, 3, Kept.tables_alone()), tmp_path)
    assert digest(read("simulator", tmp_path, cache=False)) == CHAOS_1[name]


def test_staging_is_for_crowds_and_keeps_its_bounds() -> None:
    with pytest.raises(UsageError, match="not staged"):
        SceneConfig(staging=Staging())
    for wrong in ({"near_m": 1.0}, {"far_m": 8.0}, {"alone": 1.5}, {"sounds": 0}, {"acts": -1}):
        with pytest.raises(UsageError):
            Staging(**wrong)
    harbour = build_scene_config("chaos@2", "harbour")
    assert harbour.staging is not None
    assert (harbour.staging.towns, harbour.camera.fov_deg) == (False, STAGED.camera.fov_deg)
    assert build_scene_config("chaos@2", "city-b").surroundings.hue == 0.0  # colours are spoken of


def test_the_same_numbers_make_the_same_episode_and_scenes_differ() -> None:
    one, same, other = make_episode(QUICK, 4, 7), make_episode(QUICK, 4, 7), make_episode(QUICK, 5, 7)
    assert (one.bonds, one.noises, one.sentences, one.config) == (
        same.bonds,
        same.noises,
        same.sentences,
        same.config,
    )
    for a, b in zip(one.actors, same.actors, strict=True):
        assert np.array_equal(a.position, b.position)
        assert np.array_equal(a.gait, b.gait)
    assert one.sentences != other.sentences


@pytest.mark.slow
def test_every_event_and_every_act_comes_in_turn() -> None:
    assert set(STAGED_PROGRAMMES) == set(EVENT_CATEGORIES)
    assert {scene(number).category for number in range(15)} == set(EVENT_CATEGORIES)
    assert set(ACTS) <= set(STAGED_PLOTS)
    for seed in (0, 3):
        for count in (2, 4):
            shown = [
                name for number in range(len(ACTS) // count) for name in select_acts(number, seed, count)
            ]
            assert sorted(shown) == sorted(ACTS)


def test_people_on_the_stage_are_ninety_pixels_high() -> None:
    heights = []
    for episode in some():
        for actor in people(episode):
            for row in range(0, len(actor.heading), 10):
                camera = build_camera(episode.ego, episode.config, actor.first + row, episode.seed)
                foot = actor.position[row]
                pixels, depth = camera.project([foot, foot + np.array([0.0, 0.0, actor.size_m[2]])])
                inside = (
                    depth.min() > 1 and (pixels[:, 0] > 0).all() and (pixels[:, 0] < camera.width_px).all()
                )
                if inside and actor.size_m[2] > 1.5 and actor.pose[row] not in (Pose.LIE, Pose.KNEEL):
                    heights.append(float(abs(pixels[0, 1] - pixels[1, 1])))
    # Who comes from far up the street, or flees there, is smaller.
    assert np.median(heights) > 90
    assert np.mean(np.array(heights) >= 90) > 0.55


def test_deeds_are_shown_by_their_poses_and_bonds_lie_inside_both() -> None:
    for episode in some():
        for actor in people(episode):
            for fact, on in actor.facts.items():
                if fact.startswith(PREFIX):
                    name = fact.removeprefix(PREFIX)
                    assert name in ACTIONS_OFFICIAL
                    assert np.isin(actor.pose[on != 0], [int(pose) for pose in DEEDS[name]]).all(), name
        for bond in episode.bonds:
            assert bond.predicate in list_label_names("interaction")
            for actor in (episode.actors[bond.subject], episode.actors[bond.object]):
                assert actor.first <= bond.start < bond.end <= actor.end


def test_nobody_jumps() -> None:
    for episode in some():
        for actor in people(episode):
            step = np.hypot(*np.diff(actor.position[:, :2], axis=0).T) * FPS
            assert step.max(initial=0.0) < 6.5, (episode.name, actor.number)


def loud(noises: tuple[Noise, ...], at_s: float) -> set[int | None]:
    return {noise.sound for noise in noises if noise.start_s <= at_s < noise.end_s}


@pytest.mark.slow
def test_few_sounds_are_heard_at_once_and_each_is_of_one_class() -> None:
    alone = 0
    for episode in some(24):
        words: dict[int | None, set[str]] = {}
        for noise in episode.noises:
            words.setdefault(noise.sound, set()).add(noise.label)
            assert 0.0 <= noise.start_s < noise.end_s <= episode.n_frames / FPS + 1e-6
            assert (noise.actor is None) == (noise.position is not None)
        assert all(len(labels) == 1 for labels in words.values())
        assert sorted(k for k in words if k is not None) == list(range(len(words)))
        busy = [len(loud(episode.noises, at)) for at in np.arange(0.0, episode.n_frames / FPS, 0.1)]
        assert max(busy) <= STAGED.staging.sounds
        alone += max(busy) == 1
    assert alone >= 4


def test_some_scenes_are_silent_and_some_sounds_come_from_out_of_sight() -> None:
    far = [noise for episode in some(24) for noise in episode.noises if noise.actor is None]
    assert len(far) >= 4
    for episode in some(24):
        known = {noise.label for noise in episode.noises if noise.actor is not None}
        for noise in episode.noises:
            if noise.position is not None:
                assert noise.label not in known
                frame = min(episode.n_frames - 1, int(noise.start_s * FPS))
                camera = build_camera(episode.ego, episode.config, frame, episode.seed)
                pixels, depth = camera.project([[*noise.position, 1.2]])
                assert depth[0] < 0 or not 0 <= pixels[0, 0] < camera.width_px
    quiet = replace(STAGED.staging, silent=1.0)
    play = scene(3)
    assert mix_noises(play.noises, quiet, None, play.config, np.random.default_rng(0)) == ()


def test_sentences_are_true_of_one_person_in_many_forms_and_words() -> None:
    forms: Counter[str] = Counter()
    vocabulary: set[str] = set()
    for episode in some():
        meant: dict[str, set[int]] = {}
        for each in episode.sentences:
            meant.setdefault(each.text, set()).add(each.actor)
            forms[each.form] += 1
            vocabulary |= set(each.text.lower().strip(".?").replace(",", "").split())
            assert each.kind == ("interrogative" if each.text[-1] == "?" else "declarative")
            assert each.text[0].isupper()
            assert "  " not in each.text
            assert " a a" not in each.text
            assert " an b" not in each.text
            actor = episode.actors[each.actor]
            assert actor.first <= each.start < each.end <= actor.end
        assert all(len(actors) == 1 for actors in meant.values())
    assert set(forms) == {"statement", "passive", "place", "request", "sequence", "question"}
    assert len(vocabulary) > 200


def test_every_deed_and_interaction_can_be_said_in_several_ways() -> None:
    assert set(SAID) == set(DEEDS)
    assert set(SAID) == set(ACTIONS_OFFICIAL)
    assert set(BONDS) == set(list_label_names("interaction"))
    for phrases in SAID.values():
        assert len(set(phrases)) >= 2


def test_earlier_versions_keep_their_list_of_poses() -> None:
    assert POSES[-1] == "hands_up"
    assert STAGED_POSES[: len(POSES)] == POSES
    assert len(STAGED_POSES) == len(Pose)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    """Four small scenes, rendered."""
    folder = tmp_path_factory.mktemp("staged")
    camera = replace(STAGED.camera, width_px=192, height_px=108, fps=4.0)
    config = replace(STAGED, seconds=6.0, camera=camera, sound=False)
    generate_scenes(Order(config, 1, 4, Kept(video=False, masks=False)), folder)
    return read("simulator", folder, cache=False)


def test_the_box_of_a_body_lies_in_that_of_the_whole_shape(drawn: Scenes) -> None:
    boxes = drawn.boxes
    body = boxes.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy()
    whole = boxes.select("shape_x1_px", "shape_y1_px", "shape_x2_px", "shape_y2_px").to_numpy()
    assert (body[:, :2] >= whole[:, :2] - 1.01).all()
    assert (body[:, 2:] <= whole[:, 2:] + 1.01).all()
    differ = np.abs(body - whole).max(1) > 1.5
    holding = boxes["pose"].cast(pl.String).is_in(["threaten", "hold_flag", "hold_sign"])
    strolling = (
        boxes["pose"].cast(pl.String).is_in(["punch", "shove", "kick", "hug", "clap", "argue", "pray", "lie"])
    )
    assert differ[holding.fill_null(value=False).to_numpy()].any()
    assert not differ[strolling.fill_null(value=False).to_numpy()].any()


def test_sounds_have_names_of_their_own_and_boxes_of_who_makes_them(drawn: Scenes) -> None:
    sounds = drawn.sounds
    assert sounds["name"].n_unique() == len(sounds)
    boxed = drawn.boxes.drop_nulls("sound").select("sound").unique()
    for row in sounds.iter_rows(named=True):
        shown = row["sound"] in boxed["sound"]
        assert row["on_screen"] == shown == (row["frame"] is not None)
        assert (row["label"] is None) == row["name"].endswith("silence")
    assert drawn.meta.vocabularies["sound"] == list_label_names("sound")
    assert set(drawn.queries["form"]) <= {"statement", "passive", "place", "request", "sequence", "question"}


def test_what_is_held_is_told(drawn: Scenes) -> None:
    episode = next(e for e in some() if any((a.pose == Pose.AIM).any() for a in people(e)) or e is some()[-1])
    for actor in people(episode):
        rows = np.flatnonzero(actor.pose == Pose.AIM)
        for row in rows[:3].tolist():
            assert describe_appearance(actor, actor.first + row)["holds"] == "a gun"


@pytest.mark.slow
def test_every_class_occurs_in_ninety_scenes() -> None:
    actions: Counter[str] = Counter()
    predicates: Counter[str] = Counter()
    sounds: Counter[str] = Counter()
    for number in range(90):
        episode = make_episode(QUICK, 0, number)
        for actor in people(episode):
            actions.update(fact.removeprefix(PREFIX) for fact in actor.facts if fact.startswith(PREFIX))
        predicates.update(bond.predicate for bond in episode.bonds)
        sounds.update({(noise.sound, noise.label): 1 for noise in episode.noises}.keys() and [
            label for _, label in {(noise.sound, noise.label) for noise in episode.noises}
        ])  # fmt: skip
    assert set(actions) == set(ACTIONS_OFFICIAL)
    assert set(predicates) == set(list_label_names("interaction"))
    assert set(sounds) == set(list_label_names("sound"))


def test_acts_of_one_scene_differ() -> None:
    for number in range(60):
        acts = select_acts(number, 1, 3)
        assert len(set(acts)) == len(acts)
    assert all(a != b for a, b in pairwise(select_acts(n, 0, 3) for n in range(20)))
