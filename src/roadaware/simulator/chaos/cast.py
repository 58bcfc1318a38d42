"""Cast: who belongs to a crowd, what stands by, the poses of each action and the small steps of which scenes are made."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Lamp, Pose
from roadaware.simulator.chaos.play import Play, Player, Script, Thing
from roadaware.simulator.figures.models import ELEMENTS, MODELS, sample_model_size
from roadaware.simulator.people import PEOPLE_MODELS
from roadaware.simulator.people.clothes import sample_outfit
from roadaware.simulator.people.skeleton import get_age_group

_SHARES = {"child": 0.04, "senior": 0.07}
_GUARD_MODEL = "adult_a"


def make_players(n: int, guards: int, rng: np.random.Generator) -> list[Player]:
    """People of all ages; the last ones are police in high-visibility vests."""
    shares = np.array([_SHARES.get(model.name, model.weight) for model in PEOPLE_MODELS])
    models = rng.choice(len(shares), size=n, p=shares / shares.sum())
    found = []
    for k, place in enumerate(models.tolist()):
        guard = k >= n - guards
        names = {model.name: model for model in PEOPLE_MODELS}
        model = names[_GUARD_MODEL] if guard else PEOPLE_MODELS[place]
        long, wide, high = (np.array(model.size_m) * rng.uniform(0.97, 1.03)).tolist()
        look = _look(model.name, guard, rng)
        found.append(Player(k, model.name, (long, wide, high), look, guard))
    return found


def _look(model: str, guard: bool, rng: np.random.Generator) -> int:
    """A look in which police wear vests and nobody else does."""
    while True:
        look = int(rng.integers(1, 2**31))
        # The model of the police is broad; of others both builds are asked.
        figures = ("broad",) if guard else ("broad", "slim")
        vests = [
            sample_outfit(look, get_age_group(model), "broad" if f == "broad" else "slim").vest
            for f in figures
        ]
        if any(vests) == guard:
            return look


def find_free_place(play: Play, near: Floats, away_m: float, apart_m: float = 0.9) -> Floats:
    """(2,) a place on the stage that nobody stands on, at about a distance from a place.

    Args:
        play: the scene.
        near: (2,) the place.
        away_m: about how far from it.
        apart_m: distance to everybody else, if there is room.
    """
    best, room = play.ground.clamp(*near.tolist()), -1.0
    others = play.bodies.xy[play.bodies.here]
    posts = play.bodies.posts
    for _ in range(30):
        turn = play.draw(0.0, 2 * np.pi)
        far = away_m * play.draw(0.85, 1.15)
        point = play.ground.clamp(*(near + far * np.array([np.cos(turn), np.sin(turn)])).tolist())
        gaps = [np.hypot(*(others - point).T).min()] if len(others) else [9.0]
        if len(posts):
            gaps.append((np.hypot(*(posts[:, :2] - point).T) - posts[:, 2]).min())
        off = abs(float(np.hypot(*(point - near))) - away_m)
        score = min(float(min(gaps)), apart_m) - 0.4 * off
        if score > room:
            best, room = point, score
        if score >= apart_m - 0.15:
            break
    return best


def arrange_around(play: Play, cast: list[Player], spot: Floats, distances: tuple[float, ...]) -> None:
    """Put a cast around a place.

    Args:
        play: the scene.
        cast: who; the last distance is that of all others too.
        spot: (2,) the place.
        distances: of each from it, in metres.
    """
    for k, who in enumerate(cast):
        away = distances[min(k, len(distances) - 1)]
        place = find_free_place(play, spot, away) if away > 0 else spot
        play.place(who, place)
        play.bodies.heading[who.number] = play.bearing(who, spot) if away > 0 else play.draw(-3.1, 3.1)


def arrange_in_column(play: Play, cast: list[Player], spot: Floats) -> None:
    """Put a cast in rows of three up the street, looking to the camera."""
    ahead = min(play.ground.far_m - 1.0, float(spot[0]) + 4.0)
    for k, who in enumerate(cast):
        column = k % 3 - (1 if len(cast) > 2 else 0)
        play.place(who, np.array([ahead + 1.35 * (k // 3), spot[1] + 1.25 * column]), np.pi)


def arrange_in_line(play: Play, cast: list[Player], spot: Floats) -> None:
    """Put a cast in a line across the street; the last one waits aside."""
    turn = np.pi / 2 if spot[1] < 0 else -np.pi / 2
    along = np.array([np.cos(turn), np.sin(turn)])
    head = spot + along * 0.45 * (len(cast) - 2)
    for k, who in enumerate(cast[:-1]):
        play.place(who, head - along * 0.95 * k, turn)
    play.place(cast[-1], find_free_place(play, spot + np.array([2.0, 0.0]), 1.0), turn)


WATER_M = 0.3
"""How thick the sheet of water is."""
_FIRE_LAMPS = int(Lamp.BEACON)


def add_thing(
    play: Play,
    kind: str,
    xy: Floats,
    heading: float,
    model: str | None = None,
    size_m: tuple[float, float, float] | None = None,
    lamps: int = 0,
    active: bool = False,
) -> Thing:
    """Put a thing on the street.

    Args:
        play: the scene.
        kind: as of actors.
        xy: (2,) where.
        heading: of its front.
        model: of its kind; None for any.
        size_m: length, width and height; None for the model's.
        lamps: that are lit.
        active: whether it counts as an agent.
    """
    look = int(play.rng.integers(1, 2**31))
    known = {item.name: item for item in (*MODELS[kind], *ELEMENTS.get(kind, ()))}
    chosen = known[model] if model else MODELS[kind][0]
    size = size_m or sample_model_size(chosen, look)
    thing = Thing(
        kind, chosen.name, size, look, np.asarray(xy, dtype=np.float64), heading, 0.0, lamps, active
    )
    play.things.append(thing)
    return thing


def find_nearest_thing(play: Play, spot: Floats, *kinds: str, free: bool = False) -> Thing | None:
    """The thing of some kinds that stands nearest to a place, None where there is none."""
    found = [
        thing
        for thing in play.things
        if thing.here and thing.kind in kinds and not (free and thing.pushed_by is not None)
    ]
    return min(found, key=lambda thing: float(np.hypot(*(thing.xy - spot))), default=None)


def add_flames(play: Play, thing: Thing | None, xy: Floats | None = None, high_m: float = 1.1) -> Thing:
    """Flames that come out of a thing, or of the ground.

    Args:
        play: the scene.
        thing: that burns; None for the ground.
        xy: (2,) where, if on the ground.
        high_m: of the flames.
    """
    at = thing.xy if thing is not None else xy
    wide = 0.62 if thing is not None else 0.9 * high_m
    fire = add_thing(
        play, "debris", np.array(at), play.draw(0.0, 6.28), "fire", (wide, wide, high_m), _FIRE_LAMPS
    )
    fire.z = thing.size_m[2] - 0.12 if thing is not None else 0.0
    return fire


def add_emergency_vehicle(play: Play, model: str, side: int) -> Thing:
    """An emergency vehicle with flashing beacons at the side of the street.

    Args:
        play: the scene.
        model: police_car, ambulance or fire_engine.
        side: 1 for left, -1 for right.
    """
    ground = play.ground
    kerb = ground.kerbs[1] if side > 0 else ground.kerbs[0]
    y = kerb - side * play.draw(1.5, 2.2)
    x = play.draw(18.0, 23.0) + (4.0 if model == "fire_engine" else 0.0)
    heading = math.pi * (1.0 if play.chance(0.5) else 0.0) + play.draw(-0.35, 0.35)
    return add_thing(
        play, "EmVeh", np.array([x, y]), heading, model, None, int(Lamp.BEACON | Lamp.HEAD), True
    )


def add_parked_car(play: Play, side: int) -> Thing:
    """A parked car at the kerb."""
    kerb = play.ground.kerbs[1] if side > 0 else play.ground.kerbs[0]
    xy = np.array([play.draw(13.0, 18.0), kerb - side * 1.1])
    return add_thing(play, "Car", xy, 0.0 if play.chance(0.5) else math.pi, ("hatchback", "saloon")[side > 0])


def compute_obstacle_circles(things: list[Thing]) -> Floats:
    """(m, 3) x, y and radius of circles that cover the vehicles."""
    rows: list[tuple[float, float, float]] = []
    for thing in things:
        if thing.kind not in ("Car", "EmVeh", "LarVeh", "Mobike"):
            continue
        long, wide, _ = thing.size_m
        for share in np.linspace(-0.5, 0.5, max(2, round(long / 0.9))).tolist():
            at = thing.xy + share * (long - wide) * np.array(
                [math.cos(thing.heading), math.sin(thing.heading)]
            )
            rows.append((float(at[0]), float(at[1]), wide / 2 + 0.1))
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


WALK_MPS, RUN_MPS = 1.4, 3.6
_HANDS = 0.27
"""How far before the body hands push, as a share of the height."""


def heading_vector(turn: float) -> Floats:
    """(2,) the direction of a heading."""
    return np.array([math.cos(turn), math.sin(turn)])


def move_to(
    play: Play, who: Player, goal: Floats, pace: float, within: float = 0.3, most_s: float = 7.0
) -> Script:
    """Move to a place, until it is reached or it takes too long."""
    for _ in range(round(most_s * play.fps)):
        if np.hypot(*(play.at(who) - goal)) < within:
            break
        play.go(who, goal, pace)
        yield
    play.halt(who)


def move_face_to_face(
    play: Play, one: Player, other: Player, spot: Floats, gap: float, pace: float
) -> Script:
    """Two come to a place from where they are, and face each other."""
    turn = play.bearing(one, other)
    if abs(math.sin(turn)) < 0.5:
        # From aside one sees what two do to each other.
        turn = math.copysign(math.pi / 2, math.sin(turn) or 1.0) + play.draw(-0.4, 0.4)
    ends = (spot - heading_vector(turn) * gap / 2, spot + heading_vector(turn) * gap / 2)
    for _ in range(round(6.0 * play.fps)):
        off = [float(np.hypot(*(play.at(who) - end))) for who, end in zip((one, other), ends, strict=True)]
        if max(off) < 0.2 and play.gap(one, other) < gap + 0.3:
            break
        for who, end, away, to in zip((one, other), ends, off, (other, one), strict=True):
            play.go(who, end, pace, to if away < 0.9 else None)
        yield
    for who, to in ((one, other), (other, one)):
        play.halt(who, to)


def close_in(play: Play, who: Player, target: Player, gap: float, pace: float, most_s: float = 6.0) -> Script:
    """Move to somebody until one can reach them; they may move."""
    for _ in range(round(most_s * play.fps)):
        if play.gap(who, target) < gap + 0.12:
            break
        away = play.at(who) - play.at(target)
        size = max(float(np.hypot(*away)), 1e-6)
        play.go(who, play.at(target) + away / size * gap, pace)
        yield
    play.halt(who, target)


def keep(play: Play, who: Player, target: Player, gap: float, pace: float = 1.6) -> None:
    """In this frame, stay at a distance from somebody, facing them."""
    away = play.at(who) - play.at(target)
    size = max(float(np.hypot(*away)), 1e-6)
    play.go(who, play.at(target) + away / size * gap, pace, target)


def lie_down(play: Play, who: Player, turn: float | None = None) -> None:
    """Let somebody lie on the ground, injured."""
    play.halt(who)
    k = who.number
    if turn is not None:
        play.bodies.heading[k] = turn
    play.bodies.face[k] = play.bodies.heading[k]
    play.bodies.wide[k] = 0.45
    play.root(who, True)
    play.act(who, Pose.LIE, "injured")


def fall_down(play: Play, who: Player, turn: float) -> Script:
    """Let somebody tumble on the back, and lie there injured."""
    play.halt(who)
    play.bodies.face[who.number] = turn
    play.act(who, Pose.FALL)
    yield from play.wait(0.8)
    lie_down(play, who)


def get_up(play: Play, who: Player) -> Script:
    """Let somebody who lies get on their knees, and then on their feet."""
    play.bodies.wide[who.number] = 0.0
    play.act(who, Pose.KNEEL, "kneeling")
    yield from play.wait(play.draw(1.2, 2.0))
    play.rest(who)


def compute_side_position(play: Play, lying: Player, who: Player, away_m: float = 0.62) -> Floats:
    """(2,) the place at the side of somebody who lies, on the side of who comes."""
    turn = float(play.bodies.heading[lying.number])
    side = np.array([-math.sin(turn), math.cos(turn)])
    near = 1.0 if float((play.at(who) - play.at(lying)) @ side) > 0 else -1.0
    # The trunk lies behind the middle of the body, towards the head.
    return play.at(lying) - heading_vector(turn) * 0.3 + near * away_m * side


def kneel_by(play: Play, who: Player, lying: Player, pace: float) -> Script:
    """Go to somebody who lies and kneel beside them."""
    play.bodies.touch(who.number, lying.number, 0.36)
    yield from move_to(play, who, compute_side_position(play, lying, who), pace, 0.2)
    play.halt(who, lying)
    play.root(who, True)
    who.eyes = lying


def select_exit(play: Play, who: Player, far: bool | None = None) -> Floats:
    """(2,) a place out of sight: behind the camera, past its side, or far down the street."""
    x, y = play.at(who).tolist()
    if far is None:
        far = x > 15.0 or play.chance(0.35)
    ground = play.ground
    if far:
        return np.array(
            [48.0, float(np.clip(y * 1.1 + play.draw(-2, 2), ground.right_m + 1, ground.left_m - 1))]
        )
    left = y > 0 if abs(y) > 1.0 else play.chance(0.5)
    room = ground.left_m if left else -ground.right_m
    side = min(max(2.6, abs(y) * 0.6), room - 0.3)
    return np.array([-6.0, side if left else -side])


def move_out_of_view(play: Play, who: Player, pace: float, goal: Floats | None = None, *doing: str) -> Script:
    """Move out of sight, and then either stay away or wait there."""
    goal = select_exit(play, who) if goal is None else goal
    play.act(who, None, *doing)
    yield from move_to(play, who, goal, pace, 0.8, 18.0)
    who.doing = ()
    if play.left_s < 25.0:
        play.bodies.here[who.number] = False
        who.away = True


def move_pushed_thing(play: Play, who: Player, thing: Thing, rolls: bool = True) -> None:
    """In this frame, have a thing right before the hands of somebody."""
    turn = float(play.bodies.heading[who.number])
    ahead = _HANDS * who.size_m[2] + thing.size_m[0] / 2 + 0.02
    thing.xy = play.at(who) + heading_vector(turn) * ahead
    thing.heading = turn
    if thing.pushed_by is None:
        thing.pushed_by = who.number
    if not rolls:
        thing.z = 0.42 * who.size_m[2]


def move_pulled_thing(play: Play, who: Player, thing: Thing) -> None:
    """In this frame, have a thing at the right hand of somebody."""
    turn = float(play.bodies.heading[who.number])
    right = np.array([math.sin(turn), -math.cos(turn)])
    thing.xy = play.at(who) + 0.36 * right - 0.16 * heading_vector(turn)
    thing.heading = turn
    if thing.pushed_by is None:
        thing.pushed_by = who.number


# Onlookers: what people do who play no scene: watch, film, phone, shout, clap, wave, chant and stroll.

_NEAR_M, _FAR_M = 2.4, 7.0
"""Between these distances from what happens onlookers like to stand."""
_POSES: Mapping[str, tuple[Pose | None, tuple[str, ...]]] = {
    "watch": (None, ("watching",)),
    "film": (Pose.FILM, ("recording",)),
    "phone": (Pose.PHONE, ("speaking/talking",)),
    "shout": (Pose.SHOUT, ("shouting",)),
    "clap": (Pose.CLAP, ("clapping",)),
    "wave": (Pose.WAVE, ("waving hands",)),
    "guard": (Pose.STAND, ("guarding",)),
    "chant": (Pose.WAVE, ("raising fist", "chanting/cheering")),
}
_ON_GUARD = {"guard": 4.0, "phone": 1.0, "stroll": 1.0}
_NOISES = {"phone": "speaking", "shout": "shouting", "clap": "clapping", "chant": "chanting/cheering"}
_BONDS = {"watch": "watching", "film": "recording", "shout": "shouting at"}


def simulate_onlooker(play: Play, who: Player, idle: Mapping[str, float]) -> Script:
    """One thing after the other, for ever."""
    chosen = _ON_GUARD if who.guard else idle
    names, shares = list(chosen), np.array(list(chosen.values()), dtype=np.float64)
    while True:
        target = _target(play, who)
        if target is not None and not _well_placed(play, who, target):
            # (2,) a free place around somebody, not between them and the camera.
            best, cost = play.at(who).copy(), np.inf
            here = play.bodies.here.copy()
            here[who.number] = False
            others = play.bodies.xy[here]
            for _ in range(12):
                turn, far = play.draw(-2.3, 2.3), play.draw(2.8, 5.0)
                point = play.at(target) + far * np.array([np.cos(turn), np.sin(turn)])
                point = play.ground.clamp(*point.tolist())
                gap = float(np.hypot(*(others - point).T).min()) if len(others) else 9.0
                way = float(np.hypot(*(point - play.at(who))))
                found = way + 8.0 * max(0.0, 1.1 - gap)
                if found < cost:
                    best, cost = point, found
            yield from _move(play, who, best)
        name = names[int(play.rng.choice(len(names), p=shares / shares.sum()))]
        if name == "stroll":
            x, y = play.draw(8.0, 18.0), play.draw(-7.0, 7.0)
            yield from _move(play, who, play.ground.clamp(x, y))
        else:
            yield from _stand(play, who, name, target)


def move_into_view(play: Play, who: Player, then: Script) -> Script:
    """Come into the image after a while: from behind the camera, or up the street.

    Args:
        play: the scene.
        who: comes.
        then: what they do when they have come.
    """
    yield from play.wait(play.draw(0.08, 0.4) * min(play.left_s, 20.0))
    ground = play.ground
    if play.chance(0.5):
        left = ground.left_m > 3.0 and (play.chance(0.5) or ground.right_m > -3.0)
        start = np.array([-2.5, 3.2 if left else -3.2])
    else:
        start = np.array([30.0, play.draw(ground.right_m + 1.0, ground.left_m - 1.0)])
    while _taken(play, start):
        yield
    play.place(who, start, 0.0 if start[0] < 0 else np.pi)
    goal = ground.clamp(play.draw(9.0, 16.0), start[1] * 1.1 + play.draw(-1.5, 1.5))
    play.act(who, None)
    yield from move_to(play, who, goal, play.draw(1.3, 2.6), 0.4, 14.0)
    yield from then


def _taken(play: Play, place: Floats) -> bool:
    """Whether somebody is where somebody else wants to come in."""
    away = play.bodies.xy[play.bodies.here] - place
    return bool((np.hypot(away[:, 0], away[:, 1]) < 0.8).any())


def _target(play: Play, who: Player) -> Player | None:
    """The nearest of those who are worth a look."""
    found = [hot for hot in play.focus if hot is not who and play.bodies.here[hot.number]]
    return min(found, key=lambda hot: (play.gap(who, hot), hot.number), default=None)


def _well_placed(play: Play, who: Player, target: Player) -> bool:
    x, y = play.at(who).tolist()
    u, v = play.at(target).tolist()
    hides = x < u - 1.0 and abs(y / max(x, 1.0) - v / max(u, 1.0)) < 0.12
    return _NEAR_M < play.gap(who, target) < _FAR_M and play.ground.in_view(x, abs(y) + 0.5) and not hides


def _move(play: Play, who: Player, goal: Floats) -> Script:
    play.act(who, None)
    who.eyes = None
    pace = play.draw(1.1, 1.8)
    for _ in move_to(play, who, goal, max(pace, WALK_MPS * 0.8), 0.4, 5.0):
        yield
        if play.chance(0.02):
            who.eyes = _target(play, who)


def _stand(play: Play, who: Player, name: str, target: Player | None) -> Script:
    """Stand for a while and do one thing, turned to whoever is worth a look; step back if they come near."""
    pose, doing = _POSES[name]
    looks_on = name != "phone"
    if target is None and name == "watch":
        pose, doing = None, ()
    play.act(who, pose, *doing)
    ahead = play.ground.clamp(11.0, 0.0)
    for _ in play.wait(play.draw(1.7, 6.0)):
        if target is not None and not play.bodies.here[target.number]:
            target = None
        to: Player | Floats = target if target is not None else ahead
        near = target is not None and play.gap(who, target) < 1.8
        if near and target is not None:
            back = play.at(who) - 1.2 * (play.at(target) - play.at(who))
            play.go(who, play.ground.clamp(*back.tolist()), 1.0, to)
        else:
            play.go(who, play.at(who), 0.0, to)
        who.eyes = to if looks_on else None
        predicate = _BONDS.get(name)
        if target is not None and predicate is not None and play.gap(who, target) < 14.0:
            play.bond(who, predicate, target)
        if name in _NOISES:
            play.noise(_NOISES[name], who)
        yield
    who.eyes = None
