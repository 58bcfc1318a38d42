"""Companions: what people push before them, and dogs at their side."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Actor
from roadaware.scenes.simulator.figures.models import MODELS
from roadaware.scenes.simulator.town.regions import KERB_M
from roadaware.scenes.simulator.walkers.persons import Person

HANDS = 0.27
"""How far before them people hold what they push, as a share of their height."""
DOG_LEFT_M, DOG_AHEAD_M = -0.55, 0.35


def companions(
    person: Person, actor: Actor, part: dict[str, Floats], number: int, fps: float
) -> tuple[list[Actor], int | None]:
    """The actors that go with somebody, and the number of the one they push.

    Args:
        person: what they are like.
        actor: somebody.
        part: what they did; `over` and `inward` are used.
        number: of the first companion.
        fps: frames per second.
    """
    if person.pushes is not None:
        size = MODELS[person.pushes][0].size_m
        ahead = HANDS * actor.size_m[2] + size[0] / 2 - 0.06
        return [_beside(actor, part, person.pushes, ahead, 0.0, number, fps)], number
    if person.dog:
        return [_beside(actor, part, "dog", DOG_AHEAD_M, DOG_LEFT_M, number, fps)], None
    return [], None


def _beside(
    actor: Actor, part: dict[str, Floats], kind: str, ahead: float, left: float, number: int, fps: float
) -> Actor:
    """Something that keeps its place beside somebody."""
    model = MODELS[kind][0]
    n = len(actor.heading)
    c, s = np.cos(actor.heading), np.sin(actor.heading)
    offset = np.stack([ahead * c - left * s, ahead * s + left * c], axis=1)
    position = actor.position.copy()
    position[:, :2] += offset
    inward = np.stack([np.cos(part["inward"]), np.sin(part["inward"])], axis=1)
    over = part["over"] - (offset * inward).sum(1)
    position[:, 2] = KERB_M * np.clip(over / 0.5 + 0.5, 0.0, 1.0)
    step = np.diff(position[:, :2], axis=0, prepend=position[:1, :2])
    speed = (step * np.stack([c, s], axis=1)).sum(1) * fps
    if n > 1:
        speed[0] = speed[1]
    # A dog takes two steps for each of its length and a half.
    gait = np.cumsum(speed / fps) * 2.0 * np.pi / (0.75 * model.size_m[0] * 1.5)
    return Actor(
        number, kind, model.name, model.size_m, actor.look, actor.first, position, actor.heading.copy(),
        speed,
        np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8), gait, np.zeros(n),
        np.full(n, -1, dtype=np.int64),
    )  # fmt: skip
