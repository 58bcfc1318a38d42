"""What road users of a scene have in mind, and for whom the own vehicle brakes: truth that no table of a set holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats
from roadaware.simulator.actors import VEHICLES, Actor
from roadaware.simulator.episode import Episode

SEES_M, SEES_RAD = 40.0, 0.6
"""The own vehicle is seen by somebody on foot who is nearer than this and whose head is turned to it within this angle."""
_SAME_M, _PUSHED_M = 0.3, 1.5
"""Places of people on the road are theirs to rounding; what they push stands before them."""
GOES_MPS2 = 0.3
"""A driver whom nothing keeps from speeding up by this much goes on; less than that is the creeping of a queue."""
STANDS_MPS = 0.5
"""Below this the own vehicle counts as standing: its driver looks 12 m ahead then, past the one in front of it."""
GOALS = ("walk on", "cross", "stay")
TURNS = ("right", "straight on", "left")


@dataclass(frozen=True, eq=False)
class Culprit:
    """One cause for which the own vehicle's driver brakes, or stands.

    Args:
        kind: as of `Cause`.
        actors: numbers of actors.
        signals: numbers of traffic lights.
        binds: whether it holds the vehicle by itself; else it would as soon as those that do were gone.
    """

    kind: str
    actors: frozenset[int]
    signals: frozenset[int]
    binds: bool


@dataclass(frozen=True, eq=False)
class Culprits:
    """For whom the own vehicle's driver brakes, or stands, in a frame: often two causes at once, as a light and a person.

    Args:
        kind: of what binds the vehicle most, as of `Cause`; `line` where it slows down at a line for nobody in particular.
        causes: the one that binds most, each other that would not let it go on by itself either, and of a vehicle that stands
            those that it would stand for next, such as the light behind the vehicle in front; those with nobody in them are
            left out.
        allows: m/s2 that all together allow.
        without: m/s2 that would be allowed without any of `causes`.
    """

    kind: str
    causes: tuple[Culprit, ...]
    allows: float
    without: float

    @property
    def actors(self) -> frozenset[int]:
        """Numbers of all actors among the causes."""
        return frozenset[int]().union(*(each.actors for each in self.causes))

    @property
    def signals(self) -> frozenset[int]:
        """Numbers of all traffic lights among the causes."""
        return frozenset[int]().union(*(each.signals for each in self.causes))


def list_culprits(episode: Episode) -> list[Culprits]:
    """For whom the own vehicle brakes in each frame but the last, by its driver model; empty of staged scenes.

    A vehicle whose `allows` is below 0 brakes for its causes; one whose `without` is above `GOES_MPS2` would go on without.

    Args:
        episode: a scene of traffic.
    """
    groups: dict[int, set[int]] = {}
    for site in episode.layout.signals:
        if not site.for_walkers:
            groups.setdefault(site.group, set()).add(site.number)
    found = []
    for frame, causes in enumerate(episode.ego.causes):
        blamed, rest = [], []
        stands = bool(episode.ego.speed[frame] < STANDS_MPS)
        for place, cause in enumerate(causes):
            actors = _match_places(episode.actors, frame, cause.places)
            binds = place == 0 or cause.allows <= GOES_MPS2
            each = Culprit(cause.kind, actors, frozenset(groups.get(cause.group, ())), binds)
            if (actors or each.signals) and (binds or stands):
                blamed.append(each)
            else:
                rest.append(cause)
        tightest = causes[0]
        known = tightest.kind == "free" or tightest not in rest
        # A free road is always among the rest: nobody is to blame for it.
        kind = tightest.kind if known else "line"
        found.append(Culprits(kind, tuple(blamed), tightest.allows, rest[0].allows))
    return found


def _match_places(actors: Sequence[Actor], frame: int, places: Floats) -> frozenset[int]:
    """Numbers of those who stand where causes were noted; whoever pushes something answers for it."""
    if not len(places):
        return frozenset()
    there = [(a.number, a.position[row, :2]) for a in actors if (row := a.at(frame)) is not None]
    numbers = np.array([number for number, _ in there], np.int64)
    at = np.array([place for _, place in there]).reshape(-1, 2)
    owners = {a.with_object: a.number for a in actors if a.with_object is not None}
    found = set()
    for place in places:
        away = np.hypot(*(at - place).T) if len(at) else np.zeros(0)
        if len(away) and away.min() < _SAME_M:
            number = int(numbers[away.argmin()])
            found.add(owners.get(number, number))
            continue
        pushed = np.array([number in owners for number in numbers.tolist()], np.bool_) & (away < _PUSHED_M)
        if pushed.any():
            found.add(owners[int(numbers[np.where(pushed, away, np.inf).argmin()])])
    return frozenset(found)


def list_minds(episode: Episode) -> pl.DataFrame:
    """What everybody has in mind in every frame: a row for each road user and frame.

    Columns: `actor` and `frame`; `kind`, its agent class; `goal`, of people one of `GOALS` and of drivers one of `TURNS`
    (null where no junction lies ahead); `margin_s`, the seconds to spare that somebody on foot wants before the next vehicle
    (null of drivers); `noticed`, whether somebody on foot has turned the head to the own vehicle so far, within `SEES_M` and
    `SEES_RAD` (null of drivers, who are simulated with eyes all round); `on_road`, whether somebody on foot is on the road;
    `ahead_m` and `left_m`, where they are from the rear axle of the own vehicle.

    Args:
        episode: a scene of traffic; actors without thoughts, such as parked vehicles, are left out.
    """
    parts = []
    for actor in episode.actors:
        if actor.thoughts is None:
            continue
        n, frames = len(actor.heading), np.arange(actor.first, actor.end)
        own = episode.ego.heading[frames]
        away = actor.position[:, :2] - episode.ego.position[frames, :2]
        ahead = away[:, 0] * np.cos(own) + away[:, 1] * np.sin(own)
        left = away[:, 1] * np.cos(own) - away[:, 0] * np.sin(own)
        walks = actor.kind not in VEHICLES
        names = np.array(GOALS) if walks else np.array(TURNS)
        goal = names[actor.thoughts.goal.astype(np.int64) + (0 if walks else 1)]
        parts.append(
            pl.DataFrame(
                {
                    "actor": np.full(n, actor.number),
                    "frame": frames,
                    "kind": [actor.kind] * n,
                    "goal": pl.Series(
                        [name if known else None for name, known in zip(goal, actor.thoughts.known, strict=True)],
                        dtype=pl.String,
                    ),
                    "margin_s": pl.Series(actor.thoughts.margin_s if walks else [None] * n, dtype=pl.Float64),
                    "noticed": pl.Series(
                        has_noticed(actor, away).tolist() if walks else [None] * n, dtype=pl.Boolean
                    ),
                    "on_road": pl.Series(
                        (actor.facts["crossing"] != 0).tolist() if walks else [None] * n, dtype=pl.Boolean
                    ),
                    "ahead_m": ahead,
                    "left_m": left,
                }
            )
        )  # fmt: skip
    return pl.concat(parts) if parts else pl.DataFrame(schema=_COLUMNS)


_COLUMNS = {
    "actor": pl.Int64, "frame": pl.Int64, "kind": pl.String, "goal": pl.String, "margin_s": pl.Float64,
    "noticed": pl.Boolean, "on_road": pl.Boolean, "ahead_m": pl.Float64, "left_m": pl.Float64,
}  # fmt: skip


def has_noticed(actor: Actor, away: Floats) -> Bools:
    """(n,) whether somebody on foot has turned the head to the own vehicle so far.

    Args:
        actor: on foot.
        away: (n, 2) from the own vehicle to them, in metres of the world.
    """
    towards = np.arctan2(-away[:, 1], -away[:, 0])
    off = (actor.heading + actor.gaze - towards + np.pi) % (2 * np.pi) - np.pi
    sees = (np.abs(off) < SEES_RAD) & (np.hypot(away[:, 0], away[:, 1]) < SEES_M)
    found: Bools = np.logical_or.accumulate(sees)
    return found
