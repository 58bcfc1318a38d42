"""Where a rider touches a bicycle or motorbike; machines are built around these points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from roadaware.scenes.simulator.actors import Actor


@dataclass(frozen=True)
class Saddle:
    """Points of contact in the machine's axes: x forward from its middle, y left, z up; metres.

    The left pedal lies at `crank + crank_m * (sin gait, cos gait)` in x and z, the right one opposite.

    Args:
        seat: x and z of the top of the saddle.
        grips: x, distance from the middle and z of the handles.
        crank: x and z of the axle of the pedals; of a motorbike, of the foot rests.
        crank_m: length of a crank, 0 for foot rests.
        pedal_y: distance of a pedal from the middle.
        lean: how far its rider bends forward, in radians.
    """

    seat: tuple[float, float]
    grips: tuple[float, float, float]
    crank: tuple[float, float]
    crank_m: float
    pedal_y: float
    lean: float


MACHINE_SHARE = {
    "bicycle": 1.08 / 1.83,
    "cargo_bike": 1.12 / 1.92,
    "motorbike": 1.2 / 1.76,
    "scooter": 1.15 / 1.76,
}
"""Share of the height of machine and rider that the machine has."""
_SADDLES: dict[str, tuple[tuple[float, float, float], Saddle]] = {
    "bicycle": (
        (1.75, 0.6, 1.08),
        Saddle((-0.26, 0.93), (0.34, 0.26, 1.04), (-0.06, 0.29), 0.165, 0.12, 0.5),
    ),
    "cargo_bike": (
        (2.45, 0.72, 1.12),
        Saddle((-0.66, 0.93), (-0.10, 0.28, 1.08), (-0.46, 0.29), 0.165, 0.12, 0.22),
    ),
    "motorbike": (
        (2.1, 0.78, 1.2),
        Saddle((-0.28, 0.80), (0.36, 0.36, 1.02), (-0.14, 0.34), 0.0, 0.22, 0.35),
    ),
    "scooter": (
        (1.85, 0.7, 1.15),
        Saddle((-0.34, 0.76), (0.34, 0.31, 1.0), (0.12, 0.24), 0.0, 0.15, 0.12),
    ),
}


def saddle_of(actor: Actor) -> Saddle:
    """The points of contact of a `Cyc` or `Mobike`, by its model and size."""
    usual = "motorbike" if actor.kind == "Mobike" else "bicycle"
    model = actor.model if actor.model in _SADDLES else usual
    return saddle(model, machine_size(model, actor.size_m))


def machine_size(model: str, size_m: tuple[float, float, float]) -> tuple[float, float, float]:
    """Length, width and height in metres of what is ridden, without who rides it.

    Args:
        model: name of a machine, or of anything without a rider, whose size stays.
        size_m: length, width and height, with the rider where it has one.
    """
    long, wide, high = size_m
    return long, wide, high * MACHINE_SHARE.get(model, 1.0)


@lru_cache(maxsize=256)
def saddle(model: str, size_m: tuple[float, float, float]) -> Saddle:
    """The points of contact of a machine.

    Args:
        model: bicycle, cargo_bike, motorbike or scooter.
        size_m: its length, width and height without a rider; the points stretch with it.
    """
    usual, found = _SADDLES[model]
    along, wide, high = (real / plain for real, plain in zip(size_m, usual, strict=True))
    seat, grips, crank = found.seat, found.grips, found.crank
    return Saddle(
        (seat[0] * along, seat[1] * high),
        (grips[0] * along, grips[1] * wide, grips[2] * high),
        (crank[0] * along, crank[1] * high),
        found.crank_m * high,
        found.pedal_y * wide,
        found.lean,
    )
