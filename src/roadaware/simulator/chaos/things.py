"""Things: bins, barriers, goods, fires, water and vehicles that stand by."""

from __future__ import annotations

import math

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Lamp
from roadaware.simulator.chaos.play import Play, Thing
from roadaware.simulator.figures.models import ELEMENTS, MODELS, sample_model_size

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
        if thing.kind not in ("Car", "EmVeh"):
            continue
        long, wide, _ = thing.size_m
        for share in np.linspace(-0.5, 0.5, max(2, round(long / 0.9))).tolist():
            at = thing.xy + share * (long - wide) * np.array(
                [math.cos(thing.heading), math.sin(thing.heading)]
            )
            rows.append((float(at[0]), float(at[1]), wide / 2 + 0.1))
    return np.array(rows, dtype=np.float64).reshape(-1, 3)
