"""Every step that can lose an object is named when it did."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corner_cases"))

from planted import Thing, World, ahead, corners_in, sweep

from roadaware.analysis.corner_tables import LOSSES, assign_losses
from roadaware.corner_cases.captures import Capture, CommonObjects, SemanticMap
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import propose

CART = Thing(12, 0, width=1.2, height=1.2)


def told(*things, config=None, background=(), common=()):
    """What became of each thing; those named are shown as a wall, or detected."""
    world = World(things, rings=40, columns=900)
    points, ring, instances = sweep(world)
    boxes = np.stack([corners_in(ahead(), world, thing) for thing in things])
    classes = np.full((480, 640), 13, np.uint8)
    for place in background:
        x1, y1, x2, y2 = boxes[place].astype(int)
        classes[y1 - 5 : y2 + 5, x1 - 5 : x2 + 5] = 3
    known = CommonObjects(boxes[list(common)].reshape(-1, 4), np.ones(len(common)))
    capture = Capture(points, ahead(), ring=ring, layout="40 rings x 900 columns")
    capture = replace(capture, semantics=SemanticMap(classes), common=known)
    config = config or CopgConfig.angle()
    found = assign_losses(propose(capture, config), boxes, range(1, len(things) + 1), instances, config)
    assert set(found) <= set(LOSSES)
    return found


def test_what_is_found_is_met():
    assert told(CART, Thing(20, 5, height=1.5)) == ["met", "met"]


@pytest.mark.parametrize(
    ("loss", "things", "config"),
    [
        ("few returns", (CART, Thing(40, 6, width=0.3, length=0.3, height=0.3)), CopgConfig.angle()),
        ("ground", (CART, Thing(10, 3, width=2.0, height=0.12)), CopgConfig.angle()),
        ("too far", (CART, Thing(30, 4, width=2.0, height=2.0)), CopgConfig.angle(max_distance_m=25.0)),
        ("shape", (CART, Thing(15, 5, width=4.0, height=1.5)), CopgConfig.angle(max_width_m=3.0)),
        (
            "merged",
            (Thing(12, -0.9, width=0.6, height=0.7), Thing(12, 1.4, width=4.0, height=2.0)),
            CopgConfig.angle(),
        ),
        ("box", (CART,), CopgConfig.angle(margin_px=80.0)),
    ],
)
def test_geometry_that_loses_an_object(loss, things, config):
    found = told(*things, config=config)
    assert loss in found
    assert found.count("met") == len(things) - 1


def test_what_stands_before_an_object_splits_it():
    poles = tuple(Thing(9, y, length=0.3, width=0.3, height=2.0) for y in (-0.55, 0.0, 0.55))
    found = told(Thing(14, 0, width=3.6, height=1.6), *poles)
    assert found[0] == "split"


def test_the_step_that_removed_a_fitting_box_is_named():
    assert told(CART, background=[0]) == ["background"]
    assert told(CART, common=[0]) == ["common"]
    assert told(CART, Thing(20, 5, height=1.5), background=[0], common=[0, 1]) == ["background", "common"]


def test_pictures_without_objects_lose_none():
    found = propose(Capture(np.zeros((0, 3), np.float32), ahead()), CopgConfig.angle())
    assert assign_losses(found, np.zeros((0, 4)), [], np.zeros(0, np.int32), CopgConfig.angle()) == []
    assert assign_losses(found, np.ones((1, 4)), [3], np.zeros(0, np.int32), CopgConfig.angle()) == [
        "few returns"
    ]
