"""How walkers get from wanting to cross to the other side: where, and whether there is time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Floats
from roadaware.simulator.actors import Light
from roadaware.simulator.layout import Layout
from roadaware.simulator.traffic.loop import TrafficView
from roadaware.simulator.walkers.persons import Stage, Walker, is_built_out
from roadaware.simulator.walkers.ways import Bodies, Place

# Gaps: what somebody who wants to cross sees coming, and whether there is time to walk over before it.

YIELDING_M_S = 2.0
"""Drivers who are slower than this before a crossing let people over it."""
BODY_M = 0.55
"""Room that somebody on foot keeps to the side of a vehicle."""
HORIZON_S = 12.0


@dataclass(frozen=True, eq=False)
class Coming:
    """Vehicles that pass, or could pass, a place where people cross; one row for each.

    Args:
        arrival_s: (v,) until its front reaches the line that people walk on; 0 if it stands on it.
        leaving_s: (v,) until its rear has left it.
        left_m: (v,) where it passes, in metres left of the middle of the road.
        half_m: (v,) half its width.
        distance_m: (v,) from its front to the line.
        speed: (v,) towards the line, m/s.
        row: (v,) in the view; 0 is the own vehicle.
    """

    arrival_s: Floats
    leaving_s: Floats
    left_m: Floats
    half_m: Floats
    distance_m: Floats
    speed: Floats
    row: Floats


class Lookout:
    """What can be seen of the traffic in one frame from the places where people cross.

    Args:
        layout: roads.
        view: the traffic of the frame.
    """

    def __init__(self, layout: Layout, view: TrafficView) -> None:
        self._layout = layout
        self.view = view
        self._roads: dict[int, tuple[Floats, Floats, Floats]] = {}
        self._seen: dict[tuple[int, float], Coming] = {}

    def coming(self, place: Place) -> Coming:
        """The vehicles that matter at a place."""
        # Both sides of a road see the same vehicles; a lookout lives for one frame, so nothing grows old.
        key = (place.road, place.s)
        if key not in self._seen:
            self._seen[key] = self._look(place)
        return self._seen[key]

    def _on_road(self, road: int) -> tuple[Floats, Floats, Floats]:
        """Each vehicle's length along a road, distance left of it, and speed along it."""
        if road not in self._roads:
            line = self._layout.roads[road].line
            s, left = line.project(self.view.position)
            along = self.view.speed * np.cos(self.view.heading - line.heading(s))
            self._roads[road] = s, left, along
        return self._roads[road]

    def _look(self, place: Place) -> Coming:
        view, road = self.view, self._layout.roads[place.road]
        s, left, along = self._on_road(place.road)
        centre, turn = road.line.at(place.s), float(road.line.heading(place.s))
        on = np.abs(left) < road.half_width_m + 0.5
        # Who is not on this road yet, as inside a junction, is expected to go straight on.
        away = view.position - centre
        ahead = np.array([np.cos(turn), np.sin(turn)])
        side = np.array([-ahead[1], ahead[0]])
        velocity = view.speed[:, None] * np.stack([np.cos(view.heading), np.sin(view.heading)], axis=1)
        offset = np.where(on, s - place.s, away @ ahead)
        speed = np.where(on, along, velocity @ ahead)
        toward = -np.sign(speed) * offset
        pace = np.abs(speed)
        # np.where computes both sides: the bound keeps out a division by 0 where the first does not hold.
        middle_s = np.where(pace > 0.3, toward / np.maximum(pace, 0.3), np.inf)
        passing = np.where(on, left, away @ side + (velocity @ side) * np.clip(middle_s, 0.0, HORIZON_S))
        half = view.length / 2
        standing = pace <= 0.3
        blocks = standing & (np.abs(offset) < half + 0.4)
        reach = np.where(blocks, 0.0, np.where(standing, np.inf, (toward - half) / np.maximum(pace, 0.3)))
        gone = np.where(standing, np.inf, (toward + half + 0.3) / np.maximum(pace, 0.3))
        relevant = (np.abs(passing) < road.half_width_m + 0.5) & (gone > 0.0) & (reach < HORIZON_S)
        rows = np.flatnonzero(relevant)
        distance = np.where(standing, np.abs(offset), toward) - half
        return Coming(
            np.maximum(reach, 0.0)[rows], gone[rows], passing[rows], view.width[rows] / 2, distance[rows],
            pace[rows], rows.astype(np.float64),
        )  # fmt: skip


def compute_crossing_times(coming: Coming, left_m: float, way: int, pace: float) -> tuple[Floats, Floats]:
    """Seconds until somebody who walks enters the path of each vehicle, and until they have left it.

    Args:
        coming: the vehicles.
        left_m: where they are, in metres left of the middle of the road.
        way: 1 if they walk to the left, -1 to the right.
        pace: of theirs, m/s.
    """
    ahead = way * (coming.left_m - left_m)
    room = coming.half_m + BODY_M
    return np.maximum(ahead - room, 0.0) / pace, (ahead + room) / pace


def find_threatening_vehicles(
    coming: Coming, left_m: float, way: int, pace: float, margin_s: float, trust: float = 1.0
) -> Bools:
    """(v,) which vehicles leave too little time.

    Args:
        coming: the vehicles.
        left_m: where the walker is, in metres left of the middle of the road.
        way: 1 if they walk to the left, -1 to the right.
        pace: of theirs, m/s.
        margin_s: time they want to spare.
        trust: times of arrival appear longer by this factor.
    """
    enter, leave = compute_crossing_times(coming, left_m, way, pace)
    late = coming.arrival_s * trust < leave + margin_s
    # Behind a vehicle one passes closer than before it: what has gone by does no harm.
    early = coming.leaving_s > enter - 0.3 * margin_s
    found: Bools = (leave > 0.0) & late & early
    return found


def find_yielding_vehicles(coming: Coming) -> Bools:
    """(v,) which vehicles let people over a crossing: slow before it."""
    found: Bools = (coming.speed < YIELDING_M_S) & (coming.distance_m > 0.6)
    return found


APPROACH_M = 3.0
DECIDING_M = 1.6
"""From where they would wait, people look whether they need to."""
ALARM_S = 2.5
"""On the road, people mind vehicles that would reach them sooner than this."""
UNSEEN_M = 22.0
"""Who does not look notices vehicles that are nearer than this."""
FASTEST_M_S = 3.2


class Minds:
    """Thinks for all walkers of a scene.

    Args:
        walkers: everybody.
        bodies: theirs, in the same order.
        rng: draws what happens by chance.
    """

    def __init__(self, walkers: list[Walker], bodies: Bodies, rng: np.random.Generator) -> None:
        self.walkers, self._bodies, self._rng = walkers, bodies, rng
        self._acts = {
            Stage.STROLL: self._stroll,
            Stage.REST: self._rest,
            Stage.APPROACH: self._approach,
            Stage.WAIT: self._wait,
            Stage.CROSS: self._cross,
            Stage.HOLD: self._hold,
            Stage.BACK: self._back,
            Stage.LINGER: self._linger,
            Stage.LEAVE: self._leave,
        }

    def think(self, k: int, dt: float, lookout: Lookout) -> None:
        """Let somebody perceive, decide, and set where they want to move.

        Args:
            k: who.
            dt: seconds since they last thought.
            lookout: what can be seen of the traffic.
        """
        walker = self.walkers[k]
        self._acts[walker.stage](k, walker, dt, lookout)
        self._bodies.narrow[k] = walker.place is not None and is_built_out(walker.place)
        self._look(k, walker, dt, lookout)

    # What somebody does on the pavement.

    def _stroll(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        bodies = self._bodies
        pace, lane_u = walker.person.pace, walker.lane_u
        leader = self._leader(walker)
        s = float(bodies.s[k])
        if leader is not None:
            row = walker.start.leader
            if bodies.band[row] == bodies.band[k] and leader.way == walker.way:
                lag = walker.way * (float(bodies.s[row]) - s)
                # Catches up or waits in proportion to the lag; bounded, so
                # that companions neither run nor stand still.
                pace = min(max(leader.person.pace + 0.9 * lag, 0.25 * pace), 1.35 * pace)
                if leader.stage == Stage.REST:
                    pace = max(0.0, min(pace, 1.2 * lag))
        bodies.goal_s[k] = walker.way * pace
        bodies.goal_u[k] = min(0.35, max(-0.35, 0.8 * (lane_u - float(bodies.u[k]))))
        bodies.facing[k] = np.nan
        bodies.free[k], bodies.still[k] = False, False
        if walker.place is not None and bodies.band[k] == walker.place.band:
            if walker.way * (walker.target_s - s) < APPROACH_M:
                walker.stage = Stage.APPROACH
        # Chances are for a second, so that they do not depend on the frames: this one comes once in 100 s.
        elif leader is None and not walker.person.runs and self._rng.random() < 0.01 * dt:
            walker.stage, walker.timer_s = Stage.REST, float(self._rng.uniform(2.0, 6.0))
        if walker.wave_s > 0.0:
            walker.wave_s -= dt
        # Once in 125 s: waving at nobody is rare.
        elif self._rng.random() < 0.008 * dt:
            walker.wave_s = 1.6

    def _rest(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        self._stand(k)
        walker.timer_s -= dt
        if walker.timer_s <= 0.0:
            walker.stage = Stage.STROLL

    def _approach(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        bodies, place = self._bodies, walker.place
        if place is None:
            walker.stage = Stage.STROLL
            return
        # Where the pavement is built out, first along it, then out.
        aside = abs(walker.target_s - float(bodies.s[k])) > 0.35
        target_u = max(walker.target_u, 0.4) if aside else walker.target_u
        away = self._go(k, walker.target_s, target_u, walker.person.pace)
        away += abs(target_u - walker.target_u)
        bodies.facing[k] = np.nan if away > 0.6 else self._road_side(k)
        walker.timer_s += dt
        if walker.errand == "cross":
            if away < DECIDING_M and self._ready(k, walker, place, dt, lookout) and away < 0.9:
                self._step_out(k, walker)
            if walker.stage != Stage.APPROACH:
                return
        if away < 0.25 or (away < 0.9 and walker.timer_s > 6.0):
            walker.stage = Stage.WAIT if walker.errand == "cross" else Stage.LINGER
            walker.timer_s = walker.start.rest_s if walker.errand != "cross" else 0.0

    def _wait(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        place = walker.place
        if place is None:
            walker.stage = Stage.STROLL
            return
        self._stay(k, walker)
        walker.waited_s += dt
        if self._ready(k, walker, place, dt, lookout):
            self._step_out(k, walker)
        elif walker.waited_s > walker.patience_s:
            if walker.person.quits:
                self._give_up(walker)
            else:
                walker.demand *= 0.7
                walker.patience_s += 6.0

    def _linger(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        self._stay(k, walker)
        walker.timer_s -= dt
        if walker.timer_s <= 0.0:
            walker.stage, walker.errand = Stage.LEAVE, "walk"

    def _give_up(self, walker: Walker) -> None:
        walker.gave_up, walker.errand = True, "walk"
        walker.stage, walker.way = Stage.LEAVE, walker.next_way

    def _leave(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        """Go back from the kerb, straight where the pavement is built out into the road."""
        bodies = self._bodies
        bodies.goal_s[k], bodies.goal_u[k] = 0.0, 0.8 * walker.person.pace
        bodies.facing[k] = np.nan
        bodies.still[k] = False
        if bodies.u[k] > 0.3:
            walker.stage, walker.place = Stage.STROLL, None

    # What somebody does on the road.

    def _step_out(self, k: int, walker: Walker) -> None:
        walker.stage, walker.over, walker.hurry = Stage.CROSS, False, False
        walker.across = -int(self._bodies.ways.side[self._bodies.band[k]])
        walker.timer_s = 0.0

    def _cross(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        bodies, place = self._bodies, walker.place
        if place is None:
            walker.stage = Stage.STROLL
            return
        walker.timer_s += dt
        pace = self._crossing_pace(walker)
        bodies.goal_s[k] = min(0.5, max(-0.5, 0.6 * (walker.target_s - float(bodies.s[k]))))
        bodies.goal_u[k] = pace if walker.over else -pace
        bodies.facing[k] = np.nan
        bodies.free[k], bodies.still[k] = True, False
        self._mind_traffic(k, walker, place, lookout)
        u, half = float(bodies.u[k]), float(bodies.ways.half[bodies.band[k]])
        if not walker.over and u < -half:
            # The same place as seen from the other kerb; beyond the middle of the road u is below -half.
            bodies.switch(k, place.far, float(bodies.s[k]), -(u + 2.0 * half), False)
            bodies.vu[k] = -bodies.vu[k]
            bodies.goal_u[k] = -bodies.goal_u[k]
            walker.over = True
        elif walker.over and u > 0.45:
            self._arrive(k, walker)

    def _arrive(self, k: int, walker: Walker) -> None:
        walker.stage, walker.place, walker.errand = Stage.STROLL, None, "walk"
        walker.way, walker.hurry, walker.over, walker.done = walker.next_way, False, False, True
        self._bodies.free[k] = False

    def _mind_traffic(self, k: int, walker: Walker, place: Place, lookout: Lookout) -> None:
        """Hurry, stop or step back where a vehicle would come too near."""
        coming = lookout.coming(place)
        if not len(coming.speed):
            return
        left, pace = self._left(k), self._crossing_pace(walker)
        near = find_threatening_vehicles(coming, left, walker.across, pace, 0.25) & (
            coming.arrival_s < ALARM_S
        )
        near &= ~find_yielding_vehicles(coming)
        if not near.any():
            return
        fast = min(FASTEST_M_S, 1.8 * walker.person.pace)
        enter, leave = compute_crossing_times(coming, left, walker.across, fast)
        inside = enter < 0.15
        if (inside | (leave + 0.1 < coming.arrival_s))[near].all():
            walker.hurry = True
        elif not walker.over and self._bodies.u[k] > -1.3 - place.near_m:
            walker.stage, walker.sure_s = Stage.BACK, 0.0
        else:
            walker.stage = Stage.HOLD

    def _hold(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        self._stand(k)
        self._bodies.free[k] = True
        # Looks anew as if they walked on; what they find then stops them again, or not.
        walker.stage = Stage.CROSS
        if walker.place is not None:
            self._mind_traffic(k, walker, walker.place, lookout)
        # Who has stopped on the road waits there, and does not turn back as well.
        if walker.stage == Stage.BACK:
            walker.stage = Stage.HOLD

    def _back(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        bodies = self._bodies
        bodies.goal_s[k], bodies.goal_u[k] = 0.0, 1.1 * min(walker.person.pace, 1.6)
        bodies.facing[k] = self._road_side(k)
        bodies.free[k], bodies.still[k] = True, False
        if bodies.u[k] > walker.target_u - 0.1:
            walker.stage, walker.demand = Stage.WAIT, min(1.5, 1.2 * walker.demand)

    # Judging.

    def _ready(self, k: int, walker: Walker, place: Place, dt: float, lookout: Lookout) -> bool:
        """Whether somebody has seen for long enough that they can go."""
        leader = self._leader(walker)
        # A party crosses together or not at all.
        if leader is not None and leader.gave_up:
            self._give_up(walker)
        if leader is not None and leader.stage not in (Stage.CROSS, Stage.HOLD) and not leader.done:
            walker.sure_s = 0.0
            return False
        clear = self.may_go(k, walker, place, lookout)
        walker.sure_s = walker.sure_s + dt if clear else 0.0
        return clear and walker.sure_s >= walker.person.delay_s

    def may_go(self, k: int, walker: Walker, place: Place, lookout: Lookout) -> bool:
        """Whether light, gaps and yielding vehicles let somebody go, as they see it."""
        person = walker.person
        margin = person.care_s * walker.demand
        state = get_crossing_light(place, lookout)
        trusting = place.kind in ("zebra", "signalled")
        if state == Light.GREEN:
            # A light makes others stop: who has green hardly looks at gaps.
            margin = 0.25 * margin
        elif state in (Light.RED, Light.AMBER):
            if not person.jaywalks or walker.waited_s < 1.0:
                return False
            # On red nobody is expected to stop for them.
            margin, trusting = 1.3 * margin, False
        elif place.kind == "zebra":
            margin = 0.7 * margin
        coming = lookout.coming(place)
        if not len(coming.speed):
            return True
        bad = find_threatening_vehicles(
            coming, self._left(k), self._toward(k), self._crossing_pace(walker), margin, person.trust
        )
        if trusting:
            bad &= ~find_yielding_vehicles(coming)
        # They still notice what is right before them, or every one of them would be run over.
        if not person.looks:
            bad &= coming.distance_m < UNSEEN_M
        return not bool(bad.any())

    def _crossing_pace(self, walker: Walker) -> float:
        pace = walker.person.pace
        return min(FASTEST_M_S, 1.8 * pace) if walker.hurry else max(1.1 * pace, 0.8)

    # Moving.

    def _go(self, k: int, s: float, u: float, pace: float) -> float:
        """Head for a spot on the band; returns how far it is."""
        bodies = self._bodies
        ds, du = s - float(bodies.s[k]), u - float(bodies.u[k])
        away = float(np.hypot(ds, du))
        # Slower near the spot, and still within 8 cm of it: at full
        # pace they would tread back and forth over it.
        speed = 0.0 if away < 0.08 else min(pace, 1.5 * away)
        share = speed / max(away, 1e-6)
        bodies.goal_s[k], bodies.goal_u[k] = ds * share, du * share
        bodies.free[k] = u < 0.25
        bodies.still[k] = False
        return away

    def _stay(self, k: int, walker: Walker) -> None:
        """Stand at the kerb and face the road."""
        away = self._go(k, walker.target_s, walker.target_u, 0.5 * walker.person.pace)
        if away < 0.3:
            self._stand(k)
            self._bodies.free[k] = walker.target_u < 0.25
        self._bodies.facing[k] = self._road_side(k)

    def _stand(self, k: int) -> None:
        bodies = self._bodies
        bodies.goal_s[k] = bodies.goal_u[k] = 0.0
        bodies.still[k] = True

    def _road_side(self, k: int) -> float:
        """The direction of the road from a pavement, against the direction of its line."""
        return -float(self._bodies.ways.side[self._bodies.band[k]]) * np.pi / 2

    def _left(self, k: int) -> float:
        ways, band = self._bodies.ways, self._bodies.band[k]
        return float(ways.side[band] * (ways.half[band] + self._bodies.u[k]))

    def _toward(self, k: int) -> int:
        return -int(self._bodies.ways.side[self._bodies.band[k]])

    def _leader(self, walker: Walker) -> Walker | None:
        return self.walkers[walker.start.leader] if walker.start.leader >= 0 else None

    # Looking.

    def _look(self, k: int, walker: Walker, dt: float, lookout: Lookout) -> None:
        """Turn the head: to both sides before the road is entered, else now and then."""
        near = walker.stage == Stage.APPROACH and walker.errand == "cross"
        early = walker.stage == Stage.CROSS and walker.timer_s < 1.5
        walker.scanning = walker.person.looks and (
            near or early or walker.stage in (Stage.WAIT, Stage.HOLD, Stage.BACK)
        )
        walker.glance_s -= dt
        if walker.glance_s <= 0.0:
            self._glance(k, walker, lookout)
        # Heads turn at 5 rad/s at most; a gaze that jumped would be seen from frame to frame.
        walker.gaze += min(5.0 * dt, max(-5.0 * dt, walker.glance - walker.gaze))

    def _glance(self, k: int, walker: Walker, lookout: Lookout) -> None:
        rng = self._rng
        if walker.scanning:
            walker.glance_s = float(rng.uniform(0.5, 1.2))
            # One side after the other.
            side = -1.0 if walker.glance > 0 else 1.0
            walker.glance = side * float(rng.uniform(0.8, 1.25))
            if walker.place is not None and rng.random() < 0.5:
                walker.glance = self._toward_nearest(k, lookout.coming(walker.place), lookout)
        else:
            walker.glance_s = float(rng.uniform(0.8, 2.5))
            walker.glance = float(rng.uniform(-0.6, 0.6)) if rng.random() < 0.3 else 0.0

    def _toward_nearest(self, k: int, coming: Coming, lookout: Lookout) -> float:
        """Where the vehicle that comes next is seen, from the heading, as far as a neck turns."""
        if not len(coming.row):
            return 0.9
        row = int(coming.row[int(np.argmin(coming.arrival_s))])
        away = lookout.view.position[row] - self._bodies.xy[k]
        angle = float(np.arctan2(away[1], away[0]) - self._bodies.heading[k])
        return min(1.3, max(-1.3, (angle + np.pi) % (2 * np.pi) - np.pi))


def get_crossing_light(place: Place, lookout: Lookout) -> Light | None:
    """What the lights say to those who walk; None where there are none, or they are out of order."""
    if place.walker_lights:
        state = lookout.view.signal(place.walker_lights[0])
        return None if state == Light.BLACK else state
    if place.vehicle_lights:
        state = lookout.view.signal(place.vehicle_lights[0])
        return Light.GREEN if state == Light.RED else None if state == Light.BLACK else Light.RED
    return None
