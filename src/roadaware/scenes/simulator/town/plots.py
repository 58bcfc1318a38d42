"""Plots: where buildings stand along the roads, and the hedges, fences and trees before and between them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.config import Surroundings
from roadaware.scenes.simulator.layout import Layout, Line, Prop, PropKind, Road
from roadaware.scenes.simulator.town.corners import kerbs
from roadaware.scenes.simulator.town.regions import On, Regions

STOREY_M = 3.0
SUBURB_M = 9.5
"""Towns whose buildings are lower than this have gardens."""
CELL_M = 30.0


@dataclass(eq=False)
class Plots:
    """Ground that is taken.

    Args:
        regions: roads and pavements.
        taken: corners (4, 2) of what stands, by cell of a grid.
    """

    regions: Regions
    taken: dict[tuple[int, int], list[Floats]] = field(default_factory=dict)

    def claim(self, corners: Floats) -> bool:
        """Take a rectangle unless something stands there; whether it was free.

        Args:
            corners: (4, 2) counter-clockwise.
        """
        low, high = (np.floor(f(corners, axis=0) / CELL_M).astype(int) for f in (np.min, np.max))
        cells = [(x, y) for x in range(low[0], high[0] + 1) for y in range(low[1], high[1] + 1)]
        if any(_overlap(corners, other) for cell in cells for other in self.taken.get(cell, ())):
            return False
        for cell in cells:
            self.taken.setdefault(cell, []).append(corners)
        return True

    def off_road(self, rectangles: Floats) -> list[bool]:
        """Whether no point of a rectangle lies on a road or pavement.

        Args:
            rectangles: (n, 4, 2).
        """
        shares = np.array([(a, b) for a in np.linspace(0, 1, 5) for b in np.linspace(0, 1, 5)])
        a, b, c, d = rectangles.transpose(1, 0, 2)[:, :, None]
        u, v = shares[:, :1], shares[:, 1:]
        places = a * (1 - u) * (1 - v) + b * u * (1 - v) + c * u * v + d * (1 - u) * v
        on = self.regions.at(places.reshape(-1, 2)).on.reshape(len(rectangles), -1)
        return [bool(x) for x in (on == On.OFF).all(1)]


def _overlap(a: Floats, b: Floats) -> bool:
    """Whether two rectangles overlap by more than a seam: no edge of either parts them."""
    if np.hypot(*(a[0] + a[2] - b[0] - b[2])) > np.hypot(*(a[0] - a[2])) + np.hypot(*(b[0] - b[2])):
        return False
    for first, second in ((a, b), (b, a)):
        edges = np.roll(first, -1, axis=0) - first
        normals = np.stack([edges[:, 1], -edges[:, 0]], axis=1) / np.hypot(edges[:, 0], edges[:, 1])[:, None]
        away = ((second[None] - first[:, None]) * normals[:, None]).sum(2).min(1)
        if (away > -0.05).any():
            return False
    return True


def corners_of(place: Floats, heading: float, length: float, width: float) -> Floats:
    """(4, 2) the corners of a rectangle, counter-clockwise from the front on its right.

    Args:
        place: (2,) of its middle.
        heading: of its front, in radians.
        length: along the heading.
        width: across.
    """
    go = np.array([np.cos(heading), np.sin(heading)])
    left = np.array([-go[1], go[0]])
    found: Floats = place + np.array(
        [
            go * length / 2 - left * width / 2,
            go * length / 2 + left * width / 2,
            -go * length / 2 + left * width / 2,
            -go * length / 2 - left * width / 2,
        ]
    )
    return found


def place_buildings(
    layout: Layout, where: Surroundings, plots: Plots, rng: np.random.Generator
) -> list[Prop]:
    """Buildings with their gardens, in two rows along both sides of all roads, and across their ends.

    Args:
        layout: of roads.
        where: height of buildings and greenery.
        plots: what is taken; it grows.
        rng: of the town.
    """
    found: list[Prop] = []
    for road in layout.roads:
        found += _closing(road, where, plots, rng)
    for road in layout.roads:
        for side in (1, -1):
            found += _row(road, side, where, plots, rng)
    for junction in layout.junctions:
        for kerb, width in kerbs(layout, junction):
            # Where no road leaves a junction the row goes on, as if along a road without lanes.
            if abs(kerb.headings[-1] - kerb.headings[0]) < 0.5:
                found += _row(Road(-1, Line(kerb.points), (), 0.0, width), -1, where, plots, rng)
    for road in layout.roads:
        for side in (1, -1):
            found += _backdrop(road, side, where, plots, rng)
    return found


def _height(where: Surroundings, rng: np.random.Generator) -> float:
    storeys = max(1.0, round(where.height_m * rng.uniform(0.65, 1.4) / STOREY_M))
    return float(storeys * STOREY_M + 0.4)


def _row(road: Road, side: int, where: Surroundings, plots: Plots, rng: np.random.Generator) -> list[Prop]:
    """The buildings of one side of a road."""
    suburb = where.height_m < SUBURB_M
    terraced = bool(rng.random() < 0.5)
    setback = float(rng.uniform(2.0, 6.0) if suburb else rng.uniform(0.1, 1.5))
    height = _height(where, rng)
    s, stretches = -2.0, []
    while s < road.line.length:
        width = float(rng.uniform(6.5, 11.0) if suburb else rng.uniform(10.0, 22.0))
        gap = 0.0 if terraced and rng.random() < 0.85 else float(rng.uniform(1.2, 5.0))
        stretches.append((s + width / 2, width, float(rng.uniform(8.0, 11.5)), gap))
        s += width + gap
    tries: list[Floats] = []
    fronts = setback + np.array([0.0, 1.0, 2.5, 5.0])
    for middle, width, depth, _ in stretches:
        tries += [_rectangle(road, side, middle, front, depth, width) for front in fronts]
    free = plots.off_road(np.array(tries))
    found: list[Prop] = []
    for k, (middle, width, depth, _) in enumerate(stretches):
        if rng.random() < 0.12:
            height = _height(where, rng)
        options = [front for j, front in enumerate(fronts) if free[len(fronts) * k + j]]
        look = int(rng.integers(2**31))
        if not options or not plots.claim(_rectangle(road, side, middle, options[0], depth, width)):
            continue
        place, facing = _stand(road, side, middle, options[0] + depth / 2)
        found.append(Prop("building", place, facing, (depth, width, height), look))
        if suburb and options[0] > 1.5:
            found += _garden(road, side, middle, width, options[0], where, plots, rng)
    return found


def _stand(road: Road, side: int, s: float, out: float) -> tuple[tuple[float, float], float]:
    """A place beside the pavement, and the heading from there to the road."""
    line = road.line
    place = line.beside(s, side * (road.half_width_m + road.pavement_m + out))
    return (float(place[0]), float(place[1])), float(line.heading(s)) - side * np.pi / 2


def _rectangle(road: Road, side: int, s: float, front: float, depth: float, width: float) -> Floats:
    place, facing = _stand(road, side, s, front + depth / 2)
    return corners_of(np.array(place), facing, depth, width)


def _garden(
    road: Road,
    side: int,
    s: float,
    width: float,
    front: float,
    where: Surroundings,
    plots: Plots,
    rng: np.random.Generator,
) -> list[Prop]:
    """A hedge, a fence or nothing at the pavement, with a gap for the path, and maybe a tree."""
    found: list[Prop] = []
    draw = rng.random(4)
    border: PropKind | None = (
        "hedge" if draw[0] < 0.25 + 0.3 * where.greenery else "fence" if draw[0] < 0.8 else None
    )
    if border is not None:
        height = float(rng.uniform(0.8, 1.5)) if border == "hedge" else float(rng.uniform(0.7, 1.1))
        thick = 0.6 if border == "hedge" else 0.12
        look = int(rng.integers(2**31))
        for at, length in ((s - width * 0.21, width * 0.52), (s + width * 0.35, width * 0.24)):
            place, facing = _stand(road, side, at, 0.1 + thick / 2)
            box = corners_of(np.array(place), facing, thick, length)
            if plots.off_road(corners_of(np.array(place), facing, thick * 0.6, length * 0.9)[None])[0]:
                plots.claim(box)
                found.append(Prop(border, place, facing, (thick, length, height), look))
    if draw[1] < 0.55 * where.greenery and front > 3.0:
        place, facing = _stand(road, side, s + width * (draw[2] - 0.5) * 0.7, front / 2)
        crown = float(rng.uniform(1.8, min(front, 4.0)))
        found.append(_tree(place, crown, float(rng.uniform(2.5, 6.0)), rng))
    return found


def _tree(place: tuple[float, float], crown: float, height: float, rng: np.random.Generator) -> Prop:
    look = int(rng.integers(2**31))
    return Prop("tree", place, float(rng.uniform(-np.pi, np.pi)), (crown, crown, height), look)


def _closing(road: Road, where: Surroundings, plots: Plots, rng: np.random.Generator) -> list[Prop]:
    """What closes the view at the far end of a road, unless it goes on."""
    end, heading = road.line.points[-1], float(road.line.heading(road.line.length))
    go = np.array([np.cos(heading), np.sin(heading)])
    depth, width = 10.0, 2 * (road.half_width_m + road.pavement_m) + 8.0
    place = end + go * (depth / 2 + 4.0)
    box = corners_of(place, heading + np.pi, depth, width)
    height, look = _height(where, rng), int(rng.integers(2**31))
    if not plots.off_road(box[None])[0] or not plots.claim(box):
        return []
    spot = (float(place[0]), float(place[1]))
    return [Prop("building", spot, heading + np.pi, (depth, width, height), look)]


def _backdrop(
    road: Road, side: int, where: Surroundings, plots: Plots, rng: np.random.Generator
) -> list[Prop]:
    """Tall buildings and trees behind the first row, which show above and between it."""
    found: list[Prop] = []
    stops = np.arange(4.0, road.line.length, 17.0)
    out = rng.uniform(24.0, 40.0, len(stops))
    sizes = rng.uniform((9.0, 10.0), (14.0, 20.0), (len(stops), 2))
    draws = rng.random(len(stops))
    boxes = [_rectangle(road, side, s, far, *size) for s, far, size in zip(stops, out, sizes, strict=True)]
    if not boxes:
        return found
    free = plots.off_road(np.array(boxes))
    for s, far, size, box, ok, draw in zip(stops, out, sizes, boxes, free, draws, strict=True):
        place, facing = _stand(road, side, float(s), float(far + size[0] / 2))
        height, look = 1.35 * _height(where, rng) + 2.0, int(rng.integers(2**31))
        if draw > 0.75 or not ok or not plots.claim(box):
            continue
        if draw < 0.45 * where.greenery:
            found.append(_tree(place, float(rng.uniform(5.0, 8.0)), float(rng.uniform(8.0, 13.0)), rng))
        else:
            found.append(Prop("building", place, facing, (float(size[0]), float(size[1]), height), look))
    return found
