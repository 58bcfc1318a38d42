"""The ground is found on level and tilted roads, and said to be missing where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from planted import HEIGHT_M, Thing, World, sweep

from roadaware.corner_cases.ground import check, find_ground, validate_lidar_points
from roadaware.errors import InputError, UsageError

THINGS = (
    Thing(8, 2),
    Thing(20, -3, width=3, height=2),
    Thing(-9, 1, length=4),
    Thing(4, -12, width=5, height=4),
)


@pytest.mark.parametrize(("tilt", "roll"), [(0, 0), (6, 0), (-5, 3), (0, -8)])
def test_planes_of_roads(tilt, roll):
    world = World(THINGS, tilt_deg=tilt, roll_deg=roll, noise_m=0.02)
    points, _, met = sweep(world)
    ground = find_ground(points, check(points))
    assert ground.plane is not None
    normal = world.turn @ [0, 0, 1]
    assert np.degrees(np.arccos(ground.plane[:3] @ normal)) < 0.3
    assert ground.plane[3] == pytest.approx(HEIGHT_M, abs=0.03)
    assert ground.tilt_deg == pytest.approx(np.degrees(np.arccos(normal[2])), abs=0.3)
    assert ground.removed[met == 0].mean() > 0.99
    high = (points @ normal + HEIGHT_M > 0.35) & (met > 0)
    assert not ground.removed[high].any()
    np.testing.assert_allclose(ground.heights, points @ normal + HEIGHT_M, atol=0.25)


def test_a_thin_ground_is_a_ground():
    points, _, met = sweep(World(THINGS, noise_m=0.02))
    for within_m in (0.0, 0.005, 0.05):
        ground = find_ground(points, check(points), within_m=within_m)
        assert ground.reason == ""
        assert ground.plane[3] == pytest.approx(HEIGHT_M, abs=0.05)
        assert ground.share > 0.5
        np.testing.assert_array_equal(ground.removed, ground.heights < within_m)
    assert ground.removed[met == 0].mean() > 0.9


def test_the_seed_decides():
    points, _, _ = sweep(World(THINGS, noise_m=0.05))
    checked = check(points)
    one, same, other = (find_ground(points, checked, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.plane, same.plane)
    np.testing.assert_array_equal(one.removed, same.removed)
    np.testing.assert_allclose(one.plane, other.plane, atol=0.02)


def test_a_sensor_that_leans_is_told_where_up_is():
    points, _, _ = sweep(World(THINGS, noise_m=0.01))
    a = np.radians(35)
    turn = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
    leaning = (points @ turn.T).astype(np.float32)
    assert find_ground(leaning, check(leaning)).plane is None
    found = find_ground(leaning, check(leaning), up=turn @ [0, 0, 1])
    np.testing.assert_allclose(found.plane[:3], turn @ [0, 0, 1], atol=0.01)


def wall() -> np.ndarray:
    y, z = np.meshgrid(np.linspace(-8, 8, 60), np.linspace(-1.5, 2, 30))
    return np.column_stack([np.full(y.size, 6.0), y.ravel(), z.ravel()]).astype(np.float32)


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (wall(), "no plane within 15 degrees"),
        (np.zeros((0, 3), np.float32), "0 returns lie below"),
        (np.array([[3, 0, -1], [4, 0, -1]], np.float32), "2 returns lie below"),
        (np.tile(np.array([[3, 1, -1]], np.float32), (50, 1)), "no plane"),
        (np.abs(wall()), "lie below the LiDAR"),
    ],
)
def test_no_ground_says_why_and_removes_nothing(points, reason):
    found = find_ground(points, check(points))
    assert found.plane is None
    assert found.heights is None
    assert reason in found.reason
    assert np.isnan(found.tilt_deg)
    assert not found.removed.any()
    assert found.removed.shape == (len(points),)


def test_a_plane_that_explains_little_is_no_road():
    rng = np.random.default_rng(0)
    points = (rng.uniform(-1, 1, (3000, 3)) * [20, 20, 3] - [0, 0, 3.2]).astype(np.float32)
    found = find_ground(points, check(points), least_share=0.4)
    assert found.plane is None
    assert "explains" in found.reason
    assert 0 < found.share < 0.4


@pytest.mark.parametrize("up", [(0, 0, 0), (np.nan, 0, 1), (0, 1)])
def test_up_must_point_somewhere(up):
    points, _, _ = sweep(World())
    with pytest.raises(UsageError, match="up should be three numbers"):
        find_ground(points, check(points), up=up)


def test_float32_that_was_widened_to_eight_bytes_is_refused() -> None:
    points = np.random.default_rng(0).normal(0, 10, (400, 4)).astype(np.float32)
    points[:, 2] *= 0.1
    with pytest.raises(InputError, match="beyond 10 km away\n  are these numbers of 8 bytes"):
        check(validate_lidar_points(points.astype(np.float64).view(np.float32).reshape(-1, 4)))
