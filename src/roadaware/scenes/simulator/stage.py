"""Stage: the triangles of an episode in a frame, those far away in a coarser shape."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Actor, Lamp
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
        self.town = Town(episode.layout, episode.config, episode.conditions, episode.look)
        spans = np.array([(actor.first, actor.end) for actor in episode.actors], dtype=np.int64).reshape(
            -1, 2
        )
        # Everybody's places one after the other, and where in them the frame 0 of each would be.
        self._spans = spans
        self._start = (
            np.cumsum(np.concatenate([[0], spans[:-1, 1] - spans[:-1, 0]]))[: len(spans)] - spans[:, 0]
        )
        self._places = np.concatenate(
            [np.zeros((0, 2)), *(actor.position[:, :2] for actor in episode.actors)]
        )
        self._posts = np.array([signal.position[:2] for signal in episode.signals]).reshape(-1, 2)
        self._still = {actor.number for actor in episode.actors if _still(actor)}
        self._kept: dict[int, tuple[tuple[int, bool], Soup]] = {}

    def soup(self, frame: int) -> Soup:
        """Everything that may be seen in a frame.

        Args:
            frame: of the scene.
        """
        ego = self.episode.ego
        town = self.town.near(ego.position[frame], float(ego.heading[frame]), self.range_m)
        return self._poured(town, frame, self.range_m, ahead=True)

    def around(self, frame: int, range_m: float) -> Soup:
        """Everything near the own vehicle in a frame, also behind it.

        Args:
            frame: of the scene.
            range_m: how far.
        """
        ego = self.episode.ego
        town = self.town.near(ego.position[frame], float(ego.heading[frame]), range_m, behind_m=range_m)
        return self._poured(town, frame, range_m, ahead=False)

    def _poured(self, town: Soup, frame: int, range_m: float, *, ahead: bool) -> Soup:
        """Town, actors and signals in range, of which only those that may be in the picture if `ahead`."""
        from roadaware.scenes.simulator.figures import signal_soup
        from roadaware.scenes.simulator.people import pose

        actors, signals = self.episode.actors, self.episode.signals
        near, away = self._near(frame, range_m, ahead)
        pose([actors[k] for k in near if actors[k].kind in _BODIES], frame)
        parts = [town]
        parts += [self._actor(actors[k], frame, far) for k, far in zip(near, away, strict=True)]
        offset = self._posts - self.episode.ego.position[frame, :2]
        kept = self._in_view(offset, frame) if ahead else np.ones(len(offset), dtype=np.bool_)
        for k in np.flatnonzero(kept & (np.hypot(*offset.T) < range_m)).tolist():
            parts.append(signal_soup(signals[k], frame, len(actors) + 1 + signals[k].number))
        return poured(parts)

    def _near(self, frame: int, range_m: float, ahead: bool) -> tuple[list[int], list[float]]:
        """Actors in range, and how far away they are."""
        here = np.flatnonzero((self._spans[:, 0] <= frame) & (frame < self._spans[:, 1]))
        offset = self._places[self._start[here] + frame] - self.episode.ego.position[frame, :2]
        away = np.hypot(*offset.T)
        kept = away < range_m
        if ahead:
            kept &= self._in_view(offset, frame)
        return here[kept].tolist(), away[kept].tolist()

    def _in_view(self, offset: Floats, frame: int) -> npt.NDArray[np.bool_]:
        """(n,) whether what stands at (n, 2) metres off the own vehicle may be in the picture.

        So may be what throws a shadow into it.
        """
        heading = float(self.episode.ego.heading[frame])
        c, s = np.cos(heading), np.sin(heading)
        ahead, aside = offset @ (c, s), np.abs(offset @ (-s, c))
        seen: npt.NDArray[np.bool_] = (ahead > -_BESIDE_M) & (
            aside < _BESIDE_M + self._spread * np.maximum(ahead, 0.0)
        )
        return seen

    def _actor(self, actor: Actor, frame: int, away_m: float) -> Soup:
        """The triangles of an actor; those of what stands still are kept."""
        coarse = away_m > NEAR_M
        hue, lamps = self.episode.config.surroundings.hue, int(actor.lamps[frame - actor.first])
        if actor.number not in self._still or lamps & Lamp.BEACON:
            return actor_soup(actor, frame, coarse=coarse, hue=hue)
        look = (lamps, coarse)
        if actor.number not in self._kept or self._kept[actor.number][0] != look:
            self._kept[actor.number] = (look, actor_soup(actor, frame, coarse=coarse, hue=hue))
        return self._kept[actor.number][1]


def _still(actor: Actor) -> bool:
    """Whether nothing of it ever moves, but that its lamps may be lit."""
    tracks = (actor.position, actor.heading, actor.gait, actor.speed)
    return actor.kind not in _BODIES and all(bool((track == track[:1]).all()) for track in tracks)


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
