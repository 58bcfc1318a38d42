"""Joints of people: found at the planted places, of the person in the middle; other models are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from roadaware.errors import DamagedError, InputError
from roadaware.models.graphs.movenet import SIDE_PX, cropped, decoded, open_poses
from roadaware.models.graphs.runner import save_graph
from tiny_poses import JOINTS, save_tiny_poses, tiny_pose_graph

CELLS, STRIDE = 48, 4


def _maps(people: list[tuple[int, int]]) -> dict[str, np.ndarray]:
    """Maps with a person around each centre (y, x), whose joint j lies j - 8 cells right and 5 below it."""
    k = len(JOINTS)
    maps = {name: np.zeros((n, CELLS, CELLS), np.float32) for name, n in (("centre", 1), ("heat", k))}
    maps |= {name: np.zeros((2 * k, CELLS, CELLS), np.float32) for name in ("regression", "offset")}
    for y, x in people:
        maps["centre"][0, y, x] = 0.9
        for j in range(k):
            maps["regression"][2 * j, y, x], maps["regression"][2 * j + 1, y, x] = 4, j - 7  # rough
            maps["heat"][j, y + 5, x + j - 8] = 0.8
            maps["offset"][2 * j, y + 5, x + j - 8] = 0.25
            maps["offset"][2 * j + 1, y + 5, x + j - 8] = -0.5
    return maps


def test_joints_are_where_they_are_planted() -> None:
    found = decoded(_maps([(20, 24)]))
    wanted = [[(24 + j - 8 - 0.5) * STRIDE, 25.25 * STRIDE, 0.8] for j in range(len(JOINTS))]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_person_in_the_middle_is_read_and_not_a_neighbour() -> None:
    alone, both = decoded(_maps([(22, 25)])), decoded(_maps([(22, 8), (22, 25), (22, 38)]))
    np.testing.assert_array_equal(alone, both)


@pytest.mark.parametrize("side", [40, 600])
def test_a_crop_is_a_square_around_the_box(side: int) -> None:
    picture = np.zeros((800, 900, 3), np.uint8)
    left, top = 150, 100
    picture[top : top + side, left : left + side // 2] = 250
    crop, corner, scale = cropped(picture, np.array([left, top, left + side // 2, top + side], np.float64))
    assert crop.shape == (3, SIDE_PX, SIDE_PX)
    assert scale == pytest.approx(1.25 * side / SIDE_PX)
    y, x = np.nonzero(crop[0] > 125)
    edges = np.array([x.min(), y.min(), x.max() + 1, y.max() + 1]) * scale + np.tile(corner, 2)
    assert np.abs(edges - [left, top, left + side // 2, top + side]).max() <= 1.01 * max(scale, 1)


def test_beside_the_picture_a_crop_is_black() -> None:
    crop, _, _ = cropped(np.full((50, 50, 3), 200, np.uint8), np.array([-20, -20, 10, 30], np.float64))
    assert crop[:, 0, 0].max() == 0
    assert crop[:, -60, -10].min() > 150


def test_joints_stand_in_pixels_of_the_picture(tmp_path: Path) -> None:
    reader = open_poses(save_tiny_poses(tmp_path / "poses.safetensors"))
    picture = np.random.default_rng(0).integers(0, 255, (120, 160, 3), dtype=np.uint8)
    boxes = np.array([[20, 10, 60, 90], [100, 30, 130, 110]], np.float64)
    found = reader.read(picture, boxes)
    assert found.shape == (2, len(JOINTS), 3)
    alone = reader.read(picture, boxes[1:])
    np.testing.assert_array_equal(found[1:], alone)
    assert reader.read(picture, boxes[:0]).shape == (0, len(JOINTS), 3)


def test_other_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a model that reads joints"):
        open_poses(tmp_path)
    save_graph(tmp_path / "a.safetensors", tiny_pose_graph(), {"decoder": "centernet", "task": "objects"})
    with pytest.raises(InputError, match="a model for objects"):
        open_poses(tmp_path / "a.safetensors")
    facts = {"decoder": "movenet", "classes": list(JOINTS[:5])}
    save_graph(tmp_path / "b.safetensors", tiny_pose_graph(), facts)
    with pytest.raises(DamagedError, match="maps of 5 joints"):
        open_poses(tmp_path / "b.safetensors")
