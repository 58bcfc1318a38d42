"""Houses of several kinds, where they stand along the roads, and the hedges, fences and trees around them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.config import Surroundings
from roadaware.simulator.layout import Layout, Line, Prop, PropKind, Road
from roadaware.simulator.mesh import Material, Semantic
from roadaware.simulator.town.regions import Coat, Colour, On, Pile, Regions
from roadaware.simulator.town.roads import junction_kerbs

COLUMN_M, STOREY_M = 2.4, 3.0
"""Room of one window in the pattern of facades."""

_BRICKS: tuple[Colour, ...] = ((0.26, 0.1, 0.06), (0.3, 0.16, 0.09), (0.32, 0.25, 0.15), (0.2, 0.09, 0.07))
_PLASTERS: tuple[Colour, ...] = (
    (0.6, 0.57, 0.5),
    (0.55, 0.47, 0.33),
    (0.42, 0.5, 0.52),
    (0.58, 0.42, 0.36),
    (0.5, 0.52, 0.42),
    (0.63, 0.62, 0.6),
)
_CONCRETES: tuple[Colour, ...] = ((0.33, 0.32, 0.3), (0.25, 0.27, 0.29), (0.38, 0.35, 0.3), (0.2, 0.2, 0.21))
_SLATES: tuple[Colour, ...] = (
    (0.06, 0.065, 0.075),
    (0.2, 0.075, 0.045),
    (0.12, 0.09, 0.075),
    (0.1, 0.1, 0.1),
)
_DOORS: tuple[Colour, ...] = (
    (0.03, 0.05, 0.14),
    (0.22, 0.02, 0.02),
    (0.02, 0.09, 0.05),
    (0.02, 0.02, 0.02),
    (0.32, 0.28, 0.05),
    (0.45, 0.45, 0.43),
)
_SIGNS: tuple[Colour, ...] = (
    (0.35, 0.03, 0.03),
    (0.02, 0.12, 0.3),
    (0.03, 0.2, 0.08),
    (0.5, 0.36, 0.03),
    (0.06, 0.06, 0.07),
    (0.3, 0.08, 0.28),
)


@dataclass(frozen=True, eq=False)
class Site:
    """A house while it is built; its front looks along x.

    Args:
        pile: gets the walls.
        deep: half its depth, metres.
        wide: half its width.
        storeys: how many.
        wall: of its facades.
        gable: of its blind walls.
        roof: of its roof.
        rng: of its details.
        fine: whether small parts are wanted.
    """

    pile: Pile
    deep: float
    wide: float
    storeys: int
    wall: Coat
    gable: Coat
    roof: Coat
    rng: np.random.Generator
    fine: bool

    @property
    def eaves(self) -> float:
        """Height of the walls."""
        return self.storeys * STOREY_M + 0.25


def _pick(rng: np.random.Generator, colours: tuple[Colour, ...]) -> Colour:
    base = np.array(colours[int(rng.integers(len(colours)))]) * rng.uniform(0.8, 1.15)
    red, green, blue = np.clip(base * rng.uniform(0.95, 1.05, 3), 0.0, 1.0).tolist()
    return (red, green, blue)


def build_house(prop: Prop, fine: bool) -> Pile:
    """A building in its own axes.

    Args:
        prop: its size and look.
        fine: whether small parts are wanted.
    """
    rng = np.random.default_rng(prop.look)
    depth, width, height = prop.size_m
    storeys = max(1, round((height - 0.4) / STOREY_M))
    draw = float(rng.random())
    if storeys <= 3:
        kinds = ("terrace", "villa", "gabled", "shop")
        kind = kinds[int(np.searchsorted((0.38, 0.62, 0.85), draw))]
    else:
        kind = ("block", "shop", "office")[int(np.searchsorted((0.45, 0.75), draw))]
    colours = {"terrace": _BRICKS, "villa": _PLASTERS, "office": _CONCRETES}.get(kind)
    if colours is None:
        colours = (_BRICKS, _PLASTERS, _CONCRETES if storeys > 3 else _PLASTERS)[int(rng.integers(3))]
    shade = _pick(rng, colours)
    wall = Coat(shade, Material.WINDOWS)
    gable = Coat(shade, Material.BRICK if colours is _BRICKS else Material.MATT)
    roof = Coat(_pick(rng, _SLATES))
    site = Site(Pile(), depth / 2, width / 2, storeys, wall, gable, roof, rng, fine)
    blind = kind in ("terrace", "shop")
    x, y = site.deep, site.wide
    side = site.gable if blind else site.wall
    _facade(site, (x, -y), (x, y), site.wall)
    _facade(site, (x, y), (-x, y), side)
    _facade(site, (-x, y), (-x, -y), site.wall)
    _facade(site, (-x, -y), (x, -y), side)
    if kind in ("block", "office") or (kind == "shop" and storeys > 3):
        x, y, top = site.deep, site.wide, site.eaves
        site.pile.box((-x - 0.12, -y - 0.02, top), (x + 0.12, y + 0.02, top + 0.5), site.gable.shaded(0.75))
        if site.fine and site.rng.random() < 0.6:
            a, b = sorted(site.rng.uniform(-y + 1.0, y - 1.0, 2))
            site.pile.box((-x * 0.5, a, top + 0.5), (x * 0.2, b, top + 2.4), Coat((0.2, 0.2, 0.21)))
    elif kind == "villa":
        x, y, over = site.deep + 0.4, site.wide + 0.4, site.eaves - 0.05
        rise = min(x, y) * site.rng.uniform(0.55, 0.8)
        ridge = max(0.0, y - x)
        top = over + rise
        a, b, c, d = ([x, -y, over], [x, y, over], [-x, y, over], [-x, -y, over])
        left, right = [0.0, ridge, top], [0.0, -ridge, top]
        site.pile.faces([[a, b, left, right], [c, d, right, left]], site.roof)
        site.pile.faces([[b, c, left], [d, a, right]], site.roof)
        site.pile.faces([[d, c, b, a]], site.roof.shaded(0.6))
    else:
        _pitched_roof(site, along=kind != "gabled")
    if kind == "shop":
        _shop_front(site)
    elif fine:
        _door(site)
        if kind in ("terrace", "villa") and rng.random() < 0.5:
            _bay(site)
    if fine and kind in ("terrace", "gabled", "villa"):
        y = site.rng.uniform(0.6, 0.95) * site.wide * (1 if site.rng.random() < 0.5 else -1)
        top = site.eaves + 0.75 * site.deep + 0.7
        coat = site.gable.shaded(0.85)._replace(semantic=Semantic.BUILDING)
        site.pile.box((-0.4, y - 0.45, site.eaves), (0.4, y + 0.45, top), coat)
        for pot in (-0.22, 0.22):
            site.pile.prism((0.0, y + pot), (0.13, 0.1), top, top + 0.45, Coat((0.3, 0.13, 0.07)), 5)
    return site.pile


def _facade(site: Site, start: tuple[float, float], end: tuple[float, float], coat: Coat) -> None:
    """A wall, seen from the right of its direction, with a whole number of windows."""
    length = float(np.hypot(end[0] - start[0], end[1] - start[1]))
    columns = max(1, round(length / COLUMN_M))
    top = site.storeys * STOREY_M
    face = [[*start, 0.0], [*end, 0.0], [*end, site.eaves], [*start, site.eaves]]
    # Windows of other houses lie elsewhere in the pattern, so that other ones are lit.
    far = COLUMN_M * columns
    uv = np.array([[[0.0, 0.0], [far, 0.0], [far, top - 0.01], [0.0, top - 0.01]]])
    blind = np.array([[[0.0, 0.0], [length, 0.0], [length, site.eaves], [0.0, site.eaves]]])
    site.pile.faces([face], coat, uv if coat.material == Material.WINDOWS else blind)


def _pitched_roof(site: Site, along: bool) -> None:
    """A roof whose ridge runs along the street, or towards it."""
    x, y, eaves = site.deep, site.wide, site.eaves
    half = x if along else y
    rise, over = half * site.rng.uniform(0.6, 0.95), 0.35
    top, low = eaves + rise, eaves - rise * over / half
    # Corners as (across the ridge, along the ridge, height).
    long = y if along else x
    ends = long + (0.02 if along else over)
    slope = np.array(
        [[half + over, -ends, low], [half + over, ends, low], [0.0, ends, top], [0.0, -ends, top]]
    )
    tip = np.array([[half, long, eaves], [-half, long, eaves], [0.0, long, top]])
    flip = np.array([-1.0, -1.0, 1.0])
    slopes, tips = np.stack([slope, slope * flip]), np.stack([tip, tip * flip])
    if not along:
        # A quarter turn takes "across the ridge" from x to y.
        turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        slopes, tips = slopes @ turn, tips @ turn
    site.pile.faces(slopes, site.roof)
    # Seen from below where it stands out over the walls.
    site.pile.faces(slopes[:, ::-1] - np.array([0.0, 0.0, 0.08]), site.roof.shaded(0.6))
    site.pile.faces(tips, site.gable)


def _door(site: Site) -> None:
    """A door in the place of one window, with a frame, a step and maybe a canopy."""
    columns = max(1, round(2 * site.wide / COLUMN_M))
    column = int(site.rng.integers(columns))
    middle = (column + 0.5) * 2 * site.wide / columns - site.wide
    x, coat = site.deep, Coat(_pick(site.rng, _DOORS), Material.GLOSSY)
    half = 0.95 if site.storeys > 3 else 0.55
    frame = Coat((0.5, 0.5, 0.48))
    site.pile.box((x, middle - half - 0.16, 0.0), (x + 0.05, middle + half + 0.16, 2.75), frame)
    site.pile.box((x, middle - half, 0.1), (x + 0.09, middle + half, 2.2), coat)
    site.pile.box((x, middle - half + 0.1, 2.28), (x + 0.07, middle + half - 0.1, 2.62), _glass())
    site.pile.box((x, middle - half - 0.2, 0.0), (x + 0.7, middle + half + 0.2, 0.14), Coat((0.3, 0.3, 0.28)))
    if site.rng.random() < 0.5:
        low, high = (x, middle - half - 0.4, 2.8), (x + 0.9, middle + half + 0.4, 2.92)
        site.pile.box(low, high, site.roof)
        site.pile.under(low[:2], high[:2], 2.8, site.roof.shaded(0.7))


def _glass() -> Coat:
    return Coat((0.03, 0.035, 0.04), Material.GLASS)


def _bay(site: Site) -> None:
    """A window that stands out over the ground floor, or over two floors."""
    columns = max(1, round(2 * site.wide / COLUMN_M))
    column = int(site.rng.integers(columns))
    middle = (column + 0.5) * 2 * site.wide / columns - site.wide
    high = STOREY_M * min(site.storeys, int(site.rng.integers(1, 3)))
    x, half, out = site.deep, 1.15, 0.7
    ring = np.array([[x, -half - 0.35], [x + out, -half], [x + out, half], [x, half + 0.35]])
    ring[:, 1] += middle
    white = Coat((0.55, 0.55, 0.52))
    feet = np.stack([ring[:-1], ring[1:]], axis=1)
    for low in np.arange(0.0, high, STOREY_M):
        site.pile.upright(feet, float(low), float(low) + 0.95, site.gable)
        site.pile.upright(feet, float(low) + 0.95, float(low) + 2.4, _glass())
        site.pile.upright(feet, float(low) + 2.4, float(low) + STOREY_M, white)
    posts = ring[1:3]
    for post in posts:
        site.pile.prism((float(post[0]), float(post[1])), (0.09, 0.09), 0.9, high, white, 4)
    roof = np.column_stack([ring, np.full(4, high)])
    site.pile.faces(roof[None], site.roof)


def _shop_front(site: Site) -> None:
    """Panes, a door and a sign over the whole ground floor, maybe with an awning."""
    x, y = site.deep, site.wide - 0.25
    sign = Coat(_pick(site.rng, _SIGNS))
    frame = sign.shaded(0.6)
    site.pile.box((x, -y, 0.0), (x + 0.08, y, 0.5), frame)
    site.pile.box((x, -y, 0.5), (x + 0.05, y, 2.6), _glass())
    site.pile.box((x, -y - 0.1, 2.6), (x + 0.22, y + 0.1, 3.3), sign)
    n = max(2, round(2 * y / 2.2))
    if site.fine:
        for post in np.linspace(-y, y, n + 1):
            site.pile.box((x, post - 0.07, 0.0), (x + 0.12, post + 0.07, 2.6), frame)
        _sign_letters(site, x + 0.23, y)
        door = -y + 2 * y / n * (int(site.rng.integers(n)) + 0.5)
        site.pile.box((x, door - 0.5, 0.05), (x + 0.1, door + 0.5, 2.3), frame.shaded(0.5))
        site.pile.box((x, door - 0.36, 0.3), (x + 0.12, door + 0.36, 2.1), _glass())
    if site.rng.random() < 0.4:
        cloth = Coat(_pick(site.rng, _SIGNS), Material.CLOTH)
        a, b = [x + 0.2, -y, 2.65], [x + 0.2, y, 2.65]
        c, d = [x + 1.3, y, 2.2], [x + 1.3, -y, 2.2]
        site.pile.faces([[d, c, b, a], [a, b, c, d]], cloth)


def _sign_letters(site: Site, x: float, y: float) -> None:
    """Pale blocks in the rhythm of a word."""
    pale = Coat((0.6, 0.58, 0.5))
    n = int(site.rng.integers(4, 9))
    step = min(0.55, 1.6 * y / n)
    for k in range(n):
        high = site.rng.uniform(0.26, 0.4)
        middle = (k - (n - 1) / 2) * step
        low = (x, middle - step * 0.3, 2.78)
        site.pile.box(low, (x + 0.03, middle + step * site.rng.uniform(0.05, 0.3), 2.78 + high), pale)


# Plots: where buildings stand along the roads, and the hedges, fences and trees before and between them.

PLOT_STOREY_M = 3.0
SUBURB_M = 9.5
"""Towns whose buildings are lower than this have gardens."""
# About a house and its garden: each is held against its neighbours alone, not against the whole town.
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


def rectangle_corners(place: Floats, heading: float, length: float, width: float) -> Floats:
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


def generate_buildings(
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
        for kerb, width in junction_kerbs(layout, junction):
            # Where no road leaves a junction the row goes on, as if along a road without lanes.
            if abs(kerb.headings[-1] - kerb.headings[0]) < 0.5:
                found += _row(Road(-1, Line(kerb.points), (), 0.0, width), -1, where, plots, rng)
    for road in layout.roads:
        for side in (1, -1):
            found += _backdrop(road, side, where, plots, rng)
    return found


def _height(where: Surroundings, rng: np.random.Generator) -> float:
    storeys = max(1.0, round(where.height_m * rng.uniform(0.65, 1.4) / PLOT_STOREY_M))
    return float(storeys * PLOT_STOREY_M + 0.4)


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
    return rectangle_corners(np.array(place), facing, depth, width)


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
            box = rectangle_corners(np.array(place), facing, thick, length)
            if plots.off_road(rectangle_corners(np.array(place), facing, thick * 0.6, length * 0.9)[None])[0]:
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
    box = rectangle_corners(place, heading + np.pi, depth, width)
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


# Trees and hedges.

_LEAVES: tuple[Colour, ...] = (
    (0.06, 0.13, 0.025),
    (0.045, 0.1, 0.03),
    (0.09, 0.14, 0.025),
    (0.12, 0.12, 0.03),
    (0.035, 0.085, 0.04),
)
_BARK = Coat((0.09, 0.065, 0.045), Material.MATT, Semantic.VEGETATION)


def _leaves(rng: np.random.Generator) -> Coat:
    base = np.array(_LEAVES[int(rng.integers(len(_LEAVES)))]) * rng.uniform(0.8, 1.25)
    red, green, blue = base.tolist()
    return Coat((red, green, blue), Material.FOLIAGE, Semantic.VEGETATION)


def build_tree(prop: Prop, fine: bool) -> Pile:
    """A tree in its own axes: round, tall or a fir.

    Args:
        prop: diameter of its crown, height and look.
        fine: whether its crown has many parts.
    """
    rng = np.random.default_rng(prop.look)
    wide, _, high = prop.size_m
    pile, leaves, draw = Pile(), _leaves(rng), float(rng.random())
    trunk = 0.06 + 0.022 * high
    if draw < 0.15:
        pile.prism((0.0, 0.0), (trunk, trunk * 0.6), 0.0, high * 0.3, _BARK, 5)
        for k, low in enumerate((0.16, 0.4, 0.64)[: 3 if fine else 2]):
            radius = wide / 2 * (0.85 - 0.22 * k)
            coat = leaves.shaded(0.7 + 0.1 * k)
            pile.prism((0.0, 0.0), (radius, 0.0), high * low, high * min(1.0, low + 0.42), coat, 7)
        return pile
    foot = min(2.3, high * 0.4)
    pile.prism((0.0, 0.0), (trunk, trunk * 0.7), 0.0, foot + 0.3 * (high - foot), _BARK, 6 if fine else 4)
    radius, middle = wide / 2 * (0.65 if draw > 0.85 else 1.0), (foot + high) / 2
    tall = (high - foot) / 2
    lumps = [(0.0, 0.0, middle, 0.82, 0.95)]
    if fine:
        for angle in np.arange(4) * np.pi / 2 + rng.uniform(0.0, 1.5):
            out = radius * rng.uniform(0.32, 0.5)
            up = middle + tall * rng.uniform(-0.35, 0.4)
            lumps.append((out * np.cos(angle), out * np.sin(angle), float(up), 0.56, 0.58))
    for x, y, z, across, upward in lumps:
        shade = leaves.shaded(float(rng.uniform(0.85, 1.15)))
        bumps = rng.uniform(0.82, 1.12, 12)
        pile.lump((float(x), float(y), z), (radius * across, radius * across, tall * upward), shade, bumps)
    return pile


def build_hedge(prop: Prop, fine: bool) -> Pile:
    """A hedge in its own axes, with an uneven top.

    Args:
        prop: thickness, length, height and look.
        fine: whether its top is uneven.
    """
    rng = np.random.default_rng(prop.look)
    thick, wide, high = prop.size_m
    pile, leaves = Pile(), _leaves(rng)
    n = max(1, round(wide / 1.2)) if fine else 1
    edges = np.linspace(-wide / 2, wide / 2, n + 1)
    tops = high * rng.uniform(0.9, 1.08, n)
    for low, end, top in zip(edges, edges[1:], tops, strict=False):
        pile.box((-thick / 2, float(low), 0.0), (thick / 2, float(end), float(top)), leaves)
    return pile
