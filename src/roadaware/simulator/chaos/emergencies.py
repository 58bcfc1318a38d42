"""Scenes of looting, broken queues, explosions and flight, and scenes of help, arrests and fires put out."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos.cast import (
    RUN_MPS,
    WALK_MPS,
    add_flames,
    close_in,
    compute_side_position,
    fall_down,
    find_nearest_thing,
    get_up,
    heading_vector,
    keep,
    kneel_by,
    lie_down,
    move_out_of_view,
    move_pulled_thing,
    move_pushed_thing,
    move_to,
    select_exit,
)
from roadaware.simulator.chaos.conflicts import simulate_shoves
from roadaware.simulator.chaos.play import Play, Player, Script


def simulate_looting(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody takes goods and makes off with them; who they belong to shouts and comes after."""
    thief, owner = cast[0], cast[1] if len(cast) > 1 else None
    goods = find_nearest_thing(play, spot, "suitcase", "cart", free=True)
    if goods is None:
        yield from move_to(play, thief, spot, 1.8)
        return
    goods.pushed_by = thief.number
    away = play.at(thief) - goods.xy
    turn = math.atan2(away[1], away[0])
    yield from move_to(play, thief, goods.xy + heading_vector(turn) * 0.75, 2.6, 0.2)
    play.act(thief, Pose.KNEEL, "stealing/looting", "kneeling")
    for _ in play.wait(play.draw(1.5, 2.2)):
        play.go(thief, play.at(thief), 0.0, goods.xy)
        yield
    cart = goods.kind == "cart"
    play.act(thief, Pose.PUSH_OBJECT if cart else None, "stealing/looting", "carrying")
    out = select_exit(play, thief)
    for step in range(round(12.0 * play.fps)):
        if np.hypot(*(play.at(thief) - out)) < 1.0:
            break
        play.go(thief, out, 2.0 if cart else 2.9)
        # It comes to their hands within the first moments.
        before, old = goods.xy.copy(), goods.heading
        (move_pushed_thing if cart else move_pulled_thing)(play, thief, goods)
        share = min(1.0, (step + 1) / (0.5 * play.fps))
        goods.xy = before + share * (goods.xy - before)
        goods.heading = old + share * ((goods.heading - old + math.pi) % (2 * math.pi) - math.pi)
        if owner is not None:
            _after(play, owner, thief, step / play.fps)
        yield
    thief.doing = ()
    yield from move_out_of_view(play, thief, 2.0, out)


def _after(play: Play, owner: Player, thief: Player, seconds: float) -> None:
    """Shout at a thief for a while, then run after them."""
    if seconds < 1.8:
        play.act(owner, Pose.SHOUT, "shouting")
        play.go(owner, play.at(owner), 0.0, thief)
        play.bond(owner, "shouting at", thief)
        play.noise("shouting", owner)
        return
    play.act(owner, None, "chasing")
    play.go(owner, play.at(thief), 2.5)
    if play.gap(owner, thief) < 1.6:
        keep(play, owner, thief, 1.5, 2.5)
    if float(np.hypot(*play.bodies.velocity[owner.number])) > 1.0:
        play.bond(owner, "following after", thief)


def simulate_tug_of_war(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Two want the same thing, pull it to and fro and grab each other."""
    one, other = cast[:2]
    goods = find_nearest_thing(play, spot, "suitcase", "cart", free=True)
    if goods is None:
        yield from move_to(play, one, spot, 1.6)
        return
    goods.pushed_by = one.number
    long = goods.size_m[0]
    gap = long + 2 * 0.27 * 1.7 + 0.05
    centre = goods.xy.copy()
    axis = heading_vector(goods.heading)
    for who, sign in ((one, -1.0), (other, 1.0)):
        yield from move_to(play, who, centre + axis * sign * gap / 2, 2.4, 0.2, 4.0)
        play.halt(who, centre)
    for who in (one, other):
        play.act(who, Pose.PUSH_OBJECT, "stealing/looting")
    for step, _ in enumerate(play.wait(play.draw(3.0, 5.0))):
        sway = 0.3 * math.sin(2.4 * step / play.fps)
        for who, sign in ((one, -1.0), (other, 1.0)):
            play.go(who, centre + axis * (sign * gap / 2 + sway), 1.2, centre)
        goods.xy = (play.at(one) + play.at(other)) / 2
        play.bond(one, "grabbing", other)
        play.bond(other, "pulling", one)
        play.noise("shouting", one)
        yield
    goods.pushed_by = None
    yield from simulate_shoves(play, one, other)


def simulate_queue(play: Play, cast: list[Player], spot: Floats) -> Script:
    """People stand in line; one pushes in, those behind complain."""
    line, late = cast[:-1], cast[-1]
    turn = math.pi / 2 if spot[1] < 0 else -math.pi / 2
    head = spot - heading_vector(turn) * 0.45 * (len(line) - 1) * -1.0
    places = [head - heading_vector(turn) * 0.95 * k for k in range(len(line))]
    for _ in range(round(3.0 * play.fps)):
        off = [float(np.hypot(*(play.at(who) - place))) for who, place in zip(line, places, strict=True)]
        if max(off) < 0.3:
            break
        _stand_in_line(play, line, places, turn)
        yield
    for _ in play.wait(play.draw(0.5, 1.5)):
        _stand_in_line(play, line, places, turn)
        yield
    while play.left_s > 0.3:
        victim = int(play.rng.integers(0, max(1, len(line) - 1)))
        yield from _pushing_in(play, line, late, victim, places, turn)
        line[victim], late = late, line[victim]
        play.act(line[victim], None)


def _pushing_in(
    play: Play, line: list[Player], late: Player, victim: int, places: list[Floats], turn: float
) -> Script:
    """One comes from the side, shoves somebody out of the line and takes their place."""
    pushed = line[victim]
    side = np.array([-math.sin(turn), math.cos(turn)]) * (-1.0 if math.sin(turn) > 0 else 1.0)
    rest = [who for who in line if who is not pushed]
    spots = [place for k, place in enumerate(places) if k != victim]
    play.act(late, None)
    for _ in move_to(play, late, places[victim] - side * 0.8, 2.2, 0.3, 5.0):
        _stand_in_line(play, line, places, turn)
        yield
    complains = [_complaint(play, who, late) for who in rest[victim : victim + 3]]
    play.act(late, Pose.SHOVE, "pushing")
    play.act(pushed, Pose.FLINCH, "retreating")
    for _ in play.wait(play.draw(1.6, 2.2)):
        play.go(pushed, places[victim] + side * 1.5, 0.8, late)
        keep(play, late, pushed, 0.72)
        play.bond(late, "pushing", pushed)
        play.noise("shouting", pushed)
        _stand_in_line(play, rest, spots, turn)
        for one in complains:
            next(one)
        yield
    play.act(late, None)
    play.act(pushed, Pose.ARGUE, "arguing")
    for _ in play.wait(play.draw(2.0, 4.0)):
        play.go(late, places[victim], 1.2, pushed)
        play.go(pushed, play.at(pushed), 0.0, late)
        play.bond(pushed, "arguing with", late)
        play.noise("arguing", pushed)
        _stand_in_line(play, rest, spots, turn)
        for one in complains:
            next(one)
        yield
    for who in (pushed, *rest):
        play.act(who, None)
        who.eyes = None


def _stand_in_line(play: Play, line: list[Player], places: list[Floats], turn: float) -> None:
    for who, place in zip(line, places, strict=True):
        away = float(np.hypot(*(play.at(who) - place)))
        play.go(who, place, WALK_MPS, None if away > 0.4 else play.at(who) + heading_vector(turn))


def _complaint(play: Play, who: Player, target: Player) -> Script:
    """What those in line do when somebody pushes in."""
    while True:
        kind = play.draw(0.0, 1.0)
        if kind < 0.35:
            play.act(who, Pose.SHOUT, "shouting")
        elif kind < 0.6:
            play.act(who, Pose.WAVE, "waving hands")
        elif kind < 0.75:
            play.act(who, Pose.FILM, "recording")
        else:
            play.act(who, None, "watching")
        predicate = {Pose.SHOUT: "shouting at", Pose.FILM: "recording", Pose.WAVE: ""}.get(
            who.pose or Pose.STAND, "watching"
        )
        who.eyes = target
        for _ in play.wait(play.draw(1.6, 3.0)):
            if predicate:
                play.bond(who, predicate, target)
            if who.pose == Pose.SHOUT:
                play.noise("shouting", who)
            yield


def simulate_fleeing(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Several run together, out of the image; some drag suitcases along."""
    goods = {}
    for who in cast:
        thing = find_nearest_thing(play, play.at(who), "suitcase", free=True)
        if thing is not None and np.hypot(*(thing.xy - play.at(who))) < 2.5:
            thing.pushed_by = who.number
            goods[who.number] = thing
    far = float(np.mean([play.at(who)[0] for who in cast])) > 15.5 and play.chance(0.3)
    outs = [select_exit(play, who, far) for who in cast]
    paces = [play.draw(2.9, 3.9) - (0.5 if who.number in goods else 0.0) for who in cast]
    for who in cast:
        play.act(who, None, *(("carrying",) if who.number in goods else ()))
    gone: set[int] = set()
    for _ in range(round(14.0 * play.fps)):
        for who, out, pace in zip(cast, outs, paces, strict=True):
            if np.hypot(*(play.at(who) - out)) < 1.2:
                gone.add(who.number)
                play.halt(who)
                who.doing = ()
                continue
            play.go(who, out, pace)
            if who.number in goods:
                move_pulled_thing(play, who, goods[who.number])
        # Note who runs with whom: those near each other at the same pace
        runners = [who for who in cast if who.number not in gone]
        for one, other in pairwise(runners):
            pace = np.hypot(*play.bodies.velocity[[one.number, other.number]].T)
            if play.gap(one, other) < 3.5 and float(pace.min()) > 2.0:
                play.bond(one, "running with", other)
                play.bond(other, "running with", one)
        if len(gone) == len(cast):
            break
        yield
    for who in cast:
        yield from move_out_of_view(play, who, 2.0, play.at(who).copy())


def simulate_panic(play: Play, cast: list[Player], spot: Floats) -> Script:
    """People duck before what happened, back off, and run; who is far away may film it."""
    near = min(float(np.hypot(*(play.at(who) - spot))) for who in cast)
    for who in cast:
        play.act(who, Pose.FLINCH, "retreating")
    for _ in play.wait(play.draw(1.5, 2.0)):
        for who in cast:
            back = play.at(who) + heading_vector(play.bearing(who, spot) + math.pi) * 0.8
            play.go(who, play.ground.clamp(*back.tolist()), 0.9, spot)
        yield
    if near < 8.0 or play.chance(0.7):
        yield from simulate_fleeing(play, cast, spot)
        return
    for who in cast:
        play.act(who, Pose.FILM, "recording")
    for _ in play.wait(play.draw(2.0, 5.0)):
        for who in cast:
            play.go(who, play.at(who), 0.0, spot)
        yield


def simulate_knockdown(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody is thrown to the ground, lies there, and after a while gets on their knees."""
    who = cast[0]
    yield from fall_down(play, who, play.bearing(who, spot) + play.draw(-0.6, 0.6))
    for _ in play.wait(play.draw(4.0, 8.0)):
        play.noise("crying", who)
        yield
    yield from get_up(play, who)
    yield from move_out_of_view(play, who, WALK_MPS)


def simulate_explosion(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Something blows up in the street: flames, a bang, and things that burn."""
    del cast
    yield from play.wait(min(play.draw(1.8, 3.2), max(0.1, play.left_s * 0.3)))
    play.alarm = spot
    fires = [add_flames(play, None, spot, 2.6)]
    turn = play.draw(0.0, 6.28)
    for k in range(3):
        at = spot + heading_vector(turn + 2.1 * k) * play.draw(0.7, 1.5)
        fires.append(add_flames(play, None, at, play.draw(0.5, 1.1)))
    for step, _ in enumerate(play.wait(max(0.2, play.left_s))):
        if step < 1.2 * play.fps:
            play.noise("explosion", fires[0])
        else:
            play.noise("sizzling", fires[0])
        # The ball of fire falls together after a moment.
        if step == round(1.4 * play.fps):
            fires[0].here = False
            fires.insert(0, add_flames(play, None, spot, 1.5))
        yield


# Rescues: scenes of help for who lies injured, of arrests, and of fires that are put out.

_LIFT_M = 0.72
_CARRY_MPS = 0.75
_CARRIER_M = 1.12
"""From the middle of who is carried to each of those who carry."""


def simulate_rescue(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody lies injured; one comes and kneels beside them; two carry them away."""
    hurt, helper = cast[:2]
    lie_down(play, hurt, play.draw(-0.5, 0.5) + (math.pi / 2 if play.chance(0.5) else -math.pi / 2))
    for _ in _coming(play, helper, hurt):
        yield
    yield from _treat_injured(play, helper, hurt)
    if len(cast) == 2 and play.chance(0.5):
        yield from help_up(play, helper, hurt)
    elif len(cast) > 2 and play.left_s > 3.0:
        yield from simulate_carrying(play, cast, spot)
    else:
        while play.left_s > 0.2:
            yield from _treat_injured(play, helper, hurt)


def _coming(play: Play, helper: Player, hurt: Player) -> Script:
    for _ in kneel_by(play, helper, hurt, RUN_MPS * 0.85):
        if play.gap(helper, hurt) > 1.6 and float(np.hypot(*play.bodies.velocity[helper.number])) > 1.5:
            play.bond(helper, "running towards", hurt)
        play.noise("crying", hurt)
        yield


def _treat_injured(play: Play, helper: Player, hurt: Player) -> Script:
    """Kneel beside somebody, hands on them, now and then calling for help."""
    play.act(helper, Pose.KNEEL, "kneeling")
    for _ in play.wait(play.draw(2.2, 4.5)):
        play.halt(helper, hurt)
        play.bond(helper, "holding onto", hurt)
        play.noise("crying", hurt)
        yield
    if play.chance(0.5):
        play.act(helper, Pose.SHOUT, "shouting")
        for _ in play.wait(1.6):
            play.go(helper, play.at(helper), 0.0, np.array([0.0, 0.0]))
            play.noise("shouting for help", helper)
            yield
        play.act(helper, Pose.KNEEL, "kneeling")


def help_up(play: Play, helper: Player, hurt: Player) -> Script:
    """One pulls another one who lies to their feet, and leads them away."""
    play.act(helper, Pose.PUSH_OBJECT, "walking")
    play.bodies.touch(helper.number, hurt.number, 0.5)
    for _ in get_up(play, hurt):
        play.halt(helper, hurt)
        play.bond(helper, "pulling", hurt)
        yield
    play.root(helper, False)
    helper.eyes = None
    play.act(helper, None)
    goal = select_exit(play, hurt)
    for _ in range(round(min(8.0, max(0.2, play.left_s)) * play.fps)):
        play.go(hurt, goal, 0.8)
        side = heading_vector(play.bearing(hurt, goal) + math.pi / 2)
        play.go(helper, play.at(hurt) + 0.6 * side, 1.3)
        play.bond(helper, "holding onto", hurt)
        yield


def simulate_carrying(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Two lift somebody who lies and carry them down the street."""
    hurt, front, back = cast[:3]
    turn = float(play.bodies.heading[hurt.number])
    play.act(front, None)
    play.act(back, None)
    for who, sign in ((front, 1.0), (back, -1.0)):
        play.bodies.touch(who.number, hurt.number, 0.3)
        play.root(who, False)
        who.eyes = None
        # Round the body, not across it.
        clear = compute_side_position(play, hurt, who, 1.0) + heading_vector(turn) * 1.3 * sign
        yield from move_to(play, who, clear, 2.4, 0.4, 4.0)
        yield from move_to(
            play, who, play.at(hurt) + heading_vector(turn) * _CARRIER_M * sign, 1.5, 0.12, 3.0
        )
        play.halt(who, hurt)
    play.act(front, Pose.PUSH_OBJECT, "carrying casualty")
    play.act(back, Pose.PUSH_OBJECT, "carrying casualty")
    for who in (front, back):
        play.root(who, True)
    xy = play.at(hurt).copy()
    for _ in range(round(min(7.5, play.left_s) * play.fps)):
        ready = _take_hold(play, hurt, front, back, turn)
        hurt.lift = min(_LIFT_M, hurt.lift + 0.6 / play.fps) if ready else hurt.lift
        if hurt.lift == _LIFT_M and _clear(play, xy + 2.0 * heading_vector(turn), cast):
            xy = xy + heading_vector(turn) * _CARRY_MPS / play.fps
        play.bodies.xy[hurt.number] = xy
        for who in (front, back) if ready else ():
            play.bond(who, "holding onto", hurt)
        play.noise("crying", hurt)
        yield
    while hurt.lift > play.level:
        hurt.lift = max(play.level, hurt.lift - 0.6 / play.fps)
        yield
    for who in (front, back):
        play.root(who, False)
        play.act(who, None)
    while play.left_s > 0.2:
        yield from kneel_by(play, front, hurt, 1.2)
        yield from _treat_injured(play, front, hurt)


def _take_hold(play: Play, hurt: Player, front: Player, back: Player, turn: float) -> bool:
    """Bring two to head and feet of somebody, by small steps; whether they are there."""
    most, there = 1.6 / play.fps, True
    for who, sign in ((front, 1.0), (back, -1.0)):
        off = play.at(hurt) + heading_vector(turn) * _CARRIER_M * sign - play.at(who)
        away = float(np.hypot(*off))
        play.bodies.xy[who.number] = play.at(who) + off * min(1.0, most / max(away, 1e-9))
        play.go(who, play.at(who).copy(), 0.0, hurt)
        there = there and away < 0.15
    return there


def _clear(play: Play, ahead: Floats, cast: list[Player]) -> bool:
    """Whether nobody else and no edge is where somebody is carried to."""
    low, high = play.ground.reach(float(ahead[0]), 0.3)
    if not (low < ahead[1] < high and 5.5 < ahead[0] < 24.0):
        return False
    others = [who.number for who in play.players if who not in cast and play.bodies.here[who.number]]
    away = play.bodies.xy[others] - ahead
    return not bool((np.hypot(away[:, 0], away[:, 1]) < 0.8).any())


def simulate_arrest(play: Play, cast: list[Player], spot: Floats) -> Script:
    """The police run to somebody who is on the loose, bring them down and pin them to the ground."""
    officer, wanted = cast[:2]
    play.act(wanted, Pose.SHOUT, "shouting")
    play.halt(wanted, officer)
    for _ in close_in(play, officer, wanted, 0.8, RUN_MPS):
        if play.gap(officer, wanted) > 1.8 and float(np.hypot(*play.bodies.velocity[officer.number])) > 1.5:
            play.bond(officer, "running towards", wanted)
        play.noise("shouting", wanted)
        yield
    if play.gap(officer, wanted) > 1.5:
        return
    play.act(officer, Pose.PUSH_OBJECT, "arresting")
    play.act(wanted, Pose.FLINCH)
    for _ in play.wait(1.6):
        play.halt(officer, wanted)
        play.halt(wanted, officer)
        play.bond(officer, "grabbing", wanted)
        play.bond(officer, "arresting", wanted)
        yield
    lie_down(play, wanted, play.bearing(officer, wanted) + 0.5 * math.pi)
    play.act(wanted, Pose.LIE)
    for _ in kneel_by(play, officer, wanted, 1.2):
        play.bond(officer, "arresting", wanted)
        yield
    play.act(officer, Pose.KNEEL, "pinning", "arresting", "kneeling")
    for _ in play.wait(max(2.0, play.left_s)):
        play.bond(officer, "arresting", wanted)
        play.bond(officer, "holding onto", wanted)
        play.noise("shouting", wanted)
        yield


def simulate_fire_fighting(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody runs up to a fire and puts it out."""
    who = cast[0]
    fires = [thing for thing in play.things if thing.model == "fire" and thing.here]
    if not fires:
        yield from move_to(play, who, spot, 1.4)
        return
    fire = min(fires, key=lambda thing: float(np.hypot(*(thing.xy - play.at(who)))))
    away = play.at(who) - fire.xy
    turn = math.atan2(away[1], away[0])
    yield from move_to(play, who, fire.xy + heading_vector(turn) * 1.5, RUN_MPS * 0.9, 0.3)
    play.act(who, Pose.PUSH_OBJECT, "extinguishing fire")
    for _ in play.wait(play.draw(3.0, 5.0)):
        play.go(who, play.at(who), 0.0, fire.xy)
        play.noise("sizzling", fire)
        yield
    fire.here = False
    play.act(who, Pose.WAVE, "waving hands")
    for _ in play.wait(play.draw(1.6, 3.0)):
        play.go(who, play.at(who), 0.0, np.array([0.0, 0.0]))
        yield


def call_help(play: Play, cast: list[Player], spot: Floats) -> Script:
    """Somebody stops near a fire or wreck and phones, then waves for help."""
    who = cast[0]
    yield from move_to(play, who, spot, 1.6)
    thing = find_nearest_thing(play, spot, "debris", "dustbin", "EmVeh")
    play.act(who, Pose.PHONE, "speaking/talking")
    for _ in play.wait(play.draw(2.5, 5.0)):
        play.go(who, play.at(who), 0.0, thing.xy if thing is not None else np.array([0.0, 0.0]))
        play.noise("speaking", who)
        yield
    play.act(who, Pose.WAVE, "waving hands")
    for _ in play.wait(play.draw(1.6, 3.0)):
        play.go(who, play.at(who), 0.0, np.array([0.0, 0.0]))
        play.noise("shouting for help", who)
        yield
