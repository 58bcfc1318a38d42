"""Things that do not belong on a road, put on and beside the way of the own vehicle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.scenes.simulator.actors import Actor, Bools, Ego, Floats
from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.figures.models import MODELS
from roadaware.scenes.simulator.layout import Layout, Line, Road
from roadaware.scenes.simulator.town.regions import On, Regions

NEAREST_M, FARTHEST_M = 8.0, 60.0
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


class Room:
    """Where there is room: what everybody else takes up in each frame.

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


def place_objects(
    layout: Layout,
    ego: Ego,
    config: SceneConfig,
    rng: np.random.Generator,
    first_number: int,
    others: Sequence[Actor] = (),
) -> tuple[Actor, ...]:
    """Things that do not belong there; those that lie in the own lane lie beyond where the own vehicle ends.

    Args:
        layout: a town.
        ego: the own vehicle.
        config: says how many; works count once.
        rng: draws everything.
        first_number: of the first of them.
        others: who else is in the scene; nothing is put where one of them is, in any frame.
    """
    path = own_path(layout)
    regions, room = Regions(layout), Room(layout, ego, others)
    names = [name for name, _ in SCENES]
    shares = np.array([share for _, share in SCENES])
    things: list[Thing] = []
    for _ in range(config.behaviour.objects):
        name = names[int(rng.choice(len(names), p=shares / shares.sum()))]
        for _ in range(TRIES):
            found = _arranged(name, path, ego, layout, config, rng)
            if all(room.free(thing) and _on_ground(thing, regions) for thing in found):
                for thing in found:
                    room.take(thing)
                things += found
                break
    return tuple(_actor(thing, regions, first_number + k, config, rng) for k, thing in enumerate(things))


def own_path(layout: Layout) -> Line:
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


def _arranged(
    name: str, path: Line, ego: Ego, layout: Layout, config: SceneConfig, rng: np.random.Generator
) -> list[Thing]:
    """One thing, or a few that belong together, somewhere ahead."""
    n = len(ego.heading)
    along, _ = path.project(ego.position[[0, -1], :2])
    s = float(rng.uniform(along[0] + NEAREST_M, along[1] + FARTHEST_M))
    if name == "dog":
        return [_running_dog(path, ego, layout, config, rng)]
    if name == "works":
        return _works(path, s, n, rng)
    if name == "fallen_tree":
        return [_fallen_tree(path, s, n, layout, rng)]
    if rng.random() < 0.6:
        s = max(s, float(along[1] + rng.uniform(NEAREST_M, FARTHEST_M)))
    left = float(rng.normal(0.0, 1.6))
    if name in ("stroller", "cart", "dustbin"):
        left = float(rng.choice([-1.0, 1.0]) * rng.uniform(1.2, 4.5))
    turn = float(rng.uniform(-np.pi, np.pi))
    track = np.tile(path.beside(s, left), (n, 1))
    lift = np.zeros(n)
    if name == "plastic_bag":
        seconds = np.arange(n) / config.camera.fps
        wind = float(path.heading(s)) + float(rng.choice([-1.0, 1.0]) * rng.uniform(0.9, 2.2))
        gust = float(rng.uniform(0.4, 1.3))
        way = gust * (seconds + 0.4 * np.sin(1.7 * seconds))
        track = track + way[:, None] * np.array([np.cos(wind), np.sin(wind)])
        lift = 0.25 * np.abs(np.sin(1.3 * seconds + turn))
        return [Thing(name, track, turn + 1.4 * seconds, lift)]
    return [Thing(name, track, np.full(n, turn), lift)]


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
    path: Line, ego: Ego, layout: Layout, config: SceneConfig, rng: np.random.Generator
) -> Thing:
    """A dog that runs over the road ahead of the own vehicle, from kerb to kerb."""
    n, fps = len(ego.heading), config.camera.fps
    begin = int(rng.integers(max(1, n // 2)))
    at = float(path.project(ego.position[[begin], :2])[0][0])
    road, along = _road_at(path, at + float(rng.uniform(12.0, 38.0)), layout)
    side = float(rng.choice([-1.0, 1.0]))
    start, end = (k * side * (road.half_width_m + float(rng.uniform(0.4, 1.4))) for k in (1.0, -1.0))
    pace = float(rng.uniform(3.0, 5.0))
    gone = np.clip((np.arange(n) - begin) / fps * pace, 0.0, abs(end - start))
    drift = float(rng.uniform(-0.25, 0.25))
    track = road.line.beside(np.full(n, along) + drift * gone, start - side * gone)
    across = float(road.line.heading(along)) - side * np.pi / 2
    return Thing("dog", track, np.full(n, across + side * drift), np.zeros(n))


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


def _actor(
    thing: Thing, regions: Regions, number: int, config: SceneConfig, rng: np.random.Generator
) -> Actor:
    """A thing as an actor of the whole scene."""
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
