"""The words of the ground truth, and in which of ROAD's locations somebody is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, list_label_names
from roadaware.demo_data import road
from roadaware.simulator.actors import AGENTS, AV_ACTIONS, OBJECTS, Actor, Ego, Pose
from roadaware.simulator.layout import Layout, Line
from roadaware.simulator.town import On, Regions, Where

LICENCE = "made up by roadaware; free of terms"
ACTIONS = (
    *("Red", "Amber", "Green", "Black", "MovAway", "MovTow", "Mov", "Rev", "Brake", "Stop", "IncatLft"),
    *("IncatRht", "HazLit", "TurLft", "TurRht", "MovRht", "MovLft", "Ovtak", "Wait2X", "XingFmLft"),
    *("XingFmRht", "Xing", "PushObj"),
)
"""The 23 actions of ROAD's table 12."""
LOCATIONS = (
    *("VehLane", "OutgoLane", "OutgoCycLane", "OutgoBusLane", "IncomLane", "IncomCycLane", "IncomBusLane"),
    *("Pav", "LftPav", "RhtPav", "Jun", "xing", "BusStop", "parking", "RhtParking"),
)
"""The 15 locations of ROAD's table 13; `parking` is that on the left of the own vehicle."""
LIGHTS = ("Red", "Amber", "Green", "Black")
"""What a traffic light shows, by `actors.Light`."""

OCCLUSION = ("none", "part", "full")
CROSSING = ("not-crossing", "crossing", "irrelevant")
EVENT_SOURCE = ("annotated", "fallback", "none")
TRACK_LABEL = ("pedestrian", "vehicle", "traffic_light", "object")
WALKING = ("standing", "walking")
LOOK = ("not-looking", "looking")
AGES = ("child", "young", "adult", "senior")
SIGNALIZED = ("n/a", "C", "S", "CS")
TRAFFIC_LIGHT = ("n/a", "red", "yellow", "green")
STAGED_POSES = tuple(pose.name.lower() for pose in Pose)
"""What bodies do in staged crowds."""
POSES = STAGED_POSES[: Pose.AIM]
"""What they do elsewhere; tables that are written hold this list."""
CORNER = tuple(OBJECTS)
CORNER_SUPER = tuple(dict.fromkeys(OBJECTS.values()))

CROWD_ACTIONS: dict[Pose, str] = {
    Pose.WALK: "walking",
    Pose.RUN: "running/escaping",
    Pose.PUSH_OBJECT: "carrying",
    Pose.WAVE: "waving hands",
    Pose.PUNCH: "punching",
    Pose.SHOVE: "pushing",
    Pose.LIE: "injured",
    Pose.FILM: "recording",
    Pose.THROW: "throwing object",
    Pose.HOLD_FLAG: "holding flag",
    Pose.HOLD_SIGN: "holding signage",
    Pose.KNEEL: "kneeling",
    Pose.HUG: "hugging",
    Pose.ARGUE: "arguing",
    Pose.SHOUT: "shouting",
    Pose.PHONE: "speaking/talking",
    Pose.CLAP: "clapping",
    Pose.FLINCH: "retreating",
    Pose.KICK: "fighting",
    Pose.THREATEN: "holding weapon",
    Pose.DANCE: "dancing",
    Pose.HANDS_UP: "raising hands",
}
"""The official action that a pose shows; standing alone is none, unless they watch somebody."""
SOUND_WORDS = {
    "horn": "honking",
    "siren": "siren (police)",
    "engine": "truck engine",
    "crash": "crashing",
    "voice": "speaking",
    "voices": "speaking",
    "clap": "clapping",
    "claps": "clapping",
    "chant": "chanting/cheering",
    "cheer": "chanting/cheering",
    "cry": "crying",
    "bang": "explosion",
    "glass": "shattering",
}
"""What the simulator calls sounds in the official words, where its own is none of them."""

ROAD_VOCABULARIES: dict[str, tuple[str, ...]] = {
    "agentness": road.AGENTNESS,
    "agent": AGENTS,
    "action": ACTIONS,
    "location": LOCATIONS,
    "duplex": road.DUPLEXES,
    "event": road.EVENTS,
    "av_action": AV_ACTIONS,
}
CROWD_VOCABULARIES: dict[str, tuple[str, ...]] = {
    "agentness": road.AGENTNESS,
    "agent": AGENTS,
    "action": ACTIONS_OFFICIAL,
    "av_action": AV_ACTIONS,
    "predicate": list_label_names("interaction"),
}
COMPOSITES: dict[str, tuple[str, ...]] = dict(road.COMPOSITES)


def list_composite_parts(kind: str) -> list[list[int]]:
    """For each label of a composite kind the indices of its parts.

    >>> list_composite_parts("event")[0]  # Bus-MovTow-IncomLane
    [6, 5, 4]
    """
    parts = [ROAD_VOCABULARIES[part] for part in COMPOSITES[kind]]
    return [
        [part.index(word) for part, word in zip(parts, name.split("-"), strict=True)]
        for name in ROAD_VOCABULARIES[kind]
    ]


# View: an actor as the own vehicle has it in each frame: how far, on which side, and which way it moves.


@dataclass(frozen=True, eq=False)
class View:
    """An actor seen from the own vehicle, one row for each of its frames.

    Args:
        frame: (n,) of the scene.
        heading: (n,) of the own vehicle, radians.
        position: (n, 2) in the world, metres.
        ahead: (n,) metres before the own vehicle's rear axle.
        left: (n,) metres to its left.
        distance: (n,) metres from its rear axle.
        sight: (n, 2) unit vectors from it to the actor.
        velocity: (n, 2) m/s in the world.
        forward: (n,) m/s along the own vehicle's heading.
        leftward: (n,) m/s to its left.
        away: (n,) m/s along the line from the own vehicle to the actor, which ignores how that one moves.
        faces_away: (n,) whether its back is turned to the own vehicle.
    """

    frame: Ints
    heading: Floats
    position: Floats
    ahead: Floats
    left: Floats
    distance: Floats
    sight: Floats
    velocity: Floats
    forward: Floats
    leftward: Floats
    away: Floats
    faces_away: Bools

    @property
    def pace(self) -> Floats:
        """(n,) m/s, whatever the direction."""
        pace: Floats = np.hypot(self.velocity[:, 0], self.velocity[:, 1])
        return pace


def compute_view(actor: Actor, ego: Ego) -> View:
    """How the own vehicle has an actor."""
    frame = np.arange(actor.first, actor.end)
    heading = ego.heading[frame]
    front = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    side = np.stack([-front[:, 1], front[:, 0]], axis=1)
    position = actor.position[:, :2]
    line = position - ego.position[frame, :2]
    distance = np.hypot(line[:, 0], line[:, 1])
    faces = np.stack([np.cos(actor.heading), np.sin(actor.heading)], axis=1)
    velocity = faces * actor.speed[:, None]
    sight = line / np.maximum(distance, 1e-9)[:, None]
    return View(
        frame,
        heading,
        position,
        (line * front).sum(1),
        (line * side).sum(1),
        distance,
        sight,
        velocity,
        (velocity * front).sum(1),
        (velocity * side).sum(1),
        (velocity * sight).sum(1),
        (faces * sight).sum(1) > 0,
    )


def wrap_angle(angle: float) -> float:
    """An angle between -pi and pi."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def filter_short_runs(codes: Ints, least: int) -> Ints:
    """The codes without passing ones: short runs take the code before them, at the start that after.

    Args:
        codes: (n,) one for each frame.
        least: frames that a run must last.

    >>> filter_short_runs(np.array([1, 1, 1, 2, 1, 1, 3, 3]), 2).tolist()
    [1, 1, 1, 1, 1, 1, 3, 3]
    """
    found = codes.copy()
    # Prepended by another code, so that the first run starts at 0.
    starts = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))
    ends = np.append(starts[1:], len(codes))
    long = ends - starts >= least
    if not long.any():
        return found
    before: int | None = None
    first = int(codes[starts[np.argmax(long)]])
    for start, end, lasts in zip(starts.tolist(), ends.tolist(), long.tolist(), strict=True):
        if lasts:
            before = int(codes[start])
        else:
            found[start:end] = first if before is None else before
    return found


def fill_short_gaps(flags: Bools, frames: int) -> Bools:
    """The flags with the gaps between them closed where they last at most some frames.

    Args:
        flags: (n,).
        frames: longest gap that is closed.

    >>> fill_short_gaps(np.array([1, 0, 0, 1, 0, 0, 0, 1]) > 0, 2).astype(int).tolist()
    [1, 1, 1, 1, 0, 0, 0, 1]
    """
    found = flags.copy()
    lit = np.flatnonzero(flags)
    for low, high in zip(lit[:-1].tolist(), lit[1:].tolist(), strict=True):
        # Only gaps between lit frames: before the first flash and after the last nothing is indicated.
        if high - low - 1 <= frames:
            found[low:high] = True
    return found


NOWHERE = -1
_PARALLEL = np.cos(np.radians(60.0))
_SLOW_MPS = 1.0
_CORNER_M = 9.0
_CODE = {name: code for code, name in enumerate(LOCATIONS)}
_OUT = {"vehicle": "OutgoLane", "bus": "OutgoBusLane", "cycle": "OutgoCycLane", "parking": "OutgoLane"}
_IN = {"vehicle": "IncomLane", "bus": "IncomBusLane", "cycle": "IncomCycLane", "parking": "IncomLane"}


@dataclass(frozen=True, eq=False)
class Way:
    """The own vehicle's lane in each frame, also inside junctions, and its lanes before and after.

    Args:
        lane: (F,) number of the lane; -1 where there is none at all.
        route: numbers of all lanes that it takes, by road.
    """

    lane: Ints
    route: dict[int, int]


def find_ego_lanes(ego: Ego, layout: Layout) -> Way:
    """Where the own vehicle drives; inside a junction the lane that it points along more."""
    lane = ego.lane.copy()
    known = np.flatnonzero(lane >= 0)
    route = {layout.lanes[number].road: number for number in layout.route}
    route |= {layout.lanes[int(number)].road: int(number) for number in np.unique(lane[known])}
    if not len(known):
        lane[:] = layout.route[0] if layout.route else -1
        return Way(lane, route)
    for frame in np.flatnonzero(lane < 0):
        place = int(np.searchsorted(known, frame))
        near = [int(ego.lane[known[k]]) for k in (place - 1, place) if 0 <= k < len(known)]
        along = [_along(layout.lanes[k].line, ego.position[frame : frame + 1, :2])[0][0] for k in near]
        turned = [abs(wrap_angle(float(each - ego.heading[frame]))) for each in along]
        lane[frame] = near[int(np.argmin(turned))]
    return Way(lane, route)


@dataclass(frozen=True, eq=False)
class Ground:
    """Ground under an actor, a row for each of its rows.

    Args:
        where: what lies under them.
        lane: (n,) number of their lane, between lanes the nearest; -1 for none.
        lane_heading: (n,) direction of travel on it, in radians.
        road_heading: (n,) direction of the road's line.
        left_of_line: (n,) whether they are to the left of it.
    """

    where: Where
    lane: Ints
    lane_heading: Floats
    road_heading: Floats
    left_of_line: npt.NDArray[np.bool_]


class Places:
    """Locations of actors in a layout, seen from the own vehicle.

    Args:
        layout: roads and what lies beside them.
        ego: the own vehicle.
    """

    def __init__(self, layout: Layout, ego: Ego) -> None:
        self.layout, self.ego = layout, ego
        self.regions, self.way = Regions(layout), find_ego_lanes(ego, layout)

    def ground(self, actor: Actor) -> Ground:
        """Ground under an actor in each of its rows."""
        place = actor.position[:, :2]
        where = self.regions.at(place)
        lane = np.where(actor.lane >= 0, actor.lane, where.lane)
        for number in np.unique(where.road[(lane < 0) & (where.road >= 0)]).tolist():
            rows = np.flatnonzero((lane < 0) & (where.road == number))
            used = [k for k in self.layout.roads[number].lanes if self.layout.lanes[k].kind != "pavement"]
            away = [np.abs(self.layout.lanes[k].line.project(place[rows])[1]) for k in used]
            if used:
                lane[rows] = np.array(used)[np.argmin(away, axis=0)]
        lane_heading, road_heading = np.zeros(len(place)), np.zeros(len(place))
        left = np.zeros(len(place), dtype=np.bool_)
        for number in np.unique(lane[lane >= 0]).tolist():
            rows = np.flatnonzero(lane == number)
            lane_heading[rows] = _along(self.layout.lanes[number].line, place[rows])[0]
        for number in np.unique(where.road[where.road >= 0]).tolist():
            rows = np.flatnonzero(where.road == number)
            road_heading[rows], left[rows] = _along(self.layout.roads[number].line, place[rows])
        return Ground(where, lane, lane_heading, road_heading, left)

    def flow(self, view: View, ground: Ground) -> Floats:
        """(n,) direction of the own vehicle's lane, in radians: that of its road where an actor is on it."""
        road = ground.where.road
        on_route = np.isin(road, list(self.way.route))
        parallel = np.abs(np.cos(ground.road_heading - view.heading)) > _PARALLEL
        flow: Floats = np.where(
            on_route & (parallel | (road == self._road(view.frame))), ground.road_heading, view.heading
        )
        return flow

    def _road(self, frame: Ints) -> Ints:
        """(n,) the own vehicle's road in some frames, -1 for none."""
        roads = np.array([lane.road for lane in self.layout.lanes] + [-1], dtype=np.int64)
        found: Ints = roads[self.way.lane[frame]]
        return found

    def locations(self, actor: Actor, view: View, ground: Ground) -> Ints:
        """(n,) index of the location in each row of an actor, `NOWHERE` where it is off everything."""
        found = np.full(len(actor.heading), NOWHERE, dtype=np.int64)
        for row in range(len(found)):
            name = self._one(actor, view, ground, row)
            found[row] = _CODE[name] if name else NOWHERE
        return found

    def _one(self, actor: Actor, view: View, ground: Ground, row: int) -> str | None:
        on, raised = On(int(ground.where.on[row])), bool(ground.where.height_m[row] > 0)
        if on == On.CROSSING and (actor.kind == "Ped" or _crosses(actor, row)):
            return "xing"
        # Who walks past a bus stop is on the pavement, and a bus that passes it is in its lane.
        if on == On.BUS_STOP and (raised or actor.kind == "Bus") and abs(actor.speed[row]) < _SLOW_MPS:
            return "BusStop"
        if on == On.PAVEMENT or raised:
            return self._pavement(view, ground, row)
        if on == On.JUNCTION:
            return "Jun"
        if ground.lane[row] < 0:
            return None
        kind = self.layout.lanes[int(ground.lane[row])].kind
        if kind == "parking":
            return "parking" if self._on_left(view, ground, row) else "RhtParking"
        if kind == "pavement":
            return self._pavement(view, ground, row)
        return self._driven(view, ground, row)

    def _driven(self, view: View, ground: Ground, row: int) -> str:
        """A lane for driving: the own one, one of the same direction, or an oncoming one."""
        lane = self.layout.lanes[int(ground.lane[row])]
        if lane.number == int(self.way.lane[view.frame[row]]):
            return "VehLane"
        along = float(ground.lane_heading[row])
        turned = float(np.cos(along - view.heading[row]))
        on_route = self.way.route.get(lane.road)
        if on_route == lane.number and turned > _PARALLEL:
            return "VehLane"
        if on_route is not None:
            same = lane.forward == self.layout.lanes[on_route].forward
        elif abs(turned) >= _PARALLEL:
            same = turned > 0
        else:  # on a road that crosses ours, what leads away from us flows as we do
            sight = view.sight[row]
            same = bool(np.cos(along) * sight[0] + np.sin(along) * sight[1] > 0)
        return _OUT[lane.kind] if same else _IN[lane.kind]

    def _pavement(self, view: View, ground: Ground, row: int) -> str:
        """The pavement to the left or right of the own vehicle's road, or one across its way."""
        own = int(self.way.lane[view.frame[row]])
        if ground.where.road[row] < 0:
            half = self.layout.roads[self.layout.lanes[own].road].half_width_m if own >= 0 else 0.0
            beside = abs(view.left[row]) < half + _CORNER_M
            return ("LftPav" if view.left[row] > 0 else "RhtPav") if beside else "Pav"
        parallel = abs(np.cos(ground.road_heading[row] - view.heading[row])) >= _PARALLEL
        if not parallel and self._road(view.frame[row : row + 1])[0] != ground.where.road[row]:
            return "Pav"
        return "LftPav" if self._on_left(view, ground, row) else "RhtPav"

    def _on_left(self, view: View, ground: Ground, row: int) -> bool:
        """Whether somebody is on the left side of a road as the own vehicle sees it."""
        own = int(self.way.lane[view.frame[row]])
        if own >= 0 and self.layout.lanes[own].road == ground.where.road[row]:
            forward = self.layout.lanes[own].forward
        else:
            forward = bool(np.cos(ground.road_heading[row] - view.heading[row]) > 0)
        return bool(ground.left_of_line[row]) == forward


def _crosses(actor: Actor, row: int) -> bool:
    held = actor.facts.get("crossing")
    return held is not None and bool(held[row])


def _along(line: Line, place: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(n,) direction of a line beside points, and whether they lie to its left."""
    s, left = line.project(place)
    return line.heading(s), left > 0
