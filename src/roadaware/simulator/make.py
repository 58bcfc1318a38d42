"""From a configuration and a seed to an episode: the town, those who live in it, and what is heard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadaware.errors import UsageError
from roadaware.simulator.actors import VEHICLES, Actor
from roadaware.simulator.config import Conditions, SceneConfig, TimeOfDay, Weather
from roadaware.simulator.corner_objects import (
    Strewn,
    add_corner_objects,
    build_dog_actors,
    renumber_actors,
    simulate_blown_bags,
)
from roadaware.simulator.episode import Episode
from roadaware.simulator.looks import draw_config, draw_look
from roadaware.simulator.sound import collect_street_noises
from roadaware.simulator.town import make_layout
from roadaware.simulator.traffic.loop import compute_start_position, simulate
from roadaware.simulator.walkers import Walkers
from roadaware.simulator.walkers.crowd import Strays

_LOOKS = 6
_TIMES: tuple[tuple[TimeOfDay, float], ...] = (("day", 0.68), ("dusk", 0.14), ("night", 0.18))
_WEATHERS: tuple[tuple[Weather, float], ...] = (
    ("clear", 0.38),
    ("overcast", 0.3),
    ("rain", 0.14),
    ("snow", 0.06),
    ("low-sun", 0.12),
)


def make_episode(config: SceneConfig, seed: int, number: int) -> Episode:
    """One scene of a set; the same arguments make the same scene.

    Args:
        config: what is simulated.
        seed: of the set, at least 0.
        number: of the scene in the set, from 0.

    Raises:
        UsageError: if seed or number is negative.
    """
    if seed < 0 or number < 0:
        raise UsageError(f"seed and number of a scene are at least 0, not {seed} and {number}")
    streams = np.random.default_rng([seed, number]).spawn(5)
    conditions = config.conditions or sample_conditions(streams[0])
    name = format_scene_name(config, number)
    if config.preset == "chaos":
        from roadaware.simulator.chaos import make_chaos

        return make_chaos(config, conditions, name, seed, streams[1])
    if config.preset == "kerb":
        from roadaware.simulator.kerb import make_kerb

        return make_kerb(config, conditions, name, seed, streams[1])
    if config.looks is None:
        return _street(config, conditions, name, seed, streams[1:])
    own = np.random.default_rng([seed, number, _LOOKS])
    look = draw_look(config.looks, own)
    # Its own seed, too: sun, drops and tremor of the scenes of a set would be the same.
    episode = _street(draw_config(config, own), conditions, name, look.seed, streams[1:])
    return replace(_awake(episode) if config.looks.parked else episode, look=look)


def _awake(episode: Episode) -> Episode:
    """The episode with parked vehicles that count; what is heard stays, since their engines are off."""
    actors = tuple(replace(each, active=True) if each.kind in VEHICLES else each for each in episode.actors)
    return replace(episode, actors=actors)


def format_scene_name(config: SceneConfig, number: int) -> str:
    """Name of a scene: its preset and its number."""
    return f"{config.preset}-{number:04d}"


def sample_conditions(rng: np.random.Generator) -> Conditions:
    """Light and weather as often as they are met; the sun is low at dusk or by day, not at night.

    Args:
        rng: where chance comes from.
    """
    time = _TIMES[int(rng.choice(len(_TIMES), p=[share for _, share in _TIMES]))][0]
    weather = _WEATHERS[int(rng.choice(len(_WEATHERS), p=[share for _, share in _WEATHERS]))][0]
    return Conditions(time, "clear" if time == "night" and weather == "low-sun" else weather)


def _street(
    config: SceneConfig,
    conditions: Conditions,
    name: str,
    seed: int,
    streams: list[np.random.Generator],
) -> Episode:

    layout = make_layout(config, streams[0])
    corner = config.preset == "corner-cases"
    strewn = (
        add_corner_objects(layout, config, compute_start_position(layout), streams[3]) if corner else Strewn()
    )
    walkers = Walkers(layout, config, streams[1], config.n_frames, config.camera.fps, None, strewn.lying)
    strays = Strays(walkers, strewn.dogs, config.camera.fps)
    lived = simulate(layout, config, conditions, streams[2], strays, strewn.lying)
    actors: tuple[Actor, ...] = (*lived.vehicles, *walkers.actors(len(lived.vehicles)))
    if corner:
        actors = (*actors, *renumber_actors(strewn.lying, len(actors)))
        actors = (*actors, *build_dog_actors(layout, strays.tracks(), config, streams[3], len(actors)))
        actors = (*actors, *simulate_blown_bags(layout, lived.ego, config, streams[3], strewn.bags, actors))
    episode = Episode(name, seed, config, conditions, layout, lived.ego, actors, lived.signals)
    return replace(episode, noises=collect_street_noises(episode))
