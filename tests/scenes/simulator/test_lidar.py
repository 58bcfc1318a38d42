"""The LiDAR: what rays hit, what is measured of it, and that it is the same each time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadaware.simulator.actors import Ego
from roadaware.simulator.config import CameraConfig, Conditions, LidarConfig, SceneConfig
from roadaware.simulator.mesh import Material, Semantic, Soup, build_camera, merge_soups
from roadaware.simulator.render import render
from roadaware.simulator.sensors import azimuths, cast_rays, elevations, lidar_pose, simulate_sweep

EXACT = LidarConfig(rings=24, columns=120, lowest_deg=-40.0, highest_deg=30.0, noise_m=0.0, dropout=0.0)


def soup_of(corners, material=Material.MATT, instance=0, semantic=Semantic.ROAD) -> Soup:
    corners = np.asarray(corners, dtype=np.float32).reshape(-1, 3, 3)
    n = len(corners)
    return Soup(
        corners,
        np.full((n, 3), 0.5, dtype=np.float32),
        np.full(n, material, dtype=np.uint8),
        np.full(n, semantic, dtype=np.uint8),
        np.zeros(n, dtype=np.float32),
        np.zeros((n, 3, 2), dtype=np.float32),
        np.full(n, instance, dtype=np.int32),
    )


def ground(z=0.0, half=200.0, material=Material.ASPHALT) -> Soup:
    a, b, c, d = (-half, -half, z), (half, -half, z), (half, half, z), (-half, half, z)
    return soup_of([[a, b, c], [a, c, d]], material)


def box(near_m=10.0, instance=7) -> Soup:
    """A box ahead: 4 m long, 2 m wide and high, its near face at a distance."""
    x, far, w, h = near_m, near_m + 4, 1.0, 2.0
    quads = [
        [(x, w, 0), (x, -w, 0), (x, -w, h), (x, w, h)],
        [(far, -w, 0), (far, w, 0), (far, w, h), (far, -w, h)],
        [(x, -w, 0), (far, -w, 0), (far, -w, h), (x, -w, h)],
        [(far, w, 0), (x, w, 0), (x, w, h), (far, w, h)],
        [(x, w, h), (x, -w, h), (far, -w, h), (far, w, h)],
    ]
    triangles = [[q[i] for i in order] for q in quads for order in ((0, 1, 2), (0, 2, 3))]
    return soup_of(triangles, Material.GLOSSY, instance, Semantic.CAR)


def at_height(metres: float) -> np.ndarray:
    pose = np.eye(4)
    pose[2, 3] = metres
    return pose


def every_pair(soup: Soup, pose: np.ndarray, config: LidarConfig) -> tuple[np.ndarray, np.ndarray]:
    """The nearest front of every ray, each tried on every triangle (Moeller and Trumbore, 1997)."""
    above, around = np.meshgrid(elevations(config), azimuths(config), indexing="ij")
    rays = np.stack([np.cos(above) * np.cos(around), np.cos(above) * np.sin(around), np.sin(above)], -1)
    rays = rays.reshape(-1, 3) @ pose[:3, :3].T
    a, b, c = (soup.corners[:, k].astype(np.float64) for k in range(3))
    e1, e2, gap = b - a, c - a, pose[:3, 3] - a
    p = np.cross(rays[:, None], e2)
    det = (p * e1).sum(-1)
    u = (p * gap).sum(-1) / det
    q = np.cross(gap, e1)
    v = (rays[:, None] * q).sum(-1) / det
    t = (e2 * q).sum(-1) / det
    hit = (det > 0) & (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0) & (t <= config.range_m)
    t = np.where(hit, t, np.inf)
    nearest = t.argmin(1)
    ranges = t[np.arange(len(t)), nearest]
    shape = (config.rings, config.columns)
    return np.where(np.isfinite(ranges), nearest, -1).reshape(shape), ranges.reshape(shape)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_hits_are_those_of_every_ray_tried_on_every_triangle(seed) -> None:
    """Small and huge triangles all around, above, below and through the sensor's own height."""
    rng = np.random.default_rng(seed)
    middle = rng.uniform(-40, 40, (300, 1, 3)) * [1, 1, 0.4]
    corners = middle + rng.standard_normal((300, 3, 3)) * rng.choice([0.3, 3, 30], (300, 1, 1))
    c, s = np.cos(0.7), np.sin(0.7)
    pose = at_height(1.5) + 0.0
    pose[:3, :3] = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ [
        [0.995, 0, 0.0998749],
        [0, 1, 0],
        [-0.0998749, 0, 0.995],
    ]
    soup = soup_of(corners)
    config = replace(EXACT, range_m=45.0)
    hits = cast_rays(soup, pose, config)
    triangle, ranges = every_pair(soup, pose, config)
    assert (hits.triangle >= 0).mean() > 0.5
    np.testing.assert_array_equal(hits.triangle, triangle)
    np.testing.assert_allclose(hits.ranges, ranges, rtol=1e-7)


def test_a_closed_surface_has_no_holes_along_its_edges() -> None:
    rng = np.random.default_rng(5)
    x, y = np.meshgrid(np.linspace(-60, 60, 41), np.linspace(-60, 60, 41), indexing="ij")
    grid = np.stack([x, y, rng.uniform(-0.2, 0.2, x.shape)], -1)
    a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    soup = soup_of(
        np.concatenate([np.stack([a, b, c], 2).reshape(-1, 3, 3), np.stack([a, c, d], 2).reshape(-1, 3, 3)])
    )
    config = replace(EXACT, rings=60, columns=720, lowest_deg=-80.0, highest_deg=-5.0)
    assert (cast_rays(soup, at_height(2.0), config).triangle >= 0).all()


def test_a_box_ten_metres_ahead_gives_points_on_its_face() -> None:
    config = LidarConfig(dropout=0.0, noise_m=0.02)
    found = simulate_sweep(
        merge_soups([ground(), box()]), at_height(config.height_m), config, seed=3, frame=5
    )
    mine = found.points[found.instance == 7].astype(np.float64)
    face = mine[mine[:, 2] < 2.0 - config.height_m - 0.05]
    assert len(face) > 150
    assert (found.semantic[found.instance == 7] == Semantic.CAR).all()
    scale = np.linalg.norm(face[:, :3], axis=1) / face[:, 0]
    away = (face[:, 0] - 10.0) * scale
    assert np.abs(away).max() < 4.5 * config.noise_m
    assert (np.abs(away) < 3 * config.noise_m).mean() > 0.98
    assert 0.7 < away.std() / config.noise_m < 1.3
    assert np.abs(face[:, 1]).max() < 1.01
    assert not (
        (found.points[:, 0] > 10.3) & (np.abs(found.points[:, 1]) < 0.9) & (found.points[:, 2] < -1.0)
    ).any()


def test_rings_and_columns_are_as_configured() -> None:
    config = replace(EXACT, lowest_deg=-30.0, highest_deg=-10.0, rings=5, columns=36)
    points = simulate_sweep(ground(), at_height(2.0), config, seed=0, frame=0).points.astype(np.float64)
    assert points.shape == (5 * 36, 5)
    assert (points[:, 4] == np.repeat(np.arange(5), 36)).all()
    above = np.degrees(np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1])))
    np.testing.assert_allclose(above, np.repeat([-30, -25, -20, -15, -10], 36), atol=1e-4)
    around = np.degrees(np.arctan2(points[:, 1], points[:, 0])) % 360
    np.testing.assert_allclose(around, np.tile(np.arange(36) * 10.0, 5), atol=1e-4)
    np.testing.assert_allclose(points[:, 2], -2.0, atol=1e-5)


def test_what_is_measured_hangs_on_seed_and_frame_alone() -> None:
    scene, pose, config = merge_soups([ground(), box()]), at_height(1.9), LidarConfig(rings=16, columns=90)
    one = simulate_sweep(scene, pose, config, seed=4, frame=9)
    simulate_sweep(scene, pose, config, seed=1, frame=1)
    again = simulate_sweep(scene, pose, config, seed=4, frame=9)
    assert one.points.tobytes() == again.points.tobytes()
    assert one.points.tobytes() != simulate_sweep(scene, pose, config, seed=4, frame=8).points.tobytes()
    assert one.points.tobytes() != simulate_sweep(scene, pose, config, seed=5, frame=9).points.tobytes()


def test_as_many_returns_are_lost_as_configured_and_none_beyond_the_range() -> None:
    config = LidarConfig(dropout=0.25, range_m=30.0, lowest_deg=-20.0, highest_deg=-4.0)
    found = simulate_sweep(ground(), at_height(1.9), config, seed=0, frame=0)
    assert 0.73 < len(found) / (config.rings * config.columns) < 0.77
    far = simulate_sweep(
        ground(), at_height(1.9), replace(config, highest_deg=2.0, dropout=0.0), seed=0, frame=0
    )
    assert np.linalg.norm(far.points[:, :3], axis=1).max() < 30.2
    assert 0 < len(far) < config.rings * config.columns


def test_paint_is_seen_on_the_road_and_brighter_than_it() -> None:
    stripe = soup_of(
        [[(5, -1, 0), (9, -1, 0), (9, 1, 0)], [(5, -1, 0), (9, 1, 0), (5, 1, 0)]], Material.MARKING
    )
    scene = merge_soups(
        [ground(), replace(stripe, semantic=np.full(2, Semantic.MARKING, dtype=np.uint8)), ground()]
    )
    found = simulate_sweep(scene, at_height(1.9), LidarConfig(), seed=0, frame=0)
    on = (found.points[:, 0] > 5.2) & (found.points[:, 0] < 8.8) & (np.abs(found.points[:, 1]) < 0.9)
    assert (found.semantic[on] == Semantic.MARKING).all()
    assert found.points[on, 3].mean() > 4 * found.points[~on, 3].mean()


def test_surfaces_send_back_less_at_grazing_angles_and_nothing_from_behind() -> None:
    config = replace(EXACT, lowest_deg=-60.0, highest_deg=-3.0)
    strength = (
        simulate_sweep(ground(), at_height(2.0), config, seed=0, frame=0).points[:, 3].reshape(24, -1).mean(1)
    )
    assert strength[0] > 2 * strength[-1]
    turned = ground()
    assert not len(
        simulate_sweep(
            replace(turned, corners=turned.corners[:, ::-1]), at_height(2.0), config, seed=0, frame=0
        )
    )


def test_the_lidar_stands_on_the_roof_and_turns_with_the_vehicle() -> None:
    zero, whole = np.zeros(2), np.zeros(2, dtype=np.int64)
    ego = Ego(
        np.array([[0.0, 0, 0], [50.0, 20, 1]]), np.array([0.0, np.pi / 2]), zero, zero, zero, whole, whole
    )
    pose = lidar_pose(ego, LidarConfig(height_m=2.1), 1)
    np.testing.assert_allclose(pose[:3, 3], [50.0, 21.2, 3.1])
    np.testing.assert_allclose(pose @ [1, 0, 0, 1], [50.0, 22.2, 3.1, 1])


def test_points_of_a_thing_land_on_its_pixels() -> None:
    zero, whole = np.zeros(1), np.zeros(1, dtype=np.int64)
    ego = Ego(np.array([[-1.2, 0.3, 0.0]]), np.array([0.05]), zero, zero, zero, whole, whole)
    config = SceneConfig(camera=CameraConfig(width_px=320, height_px=240, shake_px=0.0), lidar=LidarConfig())
    scene = merge_soups([ground(), box(12.0)])
    camera = build_camera(ego, config, 0, 0)
    picture = render(scene, camera, Conditions(), seed=0, frame=0)
    pose = lidar_pose(ego, config.lidar, 0)
    found = simulate_sweep(scene, pose, config.lidar, seed=0, frame=0)
    world = found.points[:, :3].astype(np.float64) @ pose[:3, :3].T + pose[:3, 3]
    pixels, depth_m = camera.project(world[found.instance == 7])
    column, row = np.floor(pixels).astype(int).T
    assert (picture.instance[row, column] == 7).mean() > 0.95
    assert (np.abs(picture.depth_m[row, column] - depth_m) < 0.3).mean() > 0.9
