"""Pedestrians of a scene: traits, start and goal of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Actor
from roadaware.simulator.config import Behaviour, SceneConfig
from roadaware.simulator.figures.models import MODELS
from roadaware.simulator.layout import Layout
from roadaware.simulator.people.skeleton import PEOPLE_MODELS, PersonModel
from roadaware.simulator.town.regions import KERB_M
from roadaware.simulator.walkers.ways import (
    Place,
    Ways,
    collect_marked_places,
    find_unmarked_place,
    stop_places,
)

_PACE = {"child": (1.15, 0.2), "young": (1.45, 0.18), "adult": (1.36, 0.16), "senior": (0.88, 0.14)}
"""Mean and spread of walking speeds, m/s."""
_CARE_S = {"child": 1.1, "young": 0.9, "adult": 1.3, "senior": 2.2}
"""Seconds to spare that somebody of middling boldness wants before the next vehicle."""
RUNNING = 0.03
PHONING = 0.12
SLOWEST_M_S, FASTEST_M_S = 0.6, 1.8


@dataclass(frozen=True)
class Person:
    """Constant traits of a person.

    Args:
        model: as `people` names them.
        age: child, young, adult or senior.
        size_m: length, width and height.
        look: seed of clothes.
        pace: they like to walk at, m/s.
        runs: whether they run.
        boldness: 0 waits for long gaps, 1 takes any.
        care_s: time to spare that they want before a vehicle comes.
        trust: times of arrival appear longer to them by this factor.
        delay_s: they must be sure for this long before they step out.
        patience_s: of waiting at a kerb.
        looks: whether they look for traffic before they step out.
        jaywalks: whether they would cross on red.
        quits: whether they give up rather than lower their demands when patience ends.
        phones: whether they hold a phone.
        wants: whether they want to cross.
        pushes: stroller or cart; None for neither.
        dog: whether a dog goes with them.
        guesses: (10,) how ten people who watch err when they guess what somebody wants.
        chance: in [0, 1), settles whether somebody who just passes is asked about.
    """

    model: str
    age: str
    size_m: tuple[float, float, float]
    look: int
    pace: float
    runs: bool = False
    boldness: float = 0.5
    care_s: float = 1.3
    trust: float = 1.0
    delay_s: float = 0.3
    patience_s: float = 20.0
    looks: bool = True
    jaywalks: bool = False
    quits: bool = False
    phones: bool = False
    wants: bool = False
    pushes: str | None = None
    dog: bool = False
    guesses: tuple[float, ...] = field(default=(0.0,) * 10, repr=False)
    chance: float = 0.5


@dataclass(frozen=True)
class Start:
    """A person and its initial state.

    Args:
        person: what they are like.
        band: number of the pavement.
        s: metres along it.
        u: metres from the kerb.
        way: 1 if they walk along the line of the band, -1 against it.
        place: where they cross, or stand; None for those who walk on.
        errand: walk, cross, later (cross when the own vehicle is near), linger (stand at the kerb without
            wanting to cross) or bus.
        rest_s: how long they stand before they set off.
        trigger_m: how near the own vehicle is when those with the errand `later` want to cross.
        leader: place in the list of starts of the one they walk with, -1 for none; leaders come first.
    """

    person: Person
    band: int
    s: float
    u: float
    way: int = 1
    place: Place | None = None
    errand: str = "walk"
    rest_s: float = 0.0
    trigger_m: float = 0.0
    leader: int = -1


def draw_person(
    rng: np.random.Generator, behaviour: Behaviour, wants: bool, ages: tuple[str, ...] = ()
) -> Person:
    """A synthetic person.

    Args:
        rng: draws everything.
        behaviour: of people in general.
        wants: whether they want to cross.
        ages: to choose from; all where empty.
    """
    models = [model for model in PEOPLE_MODELS if not ages or get_model_age(model) in ages]
    weights = np.array([model.weight for model in models])
    model = models[int(rng.choice(len(models), p=weights / weights.sum()))]
    age = get_model_age(model)
    mean, spread = _PACE[age]
    boldness = float(np.clip(rng.normal(behaviour.boldness, 0.18), 0.0, 1.0))
    grown = age in ("young", "adult")
    tall = float(rng.uniform(0.96, 1.04))
    length, width, height = model.size_m
    runs = bool(rng.random() < RUNNING and age != "senior")
    pace = float(np.clip(rng.normal(mean, spread), SLOWEST_M_S, FASTEST_M_S))
    pushes = str(rng.choice(["stroller", "cart"])) if rng.random() < 0.09 and grown and not runs else None
    looks = bool(rng.random() < behaviour.looking)
    return Person(
        model.name, age, (length, width, round(height * tall, 3)), int(rng.integers(2**31)),
        float(rng.uniform(2.3, 3.0)) if runs else pace,
        runs=runs, boldness=boldness, care_s=safety_margin_s(age, boldness), looks=looks,
        trust=float(np.clip(rng.normal(1.0, 0.08 if looks else 0.22), 0.5, 1.6)),
        delay_s=float(rng.uniform(0.15, 0.6)) if looks else float(rng.uniform(0.0, 0.2)),
        # 12 s on average, never 0, and long for a few.
        patience_s=float(rng.gamma(3.0, 4.0)), jaywalks=bool(rng.random() < 0.45 * boldness),
        quits=bool(rng.random() < 0.35),
        phones=bool(rng.random() < PHONING and grown and pushes is None and not runs), wants=wants,
        pushes=pushes, dog=bool(rng.random() < 0.05 and pushes is None and age != "child"),
        guesses=tuple(float(x) for x in rng.normal(0.0, 1.0, 10)), chance=float(rng.random()),
    )  # fmt: skip


def get_model_age(model: PersonModel) -> str:
    """The age group of a model."""
    return next((age for age in ("child", "young", "senior") if model.name.startswith(age)), "adult")


def safety_margin_s(age: str, boldness: float) -> float:
    """Seconds to spare before a vehicle comes that somebody wants.

    Args:
        age: child, young, adult or senior.
        boldness: 0 to 1.
    """
    # From 2.2 times that of middling boldness to 0.45 times, and never negative.
    return _CARE_S[age] * float(np.exp(1.6 * (0.5 - boldness)))


# States: what somebody on foot is up to, and where they are going.

AT_KERB_M = 0.35
"""From the kerb to the middle of somebody who waits."""
PUSHER_M = 1.05
"""By how much farther back those wait who push something, which stays on the pavement."""


class Stage(IntEnum):
    """Activity of a person."""

    STROLL = 0
    REST = 1
    APPROACH = 2
    WAIT = 3
    CROSS = 4
    HOLD = 5
    BACK = 6
    LINGER = 7
    LEAVE = 8


@dataclass(eq=False)
class Walker:
    """A person with its changing state.

    Args:
        person: what they are like.
        start: how they began.
        stage: what they do.
        way: 1 along the line of their band, -1 against it.
        lane_u: where on the pavement they like to walk, metres from the kerb.
        place: where they want to cross or stand; None once that is over.
        errand: as in `Start`.
        target_s: where along the road they wait and cross.
        target_u: where they wait.
        timer_s: until they go on, at rest or when they linger.
        waited_s: at the kerb.
        sure_s: how long the road has been clear to them.
        demand: by how much their wish for time to spare has changed.
        patience_s: that is left in all.
        over: whether the middle of the road lies behind them.
        hurry: whether they run across.
        gave_up: whether they gave up crossing.
        done: whether they have crossed.
        aimed: where they wanted to cross or stood, once they knew.
        gaze: of the head from the heading, radians.
        glance: where the gaze goes.
        glance_s: how long.
        wave_s: how long they go on waving.
        scanning: whether they look out for traffic.
        next_way: 1 or -1, where they go on the other side.
        awake: 0 before the own vehicle comes near, 1 while it is, 2 afterwards.
        across: where they cross to: 1 to the left of the road's line, -1 to the right.
    """

    person: Person
    start: Start
    stage: Stage
    way: int
    lane_u: float
    place: Place | None
    errand: str
    target_s: float = 0.0
    target_u: float = AT_KERB_M
    timer_s: float = 0.0
    waited_s: float = 0.0
    sure_s: float = 0.0
    demand: float = 1.0
    patience_s: float = 0.0
    over: bool = False
    hurry: bool = False
    gave_up: bool = False
    done: bool = False
    aimed: Place | None = None
    gaze: float = 0.0
    glance: float = 0.0
    glance_s: float = 0.0
    wave_s: float = 0.0
    scanning: bool = False
    next_way: int = 1
    awake: int = 0
    across: int = 1


def is_built_out(place: Place) -> bool:
    """Whether the pavement reaches into the road on either side of a place."""
    return place.near_m > 0.0 or place.far_m > 0.0


def set_goal(walker: Walker, place: Place, stray: float) -> None:
    """Give somebody a place to go to.

    Args:
        walker: somebody.
        place: where they will cross, or stand.
        stray: how far from its middle, as a share of its spread, from -1 to 1.
    """
    walker.place = walker.aimed = place
    walker.target_s = place.s + stray * place.spread_m
    walker.target_u = AT_KERB_M - place.near_m
    if walker.person.pushes is not None:
        walker.target_u += PUSHER_M
    if place.kind == "signalled":
        walker.patience_s *= 2.5


# Staging: who is about on the pavements near the way of the own vehicle, where they begin, and why.

WAKE_M = 130.0
"""People farther from the own vehicle than this stand still and are not recorded."""
BEHIND_M = 25.0
SIDE_ROAD_M = 45.0
GROUPS = ((0.74, 1), (0.19, 2), (0.05, 3), (0.02, 4))
WAITING_SHARE = 0.12
"""Of those who do not want to cross, so many stand at the kerb all the same."""
MARKED_SHARE = 0.75
GATHERING = (0.1, 0.3)
"""People more at each side of a crossing, as a share of those per 100 m; the latter where all is about it."""
ZEBRA = 0.6
"""The way to a zebra crossing, where vehicles yield, seems shorter by this factor."""
USUAL = 0.6
"""Average speed of the own vehicle, as a share of what it drives on a free road."""
LATER = 0.55
"""Share of those who want to cross who come to want it while they walk along."""


@dataclass(frozen=True, eq=False)
class Setting:
    """Context for placing persons in a scene.

    Args:
        layout: a town.
        ways: its pavements.
        config: of the scene.
        marked: sides of its marked crossings.
        own_s: where the own vehicle begins, metres along its route.
        reach: from where to where along the route it matters who is about.
    """

    layout: Layout
    ways: Ways
    config: SceneConfig
    marked: tuple[Place, ...]
    own_s: float
    reach: tuple[float, float]

    @property
    def speed(self) -> float:
        """What the own vehicle will drive on average, about, m/s."""
        return max(2.0, USUAL * self.config.behaviour.ego_speed_kmh / 3.6)

    def ahead(self, band: int, s: float) -> float:
        """How far along its route the own vehicle drives until it passes a place on a pavement, metres."""
        return float(self.ways.route.project(self.ways.place(band, s, 0.0)[None])[0][0]) - self.own_s


def build_setting(layout: Layout, ways: Ways, config: SceneConfig, own: Floats) -> Setting:
    """Context for placing persons in a scene.

    Args:
        layout: a town.
        ways: its pavements.
        config: of the scene.
        own: (2,) where the own vehicle begins.
    """
    own_s = float(ways.route.project(own[None])[0][0])
    way = max(2.0, config.behaviour.ego_speed_kmh / 3.6) * config.seconds
    marked = collect_marked_places(layout, ways)
    return Setting(layout, ways, config, marked, own_s, (own_s - BEHIND_M, own_s + way + WAKE_M))


def set_stage(setting: Setting, rng: np.random.Generator) -> list[Start]:
    """Place all persons of a scene."""
    layout, ways, config = setting.layout, setting.ways, setting.config
    starts: list[Start] = []
    for band in range(len(ways.bands)):
        _along(setting, band, starts, rng)
    for band, s in stop_places(layout):
        for _ in range(rng.poisson(0.2 * config.behaviour.pedestrians)):
            _wait_for_bus(setting, band, s, starts, rng)
    return starts


def _along(setting: Setting, band: int, starts: list[Start], rng: np.random.Generator) -> None:
    """People on one pavement beside a road; half of those of a road are on each of its sides."""
    here = setting.ways.bands[band]
    if here.road < 0 or not setting.config.behaviour.pedestrians:
        return
    on_route = any(setting.layout.lanes[number].road == here.road for number in setting.layout.route)
    # The piece of a pavement where it matters who is about
    s = np.arange(1.0, setting.ways.bands[band].length_m - 1.0, 2.0)
    if not len(s):
        span = (0.0, 0.0)
    else:
        points = setting.ways.world(np.full(len(s), band), s, np.zeros(len(s)))
        along, away = setting.ways.route.project(points)
        kept = (along > setting.reach[0]) & (along < setting.reach[1])
        if not on_route:
            kept &= np.abs(away) < SIDE_ROAD_M
        span = (float(s[kept][0]), float(s[kept][-1])) if kept.any() else (0.0, 0.0)
    if span[1] - span[0] < 4.0:
        return
    # `pedestrians` counts per 100 m of road, and each road has two pavements: hence 200 below.
    share = 1.0 if on_route else 0.5
    mean = share * setting.config.behaviour.pedestrians * (span[1] - span[0]) / 200.0
    spans = [(mean, span)]
    if on_route:
        more = GATHERING[setting.config.preset == "crossing"] * setting.config.behaviour.pedestrians
        near = [place.s for place in setting.marked if place.band == band and span[0] < place.s < span[1]]
        spans += [(more, (max(span[0], s - 9.0), min(span[1], s + 9.0))) for s in near]
    for mean, part in spans:
        left = int(rng.poisson(mean))
        while left > 0:
            size = min(left, int(rng.choice([size for _, size in GROUPS], p=[share for share, _ in GROUPS])))
            left -= size
            wants = bool(on_route and rng.random() < setting.config.behaviour.intending)
            _party(setting, band, float(rng.uniform(*part)), wants, size, starts, rng)


def _party(
    setting: Setting,
    band: int,
    s: float,
    wants: bool,
    size: int,
    starts: list[Start],
    rng: np.random.Generator,
) -> None:
    """One person, or several who go together."""
    behaviour = setting.config.behaviour
    place = None
    later = wants and bool(rng.random() < LATER)
    if not later and (wants or rng.random() < WAITING_SHARE):
        place = find_place_near(setting, band, s, 0, rng)
    wants = later or (wants and place is not None)
    ages = () if size == 1 else tuple(rng.permutation(["child", "young", "adult", "senior"])[:2])
    # No child leads a party.
    first = draw_person(rng, behaviour, wants, ("young", "adult", "senior") if size > 1 else ())
    width = setting.ways.bands[band].width_m
    lane = float(rng.uniform(0.45, max(0.5, width - 0.45)))
    way = 1 if rng.random() < 0.5 else -1
    if later:
        lead = Start(first, band, s, lane, way, None, "later", trigger_m=float(rng.uniform(25.0, 75.0)))
    elif place is None:
        lead = Start(first, band, s, lane, way)
    elif wants:
        lead = _errand(setting, place, first, lane, rng)
    else:
        s = min(max(s, place.s - 9.0), place.s + 9.0)
        way = 1 if s < place.s else -1
        lead = Start(first, band, s, lane, way, place, "linger", rest_s=float(rng.uniform(5.0, 25.0)))
    number = len(starts)
    starts.append(lead)
    for k in range(1, size):
        other = draw_person(rng, behaviour, wants, ages)
        # At one pace they stay together without having to catch up all the time.
        other = replace(other, pushes=None, dog=False, runs=first.runs, pace=first.pace)
        step = 0.68 * ((k + 1) // 2) * (1 if k % 2 else -1)
        u = min(max(lead.u + step, 0.3), width - 0.3)
        back = 0.0 if abs(u - lead.u) > 0.5 else 0.8
        starts.append(replace(lead, person=other, s=lead.s - lead.way * back, u=u, leader=number))


def find_place_near(
    setting: Setting, band: int, s: float, way: int, rng: np.random.Generator
) -> Place | None:
    """Where somebody would cross: at a crossing that is near, at a corner, or about where they are.

    Args:
        setting: with the crossings.
        band: number of the pavement, beside a road.
        s: metres along it.
        way: 1 or -1 if they walk that way and will not turn back, else 0.
        rng: draws between them.
    """
    far = 18.0 if way else 35.0
    marked = [place for place in setting.marked if place.band == band and _lies(place.s - s, way, far)]
    # Who wants to cross soon does not like to wait for lights.
    lights = bool(marked) and all(place.kind == "signalled" for place in marked)
    if marked and rng.random() < MARKED_SHARE * (0.5 if lights and way else 1.0):
        return min(marked, key=lambda place: abs(place.s - s) * (ZEBRA if place.kind == "zebra" else 1.0))
    length = setting.ways.bands[band].length_m
    ends = [end for end in (1.6, length - 1.6) if _lies(end - s, way, 14.0)]
    for attempt in range(6):
        stray = way * float(rng.uniform(1.5, 8.0)) if way else float(rng.uniform(-2.0, 2.0)) * attempt
        at = ends[0] if ends and attempt == 0 else s + stray
        found = find_unmarked_place(setting.layout, setting.ways, band, at)
        if found is not None:
            return found
    return marked[0] if marked else None


def _lies(offset: float, way: int, far: float) -> bool:
    """Whether something is near, and ahead where that counts."""
    return 1.0 < way * offset < far if way else abs(offset) < far


def _errand(setting: Setting, place: Place, person: Person, lane: float, rng: np.random.Generator) -> Start:
    """Let somebody who wants to cross come to the kerb some seconds before the own vehicle would pass."""
    length = setting.ways.bands[place.band].length_m
    ahead = setting.ahead(place.band, place.s)
    # People live only from when the own vehicle wakes them, so that their walk begins then.
    woken = max(0.0, (ahead - WAKE_M) / setting.speed)
    # Lights keep people waiting, so they come earlier.
    spare = float(rng.uniform(4.0, 14.0)) + (6.0 if place.kind == "signalled" else 0.0)
    away = max(0.0, person.pace * (ahead / setting.speed - woken - spare))
    rooms = {1: place.s - 0.5, -1: length - place.s - 0.5}
    ways = [way for way in (1, -1) if rooms[way] > min(away, max(rooms.values()) - 0.01)]
    way = int(rng.choice(ways))
    away = min(away, rooms[way])
    lane = AT_KERB_M if away < 1.0 else lane
    return Start(person, place.band, place.s - way * away, lane, way, place, "cross")


def _wait_for_bus(
    setting: Setting, band: int, s: float, starts: list[Start], rng: np.random.Generator
) -> None:
    """Somebody at a bus stop, who watches the road but does not want to cross it."""
    s += float(rng.uniform(-3.0, 3.0))
    if not setting.reach[0] < setting.own_s + setting.ahead(band, s) < setting.reach[1]:
        return
    here = setting.ways.bands[band]
    person = draw_person(rng, setting.config.behaviour, False)
    u = float(rng.uniform(0.5, max(0.6, here.width_m - 0.5)))
    side = Place(band, band, here.road, s, 1.0, "midblock")
    starts.append(Start(person, band, s, u, 1, side, "bus", rest_s=float(rng.uniform(20.0, 200.0))))


# Companions: what people push before them, and dogs at their side.

HANDS = 0.27
"""How far before them people hold what they push, as a share of their height."""
DOG_LEFT_M, DOG_AHEAD_M = -0.55, 0.35


def build_companions(
    person: Person, actor: Actor, part: dict[str, Floats], number: int, fps: float
) -> tuple[list[Actor], int | None]:
    """The actors that go with somebody, and the number of the one they push.

    Args:
        person: what they are like.
        actor: somebody.
        part: what they did; `over` and `inward` are used.
        number: of the first companion.
        fps: frames per second.
    """
    if person.pushes is not None:
        size = MODELS[person.pushes][0].size_m
        ahead = HANDS * actor.size_m[2] + size[0] / 2 - 0.06
        return [_beside(actor, part, person.pushes, ahead, 0.0, number, fps)], number
    if person.dog:
        return [_beside(actor, part, "dog", DOG_AHEAD_M, DOG_LEFT_M, number, fps)], None
    return [], None


def _beside(
    actor: Actor, part: dict[str, Floats], kind: str, ahead: float, left: float, number: int, fps: float
) -> Actor:
    """Something that keeps its place beside somebody."""
    model = MODELS[kind][0]
    n = len(actor.heading)
    c, s = np.cos(actor.heading), np.sin(actor.heading)
    offset = np.stack([ahead * c - left * s, ahead * s + left * c], axis=1)
    position = actor.position.copy()
    position[:, :2] += offset
    inward = np.stack([np.cos(part["inward"]), np.sin(part["inward"])], axis=1)
    over = part["over"] - (offset * inward).sum(1)
    position[:, 2] = KERB_M * np.clip(over / 0.5 + 0.5, 0.0, 1.0)
    step = np.diff(position[:, :2], axis=0, prepend=position[:1, :2])
    speed = (step * np.stack([c, s], axis=1)).sum(1) * fps
    if n > 1:
        speed[0] = speed[1]
    # A dog takes two steps for each of its length and a half.
    gait = np.cumsum(speed / fps) * 2.0 * np.pi / (0.75 * model.size_m[0] * 1.5)
    return Actor(
        number, kind, model.name, model.size_m, actor.look, actor.first, position, actor.heading.copy(),
        speed,
        np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8), gait, np.zeros(n),
        np.full(n, -1, dtype=np.int64),
    )  # fmt: skip
