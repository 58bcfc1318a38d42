"""Record of vehicles frame by frame, as actors and as the own vehicle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Actor, Cause, Ego, Lamp, Pose, Thoughts
from roadaware.simulator.config import Conditions
from roadaware.simulator.traffic.vehicle import HAZARD, TWO_WHEELED, Net, Vehicle

# 90 flashes a minute, the middle of what UN regulation 48 allows.
BLINK_HZ = 1.5
BRAKING = 0.6
"""m/s2 from which brake lamps are lit."""
STANDING = 0.1
"""m/s below which one stands."""
INDICATE_S, INDICATE_M = 3.0, 5.0
"""Before a turn."""
ARM_S, ARM_M = 2.6, 3.0
"""Before a turn in which cyclists hold out an arm."""
HANDS = 0.8
"""Share of cyclists who do."""
PLANS_M = 60.0
"""How far ahead of its bumper a driver's next junction counts as a goal."""
ROLLS = 0.8
"""m/s below which they need both hands."""
COLUMNS = (
    "x",
    "y",
    "heading",
    "speed",
    "lamps",
    "lane",
    "gait",
    "turning",
    "shifting",
    "overtaking",
    "signals",
    "braking",
    "next_turn",
    "has_turn",
)
FACTS = ("turning", "shifting", "overtaking", "signals", "braking")


def needs_head_lamps(conditions: Conditions) -> bool:
    """Whether vehicles drive with head lamps."""
    return conditions.time != "day" or conditions.weather in ("rain", "snow")


def select_indicator(vehicle: Vehicle, inwards: int, time_s: float) -> int:
    """State of a vehicle's indicators: 1 left, -1 right, 2 hazard lights, 0 nothing.

    Args:
        vehicle: that moves.
        inwards: 1 where the middle of the road lies to the left.
        time_s: now.
    """
    if vehicle.hazard:
        return HAZARD
    if vehicle.berth is not None:
        near = vehicle.berth.stop_s - vehicle.s < 5.0 + INDICATE_S * max(vehicle.v, 0.0)
        return -inwards if near and vehicle.hold != "parked" else 0
    if vehicle.hold == "kerb":
        return inwards if vehicle.reverse_m <= 0 else 0
    if vehicle.hold == "bay":
        return inwards if time_s > vehicle.hold_until - 2.5 else -inwards
    if vehicle.changing or vehicle.wish:
        return vehicle.changing or vehicle.wish
    if vehicle.aside_for is not None:
        return -inwards
    if vehicle.passing is not None or (vehicle.shifting() and vehicle.shift.length > 10.5):
        moving = vehicle.shift.target_m - vehicle.shift.left_m
        if vehicle.shifting():
            return 1 if moving > 0 else -1
    elif vehicle.pass_since >= 0:
        return inwards
    # What it indicates for a turn or a bus stop ahead
    reach = INDICATE_S * max(vehicle.v, 0.0) + INDICATE_M
    leg = vehicle.path.legs[vehicle.leg]
    if leg.lane < 0:
        return leg.turn if vehicle.s < leg.start + 0.8 * (leg.end - leg.start) else 0
    if vehicle.leg + 1 < len(vehicle.path.legs) and leg.end - vehicle.front < reach + 3.0:
        turn = vehicle.path.legs[vehicle.leg + 1].turn
        if turn:
            return turn
    if vehicle.kind == "Bus":
        bays = [event.s for event in vehicle.path.events if event.kind == "bay"]
        if any(-1.0 < s - vehicle.front < reach and vehicle.served < s - 1.0 for s in bays):
            return -inwards
    return 0


def select_hand_signal(vehicle: Vehicle, inwards: int) -> int:
    """Hand signal of a cyclist: 1 left, -1 right, 0 none; in the turn itself they steer with both hands.

    Args:
        vehicle: with two wheels and pedals.
        inwards: 1 where the middle of the road lies to the left.
    """
    leg = vehicle.path.legs[vehicle.leg]
    if leg.lane < 0 or vehicle.v < ROLLS or vehicle.make.look % 100 >= 100 * HANDS:
        return 0
    if vehicle.passing is None and vehicle.pass_since >= 0:
        return inwards
    if vehicle.passing is not None:
        begun = vehicle.s < vehicle.shift.start + 0.5 * vehicle.shift.length
        return inwards if begun and not vehicle.passing.back else 0
    near = leg.end - vehicle.front < ARM_S * vehicle.v + ARM_M
    return vehicle.path.legs[vehicle.leg + 1].turn if near and vehicle.leg + 1 < len(vehicle.path.legs) else 0


class Recorder:
    """Records the state of all vehicles frame by frame.

    Args:
        net: roads.
        conditions: decide on head lamps.
    """

    def __init__(self, net: Net, conditions: Conditions) -> None:
        self.net = net
        self.head = Lamp.HEAD if needs_head_lamps(conditions) else Lamp(0)

    def write(self, vehicle: Vehicle, time_s: float) -> None:
        """Write down one vehicle in one frame."""
        cyclist = vehicle.kind == "Cyc"
        inwards = self.net.inwards
        signals = (
            select_hand_signal(vehicle, inwards) if cyclist else select_indicator(vehicle, inwards, time_s)
        )
        parked = vehicle.hazard or vehicle.hold in ("kerb", "berth", "parked")
        braking = not parked and (vehicle.a < -BRAKING or (vehicle.v < STANDING and not cyclist))
        lamps = self.head
        backs = vehicle.v < -0.02 or (vehicle.reverse_m > 0 and vehicle.v <= 0)
        if not cyclist:
            lamps |= Lamp.BRAKE if braking else Lamp(0)
            # By the time of the scene, so that the lamps of a frame do not depend on the frames before.
            if (time_s * BLINK_HZ) % 1.0 < 0.5:
                lamps |= Lamp.LEFT if signals in (1, HAZARD) else Lamp(0)
                lamps |= Lamp.RIGHT if signals in (-1, HAZARD) else Lamp(0)
            lamps |= Lamp.REVERSE if backs else Lamp(0)
            lamps |= Lamp.BEACON if vehicle.beacon else Lamp(0)
        leg = vehicle.path.legs[vehicle.leg]
        passing = vehicle.passing
        shifting = 0
        if vehicle.shifting() and abs(vehicle.shift.target_m - vehicle.shift.left_m) > 0.7:
            shifting = 1 if vehicle.shift.target_m > vehicle.shift.left_m else -1
        if leg.lane < 0:
            shifting = 0
        out = abs(vehicle.left_m - vehicle.home_m) > 0.3 or not (passing is None or passing.back)
        overtaking = int(passing is not None and passing.moves and out and vehicle.v > STANDING)
        where = (vehicle.x, vehicle.y, vehicle.heading, vehicle.v)
        how = (leg.turn, shifting, overtaking, signals, int(braking))
        turn = find_next_turn(vehicle)
        ahead = (0, 0) if turn is None else (turn, 1)
        vehicle.trail.append((*where, int(lamps), self._lane(vehicle), vehicle.gait, *how, *ahead))

    def _lane(self, vehicle: Vehicle) -> int:
        """Number of the lane in which its middle lies."""
        number = vehicle.lane
        if number < 0:
            return -1
        lane = self.net.layout.lanes[number]
        if abs(vehicle.left_m) <= lane.width_m / 2:
            return number
        place = np.array([[vehicle.x, vehicle.y]])
        for other in self.net.layout.roads[lane.road].lanes:
            near = self.net.layout.lanes[other]
            if near.kind == "pavement":
                continue
            along, left = near.line.project(place)
            if abs(float(left[0])) <= near.width_m / 2 and 0.1 < float(along[0]) < near.line.length - 0.1:
                return other
        return number


def find_next_turn(vehicle: Vehicle) -> int | None:
    """Where a driver means to go at the junction it is in, or at the next one within `PLANS_M`; None where there is none."""
    for leg in vehicle.path.legs[vehicle.leg :]:
        if leg.start - vehicle.front > PLANS_M:
            return None
        if leg.lane < 0:
            return leg.turn
    return None


def build_vehicle_actor(vehicle: Vehicle, number: int, fps: float) -> Actor:
    """Build the actor of a recorded vehicle.

    Args:
        vehicle: with its trail.
        number: of the actor.
        fps: frames per second.
    """
    table = np.array(vehicle.trail, dtype=np.float64)
    column = dict(zip(COLUMNS, table.T, strict=True))
    position = np.column_stack([column["x"], column["y"], np.zeros(len(table))])
    n = len(table)
    rides = Pose.RIDE if vehicle.kind in TWO_WHEELED else Pose.STAND
    return Actor(
        number,
        vehicle.kind,
        vehicle.make.model,
        vehicle.make.size_m,
        vehicle.make.look,
        vehicle.born,
        position,
        np.unwrap(column["heading"]),
        _compute_speed(position, column["heading"], fps, column["speed"]),
        column["lamps"].astype(np.uint8),
        np.full(n, rides, dtype=np.uint8),
        column["gait"],
        0.4 * column["turning"],
        column["lane"].astype(np.int64),
        True,
        {name: column[name].astype(np.int8) for name in FACTS},
        thoughts=Thoughts(column["next_turn"].astype(np.int8), column["has_turn"] > 0, np.zeros(n)),
    )


def build_ego(ego: Vehicle, fps: float, causes: Sequence[tuple[Cause, ...]] = ()) -> Ego:
    """Build the record of the own vehicle.

    Args:
        ego: with its trail.
        fps: frames per second.
        causes: what bounded its acceleration, of each frame but the last.
    """
    table = np.array(ego.trail, dtype=np.float64)
    column = dict(zip(COLUMNS, table.T, strict=True))
    heading = np.unwrap(column["heading"])
    back = ego.length / 2 - ego.tail_m
    xy = np.column_stack([column["x"], column["y"]])
    xy = xy - back * np.column_stack([np.cos(heading), np.sin(heading)])
    position = np.column_stack([xy, np.zeros(len(table))])
    speed = _compute_speed(position, heading, fps, column["speed"])
    # The first that holds counts: who stands does not turn, who turns at a junction does not change lanes.
    action = np.select(
        [
            np.abs(column["speed"]) < STANDING,
            column["turning"] < 0,
            column["turning"] > 0,
            column["overtaking"] > 0,
            column["shifting"] < 0,
            column["shifting"] > 0,
        ],
        [0, 2, 3, 6, 4, 5],
        1,
    )
    return Ego(
        position,
        heading,
        speed,
        _slope(speed, fps),
        _slope(heading, fps),
        action.astype(np.int64),
        column["lane"].astype(np.int64),
        tuple(causes),
    )


def _slope(values: Floats, fps: float) -> Floats:
    if len(values) < 2:
        return np.zeros(len(values))
    found: Floats = np.gradient(values) * fps
    return found


def _compute_speed(position: Floats, heading: Floats, fps: float, planned: Floats) -> Floats:
    """(n,) m/s along the heading, from the positions; 0 where it stands."""
    if len(position) < 2:
        return planned.copy()
    rate = np.gradient(position[:, :2], axis=0) * fps
    along = rate[:, 0] * np.cos(heading) + rate[:, 1] * np.sin(heading)
    # From the positions, so that speed, track and pose agree to the frame; central differences
    # blur a stop, hence the planned speed where it is 0.
    found: Floats = np.copysign(np.hypot(rate[:, 0], rate[:, 1]), along)
    return np.where((planned == 0.0) & (np.abs(found) < STANDING), 0.0, found)
