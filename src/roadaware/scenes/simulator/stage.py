"""Stage: the triangles of an episode in a frame, those far away in a coarser shape."""

from __future__ import annotations

import numpy as np

from roadaware.scenes.simulator.actors import Actor
from roadaware.scenes.simulator.episode import Episode
from roadaware.scenes.simulator.mesh import Soup, placed, poured

_BODIES = ("Ped", "Cyc", "Mobike")
NEAR_M, FAR_M = 35.0, 140.0
"""Up to where things have their fine shape, and from where on they are not drawn."""
_BESIDE_M = 12.0
"""How far outside the view things are kept: long vehicles, and shadows of a low sun."""


class Stage:
    """The scene as triangles; what does not move is made once.

    Args:
        episode: the scene.
        range_m: how far one sees.
    """

    def __init__(self, episode: Episode, range_m: float = FAR_M) -> None:
        from roadaware.scenes.simulator.town import Town

        self.episode, self.range_m = episode, range_m
        self._spread = float(np.tan(np.radians(episode.config.camera.fov_deg / 2)))
        self.town = Town(episode.layout, episode.config, episode.conditions)

    def soup(self, frame: int) -> Soup:
        """Everything that may be seen in a frame.

        Args:
            frame: of the scene.
        """
        ego = self.episode.ego
        place, heading = ego.position[frame], float(ego.heading[frame])
        parts = [self.town.near(place, heading, self.range_m)]
        parts += [self._actor(actor, frame) for actor in self.episode.actors if self._in_view(actor, frame)]
        parts += self._signals(frame)
        return poured(parts)

    def around(self, frame: int, range_m: float) -> Soup:
        """Everything near the own vehicle in a frame, also behind it.

        Args:
            frame: of the scene.
            range_m: how far.
        """
        ego = self.episode.ego
        place, heading = ego.position[frame], float(ego.heading[frame])
        parts = [self.town.near(place, heading, range_m, behind_m=range_m)]
        parts += [self._actor(actor, frame) for actor in self.episode.actors if self._in_range(actor, frame)]
        return poured([*parts, *self._signals(frame)])

    def _in_view(self, actor: Actor, frame: int) -> bool:
        """Whether it may be in the picture, or throw a shadow into it."""
        if not self._in_range(actor, frame):
            return False
        ego = self.episode.ego
        away = actor.position[frame - actor.first, :2] - ego.position[frame, :2]
        heading = float(ego.heading[frame])
        ahead = away @ np.array([np.cos(heading), np.sin(heading)])
        aside = abs(away @ np.array([-np.sin(heading), np.cos(heading)]))
        return bool(ahead > -_BESIDE_M and aside < _BESIDE_M + self._spread * max(ahead, 0.0))

    def _in_range(self, actor: Actor, frame: int) -> bool:
        row = actor.at(frame)
        if row is None:
            return False
        away = actor.position[row, :2] - self.episode.ego.position[frame, :2]
        return float(np.hypot(*away)) < self.range_m

    def _actor(self, actor: Actor, frame: int) -> Soup:
        row = frame - actor.first
        away = np.hypot(*(actor.position[row, :2] - self.episode.ego.position[frame, :2]))
        hue = self.episode.config.surroundings.hue
        return actor_soup(actor, frame, coarse=bool(away > NEAR_M), hue=hue)

    def _signals(self, frame: int) -> list[Soup]:
        from roadaware.scenes.simulator.figures import signal_soup

        first = len(self.episode.actors) + 1
        place = self.episode.ego.position[frame]
        near = [
            signal
            for signal in self.episode.signals
            if np.hypot(*(signal.position[:2] - place[:2])) < self.range_m
        ]
        return [signal_soup(signal, frame, first + signal.number) for signal in near]


def actor_soup(actor: Actor, frame: int, *, coarse: bool = False, hue: float = 0.0) -> Soup:
    """One actor's triangles in the world.

    Args:
        actor: who.
        frame: in which it is in the scene.
        coarse: whether few triangles do.
        hue: 0 to 1, how far its colours are turned.
    """
    from roadaware.scenes.simulator.figures import mesh_of, turned
    from roadaware.scenes.simulator.people import body

    row = frame - actor.first
    shapes = [] if actor.kind == "Ped" else [mesh_of(actor, frame, coarse)]
    shapes += [body(actor, frame, coarse)] if actor.kind in _BODIES else []
    shapes = [turned(mesh, hue) for mesh in shapes] if hue else shapes
    place, heading = actor.position[row], float(actor.heading[row])
    return poured([placed(mesh, place, heading, actor.number + 1) for mesh in shapes])
