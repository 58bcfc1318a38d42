"""Houses of several kinds: walls with windows, doors, shop fronts, bays, roofs and chimneys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.scenes.simulator.layout import Prop
from roadaware.scenes.simulator.mesh import Material, Semantic
from roadaware.scenes.simulator.town.masonry import Coat, Colour, Pile

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


def house(prop: Prop, fine: bool) -> Pile:
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
    _walls(site, blind=kind in ("terrace", "shop"))
    if kind in ("block", "office") or (kind == "shop" and storeys > 3):
        _flat_roof(site)
    elif kind == "villa":
        _hipped_roof(site)
    else:
        _pitched_roof(site, along=kind != "gabled")
    if kind == "shop":
        _shop_front(site)
    elif fine:
        _door(site)
        if kind in ("terrace", "villa") and rng.random() < 0.5:
            _bay(site)
    if fine and kind in ("terrace", "gabled", "villa"):
        _chimney(site)
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


def _walls(site: Site, blind: bool) -> None:
    x, y = site.deep, site.wide
    side = site.gable if blind else site.wall
    _facade(site, (x, -y), (x, y), site.wall)
    _facade(site, (x, y), (-x, y), side)
    _facade(site, (-x, y), (-x, -y), site.wall)
    _facade(site, (-x, -y), (x, -y), side)


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


def _hipped_roof(site: Site) -> None:
    x, y, over = site.deep + 0.4, site.wide + 0.4, site.eaves - 0.05
    rise = min(x, y) * site.rng.uniform(0.55, 0.8)
    ridge = max(0.0, y - x)
    top = over + rise
    a, b, c, d = ([x, -y, over], [x, y, over], [-x, y, over], [-x, -y, over])
    left, right = [0.0, ridge, top], [0.0, -ridge, top]
    site.pile.faces([[a, b, left, right], [c, d, right, left]], site.roof)
    site.pile.faces([[b, c, left], [d, a, right]], site.roof)
    site.pile.faces([[d, c, b, a]], site.roof.shaded(0.6))


def _flat_roof(site: Site) -> None:
    x, y, top = site.deep, site.wide, site.eaves
    site.pile.box((-x - 0.12, -y - 0.02, top), (x + 0.12, y + 0.02, top + 0.5), site.gable.shaded(0.75))
    if site.fine and site.rng.random() < 0.6:
        a, b = sorted(site.rng.uniform(-y + 1.0, y - 1.0, 2))
        site.pile.box((-x * 0.5, a, top + 0.5), (x * 0.2, b, top + 2.4), Coat((0.2, 0.2, 0.21)))


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


def _chimney(site: Site) -> None:
    y = site.rng.uniform(0.6, 0.95) * site.wide * (1 if site.rng.random() < 0.5 else -1)
    top = site.eaves + 0.75 * site.deep + 0.7
    coat = site.gable.shaded(0.85)._replace(semantic=Semantic.BUILDING)
    site.pile.box((-0.4, y - 0.45, site.eaves), (0.4, y + 0.45, top), coat)
    for pot in (-0.22, 0.22):
        site.pile.prism((0.0, y + pot), (0.13, 0.1), top, top + 0.45, Coat((0.3, 0.13, 0.07)), 5)
