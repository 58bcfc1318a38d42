"""What drives on a road: kinds with their shares, models and manners of driving."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.scenes.simulator.figures.models import MODELS, sized

SHARES = {
    "Car": 0.53,
    "Cyc": 0.26,
    "MedVeh": 0.1,
    "Bus": 0.05,
    "LarVeh": 0.035,
    "Mobike": 0.02,
    "EmVeh": 0.005,
}
"""Long-tailed, as in ROAD."""
PARKED = {"Car": 0.86, "MedVeh": 0.11, "Mobike": 0.03}
TWO_WHEELED = ("Cyc", "Mobike")
FASTEST = 1.1
"""Times the usual speed of the scene that anybody drives, emergency vehicles apart."""
LONGEST_TURNING_M = 12.5
"""Longer vehicles go straight on."""


@dataclass(frozen=True)
class Make:
    """A vehicle as built.

    Args:
        kind: its agent class.
        model: its shape.
        size_m: length, width, height.
        look: seed of its details.
    """

    kind: str
    model: str
    size_m: tuple[float, float, float]
    look: int


@dataclass(frozen=True)
class Manners:
    """How somebody drives.

    Args:
        speed: that is kept where nothing is in the way, m/s.
        accelerate: m/s2 at most.
        brake: m/s2 when there is time.
        headway_s: kept behind others.
        patience_s: before smaller gaps will do.
        yielding: probability of stopping for somebody who waits at a zebra crossing.
    """

    speed: float
    accelerate: float
    brake: float
    headway_s: float
    patience_s: float
    yielding: float


def draw_kind(rng: np.random.Generator, shares: dict[str, float]) -> str:
    """A kind by its share.

    Args:
        rng: draws it.
        shares: of kinds, of any sum.
    """
    weights = np.array(list(shares.values()))
    return list(shares)[int(rng.choice(len(weights), p=weights / weights.sum()))]


def draw_make(rng: np.random.Generator, kind: str, lane_width_m: float, longest_m: float = 20.0) -> Make:
    """A vehicle of a kind that fits in a lane, the narrowest of its kind where none does.

    Args:
        rng: draws it.
        kind: an agent class.
        lane_width_m: of the lanes it uses.
        longest_m: where there is no room for more.
    """
    models = [m for m in MODELS[kind] if m.size_m[1] < lane_width_m - 0.35 and m.size_m[0] <= longest_m]
    models = models or [min(MODELS[kind], key=lambda model: model.size_m[0] * model.size_m[1])]
    weights = np.array([model.weight for model in models])
    model = models[int(rng.choice(len(models), p=weights / weights.sum()))]
    look = int(rng.integers(2**31))
    return Make(kind, model.name, sized(model, look), look)


def draw_manners(rng: np.random.Generator, kind: str, usual: float, yielding: float) -> Manners:
    """How the driver of a vehicle drives.

    Args:
        rng: draws it.
        kind: of the vehicle.
        usual: speed of the scene, m/s.
        yielding: of the scene.
    """
    speed = usual * min(float(rng.normal(0.97, 0.09)), FASTEST)
    accelerate, brake = float(rng.uniform(1.4, 2.2)), 2.2
    if kind == "Cyc":
        speed, accelerate = min(float(rng.uniform(3.6, 6.2)), FASTEST * usual), float(rng.uniform(0.7, 1.1))
    elif kind in ("Bus", "LarVeh"):
        speed, accelerate = 0.93 * speed, float(rng.uniform(0.8, 1.2))
    elif kind == "EmVeh":
        speed, accelerate = FASTEST * usual, 2.4
    headway, patience = float(rng.uniform(0.9, 1.5)), float(rng.uniform(4.0, 9.0))
    return Manners(max(speed, 1.5), accelerate, brake, headway, patience, yielding)
