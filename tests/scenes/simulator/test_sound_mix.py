"""What is heard: on which side, how loud, when, and that it is the same each time."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from roadaware.datasets.chaotic_vocabulary import list_label_names
from roadaware.simulator.actors import Actor, Ego
from roadaware.simulator.config import CameraConfig, Conditions, SceneConfig
from roadaware.simulator.episode import Episode, Noise
from roadaware.simulator.layout import Layout
from roadaware.simulator.sound import MAKERS, RATE, build_voice, render_audio

FPS = 10.0


def somebody(number: int, position: np.ndarray) -> Actor:
    n = len(position)
    zero, none = np.zeros(n), np.zeros(n, dtype=np.uint8)
    size = (4.0, 1.8, 1.5)
    lane = np.zeros(n, dtype=np.int64)
    return Actor(number, "Car", "hatchback", size, 1, 0, position, zero, zero, none, none, zero, zero, lane)


def scene(places, noises, seconds=2.0, heading=0.0, seed=1, weather="clear") -> Episode:
    """The own vehicle stands where it listens at the origin; each actor stands or moves along its places."""
    n = round(seconds * FPS)
    zero, whole = np.zeros(n), np.zeros(n, dtype=np.int64)
    place = np.tile([-1.2 * np.cos(heading), -1.2 * np.sin(heading), 0.0], (n, 1))
    ego = Ego(place, np.full(n, heading), zero, zero, zero, whole, whole)
    actors = tuple(
        somebody(k, np.broadcast_to(np.asarray(p, dtype=float), (n, 3)).copy()) for k, p in enumerate(places)
    )
    config = SceneConfig(seconds=seconds, camera=CameraConfig(fps=FPS))
    empty = Layout((), (), (), (), (), (), ())
    return Episode("s", seed, config, Conditions("day", weather), empty, ego, actors, noises=tuple(noises))


def heard(episode: Episode) -> np.ndarray:
    return np.concatenate(list(render_audio(episode)))


def loudness(samples: np.ndarray) -> np.ndarray:
    return np.sqrt((samples.astype(np.float64) ** 2).mean(0))


@pytest.mark.parametrize("label", ["honking", "truck engine", "shouting", "clapping"])
@pytest.mark.parametrize("heading", [0.0, 2.0])
def test_the_loudest_side_is_the_side_of_the_source(label, heading) -> None:
    c, s = np.cos(heading), np.sin(heading)
    left, right = (-s * 8, c * 8, 0.0), (s * 8, -c * 8, 0.0)
    for place, louder in ((left, 0), (right, 1)):
        found = loudness(heard(scene([place], [Noise(label, 0, 0.2, 1.8)], heading=heading)))
        assert found[louder] > 2 * found[1 - louder]
    ahead = loudness(heard(scene([(c * 8, s * 8, 0.0)], [Noise(label, 0, 0.2, 1.8)], heading=heading)))
    assert 0.9 < ahead[0] / ahead[1] < 1.1


def test_it_reaches_the_nearer_ear_first_by_the_distance_between_ears() -> None:
    """At 45 degrees to the left the right ear hears it 0.2 m * sin(45 degrees) later."""
    samples = heard(scene([(5.0, 5.0, 0.0)], [Noise("gunshot/firing", 0, 0.2, 1.8, 3.0)], weather="low-sun"))
    left, right = samples.T.astype(np.float64)
    lags = np.arange(-20, 21)
    match = [np.dot(left[100:-100], np.roll(right, -lag)[100:-100]) for lag in lags]
    assert lags[int(np.argmax(match))] == round(0.2 * np.sin(np.pi / 4) / 343.0 * RATE)


def test_it_falls_with_distance_and_only_while_it_lasts_is_it_heard() -> None:
    by_distance = [
        loudness(heard(scene([(d, 0.0, 0.0)], [Noise("honking", 0, 0.5, 1.5)]))[8800:23200])[0]
        for d in (1.0, 2.0, 4.0, 8.0, 16.0)
    ]
    assert by_distance[0] == pytest.approx(by_distance[1], rel=0.01)
    for near, far in pairwise(by_distance[1:]):
        assert far / near == pytest.approx(0.5, abs=0.05)
    whole = heard(scene([(4.0, 0.0, 0.0)], [Noise("honking", 0, 0.5, 1.5)]))
    assert loudness(whole[: RATE // 2]).max() < 0.02 < loudness(whole[RATE // 2 : 3 * RATE // 2]).min()
    assert loudness(whole[3 * RATE // 2 + 50 :]).max() < 0.02


def test_who_drives_past_is_heard_from_one_side_and_then_the_other() -> None:
    n = 40
    along = np.column_stack([np.full(n, 2.0), np.linspace(20, -20, n), np.zeros(n)])
    samples = heard(scene([along], [Noise("engine", 0, 0.0, 4.0, 1.0)], seconds=4.0))
    before, after = loudness(samples[:RATE]), loudness(samples[-RATE:])
    assert before[0] > 1.5 * before[1]
    assert after[1] > 1.5 * after[0]
    assert np.abs(np.diff(samples, axis=0)).max() < 0.2


@pytest.mark.slow
def test_blocks_have_the_length_of_the_scene_and_stay_in_range() -> None:
    crowd = [Noise(label, 0, 0.0, 3.1, 3.0) for label in MAKERS]
    blocks = list(render_audio(scene([(1.0, 1.0, 0.0)], crowd, seconds=3.1, weather="rain")))
    assert sum(map(len, blocks)) == round(3.1 * RATE)
    assert all(block.dtype == np.float32 and block.shape[1] == 2 for block in blocks)
    samples = np.concatenate(blocks)
    assert np.isfinite(samples).all()
    assert np.abs(samples).max() <= 1.0


def test_the_same_scene_sounds_the_same_and_another_seed_differs() -> None:
    one = scene([(5.0, 3.0, 0.0)], [Noise("shouting", 0, 0.1, 1.9)], weather="rain")
    assert heard(one).tobytes() == heard(one).tobytes()
    assert heard(one).tobytes() != heard(replace(one, seed=2)).tobytes()


def test_every_sound_that_has_a_name_has_a_voice_of_its_own_and_none_is_silent() -> None:
    assert set(list_label_names("sound")) <= set(MAKERS)
    still = np.full(RATE, 5.0)
    for label in MAKERS:
        samples = build_voice(label, np.random.default_rng(3)).samples(still)
        loudest = np.sqrt((samples.reshape(-1, 800) ** 2).mean(1)).max()
        assert 0.1 < loudest < 1.0, label
        assert abs(samples.mean()) < 0.02, label
    assert build_voice("something unheard of", np.random.default_rng(3)).samples(still).std() > 0.05


def test_rain_is_heard_and_wind_is_faint() -> None:
    dry, wet = (loudness(heard(scene([], [], weather=w))).mean() for w in ("clear", "rain"))
    assert 0 < dry < 0.01
    assert wet > 3 * dry


def test_memory_does_not_grow_with_the_scene() -> None:
    def peak(seconds: float) -> int:
        noises = [Noise("engine", 0, t, t + 2.0) for t in np.arange(0, seconds, 2.0)]
        episode = scene([(5.0, 3.0, 0.0)], noises, seconds=seconds)
        tracemalloc.start()
        for _ in render_audio(episode):
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1.0)
    assert peak(14.0) < peak(3.0) + 150_000
