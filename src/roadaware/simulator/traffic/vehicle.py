"""Vehicle: one that moves, with its place on a path, how far beside it drives, and what it is about to do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.figures.models import MODELS, sample_model_size
from roadaware.simulator.traffic.paths import Path

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
    gone_s: float = -1e9
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
