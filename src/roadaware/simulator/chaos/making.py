"""`make_chaos`: a street, a crowd and what it plays, out of a configuration and a random generator."""

from __future__ import annotations

import math
import re

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos.actions import heading_vector
from roadaware.simulator.chaos.cast import find_free_place, make_players
from roadaware.simulator.chaos.director import PROGRAMMES, Director, Programme
from roadaware.simulator.chaos.ground import make_ground, town_config
from roadaware.simulator.chaos.play import Play, Thing
from roadaware.simulator.chaos.recording import (
    build_person_actors,
    build_thing_actors,
    extract_bonds,
    extract_noises,
    generate_sentences,
)
from roadaware.simulator.chaos.things import (
    WATER_M,
    add_emergency_vehicle,
    add_flames,
    add_parked_car,
    add_thing,
    compute_obstacle_circles,
)
from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.episode import Episode
from roadaware.simulator.town import make_layout
from roadaware.simulator.town.regions import Regions

# Setting: the things that stand, burn or float about when a scene of chaos begins.


_RISES_S = 6.0
_CURRENT_MPS = 0.5


def add_street_things(play: Play, programme: Programme) -> None:
    """Put everything on the street that a programme asks for.

    Args:
        play: the scene.
        programme: of its category.
    """
    side = 1 if play.chance(0.5) else -1
    for k, model in enumerate(programme.vehicles):
        add_emergency_vehicle(play, model, side if k == 0 else -side)
    if "dustbin" in programme.things:
        add_parked_car(play, -side)
    posts = compute_obstacle_circles(play.things)
    play.posts = np.concatenate([play.posts, posts])
    play.bodies.block(play.posts, np.full(len(play.posts), -1))
    shop = play.ground.clamp(play.draw(11.0, 15.0), -side * 5.0)
    for kind, n in programme.things.items():
        for k in range(n):
            if kind == "water":
                _water(play)
            elif kind == "fire":
                _burning(play, k, side)
            else:
                near = shop if kind in ("suitcase", "cart") and "cart" in programme.things else None
                _lone(play, kind, near)


def update_flood(play: Play) -> None:
    """In this frame, let the water rise and carry along what floats."""
    sheet = next((thing for thing in play.things if thing.model == "flood"), None)
    if sheet is None:
        return
    play.level = 0.06 + 0.2 * min(1.0, play.frame / play.fps / _RISES_S)
    sheet.z = play.level - WATER_M
    for who in play.players:
        # Who lies in the water floats.
        who.lift = max(who.lift, 0.8 * play.level) if who.pose == Pose.LIE else who.lift
    for thing in play.things:
        if thing.kind in ("tyre", "plastic_bag") or (thing.kind == "suitcase" and thing.pushed_by is None):
            drift = _CURRENT_MPS * min(1.0, play.frame / play.fps / 2.0)
            thing.xy = thing.xy - np.array([drift / play.fps, 0.0])
            thing.heading += 0.3 / play.fps
            thing.z = max(0.0, play.level - 0.25 * thing.size_m[2])


def _water(play: Play) -> None:
    ground = play.ground
    wide = ground.left_m - ground.right_m + 1.0
    middle = np.array([22.0, (ground.left_m + ground.right_m) / 2])
    sheet = add_thing(play, "debris", middle, 0.0, "flood", (70.0, wide, WATER_M))
    sheet.z = -WATER_M


def _burning(play: Play, number: int, side: int) -> None:
    """A bin in flames, or a fire on the ground."""
    y = (side if number % 2 else -side) * play.draw(0.8, 3.5)
    low, high = play.ground.kerbs
    spot = play.ground.clamp(play.draw(9.5, 14.0), float(np.clip(y, low + 0.5, high - 0.5)))
    if number % 2:
        add_flames(play, None, spot, play.draw(1.2, 1.7))
    else:
        add_flames(play, add_thing(play, "dustbin", spot, play.draw(0.0, 6.28)))


def _lone(play: Play, kind: str, near: Floats | None) -> Thing:
    side = 1.0 if play.chance(0.5) else -1.0
    spot = play.ground.clamp(play.draw(9.0, 16.0), side * play.draw(2.5, 6.0)) if near is None else near
    away = play.draw(0.4, 1.8) if near is not None else 1.0
    place = find_free_place(play, spot, away, 0.8)
    for thing in play.things:
        gap = place - thing.xy
        if np.hypot(*gap) < 0.9 and thing.model != "flood":
            place = thing.xy + 1.0 * heading_vector(math.atan2(float(gap[1]), float(gap[0])))
    return add_thing(play, kind, place, play.draw(0.0, 6.28))


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
