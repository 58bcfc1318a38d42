"""Vehicle: one that moves, its path with lines to stop at and limits of bends, and what it is about to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.figures.models import MODELS, sample_model_size
from roadaware.simulator.layout import Lane, Layout

STEP_M = 0.5
LEAD_M = 20.0
"""A path goes straight on before its start and after its end."""
SIDEWAYS = 2.2
"""m/s2 that drivers take in bends."""
EASE = 1.5
"""m/s2 with which they slow down for them."""


@dataclass(frozen=True)
class Leg:
    """A piece of a path: a lane, or a way through a junction.

    Args:
        lane: number of the lane; -1 in a junction.
        junction: number of the junction; -1 on a lane.
        way: place of the connector among those of the junction.
        turn: 1 left, -1 right, 0 straight.
        start: along the path, metres.
        end: along the path, metres.
    """

    lane: int
    junction: int
    way: int
    turn: int
    start: float
    end: float


@dataclass(frozen=True)
class Event:
    """A line on a path where one may have to stop.

    Args:
        kind: junction, zebra, lights or bay.
        s: of the line along the path, metres.
        number: of the junction, crossing or lane.
        group: of the traffic lights that hold there; -1 for none.
        leg: place of the leg behind the line, for a junction.
        minor: whether one gives way.
    """

    kind: str
    s: float
    number: int
    group: int = -1
    leg: int = -1
    minor: bool = False


@dataclass(frozen=True, eq=False)
class Path:
    """One line to drive along.

    Args:
        table: (n, 3) x, y and heading every `STEP_M`, from `LEAD_M` before the start.
        fastest: (n,) m/s that bends allow, brought forward to where one must slow down.
        legs: pieces in order.
        events: lines in order.
    """

    table: Floats
    fastest: Floats
    legs: tuple[Leg, ...]
    events: tuple[Event, ...]

    @property
    def end(self) -> float:
        """Where its last leg ends, in metres."""
        return self.legs[-1].end

    def at(self, s: float) -> tuple[float, float, float]:
        """x, y and heading at a length.

        Args:
            s: metres.
        """
        # Below the last row, so that there is always a next one to interpolate to.
        place = min(max((s + LEAD_M) / STEP_M, 0.0), len(self.table) - 1.001)
        row = int(place)
        share = place - row
        low, high = self.table[row], self.table[row + 1]
        x, y, heading = (low + share * (high - low)).tolist()
        beyond = (s + LEAD_M) - place * STEP_M
        if abs(beyond) > 0.01:
            x, y = x + beyond * np.cos(heading), y + beyond * np.sin(heading)
        return x, y, heading

    def many(self, s: Floats) -> Floats:
        """(n, 3) x, y and heading at lengths, held within the path's samples.

        Args:
            s: (n,) metres.
        """
        place = np.clip((s + LEAD_M) / STEP_M, 0.0, len(self.table) - 1.001)
        rows = place.astype(np.int64)
        low = self.table[rows]
        found: Floats = low + (place - rows)[:, None] * (self.table[rows + 1] - low)
        return found

    def limit(self, s: float) -> float:
        """m/s that bends allow at a length.

        Args:
            s: metres.
        """
        return float(self.fastest[min(max(int((s + LEAD_M) / STEP_M), 0), len(self.fastest) - 1)])

    def leg_at(self, s: float) -> int:
        """Place of the leg at a length.

        Args:
            s: metres.
        """
        for place, leg in enumerate(self.legs):
            if s < leg.end:
                return place
        return len(self.legs) - 1


def sample_path(points: Floats) -> tuple[Floats, Floats]:
    """(n, 3) the table and (n,) the speed limits of a path through points.

    Args:
        points: (m, 2) with no two alike in a row.
    """
    steps = np.hypot(*np.diff(points, axis=0).T)
    s = np.concatenate([[0.0], np.cumsum(steps)])
    first = (points[0] - points[1]) / steps[0]
    last = (points[-1] - points[-2]) / steps[-1]
    s = np.concatenate([[-LEAD_M], s, [s[-1] + 4 * LEAD_M]])
    points = np.concatenate([[points[0] + LEAD_M * first], points, [points[-1] + 4 * LEAD_M * last]])
    places = np.arange(-LEAD_M, s[-1], STEP_M)
    xy = np.stack([np.interp(places, s, points[:, axis]) for axis in (0, 1)], axis=1)
    along = np.gradient(xy, axis=0)
    # Unwrapped before it is smoothed and interpolated: the mean of 179 and -179 degrees is not 0.
    heading = np.unwrap(np.arctan2(along[:, 1], along[:, 0]))
    heading = _smooth(heading, 3)
    bend = np.abs(_smooth(np.gradient(heading, STEP_M), 5))
    # v^2 * bend is the acceleration sideways; the bounds are for straight lines and for corners of a polygon.
    limit = np.clip(np.sqrt(SIDEWAYS / np.maximum(bend, 1e-6)), 2.5, 60.0)
    # v^2 falls by 2 a s on the way: the least of what lies ahead, taken from the end, is how fast one may be.
    ahead = limit**2 + 2 * EASE * places
    fastest = np.sqrt(np.minimum.accumulate(ahead[::-1])[::-1] - 2 * EASE * places)
    return np.column_stack([xy, heading]), fastest


def _smooth(values: Floats, width: int) -> Floats:
    """The mean over neighbours, ends kept."""
    padded = np.pad(values, width // 2, mode="edge")
    found: Floats = np.convolve(padded, np.full(width, 1.0 / width), mode="valid")
    return found


# Net: lanes and ways of a layout as a graph, with the lines to stop at, out of which paths are made.

TURN = {"straight": 0, "left": 1, "right": -1}
ZEBRA_GAP_M, LIGHTS_GAP_M, JUNCTION_GAP_M = 1.2, 1.8, 0.5
"""From a crossing or junction to the line where one stops."""
WAYS = {0: 0.7, 1: 0.2, -1: 0.2}
"""How much drivers like to go straight on, left and right."""

Step = tuple[int, int, int]
"""A lane number and what follows it: junction and place of the connector, or -1 and -1 at the end."""


class Net:
    """Lanes and ways, and how they hang together.

    Args:
        layout: roads.
        inwards: 1 where the middle of the road lies to the left of traffic, -1 to the right.
    """

    def __init__(self, layout: Layout, inwards: int) -> None:
        self.layout = layout
        self.inwards = inwards
        self.out: dict[int, list[tuple[int, int]]] = {lane.number: [] for lane in layout.lanes}
        for junction in layout.junctions:
            for place, way in enumerate(junction.connectors):
                self.out[way.start].append((junction.number, place))
        self.groups: dict[int, int] = {}
        self.crossing_groups: dict[int, int] = {}
        for site in layout.signals:
            if site.for_walkers or not site.lanes:
                continue
            if site.crossing >= 0:
                self.crossing_groups[site.crossing] = site.group
            else:
                self.groups.update(dict.fromkeys(site.lanes, site.group))
        self.lines = {lane.number: self._lines(lane) for lane in layout.lanes}

    def _lines(self, lane: Lane) -> list[Event]:
        """The lines on a lane by length, except the one at its end."""
        found: list[Event] = []
        if lane.kind not in ("vehicle", "bus", "cycle"):
            return found
        road = self.layout.roads[lane.road]
        for crossing in self.layout.crossings:
            if crossing.road != road.number:
                continue
            middle = float(lane.line.project(road.line.at(crossing.s_m)[None])[0][0])
            group = self.crossing_groups.get(crossing.number, -1)
            if crossing.kind == "zebra":
                line = middle - crossing.width_m / 2 - ZEBRA_GAP_M
                found.append(Event("zebra", line, crossing.number))
            elif group >= 0:
                line = middle - crossing.width_m / 2 - LIGHTS_GAP_M
                found.append(Event("lights", line, crossing.number, group))
        found += [Event("bay", end - 1.0, lane.number) for _, end in lane.bays]
        return sorted(found, key=lambda event: event.s)

    def path(self, steps: Sequence[Step]) -> Path:
        """The path through lanes and ways.

        Args:
            steps: at least one.
        """
        legs: list[Leg] = []
        events: list[Event] = []
        pieces: list[Floats] = []
        done = 0.0
        for number, node, way in steps:
            lane = self.layout.lanes[number]
            legs.append(Leg(number, -1, -1, 0, done, done + lane.line.length))
            events += [
                Event(e.kind, done + e.s, e.number, e.group) for e in self.lines[number] if done + e.s > -5.0
            ]
            pieces.append(lane.line.points)
            done += lane.line.length
            if node >= 0:
                junction = self.layout.junctions[node]
                join = junction.connectors[way]
                line = done - lane.line.length + junction.stops.get(number, lane.line.length - JUNCTION_GAP_M)
                group = self.groups.get(number, -1)
                minor = group < 0 and number in junction.stops
                events.append(Event("junction", line, node, group, len(legs), minor))
                legs.append(Leg(-1, node, way, TURN[join.turn], done, done + join.line.length))
                pieces.append(join.line.points)
                done += join.line.length
        # Lines one after the other, without points that repeat
        points = np.concatenate(pieces)
        keep = np.concatenate([[True], np.hypot(*np.diff(points, axis=0).T) > 1e-3])
        found: Floats = points[keep]
        table, fastest = sample_path(found)
        events.sort(key=lambda event: event.s)
        return Path(table, fastest, tuple(legs), tuple(events))

    def wander(
        self, lane: int, rng: np.random.Generator, length_m: float, straight: bool = False
    ) -> list[Step]:
        """Lanes and ways from a lane on, by chance.

        Args:
            lane: number of the first.
            rng: draws the ways.
            length_m: of lanes and ways, at least, where the net goes on.
            straight: whether to turn only where there is no other way.
        """
        steps: list[Step] = []
        done = 0.0
        while True:
            done += self.layout.lanes[lane].line.length
            ways = self.out[lane]
            if done > length_m or not ways:
                return [*steps, (lane, -1, -1)]
            turns = [TURN[self.layout.junctions[node].connectors[way].turn] for node, way in ways]
            # Not 0: where a lane only turns, a long vehicle must go
            # somewhere, and weights that sum to 0 are none.
            weights = np.array([(0.001 if straight and turn else WAYS[turn]) for turn in turns])
            node, way = ways[int(rng.choice(len(ways), p=weights / weights.sum()))]
            steps.append((lane, node, way))
            join = self.layout.junctions[node].connectors[way]
            done += join.line.length
            lane = join.end

    def along(self, lane: int, roads: Sequence[int]) -> list[Step] | None:
        """Lanes and ways from a lane over roads in this order; None where that lane does not lead there.

        Args:
            lane: number of the first.
            roads: numbers of the roads after that of the lane.
        """
        if not roads:
            return [(lane, -1, -1)]
        for node, way in self.out[lane]:
            end = self.layout.junctions[node].connectors[way].end
            if self.layout.lanes[end].road == roads[0] and self.layout.lanes[end].kind == "vehicle":
                rest = self.along(end, roads[1:])
                if rest is not None:
                    return [(lane, node, way), *rest]
        return None

    def route(self) -> list[Step]:
        """The route of the own vehicle, lane by lane as the layout says, or over the same roads."""
        route = self.layout.route
        steps: list[Step] = []
        for k, (lane, after) in enumerate(pairwise(route)):
            ways = [w for w in self.out[lane] if self.layout.junctions[w[0]].connectors[w[1]].end == after]
            if not ways:
                roads = [self.layout.lanes[n].road for n in route[k + 1 :]]
                rest = self.along(lane, roads) or [(lane, -1, -1)]
                return [*steps, *rest]
            steps.append((lane, *ways[0]))
        return [*steps, (route[-1], -1, -1)]

    def beside(self, lane: Lane, left: int) -> Lane | None:
        """The vehicle lane of the same direction next to a lane.

        Args:
            lane: of vehicles.
            left: 1 for the one on its left, -1 right.
        """
        order = lane.order + (-1 if left == self.inwards else 1)
        for number in self.layout.roads[lane.road].lanes:
            other = self.layout.lanes[number]
            if (other.order, other.forward, other.kind) == (order, lane.forward, "vehicle"):
                return other
        return None

    def outside_m(self, lane: Lane) -> float:
        """Metres of lanes of the same direction between a lane and the kerb or parking bays."""
        others = [self.layout.lanes[number] for number in self.layout.roads[lane.road].lanes]
        return sum(
            other.width_m
            for other in others
            if other.forward == lane.forward
            and other.order > lane.order
            and other.kind in ("vehicle", "bus", "cycle")
        )


# What drives on a road: kinds with their shares, models and manners of driving.

SHARES = {
    "Car": 0.53,
    "Cyc": 0.26,
    "MedVeh": 0.1,
    "Bus": 0.05,
    "LarVeh": 0.035,
    "Mobike": 0.02,
    "EmVeh": 0.005,
}
"""Long-tailed, as in ROAD."""
PARKED = {"Car": 0.86, "MedVeh": 0.11, "Mobike": 0.03}
TWO_WHEELED = ("Cyc", "Mobike")
FASTEST = 1.1
"""Times the usual speed of the scene that anybody drives, emergency vehicles apart."""
LONGEST_TURNING_M = 12.5
"""Longer vehicles go straight on."""


@dataclass(frozen=True)
class Make:
    """A vehicle as built.

    Args:
        kind: its agent class.
        model: its shape.
        size_m: length, width, height.
        look: seed of its details.
    """

    kind: str
    model: str
    size_m: tuple[float, float, float]
    look: int


@dataclass(frozen=True)
class Manners:
    """Driving style.

    Args:
        speed: that is kept where nothing is in the way, m/s.
        accelerate: m/s2 at most.
        brake: m/s2 when there is time.
        headway_s: kept behind others.
        patience_s: before smaller gaps will do.
        yielding: probability of stopping for somebody who waits at a zebra crossing.
    """

    speed: float
    accelerate: float
    brake: float
    headway_s: float
    patience_s: float
    yielding: float


def draw_kind(rng: np.random.Generator, shares: dict[str, float]) -> str:
    """A kind by its share.

    Args:
        rng: draws it.
        shares: of kinds, of any sum.
    """
    weights = np.array(list(shares.values()))
    return list(shares)[int(rng.choice(len(weights), p=weights / weights.sum()))]


def draw_make(rng: np.random.Generator, kind: str, lane_width_m: float, longest_m: float = 20.0) -> Make:
    """A vehicle of a kind that fits in a lane, the narrowest of its kind where none does.

    Args:
        rng: draws it.
        kind: an agent class.
        lane_width_m: of the lanes it uses.
        longest_m: where there is no room for more.
    """
    models = [m for m in MODELS[kind] if m.size_m[1] < lane_width_m - 0.35 and m.size_m[0] <= longest_m]
    models = models or [min(MODELS[kind], key=lambda model: model.size_m[0] * model.size_m[1])]
    weights = np.array([model.weight for model in models])
    model = models[int(rng.choice(len(models), p=weights / weights.sum()))]
    look = int(rng.integers(2**31))
    return Make(kind, model.name, sample_model_size(model, look), look)


def draw_manners(rng: np.random.Generator, kind: str, usual: float, yielding: float) -> Manners:
    """How the driver of a vehicle drives.

    Args:
        rng: draws it.
        kind: of the vehicle.
        usual: speed of the scene, m/s.
        yielding: of the scene.
    """
    speed = usual * min(float(rng.normal(0.97, 0.09)), FASTEST)
    accelerate, brake = float(rng.uniform(1.4, 2.2)), 2.2
    if kind == "Cyc":
        speed, accelerate = min(float(rng.uniform(3.6, 6.2)), FASTEST * usual), float(rng.uniform(0.7, 1.1))
    elif kind in ("Bus", "LarVeh"):
        speed, accelerate = 0.93 * speed, float(rng.uniform(0.8, 1.2))
    elif kind == "EmVeh":
        speed, accelerate = FASTEST * usual, 2.4
    headway, patience = float(rng.uniform(0.9, 1.5)), float(rng.uniform(4.0, 9.0))
    return Manners(max(speed, 1.5), accelerate, brake, headway, patience, yielding)


HAZARD = 2
"""Value of the fact `signals` for hazard lights."""


@dataclass(frozen=True)
class Shift:
    """A smooth move sideways along a path; before and after it the distance stays.

    Args:
        start: where it begins along the path, metres.
        length: of it, metres.
        left_m: distance to the left of the path at its start.
        slope: of the distance at its start.
        target_m: distance to the left at its end.
        before: what was driven until its start; None where the distance was the same all along.
    """

    start: float
    length: float
    left_m: float
    slope: float
    target_m: float
    before: Shift | None = None

    def at(self, s: float) -> tuple[float, float]:
        """Distance to the left and its slope.

        Args:
            s: metres along the path.
        """
        u = (s - self.start) / self.length
        if u >= 1.0:
            return self.target_m, 0.0
        if u < 0.0:
            return self.before.at(s) if self.before else (self.left_m, 0.0)
        gap, slope = self.target_m - self.left_m, self.slope * self.length
        left = self.left_m + slope * u + (10 * gap - 6 * slope) * u**3
        left += (8 * slope - 15 * gap) * u**4 + (6 * gap - 3 * slope) * u**5
        rate = slope + 3 * (10 * gap - 6 * slope) * u**2
        rate += 4 * (8 * slope - 15 * gap) * u**3 + 5 * (6 * gap - 3 * slope) * u**4
        return left, rate / self.length

    def many(self, s: Floats) -> Floats:
        """(n,) distances to the left.

        Args:
            s: (n,) metres along the path, after what was driven before.
        """
        u = np.clip((s - self.start) / self.length, 0.0, 1.0)
        gap, slope = self.target_m - self.left_m, self.slope * self.length
        inner = (10 * gap - 6 * slope) + u * ((8 * slope - 15 * gap) + u * (6 * gap - 3 * slope))
        found: Floats = self.left_m + slope * u + u**3 * inner
        return found

    def moved(self, by: float) -> Shift:
        """The same on a path that starts elsewhere."""
        before = self.before.moved(by) if self.before else None
        return Shift(self.start + by, self.length, self.left_m, self.slope, self.target_m, before)


@dataclass(eq=False)
class Passing:
    """A way round something slow.

    Args:
        target: the vehicle that is passed; None for a thing.
        clear_s: along the path, where a thing that is passed ends.
        moves: whether it is a road user on its way: then it is overtaking.
        since: when it began, seconds.
        back: whether the way back has begun.
    """

    target: Vehicle | None
    clear_s: float
    moves: bool
    since: float
    back: bool = False


@dataclass(frozen=True)
class Berth:
    """A parking bay that is backed into.

    Args:
        stop_s: along the path, where the middle stands before.
        bay_s: along the path, where the middle stands in the bay.
        left_m: of the bay, to the left of the path.
        length_m: of the path over which it moves sideways.
    """

    stop_s: float
    bay_s: float
    left_m: float
    length_m: float


@dataclass(eq=False)
class Vehicle:
    """One that moves.

    Args:
        number: of it, in the order in which they came.
        make: what it is.
        manners: of its driver.
        path: where it goes.
        s: of its middle along the path, metres.
        v: m/s along the path, negative in reverse.
        shift: how far beside the path.
        born: first frame.
    """

    number: int
    make: Make
    manners: Manners
    path: Path
    s: float
    v: float
    shift: Shift
    born: int
    a: float = 0.0
    leg: int = 0
    x: float = 0.0
    y: float = 0.0
    heading: float = 0.0
    left_m: float = 0.0
    tail_m: float = 0.9
    base_m: float = 2.5
    gait: float = 0.0
    home_m: float = 0.0
    passing: Passing | None = None
    changing: int = 0
    wish: int = 0
    wish_since: float = 0.0
    aside_for: Vehicle | None = None
    hazard: bool = False
    hold: str = ""
    hold_until: float = -1.0
    reverse_m: float = 0.0
    blocked: bool = False
    berth: Berth | None = None
    served: float = -1e9
    waiting_s: float = 0.0
    go_on_amber: float = -1e9
    beacon: bool = False
    passed_by: bool = False
    pass_since: float = -1.0
    decisions: dict[int, bool] = field(default_factory=dict)
    leader: int = -1
    leader_gap: float = np.inf
    trail: list[tuple[float, ...]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Its agent class."""
        return self.make.kind

    @property
    def length(self) -> float:
        """In metres."""
        return self.make.size_m[0]

    @property
    def width(self) -> float:
        """In metres."""
        return self.make.size_m[1]

    @property
    def front(self) -> float:
        """Of its bumper along the path, metres."""
        return self.s + self.length / 2

    @property
    def rear(self) -> float:
        """Of its tail along the path, metres."""
        return self.s - self.length / 2

    @property
    def lane(self) -> int:
        """Number of the lane whose path it drives, -1 in a junction."""
        return self.path.legs[self.leg].lane

    def place(self) -> None:
        """Find where it stands and where it points from its place on the path.

        Both axles run on the line, so that a long one cuts bends as it should.
        """
        rear = self.rear + self.tail_m
        ax, ay = self.spot(rear)
        bx, by = self.spot(rear + self.base_m)
        self.heading = float(np.arctan2(by - ay, bx - ax))
        reach = self.length / 2 - self.tail_m
        self.x = ax + reach * float(np.cos(self.heading))
        self.y = ay + reach * float(np.sin(self.heading))
        self.left_m = self.shift.at(self.s)[0]
        self.leg = self.path.leg_at(self.s)

    def spot(self, s: float) -> tuple[float, float]:
        """x and y of a point of its way.

        Args:
            s: metres along the path.
        """
        x, y, heading = self.path.at(s)
        left = self.shift.at(s)[0]
        return x - left * float(np.sin(heading)), y + left * float(np.cos(heading))

    def stretch(self) -> float:
        """Metres it moves per metre of its path: fewer inside a bend, more where it moves sideways."""
        if abs(self.left_m) < 0.05 and self.shift.target_m == self.shift.left_m:
            return 1.0
        ax, ay = self.spot(self.s - 0.5)
        bx, by = self.spot(self.s + 0.5)
        return max(float(np.hypot(bx - ax, by - ay)), 0.5)

    def go_beside(self, target_m: float, length_m: float) -> None:
        """Start a move sideways from where its front axle is; what was driven before stays as it was.

        Two moves before this one are kept: more a long vehicle does not cover.

        Args:
            target_m: distance to the left of the path, metres.
            length_m: over which it moves.
        """
        start = self.rear + self.tail_m + self.base_m
        left, slope = self.shift.at(start)
        old = self.shift.before
        before = replace(self.shift, before=old and replace(old, before=None))
        self.shift = Shift(start, max(length_m, 1.0), left, slope, target_m, before)

    def shifting(self) -> bool:
        """Whether it is moving sideways."""
        return (
            self.shift.start < self.s < self.shift.start + self.shift.length
            and abs(self.shift.target_m - self.shift.left_m) > 0.3
        )
