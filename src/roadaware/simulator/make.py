"""From a configuration and a seed to an episode: the town, those who live in it, and what is heard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from roadaware.arrays import Bools, Floats
from roadaware.errors import UsageError
from roadaware.simulator.actors import VEHICLES, Actor, Ego, Mind, Pose
from roadaware.simulator.chaos import make_chaos
from roadaware.simulator.config import Conditions, SceneConfig, TimeOfDay, Weather
from roadaware.simulator.episode import Episode, draw_config, draw_look
from roadaware.simulator.figures.models import MODELS
from roadaware.simulator.layout import Layout, Line, Road
from roadaware.simulator.mesh import MOUNT_M
from roadaware.simulator.people import compute_joints, stride_m
from roadaware.simulator.sound import collect_street_noises
from roadaware.simulator.town import make_layout
from roadaware.simulator.town.regions import On, Regions
from roadaware.simulator.traffic.loop import compute_start_position, simulate
from roadaware.simulator.walkers import Walkers
from roadaware.simulator.walkers.crowd import Dog, Strays
from roadaware.simulator.walkers.persons import Person, draw_person

# Things that do not belong on a road, put on and beside the way of the own vehicle before anybody drives.


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
        # (F, k, 2) circles that cover a thing from above, and their radius.
        length, width = _size(thing.kind)[:2]
        if length < width:
            axis, spread = thing.heading + np.pi / 2, width - length
        else:
            axis, spread = thing.heading, length - width
        # As many circles of the short side as cover the long one without gaps.
        k = 1 + int(np.ceil(spread / max(min(length, width), 0.3)))
        offsets = np.linspace(-spread / 2, spread / 2, k) if k > 1 else np.zeros(1)
        way = np.stack([np.cos(axis), np.sin(axis)], axis=1)
        points = thing.track[:, None] + offsets[None, :, None] * way[:, None]
        radius = 0.5 * float(min(length, width)) + 0.05
        # What stands still is in everybody's way at any time: its first frame is held against all of theirs.
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
    # The own vehicle where it starts, as if it stood there.
    n = config.n_frames
    rear = start_m - OWN_LENGTH_M / 2 - OWN_AHEAD_M
    position = np.tile([*path.at(rear).tolist(), 0.0], (n, 1))
    none, whole = np.zeros(n), np.zeros(n, dtype=np.int64)
    room = Room(
        layout, Ego(position, np.full(n, float(path.heading(rear))), none, none, none, whole, whole), ()
    )
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
    # Numbered for themselves; they get their numbers in the scene when it is known how many others there are.
    lying = [build_object_actor(thing, regions, k, config, rng) for k, thing in enumerate(things)]
    return Strewn(tuple(lying), tuple(dogs), bags)


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
            # A plastic bag that the wind rolls and lifts over the road.
            s = float(rng.uniform(along[0] + 8.0, along[1] + FARTHEST_M))
            turn = float(rng.uniform(-np.pi, np.pi))
            seconds = np.arange(config.n_frames) / config.camera.fps
            wind = float(path.heading(s)) + float(rng.choice([-1.0, 1.0]) * rng.uniform(0.9, 2.2))
            gust = float(rng.uniform(0.4, 1.3))
            way = gust * (seconds + 0.4 * np.sin(1.7 * seconds))
            start = path.beside(s, float(rng.normal(0.0, 1.6)))
            track = start + way[:, None] * np.array([np.cos(wind), np.sin(wind)])
            lift = 0.25 * np.abs(np.sin(1.3 * seconds + turn))
            bag = Thing("plastic_bag", track, turn + 1.4 * seconds, lift)
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
    # Lanes and ways share their ends; a step of no length has no direction.
    apart = np.hypot(*np.diff(points, axis=0).T) > 1e-3
    return Line(points[np.concatenate([[True], apart])])


def _build_things(
    name: str, path: Line, s: float, layout: Layout, n: int, rng: np.random.Generator
) -> list[Thing]:
    """One thing, or a few that belong together, at a length of the own way."""
    if name == "works":
        # A barrier across a part of the road, and cones that lead round it
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
    if name == "fallen_tree":
        # A tree that lies from one side across half of the road
        road, along = _road_at(path, s, layout)
        side = float(rng.choice([-1.0, 1.0]))
        length = _size("fallen_tree")[0]
        left = side * (road.half_width_m - length / 2 + float(rng.uniform(0.3, 1.2)))
        turn = float(road.line.heading(along)) - side * np.pi / 2 + float(rng.normal(0.0, 0.2))
        return [
            Thing(
                "fallen_tree", np.tile(road.line.beside(along, left), (n, 1)), np.full(n, turn), np.zeros(n)
            )
        ]
    left = float(rng.normal(0.0, 1.6))
    if name in ("stroller", "cart", "dustbin"):
        left = float(rng.choice([-1.0, 1.0]) * rng.uniform(1.2, 4.5))
    turn = float(rng.uniform(-np.pi, np.pi))
    return [Thing(name, np.tile(path.beside(s, left), (n, 1)), np.full(n, turn), np.zeros(n))]


def _still(kind: str, path: Line, s: float, left: float, turn: float, n: int) -> Thing:
    """Something that stands, turned against the path."""
    heading = float(path.heading(s)) + turn
    return Thing(kind, np.tile(path.beside(s, left), (n, 1)), np.full(n, heading), np.zeros(n))


def _road_at(path: Line, s: float, layout: Layout) -> tuple[Road, float]:
    """The road that is nearest to a place of the path, and how far along it that lies in metres."""
    middle = path.at(s)[None]
    found = [(road, *road.line.project(middle)) for road in layout.roads]
    road, along, _ = min(found, key=lambda item: abs(float(item[2][0])))
    return road, float(along[0])


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


def _on_ground(thing: Thing, regions: Regions) -> bool:
    on = regions.at(thing.track[[0, len(thing.track) // 2, -1]]).on
    return bool((on != On.OFF).all())


def _size(kind: str) -> tuple[float, float, float]:
    return MODELS[kind][0].size_m


def build_object_actor(
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


# Kerb: people who stand still across the road, and only the way they are turned shows who crosses.


AWAY_M = 10.0
"""From the camera to the kerb on the other side, about."""
APART_M = 0.9
"""Nobody stands nearer to anybody else, along the kerb."""
TURN = np.radians(35.0)
"""Everybody is turned by at most so much from the straight way over the road, or from its opposite."""
WAVING = 0.7
"""Share of people who raise their right hand, to the driver or to somebody behind them."""
LEAST_S = 2.0
_GAINED_MPS2 = 4.0
_TURNED_RAD_S = 3.0
_MIDFOOT = 0.0262
"""From below the hips to the middle of the soles, as a share of the height."""
_BEHIND_M = 60.0


@dataclass(frozen=True, eq=False)
class Kerb:
    """The kerb on the other side of a straight road, seen from the own vehicle.

    Args:
        origin: (2,) the place on the kerb that the camera looks at.
        along: direction of the kerb, radians.
        over: direction over the road, radians.
    """

    origin: Floats
    along: float
    over: float

    def world(self, along_m: Floats, behind_m: Floats) -> Floats:
        """(n, 2) places along the kerb and behind it, seen from the road.

        Args:
            along_m: (n,) from the origin.
            behind_m: (n,) from the kerb; negative on the road.
        """
        there = np.array([np.cos(self.along), np.sin(self.along)])
        back = -np.array([np.cos(self.over), np.sin(self.over)])
        found: Floats = self.origin + np.outer(along_m, there) + np.outer(behind_m, back)
        return found


@dataclass(frozen=True)
class Stand:
    """A person at the kerb; nothing but `crosses` and the way they are turned depends on whether they cross.

    Args:
        person: what they are like.
        along_m: where along the kerb.
        behind_m: how far behind it.
        turned: how far they are turned from the way over the road, or from its opposite, radians.
        waves: whether they raise their right hand.
        gaze: of the head, radians.
        phase: of their pose, radians; they hold it until they set off.
        crosses: whether they do.
        onlookers: of ten, how many would say that they want to.
    """

    person: Person
    along_m: float
    behind_m: float
    turned: float
    waves: bool
    gaze: float
    phase: float
    crosses: bool
    onlookers: int


def make_kerb(
    config: SceneConfig, conditions: Conditions, name: str, seed: int, rng: np.random.Generator
) -> Episode:
    """People at a kerb; until a second before the end nothing of their boxes tells who will cross.

    The own vehicle stands across a road with two lanes each way and looks at the pavement on its other side.
    A coin decides for each of `behaviour.crowd` people whether they cross. Those who do face the road, the
    others the houses; place, stature, clothes, angle and gesture are drawn before. A body that is turned by
    half a turn about the middle of its soles has the mirror image of its outline, and what is placed is the
    middle of that. Whoever crosses steps on the road in the last frame, where protocols put the event of all
    others: else the tremor of the camera, which depends on the frame alone, would tell when a sample was cut,
    and so whose it is.

    Raises:
        UsageError: if the scene is too short to stand and to step out.
    """
    if config.seconds < LEAST_S:
        raise UsageError(f"people stand for a while before they cross: at least {LEAST_S:g} s")
    # The configuration of a town with a straight, empty street.
    where = replace(
        config.surroundings, lanes=2, bends=0.0, junctions=0.0, crossings=0.0, bus_lane=0.0, cycle_lane=0.0,
        parking=0.0,
    )  # fmt: skip
    layout = make_layout(
        replace(config, surroundings=where, behaviour=replace(config.behaviour, ego_speed_kmh=0.0)), rng
    )
    kerb, ego = select_kerb_place(layout, config, rng)
    stands, regions = draw_stands(config, rng), Regions(layout)
    people = tuple(
        build_kerb_actor(each, kerb, regions, config, number) for number, each in enumerate(stands)
    )
    return Episode(name, seed, config, conditions, layout, ego, people)


def draw_stands(config: SceneConfig, rng: np.random.Generator) -> list[Stand]:
    """Sample the positions of persons at the kerb; as many as find room.

    Args:
        config: of the scene.
        rng: draws everything; who crosses after all that boxes may show.
    """
    reach = float(np.tan(np.radians(config.camera.fov_deg / 2)) * (AWAY_M - 0.4)) - 0.5
    n = min(config.behaviour.crowd, 1 + int(2 * reach / APART_M))
    free = 2 * reach - (n - 1) * APART_M
    along = np.sort(rng.uniform(0.0, free, n)) + APART_M * np.arange(n) - reach
    found = []
    for place in along.tolist():
        person = draw_person(rng, config.behaviour, False)
        drawn = Stand(
            replace(person, pushes=None, dog=False),
            place,
            float(rng.triangular(0.3, 0.55, 0.8)),
            float(rng.uniform(-TURN, TURN)),
            bool(rng.random() < WAVING),
            float(rng.uniform(-0.35, 0.35)),
            float(rng.uniform(0.0, 2.0 * np.pi)),
            False,
            0,
        )
        # After all else is drawn: nothing that shows in a box may depend on the coin.
        crosses = bool(rng.random() < 0.5)
        onlookers = int(rng.binomial(10, 0.85 if crosses else 0.2))
        found.append(replace(drawn, crosses=crosses, onlookers=onlookers))
    return found


def select_kerb_place(layout: Layout, config: SceneConfig, rng: np.random.Generator) -> tuple[Kerb, Ego]:
    """The kerb, where fewest things stand in the way, and the own vehicle across the road.

    Args:
        layout: a town with a straight street.
        config: of the scene.
        rng: draws everything.
    """
    lane = layout.lanes[layout.route[0]]
    road = layout.roads[lane.road]
    places = rng.uniform(_BEHIND_M - 25.0, _BEHIND_M + 25.0, 16)
    side = -lane.side
    posts = [prop.position for prop in layout.props if prop.kind not in ("building", "hedge", "fence")]
    s, left = road.line.project(np.array(posts).reshape(-1, 2)) if posts else (np.zeros(0), np.zeros(0))
    near = side * left > road.half_width_m - 1.0
    taken = [int((near & (np.abs(s - place) < 5.0)).sum()) for place in places]
    at = float(places[int(np.argmin(taken))])
    along = float(road.line.heading(at))
    over = along - side * np.pi / 2
    kerb = Kerb(road.line.beside(at, side * road.half_width_m), along, over)
    back = AWAY_M + MOUNT_M + float(rng.uniform(-0.4, 0.4))
    place = kerb.world(np.array([rng.uniform(-0.3, 0.3)]), np.array([-back]))
    n = config.n_frames
    zero = np.zeros(n)
    ego = Ego(
        np.tile(np.append(place, 0.0), (n, 1)), np.full(n, over + np.pi), zero, zero, zero,
        np.zeros(n, dtype=np.int64), np.full(n, lane.number, dtype=np.int64),
    )  # fmt: skip
    return kerb, ego


def build_kerb_actor(stand: Stand, kerb: Kerb, regions: Regions, config: SceneConfig, number: int) -> Actor:
    """Build the actor of a person over the whole scene."""
    n, fps, person = config.n_frames, config.camera.fps, stand.person
    begin, way = _way(stand, n, fps)
    after = np.maximum(np.arange(n) - begin, 0) / fps if stand.crosses else np.zeros(n)
    # Whoever sets off turns to the way over the road.
    turned = np.sign(stand.turned) * np.maximum(abs(stand.turned) - _TURNED_RAD_S * after, 0.0)
    heading = kerb.over + turned + (0.0 if stand.crosses else np.pi)
    middle = kerb.world(np.full(n, stand.along_m), stand.behind_m - way)
    toes = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    place = middle - _MIDFOOT * person.size_m[2] * toes
    where = regions.at(place)
    speed = np.diff(way, prepend=way[:1]) * fps
    still = Pose.WAVE if stand.waves else Pose.STAND
    pose = np.where(speed > 0.0, int(Pose.WALK), int(still)).astype(np.uint8)
    on_road = way > stand.behind_m
    stepped = int(np.argmax(on_road)) if on_road.any() else None
    mind = Mind(
        stand.onlookers / 10, stand.crosses, 0, begin if stand.crosses else n - 1, stand.crosses, stepped,
        person.age, "no signal",
    )  # fmt: skip
    bare = Actor(
        number, "Ped", person.model, person.size_m, person.look, 0,
        np.column_stack([place, where.height_m]), (heading + np.pi) % (2 * np.pi) - np.pi, speed,
        np.zeros(n, dtype=np.uint8), pose, np.zeros(n), np.full(n, stand.gaze), where.lane,
        facts={"crossing": on_road.astype(np.int8)}, mind=mind,
    )  # fmt: skip
    # A hand that swung would move one side of the box, and tell on which side it is.
    gait = stand.phase + np.cumsum(speed / fps * 2.0 * np.pi / stride_m(bare))
    # Somebody moved along the kerb until the middle of their outline is where it should be.
    # An arm held out to one side widens the outline there: without this, where boxes begin would tell the
    # side.
    actor = replace(bare, gait=gait)
    there = np.array([np.cos(kerb.along), np.sin(kerb.along)])
    reach = (compute_joints(actor, actor.first)[:, :2] - middle[0]) @ there
    off = (reach.min() + reach.max()) / 2 * there
    return replace(actor, position=actor.position - np.append(off, 0.0))


def _way(stand: Stand, n: int, fps: float) -> tuple[int, Floats]:
    """The frame in which somebody sets off, and (n,) how far they have come; nowhere, unless they cross."""
    # At 1.1 m/s, and 0.8 m from the kerb at most, nobody sets off more than about 0.9 s before the end.
    pace = float(np.clip(stand.person.pace, 1.1, 1.8))
    t = np.arange(n) / fps
    gained = pace / _GAINED_MPS2
    far = np.where(t < gained, 0.5 * _GAINED_MPS2 * t**2, pace * (t - 0.5 * gained))
    begin = n - 1 - int(np.argmax(far > stand.behind_m))
    if not stand.crosses:
        return begin, np.zeros(n)
    return begin, np.concatenate([np.zeros(begin), far[: n - begin]])


_LOOKS = 6
_TIMES: tuple[tuple[TimeOfDay, float], ...] = (("day", 0.68), ("dusk", 0.14), ("night", 0.18))
_WEATHERS: tuple[tuple[Weather, float], ...] = (
    ("clear", 0.38),
    ("overcast", 0.3),
    ("rain", 0.14),
    ("snow", 0.06),
    ("low-sun", 0.12),
)


def make_episode(config: SceneConfig, seed: int, number: int) -> Episode:
    """One scene of a set; the same arguments make the same scene.

    Args:
        config: what is simulated.
        seed: of the set, at least 0.
        number: of the scene in the set, from 0.

    Raises:
        UsageError: if seed or number is negative.
    """
    if seed < 0 or number < 0:
        raise UsageError(f"seed and number of a scene are at least 0, not {seed} and {number}")
    # One for each part of a scene: a change to one part leaves what the others draw as it was.
    streams = np.random.default_rng([seed, number]).spawn(5)
    conditions = config.conditions or sample_conditions(streams[0])
    name = format_scene_name(config, number)
    if config.preset == "chaos":
        return make_chaos(config, conditions, name, seed, streams[1])
    if config.preset == "kerb":
        return make_kerb(config, conditions, name, seed, streams[1])
    if config.looks is None:
        return _street(config, conditions, name, seed, streams[1:])
    # A stream of its own: with looks or without, the rest of a scene is drawn from the same numbers.
    own = np.random.default_rng([seed, number, _LOOKS])
    look = draw_look(config.looks, own)
    # Its own seed, too: sun, drops and tremor of the scenes of a set would be the same.
    episode = _street(draw_config(config, own), conditions, name, look.seed, streams[1:])
    return replace(_awake(episode) if config.looks.parked else episode, look=look)


def _awake(episode: Episode) -> Episode:
    """The episode with parked vehicles that count; what is heard stays, since their engines are off."""
    actors = tuple(replace(each, active=True) if each.kind in VEHICLES else each for each in episode.actors)
    return replace(episode, actors=actors)


def format_scene_name(config: SceneConfig, number: int) -> str:
    """Name of a scene: its preset and its number."""
    return f"{config.preset}-{number:04d}"


def sample_conditions(rng: np.random.Generator) -> Conditions:
    """Light and weather as often as they are met; the sun is low at dusk or by day, not at night."""
    time = _TIMES[int(rng.choice(len(_TIMES), p=[share for _, share in _TIMES]))][0]
    weather = _WEATHERS[int(rng.choice(len(_WEATHERS), p=[share for _, share in _WEATHERS]))][0]
    # Drawn first and replaced then, so that night keeps its share.
    return Conditions(time, "clear" if time == "night" and weather == "low-sun" else weather)


def _street(
    config: SceneConfig,
    conditions: Conditions,
    name: str,
    seed: int,
    streams: list[np.random.Generator],
) -> Episode:
    layout = make_layout(config, streams[0])
    corner = config.preset == "corner-cases"
    strewn = (
        add_corner_objects(layout, config, compute_start_position(layout), streams[3]) if corner else Strewn()
    )
    walkers = Walkers(layout, config, streams[1], config.n_frames, config.camera.fps, None, strewn.lying)
    strays = Strays(walkers, strewn.dogs, config.camera.fps)
    lived = simulate(layout, config, conditions, streams[2], strays, strewn.lying)
    actors: tuple[Actor, ...] = (*lived.vehicles, *walkers.actors(len(lived.vehicles)))
    if corner:
        actors = (*actors, *renumber_actors(strewn.lying, len(actors)))
        actors = (*actors, *build_dog_actors(layout, strays.tracks(), config, streams[3], len(actors)))
        actors = (*actors, *simulate_blown_bags(layout, lived.ego, config, streams[3], strewn.bags, actors))
    episode = Episode(name, seed, config, conditions, layout, lived.ego, actors, lived.signals)
    return replace(episode, noises=collect_street_noises(episode))
