"""`Town`: the triangles of everything that does not move, made once by pieces and handed out by place."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.figures.form import rotate_hues
from roadaware.simulator.layout import Layout, Prop
from roadaware.simulator.looks import Look
from roadaware.simulator.mesh import Material, Soup, merge_soups
from roadaware.simulator.town.brush import Brush
from roadaware.simulator.town.buildings import Plots, build_hedge, build_house, build_tree, generate_buildings
from roadaware.simulator.town.drawing import Pile
from roadaware.simulator.town.furniture import (
    build_beacon,
    build_bin,
    build_bollard,
    build_bus_stop,
    build_crossing_sign,
    build_fence,
    build_lamp_post,
    build_sign,
    compute_lamp_position,
    generate_kerbside_props,
)
from roadaware.simulator.town.ground import add_junction_ground, add_road_ground, add_terrain
from roadaware.simulator.town.lines import draw_road_markings
from roadaware.simulator.town.palette import build_palette
from roadaware.simulator.town.regions import Regions, build_rules
from roadaware.simulator.town.tracks import build_track
from roadaware.simulator.town.wires import wire_spans

CHUNK_M = 40.0
FINE_M = 52.0
"""Chunks whose middle is farther away come in a coarser shape."""
BEHIND_M = 30.0
KEPT = 160
"""Chunks that are kept; a long scene forgets those it left behind."""
GRID_M = 20.0


@dataclass(frozen=True, eq=False)
class Chunk:
    """A piece of town.

    Args:
        middle: (2,) of it.
        road: number of its road, -1 for a junction.
        start: along the road; of a junction its number.
        end: along the road.
        props: that stand there.
    """

    middle: Floats
    road: int
    start: float
    end: float
    props: tuple[Prop, ...]


class Town:
    """Everything that does not move, as triangles.

    Args:
        layout: of the town.
        config: of the scene.
        conditions: at dusk and at night lamps are lit.
        look: of the scene; None for the usual one.
    """

    def __init__(
        self, layout: Layout, config: SceneConfig, conditions: Conditions, look: Look | None = None
    ) -> None:
        self._layout = layout
        self._coats = None if look is None else np.array(look.coats, dtype=np.float32)
        self._wires = wire_spans(layout) if look is not None and look.wires else []
        self._hue = config.surroundings.hue
        self._palette = build_palette(layout, config, conditions)
        self._rules = build_rules(layout)
        self._tracks = [build_track(road.line.points) for road in layout.roads]
        self._chunks = _chunks(layout)
        self._middles = np.array([chunk.middle for chunk in self._chunks])
        self._soups: OrderedDict[tuple[int, bool], Soup] = OrderedDict()
        self._last: tuple[tuple[int, ...], tuple[int, int], Soup] | None = None

    def near(
        self, position: npt.ArrayLike, heading: float, range_m: float, behind_m: float = BEHIND_M
    ) -> Soup:
        """Scenery around a place and in front of it.

        Args:
            position: (2,) or (3,) of who looks.
            heading: of who looks, in radians.
            range_m: how far ahead and aside.
            behind_m: how far back.
        """
        place = np.asarray(position, dtype=np.float64)[:2]
        away = self._middles - place
        gap = np.hypot(away[:, 0], away[:, 1])
        ahead = away[:, 0] * np.cos(heading) + away[:, 1] * np.sin(heading)
        wanted = np.flatnonzero((gap < range_m + CHUNK_M / 2) & (ahead > -behind_m - CHUNK_M / 2))
        key = tuple(int(2 * k + (gap[k] < FINE_M)) for k in wanted)
        tile = (int(place[0] // GRID_M), int(place[1] // GRID_M))
        if self._last is None or self._last[:2] != (key, tile):
            parts = [self._soup(k // 2, bool(k % 2)) for k in key]
            near = [soup for middle, soup in self._wires if np.hypot(*(middle - place)) < range_m]
            self._last = (key, tile, merge_soups([self._terrain(tile, range_m), *parts, *near]))
        return self._last[2]

    def _terrain(self, tile: tuple[int, int], range_m: float) -> Soup:
        pile = Pile()
        middle = ((tile[0] + 0.5) * GRID_M, (tile[1] + 0.5) * GRID_M)
        add_terrain(pile, self._palette, middle, range_m + 2 * CHUNK_M)
        return self._turned(pile.soup())

    def _soup(self, number: int, fine: bool) -> Soup:
        """The triangles of a chunk."""
        found = self._soups.get((number, fine))
        if found is None:
            found = self._turned(self._built(self._chunks[number], fine))
            if len(self._soups) >= KEPT:
                self._soups.popitem(last=False)
            self._soups[number, fine] = found
        self._soups.move_to_end((number, fine))
        return found

    def _built(self, chunk: Chunk, fine: bool) -> Soup:
        pile, layout, palette = Pile(), self._layout, self._palette
        parts: list[Soup] = []
        if chunk.road < 0:
            add_junction_ground(pile, layout, layout.junctions[int(chunk.start)], palette)
        else:
            road, track = layout.roads[chunk.road], self._tracks[chunk.road]
            span = (chunk.start, chunk.end)
            add_road_ground(pile, layout, road, track, palette, span)
            draw_road_markings(Brush(pile, layout, road, track, palette, span, self._rules))
            parts += self._crossing_posts(chunk)
        parts += [self._prop(prop, fine).soup(prop.position, prop.heading) for prop in chunk.props]
        return merge_soups([pile.soup(), *parts])

    def _crossing_posts(self, chunk: Chunk) -> list[Soup]:
        found = []
        road, track = self._layout.roads[chunk.road], self._tracks[chunk.road]
        for crossing in self._rules.crossings[chunk.road]:
            if crossing.kind == "zebra" and chunk.start <= crossing.s_m < chunk.end:
                for side in (1, -1):
                    here = track.at(np.array([crossing.s_m - side * (crossing.width_m / 2 + 0.35)]))
                    x, y = here.beside(side * (road.half_width_m + 0.4))[0].tolist()
                    post = build_beacon() if self._palette.left else build_crossing_sign()
                    found.append(post.soup((x, y), float(here.headings[0])))
        return found

    def _prop(self, prop: Prop, fine: bool) -> Pile:
        lit = self._palette.lit
        if prop.kind in ("lamp_post", "bus_stop"):
            return (build_lamp_post if prop.kind == "lamp_post" else build_bus_stop)(prop, fine, lit)
        makers = {
            "building": build_house,
            "tree": build_tree,
            "hedge": build_hedge,
            "fence": build_fence,
            "sign": build_sign,
            "bin": build_bin,
            "bollard": build_bollard,
        }
        return makers[prop.kind](prop, fine)

    def _turned(self, soup: Soup) -> Soup:
        """The soup with its hues turned and in the coats of its look; what shines keeps its own hue."""
        if self._coats is not None and len(soup):
            soup = replace(soup, colour=np.minimum(soup.colour * self._coats[soup.material], 0.95))
        if self._hue % 1.0 == 0.0 or not len(soup):
            return soup

        colour = rotate_hues(soup.colour, self._hue)
        kept = (soup.material == Material.LAMP) | (soup.glow > 0)
        colour[kept] = soup.colour[kept]
        return replace(soup, colour=colour)


def collect_street_lamps(layout: Layout, conditions: Conditions) -> Floats:
    """(n, 4) x, y, z and intensity of the street lamps that are lit; none by day.

    The same lamps glow in the triangles of `Town`: they are for those who need lamps that they do not see.

    Args:
        layout: of the town.
        conditions: of the scene.
    """
    if conditions.time == "day":
        return np.zeros((0, 4))
    heads = [(*compute_lamp_position(prop), 1.0) for prop in layout.props if prop.kind == "lamp_post"]
    return np.array(heads, dtype=np.float64).reshape(-1, 4)


def _chunks(layout: Layout) -> list[Chunk]:
    """Roads in pieces of about 40 m, junctions whole, and to each what stands nearest to it."""
    bare: list[Chunk] = []
    for road in layout.roads:
        n = max(1, round(road.line.length / CHUNK_M))
        cuts = np.linspace(0.0, road.line.length, n + 1)
        for start, end in pairwise(cuts):
            middle = road.line.at(np.array([(start + end) / 2]))[0]
            bare.append(Chunk(middle, road.number, float(start), float(end), ()))
    bare += [Chunk(x.outline.mean(axis=0), -1, float(x.number), 0.0, ()) for x in layout.junctions]
    if not layout.props:
        return bare
    places = np.array([prop.position for prop in layout.props])
    away = places[:, None] - np.array([chunk.middle for chunk in bare])
    nearest = np.argmin((away * away).sum(-1), axis=1)
    order = np.argsort(nearest, kind="stable")
    bounds = np.searchsorted(nearest[order], np.arange(len(bare) + 1))
    return [
        replace(chunk, props=tuple(layout.props[k] for k in order[bounds[n] : bounds[n + 1]]))
        for n, chunk in enumerate(bare)
    ]


# What stands beside the roads: buildings with their gardens, and everything on the pavements.


def add_props(layout: Layout, config: SceneConfig, rng: np.random.Generator) -> Layout:
    """A layout with everything that stands beside its roads.

    Args:
        layout: without props.
        config: height of buildings and greenery.
        rng: of the town.
    """
    regions = Regions(layout)
    where = config.surroundings
    props = generate_kerbside_props(layout, where, regions, rng)
    props += generate_buildings(layout, where, Plots(regions), rng)
    return replace(layout, props=tuple(props))
