"""States: what somebody on foot is up to, and where they are going."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from roadaware.scenes.simulator.walkers.persons import Person, Start
from roadaware.scenes.simulator.walkers.places import Place

AT_KERB_M = 0.35
"""From the kerb to the middle of somebody who waits."""
PUSHER_M = 1.05
"""By how much farther back those wait who push something, which stays on the pavement."""


class Stage(IntEnum):
    """What somebody does."""

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
    """Somebody with what changes about their mind.

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


def built_out(place: Place) -> bool:
    """Whether the pavement reaches into the road on either side of a place."""
    return place.near_m > 0.0 or place.far_m > 0.0


def aim(walker: Walker, place: Place, stray: float) -> None:
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
