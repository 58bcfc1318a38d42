"""Things that do not belong on a road, put on and beside the way of the own vehicle before anybody drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from roadaware.arrays import Bools, Floats
from roadaware.simulator.actors import Actor, Ego
from roadaware.simulator.config import SceneConfig
from roadaware.simulator.figures.models import MODELS
from roadaware.simulator.layout import Layout, Line, Road
from roadaware.simulator.town.regions import On, Regions
from roadaware.simulator.walkers.crowd import Dog

NEAREST_M, FARTHEST_M = 15.0, 45.0
"""From the bumper at the start to the first of them, and beyond where the own vehicle may get."""
OWN_LENGTH_M, OWN_WIDTH_M, OWN_AHEAD_M = 4.6, 1.9, 1.35
"""The own vehicle, and how far its middle lies before its rear axle."""
ROOM_M = 0.3
TRIES = 60
SCENES = (
    ("debris", 0.16), ("tyre", 0.12), ("suitcase", 0.1), ("fallen_tree", 0.1), ("works", 0.11),
    ("dog", 0.12), ("stroller", 0.05), ("cart", 0.07), ("dustbin", 0.06), ("plastic_bag", 0.06),
)  # fmt: skip
"""What happens, and how often; works are a barrier with cones."""


@dataclass(frozen=True)
class Thing:
    """Something to be put down.

    Args:
        kind: a key of `OBJECTS`.
        track: (F, 2) where it is in each frame, in metres.
        heading: (F,) where its front points.
        lift: (F,) metres above the ground.
    """

    kind: str
    track: Floats
    heading: Floats
    lift: Floats


@dataclass(frozen=True)
class Strewn:
    """Objects placed before traffic starts.

    Args:
        lying: things that stay where they are, numbered from 0.
        dogs: that will run over the road.
        bags: plastic bags that the wind will blow about.
    """

    lying: tuple[Actor, ...] = ()
    dogs: tuple[Dog, ...] = ()
    bags: int = 0


class Room:
    """Free space: the area that other actors occupy in each frame.

    Args:
        layout: with props.
        ego: the own vehicle.
        others: everybody else.
    """

    def __init__(self, layout: Layout, ego: Ego, others: Sequence[Actor]) -> None:
        n = len(ego.heading)
        turn = np.stack([np.cos(ego.heading), np.sin(ego.heading)], axis=1)
        place = [ego.position[:, :2] + OWN_AHEAD_M * turn]
        heading, frame = [ego.heading], [np.arange(n)]
        size = [np.tile((OWN_LENGTH_M, OWN_WIDTH_M), (n, 1))]
        for actor in others:
            rows = len(actor.heading)
            place.append(actor.position[:, :2])
            heading.append(actor.heading)
            frame.append(np.arange(actor.first, actor.end))
            size.append(np.tile(actor.size_m[:2], (rows, 1)))
        self._place, self._size = np.concatenate(place), np.concatenate(size) / 2
        self._turn, self._frame = np.concatenate(heading), np.concatenate(frame)
        kept = [prop for prop in layout.props if prop.kind != "hedge"]
        self._props = np.array([prop.position for prop in kept]).reshape(-1, 2)
        self._reach = np.array([0.5 * max(prop.size_m[:2]) if prop.kind != "tree" else 0.4 for prop in kept])

    def take(self, thing: Thing) -> None:
        """Count something that was put down among those that take up room."""
        n = len(thing.heading)
        self._place = np.concatenate([self._place, thing.track])
        self._size = np.concatenate([self._size, np.tile(np.array(_size(thing.kind)[:2]) / 2, (n, 1))])
        self._turn = np.concatenate([self._turn, thing.heading])
        self._frame = np.concatenate([self._frame, np.arange(n)])

    def free(self, thing: Thing) -> bool:
        """Whether nobody and nothing is where a thing would be, in any frame."""
        points, radius = _circles(thing)
        still = bool(np.ptp(thing.track, axis=0).max() < 0.1)
        rows = np.zeros(len(self._frame), dtype=np.int64) if still else self._frame
        near = np.hypot(*(self._place - points[rows].mean(1)).T) < self._size[:, 0] + 8.0
        away = points[rows[near]] - self._place[near][:, None]
        c, s = np.cos(self._turn[near])[:, None], np.sin(self._turn[near])[:, None]
        along, across = (
            away[..., 0] * c + away[..., 1] * s,
            away[..., 1] * c - away[..., 0] * s,
        )
        half = self._size[near]
        hit: Bools = (np.abs(along) < half[:, :1] + radius + ROOM_M) & (
            np.abs(across) < half[:, 1:] + radius + ROOM_M
        )
        if hit.any():
            return False
        if not len(self._props):
            return True
        gaps = np.hypot(*(points[0][:, None] - self._props).transpose(2, 0, 1))
        return bool((gaps > self._reach + radius).all())


def add_corner_objects(
    layout: Layout, config: SceneConfig, start_m: float, rng: np.random.Generator
) -> Strewn:
    """Things that do not belong there, along the planned way of the own vehicle; drivers see them.

    Args:
        layout: a town.
        config: says how many; works count once.
        start_m: metres along the own way at which the bumper of the own vehicle starts.
        rng: draws everything.
    """
    path, regions = build_own_path(layout), Regions(layout)
    reach = config.behaviour.ego_speed_kmh / 3.6 * config.seconds
    span = (start_m + NEAREST_M, min(start_m + reach + FARTHEST_M, path.length - 5.0))
    room = Room(layout, _own_start(path, start_m, config.n_frames), ())
    names = [name for name, _ in SCENES]
    shares = np.array([share for _, share in SCENES])
    things: list[Thing] = []
    dogs: list[Dog] = []
    bags = 0
    for _ in range(config.behaviour.objects):
        name = names[int(rng.choice(len(names), p=shares / shares.sum()))]
        bags += name == "plastic_bag"
        if name == "dog":
            found_dogs = (_running_dog(path, start_m, layout, config, rng) for _ in range(TRIES))
            dogs += [dog for dog in found_dogs if _runs_free(dog, things, regions)][:1]
        for _ in range(TRIES if name not in ("dog", "plastic_bag") else 0):
            found = _build_things(name, path, float(rng.uniform(*span)), layout, config.n_frames, rng)
            if all(room.free(thing) and _on_ground(thing, regions) for thing in found):
                for thing in found:
                    room.take(thing)
                things += found
                break
    lying = [build_object_actor(thing, regions, k, config, rng) for k, thing in enumerate(things)]
    return Strewn(tuple(lying), tuple(dogs), bags)


def _own_start(path: Line, start_m: float, n: int) -> Ego:
    """The own vehicle where it starts, as if it stood there."""
    rear = start_m - OWN_LENGTH_M / 2 - OWN_AHEAD_M
    position = np.tile([*path.at(rear).tolist(), 0.0], (n, 1))
    none, whole = np.zeros(n), np.zeros(n, dtype=np.int64)
    return Ego(position, np.full(n, float(path.heading(rear))), none, none, none, whole, whole)


def simulate_blown_bags(
    layout: Layout,
    ego: Ego,
    config: SceneConfig,
    rng: np.random.Generator,
    bags: int,
    others: Sequence[Actor],
) -> tuple[Actor, ...]:
    """Plastic bags in the wind, where they touch nobody: drivers do not mind them; numbered after the others.

    Args:
        layout: a town.
        ego: the own vehicle, in all frames.
        config: of the scene.
        rng: draws everything.
        bags: how many, if there is room.
        others: everybody and everything else.
    """
    path, regions, room = build_own_path(layout), Regions(layout), Room(layout, ego, others)
    along, _ = path.project(ego.position[[0, -1], :2])
    found: list[Actor] = []
    for _ in range(bags):
        for _ in range(TRIES):
            bag = _bag(path, float(rng.uniform(along[0] + 8.0, along[1] + FARTHEST_M)), config, rng)
            if room.free(bag) and _on_ground(bag, regions):
                room.take(bag)
                found.append(build_object_actor(bag, regions, len(others) + len(found), config, rng))
                break
    return tuple(found)


def build_dog_actors(
    layout: Layout, tracks: Sequence[Floats], config: SceneConfig, rng: np.random.Generator, first_number: int
) -> tuple[Actor, ...]:
    """The dogs that ran over the road.

    Args:
        layout: a town.
        tracks: (F, 3) x, y and heading of each.
        config: of the scene.
        rng: draws their looks.
        first_number: of the first of them.
    """
    regions = Regions(layout)
    things = [Thing("dog", t[:, :2], t[:, 2], np.zeros(len(t))) for t in tracks]
    return tuple(build_object_actor(t, regions, first_number + k, config, rng) for k, t in enumerate(things))


def renumber_actors(actors: Sequence[Actor], first_number: int) -> tuple[Actor, ...]:
    """The same, numbered from another number on."""
    return tuple(replace(actor, number=first_number + k) for k, actor in enumerate(actors))


def build_own_path(layout: Layout) -> Line:
    """The way of the own vehicle, lane by lane and through junctions.

    Args:
        layout: with a route.
    """
    pieces: list[Floats] = []
    ways = {(way.start, way.end): way.line for junction in layout.junctions for way in junction.connectors}
    for place, number in enumerate(layout.route):
        before = (layout.route[place - 1], number)
        if place and before in ways:
            pieces.append(ways[before].points)
        pieces.append(layout.lanes[number].line.points)
    points = np.concatenate(pieces)
    apart = np.hypot(*np.diff(points, axis=0).T) > 1e-3
    return Line(points[np.concatenate([[True], apart])])


def _build_things(
    name: str, path: Line, s: float, layout: Layout, n: int, rng: np.random.Generator
) -> list[Thing]:
    """One thing, or a few that belong together, at a length of the own way."""
    if name == "works":
        return _works(path, s, n, rng)
    if name == "fallen_tree":
        return [_fallen_tree(path, s, n, layout, rng)]
    left = float(rng.normal(0.0, 1.6))
    if name in ("stroller", "cart", "dustbin"):
        left = float(rng.choice([-1.0, 1.0]) * rng.uniform(1.2, 4.5))
    turn = float(rng.uniform(-np.pi, np.pi))
    return [Thing(name, np.tile(path.beside(s, left), (n, 1)), np.full(n, turn), np.zeros(n))]


def _bag(path: Line, s: float, config: SceneConfig, rng: np.random.Generator) -> Thing:
    """A plastic bag that the wind rolls and lifts over the road."""
    turn = float(rng.uniform(-np.pi, np.pi))
    seconds = np.arange(config.n_frames) / config.camera.fps
    wind = float(path.heading(s)) + float(rng.choice([-1.0, 1.0]) * rng.uniform(0.9, 2.2))
    gust = float(rng.uniform(0.4, 1.3))
    way = gust * (seconds + 0.4 * np.sin(1.7 * seconds))
    start = path.beside(s, float(rng.normal(0.0, 1.6)))
    track = start + way[:, None] * np.array([np.cos(wind), np.sin(wind)])
    lift = 0.25 * np.abs(np.sin(1.3 * seconds + turn))
    return Thing("plastic_bag", track, turn + 1.4 * seconds, lift)


def _still(kind: str, path: Line, s: float, left: float, turn: float, n: int) -> Thing:
    """Something that stands, turned against the path."""
    heading = float(path.heading(s)) + turn
    return Thing(kind, np.tile(path.beside(s, left), (n, 1)), np.full(n, heading), np.zeros(n))


def _works(path: Line, s: float, n: int, rng: np.random.Generator) -> list[Thing]:
    """A barrier across a part of the road, and cones that lead round it."""
    side = float(rng.choice([-1.0, 1.0]))
    left = side * float(rng.uniform(0.8, 3.2))
    found = [_still("barrier", path, s, left, 0.0, n)]
    if rng.random() < 0.5:
        found.append(_still("barrier", path, s + float(rng.uniform(5.0, 9.0)), left, np.pi, n))
    inner = left - side * 1.3
    for k in range(int(rng.integers(3, 7))):
        wobble = float(rng.normal(0.0, 0.08))
        found.append(
            _still("traffic_cone", path, s - 2.5 + 1.8 * k, inner + wobble, float(rng.uniform(0, 6)), n)
        )
    return found


def _road_at(path: Line, s: float, layout: Layout) -> tuple[Road, float]:
    """The road that is nearest to a place of the path, and how far along it that lies in metres."""
    middle = path.at(s)[None]
    found = [(road, *road.line.project(middle)) for road in layout.roads]
    road, along, _ = min(found, key=lambda item: abs(float(item[2][0])))
    return road, float(along[0])


def _fallen_tree(path: Line, s: float, n: int, layout: Layout, rng: np.random.Generator) -> Thing:
    """A tree that lies from one side across half of the road."""
    road, along = _road_at(path, s, layout)
    side = float(rng.choice([-1.0, 1.0]))
    length = _size("fallen_tree")[0]
    left = side * (road.half_width_m - length / 2 + float(rng.uniform(0.3, 1.2)))
    turn = float(road.line.heading(along)) - side * np.pi / 2 + float(rng.normal(0.0, 0.2))
    return Thing("fallen_tree", np.tile(road.line.beside(along, left), (n, 1)), np.full(n, turn), np.zeros(n))


def _running_dog(
    path: Line, start_m: float, layout: Layout, config: SceneConfig, rng: np.random.Generator
) -> Dog:
    """A dog that wants to run over the road ahead of the own vehicle, from kerb to kerb."""
    begin = float(rng.uniform(0.0, 0.5 * config.seconds))
    usual = config.behaviour.ego_speed_kmh / 3.6
    at = start_m + 0.6 * usual * begin + float(rng.uniform(12.0, 34.0))
    road, along = _road_at(path, min(at, path.length - 5.0), layout)
    side = float(rng.choice([-1.0, 1.0]))
    near, far = (road.half_width_m + float(rng.uniform(0.4, 1.4)) for _ in range(2))
    pace, drift = float(rng.uniform(3.0, 5.0)), float(rng.uniform(-0.25, 0.25))
    return Dog(road.line, along, side, near, far, road.half_width_m, begin, pace, drift)


def _runs_free(dog: Dog, things: Sequence[Thing], regions: Regions) -> bool:
    """Whether nothing lies in the way of a dog, and nobody parks there."""
    way = np.stack([dog.at(gone) for gone in np.arange(0.0, dog.near_m + dog.far_m, 0.5)])
    if (regions.at(way).on == On.PARKING).any():
        return False
    return all(
        bool((np.hypot(*(way - thing.track[0]).T) > max(_size(thing.kind)[:2]) / 2 + 0.7).all())
        for thing in things
    )


def _circles(thing: Thing) -> tuple[Floats, float]:
    """(F, k, 2) circles that cover a thing from above, and their radius."""
    length, width = _size(thing.kind)[:2]
    if length < width:
        axis, spread = thing.heading + np.pi / 2, width - length
    else:
        axis, spread = thing.heading, length - width
    k = 1 + int(np.ceil(spread / max(min(length, width), 0.3)))
    offsets = np.linspace(-spread / 2, spread / 2, k) if k > 1 else np.zeros(1)
    way = np.stack([np.cos(axis), np.sin(axis)], axis=1)
    return thing.track[:, None] + offsets[None, :, None] * way[:, None], 0.5 * float(
        min(length, width)
    ) + 0.05


def _on_ground(thing: Thing, regions: Regions) -> bool:
    on = regions.at(thing.track[[0, len(thing.track) // 2, -1]]).on
    return bool((on != On.OFF).all())


def _size(kind: str) -> tuple[float, float, float]:
    return MODELS[kind][0].size_m


def build_object_actor(
    thing: Thing, regions: Regions, number: int, config: SceneConfig, rng: np.random.Generator
) -> Actor:
    """A thing as an actor of the whole scene.

    Args:
        thing: with its track.
        regions: the ground.
        number: of the actor.
        config: of the scene.
        rng: draws its looks.
    """
    n, fps = len(thing.heading), config.camera.fps
    where = regions.at(thing.track)
    position = np.concatenate([thing.track, (where.height_m + thing.lift)[:, None]], axis=1)
    step = np.diff(thing.track, axis=0, prepend=thing.track[:1])
    facing = np.stack([np.cos(thing.heading), np.sin(thing.heading)], axis=1)
    way = (step * facing).sum(1)
    model = MODELS[thing.kind][0]
    stride = 1.1 * model.size_m[0]
    heading = (thing.heading + np.pi) % (2 * np.pi) - np.pi
    return Actor(
        number, thing.kind, model.name, model.size_m, int(rng.integers(2**31)), 0, position, heading,
        way * fps,
        np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8), np.cumsum(way) * 2.0 * np.pi / stride,
        np.zeros(n), where.lane,
    )  # fmt: skip
