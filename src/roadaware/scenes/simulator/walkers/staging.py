"""Staging: who is about on the pavements near the way of the own vehicle, where they begin, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.layout import Layout
from roadaware.scenes.simulator.walkers.persons import Person, Start, draw_person
from roadaware.scenes.simulator.walkers.places import Place, marked_places, place_at, stop_places
from roadaware.scenes.simulator.walkers.states import AT_KERB_M
from roadaware.scenes.simulator.walkers.ways import Ways

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
    """What staging needs to know.

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


def setting_of(layout: Layout, ways: Ways, config: SceneConfig, own: Floats) -> Setting:
    """What staging needs to know.

    Args:
        layout: a town.
        ways: its pavements.
        config: of the scene.
        own: (2,) where the own vehicle begins.
    """
    own_s = float(ways.route.project(own[None])[0][0])
    way = max(2.0, config.behaviour.ego_speed_kmh / 3.6) * config.seconds
    marked = marked_places(layout, ways)
    return Setting(layout, ways, config, marked, own_s, (own_s - BEHIND_M, own_s + way + WAKE_M))


def set_stage(setting: Setting, rng: np.random.Generator) -> list[Start]:
    """Everybody who is about.

    Args:
        setting: what staging needs to know.
        rng: draws everything.
    """
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
    span = _span(setting, band, on_route)
    if span[1] - span[0] < 4.0:
        return
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
            size = min(left, _size(rng))
            left -= size
            wants = bool(on_route and rng.random() < setting.config.behaviour.intending)
            _party(setting, band, float(rng.uniform(*part)), wants, size, starts, rng)


def _span(setting: Setting, band: int, on_route: bool) -> tuple[float, float]:
    """The piece of a pavement where it matters who is about."""
    s = np.arange(1.0, setting.ways.bands[band].length_m - 1.0, 2.0)
    if not len(s):
        return 0.0, 0.0
    points = setting.ways.world(np.full(len(s), band), s, np.zeros(len(s)))
    along, away = setting.ways.route.project(points)
    kept = (along > setting.reach[0]) & (along < setting.reach[1])
    if not on_route:
        kept &= np.abs(away) < SIDE_ROAD_M
    return (float(s[kept][0]), float(s[kept][-1])) if kept.any() else (0.0, 0.0)


def _size(rng: np.random.Generator) -> int:
    return int(rng.choice([size for _, size in GROUPS], p=[share for share, _ in GROUPS]))


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
        place = place_near(setting, band, s, 0, rng)
    wants = later or (wants and place is not None)
    ages = () if size == 1 else tuple(rng.permutation(["child", "young", "adult", "senior"])[:2])
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
        other = replace(other, pushes=None, dog=False, runs=first.runs, pace=first.pace)
        step = 0.68 * ((k + 1) // 2) * (1 if k % 2 else -1)
        u = min(max(lead.u + step, 0.3), width - 0.3)
        back = 0.0 if abs(u - lead.u) > 0.5 else 0.8
        starts.append(replace(lead, person=other, s=lead.s - lead.way * back, u=u, leader=number))


def place_near(setting: Setting, band: int, s: float, way: int, rng: np.random.Generator) -> Place | None:
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
        found = place_at(setting.layout, setting.ways, band, at)
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
