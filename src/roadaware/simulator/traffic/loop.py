"""The loop over the frames of a scene: look, decide, move, record; and the view of one frame for those who must
look out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.simulator.actors import Actor, Cause, Ego, Light, Signal
from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.layout import Layout
from roadaware.simulator.traffic.cast import EGO_SIZE_M, Cast, start_m
from roadaware.simulator.traffic.driving import (
    HARDEST,
    Bodies,
    Rules,
    Sight,
    collect_bodies,
    find_blocker_beyond,
    find_obstacles_ahead,
    stopping_acceleration,
)
from roadaware.simulator.traffic.junctions import Junctions, Lights, Zebras
from roadaware.simulator.traffic.manoeuvres import SQUEEZE, Manoeuvres
from roadaware.simulator.traffic.record import Recorder, build_ego
from roadaware.simulator.traffic.vehicle import FASTEST, Event, Net, Vehicle


@dataclass(frozen=True, eq=False)
class TrafficView:
    """Vehicles on the roads in one frame; the own vehicle is the first row.

    Args:
        frame: of the scene.
        time_s: since the start of the scene.
        position: (v, 2) of the middle of each moving vehicle and cyclist on the ground, metres.
        heading: (v,) radians.
        speed: (v,) m/s along the heading, negative in reverse.
        length: (v,) metres.
        width: (v,) metres.
        lights: (signals,) uint8, the `Light` that each traffic light shows.
    """

    frame: int
    time_s: float
    position: Floats
    heading: Floats
    speed: Floats
    length: Floats
    width: Floats
    lights: npt.NDArray[np.uint8]

    def signal(self, number: int) -> Light:
        """What a traffic light shows in this frame.

        Args:
            number: of the signal, as in `Layout.signals`.
        """
        return Light(int(self.lights[number]))


# Traffic: vehicles, cyclists, the own vehicle and traffic lights, lived frame by frame.


class OnFoot(Protocol):
    """The people beside and on the road, as traffic sees them."""

    def step(self, frame: int, view: TrafficView) -> None:
        """Live through one frame."""

    def on_road(self) -> tuple[Floats, Floats]:
        """(m, 2) where people are on the road, metres, and (m, 2) their velocities, m/s."""

    def waiting(self) -> Floats:
        """(k, 2) where people wait at a kerb or a zebra crossing, metres."""


@dataclass(frozen=True, eq=False)
class Lived:
    """Record of the traffic.

    Args:
        ego: the own vehicle.
        vehicles: everybody else on wheels, numbered from 0.
        signals: traffic lights, numbered as `Layout.signals`.
    """

    ego: Ego
    vehicles: tuple[Actor, ...]
    signals: tuple[Signal, ...]


def simulate(
    layout: Layout,
    config: SceneConfig,
    conditions: Conditions,
    rng: np.random.Generator,
    walkers: OnFoot,
    objects: Sequence[Actor] = (),
) -> Lived:
    """Let vehicles drive through a scene.

    Args:
        layout: roads.
        config: of the scene.
        conditions: light and weather; they decide on head lamps.
        rng: every draw comes from it.
        walkers: people; `step` is called once per frame with what they see.
        objects: that lie on the road or beside it; vehicles drive round them or stop.

    Returns:
        The own vehicle, everybody else on wheels and the traffic lights.
    """
    rows = [(*o.position[0, :2], o.heading[0], *o.size_m[:2]) for o in objects if len(o.heading)]
    things = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return simulate_traffic(layout, config, conditions, rng, walkers, things)


def compute_start_position(layout: Layout) -> float:
    """Metres along the planned way at which the bumper of the own vehicle starts.

    Args:
        layout: with a route.
    """
    return start_m(layout.lanes[layout.route[0]]) + EGO_SIZE_M[0] / 2


STEP_S = 0.1
"""Longest step of time."""
DECIDE_S = 0.2
EMERGENCY = -3.0
"""m/s2 beyond which nobody brakes gently."""
REVERSE, BACK_IN = 0.9, 1.5
"""m/s in reverse, along the kerb and into a bay."""
ASIDE_SPEED = 1.5
"""m/s of those who make way."""
EXTEND_M = 120.0
"""Of path that is left when more is found."""
PEDAL_M = 5.5
"""Metres of one turn of the pedals."""


def simulate_traffic(
    layout: Layout,
    config: SceneConfig,
    conditions: Conditions,
    rng: np.random.Generator,
    walkers: OnFoot,
    things: Floats,
) -> Lived:
    """Let vehicles drive through a scene; arguments as of `simulate`.

    Args:
        layout: roads.
        config: of the scene.
        conditions: light and weather.
        rng: every draw comes from it.
        walkers: people.
        things: (k, 5) x, y, heading, length and width of what lies on the road.
    """
    world = World(layout, config, conditions, rng, walkers, things)
    shown = []
    for frame in range(config.n_frames):
        shown.append(world.lights.shown(frame / config.camera.fps))
        world.frame(frame, shown[-1], last=frame + 1 == config.n_frames)
    table = np.array(shown, dtype=np.uint8).reshape(config.n_frames, len(layout.signals))
    fps = config.camera.fps
    actors: tuple[Actor, ...] = world.cast.actors(config.n_frames, fps)
    return Lived(build_ego(world.ego, fps, world.causes), actors, world.lights.signals(table))


class World:
    """All vehicles and their state."""

    def __init__(
        self,
        layout: Layout,
        config: SceneConfig,
        conditions: Conditions,
        rng: np.random.Generator,
        walkers: OnFoot,
        things: Floats,
    ) -> None:
        self.config, self.walkers, self.things = config, walkers, things
        inwards = 1 if config.surroundings.drive_on == "right" else -1
        self.net = Net(layout, inwards)
        self.lights = Lights(layout, rng)
        self.zebras = Zebras(layout, rng)
        self.junctions = Junctions(self.net)
        self.rules = Rules(self.lights, self.zebras, self.junctions, rng)
        self.cast = Cast(self.net, config, rng, things)
        self.ego = self.cast.ego
        self.manoeuvres = Manoeuvres(self.net, rng, self.ego, self.lights)
        self.recorder = Recorder(self.net, conditions)
        self.steps = math.ceil(1.0 / config.camera.fps / STEP_S - 1e-9)
        self.since_decision = np.inf
        self.causes: list[tuple[Cause, ...]] = []

    def frame(self, frame: int, shown: npt.NDArray[np.uint8], *, last: bool) -> None:
        """Live through one frame.

        Args:
            frame: of the scene.
            shown: (signals,) what lights show.
            last: whether nothing comes after it.
        """
        fps = self.config.camera.fps
        time_s = frame / fps
        self.junctions.release(self.cast.renew(frame))
        self.cast.see_parked(frame, time_s)
        for vehicle in self.cast.vehicles:
            self.recorder.write(vehicle, time_s)
        self.walkers.step(frame, self.view(frame, shown))
        people, velocity = self.walkers.on_road()
        self.zebras.see(people, velocity, self.walkers.waiting())
        if not last:
            for k in range(self.steps):
                self._step(
                    time_s + k / fps / self.steps, 1.0 / fps / self.steps, people, velocity, first=k == 0
                )

    def view(self, frame: int, shown: npt.NDArray[np.uint8]) -> TrafficView:
        """The traffic as seen by pedestrians.

        Args:
            frame: of the scene.
            shown: (signals,) what lights show.
        """
        moving = self.cast.vehicles
        table = np.array([(v.x, v.y, v.heading, v.v, v.length, v.width) for v in moving])
        time_s = frame / self.config.camera.fps
        return TrafficView(
            frame, time_s, table[:, :2], table[:, 2], table[:, 3], table[:, 4], table[:, 5], shown
        )

    def _step(self, time_s: float, dt: float, people: Floats, velocity: Floats, *, first: bool) -> None:
        """One step of time: everybody looks at the same moment, then moves."""
        vehicles = self.cast.vehicles
        bodies = collect_bodies(vehicles, self.things)
        sight = find_obstacles_ahead(vehicles, bodies, people, velocity)
        # Sums of steps may fall short of the limit by rounding, which would put a decision off by a step.
        if self.since_decision >= DECIDE_S - 1e-9:
            self.manoeuvres.decide(vehicles, sight, bodies, people, time_s)
            self.since_decision = 0.0
        self.since_decision += dt
        self.junctions.release(())
        coming = self.rules.coming(vehicles, time_s)
        wanted = []
        lines: list[tuple[float, Event | None]] = []
        for row, vehicle in enumerate(vehicles):
            # All bounds are computed before anybody moves: who comes first in the list has no advantage.
            seen = min(float(sight.bound[row]), float(sight.for_people[row]))
            lines.append(self.rules.bound(vehicle, coming, vehicles, time_s))
            ruled = min(lines[-1][0], to_berth(vehicle, time_s))
            wanted.append(min(seen, ruled, self._free(vehicle)))
            if vehicle is self.ego and first:
                self.causes.append(self._list_causes(row, sight, bodies, people, lines[-1], coming, time_s))
        for vehicle, a in zip(vehicles, wanted, strict=True):
            move_vehicle(vehicle, a, dt)
            if vehicle.path.end - vehicle.s < EXTEND_M and vehicle is not self.ego:
                self._extend(vehicle)

    def _list_causes(
        self,
        row: int,
        sight: Sight,
        bodies: Bodies,
        people: Floats,
        line: tuple[float, Event | None],
        coming: Mapping[int, Sequence[tuple[Vehicle, Event]]],
        time_s: float,
    ) -> tuple[Cause, ...]:
        """What bounds the acceleration of the own vehicle, the tightest first, down to the free road.

        Everybody stands where the frame has them.
        """
        free = self._free(self.ego)
        found = [Cause("free", np.zeros((0, 2)), -1, free)]
        for body in np.flatnonzero(sight.bodies[row] < free).tolist():
            kind = "thing" if bodies.lies[body] else "vehicle"
            place = np.array([[bodies.x[body], bodies.y[body]]])
            found.append(Cause(kind, place, -1, float(sight.bodies[row, body])))
        for person in np.flatnonzero(sight.people[row] < free).tolist():
            # Nobody brakes harder than that: see `find_obstacles_ahead`.
            allows = max(float(sight.people[row, person]), -HARDEST)
            found.append(Cause("person", people[[person]], -1, allows))
        if line[1] is not None and line[0] < free:
            found.append(Cause(*self._find_line_cause(line[1], coming, time_s), line[0]))
        return tuple(sorted(found, key=lambda cause: cause.allows))

    def _find_line_cause(
        self, line: Event, coming: Mapping[int, Sequence[tuple[Vehicle, Event]]], time_s: float
    ) -> tuple[str, Floats, int]:
        """Kind, places and group of lights of those for whom the own vehicle stops at a line."""
        ego, nobody = self.ego, np.zeros((0, 2))
        if line.kind == "zebra":
            return "zebra", self.zebras.find_causes(ego, self.rules.crossings[line.number]), -1
        inside = line.kind == "junction" and self.junctions.holds(ego, line.number)
        if line.group >= 0 and not inside and self.lights.group(line.group, time_s) != Light.GREEN:
            return "lights", nobody, line.group
        if line.kind != "junction":
            return "other", nobody, -1
        # Whoever stands behind one that stands behind a junction is in the way as soon as that one is gone.
        rest, behind = list(self.cast.vehicles), list[Vehicle]()
        while (beyond := find_blocker_beyond(ego, line, rest)) is not None:
            behind.append(beyond)
            rest = [each for each in rest if each is not beyond]
        first = self.junctions.list_blockers(ego, line, coming.get(line.number, ()))
        places = np.array([[v.x, v.y] for v in (*behind, *first)]).reshape(-1, 2)
        return "queue" if behind else "junction", places, -1

    def _free(self, vehicle: Vehicle) -> float:
        """m/s2 with nobody in the way."""
        most = min(vehicle.manners.speed, vehicle.path.limit(vehicle.front), vehicle.path.limit(vehicle.s))
        if vehicle.aside_for is not None:
            most = min(most, ASIDE_SPEED)
        if vehicle.passing is not None:
            fastest = FASTEST * self.manoeuvres.usual if vehicle.passing.moves else SQUEEZE
            most = min(max(most, fastest), fastest, vehicle.path.limit(vehicle.front))
        # The free road of the intelligent driver model, with its usual exponent.
        a = vehicle.manners.accelerate * (1.0 - (max(vehicle.v, 0.0) / most) ** 4)
        if vehicle is self.ego:
            a = min(
                a,
                stopping_acceleration(vehicle, vehicle.path.end - 4.0 - vehicle.front)
                if self._ends(vehicle)
                else a,
            )
        return max(a, -2.5)

    def _ends(self, vehicle: Vehicle) -> bool:
        """Whether the end of its path is near."""
        return vehicle.path.end - vehicle.front < 20.0 + vehicle.v**2 / 3.0

    def _extend(self, vehicle: Vehicle) -> None:
        """Give a vehicle more to drive, from the lane it is in."""
        last = vehicle.path.legs[-1].lane
        if vehicle.lane < 0 or not self.net.out[last] or vehicle.passing is not None:
            return
        if any(self.junctions.holds(vehicle, e.number) for e in vehicle.path.events if e.kind == "junction"):
            return
        start = vehicle.path.legs[vehicle.leg].start
        rest = vehicle.path.legs[vehicle.leg :]
        steps = [(a.lane, b.junction, b.way) for a, b in zip(rest[0:-1:2], rest[1::2], strict=True)]
        steps += self.net.wander(last, self.manoeuvres.rng, 250.0, straight=vehicle.length > 7.0)
        vehicle.path = self.net.path(steps)
        # A new path begins at the leg it is on: everything that is a length on the path moves along.
        vehicle.s -= start
        vehicle.served -= start
        vehicle.go_on_amber -= start
        vehicle.shift = vehicle.shift.moved(-start)
        vehicle.leg = 0


def move_vehicle(vehicle: Vehicle, wanted: float, dt: float) -> None:
    """Move one vehicle for a step of time.

    Args:
        vehicle: that moves.
        wanted: m/s2.
        dt: seconds.
    """
    if vehicle.hold in ("kerb", "berth", "parked") or vehicle.hazard:
        # Back, as far as it wants to and may, then stand
        before = min(vehicle.v, 0.0)
        waits = vehicle.hold == "berth" and vehicle.reverse_m <= 0
        stops = vehicle.blocked or waits or vehicle.reverse_m < before**2 / 2.0 + 0.02
        fastest = BACK_IN if vehicle.hold == "berth" else REVERSE
        vehicle.v = (
            min(before + (2.5 if vehicle.blocked else 1.0) * dt, 0.0) if stops else max(before - dt, -fastest)
        )
        vehicle.a = (vehicle.v - before) / dt
        way = (before + vehicle.v) / 2 * dt
        vehicle.s += way / vehicle.stretch()
        going = vehicle.v < 0 or vehicle.blocked
        vehicle.reverse_m = vehicle.reverse_m + way / vehicle.stretch() if going else 0.0
        if way:
            vehicle.place()
        return
    a = float(np.clip(wanted, -HARDEST, vehicle.manners.accelerate))
    # What one feels as a jerk is bounded, but nobody brakes gently for a body in the way.
    if a > EMERGENCY:
        a = float(np.clip(a, vehicle.a - 8.0 * dt, vehicle.a + 5.0 * dt))
    before = vehicle.v
    vehicle.v = max(before + a * dt, 0.0)
    # An exponential approach to standing would never end.
    if vehicle.v < 0.02 and a <= 0:
        vehicle.v = 0.0
    vehicle.a = (vehicle.v - before) / dt if vehicle.v > 0 else min(a, 0.0)
    way = (before + vehicle.v) / 2 * dt
    vehicle.waiting_s = vehicle.waiting_s + dt if vehicle.v < 0.3 else 0.0
    if way > 0:
        vehicle.s += way / vehicle.stretch()
        if vehicle.v > 0.4:
            vehicle.gait += 2 * np.pi * way / PEDAL_M
        vehicle.place()


def to_berth(vehicle: Vehicle, time_s: float) -> float:
    """m/s2 of one who stops beyond a bay to back into it."""
    if vehicle.berth is None or vehicle.hold:
        return float(np.inf)
    gap = vehicle.berth.stop_s - vehicle.s
    if gap < 1.5 and vehicle.v < 0.1:
        vehicle.hold, vehicle.hold_until = "berth", time_s + 1.2
    return stopping_acceleration(vehicle, gap)
