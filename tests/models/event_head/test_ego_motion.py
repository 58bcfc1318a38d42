"""The own motion: turns and speed of textured worlds that are known, and none where nothing agrees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates

from roadaware.models.event_head.features import EgoMotion, solve_motion

FOCAL, SIZE = 300.0, (240, 320)
Picture = npt.NDArray[np.uint8]
_TEXTURE = gaussian_filter(np.random.default_rng(0).standard_normal((900, 900)), 2.5)
_TEXTURE = 128 + 90 * _TEXTURE / np.abs(_TEXTURE).max() * 2


def wall(yaw: float, pitch: float, driven_m: float, away_m: float = 16.5) -> Picture:
    """A textured wall across the way, seen by a camera that has turned and driven."""
    y, x = np.mgrid[: SIZE[0], : SIZE[1]] + 0.5
    rays = np.stack([(x - SIZE[1] / 2) / FOCAL, (y - SIZE[0] / 2) / FOCAL, np.ones(SIZE)], axis=-1)
    c, s = np.cos(yaw), np.sin(yaw)
    left = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
    c, s = np.cos(pitch), np.sin(pitch)
    up = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    world = rays @ (left @ up).T
    scale = (away_m - driven_m) / world[..., 2]
    at = [450 + 20 * world[..., 1] * scale, 450 + 20 * world[..., 0] * scale]
    grey = np.clip(map_coordinates(_TEXTURE, at, order=1, mode="reflect"), 0, 255).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)


@pytest.mark.parametrize(("yaw", "pitch"), [(0.01, 0.0), (-0.02, 0.004), (0.0, -0.01), (0.0, 0.0)])
def test_turns_are_found(yaw: float, pitch: float) -> None:
    ego = EgoMotion(FOCAL)
    assert ego.step(wall(0, 0, 0), 0.0) is None
    motion = ego.step(wall(yaw, pitch, 0), 0.1)
    assert motion is not None
    assert motion.yaw_rps == pytest.approx(10 * yaw, abs=0.01)
    assert motion.pitch_rps == pytest.approx(10 * pitch, abs=0.01)
    assert motion.speed_mps < 0.4


def test_speed_is_found_to_the_scale_of_a_street() -> None:
    ego = EgoMotion(FOCAL)
    ego.step(wall(0, 0, 0), 3.0)
    motion = ego.step(wall(0, 0, 0.8), 3.1)
    assert motion is not None
    assert motion.speed_mps == pytest.approx(8.0, rel=0.15)
    assert abs(motion.yaw_rps) < 0.01


def test_a_cut_tells_nothing() -> None:
    ego = EgoMotion(FOCAL)
    ego.step(wall(0, 0, 0), 0.0)
    other = np.random.default_rng(1).integers(0, 255, (*SIZE, 3)).astype(np.uint8)
    assert ego.step(other, 0.1) is None
    assert ego.step(np.zeros((*SIZE, 3), np.uint8), 0.2) is None
    assert ego.step(np.zeros((*SIZE, 3), np.uint8), 0.2) is None  # at the same time


def test_points_of_agents_are_left_out() -> None:
    ego = EgoMotion(FOCAL)
    ego.step(wall(0, 0, 0), 0.0)
    ego.leave_out([[0, 0, SIZE[1], SIZE[0]]])
    assert ego.step(wall(0.01, 0, 0), 0.1) is None


def test_some_who_move_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    place = rng.uniform((-0.5, -0.4), (0.5, 0.4), (150, 2))
    x, y = place.T
    flow = 0.02 * np.stack([1 + x**2, x * y], axis=1)
    flow[:40] += rng.uniform(-0.08, 0.08, (40, 2))
    motion = solve_motion(place, flow, 0.0, 0.1)
    assert motion is not None
    assert motion.yaw_rps == pytest.approx(0.2, abs=0.004)
