"""Deeds: which of ROAD's actions somebody does in each frame, by the definitions of its table 12."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Ints
from roadaware.simulator.actors import Actor, Lamp, Pose
from roadaware.simulator.town import On, Where
from roadaware.simulator.truth.places import View, fill_short_gaps, filter_short_runs
from roadaware.simulator.truth.terms import ACTIONS

STILL_MPS = 0.3
_BRAKING_MPS2 = 0.3
_STEADY_S = 0.25
_BLINK_S = 0.6
"""Indicators that are dark for no longer than this still blink."""
_ACROSS = np.tan(np.radians(60.0))
"""Who moves more than so much sideways for each metre along moves across."""
_CODE = {name: code for code, name in enumerate(ACTIONS)}
_STREET = (On.ROAD, On.JUNCTION, On.CROSSING, On.PARKING)


def label_actions(
    actor: Actor, view: View, where: Where, along: npt.NDArray[np.float64], fps: float
) -> Bools:
    """(n, 23) which actions an actor does in each of its rows.

    One of them is how it moves; braking, indicating, hazard lights and pushing an object come on top.

    Args:
        actor: of the scene.
        view: of it.
        where: what lies under it.
        along: (n,) direction of the traffic where it is, in radians.
        fps: frames per second.
    """
    moves = (
        _on_foot(actor, view, where, along) if actor.kind == "Ped" else _driving(actor, view, where, along)
    )
    # Before lamps are added: they blink, and have a filter of their own.
    moves = filter_short_runs(moves, max(1, round(_STEADY_S * fps)))
    found = moves[:, None] == np.arange(len(ACTIONS))
    if actor.kind == "Ped":
        found[:, _CODE["PushObj"]] = _fact(actor, "pushing") != 0
        found[:, _CODE["PushObj"]] |= actor.pose == Pose.PUSH_OBJECT
    else:
        _lamps(found, actor, view, fps)
    done: Bools = found
    return done


def _on_foot(actor: Actor, view: View, where: Where, along: npt.NDArray[np.float64]) -> Ints:
    still = np.abs(actor.speed) < STILL_MPS
    moves = np.where(still, _CODE["Stop"], _passing(view, along))
    waits = (_fact(actor, "waiting") != 0) & still
    moves[waits] = _CODE["Wait2X"]
    crosses = _crossing(actor, where)
    done: Ints = np.where(crosses, _from_side(actor, view, crosses), moves)
    return done


def _driving(actor: Actor, view: View, where: Where, along: npt.NDArray[np.float64]) -> Ints:
    turning, shifting = _fact(actor, "turning"), _fact(actor, "shifting")
    moves = _passing(view, along)
    junction = np.isin(where.on, (On.JUNCTION, On.CROSSING)) & (where.junction >= 0)
    across = junction & (np.abs(view.leftward) > np.abs(view.forward))
    moves[across] = np.where(view.leftward[across] < 0, _CODE["XingFmLft"], _CODE["XingFmRht"])
    crosses = _fact(actor, "crossing") != 0
    if actor.kind == "Cyc" and crosses.any():
        moves = np.where(crosses, _from_side(actor, view, crosses), moves)
    # Later ones win: who stands neither turns nor overtakes, whatever was begun.
    for flag, name in (
        (turning > 0, "TurLft"),
        (turning < 0, "TurRht"),
        (shifting > 0, "MovLft"),
        (shifting < 0, "MovRht"),
        (_fact(actor, "overtaking") != 0, "Ovtak"),
        (actor.speed < -STILL_MPS / 2, "Rev"),
        (np.abs(actor.speed) < STILL_MPS / 2, "Stop"),
    ):
        moves[flag] = _CODE[name]
    return moves


def _passing(view: View, along: npt.NDArray[np.float64]) -> Ints:
    """(n,) moving away, towards, or across the flow of traffic."""
    forth = view.velocity[:, 0] * np.cos(along) + view.velocity[:, 1] * np.sin(along)
    across = view.velocity[:, 1] * np.cos(along) - view.velocity[:, 0] * np.sin(along)
    moves = np.where(view.away > 0, _CODE["MovAway"], _CODE["MovTow"])
    moves[np.abs(across) > _ACROSS * np.abs(forth)] = _CODE["Mov"]
    return moves.astype(np.int64)


def _crossing(actor: Actor, where: Where) -> Bools:
    on: Bools = np.isin(where.on, _STREET) & (where.height_m == 0) & (np.abs(actor.speed) >= STILL_MPS)
    if "crossing" in actor.facts:
        on = np.asarray(_fact(actor, "crossing") != 0)
    return on


def _from_side(actor: Actor, view: View, crosses: Bools) -> Ints:
    """(n,) from which side a road is crossed, by where each crossing leads; `Xing` across a side road."""
    found = np.full(len(crosses), _CODE["Xing"], dtype=np.int64)
    starts = np.flatnonzero(crosses & ~np.append(False, crosses[:-1]))
    ends = np.flatnonzero(crosses & ~np.append(crosses[1:], False)) + 1
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        way = actor.position[end - 1, :2] - actor.position[start, :2]
        # Too short a way to tell a direction: where the body points.
        if np.hypot(*way) < 0.5:
            way = np.array([np.cos(actor.heading[start]), np.sin(actor.heading[start])])
        heading = view.heading[start:end]
        forth = way[0] * np.cos(heading) + way[1] * np.sin(heading)
        left = way[1] * np.cos(heading) - way[0] * np.sin(heading)
        side = np.where(left < 0, _CODE["XingFmLft"], _CODE["XingFmRht"])
        found[start:end] = np.where(np.abs(left) >= np.abs(forth), side, _CODE["Xing"])
    return found


def _lamps(found: Bools, actor: Actor, view: View, fps: float) -> None:
    """Braking, where the rear lamps can be seen; indicators also in the dark moments between two flashes.

    Cyclists have no indicators: they hold out an arm.
    """
    if actor.kind == "Cyc":
        found[:, _CODE["IncatLft"]] = _fact(actor, "signals") == 1
        found[:, _CODE["IncatRht"]] = _fact(actor, "signals") == -1
        return
    lamps = actor.lamps
    slower = np.gradient(actor.speed) * fps < -_BRAKING_MPS2 if len(actor.speed) > 1 else lamps < 0
    found[:, _CODE["Brake"]] = (lamps & Lamp.BRAKE > 0) & (actor.speed > STILL_MPS) & slower & view.faces_away
    gap = max(1, round(_BLINK_S * fps))
    both = fill_short_gaps((lamps & Lamp.LEFT > 0) & (lamps & Lamp.RIGHT > 0), gap)
    found[:, _CODE["HazLit"]] = both
    found[:, _CODE["IncatLft"]] = fill_short_gaps(lamps & Lamp.LEFT > 0, gap) & ~both
    found[:, _CODE["IncatRht"]] = fill_short_gaps(lamps & Lamp.RIGHT > 0, gap) & ~both


def _fact(actor: Actor, name: str) -> npt.NDArray[np.int8]:
    """(n,) what the behaviour knows, 0 where it knows nothing."""
    held = actor.facts.get(name)
    return np.zeros(len(actor.heading), dtype=np.int8) if held is None else held
