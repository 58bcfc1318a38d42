"""`make_chaos`: a street, a crowd and what it plays, out of a configuration and a random generator."""

from __future__ import annotations

import re

import numpy as np

from roadaware.simulator.chaos.cast import make_players
from roadaware.simulator.chaos.director import PROGRAMMES, Director
from roadaware.simulator.chaos.ground import make_ground, town_config
from roadaware.simulator.chaos.play import Play
from roadaware.simulator.chaos.recording import (
    build_person_actors,
    build_thing_actors,
    extract_bonds,
    extract_noises,
    generate_sentences,
)
from roadaware.simulator.chaos.setting import add_street_things, update_flood
from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.episode import Episode
from roadaware.simulator.town import make_layout
from roadaware.simulator.town.regions import Regions

CATEGORIES = tuple(PROGRAMMES)
"""What may happen, as `EVENT_CATEGORIES` names it."""
_SIRENS = {
    "ambulance": "siren (ambulance)",
    "police_car": "siren (police)",
    "fire_engine": "siren (fire engine)",
}


def make_chaos(
    config: SceneConfig, conditions: Conditions, name: str, seed: int, rng: np.random.Generator
) -> Episode:
    """A crowd in a street, seen from a vehicle that stands or creeps.

    Scenes that follow each other in a set take the categories in turn.

    Args:
        config: what is simulated; its `behaviour.crowd` people.
        conditions: light and weather.
        name: of the scene; it ends with its number in the set.
        seed: of the set.
        rng: draws everything.
    """

    category = select_category(name, seed)
    layout = make_layout(town_config(config, rng), rng)
    ground = make_ground(layout, config, rng)
    programme = PROGRAMMES[category]
    crowd = config.behaviour.crowd
    guards = min(crowd // 4, max(programme.guards, round(programme.guards * crowd / 14)))
    players = make_players(crowd, guards if programme.guards else 0, rng)
    play = Play(ground, players, config.n_frames, config.camera.fps, rng, ground.posts())
    add_street_things(play, programme)
    _act_out(play, Director(play, programme))
    regions = Regions(layout)
    actors = build_person_actors(play, regions)
    everything = (*actors, *build_thing_actors(play, regions))
    tied = extract_bonds(play, actors)
    told = generate_sentences(actors, tied, config.camera.fps)
    return Episode(
        name,
        seed,
        config,
        conditions,
        layout,
        ground.ego,
        everything,
        (),
        tied,
        extract_noises(play, actors),
        told,
        category,
    )


def select_category(name: str, seed: int) -> str:
    """The category of a scene of this name.

    Args:
        name: ends with the number of the scene.
        seed: of the set.
    """
    digits = re.search(r"(\d+)$", name)
    return CATEGORIES[((int(digits[1]) if digits else 0) + seed) % len(CATEGORIES)]


def _act_out(play: Play, director: Director) -> None:
    """Play it from the first frame to the last."""
    director.open()
    for _ in range(play.n_frames):
        director.direct()
        update_flood(play)
        for thing in play.things:
            if thing.kind == "EmVeh":
                play.noise(_SIRENS[thing.model], thing)
        play.note()
        play.step()
