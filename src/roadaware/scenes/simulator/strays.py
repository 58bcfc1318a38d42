"""Strays: dogs that run over the road, as drivers see them; they live along with those on foot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.layout import Line
from roadaware.scenes.simulator.traffic import OnFoot
from roadaware.scenes.simulator.view import TrafficView

BRAKE = 4.0
"""m/s2 that dogs expect of drivers: they stop before a vehicle that could not brake for them."""
BODY_M = 0.5
LOOK_S = (0.15, 0.3, 0.5, 0.7, 0.9)
"""Moments ahead for which they look where vehicles will be."""


@dataclass(frozen=True, eq=False)
class Dog:
    """A dog that wants to run over a road.

    Args:
        line: of the road.
        along_m: where along it.
        side: 1 if it comes from the left of the line, -1 from the right.
        near_m: from the line to where it starts.
        far_m: from the line to where it ends.
        half_m: from the line to the kerb.
        begin_s: when it starts.
        pace: m/s.
        drift: metres along the road for each metre across.
    """

    line: Line
    along_m: float
    side: float
    near_m: float
    far_m: float
    half_m: float
    begin_s: float
    pace: float
    drift: float

    def at(self, gone: float) -> Floats:
        """(2,) where it is after some metres across the road."""
        left = self.side * (self.near_m - gone)
        return self.line.beside(self.along_m + self.drift * gone, left)

    @property
    def heading(self) -> float:
        """Where it runs to."""
        return float(self.line.heading(self.along_m)) - self.side * (np.pi / 2 - self.drift)


class Strays:
    """Those on foot, and dogs among them.

    Args:
        walkers: everybody on foot.
        dogs: that run.
        fps: frames per second.
    """

    def __init__(self, walkers: OnFoot, dogs: Sequence[Dog], fps: float) -> None:
        self.walkers, self.dogs, self.fps = walkers, tuple(dogs), fps
        self._gone = [0.0] * len(self.dogs)
        self._pace = [0.0] * len(self.dogs)
        self._tracks: list[list[tuple[float, float, float]]] = [[] for _ in self.dogs]

    def step(self, frame: int, view: TrafficView) -> None:
        """Live through one frame.

        Args:
            frame: of the scene.
            view: the traffic.
        """
        self.walkers.step(frame, view)
        people, _ = self.walkers.on_road()
        for k, dog in enumerate(self.dogs):
            wants = view.time_s >= dog.begin_s and self._gone[k] < dog.near_m + dog.far_m
            runs = wants and frame > 0 and not _endangered(dog, self._gone[k], view)
            ahead = dog.at(self._gone[k] + 0.8)
            runs = runs and not bool((np.hypot(*(people - ahead).T) < 0.8).any())
            self._pace[k] = dog.pace if runs else 0.0
            self._gone[k] += self._pace[k] / self.fps
            x, y = dog.at(self._gone[k]).tolist()
            self._tracks[k].append((x, y, dog.heading))

    def on_road(self) -> tuple[Floats, Floats]:
        """(m, 2) where people and dogs are on the road, metres, and (m, 2) their velocities, m/s."""
        people, velocity = self.walkers.on_road()
        out = [k for k, dog in enumerate(self.dogs) if abs(dog.near_m - self._gone[k]) < dog.half_m]
        if not out:
            return people, velocity
        place = [self.dogs[k].at(self._gone[k]) for k in out]
        turn = [self.dogs[k].heading for k in out]
        pace = [self._pace[k] * np.array([np.cos(h), np.sin(h)]) for k, h in zip(out, turn, strict=True)]
        return np.concatenate([people, place]), np.concatenate([velocity, pace])

    def waiting(self) -> Floats:
        """(k, 2) where people wait to cross."""
        return self.walkers.waiting()

    def tracks(self) -> list[Floats]:
        """(F, 3) x, y and heading of each dog in each frame."""
        return [np.array(track, dtype=np.float64).reshape(-1, 3) for track in self._tracks]


def _endangered(dog: Dog, gone: float, view: TrafficView) -> bool:
    """Whether a step on leads into a vehicle, or before one that is too near to brake."""
    c, s = np.cos(view.heading), np.sin(view.heading)
    v = np.maximum(view.speed, 0.0)
    half, length = view.width / 2 + BODY_M, view.length / 2

    def beside(seconds: float, way: float) -> tuple[Floats, Floats]:
        away = dog.at(gone + way) - view.position
        return away[:, 0] * c + away[:, 1] * s - v * seconds, away[:, 1] * c - away[:, 0] * s

    ahead, left = beside(0.0, 0.0)
    inside = np.abs(left) < half
    for seconds in LOOK_S:
        soon, there = beside(seconds, dog.pace * seconds)
        if ((np.abs(soon) < length + BODY_M) & (np.abs(there) < half) & ~inside).any():
            return True
    soon, there = beside(0.0, 1.6)
    enters = ~inside & ((np.abs(there) < half) | (left * there < 0))
    behind = np.minimum(ahead, soon) < -length - BODY_M
    gap = np.maximum(ahead, soon) - length
    return bool((enters & ~behind & (gap < v * v / (2 * BRAKE) + 0.4 * v + 1.5)).any())
