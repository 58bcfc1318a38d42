"""The models of every kind, how each is built and posed frame by frame, and traffic lights on their poles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.simulator.actors import Actor, Light, Signal
from roadaware.simulator.figures.cars import build_car, build_pickup, build_van
from roadaware.simulator.figures.cycles import build_bicycle, build_motorbike
from roadaware.simulator.figures.form import (
    PLASTIC,
    PLATE,
    SHADE,
    STEEL,
    Bulb,
    Colour,
    Figure,
    Form,
    Paint,
    Size,
    box,
    cylinder,
    disc,
    loft,
    patch,
    window,
)
from roadaware.simulator.figures.lorries import build_bus, build_fire_engine, build_lorry
from roadaware.simulator.figures.objects import (
    MAKERS,
    build_cart,
    build_dog,
    build_earth,
    build_fire,
    build_flood,
    build_hailstones,
    build_object,
    build_podium,
    build_stroller,
    build_volcano,
)
from roadaware.simulator.mesh import Material, Mesh, Semantic, Soup, transform_mesh
from roadaware.simulator.people.skeleton import machine_size


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
    "debris": (
        Model("fire", (0.9, 0.9, 1.3)),
        Model("flood", (60.0, 16.0, 0.3)),
        Model("earth", (6.0, 5.0, 1.6)),
        Model("hailstones", (26.0, 14.0, 0.07)),
        Model("volcano", (60.0, 60.0, 26.0)),
        Model("podium", (1.3, 1.3, 0.45)),
    ),
}
"""Fire, water, earth and the like, which are put where a scene needs them and never drawn by chance."""


def sample_model_size(model: Model, look: int) -> Size:
    """Length, width and height in metres of one that looks like this, within 3 % of the model's."""
    length, width, height = np.random.default_rng([look & 0xFFFFFFFF, 1]).uniform(0.97, 1.03, 3).tolist()
    long, wide, high = model.size_m
    return long * length, wide * width, high * height


@lru_cache(maxsize=2048)
def build_model_figure(kind: str, model: str, size_m: Size, look: int, coarse: bool) -> Figure:
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
        return build_object(kind, size, rng, coarse)
    return _KINDS[kind](model, size, rng, coarse)


_MODELS: Mapping[str, Callable[[Size, np.random.Generator, bool], Form]] = {
    "ambulance": lambda size, rng, coarse: build_van("ambulance", size, rng, coarse),
    "fire_engine": build_fire_engine,
    "fire": build_fire,
    "flood": build_flood,
    "earth": build_earth,
    "hailstones": build_hailstones,
    "volcano": build_volcano,
    "podium": build_podium,
    "pickup": build_pickup,
    "dog": build_dog,
    "stroller": build_stroller,
    "cart": build_cart,
}
_KINDS: Mapping[str, Callable[[str, Size, np.random.Generator, bool], Form]] = {
    "Car": build_car,
    "EmVeh": build_car,
    "MedVeh": build_van,
    "LarVeh": build_lorry,
    "Bus": build_bus,
    "Cyc": build_bicycle,
    "Mobike": build_motorbike,
}

# Meshes of vehicles, machines and objects frame by frame.

STEER_MOST = 0.55
"""Radians that front wheels turn at most."""
FLASH_FRAMES = 2
"""Frames that one half of the beacons shines before it is the other's turn."""

_WAYS: WeakKeyDictionary[Actor, tuple[Floats, Floats]] = WeakKeyDictionary()


def build_actor_mesh(actor: Actor, frame: int, coarse: bool = False) -> Mesh:
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
    figure = build_model_figure(actor.kind, actor.model, size, int(actor.look), coarse)
    if not figure.joints:
        return mesh
    way, bend = _compute_travel(actor)
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
    return build_model_figure(kind, model, size, look, coarse).lit(lamps, turn)


def _compute_travel(actor: Actor) -> tuple[Floats, Floats]:
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


# Traffic lights for vehicles and for walkers, on their poles.

LIT: dict[Light, Colour] = {
    Light.RED: (1.0, 0.03, 0.02),
    Light.AMBER: (1.0, 0.42, 0.02),
    Light.GREEN: (0.05, 0.95, 0.35),
}
"""Colours of lit lenses."""


def build_signal_mesh(signal: Signal, frame: int) -> Mesh:
    """A traffic light in a frame; its origin is the middle of its head, from which the pole goes down.

    Args:
        signal: position, state and whether it is for walkers.
        frame: of the scene; beyond its states the last one stays.
    """
    state = Light(int(signal.state[min(frame, len(signal.state) - 1)]))
    height = round(float(signal.position[2]), 2)
    return _build_lit_signal(height, signal.for_walkers, state)


def build_signal_soup(signal: Signal, frame: int, instance: int) -> Soup:
    """A traffic light where it stands; its pole is not part of the instance, as boxes enclose heads only.

    Args:
        signal: position, heading, state and whether it is for walkers.
        frame: of the scene.
        instance: its value in instance masks.
    """
    soup = transform_mesh(build_signal_mesh(signal, frame), signal.position, signal.heading, instance)
    marks = np.where(soup.semantic == Semantic.POLE, 0, soup.instance).astype(np.int32)
    return replace(soup, instance=marks)


@lru_cache(maxsize=256)
def _build_lit_signal(height: float, for_walkers: bool, state: Light) -> Mesh:
    return _head(height, for_walkers).lit(0 if state is Light.BLACK else 1 << state)


@lru_cache(maxsize=64)
def _head(height: float, for_walkers: bool) -> Figure:
    form = Form(Semantic.TRAFFIC_LIGHT)
    lenses = (Light.RED, Light.GREEN) if for_walkers else (Light.RED, Light.AMBER, Light.GREEN)
    pitch = 0.28 if for_walkers else 0.34
    half_wide, half_high = pitch * 0.54, pitch * (len(lenses) / 2 + 0.06)
    form.add(box((-0.2, -half_wide, -half_high), (0.0, half_wide, half_high)), PLASTIC)
    if not for_walkers:
        # The black board behind the head, with a white edge.
        wide = half_wide + 0.14
        high = half_high + 0.14
        form.add(box((-0.12, -wide, -high), (-0.1, wide, high)), SHADE)
        face = [(-0.1, -wide, -high), (-0.1, wide, -high), (-0.1, wide, high), (-0.1, -wide, high)]
        for edge in (window(0.0, 0.05, 0.0, 1.0), window(0.95, 1.0, 0.0, 1.0), window(0.05, 0.95, 0.0, 0.025),
                     window(0.05, 0.95, 0.975, 1.0)):  # fmt: skip
            form.add(patch(face, edge, 0.004), PLATE)
    for place, light in enumerate(lenses):
        z = pitch * ((len(lenses) - 1) / 2 - place)
        red, green, blue = (0.06 * share for share in LIT[light])
        lens = disc((0.012, 0.0, z), pitch * 0.43, (1.0, 0.0, 0.0), 12)
        form.add(lens, Paint((red, green, blue), Material.LAMP), bulb=Bulb(1 << light, LIT[light], 1.5))
        # A hood over the upper half of a lens.
        radius = pitch * 0.485
        rings = []
        for angle in np.radians(np.linspace(-15, 195, 6)).tolist():
            deep = 0.11 if np.sin(angle) > 0 else 0.03
            rings.append([(x, share * radius * np.cos(angle), z + share * radius * np.sin(angle))
                          for x, share in ((0.0, 0.92), (deep, 0.92), (deep, 1.0), (0.0, 1.0))])  # fmt: skip
        form.add(loft(rings), PLASTIC)
    if height > 0.5:
        pole = cylinder((-0.27, 0.0, -height), (-0.27, 0.0, half_high + 0.1), 0.06, 6)
        form.add(pole, STEEL, semantic=Semantic.POLE)
    return form.cast()
