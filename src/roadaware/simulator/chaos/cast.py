"""Cast: who belongs to a crowd, and where they are when a scene begins."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.chaos.play import Play, Player
from roadaware.simulator.people import PEOPLE_MODELS
from roadaware.simulator.people.outfits import sample_outfit
from roadaware.simulator.people.statures import get_age_group

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
    ahead = min(17.0, float(spot[0]) + 4.0)
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
