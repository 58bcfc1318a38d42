"""Camera: where the own vehicle's camera is in a frame, and where points of the world fall in its picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Ego
from roadaware.scenes.simulator.config import CameraConfig, SceneConfig

MOUNT_M = 1.2
"""How far the camera stands before the rear axle."""
# Camera axes in a vehicle that looks along x: right is -y, down is -z, forward is x.
_AXES = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera; x right, y down, z forward. The middle of the first pixel is (0.5, 0.5).

    Args:
        width_px: of the picture.
        height_px: of the picture.
        intrinsics: (3, 3) without skew.
        world_SE3_camera: (4, 4) takes points of the camera to the world, metres.
        grain: spread of the noise of its sensor, in grey levels of 255.
    """

    width_px: int
    height_px: int
    intrinsics: Floats
    world_SE3_camera: Floats  # noqa: N815, the project's way to name transforms
    grain: float = 0.0

    @property
    def camera_SE3_world(self) -> Floats:  # noqa: N802, as above
        """(4, 4) takes points of the world to the camera."""
        turn, place = self.world_SE3_camera[:3, :3], self.world_SE3_camera[:3, 3]
        inverse = np.eye(4)
        inverse[:3, :3] = turn.T
        inverse[:3, 3] = -turn.T @ place
        return inverse

    def project(self, points: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Where points fall in the picture, and how deep they lie; NaN pixels for those behind the camera.

        Args:
            points: (n, 3) in the world, metres.

        Returns:
            (n, 2) pixels, which may lie outside of the picture, and (n,) metres along the optical axis.
        """
        pose = self.camera_SE3_world
        local = np.asarray(points, dtype=np.float64).reshape(-1, 3) @ pose[:3, :3].T + pose[:3, 3]
        depth_m = local[:, 2]
        ahead = np.where(depth_m > 1e-9, depth_m, np.nan)
        scale = np.array([self.intrinsics[0, 0], self.intrinsics[1, 1]])
        pixels: Floats = local[:, :2] * scale / ahead[:, None] + self.intrinsics[:2, 2]
        return pixels, depth_m


def intrinsics_of(config: CameraConfig) -> Floats:
    """(3, 3) of a lens whose axis meets the middle of the picture.

    Args:
        config: of the camera.
    """
    focal_px = config.width_px / 2 / np.tan(np.radians(config.fov_deg) / 2)
    return np.array(
        [[focal_px, 0.0, config.width_px / 2], [0.0, focal_px, config.height_px / 2], [0.0, 0.0, 1.0]]
    )


def camera_of(ego: Ego, config: SceneConfig, frame: int, seed: int) -> Camera:
    """The camera in a frame, behind the windscreen of the own vehicle.

    The picture trembles by `shake_px` when the vehicle moves and by a third of it when it stands; how, is
    drawn from seed and frame alone, so that frames may be made in any order.

    Args:
        ego: the own vehicle.
        config: of the scene.
        frame: a row of `ego`.
        seed: of the scene.
    """
    lens = intrinsics_of(config.camera)
    moving = min(1.0, abs(float(ego.speed[frame])) / 5.0)
    spread = config.camera.shake_px * (1 / 3 + 2 / 3 * moving) / lens[0, 0]
    yaw, pitch, roll = spread * np.random.default_rng([seed, frame, 1]).standard_normal(3)
    pitch += np.radians(config.camera.pitch_deg)
    heading = float(ego.heading[frame])
    pose = np.eye(4)
    pose[:3, :3] = _about_z(heading + yaw) @ _about_y(-pitch) @ _about_x(0.3 * roll) @ _AXES
    offset = np.array([np.cos(heading) * MOUNT_M, np.sin(heading) * MOUNT_M, config.camera.height_m])
    pose[:3, 3] = np.asarray(ego.position[frame], dtype=np.float64) + offset
    return Camera(config.camera.width_px, config.camera.height_px, lens, pose, float(config.camera.grain))


def _about_x(angle: float) -> Floats:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _about_y(angle: float) -> Floats:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def _about_z(angle: float) -> Floats:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
