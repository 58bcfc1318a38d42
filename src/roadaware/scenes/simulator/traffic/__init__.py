"""Traffic: vehicles, cyclists, the own vehicle and traffic lights, lived frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Actor, Ego, Signal
from roadaware.scenes.simulator.config import Conditions, SceneConfig
from roadaware.scenes.simulator.layout import Layout
from roadaware.scenes.simulator.view import TrafficView


class OnFoot(Protocol):
    """The people beside and on the road, as traffic sees them."""

    def step(self, frame: int, view: TrafficView) -> None:
        """Live through one frame."""

    def on_road(self) -> tuple[Floats, Floats]:
        """(m, 2) where people are on the road, metres, and (m, 2) their velocities, m/s."""

    def waiting(self) -> Floats:
        """(k, 2) where people wait at a kerb or a zebra crossing, metres."""


@dataclass(frozen=True, eq=False)
class Lived:
    """What the traffic did.

    Args:
        ego: the own vehicle.
        vehicles: everybody else on wheels, numbered from 0.
        signals: traffic lights, numbered as `Layout.signals`.
    """

    ego: Ego
    vehicles: tuple[Actor, ...]
    signals: tuple[Signal, ...]


def simulate(
    layout: Layout,
    config: SceneConfig,
    conditions: Conditions,
    rng: np.random.Generator,
    walkers: OnFoot,
    objects: Sequence[Actor] = (),
) -> Lived:
    """Let vehicles drive through a scene.

    Args:
        layout: roads.
        config: of the scene.
        conditions: light and weather; they decide on head lamps.
        rng: every draw comes from it.
        walkers: people; `step` is called once per frame with what they see.
        objects: that lie on the road or beside it; vehicles drive round them or stop.

    Returns:
        The own vehicle, everybody else on wheels and the traffic lights.
    """
    from roadaware.scenes.simulator.traffic.loop import live

    rows = [(*o.position[0, :2], o.heading[0], *o.size_m[:2]) for o in objects if len(o.heading)]
    things = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return live(layout, config, conditions, rng, walkers, things)


def start_of(layout: Layout) -> float:
    """Metres along the planned way at which the bumper of the own vehicle starts.

    Args:
        layout: with a route.
    """
    from roadaware.scenes.simulator.traffic.cast import EGO_SIZE_M, start_m

    return start_m(layout.lanes[layout.route[0]]) + EGO_SIZE_M[0] / 2
