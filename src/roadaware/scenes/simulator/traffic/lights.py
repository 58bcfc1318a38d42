"""Phases of traffic lights: which group shows what at which time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.scenes.simulator.actors import Light, Signal
from roadaware.scenes.simulator.layout import Layout

AMBER_S, CLEAR_S, READY_S = 3.0, 1.6, 1.2
WALK_S, EMPTY_S = 5.0, 3.5
"""Walkers' green, and what they are given to leave the road."""
BLACK_SHARE = 0.12
"""Of scenes with lights, in which one is out of order."""
READY = 4
"""Red and amber together: shown as amber, but nobody starts."""


@dataclass(frozen=True)
class Cycle:
    """What one group shows over a cycle.

    Args:
        length_s: of the cycle.
        offset_s: where in it the scene starts.
        starts: seconds in the cycle at which each phase begins.
        shows: `Light` or `READY` of each phase.
    """

    length_s: float
    offset_s: float
    starts: tuple[float, ...]
    shows: tuple[int, ...]

    def at(self, time_s: float) -> int:
        """What it shows.

        Args:
            time_s: since the start of the scene.
        """
        place = (time_s + self.offset_s) % self.length_s
        found = self.shows[-1]
        for start, show in zip(self.starts, self.shows, strict=True):
            if start <= place:
                found = show
        return found


class Lights:
    """The traffic lights of a scene.

    Args:
        layout: with its signals.
        rng: draws phases, and which one is out of order.
    """

    def __init__(self, layout: Layout, rng: np.random.Generator) -> None:
        self.sites = layout.signals
        self.cycles: dict[int, Cycle] = {}
        own = {site.group for site in layout.signals if set(site.lanes) & set(layout.route)}
        for vehicles, walkers in _places(layout):
            self.cycles.update(_cycles(vehicles, walkers, own, rng))
        self.black = -1
        near = [site.number for site in layout.signals if set(site.lanes) & set(layout.route)]
        draw, pick = rng.random(), rng.random()
        if near and draw < BLACK_SHARE:
            self.black = near[int(pick * min(len(near), 4))]

    def group(self, group: int, time_s: float) -> int:
        """What a group means to drivers, `READY` included; a light that is out of order has a twin.

        Args:
            group: number of it.
            time_s: since the start of the scene.
        """
        return self.cycles[group].at(time_s)

    def shown(self, time_s: float) -> npt.NDArray[np.uint8]:
        """(signals,) the `Light` of each signal.

        Args:
            time_s: since the start of the scene.
        """
        states = {group: cycle.at(time_s) for group, cycle in self.cycles.items()}
        found = [Light.AMBER if states[s.group] == READY else states[s.group] for s in self.sites]
        shown = np.array(found, dtype=np.uint8)
        if self.black >= 0:
            shown[self.black] = Light.BLACK
        return shown

    def signals(self, shown: npt.NDArray[np.uint8]) -> tuple[Signal, ...]:
        """The signals of a scene.

        Args:
            shown: (frames, signals) of each frame.
        """
        return tuple(
            Signal(
                site.number,
                np.array(site.position, dtype=np.float64),
                site.heading,
                np.ascontiguousarray(shown[:, site.number]),
                site.lanes,
                site.junction,
                site.for_walkers,
            )
            for site in self.sites
        )


def _places(layout: Layout) -> list[tuple[list[int], list[int]]]:
    """Groups of vehicles and of walkers of each place with lights of its own."""
    found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for site in layout.signals:
        key = (site.junction, -1) if site.junction >= 0 else (-1, site.crossing)
        groups = found.setdefault(key, ([], []))[1 if site.for_walkers else 0]
        if site.group not in groups:
            groups.append(site.group)
    return list(found.values())


def _cycles(
    vehicles: list[int], walkers: list[int], main: set[int], rng: np.random.Generator
) -> dict[int, Cycle]:
    """Greens one after the other, longer on the main road, those of walkers last."""
    green: list[tuple[int, float, float]] = []
    now = 0.0
    for group in vehicles:
        lasts = float(rng.uniform(10.0, 15.0) if group in main else rng.uniform(6.0, 9.0))
        now += READY_S
        green.append((group, now, now + lasts))
        now += lasts + AMBER_S + CLEAR_S
    if walkers:
        green += [(group, now, now + WALK_S) for group in walkers]
        now += WALK_S + EMPTY_S
    offset = float(rng.uniform(0.0, now))
    found = {}
    for group, start, end in green:
        if group in vehicles:
            starts: tuple[float, ...] = (0.0, start - READY_S, start, end, end + AMBER_S)
            shows: tuple[int, ...] = (Light.RED, READY, Light.GREEN, Light.AMBER, Light.RED)
        else:
            starts, shows = (0.0, start, end), (Light.RED, Light.GREEN, Light.RED)
        found[group] = Cycle(now, offset, starts, shows)
    return found
