"""Crowds of chaos: bonds, deeds, noises and sentences lie where they say, and people move by laws."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, EVENT_CATEGORIES, list_label_names
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos import CATEGORIES, make_chaos
from roadaware.simulator.chaos.crowd import colour_word, format_definite_description
from roadaware.simulator.chaos.making import select_category
from roadaware.simulator.chaos.play import CONTACT, DEEDS, PREFIX
from roadaware.simulator.config import PRESETS, Conditions
from roadaware.simulator.episode import Episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.people import stride_m

CHAOS = PRESETS["chaos@1"]
DAY = Conditions("day", "clear")
FPS = CHAOS.camera.fps


@cache
def scene(number: int) -> Episode:
    return make_chaos(CHAOS, DAY, f"chaos-{number:04d}", 0, np.random.default_rng([0, number]))


def some() -> list[Episode]:
    return [scene(number) for number in range(14)]


def people(episode: Episode) -> list:
    return [actor for actor in episode.actors if actor.kind == "Ped"]


def places(episode: Episode) -> np.ndarray:
    """(n, F, 2), NaN where somebody is not there."""
    found = np.full((len(people(episode)), episode.n_frames, 2), np.nan)
    for actor in people(episode):
        found[actor.number, actor.first : actor.end] = actor.position[:, :2]
    return found


def spans(on: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on != 0, [0]]).astype(int)))
    return [tuple(pair) for pair in edges.reshape(-1, 2).tolist()]


@pytest.mark.slow
def test_the_same_arguments_make_the_same_episode_and_another_seed_another_one():
    one, same, other = (make_chaos(CHAOS, DAY, "chaos-0003", 0, np.random.default_rng(k)) for k in (5, 5, 6))
    assert (one.bonds, one.noises, one.sentences) == (same.bonds, same.noises, same.sentences)
    for a, b in zip(one.actors, same.actors, strict=True):
        assert (a.number, a.kind, a.model, a.look, a.first) == (b.number, b.kind, b.model, b.look, b.first)
        assert np.array_equal(a.position, b.position)
        assert np.array_equal(a.gait, b.gait)
        assert list(a.facts) == list(b.facts)
        assert all(np.array_equal(a.facts[name], b.facts[name]) for name in a.facts)
    assert one.bonds != other.bonds


@pytest.mark.slow
@pytest.mark.parametrize("crowd", [0, 1, 2, 31])
def test_as_many_people_come_as_are_asked_for(crowd):
    config = replace(CHAOS, behaviour=replace(CHAOS.behaviour, crowd=crowd, pedestrians=1.0))
    for number in (0, 1, 5)[: 3 if crowd < 9 else 1]:
        episode = make_chaos(config, DAY, f"chaos-{number}", 0, np.random.default_rng(number))
        assert len(people(episode)) == crowd
        assert [actor.number for actor in episode.actors] == list(range(len(episode.actors)))
        ends = [(actor.first, actor.end) for actor in episode.actors]
        assert all(0 <= first < end <= episode.n_frames for first, end in ends)


@pytest.mark.slow
def test_the_crowd_is_before_the_camera_and_the_own_vehicle_hardly_moves():
    for episode in some():
        assert episode.ego.speed.min() >= 0
        assert episode.ego.speed.max() <= 2
        camera = build_camera(episode.ego, episode.config, 10, episode.seed)
        here = places(episode)[:, 10]
        here = here[~np.isnan(here[:, 0])]
        pixels, depth = camera.project(np.column_stack([here, np.full(len(here), 1.0)]))
        seen = (depth > 3) & (depth < 26) & (pixels >= 0).all(1) & (pixels[:, 0] < camera.width_px)
        assert seen.mean() > 0.7


@pytest.mark.slow
def test_nobody_jumps_or_stands_in_another_one():
    for episode in some():
        xy = places(episode)
        step = np.hypot(*np.moveaxis(np.diff(xy, axis=1), -1, 0)) * FPS
        assert np.nanmax(step) < 6.0
        pose = np.full(xy.shape[:2], -1)
        for actor in people(episode):
            pose[actor.number, actor.first : actor.end] = actor.pose
        for a in range(len(xy)):
            for b in range(a):
                away = np.hypot(*(xy[a] - xy[b]).T)
                touching = np.isin([pose[a], pose[b]], [Pose.HUG, Pose.LIE, Pose.KNEEL]).any(0)
                assert not (away < np.where(touching, 0.25, 0.35)).any()


@pytest.mark.slow
def test_bonds_lie_inside_both_frames_and_arms_reach_where_they_must():
    for episode in some():
        xy = places(episode)
        words = list_label_names("interaction")
        assert len(set(episode.bonds)) == len(episode.bonds)
        for bond in episode.bonds:
            assert bond.predicate in words
            assert bond.subject != bond.object
            for actor in (episode.actors[bond.subject], episode.actors[bond.object]):
                assert actor.kind == "Ped"
                assert actor.first <= bond.start < bond.end <= actor.end
            line = (xy[bond.object] - xy[bond.subject])[bond.start : bond.end]
            apart = np.hypot(*line.T)
            heading = episode.actors[bond.subject].heading[bond.start - episode.actors[bond.subject].first :]
            ahead = np.cos(heading[: len(line)] - np.arctan2(line[:, 1], line[:, 0]))
            if bond.predicate in CONTACT:
                assert apart.max() < 2.5
            if bond.predicate == "running away from":
                assert apart[-1] > apart[0]
            if bond.predicate in ("following after", "running towards"):
                assert ahead.min() > 0.5
            if bond.predicate in ("hugging", "fighting"):
                back = [b for b in episode.bonds if (b.subject, b.object) == (bond.object, bond.subject)]
                assert any(
                    (b.predicate, b.start, b.end) == (bond.predicate, bond.start, bond.end) for b in back
                )


def test_deeds_last_and_are_shown_by_their_poses():
    for episode in some():
        for actor in people(episode):
            deeds = {name: on for name, on in actor.facts.items() if name.startswith(PREFIX)}
            for fact, on in deeds.items():
                name = fact.removeprefix(PREFIX)
                assert name in ACTIONS_OFFICIAL
                assert on.dtype == np.int8
                assert on.shape == actor.heading.shape
                assert np.isin(actor.pose[on != 0], [int(pose) for pose in DEEDS[name]]).all()
                if "flare" in name or "stick" in name:
                    assert actor.facts["flare"][on != 0].all()
                inner = [b - a for a, b in spans(on) if a > 0 and b < len(on)]
                assert not inner or min(inner) >= round(0.4 * FPS)
            free = np.isin(actor.pose, [Pose.STAND])
            named = np.zeros(len(free), dtype=bool)
            for on in deeds.values():
                named |= on != 0
            # Every pose but plain standing says something, for all but moments between two deeds.
            silent = ~free & ~named & ~np.isin(actor.pose, [Pose.LIE, Pose.FLINCH, Pose.FALL])
            assert silent.mean() < 0.06


def test_strides_match_the_ground_covered():
    turns, ways = 0.0, 0.0
    for episode in some():
        for actor in people(episode):
            on = actor.pose[:-1] == Pose.WALK
            on &= (np.abs(actor.speed[:-1]) > 0.5) & (np.diff(actor.gait) > 0)
            turns += float((np.diff(actor.gait)[on] / (2 * np.pi) * stride_m(actor)).sum())
            ways += float(np.hypot(*np.diff(actor.position[:, :2], axis=0)[on].T).sum())
    assert turns == pytest.approx(ways, rel=0.12)


def test_noises_come_from_who_is_there_and_begin_with_what_they_do():
    shown = {"clapping": "clapping", "chanting/cheering": "chanting/cheering", "arguing": "arguing"}
    for episode in some():
        for noise in episode.noises:
            assert noise.label in list_label_names("sound")
            assert noise.level > 0
            assert noise.actor is not None
            source = episode.actors[noise.actor]
            start, end = round(noise.start_s * FPS), round(noise.end_s * FPS)
            assert source.first <= start < end <= source.end
            if noise.label in shown:
                on = source.facts[PREFIX + shown[noise.label]][start - source.first : end - source.first]
                assert on[: round(0.2 * FPS)].any()
        sirens = {noise.actor for noise in episode.noises if noise.label.startswith("siren")}
        assert sirens == {actor.number for actor in episode.actors if actor.kind == "EmVeh"}


def test_sentences_name_spans_of_deeds_or_bonds_and_tell_people_apart():
    for episode in some():
        assert {"declarative", "interrogative"} == {each.kind for each in episode.sentences}
        told = Counter((each.text, each.start) for each in episode.sentences)
        assert max(told.values()) <= 2
        for each in episode.sentences:
            actor = episode.actors[each.actor]
            assert actor.first <= each.start < each.end <= actor.end
            assert each.end - each.start >= FPS
            bonds = {(b.start, b.end) for b in episode.bonds if b.subject == each.actor}
            deeds = {
                (a + actor.first, b + actor.first)
                for fact, on in actor.facts.items()
                if fact.startswith(PREFIX)
                for a, b in spans(on)
            }
            assert (each.start, each.end) in bonds | deeds
            question = each.kind == "interrogative"
            assert each.text.startswith("Who " if question else ("A ", "An "))
            assert each.text[-1] == ".?"[question]
            assert "  " not in each.text
            assert " a a" not in each.text


def test_colours_are_called_as_people_call_them():
    linear = {"red": (0.4, 0.02, 0.02), "dark blue": (0.02, 0.035, 0.11), "white": (0.8, 0.8, 0.78)}
    assert {name: colour_word(colour) for name, colour in linear.items()} == {name: name for name in linear}
    assert format_definite_description("woman in an orange coat") == "woman in the orange coat"


def test_things_burn_and_vehicles_stand_by():
    kinds = Counter((actor.kind, actor.model) for episode in some() for actor in episode.actors)
    assert kinds["debris", "fire"]
    assert kinds["debris", "flood"]
    assert kinds["EmVeh", "police_car"]
    for episode in some():
        for actor in episode.actors:
            assert actor.active == (actor.kind in ("Ped", "EmVeh"))
            if actor.with_object is not None:
                thing = episode.actors[actor.with_object]
                assert thing.kind in ("suitcase", "cart", "dustbin", "barrier")


def test_every_category_comes_in_turn_in_twenty_scenes():
    assert {select_category(f"chaos-{number:04d}", 3) for number in range(20)} == set(CATEGORIES)
    assert [episode.category for episode in some()] == [*CATEGORIES, *CATEGORIES]


@pytest.mark.slow
def test_most_words_occur_in_forty_scenes():
    assert set(CATEGORIES) <= set(EVENT_CATEGORIES)
    episodes = [scene(number) for number in range(40)]
    actions = {name for e in episodes for a in e.actors for name in a.facts if name.startswith(PREFIX)}
    predicates = {bond.predicate for episode in episodes for bond in episode.bonds}
    assert len(actions) >= 33
    assert {PREFIX + name for name in ("dancing", "fighting", "holding weapon", "raising hands")} <= actions
    assert {*list_label_names("interaction")} == predicates
    poses = {Pose(int(k)) for e in episodes for a in people(e) for k in np.unique(a.pose)}
    assert {pose for pose in Pose if pose < Pose.AIM} - poses == {Pose.RIDE}
    assert len({noise.label for episode in episodes for noise in episode.noises}) >= 12
