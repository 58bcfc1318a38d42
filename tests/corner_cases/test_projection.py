"""Boxes in the image: cut to it, of what lies before the camera, down to the ground."""

from __future__ import annotations

import numpy as np
import pytest
from planted import HEIGHT_M, ahead

from roadaware.corner_cases.captures import Camera, ensure_rigid_pose
from roadaware.corner_cases.ground import Ground
from roadaware.corner_cases.range_image import Clusters, project
from roadaware.errors import InputError

CAMERA = ahead(640, 480, 400.0)


def one(*groups, feet=np.nan):
    """Clusters of some points each."""
    points = np.array([point for group in groups for point in group], dtype=np.float32)
    of = np.repeat(np.arange(1, len(groups) + 1), [len(group) for group in groups]).astype(np.int32)
    none = np.full(len(groups), np.nan, np.float32)
    counts = np.bincount(of)[1:].astype(np.int32)
    low = np.full(len(groups), feet, np.float32)
    rows = np.zeros((len(groups), 2), np.int32)
    return points, Clusters(np.zeros((1, 8), np.int32), of, counts, none, low, none, none, rows)


def boxes_of(*groups, camera=CAMERA, **options):
    points, clusters = one(*groups)
    return project(points, clusters, np.ones(len(groups), bool), camera, **options)


def test_a_box_is_around_its_returns():
    # At 10 m ahead, a metre is 40 pixels; the middle of the image is (320, 240).
    found = boxes_of([(10, 1, 1), (10, -2, 0.5), (20, 0, -1)], [(8, 0.1, 0), (8, -0.1, 0.1)])
    np.testing.assert_allclose(found.edges, [[280, 200, 400, 260], [315, 235, 325, 240]], atol=1e-4)
    assert found.cluster.tolist() == [1, 2]
    assert found.visible.tolist() == [3, 2]
    assert found.behind.tolist() == [0, 0]


def test_what_is_not_kept_has_no_box():
    points, clusters = one([(10, 0, 0), (10, 1, 1)], [(10, 2, 0), (10, 3, 1)])
    found = project(points, clusters, np.array([False, True]), CAMERA)
    assert found.cluster.tolist() == [2]


def test_a_cluster_that_goes_on_beside_the_picture_reaches_its_border():
    found = boxes_of([(10, 0, 0), (10, 1, 1), (10, 9, 0.5)], [(10, -1, 0), (10, 0, 1), (10, 0.5, -7)])
    np.testing.assert_allclose(found.edges, [[0, 200, 320, 240], [320, 200, 360, 480]], atol=1e-4)


def test_what_lies_beyond_a_corner_stretches_nothing():
    found = boxes_of([(10, 0, 0), (10, 1, 1), (10, 9, 9)])
    np.testing.assert_allclose(found.edges, [[280, 200, 320, 240]], atol=1e-4)


def test_returns_behind_the_camera_are_counted_and_left_out():
    found = boxes_of([(10, 0, 0), (10, 1, 1), (-5, 0, 0), (0.05, 0.01, 0)])
    np.testing.assert_allclose(found.edges, [[280, 200, 320, 240]], atol=1e-4)
    assert found.behind.tolist() == [2]
    assert len(boxes_of([(-10, 0, 0), (-10, 1, 1)])) == 0


def test_something_beside_the_picture_alone_is_no_box():
    assert len(boxes_of([(10, 9, 0), (10, 10, 1)])) == 0
    # On both sides of it, but nowhere in it.
    assert len(boxes_of([(10, 9, 0), (10, -9, 1)])) == 0


def test_too_few_visible_returns_and_too_small_boxes_are_dropped():
    group = [(10, 0, 0), (10, 1, 1), (10, 9, 0.5)]
    assert len(boxes_of(group, min_visible=2)) == 1
    assert len(boxes_of(group, min_visible=3)) == 0
    assert len(boxes_of([(10, 0, 0), (10, 0.1, 1)], min_side_px=4.5)) == 0
    assert len(boxes_of([(10, 0, 0), (10, 0.1, 1)], min_side_px=3.5)) == 1
    assert len(boxes_of([(10, 0, 0), (10, 0, 0)])) == 0


def test_margins_stay_in_the_picture():
    found = boxes_of([(10, 0, 0), (10, 1, 1)], [(10, 7.9, 5.9), (10, 7, 5)], margin_px=5.0)
    np.testing.assert_allclose(found.edges, [[275, 195, 325, 245], [0, 0, 45, 45]], atol=1e-3)


def test_what_stands_on_the_ground_reaches_down_to_it():
    points, clusters = one([(10, 0, -0.9), (10, 1, 0), (12, 0, 2)], [(10, -2, 0.2), (10, -3, 1)], feet=0.5)
    plane = np.array([0, 0, 1, HEIGHT_M])
    heights = (points[:, 2] + HEIGHT_M).astype(np.float32)
    ground = Ground(plane, heights, np.zeros(5, bool), 1.0)
    found = project(points, clusters, np.ones(2, bool), CAMERA, ground=ground, standing_m=1.0)
    assert found.edges[0, 3] == pytest.approx(240 + 40 * HEIGHT_M, abs=1e-3)
    assert found.edges[1, 3] == pytest.approx(240 - 40 * 0.2, abs=1e-3)
    flying = project(points, clusters, np.ones(2, bool), CAMERA, ground=ground, standing_m=0.5)
    assert flying.edges[0, 3] == pytest.approx(240 + 40 * 0.9, abs=1e-3)
    unknown = Ground(None, None, np.zeros(5, bool), 0.0, "none")
    same = project(points, clusters, np.ones(2, bool), CAMERA, ground=unknown, standing_m=1.0)
    np.testing.assert_allclose(same.edges, flying.edges)


MIRRORED = np.diag([1.0, 1, -1, 1])
STRETCHED = np.diag([1.0, 1.01, 1, 1])


@pytest.mark.parametrize("pose", [MIRRORED, STRETCHED, np.eye(3), np.full((4, 4), np.nan), np.zeros((4, 4))])
def test_poses_that_are_not_rigid_are_refused(pose):
    with pytest.raises(InputError, match="pose"):
        ensure_rigid_pose(pose, "pose")
    with pytest.raises(InputError, match="camera_SE3_lidar"):
        Camera(CAMERA.intrinsics, pose, 640, 480)


@pytest.mark.parametrize(
    "lens",
    [
        np.eye(4),
        np.diag([-400.0, 400, 1]),
        np.diag([400.0, 400, 2]),
        np.full((3, 3), np.nan),
        np.zeros((3, 3)),
    ],
)
def test_camera_matrices_that_are_none_are_refused(lens):
    with pytest.raises(InputError, match="camera matrix"):
        Camera(lens, np.eye(4), 640, 480)
    with pytest.raises(InputError, match="has pixels, not 0x480"):
        Camera(CAMERA.intrinsics, np.eye(4), 0, 480)
