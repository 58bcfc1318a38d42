"""Manoeuvres: passing what is slow or stands, changing lanes, pulling aside, leaving the kerb."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Light
from roadaware.simulator.layout import Lane, Layout
from roadaware.simulator.traffic.driving import (
    Bodies,
    Sight,
    Strip,
    is_free,
    is_free_of_people,
    project_bodies,
)
from roadaware.simulator.traffic.junctions import Lights
from roadaware.simulator.traffic.vehicle import FASTEST, Berth, Net, Passing, Shift, Vehicle

# Berths: parking bays that are backed into, and what reversing needs behind.

BAY_M = 5.8
"""Length of a bay."""
SIDEWAYS_M = 7.0
"""Of the path over which one moves into a bay."""
PATIENCE_S = 12.0
"""After which who finds no room behind drives on."""
BESIDE_M = 3.4
"""Farthest bay from the middle of the lane."""


def compute_berth(vehicle: Vehicle, bay: tuple[float, float]) -> Berth:
    """How a vehicle would back into a bay.

    Args:
        vehicle: on its lane.
        bay: metres along and to the left of its path.
    """
    along, left = bay
    return Berth(along + vehicle.base_m + SIDEWAYS_M + 0.2, along, left, SIDEWAYS_M)


def find_bays_beside(layout: Layout, lane: Lane) -> list[tuple[float, float]]:
    """Bays beside a lane that one can back into, metres along and to the left of it."""
    found: list[tuple[float, float]] = []
    for number in layout.roads[lane.road].lanes:
        row = layout.lanes[number]
        if row.kind == "parking" and row.forward == lane.forward and row.order == lane.order + 1:
            along, left = lane.line.project(compute_bay_centres(row))
            places = zip(along.tolist(), left.tolist(), strict=True)
            found += [(s, x) for s, x in places if abs(x) < BESIDE_M]
    return found


def compute_bay_centres(row: Lane) -> Floats:
    """(k, 2) the middles of the bays of a row."""
    n = max(round(row.line.length / BAY_M), 1)
    found: Floats = row.line.at((np.arange(n) + 0.5) * row.line.length / n)
    return found


def advance_parking(vehicle: Vehicle, time_s: float) -> None:
    """Begin to back into the bay when nobody is behind, stand when done, or give it up.

    Args:
        vehicle: that has stopped beyond the bay.
        time_s: now.
    """
    berth = vehicle.berth
    if berth is None or time_s < vehicle.hold_until:
        return
    if vehicle.shift.target_m == vehicle.home_m and vehicle.shift.length == berth.length_m:
        if vehicle.reverse_m <= 0:
            vehicle.hold = "parked"
    elif not vehicle.blocked:
        bay = min(berth.bay_s, vehicle.s - vehicle.base_m - berth.length_m - 0.1)
        start = bay - vehicle.length / 2 + vehicle.tail_m + vehicle.base_m
        vehicle.shift = Shift(start, berth.length_m, berth.left_m, 0.0, vehicle.left_m)
        vehicle.home_m, vehicle.reverse_m = vehicle.left_m, vehicle.s - bay
    elif time_s - vehicle.hold_until > PATIENCE_S:
        vehicle.hold, vehicle.berth, vehicle.blocked = "", None, False


def is_clear_behind(vehicle: Vehicle, row: int, bodies: Bodies, people: Floats) -> bool:
    """Whether nobody is where somebody wants to reverse, or will soon be.

    Args:
        vehicle: that stands or reverses.
        row: its place among the bodies.
        bodies: of vehicles and things.
        people: (p, 2) on the road.
    """
    berth = vehicle.berth
    way = vehicle.reverse_m if berth is None or vehicle.reverse_m > 0 else vehicle.s - berth.bay_s
    strip = project_bodies(vehicle, bodies, row, 45.0, 3.0)
    side = [vehicle.left_m, vehicle.left_m if berth is None else berth.left_m]
    low, high = min(side) - vehicle.width / 2 - 0.3, max(side) + vehicle.width / 2 + 0.3
    beside = (strip.left + strip.half > low) & (strip.left - strip.half < high)
    back = -vehicle.length / 2 - strip.reach
    fast = np.maximum(strip.onward, 0.0)
    # Who has stopped in good time keeps out of the way; the bay lies beside, not behind.
    room = min(way, 6.0) + 0.8 + np.where(fast > 2.0, 2.5 * fast, 0.0)
    near = (strip.along < 0) & (strip.along > back - room)
    if bool((beside & near).any()):
        return False
    c, s = np.cos(vehicle.heading), np.sin(vehicle.heading)
    dx, dy = (people - (vehicle.x, vehicle.y)).reshape(-1, 2).T
    ahead, left = dx * c + dy * s, dy * c - dx * s
    tail = -vehicle.length / 2
    behind = (ahead < tail + 0.5) & (ahead > tail - min(way, 4.0) - 1.2)
    left = left + vehicle.left_m
    return not bool((behind & (left > low - 0.6) & (left < high + 0.6)).any())


CYCLIST_ROOM_M, OTHER_ROOM_M, THING_ROOM_M, URGENT_ROOM_M = 0.95, 0.55, 0.4, 0.35
"""Beside cyclists, others and things that are passed, and when it is urgent."""
FARTHEST_M = 3.5
"""From the middle of the lane that one drives when one passes."""
ROUND_M = 5.0
"""The same round things that lie there."""
LOOK_S = 2.0
"""For which one stands before what lies there, if one has to cross the middle of the road."""
WISH_S, GIVE_UP_S = 1.8, 6.0
"""Indicating before a lane change starts, and until it is given up."""
SQUEEZE = 6.0
"""m/s past what stands."""
INDICATE_S = 0.9
"""Before one pulls out to pass."""
MILD_M = 0.75
"""Into the opposite lane, that hardly counts."""
TRY_S = 3.0
"""After which one falls back again if one does not gain on the other."""
LEAST_M = 42.0
"""Of road that is left for a lane change."""
SLOWER = 0.8
"""Share of one's own speed below which one wants to get past the one in front."""
ASIDE_M = 45.0
"""From an emergency vehicle at which one pulls aside."""


class Manoeuvres:
    """Decisions of drivers.

    Args:
        net: roads.
        rng: draws the ways of those who change lanes.
        ego: the own vehicle, which stays on its route.
        lights: of the scene.
    """

    def __init__(self, net: Net, rng: np.random.Generator, ego: Vehicle, lights: Lights) -> None:
        self.net, self.rng, self.ego, self.lights = net, rng, ego, lights
        self.time_s = 0.0
        self.usual = ego.manners.speed

    def decide(
        self, vehicles: Sequence[Vehicle], sight: Sight, bodies: Bodies, people: Floats, time_s: float
    ) -> None:
        """Let everybody decide.

        Args:
            vehicles: that move.
            sight: what they see.
            bodies: everything on the road.
            people: (p, 2) on the road.
            time_s: now.
        """
        self.time_s = time_s
        beacons = [v for v in vehicles if v.beacon]
        passed = [v.passing.target for v in vehicles if v.passing is not None and not v.passing.back]
        for vehicle in vehicles:
            vehicle.passed_by = vehicle in passed
        for row, vehicle in enumerate(vehicles):
            vehicle.leader, vehicle.leader_gap = int(sight.leader[row]), float(sight.gap[row])
            self._finish(vehicle)
            if vehicle.reverse_m > 0 or vehicle.hold == "berth":
                vehicle.blocked = not is_clear_behind(vehicle, row, bodies, people)
            if vehicle.hold == "berth":
                advance_parking(vehicle, time_s)
            elif vehicle.hold == "kerb":
                self._leave_kerb(vehicle, row, bodies, people, time_s)
            elif vehicle.passing is not None:
                self._go_back(vehicle)
            elif vehicle.lane >= 0 and not vehicle.hazard and not vehicle.hold:
                for other in beacons:
                    self._pull_aside(vehicle, other)
                if vehicle.aside_for is None and not vehicle.shifting():
                    self._keep_line(vehicle)
                    self._pass(vehicle, row, vehicles, bodies, people, time_s)
                    self._change(vehicle, row, vehicles, bodies, time_s)

    def _finish(self, vehicle: Vehicle) -> None:
        """End what is done."""
        if vehicle.shifting():
            return
        if vehicle.passing is not None and vehicle.passing.back:
            vehicle.passing = None
        vehicle.changing = 0

    def _keep_line(self, vehicle: Vehicle) -> None:
        """Cyclists keep to the edge of lanes that are not theirs; everybody else to the middle."""
        lane = self.net.layout.lanes[vehicle.lane]
        vehicle.home_m = compute_lane_offset(vehicle.kind, lane.kind, lane.width_m, self.net.inwards)
        if abs(vehicle.home_m - vehicle.shift.target_m) > 0.05 and vehicle.passing is None:
            vehicle.go_beside(vehicle.home_m, 14.0)

    def _pass(
        self,
        vehicle: Vehicle,
        row: int,
        vehicles: Sequence[Vehicle],
        bodies: Bodies,
        people: Floats,
        time_s: float,
    ) -> None:
        """Begin to pass what is in the way, once that is indicated, if there is room and time."""
        lead = vehicle.leader
        if lead < 0 or vehicle.leader_gap > 38.0 or not self._passable(vehicle, lead, bodies):
            vehicle.pass_since = -1.0
            return
        if vehicle.pass_since < 0:
            vehicle.pass_since = time_s
        if time_s - vehicle.pass_since < INDICATE_S:
            return
        strip = project_bodies(vehicle, bodies, row, 40.0, 150.0)
        chain = [lead, *self._next_ones(vehicle, lead, strip)]
        left = self._beside(vehicle, strip, chain, vehicles)
        last = chain[-1]
        moves = float(strip.onward[last])
        stands = moves < 0.5
        fast = min(SQUEEZE if stands else FASTEST * self.usual, vehicle.path.limit(vehicle.front + 10.0))
        lying = bool(bodies.lies[chain].all())
        if abs(left) > (ROUND_M if lying else FARTHEST_M) or fast - moves < 1.0 or strip.along[last] > 60.0:
            return
        until = float(strip.along[last] + strip.reach[last]) + vehicle.length / 2 + 1.5
        # Seconds to gain a distance on somebody who moves, while one speeds up or slows down
        v = max(vehicle.v, 0.0)
        a = vehicle.manners.accelerate if fast > v else -2.0
        change = (fast - v) / a
        gained = (v - moves) * change + a * change**2 / 2
        time = change + max(until - gained, 0.0) / (fast - moves) + 0.4
        way = until + moves * time + max(9.0, 1.6 * fast)
        if time > 12.0 or not (
            self._may_go_round(vehicle, until, left) if lying else self._road_is_plain(vehicle, way, left)
        ):
            return
        if self._somebody_passes(vehicle, vehicles, 100.0 if self._over(vehicle, left) > 0.0 else 20.0):
            return
        if not is_free(vehicle, strip, left, way, time + 2.0, chain):
            return
        if not is_free_of_people(vehicle, people, left, way):
            return
        target = vehicles[last] if last < len(vehicles) else None
        on_way = target is not None and not target.hazard
        clear = vehicle.s + float(strip.along[last] + strip.reach[last])
        vehicle.passing = Passing(target, clear, on_way, time_s)
        # No car turns in less than five metres, roughly.
        # At a given radius, the length that a shift to the side takes grows with the root of the shift.
        least = float(np.sqrt(26.0 * abs(left - vehicle.left_m)))
        vehicle.go_beside(left, max(least, min(vehicle.leader_gap - 0.5, 2.0 * vehicle.v)))

    def _beside(
        self, vehicle: Vehicle, strip: Strip, chain: Sequence[int], vehicles: Sequence[Vehicle]
    ) -> float:
        """How far beside its path one drives to pass others: inwards, or outwards over lanes of its way."""
        side, lane = self.net.inwards, self.net.layout.lanes[vehicle.lane]
        room = [strip.half[k] + self._room(vehicle, k, vehicles) + vehicle.width / 2 for k in chain]
        inner = max(side * strip.left[k] + free for k, free in zip(chain, room, strict=True))
        outer = min(side * strip.left[k] - free for k, free in zip(chain, room, strict=True))
        outside = lane.width_m / 2 + self.net.outside_m(lane)
        fits = outer - vehicle.width / 2 > -outside
        return float(side * (outer if fits and abs(outer) < abs(inner) else inner))

    def _passable(self, vehicle: Vehicle, lead: int, bodies: Bodies) -> bool:
        facing = 1.0 if bodies.lies[lead] else float(np.cos(bodies.heading[lead] - vehicle.heading))
        slow = float(bodies.speed[lead]) < (0.3 if vehicle.kind == "Cyc" else SLOWER * vehicle.manners.speed)
        return bool(bodies.passable[lead]) and facing > 0.5 and slow and vehicle.hold != "bay"

    def _next_ones(self, vehicle: Vehicle, lead: int, strip: Strip) -> list[int]:
        """Others right before the one that is passed, which must be passed as well."""
        found: list[int] = []
        last = lead
        for _ in range(3):
            gap = strip.along - strip.reach - (strip.along[last] + strip.reach[last])
            near = (gap > -1.0) & (gap < vehicle.length + 12.0) & (strip.facing > 0.5)
            near &= np.abs(strip.left - vehicle.home_m) < vehicle.width / 2 + strip.half + 0.3
            near[[lead, *found]] = False
            if not near.any():
                break
            last = int(np.where(near, strip.along, np.inf).argmin())
            found.append(last)
        return found

    def _room(self, vehicle: Vehicle, place: int, vehicles: Sequence[Vehicle]) -> float:
        if vehicle.beacon:
            return URGENT_ROOM_M
        if place >= len(vehicles):
            return THING_ROOM_M
        return CYCLIST_ROOM_M if vehicles[place].kind == "Cyc" else OTHER_ROOM_M

    def _road_is_plain(self, vehicle: Vehicle, way_m: float, left_m: float = 9.0) -> bool:
        """Whether nothing on the next metres forbids to drive beside the lane.

        Who all but stays out of the opposite lane may do so straight through junctions and past green lights.
        """
        over = self._over(vehicle, left_m)
        for event in vehicle.path.events:
            if event.kind == "bay" or not vehicle.front - 6.0 < event.s < vehicle.front + way_m + 2.0:
                continue
            if over > MILD_M or event.kind == "zebra" or event.minor:
                return False
            if event.group >= 0 and self.lights.group(event.group, self.time_s) != Light.GREEN:
                return False
            if event.kind == "junction" and vehicle.path.legs[event.leg].turn:
                return False
        return over < MILD_M or vehicle.path.legs[vehicle.leg].end > vehicle.s + way_m + vehicle.length / 2

    def _may_go_round(self, vehicle: Vehicle, way_m: float, left_m: float) -> bool:
        """Whether one may drive round what lies there: on one's own side of the road, or after a look."""
        if self._over(vehicle, left_m) < MILD_M:
            return True
        looked = vehicle.waiting_s > LOOK_S or self._road_is_plain(vehicle, way_m, left_m)
        return looked and vehicle.path.legs[vehicle.leg].end > vehicle.front + way_m

    def _over(self, vehicle: Vehicle, left_m: float) -> float:
        """Metres into the opposite lane that a vehicle gets beside its path."""
        lane = self.net.layout.lanes[vehicle.lane]
        return self.net.inwards * left_m + vehicle.width / 2 - lane.width_m * (0.5 + lane.order)

    def _somebody_passes(self, vehicle: Vehicle, vehicles: Sequence[Vehicle], within_m: float) -> bool:
        """Whether somebody near is out of its lane already."""
        return any(
            other is not vehicle
            and (other.passing is not None or other.changing != 0)
            and np.hypot(other.x - vehicle.x, other.y - vehicle.y) < within_m
            and (np.cos(other.heading - vehicle.heading) < 0.3 or abs(other.s - vehicle.s) < 30.0)
            for other in vehicles
        )

    def _go_back(self, vehicle: Vehicle) -> None:
        """Pull in again once what is passed lies behind, and there is room."""
        passing = vehicle.passing
        if passing is None or passing.back:
            return
        clear = passing.clear_s
        if passing.target is not None:
            target = passing.target
            c, s = np.cos(vehicle.heading), np.sin(vehicle.heading)
            ahead = (target.x - vehicle.x) * c + (target.y - vehicle.y) * s
            clear = vehicle.s + float(ahead) + target.length / 2
            behind = float(ahead) - (target.length + vehicle.length) / 2
            gains = vehicle.v - target.v > 0.8 or self.time_s - passing.since < TRY_S
            if behind > 3.0 and not gains and not target.hold and not target.hazard:
                clear = -np.inf
        if vehicle.rear > clear + 1.5:
            passing.back = True
            vehicle.go_beside(vehicle.home_m, max(9.0, 1.6 * vehicle.v))

    def _pull_aside(self, vehicle: Vehicle, other: Vehicle) -> None:
        """Make way for an emergency vehicle, and come back when it has passed."""
        if vehicle.beacon or vehicle.kind == "Cyc":
            return
        dx, dy = other.x - vehicle.x, other.y - vehicle.y
        ahead = dx * np.cos(vehicle.heading) + dy * np.sin(vehicle.heading)
        facing = float(np.cos(other.heading - vehicle.heading))
        comes = -ASIDE_M < ahead < 4.0 if facing > 0.5 else (facing < -0.5 and -4.0 < ahead < ASIDE_M)
        near = comes and np.hypot(dx, dy) < ASIDE_M
        if near and vehicle.aside_for is None and not vehicle.shifting() and vehicle.passing is None:
            lane = self.net.layout.lanes[vehicle.lane]
            room = min(max(lane.width_m / 2 - vehicle.width / 2 - 0.05, 0.0), 0.8)
            vehicle.aside_for, vehicle.wish = other, 0
            vehicle.go_beside(-self.net.inwards * room, max(8.0, 1.6 * vehicle.v))
        elif vehicle.aside_for is other and not near:
            vehicle.aside_for = None
            vehicle.go_beside(vehicle.home_m, max(9.0, 1.6 * vehicle.v))

    def _change(
        self, vehicle: Vehicle, row: int, vehicles: Sequence[Vehicle], bodies: Bodies, time_s: float
    ) -> None:
        """Wish for another lane, indicate, and go there when it is free."""
        lane = self.net.layout.lanes[vehicle.lane]
        if vehicle.passing or vehicle.changing or lane.kind != "vehicle" or vehicle.kind in ("Cyc", "Bus"):
            vehicle.wish = 0
            return
        left_over = vehicle.path.legs[vehicle.leg].end - vehicle.s
        if left_over < LEAST_M or not self._road_is_plain(vehicle, 30.0):
            vehicle.wish = 0
        elif vehicle.wish == 0:
            slow = vehicle.leader_gap < 20.0 and vehicle.v < SLOWER * vehicle.manners.speed
            if self.rng.random() < (0.25 if slow else 0.03):
                wish = 1 if self.rng.random() < 0.5 else -1
                if self.net.beside(lane, wish) is not None:
                    vehicle.wish, vehicle.wish_since = wish, time_s
        elif time_s - vehicle.wish_since > GIVE_UP_S:
            vehicle.wish = 0
        elif time_s - vehicle.wish_since > WISH_S and vehicle.v > 2.5:
            self._start_change(vehicle, row, vehicles, bodies)

    def _start_change(self, vehicle: Vehicle, row: int, vehicles: Sequence[Vehicle], bodies: Bodies) -> None:
        lane = self.net.layout.lanes[vehicle.lane]
        other = self.net.beside(lane, vehicle.wish)
        if other is None or self._somebody_passes(vehicle, vehicles, 40.0):
            return
        across = vehicle.wish * (lane.width_m + other.width_m) / 2
        strip = project_bodies(vehicle, bodies, row, 40.0, 60.0)
        if not is_free(vehicle, strip, across, 14.0 + vehicle.v, 3.0, ()):
            return
        if vehicle is self.ego:
            after = [self.net.layout.lanes[leg.lane].road for leg in vehicle.path.legs if leg.lane >= 0]
            now = sum(leg.lane >= 0 for leg in vehicle.path.legs[: vehicle.leg + 1])
            steps = self.net.along(other.number, after[now:])
        else:
            steps = self.net.wander(other.number, self.rng, 350.0)
        if steps is None:
            vehicle.wish = 0
            return
        along, left = other.line.project(np.array([[vehicle.x, vehicle.y]]))
        vehicle.path = self.net.path(steps)
        vehicle.s, vehicle.leg = float(along[0]), 0
        start = vehicle.rear + vehicle.tail_m + vehicle.base_m
        vehicle.shift = Shift(start, max(16.0, 2.6 * vehicle.v), float(left[0]), 0.0, 0.0)
        vehicle.changing, vehicle.wish, vehicle.home_m = vehicle.wish, 0, 0.0

    def _leave_kerb(self, vehicle: Vehicle, row: int, bodies: Bodies, people: Floats, time_s: float) -> None:
        """Pull out of a parking bay, after reversing and indicating, when nobody comes."""
        if time_s < vehicle.hold_until or vehicle.reverse_m > 0:
            return
        strip = project_bodies(vehicle, bodies, row, 45.0, 30.0)
        lane = self.net.layout.lanes[vehicle.lane]
        across = np.linspace(vehicle.left_m, vehicle.home_m, 3)[1:]
        if lane.kind == "bus":
            across = across[:1]
        way, time = (16.0, 4.0) if time_s - vehicle.hold_until < vehicle.manners.patience_s else (9.0, 2.5)
        free = all(is_free(vehicle, strip, float(left), way, time, ()) for left in across)
        if free and is_free_of_people(vehicle, people, vehicle.home_m, 14.0):
            vehicle.hold = ""
            far = abs(vehicle.left_m - vehicle.home_m)
            vehicle.go_beside(vehicle.home_m, max(11.0, float(np.sqrt(34.0 * far))))


def compute_lane_offset(kind: str, lane_kind: str, width_m: float, inwards: int) -> float:
    """How far beside the middle of a lane a vehicle drives, left positive, in metres.

    Args:
        kind: of the vehicle.
        lane_kind: of the lane.
        width_m: of the lane.
        inwards: 1 where the middle of the road lies to the left.
    """
    if kind == "Cyc" and lane_kind in ("vehicle", "bus"):
        return -inwards * (width_m / 2 - 0.6)
    return 0.0
