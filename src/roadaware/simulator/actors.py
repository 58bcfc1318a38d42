"""Actors: who is in a scene, where they are in each frame and what they do, as arrays over frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints

AGENTS = ("Ped", "Car", "Cyc", "Mobike", "MedVeh", "LarVeh", "Bus", "EmVeh", "TL", "OthTL")
"""The agent classes of ROAD; traffic lights are `Signal`s."""
VEHICLES = ("Car", "MedVeh", "LarVeh", "Bus", "EmVeh", "Mobike", "Cyc")
OBJECTS: Mapping[str, str] = {
    "debris": "obstruction",
    "tyre": "obstruction",
    "suitcase": "misc",
    "fallen_tree": "obstruction",
    "traffic_cone": "traffic facility",
    "barrier": "traffic facility",
    "dog": "animal",
    "stroller": "pedestrian",
    "cart": "vehicle",
    "dustbin": "misc",
    "plastic_bag": "misc",
}
"""Things outside the common classes, each with its super-class in CODA."""


class Lamp(IntFlag):
    """Lamps that are lit, blinking ones while they are lit; hazard lights are LEFT and RIGHT together."""

    BRAKE = 1
    LEFT = 2
    RIGHT = 4
    HEAD = 8
    REVERSE = 16
    BEACON = 32


class Pose(IntEnum):
    """Pose of a body; the phase of cyclic poses is the actor's `gait`."""

    STAND = 0
    WALK = 1
    RUN = 2
    RIDE = 3
    PUSH_OBJECT = 4
    WAVE = 5
    PUNCH = 6
    SHOVE = 7
    LIE = 8
    FILM = 9
    THROW = 10
    HOLD_FLAG = 11
    HOLD_SIGN = 12
    KNEEL = 13
    HUG = 14
    ARGUE = 15
    SHOUT = 16
    PHONE = 17
    CLAP = 18
    FLINCH = 19
    KICK = 20
    THREATEN = 21
    DANCE = 22
    FALL = 23
    HANDS_UP = 24
    AIM = 25
    SPRAY = 26
    PAINT = 27
    PRAY = 28
    DRUM = 29
    TRUMPET = 30
    STRUM = 31
    MICROPHONE = 32
    HOLD_HANDS = 33
    RAISE_CAN = 34


@dataclass(frozen=True)
class Mind:
    """Intention and decisions of a pedestrian; frames count from the start of the scene, None if never.

    Args:
        intention_prob: how likely somebody who watches would say that they want to cross, in [0, 1].
        wants: whether they want to cross.
        start: first frame of the time in which it is asked (PIE's exp_start_point).
        critical: last frame of that time: before they step out, or pass.
        crosses: whether they cross in front of the own vehicle.
        crossing: the frame in which they step on the road; None for those who do not.
        age: child, young, adult or senior.
        signalized: no signal, zebra crossing or signal where they stand.
    """

    intention_prob: float
    wants: bool
    start: int
    critical: int
    crosses: bool
    crossing: int | None
    age: str
    signalized: str


WALKS_ON, CROSSES, STAYS = 0, 1, 2
"""Goals of somebody on foot: to walk on, to cross the road, to stay where they stand."""


@dataclass(frozen=True, eq=False)
class Thoughts:
    """What a road user has in mind in each frame; nothing of it is written into tables.

    Args:
        goal: (n,) of somebody on foot `WALKS_ON`, `CROSSES` or `STAYS`; of a driver the way through the next junction:
            1 left, -1 right, 0 straight on.
        known: (n,) whether there is such a goal: drivers have none where no junction lies ahead on their path.
        margin_s: (n,) seconds before the next vehicle that somebody on foot wants to spare when they cross; 0 of drivers.
    """

    goal: npt.NDArray[np.int8]
    known: npt.NDArray[np.bool_]
    margin_s: Floats


@dataclass(frozen=True, eq=False)
class Actor:
    """A person, animal, vehicle or object in a scene.

    Arrays have one row per frame from `first` on. World: metres, x east, y north, z up; headings
    counter-clockwise from x in radians. `position` is the point on the ground below the middle.

    Args:
        number: from 0; `number + 1` is its value in instance masks.
        kind: an agent class, or a key of `OBJECTS`.
        model: which shape, as `figures` names them: hatchback, van, lorry, double_decker, adult, ...
        size_m: length, width and height.
        look: seed of its colours and details.
        first: frame of the first row.
        position: (n, 3).
        heading: (n,) where its front points.
        speed: (n,) m/s along its heading, negative when it reverses.
        lamps: (n,) uint8, `Lamp`.
        pose: (n,) uint8, `Pose`, of people and riders.
        gait: (n,) phase of the pose in radians.
        gaze: (n,) where the head turns from the heading, in radians, left positive.
        lane: (n,) number of the lane it is in, -1 where it is in none.
        active: whether it counts; parked vehicles do not.
        facts: what its behaviour knows of each frame, (n,) each: `turning` (-1 right, 0, 1 left), `shifting`
            (lane changes, the same), `signals` (the same, 2 for hazard lights; of cyclists the arm they hold
            out), `overtaking`, `waiting` (to cross), `crossing` (on the road, on foot), `pushing` (an
            object), ...
        mind: of a pedestrian near the road.
        with_object: number of the actor it pushes or carries; None for none.
        thoughts: what it has in mind, of those who decide.
    """

    number: int
    kind: str
    model: str
    size_m: tuple[float, float, float]
    look: int
    first: int
    position: Floats
    heading: Floats
    speed: Floats
    lamps: npt.NDArray[np.uint8]
    pose: npt.NDArray[np.uint8]
    gait: Floats
    gaze: Floats
    lane: Ints
    active: bool = True
    facts: Mapping[str, npt.NDArray[np.int8]] = field(default_factory=dict)
    mind: Mind | None = None
    with_object: int | None = None
    thoughts: Thoughts | None = None

    @property
    def end(self) -> int:
        """The frame after the last."""
        return self.first + len(self.heading)

    def at(self, frame: int) -> int | None:
        """The row of a frame, None where it is not in the scene."""
        return frame - self.first if self.first <= frame < self.end else None


class Light(IntEnum):
    """State of a traffic light; black is out of order."""

    RED = 0
    AMBER = 1
    GREEN = 2
    BLACK = 3


@dataclass(frozen=True, eq=False)
class Signal:
    """One traffic-light head.

    Args:
        number: from 0; its value in instance masks follows those of the actors.
        position: (3,) the middle of its head in metres.
        heading: where its face points: towards those who must obey it.
        state: (frames,) uint8, `Light`.
        lanes: numbers of the lanes whose traffic obeys it; none for lights of pedestrians.
        junction: number of the junction, -1 at a crossing.
        for_walkers: whether it is a light for pedestrians.
    """

    number: int
    position: Floats
    heading: float
    state: npt.NDArray[np.uint8]
    lanes: tuple[int, ...]
    junction: int
    for_walkers: bool = False


AV_ACTIONS = ("AV-Stop", "AV-Mov", "AV-TurRht", "AV-TurLft", "AV-MovRht", "AV-MovLft", "AV-Ovtak")


@dataclass(frozen=True, eq=False)
class Cause:
    """One thing that bounds the acceleration of the own vehicle's driver in a frame.

    Args:
        kind: `free`, the road alone; `vehicle` or `thing` on its way, `person` on the road, `zebra` with those who use it,
            `queue` behind a junction and those who go first there, `junction` with those who go first, `lights`, or `other`
            (a bay).
        places: (k, 2) where those are who are the cause, in metres; none of lights.
        group: of the traffic lights; -1 for none.
        allows: m/s2 that it allows by itself. Lines behind the one that binds are not looked at.
    """

    kind: str
    places: Floats
    group: int
    allows: float


@dataclass(frozen=True, eq=False)
class Ego:
    """The own vehicle, one row per frame of the scene.

    Args:
        position: (F, 3) of the middle of its rear axle on the ground.
        heading: (F,).
        speed: (F,) m/s.
        acceleration: (F,) m/s2.
        yaw_rate: (F,) rad/s, left positive.
        action: (F,) index in `AV_ACTIONS`.
        lane: (F,) number of its lane; -1 inside a junction.
        causes: of each frame but the last, all that bounds its acceleration, the tightest first; empty where nobody drives.
    """

    position: Floats
    heading: Floats
    speed: Floats
    acceleration: Floats
    yaw_rate: Floats
    action: Ints
    lane: Ints
    causes: tuple[tuple[Cause, ...], ...] = ()
