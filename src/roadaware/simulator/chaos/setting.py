"""Setting: the things that stand, burn or float about when a scene of chaos begins."""

from __future__ import annotations

import math

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos.actions import heading_vector
from roadaware.simulator.chaos.cast import find_free_place
from roadaware.simulator.chaos.director import Programme
from roadaware.simulator.chaos.play import Play, Thing
from roadaware.simulator.chaos.things import (
    WATER_M,
    add_emergency_vehicle,
    add_flames,
    add_parked_car,
    add_thing,
    compute_obstacle_circles,
)

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
