"""`make_chaos`: what happens in each category, who plays which scene when, and a street with its crowd out of a
configuration and a random generator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Lamp, Pose
from roadaware.simulator.chaos import conflicts, emergencies, performances
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
    heading_vector,
    make_players,
    move_into_view,
    simulate_onlooker,
)
from roadaware.simulator.chaos.crowd import APART_M, ROOM_M, make_ground, town_config
from roadaware.simulator.chaos.play import Play, Player, Script, Thing
from roadaware.simulator.chaos.recording import (
    build_person_actors,
    build_thing_actors,
    extract_bonds,
    extract_noises,
    generate_sentences,
    mix_noises,
)
from roadaware.simulator.chaos.sentences import generate_varied_sentences
from roadaware.simulator.config import Conditions, SceneConfig, Staging, Surroundings
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
        goes_on: whether it goes on when something blows up.
    """

    script: Callable[[Play, list[Player], Floats], Script]
    least: int
    most: int
    around: tuple[float, ...] | str
    room_m: float = 2.0
    guards: int = 0
    hot: bool = True
    share: float = 1.0
    goes_on: bool = False


def _solo(pose: Pose, *doing: str, label: str | None = None, at: tuple[str, ...] = (), most: int = 1) -> Plot:
    script = partial(performances.simulate_solo, pose=pose, doing=doing, label=label, at=at)
    return Plot(script, 1, most, (1.4, 2.2), 1.3)


def _vehicle(kind: str, label: str) -> Plot:
    return Plot(
        partial(performances.simulate_vehicle_sound, kind=kind, label=label), 0, 0, (), 0.5, hot=False
    )


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
STAGED_PLOTS: Mapping[str, Plot] = {
    **PLOTS,
    "hand in hand": Plot(performances.simulate_hand_in_hand, 2, 2, (0.5, 0.5), 1.4, hot=False),
    "painting": _solo(Pose.PAINT, "painting", at=("barrier",)),
    "spraying": _solo(Pose.SPRAY, "spraying", at=("barrier", "dustbin")),
    "drums": _solo(Pose.DRUM, "playing instrument", label="playing drums", most=2),
    "trumpet": _solo(Pose.TRUMPET, "playing instrument", label="trumpet", most=2),
    "guitar": _solo(Pose.STRUM, "playing instrument", label="playing musical instruments", most=2),
    "song": _solo(Pose.MICROPHONE, "singing", label="singing", most=2),
    "prayer": _solo(Pose.PRAY, "praying"),
    "speech": Plot(performances.simulate_speech, 2, 3, (0.6, 2.2), 2.4),
    "report": Plot(performances.simulate_report, 2, 2, (0.8, 1.8), 1.8, hot=False),
    "gun threat": Plot(performances.simulate_gun_threat, 2, 2, (1.2, 1.2), 2.0),
    "shots": Plot(performances.simulate_shooting, 1, 1, (1.5,), 1.6, goes_on=True),
    "attack": Plot(partial(performances.simulate_shooting, alarm=True), 1, 1, (1.0,), 1.6, goes_on=True),
    "whistle": _solo(Pose.WAVE, "waving hands", label="whistling"),
    "air horn": _solo(Pose.RAISE_CAN, "chanting/cheering", label="airhorn"),
    "radio": _solo(Pose.PHONE, "speaking/talking", label="buzzing of walkie-talkie"),
    "boo": _solo(Pose.SHOUT, "shouting", label="booing"),
    "applause": _solo(Pose.CLAP, "clapping", label="clapping", most=2),
    "flag": _solo(
        Pose.HOLD_FLAG, "holding flag", "waving flag", "chanting/cheering", label="chanting/cheering"
    ),
    "sign": _solo(Pose.HOLD_SIGN, "holding signage"),
    "fist": _solo(Pose.WAVE, "raising fist", "chanting/cheering", label="chanting/cheering"),
    "window": Plot(performances.simulate_window_breaking, 1, 1, (2.5,), 1.3),
    "car horn": _vehicle("Car", "honking"),
    "motorcycle": _vehicle("Mobike", "motorcycle engine"),
    "lorry": _vehicle("LarVeh", "truck engine"),
    "collision": Plot(performances.simulate_collision, 1, 2, (3.0, 1.6), 1.5),
    "shelter": Plot(performances.simulate_shelter, 2, 4, (0.9,), 1.8),
    "panic": Plot(emergencies.simulate_panic, 1, 3, (1.0,), 1.5, hot=False),
}
"""Those of staged scenes."""
ACTS: Mapping[str, Mapping[str, int]] = {
    "hand in hand": {}, "painting": {"barrier": 1}, "spraying": {"barrier": 1}, "drums": {}, "trumpet": {},
    "guitar": {}, "song": {}, "prayer": {}, "speech": {}, "report": {}, "gun threat": {}, "shots": {},
    "whistle": {}, "air horn": {}, "radio": {}, "boo": {}, "applause": {}, "flag": {}, "sign": {}, "fist": {},
    "window": {"Car": 1}, "car horn": {"Car": 1}, "motorcycle": {"Mobike": 1}, "lorry": {"LarVeh": 1},
    "barricade": {"dustbin": 1}, "arrest": {}, "rescue": {}, "put out": {"fire": 1}, "arson": {"dustbin": 1},
    "flares": {}, "dance": {}, "reunion": {}, "threat": {}, "loot": {"suitcase": 1}, "throwing": {},
    "parted brawl": {}, "smash": {"dustbin": 1}, "tug": {"suitcase": 1}, "brawl": {}, "guard": {},
}  # fmt: skip
"""Acts that staged scenes take in turn besides what belongs to their event, and the things that each needs."""


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
_CALM = {"watch": 4, "film": 2, "phone": 0.7, "shout": 0.2, "clap": 0.2, "wave": 0.6, "stroll": 1}
_SHAKEN = ("shelter", "flee", "rescue", "call help", "panic")
STAGED_PROGRAMMES: Mapping[str, Programme] = {
    "earthquake": Programme(_SHAKEN, ("shelter", "flee", "call help"), _CALM, 1, ("fire_engine",), {"debris": 3}),
    "flood": replace(PROGRAMMES["flood"], idle=_CALM, guards=1),
    "hailstorm": Programme(("shelter", "panic", "flee", "call help"), ("shelter", "flee"), _CALM, 1, (), {}),
    "hurricane": Programme(
        ("shelter", "flee", "rescue", "panic"), ("shelter", "flee"), _CALM, 1, ("ambulance",),
        {"plastic_bag": 4, "suitcase": 1},
    ),
    "landslide": Programme(
        ("panic", "flee", "rescue", "call help"), ("flee", "call help"), _CALM, 1, ("fire_engine",), {}
    ),
    "tsunami": Programme(
        ("panic", "flee", "flee", "rescue"), ("flee", "call help"), _CALM, 1, (), {"water": 1, "tyre": 1, "suitcase": 2}
    ),
    "volcanic_eruption": Programme(
        ("panic", "flee", "shelter", "call help"), ("flee", "shelter"), _CALM, 1, (), {"fire": 2}
    ),
    "accidents": Programme(
        ("collision", "rescue", "call help", "quarrel"), ("call help", "quarrel"), _CALM, 1, ("ambulance",), {}
    ),
    "fires": replace(PROGRAMMES["fires"], idle=_CALM, guards=1),
    "queue_chaos": replace(PROGRAMMES["queue_chaos"], idle=_CALM, guards=1),
    "explosion": replace(PROGRAMMES["explosion"], idle=_CALM),
    "fight": replace(PROGRAMMES["fight"], idle=_CALM),
    "quarrel": replace(PROGRAMMES["quarrel"], idle=_CALM, guards=1),
    "gunshot_terrorist_attack": Programme(
        ("attack", "chat", "hand in hand"), ("gun threat", "call help"), _CALM, 1, ("police_car",), {}
    ),
    "protest_riot": replace(PROGRAMMES["protest_riot"], idle=_CALM, guards=1),
}  # fmt: skip
"""All fifteen events, as staged scenes play them."""


class Director:
    """Casts scenes, lets them go on, and keeps everybody else busy.

    Args:
        play: the scene.
        programme: of its category.
        acts: plots that are played besides, of `STAGED_PLOTS`.
    """

    def __init__(self, play: Play, programme: Programme, acts: tuple[str, ...] = ()) -> None:
        self.play, self.programme, self._acts = play, programme, acts
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
            plot = STAGED_PLOTS[name]
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
        return [found[0], *self._acts, *found[1:]]

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
            x = play.draw(7.8, 10.0) if not others else play.draw(7.5, min(16.0, ground.far_m))
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
        names = (*self.programme.later, *self._acts)
        plot = STAGED_PLOTS[names[int(self.play.rng.integers(len(names)))]]
        spot = self._spot(plot)
        free.sort(key=lambda who: (float(np.hypot(*(self.play.at(who) - spot))), who.number))
        cast = self._chosen(plot, free, spare)
        if cast:
            self._start(plot, cast, spot)

    def _alarm(self, spot: Floats) -> None:
        """Something blew up: whoever is near falls, everybody else ducks and runs."""
        self._alarmed = True
        play = self.play
        ended = [row for row in self._running if row[2] and not row[0].goes_on]
        for _, script, cast, _ in ended:
            if cast:
                close = getattr(script, "close", None)
                if close is not None:
                    close()
                self._dismiss(cast)
        self._running = [row for row in self._running if not row[2] or row[0].goes_on]
        here = play.bodies.here
        people = [who for who in play.players if here[who.number] and not who.away and not who.busy]
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
    """Put everything on the street that a programme asks for."""
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
                ground = play.ground
                wide = ground.left_m - ground.right_m + 1.0
                middle = np.array([22.0, (ground.left_m + ground.right_m) / 2])
                sheet = add_thing(play, "debris", middle, 0.0, "flood", (70.0, wide, WATER_M))
                sheet.z = -WATER_M
            elif kind == "fire":
                _burning(play, k, side)
            else:
                near = shop if kind in ("suitcase", "cart") and "cart" in programme.things else None
                _lone(play, kind, near)


_STANDING: Mapping[str, tuple[str, bool]] = {
    "Car": ("hatchback", True),
    "Mobike": ("motorbike", True),
    "LarVeh": ("lorry", True),
}
"""Vehicles that stand by: the model, and whether it counts as an agent."""


def add_act_things(play: Play, acts: tuple[str, ...], programme: Programme) -> None:
    """Put the things on the street that acts need and the programme does not have.

    Args:
        play: the scene.
        acts: of `ACTS`.
        programme: of its category.
    """
    wanted: dict[str, int] = {}
    for name in acts:
        for kind, n in ACTS[name].items():
            wanted[kind] = max(n, wanted.get(kind, 0))
    for kind, n in wanted.items():
        for k in range(n - programme.things.get(kind, 0)):
            if kind in _STANDING:
                _standing_vehicle(play, kind)
            elif kind == "fire":
                _burning(play, k, 1 if play.chance(0.5) else -1)
            else:
                _lone(play, kind, None)
    _keep_off(play)


def _standing_vehicle(play: Play, kind: str, side: int = 0, x: float = 0.0) -> Thing:
    """A vehicle that stands at the kerb, or where the image ends before it."""
    ground, (model, active) = play.ground, _STANDING[kind]
    side = side or (1 if play.chance(0.5) else -1)
    x = x or play.draw(10.5, 13.0) + (6.0 if kind == "LarVeh" else 0.0)
    kerb = ground.kerbs[1] if side > 0 else -ground.kerbs[0]
    y = side * min(kerb - 1.1, ground.slope * x - 0.7)
    return add_thing(play, kind, np.array([x, y]), math.pi + play.draw(-0.08, 0.08), model, None, 0, active)


def _keep_off(play: Play) -> None:
    """Let vehicles be in the way of everybody."""
    play.posts = np.concatenate([play.ground.posts(), compute_obstacle_circles(play.things)])
    play.bodies.block(play.posts, np.full(len(play.posts), -1))


def add_disaster(play: Play, category: str) -> None:
    """Put on the street what makes an event of its kind."""
    ground, middle = play.ground, (play.ground.left_m + play.ground.right_m) / 2
    wide = ground.left_m - ground.right_m
    if category == "hailstorm":
        add_thing(play, "debris", np.array([16.0, middle]), 0.0, "hailstones", (28.0, wide, 0.07))
    elif category == "landslide":
        side = 1.0 if play.chance(0.5) else -1.0
        edge = ground.left_m if side > 0 else -ground.right_m
        place = np.array([play.draw(12.0, 15.0), side * (edge + 5.0)])
        earth = add_thing(play, "debris", place, play.draw(0.0, 6.28), "earth", (6.4, 6.0, 2.1))
        earth.z = 1.2
    elif category == "volcanic_eruption":
        add_thing(play, "debris", np.array([100.0, middle + play.draw(-8.0, 8.0)]), 0.0, "volcano", (60.0, 60.0, 27.0),
                  int(Lamp.BEACON))  # fmt: skip
    elif category == "tsunami":
        sheet = next(thing for thing in play.things if thing.model == "flood")
        sheet.xy = np.array([_WAVE_FROM_M + sheet.size_m[0] / 2, sheet.xy[1]])
    elif category == "hurricane":
        side = 1.0 if play.chance(0.5) else -1.0
        x = play.draw(11.0, 13.0)
        y = side * min(ground.left_m if side > 0 else -ground.right_m, ground.slope * x - 1.0)
        tree = add_thing(play, "fallen_tree", np.array([x, y]), play.draw(-0.2, 0.2), "fallen_tree")
        stem = tree.xy + np.outer(np.linspace(-0.45, 0.45, 6) * tree.size_m[0], heading_vector(tree.heading))
        play.posts = np.concatenate([play.posts, np.column_stack([stem, np.full(len(stem), 0.5)])])
        play.bodies.block(play.posts, np.full(len(play.posts), -1))
    elif category == "accidents":
        side = 1 if play.chance(0.5) else -1
        stands = _standing_vehicle(play, "Car", side, play.draw(10.0, 11.5))
        comes = _standing_vehicle(play, "Car", side, 36.0)
        # It runs in on the line of the one that stands, and faces the camera as it does.
        stands.heading, comes.heading = 0.0, math.pi
        comes.xy = np.array([36.0, float(stands.xy[1])])
        stands.model, comes.model = "saloon", "hatchback"
        end = stands.xy[0] + (stands.size_m[0] + comes.size_m[0]) / 2
        circle = np.array([[float(end), float(stands.xy[1]), comes.size_m[1] / 2]])
        _keep_off(play)
        play.posts = np.concatenate([play.posts, circle])
        play.bodies.block(play.posts, np.full(len(play.posts), -1))


_WAVE_FROM_M, _WAVE_MPS, _WAVE_HIGH_M = 46.0, 5.5, 0.34
_SLIDES_S, _GUST_MPS = 4.0, 4.5


def update_disaster(play: Play, category: str) -> None:
    """In this frame, let earth slide, a wave come in, or the wind blow things over the street."""
    seconds = play.frame / play.fps
    if category == "landslide":
        earth = next(thing for thing in play.things if thing.model == "earth")
        if seconds < _SLIDES_S:
            side = 1.0 if earth.xy[1] > 0 else -1.0
            share = math.sin(math.pi * seconds / _SLIDES_S)
            earth.xy = earth.xy - np.array([0.0, side * 3.2 * share / play.fps])
            earth.z = max(0.0, earth.z - 0.5 / play.fps)
    elif category == "tsunami":
        sheet = next(thing for thing in play.things if thing.model == "flood")
        front = max(-6.0, _WAVE_FROM_M - _WAVE_MPS * seconds)
        sheet.xy = np.array([front + sheet.size_m[0] / 2, sheet.xy[1]])
        sheet.z = _WAVE_HIGH_M - WATER_M
        play.level = _WAVE_HIGH_M if front < play.ground.near_m else 0.0
        for thing in play.things:
            if thing.kind in ("tyre", "suitcase") and thing.pushed_by is None and thing.xy[0] > front:
                thing.xy = thing.xy - np.array([1.6 / play.fps, 0.0])
                thing.heading += 0.5 / play.fps
                thing.z = max(0.0, _WAVE_HIGH_M - 0.25 * thing.size_m[2])
        for who in play.players:
            if who.pose == Pose.LIE and play.at(who)[0] > front:
                who.lift = max(who.lift, 0.8 * _WAVE_HIGH_M)
    elif category == "hurricane":
        for k, thing in enumerate(
            thing for thing in play.things if thing.kind in ("plastic_bag", "suitcase")
        ):
            if thing.pushed_by is None:
                gust = _GUST_MPS * (0.5 + 0.5 * math.sin(1.3 * seconds + 1.7 * k)) * (1.0 if k % 2 else 0.7)
                thing.xy = thing.xy + np.array([0.25, 1.0]) * gust / play.fps
                if thing.xy[1] > play.ground.left_m:
                    thing.xy = np.array([thing.xy[0], play.ground.right_m])
                thing.heading += 2.0 * gust / play.fps
                flies = thing.kind == "plastic_bag"
                thing.z = (0.5 + 0.45 * math.sin(2.1 * seconds + k)) if flies else 0.0


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
    staging = config.staging
    if staging is not None:
        return _make_staged(config, staging, conditions, name, seed, rng)
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
    sentences = generate_sentences(actors, tied, config.camera.fps)
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
        sentences,
        category,
    )


_STREAM, _ACT_STREAM = 61, 62


def _make_staged(
    config: SceneConfig,
    staging: Staging,
    conditions: Conditions,
    name: str,
    seed: int,
    rng: np.random.Generator,
) -> Episode:
    """A scene of `chaos@2`."""
    number = parse_scene_number(name)
    # Apart from the stream of the play: what is said and heard does not hang on how people moved.
    own = np.random.default_rng([seed, number, _STREAM])
    category = select_category(name, seed, tuple(STAGED_PROGRAMMES))
    acts = select_acts(number, seed, staging.acts)
    free = config.conditions is None
    config, conditions = _dress(config, staging, conditions, category, own, free=free)
    layout = make_layout(town_config(config, rng), rng)
    ground = make_ground(layout, config, rng)
    programme, crowd = STAGED_PROGRAMMES[category], config.behaviour.crowd
    guards = min(crowd // 4, max(programme.guards, round(programme.guards * crowd / 14)))
    play = Play(
        ground, make_players(crowd, guards, rng), config.n_frames, config.camera.fps, rng, ground.posts()
    )
    add_street_things(play, programme)
    add_act_things(play, acts, programme)
    add_disaster(play, category)
    director = Director(play, programme, acts)
    _act_out(play, director, category)
    regions = Regions(layout)
    actors = build_person_actors(play, regions)
    everything = (*actors, *build_thing_actors(play, regions))
    tied = extract_bonds(play, actors)
    noises = mix_noises(extract_noises(play, actors), staging, ground, config, own)
    sentences = generate_varied_sentences(actors, tied, config.camera.fps, ground, own)
    return Episode(
        name, seed, config, conditions, layout, ground.ego, everything, (), tied, noises, sentences, category
    )


def _dress(
    config: SceneConfig,
    staging: Staging,
    conditions: Conditions,
    category: str,
    rng: np.random.Generator,
    *,
    free: bool,
) -> tuple[SceneConfig, Conditions]:
    """Lens, town and weather of one scene; as many numbers are drawn whatever comes of them."""
    lens, spread, greenery, height, bends = rng.random(5)
    lanes, side = int(rng.integers(1, 3)), rng.random()
    camera = config.camera
    if lens < staging.wide:
        camera = replace(camera, fov_deg=staging.wide_deg)
    else:
        camera = replace(camera, fov_deg=min(140.0, camera.fov_deg * (0.94 + 0.1 * float(spread))))
    if category == "earthquake":
        # A camera that stands trembles by a third of this.
        camera = replace(camera, shake_px=min(20.0, 0.02 * camera.width_px))
    town: Surroundings = config.surroundings
    if staging.towns:
        town = replace(
            town, lanes=lanes, greenery=0.1 + 0.5 * float(greenery), height_m=6.0 + 9.0 * float(height),
            bends=0.3 * float(bends), drive_on="left" if side < 0.5 else "right",
        )  # fmt: skip
    if free and category in ("hailstorm", "hurricane"):
        conditions = Conditions("day" if conditions.time == "night" else conditions.time, "rain")
    elif free and category == "volcanic_eruption":
        conditions = Conditions("dusk", "overcast")
    return replace(config, camera=camera, surroundings=town), conditions


def select_acts(number: int, seed: int, count: int) -> tuple[str, ...]:
    """The acts that a scene shows besides those of its event.

    Scenes that follow each other show each act once before any is shown again.

    >>> sorted(name for number in range(20) for name in select_acts(number, 3, 2)) == sorted(ACTS)
    True
    """
    names, found = tuple(ACTS), []
    for place in range(number * count, (number + 1) * count):
        block, at = divmod(place, len(names))
        found.append(
            names[int(np.random.default_rng([seed, block, _ACT_STREAM]).permutation(len(names))[at])]
        )
    return tuple(dict.fromkeys(found))


def parse_scene_number(name: str) -> int:
    """The number that the name of a scene ends with; 0 without one."""
    digits = re.search(r"(\d+)$", name)
    return int(digits[1]) if digits else 0


def select_category(name: str, seed: int, categories: tuple[str, ...] = CATEGORIES) -> str:
    """The category of a scene of this name.

    Args:
        name: ends with the number of the scene.
        seed: of the set.
        categories: that scenes take in turn.
    """
    return categories[(parse_scene_number(name) + seed) % len(categories)]


def _act_out(play: Play, director: Director, category: str = "") -> None:
    """Play it from the first frame to the last."""
    director.open()
    for _ in range(play.n_frames):
        director.direct()
        if category != "tsunami":
            update_flood(play)
        update_disaster(play, category)
        for thing in play.things:
            if thing.kind == "EmVeh":
                play.noise(_SIRENS[thing.model], thing)
        play.note()
        play.step()
