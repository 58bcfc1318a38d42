"""`make_chaos`: what happens in each category, who plays which scene when, and a street with its crowd out of a
configuration and a random generator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos import conflicts, emergencies
from roadaware.simulator.chaos.actions import heading_vector, move_into_view, simulate_onlooker
from roadaware.simulator.chaos.cast import (
    WATER_M,
    add_emergency_vehicle,
    add_flames,
    add_parked_car,
    add_thing,
    arrange_around,
    arrange_in_column,
    arrange_in_line,
    compute_obstacle_circles,
    find_free_place,
    make_players,
)
from roadaware.simulator.chaos.crowd import APART_M, ROOM_M
from roadaware.simulator.chaos.ground import make_ground, town_config
from roadaware.simulator.chaos.play import Play, Player, Script, Thing
from roadaware.simulator.chaos.recording import (
    build_person_actors,
    build_thing_actors,
    extract_bonds,
    extract_noises,
    generate_sentences,
)
from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.episode import Episode
from roadaware.simulator.town import make_layout
from roadaware.simulator.town.regions import Regions

_LEAST_S = 4.0
"""Nothing new begins later than this before the end."""
_BULKY = ("Car", "EmVeh", "dustbin", "barrier", "cart")
_PATIENCE_S = 1.6
_WATCHERS = 0.18
"""Share of a crowd that plays no scene at first."""
_LATE_SHARE = 0.2
"""Of those who play no scene, so many come later."""


@dataclass(frozen=True)
class Plot:
    """A scene that may be played.

    Args:
        script: what happens.
        least: people it needs.
        most: people it can use.
        around: how far from its place each of the cast begins, in metres; or "column" or "line".
        room_m: it needs around its place.
        guards: how many of the cast, from the first on, are police.
        hot: whether others watch it.
        share: of the crowd that may take part, if that is more than it needs.
    """

    script: Callable[[Play, list[Player], Floats], Script]
    least: int
    most: int
    around: tuple[float, ...] | str
    room_m: float = 2.0
    guards: int = 0
    hot: bool = True
    share: float = 1.0


PLOTS: Mapping[str, Plot] = {
    "brawl": Plot(conflicts.simulate_brawl, 2, 2, (0.9, 0.9)),
    "parted brawl": Plot(conflicts.simulate_brawl, 3, 3, (0.9, 0.9, 3.0), 2.5),
    "chase": Plot(conflicts.simulate_chase, 2, 2, (2.2, 0.6), 1.5),
    "threat": Plot(conflicts.simulate_threat, 2, 2, (1.2, 1.2), 2.0),
    "dance": Plot(conflicts.simulate_dance, 2, 4, (1.2,), 2.0),
    "quarrel": Plot(conflicts.simulate_quarrel, 2, 2, (0.8, 0.8), 1.6),
    "reunion": Plot(conflicts.simulate_reunion, 2, 2, (2.8, 2.8), 1.5, hot=False),
    "chat": Plot(conflicts.simulate_chat, 2, 2, (0.8, 0.8), 1.2, hot=False),
    "throwing": Plot(conflicts.simulate_stone_throwing, 2, 2, (0.5, 6.0), 1.2),
    "march": Plot(conflicts.simulate_march, 3, 18, "column", 2.6, share=0.36),
    "flares": Plot(conflicts.simulate_flares, 1, 1, (1.8,), 1.3),
    "arson": Plot(conflicts.simulate_arson, 1, 1, (3.0,), 1.3),
    "smash": Plot(conflicts.simulate_vandalism, 1, 1, (2.5,), 1.3),
    "barricade": Plot(conflicts.simulate_barricade, 1, 1, (4.0,), 1.3, hot=False),
    "guard": Plot(conflicts.simulate_police_line, 1, 3, (0.7,), 1.5, 3, hot=False),
    "arrest": Plot(emergencies.simulate_arrest, 2, 2, (5.0, 0.8), 1.8, 1),
    "rescue": Plot(emergencies.simulate_rescue, 2, 3, (0.0, 4.0, 3.0), 2.2),
    "put out": Plot(emergencies.simulate_fire_fighting, 1, 1, (5.0,), 1.2),
    "call help": Plot(emergencies.call_help, 1, 1, (2.0,), 1.0, hot=False),
    "loot": Plot(emergencies.simulate_looting, 1, 2, (3.0, 4.0), 1.5),
    "tug": Plot(emergencies.simulate_tug_of_war, 2, 2, (1.6, 1.6), 1.8),
    "queue": Plot(emergencies.simulate_queue, 4, 9, "line", 2.6, share=0.4),
    "flee": Plot(emergencies.simulate_fleeing, 1, 3, (0.9,), 1.5, hot=False),
    "blast": Plot(emergencies.simulate_explosion, 0, 0, (), 1.0),
}


@dataclass(frozen=True)
class Programme:
    """Programme of a category of scenes.

    Args:
        openings: plots that are played from the start, the first ones even if few people are about.
        later: plots that follow.
        idle: how often onlookers do what, by `onlookers`.
        guards: police among the crowd of fourteen.
        vehicles: emergency vehicles that stand by.
        things: kinds of things that are about, and how many of each.
    """

    openings: tuple[str, ...]
    later: tuple[str, ...]
    idle: Mapping[str, float]
    guards: int = 0
    vehicles: tuple[str, ...] = ()
    things: Mapping[str, int] = field(default_factory=dict)


_CURIOUS = {"watch": 3, "film": 3, "phone": 1, "shout": 1, "clap": 0.3, "wave": 0.5, "stroll": 1}
PROGRAMMES: Mapping[str, Programme] = {
    "fight": Programme(
        ("brawl", "parted brawl", "rescue", "threat", "chase", "arrest"),
        ("brawl", "quarrel", "throwing", "threat", "chase"),
        _CURIOUS, 1, ("police_car",), {"dustbin": 1},
    ),
    "protest_riot": Programme(
        ("march", "throwing", "flares", "dance", "guard", "barricade", "smash", "arrest"),
        ("flares", "arrest", "arson", "smash", "barricade", "threat", "dance", "throwing"),
        {"watch": 1, "film": 3, "clap": 2, "shout": 1, "chant": 3, "wave": 1, "stroll": 0.5},
        2, ("police_car",), {"dustbin": 2, "barrier": 2},
    ),
    "quarrel": Programme(
        ("quarrel", "quarrel", "reunion", "chat", "dance"), ("quarrel", "chat", "reunion", "brawl", "dance"),
        _CURIOUS | {"phone": 2, "stroll": 2}, 0, (), {"suitcase": 1},
    ),
    "fires": Programme(
        ("put out", "arson", "flee", "rescue", "call help"), ("put out", "call help", "flee"),
        {"watch": 3, "film": 3, "phone": 2, "shout": 1, "wave": 1, "stroll": 0.5},
        0, ("fire_engine",), {"dustbin": 2, "fire": 2},
    ),
    "flood": Programme(
        ("flee", "rescue", "flee", "reunion", "flee"), ("flee", "call help", "reunion", "flee"),
        {"watch": 1, "film": 2, "phone": 2, "shout": 2, "wave": 3, "stroll": 2},
        0, ("ambulance",), {"suitcase": 4, "water": 1, "tyre": 1, "plastic_bag": 2},
    ),
    "queue_chaos": Programme(
        ("queue", "tug", "loot", "quarrel", "loot"), ("loot", "tug", "quarrel", "chase"),
        _CURIOUS | {"shout": 2, "wave": 2}, 0, (), {"suitcase": 4, "cart": 2, "barrier": 1},
    ),
    "explosion": Programme(
        ("blast", "chat", "chat", "reunion"), ("call help", "put out"),
        {"watch": 1, "film": 1, "phone": 2, "stroll": 3}, 1, ("ambulance",), {"dustbin": 1, "fire": 0},
    ),
}  # fmt: skip
"""The categories that are played, with what happens in each."""


class Director:
    """Casts scenes, lets them go on, and keeps everybody else busy.

    Args:
        play: the scene.
        programme: of its category.
    """

    def __init__(self, play: Play, programme: Programme) -> None:
        self.play, self.programme = play, programme
        self._running: list[tuple[Plot, Script, list[Player], Floats]] = []
        self._idle: dict[int, Script] = {}
        self._since = [0.0] * len(play.players)
        self._alarmed = False
        self._pause = 0.0

    def open(self) -> None:
        """Cast the plots that are played from the start, and place everybody."""
        people = [int(k) for k in self.play.rng.permutation(len(self.play.players))]
        free = [self.play.players[k] for k in people]
        watchers = round(_WATCHERS * len(free))
        for name in self._order():
            plot = PLOTS[name]
            cast = self._chosen(plot, free, max(0, len(free) - watchers))
            if cast is None:
                continue
            free = [who for who in free if who not in cast]
            spot = self._spot(plot)
            self._set_out(plot, cast, spot)
            self._start(plot, cast, spot)
        for k, who in enumerate(free):
            late = k >= 2 and self.play.chance(_LATE_SHARE) and not who.guard
            if not late:
                self.play.place(who, find_free_place(self.play, self._centre(), self.play.draw(3.0, 5.5)))
                self.play.bodies.heading[who.number] = self.play.bearing(who, self._centre())
            script = simulate_onlooker(self.play, who, self.programme.idle)
            self._idle[who.number] = move_into_view(self.play, who, script) if late else script
        self.play.bodies.settle()

    def direct(self) -> None:
        """Let everybody go on by one frame."""
        play = self.play
        if play.alarm is not None and not self._alarmed:
            self._alarm(play.alarm)
        going = []
        for plot, script, cast, spot in self._running:
            if next(script, self) is self:
                self._dismiss(cast)
            else:
                going.append((plot, script, cast, spot))
        self._running = going
        play.focus = [cast[0] for plot, _, cast, _ in going if plot.hot and cast]
        for who in play.players:
            if not who.busy and not who.away:
                self._since[who.number] += 1.0 / play.fps
                next(self._idle[who.number], None)
        self._pause -= 1.0 / play.fps
        if self._pause <= 0.0 and play.left_s > _LEAST_S:
            self._pause = play.draw(0.5, 1.5)
            self._cast_later()

    def _order(self) -> list[str]:
        """The openings, the first one first and the others by chance; for large crowds several times."""
        first, *rest = self.programme.openings
        found: list[str] = []
        for _ in range(max(1, round(len(self.play.players) / 14))):
            found += [first, *(rest[k] for k in self.play.rng.permutation(len(rest)).tolist())]
        return found

    def _chosen(self, plot: Plot, free: list[Player], most: int) -> list[Player] | None:
        """People for a plot; police where it asks for them, and only there."""
        if plot.most == 0:
            return []
        police = [who for who in free if who.guard][: plot.guards]
        if plot.guards and not police:
            return None
        rest = [who for who in free if not who.guard]
        most = min(most, max(plot.least, round(plot.share * len(self.play.players))))
        # Who stands guard needs nobody else.
        wanted = plot.most - len(police) if plot.guards < plot.most else 0
        rest = rest[: max(0, min(wanted, most - len(police)))]
        cast = police + rest
        return cast if len(cast) >= plot.least else None

    def _start(self, plot: Plot, cast: list[Player], spot: Floats) -> None:
        for who in cast:
            self.play.rest(who)
            who.busy = True
        self._running.append((plot, plot.script(self.play, cast, spot), cast, spot))

    def _dismiss(self, cast: list[Player]) -> None:
        """Let people go who have played their scene."""
        bodies = self.play.bodies
        for who in cast:
            k = who.number
            self.play.rest(who)
            who.busy = False
            bodies.least[k] = bodies.least[:, k] = APART_M
            bodies.room[k] = bodies.room[:, k] = ROOM_M
            bodies.least[k, k] = bodies.room[k, k] = 0.0
            self._since[k] = 0.0
            self._idle[k] = simulate_onlooker(self.play, who, self.programme.idle)

    def _set_out(self, plot: Plot, cast: list[Player], spot: Floats) -> None:
        if plot.around == "column":
            arrange_in_column(self.play, cast, spot)
        elif plot.around == "line":
            arrange_in_line(self.play, cast, spot)
        elif not isinstance(plot.around, str):
            arrange_around(self.play, cast, spot, plot.around)

    def _centre(self) -> Floats:
        """(2,) where most happens."""
        hot = [spot for plot, _, _, spot in self._running if plot.hot]
        middle: Floats = hot[0] if hot else np.array([11.0, 0.0])
        return middle

    def _spot(self, plot: Plot) -> Floats:
        """(2,) a place with room for a plot; the first one is in the middle of the image."""
        play, ground = self.play, self.play.ground
        others = [(spot, other.room_m) for other, _, _, spot in self._running]
        best, score = ground.clamp(11.0, 0.0), -np.inf
        for _ in range(25):
            x = play.draw(7.8, 10.0) if not others else play.draw(7.5, 16.0)
            low, high = ground.reach(x, 1.2)
            if not others:
                low, high = max(low, -1.8), min(high, 1.8)
            point = np.array([x, play.draw(min(low, high), max(low, high))])
            gaps = [float(np.hypot(*(point - spot))) - room - plot.room_m for spot, room in others]
            posts = play.bodies.posts
            if len(posts):
                gaps.append(float((np.hypot(*(posts[:, :2] - point).T) - posts[:, 2]).min()) - 0.8)
            # In front of another scene one would hide it, behind a vehicle one would be hidden.
            hides = sum(abs(point[1] / x - s[1] / s[0]) < 0.14 for s, _ in others)
            hidden = self._hidden(point)
            found = min([*gaps, 1.0]) - 0.5 * hides - 1.0 * hidden - 0.03 * x
            if found > score:
                best, score = point, found
        return best

    def _hidden(self, point: Floats) -> bool:
        """Whether a vehicle, bin or trunk stands between a place and the camera."""
        bulky = [(*thing.xy.tolist(), 1.3) for thing in self.play.things if thing.kind in _BULKY]
        bulky += [(x, y, radius + 0.4) for x, y, radius in self.play.bodies.posts.tolist()]
        x, y = point.tolist()
        return any(1.0 < a < x - 0.5 and abs(y / x - b / a) < wide / a for a, b, wide in bulky)

    def _free(self) -> list[Player]:
        """Those who have done the same for long enough, and are in the image."""
        here = self.play.bodies.here
        return [
            who
            for who in self.play.players
            if not who.busy
            and not who.away
            and here[who.number]
            and self._since[who.number] > _PATIENCE_S
            and self.play.ground.in_view(*self.play.at(who).tolist())
        ]

    def _cast_later(self) -> None:
        free = self._free()
        spare = len(free) - max(1, round(0.2 * len(self.play.players)))
        if spare < 1 or not self.programme.later:
            return
        name = self.programme.later[int(self.play.rng.integers(len(self.programme.later)))]
        plot = PLOTS[name]
        spot = self._spot(plot)
        free.sort(key=lambda who: (float(np.hypot(*(self.play.at(who) - spot))), who.number))
        cast = self._chosen(plot, free, spare)
        if cast:
            self._start(plot, cast, spot)

    def _alarm(self, spot: Floats) -> None:
        """Something blew up: whoever is near falls, everybody else ducks and runs."""
        self._alarmed = True
        play = self.play
        for _, script, cast, _ in self._running:
            if cast:
                close = getattr(script, "close", None)
                if close is not None:
                    close()
                self._dismiss(cast)
        self._running = [row for row in self._running if not row[2]]
        people = [who for who in play.players if play.bodies.here[who.number] and not who.away]
        people.sort(key=lambda who: (float(np.hypot(*(play.at(who) - spot))), who.number))
        struck = [who for who in people[: max(1, len(people) // 5)] if not who.guard]
        helpers = people[max(len(struck), len(people) // 2) :][:2]
        down, panic = (
            Plot(emergencies.simulate_knockdown, 1, 1, ()),
            Plot(emergencies.simulate_panic, 1, 3, ()),
        )
        for k, who in enumerate(struck):
            team = helpers if k == 0 else []
            self._start(PLOTS["rescue"] if team else down, [who, *team], spot)
        rest = [who for who in people if who not in struck and (who not in helpers or not struck)]
        while rest:
            # Those who stand together run together.
            gaps = [(play.gap(rest[0], who), who.number) for who in rest]
            rest = [play.players[number] for _, number in sorted(gaps)]
            n = int(play.rng.integers(1, 4))
            self._start(panic, rest[:n], spot)
            rest = rest[n:]


# Setting: the things that stand, burn or float about when a scene of chaos begins.


_RISES_S = 6.0
_CURRENT_MPS = 0.5


def add_street_things(play: Play, programme: Programme) -> None:
    """Put everything on the street that a programme asks for.

    Args:
        play: the scene.
        programme: of its category.
    """
    side = 1 if play.chance(0.5) else -1
    for k, model in enumerate(programme.vehicles):
        add_emergency_vehicle(play, model, side if k == 0 else -side)
    if "dustbin" in programme.things:
        add_parked_car(play, -side)
    posts = compute_obstacle_circles(play.things)
    play.posts = np.concatenate([play.posts, posts])
    play.bodies.block(play.posts, np.full(len(play.posts), -1))
    shop = play.ground.clamp(play.draw(11.0, 15.0), -side * 5.0)
    for kind, n in programme.things.items():
        for k in range(n):
            if kind == "water":
                _water(play)
            elif kind == "fire":
                _burning(play, k, side)
            else:
                near = shop if kind in ("suitcase", "cart") and "cart" in programme.things else None
                _lone(play, kind, near)


def update_flood(play: Play) -> None:
    """In this frame, let the water rise and carry along what floats."""
    sheet = next((thing for thing in play.things if thing.model == "flood"), None)
    if sheet is None:
        return
    play.level = 0.06 + 0.2 * min(1.0, play.frame / play.fps / _RISES_S)
    sheet.z = play.level - WATER_M
    for who in play.players:
        # Who lies in the water floats.
        who.lift = max(who.lift, 0.8 * play.level) if who.pose == Pose.LIE else who.lift
    for thing in play.things:
        if thing.kind in ("tyre", "plastic_bag") or (thing.kind == "suitcase" and thing.pushed_by is None):
            drift = _CURRENT_MPS * min(1.0, play.frame / play.fps / 2.0)
            thing.xy = thing.xy - np.array([drift / play.fps, 0.0])
            thing.heading += 0.3 / play.fps
            thing.z = max(0.0, play.level - 0.25 * thing.size_m[2])


def _water(play: Play) -> None:
    ground = play.ground
    wide = ground.left_m - ground.right_m + 1.0
    middle = np.array([22.0, (ground.left_m + ground.right_m) / 2])
    sheet = add_thing(play, "debris", middle, 0.0, "flood", (70.0, wide, WATER_M))
    sheet.z = -WATER_M


def _burning(play: Play, number: int, side: int) -> None:
    """A bin in flames, or a fire on the ground."""
    y = (side if number % 2 else -side) * play.draw(0.8, 3.5)
    low, high = play.ground.kerbs
    spot = play.ground.clamp(play.draw(9.5, 14.0), float(np.clip(y, low + 0.5, high - 0.5)))
    if number % 2:
        add_flames(play, None, spot, play.draw(1.2, 1.7))
    else:
        add_flames(play, add_thing(play, "dustbin", spot, play.draw(0.0, 6.28)))


def _lone(play: Play, kind: str, near: Floats | None) -> Thing:
    side = 1.0 if play.chance(0.5) else -1.0
    spot = play.ground.clamp(play.draw(9.0, 16.0), side * play.draw(2.5, 6.0)) if near is None else near
    away = play.draw(0.4, 1.8) if near is not None else 1.0
    place = find_free_place(play, spot, away, 0.8)
    for thing in play.things:
        gap = place - thing.xy
        if np.hypot(*gap) < 0.9 and thing.model != "flood":
            place = thing.xy + 1.0 * heading_vector(math.atan2(float(gap[1]), float(gap[0])))
    return add_thing(play, kind, place, play.draw(0.0, 6.28))


CATEGORIES = tuple(PROGRAMMES)
"""What may happen, as `EVENT_CATEGORIES` names it."""
_SIRENS = {
    "ambulance": "siren (ambulance)",
    "police_car": "siren (police)",
    "fire_engine": "siren (fire engine)",
}


def make_chaos(
    config: SceneConfig, conditions: Conditions, name: str, seed: int, rng: np.random.Generator
) -> Episode:
    """A crowd in a street, seen from a vehicle that stands or creeps.

    Scenes that follow each other in a set take the categories in turn.

    Args:
        config: what is simulated; its `behaviour.crowd` people.
        conditions: light and weather.
        name: of the scene; it ends with its number in the set.
        seed: of the set.
        rng: draws everything.
    """

    category = select_category(name, seed)
    layout = make_layout(town_config(config, rng), rng)
    ground = make_ground(layout, config, rng)
    programme = PROGRAMMES[category]
    crowd = config.behaviour.crowd
    guards = min(crowd // 4, max(programme.guards, round(programme.guards * crowd / 14)))
    players = make_players(crowd, guards if programme.guards else 0, rng)
    play = Play(ground, players, config.n_frames, config.camera.fps, rng, ground.posts())
    add_street_things(play, programme)
    _act_out(play, Director(play, programme))
    regions = Regions(layout)
    actors = build_person_actors(play, regions)
    everything = (*actors, *build_thing_actors(play, regions))
    tied = extract_bonds(play, actors)
    told = generate_sentences(actors, tied, config.camera.fps)
    return Episode(
        name,
        seed,
        config,
        conditions,
        layout,
        ground.ego,
        everything,
        (),
        tied,
        extract_noises(play, actors),
        told,
        category,
    )


def select_category(name: str, seed: int) -> str:
    """The category of a scene of this name.

    Args:
        name: ends with the number of the scene.
        seed: of the set.
    """
    digits = re.search(r"(\d+)$", name)
    return CATEGORIES[((int(digits[1]) if digits else 0) + seed) % len(CATEGORIES)]


def _act_out(play: Play, director: Director) -> None:
    """Play it from the first frame to the last."""
    director.open()
    for _ in range(play.n_frames):
        director.direct()
        update_flood(play)
        for thing in play.things:
            if thing.kind == "EmVeh":
                play.noise(_SIRENS[thing.model], thing)
        play.note()
        play.step()
