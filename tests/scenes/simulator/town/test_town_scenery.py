from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadaware.simulator.config import PRESETS, Conditions
from roadaware.simulator.layout import Layout, Prop, PropKind
from roadaware.simulator.mesh import Material, Semantic, Soup
from roadaware.simulator.town import Town, collect_street_lamps, make_layout, scenery
from roadaware.simulator.town.buildings import build_house
from roadaware.simulator.town.furniture import COLOURED_M, MARKING_M

CONFIG = PRESETS["road@1"]


@pytest.fixture(scope="module")
def layout() -> Layout:
    return make_layout(CONFIG, np.random.default_rng(11))


def normals(soup: Soup) -> np.ndarray:
    a, b, c = soup.corners.astype(np.float64).transpose(1, 0, 2)
    return np.cross(b - a, c - a)


def test_near_gives_what_is_ahead(layout: Layout) -> None:
    town = Town(layout, CONFIG, Conditions())
    line = layout.lanes[layout.route[1]].line
    position, heading = line.points[0], float(line.heading(0.0))
    soup = town.near(position, heading, 140.0)
    assert 4_000 < len(soup) < 24_000
    assert not soup.instance.any()
    upright = soup.semantic == Semantic.BUILDING
    away = soup.corners[upright].mean(axis=1)[:, :2] - position
    assert np.hypot(*away.T).max() < 140 + 90
    ahead = away @ [np.cos(heading), np.sin(heading)]
    assert (ahead > -110).all()
    assert len(town.near(position, heading, 50.0)) < 0.8 * len(soup)
    around = town.near(position, heading, 140.0, behind_m=140.0)
    assert len(around) > len(soup)
    for name in ("corners", "colour", "uv"):
        assert np.isfinite(getattr(soup, name)).all()
    assert ((soup.colour >= 0) & (soup.colour <= 1)).all()


def test_same_place_same_triangles_whatever_came_before(layout: Layout) -> None:
    one, two = Town(layout, CONFIG, Conditions()), Town(layout, CONFIG, Conditions())
    places = [layout.lanes[layout.route[0]].line.at(s) for s in (30.0, 60.0)]
    two.near(places[1], 0.0, 100.0)
    a, b = one.near(places[0], 0.0, 140.0), two.near(places[0], 0.0, 140.0)
    assert (a.corners == b.corners).all()
    assert (a.colour == b.colour).all()


def test_ground_looks_up_and_markings_lie_on_the_road(layout: Layout) -> None:
    soup = Town(layout, CONFIG, Conditions()).near(layout.lanes[layout.route[0]].line.at(60.0), 0.0, 140.0)
    up = normals(soup)[:, 2]
    level = np.ptp(soup.corners[:, :, 2], axis=1) < 1e-6
    ground = np.isin(soup.semantic, (Semantic.ROAD, Semantic.PAVEMENT, Semantic.TERRAIN, Semantic.MARKING))
    assert (up[level & ground] > -1e-3).all()
    paint = soup.corners[soup.semantic == Semantic.MARKING]
    assert len(paint) > 200
    assert np.allclose(paint[:, :, 2], MARKING_M)
    roads = soup.corners[(soup.semantic == Semantic.ROAD) & level][:, :, 2]
    assert (np.isclose(roads, 0.0) | np.isclose(roads, COLOURED_M)).all()


def test_lamps_shine_in_the_dark_alone(layout: Layout) -> None:
    posts = [prop for prop in layout.props if prop.kind == "lamp_post"]
    assert collect_street_lamps(layout, Conditions("day")).shape == (0, 4)
    lights = collect_street_lamps(layout, Conditions("night"))
    assert lights.shape == (len(posts), 4)
    place = layout.lanes[layout.route[0]].line.at(60.0)
    soups = [Town(layout, CONFIG, Conditions(time)).near(place, 0.0, 140.0) for time in ("day", "night")]
    high = [soup.corners[(soup.glow > 1) & (soup.material == Material.LAMP)].mean(axis=1) for soup in soups]
    assert not len(high[0])
    assert len(high[1])
    gaps = np.linalg.norm(high[1][:, None] - lights[:, :3], axis=2).min(axis=1)
    assert (gaps < 1.0).all()


def test_hues_turn_but_lamps_and_greys_stay(layout: Layout) -> None:
    turned = replace(CONFIG, surroundings=replace(CONFIG.surroundings, hue=0.4))
    place = layout.lanes[layout.route[0]].line.at(60.0)
    a, b = (Town(layout, config, Conditions("night")).near(place, 0.0, 90.0) for config in (CONFIG, turned))
    assert (a.corners == b.corners).all()
    changed = np.abs(a.colour - b.colour).max(axis=1) > 1e-4
    assert changed.mean() > 0.3
    assert not changed[a.material == Material.LAMP].any()


def test_houses_of_all_looks_are_closed_towards_the_street() -> None:
    for look in range(40):
        height = 6.4 + 3.0 * (look % 6)
        prop = Prop("building", (0.0, 0.0), 0.0, (10.0, 9.0, height), look)
        fine, coarse = build_house(prop, True).soup(), build_house(prop, False).soup()
        assert len(coarse) <= len(fine) < 700
        front = normals(fine)[:, 0] > 1e-6
        assert front.any()
        assert fine.corners[:, :, 2].min() >= 0.0
        # The wall to the street reaches from side to side up to the eaves.
        wall = fine.corners[(fine.material == Material.WINDOWS) & front]
        assert wall[:, :, 1].min() == pytest.approx(-4.5)
        assert wall[:, :, 1].max() == pytest.approx(4.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["tree", "lamp_post", "bus_stop", "sign", "bin", "hedge", "fence", "bollard"]
)
def test_everything_that_stands_has_its_size(kind: PropKind) -> None:
    layout = make_layout(CONFIG, np.random.default_rng(2))
    town = Town(layout, CONFIG, Conditions("night"))
    props = [prop for prop in layout.props if prop.kind == kind][:12]
    assert props
    for prop in props:
        for fine in (True, False):
            soup = town._prop(prop, fine).soup()
            assert len(soup) > 0
            assert 0.7 * prop.size_m[2] < soup.corners[:, :, 2].max() < 1.3 * prop.size_m[2] + 0.2
            assert soup.corners[:, :, 2].min() >= -1e-6


def test_long_scenes_forget_what_lies_behind(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenery, "KEPT", 5)
    town = Town(layout, CONFIG, Conditions())
    line = layout.roads[0].line
    for s in np.linspace(0.0, line.length, 4):
        town.near(line.at(s), float(line.heading(s)), 30.0)
        assert len(town._soups) <= 5
