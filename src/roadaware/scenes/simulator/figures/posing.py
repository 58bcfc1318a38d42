"""Meshes of vehicles, machines and objects frame by frame."""

from __future__ import annotations

from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.scenes.simulator.actors import Actor
from roadaware.scenes.simulator.figures.form import Size
from roadaware.scenes.simulator.figures.models import figure_of
from roadaware.scenes.simulator.mesh import Mesh

STEER_MOST = 0.55
"""Radians that front wheels turn at most."""
FLASH_FRAMES = 2
"""Frames that one half of the beacons shines before it is the other's turn."""

_WAYS: WeakKeyDictionary[Actor, tuple[Floats, Floats]] = WeakKeyDictionary()


def mesh_of(actor: Actor, frame: int, coarse: bool = False) -> Mesh:
    """A vehicle, machine or object in a frame, in its own axes; riders come apart from it.

    It fills the actor's size exactly, but for mirrors, steered wheels and the room of a rider.

    Args:
        actor: of a kind in `MODELS`.
        frame: of the scene.
        coarse: whether a few triangles are enough, as for what is far away.

    Raises:
        UsageError: no figure of this kind or model, or the actor is not in this frame.
    """
    row = actor.at(frame)
    if row is None:
        raise UsageError(f"actor {actor.number} is in frames {actor.first} to {actor.end}, not in {frame}")
    length, width, height = actor.size_m
    size = (float(length), float(width), float(height))
    turn = (frame // FLASH_FRAMES) % 2
    mesh = _lit(actor.kind, actor.model, size, int(actor.look), coarse, int(actor.lamps[row]), turn)
    figure = figure_of(actor.kind, actor.model, size, int(actor.look), coarse)
    if not figure.joints:
        return mesh
    way, bend = _travelled(actor)
    steer = float(np.clip(np.arctan(figure.wheelbase_m * bend[row]), -STEER_MOST, STEER_MOST))
    vertices = figure.posed(float(way[row]), steer, _gait(actor, row, float(way[row])))
    return Mesh(vertices, mesh.triangles, mesh.colour, mesh.material, mesh.semantic, mesh.glow, mesh.uv)


def _gait(actor: Actor, row: int, way: float) -> float:
    """Phase of the legs; an animal that says nothing of it takes a step of its own length at a time."""
    if actor.kind == "dog" and not actor.gait.any():
        return 2 * np.pi * way / actor.size_m[0]
    return float(actor.gait[row])


@lru_cache(maxsize=4096)
def _lit(kind: str, model: str, size: Size, look: int, coarse: bool, lamps: int, turn: int) -> Mesh:
    return figure_of(kind, model, size, look, coarse).lit(lamps, turn)


def _travelled(actor: Actor) -> tuple[Floats, Floats]:
    """(n,) metres since its first frame, backwards negative, and (n,) radians of bend per metre."""
    if actor in _WAYS:
        return _WAYS[actor]
    steps = np.hypot(*np.diff(actor.position[:, :2], axis=0).T)
    signed = np.where(actor.speed[1:] < 0, -steps, steps)
    way = np.concatenate([[0.0], np.cumsum(signed)])
    heading = np.unwrap(actor.heading)
    places = np.arange(len(way))
    # Over a few frames, and at least some decimetres: what creeps has no bend to speak of.
    before, after = np.maximum(places - 2, 0), np.minimum(places + 2, len(way) - 1)
    gone = way[after] - way[before]
    bend = np.where(
        np.abs(gone) > 0.2, (heading[after] - heading[before]) / np.where(gone == 0, 1.0, gone), 0.0
    )
    _WAYS[actor] = (way, bend)
    return way, bend
