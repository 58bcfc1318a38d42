"""Layout: roads, lanes, junctions, crossings and what stands beside them, as lines and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats

LaneKind = Literal["vehicle", "bus", "cycle", "parking", "pavement"]
CrossingKind = Literal["zebra", "signalled"]
Turn = Literal["straight", "left", "right"]
PropKind = Literal["building", "tree", "lamp_post", "bus_stop", "sign", "bin", "hedge", "fence", "bollard"]


@dataclass(frozen=True, eq=False)
class Line:
    """A line through points, by its length.

    Args:
        points: (n, 2) in metres, n at least 2.
    """

    points: Floats
    s: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        steps = np.hypot(*np.diff(self.points, axis=0).T)
        object.__setattr__(self, "s", np.concatenate([[0.0], np.cumsum(steps)]))

    @property
    def length(self) -> float:
        """In metres."""
        return float(self.s[-1])

    def at(self, s: npt.ArrayLike) -> Floats:
        """(..., 2) the points at lengths along the line; beyond its ends it goes straight on.

        Args:
            s: (...) metres from the start.
        """
        s = np.asarray(s, dtype=np.float64)
        place = np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, len(self.s) - 2)
        steps = np.diff(self.points, axis=0)
        # Two points may be the same.
        lengths = np.maximum(np.diff(self.s), 1e-9)
        # Not clipped: beyond 0 and 1 the end pieces go straight on.
        share = (s - self.s[place]) / lengths[place]
        found: Floats = self.points[place] + steps[place] * share[..., None]
        return found

    def heading(self, s: npt.ArrayLike) -> Floats:
        """(...) direction of travel in radians at lengths along the line."""
        s = np.asarray(s, dtype=np.float64)
        place = np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, len(self.s) - 2)
        steps = np.diff(self.points, axis=0)[place]
        found: Floats = np.arctan2(steps[..., 1], steps[..., 0])
        return found

    def beside(self, s: npt.ArrayLike, left_m: npt.ArrayLike) -> Floats:
        """(..., 2) points at a distance to the left of the line; right is negative."""
        turn = self.heading(s) + np.pi / 2
        offset = np.asarray(left_m, dtype=np.float64)
        found: Floats = self.at(s) + offset[..., None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
        return found

    def project(self, points: Floats) -> tuple[Floats, Floats]:
        """For each point the length along the line of what is nearest, and how far left of it it lies.

        Args:
            points: (m, 2) in metres.

        Returns:
            (m,) and (m,) metres.
        """
        points = np.atleast_2d(points)
        start, step = self.points[:-1], np.diff(self.points, axis=0)
        # As above, squared.
        square = np.maximum((step**2).sum(1), 1e-12)
        share = np.clip(((points[:, None] - start) * step).sum(2) / square, 0.0, 1.0)
        away = points[:, None] - (start + share[..., None] * step)
        nearest = (away**2).sum(2).argmin(1)
        rows = np.arange(len(points))
        along = self.s[nearest] + share[rows, nearest] * np.sqrt(square[nearest])
        gap = away[rows, nearest]
        cross = step[nearest, 0] * gap[:, 1] - step[nearest, 1] * gap[:, 0]
        return along, np.sign(cross) * np.hypot(gap[:, 0], gap[:, 1])


@dataclass(frozen=True, eq=False)
class Lane:
    """One lane, or pavement, of a road.

    Args:
        number: from 0, over all lanes of the layout.
        road: number of its road.
        kind: what may use it.
        line: its middle, in the direction of travel (of pavements: that of the road).
        width_m: of it.
        forward: whether travel is along the road's line.
        side: 1 if it lies left of the road's line, -1 right.
        order: 0 for the lane next to the middle of the road, then outwards.
        bays: (start, end) along the lane of bus stops on it or beside it, metres.
    """

    number: int
    road: int
    kind: LaneKind
    line: Line
    width_m: float
    forward: bool
    side: int
    order: int
    bays: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, eq=False)
class Crossing:
    """Where people cross a road between its pavements.

    Args:
        number: from 0.
        road: number of the road.
        s_m: where its middle lies along the road's line.
        width_m: along the road.
        kind: zebra or signalled.
        signals: numbers of its signals.
    """

    number: int
    road: int
    s_m: float
    width_m: float
    kind: CrossingKind
    signals: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Road:
    """A road.

    Args:
        number: from 0; 0 is the road the own vehicle starts on.
        line: its middle.
        lanes: numbers of its lanes, pavements included.
        half_width_m: from its middle to its kerb.
        pavement_m: width of its pavements.
    """

    number: int
    line: Line
    lanes: tuple[int, ...]
    half_width_m: float
    pavement_m: float


@dataclass(frozen=True, eq=False)
class Connector:
    """A way through a junction.

    Args:
        start: number of the lane it comes from.
        end: number of the lane it leads to.
        line: of travel.
        turn: where it turns.
    """

    start: int
    end: int
    line: Line
    turn: Turn


@dataclass(frozen=True, eq=False)
class Junction:
    """Where roads meet.

    Args:
        number: from 0.
        outline: (n, 2) corners of its area, counter-clockwise.
        connectors: the ways through it.
        signals: numbers of its signals; none where nobody but the rule of the road decides.
        stops: lane number to where on it one stops, in metres along the lane.
    """

    number: int
    outline: Floats
    connectors: tuple[Connector, ...]
    signals: tuple[int, ...] = ()
    stops: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SignalSite:
    """Position of a traffic light; its state is set by the traffic.

    Args:
        number: from 0.
        position: x, y, z of the middle of its head.
        heading: where its face points.
        lanes: numbers of the lanes that obey it.
        junction: number of the junction, -1 at a crossing.
        crossing: number of the crossing, -1 at a junction.
        for_walkers: whether it is a light for pedestrians.
        group: signals of a group show the same.
    """

    number: int
    position: tuple[float, float, float]
    heading: float
    lanes: tuple[int, ...]
    junction: int
    crossing: int
    for_walkers: bool
    group: int


@dataclass(frozen=True)
class Prop:
    """Something that stands beside the road.

    Args:
        kind: what.
        position: x and y in metres.
        heading: of its front.
        size_m: length, width, height.
        look: seed of its details.
    """

    kind: PropKind
    position: tuple[float, float]
    heading: float
    size_m: tuple[float, float, float]
    look: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Everything that does not move.

    Args:
        roads: by number.
        lanes: by number.
        junctions: by number.
        crossings: by number.
        signals: where traffic lights stand, by number.
        props: buildings, trees, ...
        route: numbers of lanes that the own vehicle takes, one after the other.
    """

    roads: tuple[Road, ...]
    lanes: tuple[Lane, ...]
    junctions: tuple[Junction, ...]
    crossings: tuple[Crossing, ...]
    signals: tuple[SignalSite, ...]
    props: tuple[Prop, ...]
    route: tuple[int, ...]
