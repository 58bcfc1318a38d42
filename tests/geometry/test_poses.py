"""Poses: what is rigid, the way back, quaternions, and what of a box in space is seen."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.geometry.poses import (
    find_camera_error,
    find_pose_error,
    from_quaternion,
    invert_pose,
    project_3d_boxes,
)

LENS = np.array([[100.0, 0, 50], [0, 100, 40], [0, 0, 1]])


def at(x, y, z):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


@pytest.mark.parametrize(
    ("pose", "fault"),
    [
        (np.diag([2.0, 2, 2, 1]), "determinant 8"),
        (np.diag([1.0, 1, -1, 1]), "determinant -1"),
        (np.diag([2.0, 0.5, 1, 1]), "right angles"),
        (np.diag([1.0, 1, 1, 2]), "last row"),
        (np.eye(3), "found (3, 3)"),
        (np.full((4, 4), np.nan), "finite"),
    ],
)
def test_what_is_no_pose_is_named(pose, fault):
    assert fault in find_pose_error(pose)


@pytest.mark.parametrize(
    ("lens", "fault"),
    [
        (LENS.T, "last row is [50.0, 40.0, 1.0]"),
        (LENS * [[1], [-1], [1]], "focal lengths are 100 and -100"),
        (LENS @ [[1, 0, 0], [0.03, 1, 0], [0, 0, 1]], "second row begins with 3"),
        (LENS[:2], "found (2, 3)"),
        (LENS * np.nan, "finite"),
        (LENS, ""),
        (LENS @ [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]], ""),
    ],
)
def test_what_is_no_camera_matrix_is_named(lens, fault):
    found = find_camera_error(lens)
    assert found == "" if not fault else fault in found


def test_poses_lead_there_and_back():
    rng = np.random.default_rng(0)
    quaternion = rng.standard_normal(4)
    pose = from_quaternion(quaternion / np.linalg.norm(quaternion), rng.standard_normal(3))
    assert find_pose_error(pose) == ""
    np.testing.assert_allclose(invert_pose(pose) @ pose, np.eye(4), atol=1e-12)
    quarter = from_quaternion([np.sqrt(0.5), 0, 0, np.sqrt(0.5)], [1, 2, 3])
    np.testing.assert_allclose(quarter @ [1, 0, 0, 1], [1, 3, 3, 1], atol=1e-12)


@pytest.mark.parametrize("quaternion", [[0, 0, 0, 0], [2, 0, 0, 0], [np.nan, 0, 0, 1]])
def test_quaternions_of_no_unit_length_are_none(quaternion):
    assert from_quaternion(quaternion, [0, 0, 0]) is None


def test_bounds_of_boxes_in_space():
    poses = np.stack([at(0, 0, 10), at(-4, 0, 10), at(0, 0, -5), at(1, 0, 0), at(30, 0, 10)])
    edges, there = project_3d_boxes(poses, np.tile([2.0, 1, 2], (5, 1)), LENS, (100, 80))
    assert there.tolist() == [True, True, False, True, False]
    # The near face of the first is 9 m ahead: 1 m to both sides is 100 / 9 pixels.
    np.testing.assert_allclose(edges[0], [50 - 100 / 9, 40 - 50 / 9, 50 + 100 / 9, 40 + 50 / 9])
    np.testing.assert_allclose(edges[1], [0, 40 - 50 / 9, 50 - 300 / 11, 40 + 50 / 9])
    # The fourth reaches from behind the camera to 1 m before it, and from its axis to the right.
    np.testing.assert_allclose(edges[3], [50, 0, 100, 80])
    assert (edges[[2, 4]] == 0).all()


def test_no_boxes_have_no_bounds():
    edges, there = project_3d_boxes(np.zeros((0, 4, 4)), np.zeros((0, 3)), LENS, (100, 80))
    assert edges.shape == (0, 4)
    assert there.shape == (0,)
