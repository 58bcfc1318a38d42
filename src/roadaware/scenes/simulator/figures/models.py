"""The models of every kind, and how each is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from roadaware.errors import UsageError
from roadaware.scenes.simulator.figures.buses import bus
from roadaware.scenes.simulator.figures.cars import car
from roadaware.scenes.simulator.figures.cycles import bicycle, motorbike
from roadaware.scenes.simulator.figures.elements import fire, flood
from roadaware.scenes.simulator.figures.form import Figure, Form, Size
from roadaware.scenes.simulator.figures.lorries import fire_engine, lorry
from roadaware.scenes.simulator.figures.movers import cart, dog, stroller
from roadaware.scenes.simulator.figures.objects import MAKERS, thing
from roadaware.scenes.simulator.figures.vans import pickup, van
from roadaware.scenes.simulator.people.machines import machine_size


@dataclass(frozen=True)
class Model:
    """A model of a kind.

    Args:
        name: of it.
        size_m: length, width and height, mirrors apart.
        weight: how often it is seen, within its kind.
    """

    name: str
    size_m: Size
    weight: float = 1.0


MODELS: Mapping[str, tuple[Model, ...]] = {
    "Car": (
        Model("hatchback", (4.2, 1.78, 1.47), 0.36),
        Model("saloon", (4.7, 1.82, 1.44), 0.2),
        Model("estate", (4.75, 1.82, 1.5), 0.12),
        Model("suv", (4.5, 1.87, 1.7), 0.2),
        Model("city_car", (3.5, 1.63, 1.5), 0.12),
    ),
    "MedVeh": (
        Model("van", (5.4, 2.0, 2.4), 0.6),
        Model("minibus", (5.6, 2.02, 2.55), 0.2),
        Model("pickup", (5.3, 1.88, 1.8), 0.2),
    ),
    "LarVeh": (
        Model("lorry", (8.2, 2.5, 3.5), 0.45),
        Model("tipper", (7.6, 2.5, 3.1), 0.2),
        Model("flatbed", (8.4, 2.5, 2.9), 0.15),
        Model("articulated", (14.5, 2.55, 3.9), 0.2),
    ),
    "Bus": (
        Model("single_decker", (11.2, 2.55, 3.05), 0.35),
        Model("double_decker", (10.8, 2.55, 4.35), 0.45),
        Model("coach", (12.2, 2.55, 3.55), 0.2),
    ),
    "EmVeh": (
        Model("ambulance", (6.2, 2.1, 2.75), 0.45),
        Model("police_car", (4.7, 1.82, 1.62), 0.4),
        Model("fire_engine", (8.2, 2.5, 3.3), 0.15),
    ),
    "Mobike": (Model("motorbike", (2.1, 0.78, 1.76), 0.6), Model("scooter", (1.85, 0.7, 1.76), 0.4)),
    "Cyc": (Model("bicycle", (1.75, 0.6, 1.83), 0.9), Model("cargo_bike", (2.45, 0.72, 1.92), 0.1)),
    "debris": (Model("debris", (1.5, 1.2, 0.45)),),
    "tyre": (Model("tyre", (0.68, 0.68, 0.24)),),
    "suitcase": (Model("suitcase", (0.5, 0.28, 0.78)),),
    "fallen_tree": (Model("fallen_tree", (6.5, 2.6, 1.6)),),
    "traffic_cone": (Model("traffic_cone", (0.4, 0.4, 0.75)),),
    "barrier": (Model("barrier", (0.5, 2.0, 1.05)),),
    "dog": (Model("dog", (1.0, 0.3, 0.72)),),
    "stroller": (Model("stroller", (0.95, 0.58, 1.05)),),
    "cart": (Model("cart", (1.05, 0.62, 1.05)),),
    "dustbin": (Model("dustbin", (0.72, 0.58, 1.08)),),
    "plastic_bag": (Model("plastic_bag", (0.42, 0.36, 0.34)),),
}
"""Kind to its models: vehicles, machines with the height of who rides them, and objects that do not belong on
a road."""
ELEMENTS: Mapping[str, tuple[Model, ...]] = {
    "debris": (Model("fire", (0.9, 0.9, 1.3)), Model("flood", (60.0, 16.0, 0.3))),
}
"""Fire and water, which are put where a scene needs them and never drawn by chance."""


def sized(model: Model, look: int) -> Size:
    """Length, width and height in metres of one that looks like this, within 3 % of the model's.

    Args:
        model: of it.
        look: seed of its details.
    """
    length, width, height = np.random.default_rng([look & 0xFFFFFFFF, 1]).uniform(0.97, 1.03, 3).tolist()
    long, wide, high = model.size_m
    return long * length, wide * width, high * height


@lru_cache(maxsize=2048)
def figure_of(kind: str, model: str, size_m: Size, look: int, coarse: bool) -> Figure:
    """The figure of a model with all lamps dark.

    Args:
        kind: a key of `MODELS`.
        model: name of one of its models.
        size_m: length, width and height it fills, but for the room of a rider above it.
        look: seed of its colours and details.
        coarse: whether a few triangles are enough.

    Raises:
        UsageError: no such kind or model.
    """
    if kind not in MODELS:
        raise UsageError(f"no figure of kind {kind!r}; there are {', '.join(MODELS)}")
    if model not in {item.name for item in (*MODELS[kind], *ELEMENTS.get(kind, ()))}:
        names = ", ".join(item.name for item in MODELS[kind])
        raise UsageError(f"no model {model!r} of {kind}; there are {names}")
    rng = np.random.default_rng([look & 0xFFFFFFFF, 2])
    size = machine_size(model, size_m)
    return _built(kind, model, size, rng, coarse).figure(size)


def _built(kind: str, model: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    by_model = _MODELS.get(model)
    if by_model is not None:
        return by_model(size, rng, coarse)
    if kind in MAKERS:
        return thing(kind, size, rng, coarse)
    return _KINDS[kind](model, size, rng, coarse)


_MODELS: Mapping[str, Callable[[Size, np.random.Generator, bool], Form]] = {
    "ambulance": lambda size, rng, coarse: van("ambulance", size, rng, coarse),
    "fire_engine": fire_engine,
    "fire": fire,
    "flood": flood,
    "pickup": pickup,
    "dog": dog,
    "stroller": stroller,
    "cart": cart,
}
_KINDS: Mapping[str, Callable[[str, Size, np.random.Generator, bool], Form]] = {
    "Car": car,
    "EmVeh": car,
    "MedVeh": van,
    "LarVeh": lorry,
    "Bus": bus,
    "Cyc": bicycle,
    "Mobike": motorbike,
}
