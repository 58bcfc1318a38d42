"""Images of the steps show returns where they are, clusters in colours, and the boxes that are left."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corner_cases"))

from dataclasses import replace

from planted import Thing, World, capture, corners_in

from roadaware.corner_cases.captures import CommonObjects, SemanticMap
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import propose
from roadaware.reports.copg import DROPPED, GROUND, KEPT, STEPS, build_cluster_palette, draw_sheet, draw_steps

WORLD = World((Thing(10, 2.5), Thing(14, -3, width=2.0, height=1.4)), rings=32, columns=600)
PICTURE = np.full((480, 640, 3), 100, np.uint8)


@pytest.fixture(scope="module")
def steps():
    seen = capture(WORLD)
    places = [corners_in(seen.camera, WORLD, thing) for thing in WORLD.things]
    classes = np.zeros((480, 640), np.uint8)
    x1, y1, x2, y2 = places[0].astype(int)
    classes[y1 - 5 : y2 + 5, x1 - 5 : x2 + 5] = 13
    common = CommonObjects(places[1][None], np.ones(1))
    seen = replace(seen, semantics=SemanticMap(classes), common=common)
    found = propose(replace(seen, semantics=SemanticMap(np.full_like(classes, 13))), CopgConfig.angle())
    return draw_steps(found, seen, PICTURE), found, places


def test_every_step_has_its_picture(steps):
    pictures, _, _ = steps
    assert tuple(pictures) == STEPS
    assert all(picture.dtype == np.uint8 for picture in pictures.values())
    assert all(pictures[name].shape == (480, 640, 3) for name in STEPS[2:])
    bare = draw_steps(propose(capture(WORLD)), capture(WORLD), PICTURE)
    assert tuple(bare) == (*STEPS[:4], *STEPS[-2:])


def test_range_images_show_ground_and_clusters(steps):
    pictures, found, _ = steps
    for name in ("range image", "clusters"):
        picture = pictures[name]
        assert picture.shape[1] == 600
        assert picture.shape[0] % found.geometry.grid.shape[0] == 0
        assert (picture == GROUND).all(2).mean() > 0.4
    held = {tuple(each) for each in build_cluster_palette(found.geometry)[1:].tolist()} - {DROPPED}
    colours = {tuple(each) for each in pictures["clusters"].reshape(-1, 3).tolist()}
    assert len(held & colours) == 2


def test_returns_lie_on_what_they_met(steps):
    pictures, found, places = steps
    x1, y1, x2, y2 = places[0].astype(int)
    inside = pictures["returns"][y1:y2, x1:x2].reshape(-1, 3)
    number = found.boxes.cluster[np.abs(found.boxes.edges - places[0]).sum(1).argmin()]
    colour = build_cluster_palette(found.geometry)[number]
    assert (inside == colour).all(1).sum() > 20


def test_boxes_that_are_left_are_drawn(steps):
    pictures, found, places = steps
    assert (int(found.intermediate.sum()), len(found)) == (2, 1)
    for name, count in (("initial", 2), ("intermediate", 2), ("final", 1)):
        around = [(int(p[1] + p[3]) // 2, slice(int(p[0]) - 4, int(p[0]) + 5)) for p in places]
        drawn = [(pictures[name][at] == KEPT).all(1).any() for at in around]
        assert sum(drawn) == count, name
    assert (pictures["background"] != PICTURE).any()
    assert (pictures["detections"] != PICTURE).any()


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_a_sheet_holds_all_of_them(steps, columns):
    pictures, _, _ = steps
    found = draw_sheet(pictures, width_px=500, columns=columns)
    assert found.shape[1] == 500
    room = (500 - (columns - 1) * 4) // columns
    rows = -(-8 // columns)
    assert found.shape[0] > rows * room * 480 // 640


def test_cuboids_are_drawn_in_the_image_and_from_above(steps):
    pictures, found, _ = steps
    assert len(found) == 1
    for name in ("cuboids", "from above"):
        assert (pictures[name] == KEPT).all(2).any(), name
    # In the image around the thing that is left; from above 10 m ahead of the middle of the lower edge.
    rows, columns = np.nonzero((pictures["cuboids"] == KEPT).all(2))
    box = found.boxes.edges[found.final][0]
    middle = np.array([columns.min() + columns.max(), rows.min() + rows.max()]) / 2
    assert np.abs(middle - (box[:2] + box[2:]) / 2).max() < 40
    assert (pictures["from above"] == GROUND).all(2).any()
