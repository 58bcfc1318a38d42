"""Right of way at junctions, the cycles of traffic lights, and yielding at zebra
crossings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.simulator.actors import Light, Signal
from roadaware.simulator.layout import Crossing, Layout
from roadaware.simulator.traffic.vehicle import Event, Leg, Net, Vehicle

GAP_S = 1.3
"""Between two who cross, when nobody is impatient."""
SIGHT_M = 60.0
LONGEST_INSIDE_M = 7.5
"""Longer vehicles wait at the line."""
LEAST_INSIDE_M = 2.0
"""Nobody drives on for less."""
INSIDE_ROOM_M = 2.5
"""Between the middles of the ways of who waits inside and who passes."""


@dataclass(eq=False)
class Hold:
    """A vehicle that may drive through a junction, or does.

    Args:
        vehicle: that drives.
        way: place of its connector.
        leg: the piece of its path.
        event: its line.
        until: metres along the way at which it waits inside for oncoming traffic; infinite once it may go on.
    """

    vehicle: Vehicle
    way: int
    leg: Leg
    event: Event
    until: float = np.inf


class Junctions:
    """Right of way at all junctions.

    Args:
        net: with the ways.
    """

    def __init__(self, net: Net) -> None:
        self.net = net
        self.held: dict[int, list[Hold]] = {j.number: [] for j in net.layout.junctions}
        self.meeting: dict[tuple[int, int, int, float], tuple[float, float, float, float] | None] = {}

    def meets(self, node: int, a: int, b: int, room_m: float) -> tuple[float, float, float, float] | None:
        """Where two ways meet: start and end on the first, start and end on the second; None where not.

        Args:
            node: number of the junction.
            a: place of the one.
            b: place of the other.
            room_m: between their middles that both vehicles need.
        """
        key = (node, a, b, room_m)
        if key not in self.meeting:
            self.meeting[key] = self._measured(*key)
        return self.meeting[key]

    def _measured(self, node: int, a: int, b: int, room_m: float) -> tuple[float, float, float, float] | None:
        ways = self.net.layout.junctions[node].connectors
        # From one lane they follow each other, which is a matter of gaps and not of right of way.
        if ways[a].start == ways[b].start:
            return None
        one, two = ways[a].line, ways[b].line
        s, t = np.arange(-1.0, one.length + 1.0, 0.5), np.arange(-1.0, two.length + 1.0, 0.5)
        p, q = one.at(np.clip(s, 0, None)), two.at(np.clip(t, 0, None))
        near = np.hypot(*(p[:, None] - q).transpose(2, 0, 1)) < room_m
        if not near.any():
            return None
        i, j = np.flatnonzero(near.any(1)), np.flatnonzero(near.any(0))
        return float(s[i[0]]), float(s[i[-1]]), float(t[j[0]]), float(t[j[-1]])

    def holds(self, vehicle: Vehicle, node: int) -> bool:
        """Whether a vehicle may drive through."""
        return any(hold.vehicle is vehicle for hold in self.held[node])

    def release(self, gone: Sequence[Vehicle]) -> None:
        """Let others in where vehicles have left."""
        for holds in self.held.values():
            holds[:] = [h for h in holds if h.vehicle.rear < h.leg.end + 0.5 and h.vehicle not in gone]

    def rank(self, vehicle: Vehicle, event: Event) -> int:
        """Priority: higher goes first."""
        leg = vehicle.path.legs[event.leg]
        far = leg.turn == self.net.inwards
        if vehicle.beacon:
            return 5
        return (0 if event.minor else 2) + (0 if far else 1)

    def ask(self, vehicle: Vehicle, event: Event, coming: Sequence[tuple[Vehicle, Event]]) -> bool:
        """Ask to drive through; nobody whose way meets this one gets in before it has left, if so.

        Args:
            vehicle: that asks.
            event: its line.
            coming: others on their ways to this junction who are not held up by a light.
        """
        leg = vehicle.path.legs[event.leg]
        if self._is_clear(vehicle, event, coming):
            self.held[event.number].append(Hold(vehicle, leg.way, leg, event))
            return True
        until = self._waiting_m(vehicle, event, coming)
        if until is None:
            return False
        self.held[event.number].append(Hold(vehicle, leg.way, leg, event, until))
        return True

    def inside(self, vehicle: Vehicle) -> Hold | None:
        """The hold of a vehicle that waits inside a junction, or is on its way to there."""
        holds = (hold for each in self.held.values() for hold in each)
        return next((hold for hold in holds if hold.vehicle is vehicle and np.isfinite(hold.until)), None)

    def proceed(self, hold: Hold, coming: Sequence[tuple[Vehicle, Event]]) -> bool:
        """Ask to go on from inside a junction: oncoming traffic goes first, everybody else waits.

        Args:
            hold: of who waits.
            coming: others on their ways to this junction who are not held up by a light.
        """
        oncoming = [
            (v, e) for v, e in coming if self._opposes(hold.event, hold.leg.way, v.path.legs[e.leg].way)
        ]
        if self._is_clear(hold.vehicle, hold.event, oncoming):
            hold.until = float(np.inf)
        return hold.until == np.inf

    def _is_clear(self, vehicle: Vehicle, event: Event, coming: Sequence[tuple[Vehicle, Event]]) -> bool:
        """Whether a vehicle can drive all through: no way that is driven meets its own, and none will."""
        leg = vehicle.path.legs[event.leg]
        for hold in self.held[event.number]:
            if hold.vehicle is vehicle:
                continue
            met = self.meets(event.number, leg.way, hold.way, _room(vehicle, hold.vehicle))
            waits = met and hold.until < met[2] and self._opposes(event, leg.way, hold.way)
            if met and not waits and hold.vehicle.rear - hold.leg.start < met[3]:
                return False
        return all(
            other is vehicle or self._may_precede(vehicle, event, other, theirs) for other, theirs in coming
        )

    def list_blockers(
        self, vehicle: Vehicle, event: Event, coming: Sequence[tuple[Vehicle, Event]]
    ) -> list[Vehicle]:
        """Those for whom a vehicle may not drive through a junction; decides nothing.

        Args:
            vehicle: that asks.
            event: its line.
            coming: others on their ways to this junction who are not held up by a light.
        """
        leg = vehicle.path.legs[event.leg]
        found = []
        for hold in self.held[event.number]:
            met = hold.vehicle is not vehicle and self.meets(
                event.number, leg.way, hold.way, _room(vehicle, hold.vehicle)
            )
            if not met or (hold.until < met[2] and self._opposes(event, leg.way, hold.way)):
                continue
            if hold.vehicle.rear - hold.leg.start < met[3]:
                found.append(hold.vehicle)
        return found + [
            other
            for other, theirs in coming
            if other is not vehicle and not self._may_precede(vehicle, event, other, theirs)
        ]

    def _waiting_m(
        self, vehicle: Vehicle, event: Event, coming: Sequence[tuple[Vehicle, Event]]
    ) -> float | None:
        """Metres into a junction at which one who turns across oncoming traffic waits; None for at the line.

        That far no way may meet its own but those of oncoming traffic, and nobody waits inside before it.
        """
        leg = vehicle.path.legs[event.leg]
        ways = self.net.layout.junctions[event.number].connectors
        if leg.turn != self.net.inwards or event.minor or vehicle.length > LONGEST_INSIDE_M:
            return None
        against = [k for k in range(len(ways)) if self._opposes(event, leg.way, k)]
        met = [self.meets(event.number, leg.way, k, INSIDE_ROOM_M) for k in against]
        until = min((each[0] for each in met if each), default=0.0) - 0.3
        held, rest = self.held[event.number], [(v, e) for v, e in coming if v is not vehicle]
        if until < LEAST_INSIDE_M or any(ways[h.way].start == ways[leg.way].start for h in held):
            return None
        for hold in held:
            crossed = self.meets(event.number, leg.way, hold.way, _room(vehicle, hold.vehicle))
            left = crossed is not None and hold.vehicle.rear - hold.leg.start >= crossed[3]
            if hold.way not in against and crossed and not left:
                return None
        others = [(v, e) for v, e in rest if v.path.legs[e.leg].way not in against]
        return until if all(self._may_precede(vehicle, event, v, e) for v, e in others) else None

    def _opposes(self, event: Event, way: int, other: int) -> bool:
        """Whether another way comes from the opposite side of a junction."""
        ways = self.net.layout.junctions[event.number].connectors
        one, two = (float(ways[k].line.heading(0.0)) for k in (way, other))
        # Within 45 degrees of head on.
        return float(np.cos(one - two)) < -0.7

    def _may_precede(self, vehicle: Vehicle, event: Event, other: Vehicle, theirs: Event) -> bool:
        """Whether a vehicle is through before another one comes, or goes first by the rules."""
        if self.rank(other, theirs) <= self.rank(vehicle, event) or (other.v < 0.5 and other.waiting_s > 1.0):
            return True
        leg, way = vehicle.path.legs[event.leg], other.path.legs[theirs.leg]
        met = self.meets(event.number, leg.way, way.way, _room(vehicle, other))
        if met is None:
            return True
        through = leg.start + met[1] - vehicle.rear
        arrives = max(way.start + met[2] - other.front, 0.0) / max(other.v, 0.5 * other.manners.speed)
        patience = min(vehicle.waiting_s / vehicle.manners.patience_s, 1.0)
        return _time(vehicle, through) + GAP_S * (1.0 - 0.5 * patience) < arrives


def _time(vehicle: Vehicle, distance: float) -> float:
    """Seconds in which it gets there as it speeds up."""
    v, a = max(vehicle.v, 0.0), 0.8 * vehicle.manners.accelerate
    most = min(vehicle.manners.speed, 7.0)
    until = max(most - v, 0.0) / a
    way = v * until + a * until**2 / 2
    if way > distance:
        return float((np.sqrt(v * v + 2 * a * distance) - v) / a)
    return until + (distance - way) / max(most, v)


def _room(a: Vehicle, b: Vehicle) -> float:
    """Metres between the middles of two ways so that both can be driven at a time."""
    room = (a.width + b.width) / 2 + 0.3
    # Rounded up to quarters of a metre: where ways meet is kept by room, and few rooms are few measurements.
    return float(np.ceil(room * 4) / 4) if max(a.length, b.length) < 7 else max(room, 2.95)


# Phases of traffic lights: which group shows what at which time.

AMBER_S, CLEAR_S, READY_S = 3.0, 1.6, 1.2
WALK_S, EMPTY_S = 5.0, 3.5
"""Walkers' green, and what they are given to leave the road."""
BLACK_SHARE = 0.12
"""Of scenes with lights, in which one is out of order."""
READY = 4
"""Red and amber together: shown as amber, but nobody starts."""


@dataclass(frozen=True)
class Cycle:
    """States of one signal group over a cycle.

    Args:
        length_s: of the cycle.
        offset_s: where in it the scene starts.
        starts: seconds in the cycle at which each phase begins.
        shows: `Light` or `READY` of each phase.
    """

    length_s: float
    offset_s: float
    starts: tuple[float, ...]
    shows: tuple[int, ...]

    def at(self, time_s: float) -> int:
        """The state of the light.

        Args:
            time_s: since the start of the scene.
        """
        place = (time_s + self.offset_s) % self.length_s
        found = self.shows[-1]
        for start, show in zip(self.starts, self.shows, strict=True):
            if start <= place:
                found = show
        return found


class Lights:
    """The traffic lights of a scene.

    Args:
        layout: with its signals.
        rng: draws phases, and which one is out of order.
    """

    def __init__(self, layout: Layout, rng: np.random.Generator) -> None:
        self.sites = layout.signals
        self.cycles: dict[int, Cycle] = {}
        own = {site.group for site in layout.signals if set(site.lanes) & set(layout.route)}
        # Groups of vehicles and of walkers of each place with lights of its own
        found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for site in layout.signals:
            key = (site.junction, -1) if site.junction >= 0 else (-1, site.crossing)
            groups = found.setdefault(key, ([], []))[1 if site.for_walkers else 0]
            if site.group not in groups:
                groups.append(site.group)
        for vehicles, walkers in list(found.values()):
            self.cycles.update(_cycles(vehicles, walkers, own, rng))
        self.black = -1
        near = [site.number for site in layout.signals if set(site.lanes) & set(layout.route)]
        draw, pick = rng.random(), rng.random()
        if near and draw < BLACK_SHARE:
            self.black = near[int(pick * min(len(near), 4))]

    def group(self, group: int, time_s: float) -> int:
        """State of a group for drivers, `READY` included; a light that is out of order has a twin.

        Args:
            group: number of it.
            time_s: since the start of the scene.
        """
        return self.cycles[group].at(time_s)

    def shown(self, time_s: float) -> npt.NDArray[np.uint8]:
        """(signals,) the `Light` of each signal.

        Args:
            time_s: since the start of the scene.
        """
        states = {group: cycle.at(time_s) for group, cycle in self.cycles.items()}
        found = [Light.AMBER if states[s.group] == READY else states[s.group] for s in self.sites]
        shown = np.array(found, dtype=np.uint8)
        if self.black >= 0:
            shown[self.black] = Light.BLACK
        return shown

    def signals(self, shown: npt.NDArray[np.uint8]) -> tuple[Signal, ...]:
        """The signals of a scene.

        Args:
            shown: (frames, signals) of each frame.
        """
        return tuple(
            Signal(
                site.number,
                np.array(site.position, dtype=np.float64),
                site.heading,
                np.ascontiguousarray(shown[:, site.number]),
                site.lanes,
                site.junction,
                site.for_walkers,
            )
            for site in self.sites
        )


def _cycles(
    vehicles: list[int], walkers: list[int], main: set[int], rng: np.random.Generator
) -> dict[int, Cycle]:
    """Greens one after the other, longer on the main road, those of walkers last."""
    green: list[tuple[int, float, float]] = []
    now = 0.0
    for group in vehicles:
        lasts = float(rng.uniform(10.0, 15.0) if group in main else rng.uniform(6.0, 9.0))
        now += READY_S
        green.append((group, now, now + lasts))
        now += lasts + AMBER_S + CLEAR_S
    if walkers:
        green += [(group, now, now + WALK_S) for group in walkers]
        now += WALK_S + EMPTY_S
    offset = float(rng.uniform(0.0, now))
    found = {}
    for group, start, end in green:
        if group in vehicles:
            starts: tuple[float, ...] = (0.0, start - READY_S, start, end, end + AMBER_S)
            shows: tuple[int, ...] = (Light.RED, READY, Light.GREEN, Light.AMBER, Light.RED)
        else:
            starts, shows = (0.0, start, end), (Light.RED, Light.GREEN, Light.RED)
        found[group] = Cycle(now, offset, starts, shows)
    return found


# Zebra crossings: who waits beside them and who walks on them, and which driver stops for whom.

SAME_M = 0.6
"""Somebody who waits moves less than this in a frame."""
KERB_M = 3.0
"""How far from the kerb one waits at a crossing."""
PATIENCE_S = 7.0
"""Drivers who stand go on when nobody has stepped out until then."""


@dataclass(frozen=True, eq=False)
class Strip:
    """People at one crossing, in its axes.

    Args:
        walking: (p,) metres to the left of the middle of the road of those on it.
        drift: (p,) their m/s to the left.
        waiting: (q,) numbers of those who wait beside it.
        walking_at: (p, 2) places of those on it.
        waiting_at: (q, 2) places of those beside it.
    """

    walking: Floats
    drift: Floats
    waiting: npt.NDArray[np.int64]
    walking_at: Floats
    waiting_at: Floats


class Zebras:
    """People at zebra crossings, frame by frame.

    Args:
        layout: with the crossings.
        rng: decides who stops for whom.
    """

    def __init__(self, layout: Layout, rng: np.random.Generator) -> None:
        self.rng = rng
        self.crossings = [c for c in layout.crossings if c.kind == "zebra"]
        roads = [layout.roads[c.road] for c in self.crossings]
        self.half = [road.half_width_m for road in roads]
        self.middle = [road.line.at(c.s_m) for c, road in zip(self.crossings, roads, strict=True)]
        self.turn = [float(road.line.heading(c.s_m)) for c, road in zip(self.crossings, roads, strict=True)]
        self.strips: dict[int, Strip] = {}
        self.waited = np.zeros((0, 2))
        self.numbers = np.zeros(0, dtype=np.int64)
        self.next = 0

    def see(self, people: Floats, velocity: Floats, waiting: Floats) -> None:
        """Look at a frame.

        Args:
            people: (p, 2) on the road.
            velocity: (p, 2) m/s.
            waiting: (q, 2) beside it.
        """
        self._recognise(waiting)
        for place, crossing in enumerate(self.crossings):
            along, left = self._axes(place, people)
            on = (np.abs(along) < crossing.width_m / 2 + 0.7) & (np.abs(left) < self.half[place] + 0.2)
            turn = self.turn[place]
            drift = velocity[:, 1] * np.cos(turn) - velocity[:, 0] * np.sin(turn)
            along, beside = self._axes(place, waiting)
            by = (np.abs(along) < crossing.width_m / 2 + 1.5) & (np.abs(beside) < self.half[place] + KERB_M)
            self.strips[crossing.number] = Strip(
                left[on], drift[on], self.numbers[by], people[on], waiting[by]
            )

    def _axes(self, place: int, points: Floats) -> tuple[Floats, Floats]:
        away = points - self.middle[place]
        c, s = np.cos(self.turn[place]), np.sin(self.turn[place])
        return away[:, 0] * c + away[:, 1] * s, away[:, 1] * c - away[:, 0] * s

    def _recognise(self, waiting: Floats) -> None:
        """Give everybody who waits a number that stays."""
        numbers = np.full(len(waiting), -1, dtype=np.int64)
        if len(waiting) and len(self.waited):
            away = np.hypot(*(waiting[:, None] - self.waited).transpose(2, 0, 1))
            nearest = away.argmin(1)
            same = away[np.arange(len(waiting)), nearest] < SAME_M
            numbers[same] = self.numbers[nearest[same]]
        # Numbers are never used again: a driver's decision must not pass to somebody who waits there later.
        fresh = np.flatnonzero(numbers < 0)
        numbers[fresh] = np.arange(self.next, self.next + len(fresh))
        self.next += len(fresh)
        self.waited, self.numbers = waiting, numbers

    def stops(self, vehicle: Vehicle, crossing: Crossing, gap: float) -> bool:
        """Whether a driver stops at a zebra crossing now.

        Args:
            vehicle: that comes.
            crossing: that it comes to.
            gap: metres to the line.
        """
        strip = self.strips.get(crossing.number)
        if strip is None:
            return False
        return bool(self._in_the_way(vehicle, crossing, strip).any()) or self._will(vehicle, strip, gap)

    def find_causes(self, vehicle: Vehicle, crossing: Crossing) -> Floats:
        """(k, 2) places of those for whom a driver stops at a zebra crossing; decides nothing."""
        strip = self.strips.get(crossing.number)
        if strip is None:
            return np.zeros((0, 2))
        let = np.array([vehicle.decisions.get(n, False) for n in strip.waiting.tolist()], dtype=np.bool_)
        on = self._in_the_way(vehicle, crossing, strip)
        return np.concatenate([strip.walking_at[on], strip.waiting_at[let]])

    def _in_the_way(self, vehicle: Vehicle, crossing: Crossing, strip: Strip) -> npt.NDArray[np.bool_]:
        """(p,) who of those on a crossing is, or will be, in the way."""
        if not len(strip.walking):
            return np.zeros(0, dtype=np.bool_)
        place = self.crossings.index(crossing)
        own = float(self._axes(place, np.array([[vehicle.x, vehicle.y]]))[1][0])
        away = strip.walking - own
        band = vehicle.width / 2 + 1.0
        nearing = away * strip.drift < 0
        slow = np.abs(strip.drift) < 0.2
        found: npt.NDArray[np.bool_] = (np.abs(away) < band) | nearing | (slow & (np.abs(away) < band + 1.5))
        return found

    def _will(self, vehicle: Vehicle, strip: Strip, gap: float) -> bool:
        """Whether the driver lets somebody who waits go first; decided once for each."""
        wanted = False
        for number in strip.waiting.tolist():
            if number not in vehicle.decisions:
                can = vehicle.v**2 / (2 * max(gap, 0.1)) < 2.8
                likely = vehicle.manners.yielding if can and not vehicle.beacon else 0.0
                vehicle.decisions[number] = bool(self.rng.random() < likely)
            wanted |= vehicle.decisions[number]
        if wanted and vehicle.v < 0.2 and vehicle.waiting_s > PATIENCE_S:
            vehicle.decisions.update(dict.fromkeys(strip.waiting.tolist(), False))
        return wanted
