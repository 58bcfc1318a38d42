"""Kerb: people who stand still across the road, and only the way they are turned shows who crosses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.simulator.actors import Actor, Ego, Mind, Pose
from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.episode import Episode
from roadaware.simulator.layout import Layout
from roadaware.simulator.mesh import MOUNT_M
from roadaware.simulator.people import compute_joints, stride_m
from roadaware.simulator.town import make_layout
from roadaware.simulator.town.regions import Regions
from roadaware.simulator.walkers.persons import Person, draw_person

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

    Args:
        config: what is simulated.
        conditions: light and weather.
        name: of the scene.
        seed: of the set.
        rng: draws everything.

    Raises:
        UsageError: if the scene is too short to stand and to step out.
    """

    if config.seconds < LEAST_S:
        raise UsageError(f"people stand for a while before they cross: at least {LEAST_S:g} s")
    layout = make_layout(_build_town_config(config), rng)
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
        crosses = bool(rng.random() < 0.5)
        onlookers = int(rng.binomial(10, 0.85 if crosses else 0.2))
        found.append(replace(drawn, crosses=crosses, onlookers=onlookers))
    return found


def _build_town_config(config: SceneConfig) -> SceneConfig:
    """The configuration of a town with a straight, empty street."""
    where = replace(
        config.surroundings, lanes=2, bends=0.0, junctions=0.0, crossings=0.0, bus_lane=0.0, cycle_lane=0.0,
        parking=0.0,
    )  # fmt: skip
    return replace(config, surroundings=where, behaviour=replace(config.behaviour, ego_speed_kmh=0.0))


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
    """Build the actor of a person over the whole scene.

    Args:
        stand: who, and how they stand.
        kerb: where.
        regions: what lies under places.
        config: of the scene.
        number: of the actor.
    """
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
    return _move_to_centre(replace(bare, gait=gait), middle[0], kerb)


def _move_to_centre(actor: Actor, middle: Floats, kerb: Kerb) -> Actor:
    """Somebody moved along the kerb until the middle of their outline is where it should be.

    An arm held out to one side widens the outline there: without this, where boxes begin would tell the side.
    """
    there = np.array([np.cos(kerb.along), np.sin(kerb.along)])
    reach = (compute_joints(actor, actor.first)[:, :2] - middle) @ there
    off = (reach.min() + reach.max()) / 2 * there
    return replace(actor, position=actor.position - np.append(off, 0.0))


def _way(stand: Stand, n: int, fps: float) -> tuple[int, Floats]:
    """The frame in which somebody sets off, and (n,) how far they have come; nowhere, unless they cross."""
    pace = float(np.clip(stand.person.pace, 1.1, 1.8))
    t = np.arange(n) / fps
    gained = pace / _GAINED_MPS2
    far = np.where(t < gained, 0.5 * _GAINED_MPS2 * t**2, pace * (t - 0.5 * gained))
    begin = n - 1 - int(np.argmax(far > stand.behind_m))
    if not stand.crosses:
        return begin, np.zeros(n)
    return begin, np.concatenate([np.zeros(begin), far[: n - begin]])
