"""DBSCAN in the place of the range image: the same ground and limits, other clusters."""

from __future__ import annotations

import numpy as np
import pytest
from planted import Thing, World, ahead, capture, corners_in

from roadaware.corner_cases.captures import Capture
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import LEAST_RETURNS, extract_dbscan_geometry, extract_geometry, propose
from roadaware.errors import UsageError
from roadaware.geometry.boxes import iou

THINGS = tuple(
    Thing(x, y, length=0.4, width=width, height=height)
    for x, y, width, height in ((10, 2.5, 1.0, 0.8), (14, -3, 2.0, 1.4), (12, 0, 1.0, 1.2))
)
WORLD = World(THINGS, rings=40, columns=900)


def test_things_apart_are_clusters():
    seen = capture(WORLD)
    angle = CopgConfig.angle()
    found, ours = extract_dbscan_geometry(seen), extract_geometry(seen, angle)
    assert len(found.clusters) == len(THINGS)
    assert found.clusters.counts.sum() == (found.clusters.of_return > 0).sum()
    np.testing.assert_array_equal(found.ground.removed, ours.ground.removed)
    wanted = np.stack([corners_in(ahead(), WORLD, thing) for thing in THINGS])
    assert (iou(wanted, propose(seen, angle, found).boxes.edges).max(1) > 0.7).all()


@pytest.mark.slow
def test_a_wider_reach_joins_more_and_limits_hold():
    near = World(tuple(Thing(10, y, length=0.4) for y in (-0.9, 0.9)), rings=40, columns=900)
    counts = [len(extract_dbscan_geometry(capture(near), eps_m=eps).clusters) for eps in (0.5, 1.0)]
    assert counts == [2, 1]
    far = extract_dbscan_geometry(capture(WORLD), CopgConfig.angle(max_distance_m=11.0))
    assert sorted(far.limited.tolist()) == [0, 2, 2]


def test_nothing_gives_nothing():
    found = extract_dbscan_geometry(Capture(np.zeros((0, 3), np.float32), ahead()))
    assert (len(found.clusters), LEAST_RETURNS) == (0, 5)
    with pytest.raises(UsageError, match="eps_m should be positive"):
        extract_dbscan_geometry(capture(WORLD), eps_m=0.0)
