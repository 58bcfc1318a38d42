"""Places: in which of ROAD's locations somebody is, from the own vehicle's view and lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.scenes.simulator.actors import Actor, Ego
from roadaware.scenes.simulator.layout import Lane, Layout
from roadaware.scenes.simulator.town import On, Regions, Where
from roadaware.scenes.simulator.truth.terms import LOCATIONS
from roadaware.scenes.simulator.truth.views import View, wrapped

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

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


def way_of(ego: Ego, layout: Layout) -> Way:
    """Where the own vehicle drives; inside a junction the lane that it points along more.

    Args:
        ego: the own vehicle.
        layout: its roads.
    """
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
        turned = [
            abs(wrapped(_heading(layout.lanes[k], ego.position[frame, :2]) - ego.heading[frame]))
            for k in near
        ]
        lane[frame] = near[int(np.argmin(turned))]
    return Way(lane, route)


class Places:
    """Locations of actors in a layout, seen from the own vehicle.

    Args:
        layout: roads and what lies beside them.
        ego: the own vehicle.
    """

    def __init__(self, layout: Layout, ego: Ego) -> None:
        self.layout, self.ego = layout, ego
        self.regions, self.way = Regions(layout), way_of(ego, layout)

    def where(self, actor: Actor) -> Where:
        """What lies under an actor in each of its rows.

        Args:
            actor: of the scene.
        """
        return self.regions.at(actor.position[:, :2])

    def locations(self, actor: Actor, view: View, where: Where) -> Ints:
        """(n,) index of the location in each row of an actor, `NOWHERE` where it is off everything.

        Args:
            actor: of the scene.
            view: of it.
            where: what lies under it.
        """
        found = np.full(len(actor.heading), NOWHERE, dtype=np.int64)
        for row in range(len(found)):
            name = self._one(actor, view, where, row)
            found[row] = _CODE[name] if name else NOWHERE
        return found

    def flow(self, view: View, where: Where) -> Floats:
        """(n,) direction of the own vehicle's lane, in radians: that of its road where an actor is on it.

        Args:
            view: of an actor.
            where: what lies under it.
        """
        flow = view.heading.copy()
        for row in np.flatnonzero(where.road >= 0):
            number, frame = int(where.road[row]), int(view.frame[row])
            own = int(self.way.lane[frame])
            if number in self.way.route:
                along = _road_heading(self.layout, number, view.position[row])
                same = own >= 0 and self.layout.lanes[own].road == number
                if same or abs(np.cos(along - flow[row])) > _PARALLEL:
                    flow[row] = along
        return flow

    def _one(self, actor: Actor, view: View, where: Where, row: int) -> str | None:
        on, raised = On(int(where.on[row])), bool(where.height_m[row] > 0)
        walks = actor.kind == "Ped"
        if on == On.CROSSING and (walks or _crosses(actor, row)):
            return "xing"
        if on == On.BUS_STOP and (raised or (actor.kind == "Bus" and abs(actor.speed[row]) < _SLOW_MPS)):
            return "BusStop"
        if on == On.PAVEMENT or raised:
            return self._pavement(where, view, row)
        if on == On.JUNCTION:
            return "Jun"
        lane = self._lane(actor, where, row)
        if lane is None:
            return None
        frame = int(view.frame[row])
        if lane.kind == "parking":
            return "parking" if self._left(lane, actor.position[row, :2], frame) else "RhtParking"
        if lane.kind == "pavement":
            return self._pavement(where, view, row)
        return self._driven(lane, actor.position[row, :2], frame)

    def _lane(self, actor: Actor, where: Where, row: int) -> Lane | None:
        """The lane below an actor; between lanes the nearest of the road."""
        number = int(actor.lane[row]) if actor.lane[row] >= 0 else int(where.lane[row])
        if number < 0 and where.road[row] >= 0:
            place = actor.position[row : row + 1, :2]
            lanes = [self.layout.lanes[k] for k in self.layout.roads[int(where.road[row])].lanes]
            used = [lane for lane in lanes if lane.kind != "pavement"]
            away = [abs(float(lane.line.project(place)[1][0])) for lane in used]
            number = used[int(np.argmin(away))].number if used else -1
        return self.layout.lanes[number] if number >= 0 else None

    def _driven(self, lane: Lane, place: Floats, frame: int) -> str:
        """A lane for driving: the own one, one of the same direction, or an oncoming one."""
        own = int(self.way.lane[frame])
        if lane.number == own:
            return "VehLane"
        ahead = float(self.ego.heading[frame])
        along = _heading(lane, place)
        on_route = self.way.route.get(lane.road)
        if on_route == lane.number and np.cos(along - ahead) > _PARALLEL:
            return "VehLane"
        if on_route is not None:
            same = lane.forward == self.layout.lanes[on_route].forward
        elif abs(np.cos(along - ahead)) >= _PARALLEL:
            same = bool(np.cos(along - ahead) > 0)
        else:  # on a road that crosses ours, what leads away from us flows as we do
            line = place - self.ego.position[frame, :2]
            same = bool(np.cos(along) * line[0] + np.sin(along) * line[1] > 0)
        return _OUT[lane.kind] if same else _IN[lane.kind]

    def _pavement(self, where: Where, view: View, row: int) -> str:
        """The pavement to the left or right of the own vehicle's road, or one across its way."""
        frame, number = int(view.frame[row]), int(where.road[row])
        own = int(self.way.lane[frame])
        if number < 0:
            beside = abs(view.left[row]) < self._half(own) + _CORNER_M
            return ("LftPav" if view.left[row] > 0 else "RhtPav") if beside else "Pav"
        place = view.position[row]
        along = _road_heading(self.layout, number, place)
        turned = float(np.cos(along - self.ego.heading[frame]))
        same_road = own >= 0 and self.layout.lanes[own].road == number
        if abs(turned) < _PARALLEL and not same_road:
            return "Pav"
        forward = self.layout.lanes[own].forward if same_road else turned > 0
        road = self.layout.roads[number]
        left_of_line = float(road.line.project(place[None])[1][0]) > 0
        return "LftPav" if left_of_line == forward else "RhtPav"

    def _left(self, lane: Lane, place: Floats, frame: int) -> bool:
        """Whether a lane lies on the left side of its road as the own vehicle sees it."""
        own = int(self.way.lane[frame])
        if own >= 0 and self.layout.lanes[own].road == lane.road:
            forward = self.layout.lanes[own].forward
        else:
            forward = bool(np.cos(_road_heading(self.layout, lane.road, place) - self.ego.heading[frame]) > 0)
        return (lane.side > 0) == forward

    def _half(self, own: int) -> float:
        return self.layout.roads[self.layout.lanes[own].road].half_width_m if own >= 0 else 0.0


def _crosses(actor: Actor, row: int) -> bool:
    held = actor.facts.get("crossing")
    return held is not None and bool(held[row])


def _heading(lane: Lane, place: Floats) -> float:
    return float(lane.line.heading(lane.line.project(place[None])[0])[0])


def _road_heading(layout: Layout, number: int, place: Floats) -> float:
    line = layout.roads[number].line
    return float(line.heading(line.project(place[None])[0])[0])
