"""View: an actor as the own vehicle has it in each frame: how far, on which side, and which way it moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Floats, Ints
from roadaware.scenes.simulator.actors import Actor, Ego


@dataclass(frozen=True, eq=False)
class View:
    """An actor seen from the own vehicle, one row for each of its frames.

    Args:
        frame: (n,) of the scene.
        heading: (n,) of the own vehicle, radians.
        position: (n, 2) in the world, metres.
        ahead: (n,) metres before the own vehicle's rear axle.
        left: (n,) metres to its left.
        distance: (n,) metres from its rear axle.
        sight: (n, 2) unit vectors from it to the actor.
        velocity: (n, 2) m/s in the world.
        forward: (n,) m/s along the own vehicle's heading.
        leftward: (n,) m/s to its left.
        away: (n,) m/s along the line from the own vehicle to the actor, which ignores how that one moves.
        faces_away: (n,) whether its back is turned to the own vehicle.
    """

    frame: Ints
    heading: Floats
    position: Floats
    ahead: Floats
    left: Floats
    distance: Floats
    sight: Floats
    velocity: Floats
    forward: Floats
    leftward: Floats
    away: Floats
    faces_away: Bools

    @property
    def pace(self) -> Floats:
        """(n,) m/s, whatever the direction."""
        pace: Floats = np.hypot(self.velocity[:, 0], self.velocity[:, 1])
        return pace


def view_of(actor: Actor, ego: Ego) -> View:
    """How the own vehicle has an actor.

    Args:
        actor: of the scene.
        ego: the own vehicle.
    """
    frame = np.arange(actor.first, actor.end)
    heading = ego.heading[frame]
    front = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    side = np.stack([-front[:, 1], front[:, 0]], axis=1)
    position = actor.position[:, :2]
    line = position - ego.position[frame, :2]
    distance = np.hypot(line[:, 0], line[:, 1])
    faces = np.stack([np.cos(actor.heading), np.sin(actor.heading)], axis=1)
    velocity = faces * actor.speed[:, None]
    sight = line / np.maximum(distance, 1e-9)[:, None]
    return View(
        frame,
        heading,
        position,
        (line * front).sum(1),
        (line * side).sum(1),
        distance,
        sight,
        velocity,
        (velocity * front).sum(1),
        (velocity * side).sum(1),
        (velocity * sight).sum(1),
        (faces * sight).sum(1) > 0,
    )


def wrapped(angle: float) -> float:
    """An angle between -pi and pi."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def steady(codes: Ints, least: int) -> Ints:
    """The codes without passing ones: short runs take the code before them, at the start that after.

    Args:
        codes: (n,) one for each frame.
        least: frames that a run must last.

    >>> steady(np.array([1, 1, 1, 2, 1, 1, 3, 3]), 2).tolist()
    [1, 1, 1, 1, 1, 1, 3, 3]
    """
    found = codes.copy()
    starts = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))
    ends = np.append(starts[1:], len(codes))
    long = ends - starts >= least
    if not long.any():
        return found
    before: int | None = None
    first = int(codes[starts[np.argmax(long)]])
    for start, end, lasts in zip(starts.tolist(), ends.tolist(), long.tolist(), strict=True):
        if lasts:
            before = int(codes[start])
        else:
            found[start:end] = first if before is None else before
    return found


def around(flags: Bools, frames: int) -> Bools:
    """The flags with the gaps between them closed where they last at most some frames.

    Args:
        flags: (n,).
        frames: longest gap that is closed.

    >>> around(np.array([1, 0, 0, 1, 0, 0, 0, 1]) > 0, 2).astype(int).tolist()
    [1, 1, 1, 1, 0, 0, 0, 1]
    """
    found = flags.copy()
    lit = np.flatnonzero(flags)
    for low, high in zip(lit[:-1].tolist(), lit[1:].tolist(), strict=True):
        if high - low - 1 <= frames:
            found[low:high] = True
    return found
