"""Cast: who belongs to a crowd, where they are when a scene begins, and the bins, barriers, goods, fires, water
and vehicles that stand by.
"""

from __future__ import annotations

import math

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Lamp
from roadaware.simulator.chaos.play import Play, Player, Thing
from roadaware.simulator.figures.models import ELEMENTS, MODELS, sample_model_size
from roadaware.simulator.people import PEOPLE_MODELS
from roadaware.simulator.people.clothes import sample_outfit
from roadaware.simulator.people.skeleton import get_age_group

_SHARES = {"child": 0.04, "senior": 0.07}
_GUARD_MODEL = "adult_a"


def make_players(n: int, guards: int, rng: np.random.Generator) -> list[Player]:
    """People of all ages; the last ones are police in high-visibility vests.

    Args:
        n: people.
        guards: how many of them are police.
        rng: where chance comes from.
    """

    shares = np.array([_SHARES.get(model.name, model.weight) for model in PEOPLE_MODELS])
    models = rng.choice(len(shares), size=n, p=shares / shares.sum())
    found = []
    for k, place in enumerate(models.tolist()):
        guard = k >= n - guards
        names = {model.name: model for model in PEOPLE_MODELS}
        model = names[_GUARD_MODEL] if guard else PEOPLE_MODELS[place]
        long, wide, high = (np.array(model.size_m) * rng.uniform(0.97, 1.03)).tolist()
        look = _look(model.name, guard, rng)
        found.append(Player(k, model.name, (long, wide, high), look, guard))
    return found


def _look(model: str, guard: bool, rng: np.random.Generator) -> int:
    """A look in which police wear vests and nobody else does."""

    while True:
        look = int(rng.integers(1, 2**31))
        # The model of the police is broad; of others both builds are asked.
        figures = ("broad",) if guard else ("broad", "slim")
        vests = [
            sample_outfit(look, get_age_group(model), "broad" if f == "broad" else "slim").vest
            for f in figures
        ]
        if any(vests) == guard:
            return look


def find_free_place(play: Play, near: Floats, away_m: float, apart_m: float = 0.9) -> Floats:
    """(2,) a place on the stage that nobody stands on, at about a distance from a place.

    Args:
        play: the scene.
        near: (2,) the place.
        away_m: about how far from it.
        apart_m: distance to everybody else, if there is room.
    """
    best, room = play.ground.clamp(*near.tolist()), -1.0
    others = play.bodies.xy[play.bodies.here]
    posts = play.bodies.posts
    for _ in range(30):
        turn = play.draw(0.0, 2 * np.pi)
        far = away_m * play.draw(0.85, 1.15)
        point = play.ground.clamp(*(near + far * np.array([np.cos(turn), np.sin(turn)])).tolist())
        gaps = [np.hypot(*(others - point).T).min()] if len(others) else [9.0]
        if len(posts):
            gaps.append((np.hypot(*(posts[:, :2] - point).T) - posts[:, 2]).min())
        off = abs(float(np.hypot(*(point - near))) - away_m)
        score = min(float(min(gaps)), apart_m) - 0.4 * off
        if score > room:
            best, room = point, score
        if score >= apart_m - 0.15:
            break
    return best


def arrange_around(play: Play, cast: list[Player], spot: Floats, distances: tuple[float, ...]) -> None:
    """Put a cast around a place.

    Args:
        play: the scene.
        cast: who; the last distance is that of all others too.
        spot: (2,) the place.
        distances: of each from it, in metres.
    """
    for k, who in enumerate(cast):
        away = distances[min(k, len(distances) - 1)]
        place = find_free_place(play, spot, away) if away > 0 else spot
        play.place(who, place)
        play.bodies.heading[who.number] = play.bearing(who, spot) if away > 0 else play.draw(-3.1, 3.1)


def arrange_in_column(play: Play, cast: list[Player], spot: Floats) -> None:
    """Put a cast in rows of three up the street, looking to the camera."""
    ahead = min(play.ground.far_m - 1.0, float(spot[0]) + 4.0)
    for k, who in enumerate(cast):
        column = k % 3 - (1 if len(cast) > 2 else 0)
        play.place(who, np.array([ahead + 1.35 * (k // 3), spot[1] + 1.25 * column]), np.pi)


def arrange_in_line(play: Play, cast: list[Player], spot: Floats) -> None:
    """Put a cast in a line across the street; the last one waits aside."""
    turn = np.pi / 2 if spot[1] < 0 else -np.pi / 2
    along = np.array([np.cos(turn), np.sin(turn)])
    head = spot + along * 0.45 * (len(cast) - 2)
    for k, who in enumerate(cast[:-1]):
        play.place(who, head - along * 0.95 * k, turn)
    play.place(cast[-1], find_free_place(play, spot + np.array([2.0, 0.0]), 1.0), turn)


WATER_M = 0.3
"""How thick the sheet of water is."""
_FIRE_LAMPS = int(Lamp.BEACON)


def add_thing(
    play: Play,
    kind: str,
    xy: Floats,
    heading: float,
    model: str | None = None,
    size_m: tuple[float, float, float] | None = None,
    lamps: int = 0,
    active: bool = False,
) -> Thing:
    """Put a thing on the street.

    Args:
        play: the scene.
        kind: as of actors.
        xy: (2,) where.
        heading: of its front.
        model: of its kind; None for any.
        size_m: length, width and height; None for the model's.
        lamps: that are lit.
        active: whether it counts as an agent.
    """

    look = int(play.rng.integers(1, 2**31))
    known = {item.name: item for item in (*MODELS[kind], *ELEMENTS.get(kind, ()))}
    chosen = known[model] if model else MODELS[kind][0]
    size = size_m or sample_model_size(chosen, look)
    thing = Thing(
        kind, chosen.name, size, look, np.asarray(xy, dtype=np.float64), heading, 0.0, lamps, active
    )
    play.things.append(thing)
    return thing


def find_nearest_thing(play: Play, spot: Floats, *kinds: str, free: bool = False) -> Thing | None:
    """The thing of some kinds that stands nearest to a place, None where there is none."""
    found = [
        thing
        for thing in play.things
        if thing.here and thing.kind in kinds and not (free and thing.pushed_by is not None)
    ]
    return min(found, key=lambda thing: float(np.hypot(*(thing.xy - spot))), default=None)


def add_flames(play: Play, thing: Thing | None, xy: Floats | None = None, high_m: float = 1.1) -> Thing:
    """Flames that come out of a thing, or of the ground.

    Args:
        play: the scene.
        thing: that burns; None for the ground.
        xy: (2,) where, if on the ground.
        high_m: of the flames.
    """
    at = thing.xy if thing is not None else xy
    wide = 0.62 if thing is not None else 0.9 * high_m
    fire = add_thing(
        play, "debris", np.array(at), play.draw(0.0, 6.28), "fire", (wide, wide, high_m), _FIRE_LAMPS
    )
    fire.z = thing.size_m[2] - 0.12 if thing is not None else 0.0
    return fire


def add_emergency_vehicle(play: Play, model: str, side: int) -> Thing:
    """An emergency vehicle with flashing beacons at the side of the street.

    Args:
        play: the scene.
        model: police_car, ambulance or fire_engine.
        side: 1 for left, -1 for right.
    """
    ground = play.ground
    kerb = ground.kerbs[1] if side > 0 else ground.kerbs[0]
    y = kerb - side * play.draw(1.5, 2.2)
    x = play.draw(18.0, 23.0) + (4.0 if model == "fire_engine" else 0.0)
    heading = math.pi * (1.0 if play.chance(0.5) else 0.0) + play.draw(-0.35, 0.35)
    return add_thing(
        play, "EmVeh", np.array([x, y]), heading, model, None, int(Lamp.BEACON | Lamp.HEAD), True
    )


def add_parked_car(play: Play, side: int) -> Thing:
    """A parked car at the kerb."""
    kerb = play.ground.kerbs[1] if side > 0 else play.ground.kerbs[0]
    xy = np.array([play.draw(13.0, 18.0), kerb - side * 1.1])
    return add_thing(play, "Car", xy, 0.0 if play.chance(0.5) else math.pi, ("hatchback", "saloon")[side > 0])


def compute_obstacle_circles(things: list[Thing]) -> Floats:
    """(m, 3) x, y and radius of circles that cover the vehicles."""
    rows: list[tuple[float, float, float]] = []
    for thing in things:
        if thing.kind not in ("Car", "EmVeh", "LarVeh", "Mobike"):
            continue
        long, wide, _ = thing.size_m
        for share in np.linspace(-0.5, 0.5, max(2, round(long / 0.9))).tolist():
            at = thing.xy + share * (long - wide) * np.array(
                [math.cos(thing.heading), math.sin(thing.heading)]
            )
            rows.append((float(at[0]), float(at[1]), wide / 2 + 0.1))
    return np.array(rows, dtype=np.float64).reshape(-1, 3)
