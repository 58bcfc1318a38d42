"""A straight street with a place to cross, vehicles that come along it as told, and people to put there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Actor, Light
from roadaware.simulator.config import SceneConfig
from roadaware.simulator.layout import Crossing, CrossingKind, Lane, Layout, Line, Road, SignalSite
from roadaware.simulator.traffic.loop import TrafficView
from roadaware.simulator.walkers import Walkers
from roadaware.simulator.walkers.persons import Person, Start, safety_margin_s
from roadaware.simulator.walkers.ways import Place, Ways, collect_marked_places, find_unmarked_place

HALF_M, PAVEMENT_M, LENGTH_M, CROSSING_M = 3.3, 2.6, 300.0, 150.0
FPS = 10.0

Vehicles = Callable[[float], Sequence[tuple[float, float]]]
"""From seconds to (x, speed) of vehicles, own first; at a negative speed they drive the other way."""


def street(kind: CrossingKind | None = None) -> Layout:
    """A road along x with one lane each way, on the right, and a crossing in its middle."""

    def along(y: float, back: bool = False) -> Line:
        points = np.array([[0.0, y], [LENGTH_M, y]])
        return Line(points[::-1] if back else points)

    out = HALF_M + PAVEMENT_M / 2
    lanes = (
        Lane(0, 0, "vehicle", along(-1.65), 3.3, True, -1, 0),
        Lane(1, 0, "pavement", along(-out), PAVEMENT_M, True, -1, 1),
        Lane(2, 0, "vehicle", along(1.65, True), 3.3, False, 1, 0),
        Lane(3, 0, "pavement", along(out), PAVEMENT_M, True, 1, 1),
    )
    sites: tuple[SignalSite, ...] = ()
    if kind == "signalled":
        sites = (SignalSite(0, (CROSSING_M, 4.0, 2.3), 0.0, (), -1, 0, True, 0),)
    crossings = (
        () if kind is None else (Crossing(0, 0, CROSSING_M, 3.0, kind, tuple(x.number for x in sites)),)
    )
    road = Road(0, along(0.0), (0, 1, 2, 3), HALF_M, PAVEMENT_M)
    return Layout((road,), lanes, (), crossings, sites, (), (0,))


def place(layout: Layout) -> Place:
    """Where people cross from the right pavement."""
    ways = Ways(layout)
    marked = [x for x in collect_marked_places(layout, ways) if x.band == 1]
    found = marked[0] if marked else find_unmarked_place(layout, ways, 1, CROSSING_M)
    assert found is not None
    return found


def somebody(**traits: Any) -> Person:
    """An adult who wants to cross, looks, obeys, and waits for long; traits change that."""
    bare = Person("adult_b", "adult", (0.52, 0.5, 1.67), 7, 1.35, patience_s=500.0, wants=True, chance=0.0)
    person = replace(bare, **traits)
    return replace(person, care_s=safety_margin_s(person.age, person.boldness))


def comer(layout: Layout, away_m: float = 4.0, **traits: Any) -> Start:
    """Somebody who walks to the crossing."""
    return Start(somebody(**traits), 1, CROSSING_M - away_m, 1.2, 1, place(layout), "cross")


def view_at(frame: int, fps: float, vehicles: Vehicles, lights: Sequence[int] = ()) -> TrafficView:
    """What drives along the street."""
    rows = np.array(vehicles(frame / fps), dtype=np.float64).reshape(-1, 2)
    back = rows[:, 1] < 0
    position = np.stack([rows[:, 0], np.where(back, 1.65, -1.65)], axis=1)
    heading: Floats = np.where(back, np.pi, 0.0)
    n = len(rows)
    return TrafficView(
        frame, frame / fps, position, heading, np.abs(rows[:, 1]), np.full(n, 4.4), np.full(n, 1.8),
        np.array(lights, dtype=np.uint8),
    )  # fmt: skip


def live(
    layout: Layout,
    starts: Sequence[Start],
    vehicles: Vehicles,
    seconds: float = 20.0,
    light: Callable[[float], Light] = lambda _: Light.RED,
    seed: int = 0,
) -> tuple[Actor, ...]:
    """Let people live in the street and return them."""
    frames = round(seconds * FPS)
    config = SceneConfig(seconds=seconds, camera=replace(SceneConfig().camera, fps=FPS))
    walkers = Walkers(layout, config, np.random.default_rng(seed), frames, FPS, starts)
    for frame in range(frames):
        lights = [int(light(frame / FPS))] * len(layout.signals)
        walkers.step(frame, view_at(frame, FPS, vehicles, lights))
    return walkers.actors(0)
