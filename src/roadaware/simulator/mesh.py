"""Mesh and Soup: triangles of one thing, and of all things in view, with what a camera or LiDAR must know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bytes, Floats, Floats32, Ints32
from roadaware.simulator.actors import Ego
from roadaware.simulator.config import CameraConfig, SceneConfig

CELL_M = 0.5
"""Cells of the map of lamp light."""


class Material(IntEnum):
    """How a triangle answers light; lamps shine by themselves when they are lit."""

    MATT = 0
    GLOSSY = 1
    GLASS = 2
    ASPHALT = 3
    PAVING = 4
    GRASS = 5
    BRICK = 6
    FOLIAGE = 7
    MARKING = 8
    WINDOWS = 9
    CLOTH = 10
    LAMP = 11


class Semantic(IntEnum):
    """Semantic class of a pixel, after the classes of Cityscapes; 0 is nothing."""

    VOID = 0
    ROAD = 1
    PAVEMENT = 2
    BUILDING = 3
    WALL = 4
    FENCE = 5
    POLE = 6
    TRAFFIC_LIGHT = 7
    TRAFFIC_SIGN = 8
    VEGETATION = 9
    TERRAIN = 10
    SKY = 11
    PERSON = 12
    RIDER = 13
    CAR = 14
    TRUCK = 15
    BUS = 16
    MOTORCYCLE = 17
    BICYCLE = 18
    OBJECT = 19
    MARKING = 20


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles of one thing in its own axes: x forward, y left, z up from the ground, metres.

    Args:
        vertices: (v, 3).
        triangles: (t, 3) places in `vertices`, counter-clockwise seen from outside.
        colour: (t, 3) of the surface, linear, 0 to 1.
        material: (t,) `Material`.
        semantic: (t,) `Semantic`.
        glow: (t,) light it gives off, 0 for none.
        uv: (t, 3, 2) metres along the surface at its corners, for patterns.
    """

    vertices: Floats32
    triangles: Ints32
    colour: Floats32
    material: Bytes
    semantic: Bytes
    glow: Floats32
    uv: Floats32


@dataclass(frozen=True, eq=False)
class Soup:
    """Triangles in the world, of many things.

    Args:
        corners: (t, 3, 3) in metres.
        colour: (t, 3).
        material: (t,).
        semantic: (t,).
        glow: (t,).
        uv: (t, 3, 2).
        instance: (t,) number of the actor + 1; signals follow the actors; 0 for what does not move.
    """

    corners: Floats32
    colour: Floats32
    material: Bytes
    semantic: Bytes
    glow: Floats32
    uv: Floats32
    instance: Ints32

    def __len__(self) -> int:
        return len(self.instance)


def transform_mesh(mesh: Mesh, position: npt.ArrayLike, heading: float, instance: int = 0) -> Soup:
    """A mesh turned by a heading and put in the world.

    Args:
        mesh: in its own axes.
        position: (3,) of its origin, in metres.
        heading: of its x axis, counter-clockwise from the world's, in radians.
        instance: its value in instance masks.
    """
    c, s = np.cos(heading), np.sin(heading)
    # The transpose of the rotation, since vertices are rows.
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]], dtype=np.float32)
    vertices = mesh.vertices @ turn + np.asarray(position, dtype=np.float32)
    marks = np.full(len(mesh.triangles), instance, dtype=np.int32)
    return Soup(
        vertices[mesh.triangles], mesh.colour, mesh.material, mesh.semantic, mesh.glow, mesh.uv, marks
    )


def merge_soups(parts: Sequence[Soup]) -> Soup:
    """Several soups as one.

    Args:
        parts: at least one.
    """
    # Nothing is copied where there is nothing to join.
    if len(parts) == 1:
        return parts[0]
    names = ("corners", "colour", "material", "semantic", "glow", "uv", "instance")
    return Soup(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


# Camera: where the own vehicle's camera is in a frame, and where points of the world fall in its image.

MOUNT_M = 1.2
"""How far the camera stands before the rear axle."""
# Camera axes in a vehicle that looks along x: right is -y, down is -z, forward is x.
_AXES = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera; x right, y down, z forward. The middle of the first pixel is (0.5, 0.5).

    Args:
        width_px: of the image.
        height_px: of the image.
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
        # The inverse of a rigid transform by its transpose: exact, where a general inverse rounds.
        inverse[:3, :3] = turn.T
        inverse[:3, 3] = -turn.T @ place
        return inverse

    def project(self, points: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Project points to pixels and depths; NaN pixels for those behind the camera.

        Args:
            points: (n, 3) in the world, metres.

        Returns:
            (n, 2) pixels, which may lie outside of the image, and (n,) metres along the optical axis.
        """
        pose = self.camera_SE3_world
        local = np.asarray(points, dtype=np.float64).reshape(-1, 3) @ pose[:3, :3].T + pose[:3, 3]
        depth_m = local[:, 2]
        # Points behind the camera would be mirrored into the image.
        ahead = np.where(depth_m > 1e-9, depth_m, np.nan)
        scale = np.array([self.intrinsics[0, 0], self.intrinsics[1, 1]])
        pixels: Floats = local[:, :2] * scale / ahead[:, None] + self.intrinsics[:2, 2]
        return pixels, depth_m


def compute_intrinsics(config: CameraConfig) -> Floats:
    """(3, 3) of a lens whose axis meets the middle of the image."""
    focal_px = config.width_px / 2 / np.tan(np.radians(config.fov_deg) / 2)
    return np.array(
        [[focal_px, 0.0, config.width_px / 2], [0.0, focal_px, config.height_px / 2], [0.0, 0.0, 1.0]]
    )


def build_camera(ego: Ego, config: SceneConfig, frame: int, seed: int) -> Camera:
    """The camera in a frame, behind the windscreen of the own vehicle.

    The image trembles by `shake_px` when the vehicle moves and by a third of it when it stands; how, is
    drawn from seed and frame alone, so that frames may be made in any order.

    Args:
        ego: the own vehicle.
        config: of the scene.
        frame: a row of `ego`.
        seed: of the scene.
    """
    lens = compute_intrinsics(config.camera)
    # From 5 m/s on a vehicle trembles as much as it ever does.
    moving = min(1.0, abs(float(ego.speed[frame])) / 5.0)
    spread = config.camera.shake_px * (1 / 3 + 2 / 3 * moving) / lens[0, 0]
    yaw, pitch, roll = spread * np.random.default_rng([seed, frame, 1]).standard_normal(3)
    pitch += np.radians(config.camera.pitch_deg)
    heading = float(ego.heading[frame])
    pose = np.eye(4)
    angle = heading + yaw
    c, s = np.cos(angle), np.sin(angle)
    pose[:3, :3] = (
        np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        @ _about_y(-pitch)
        @ _about_x(0.3 * roll)
        @ _AXES
    )
    offset = np.array([np.cos(heading) * MOUNT_M, np.sin(heading) * MOUNT_M, config.camera.height_m])
    pose[:3, 3] = np.asarray(ego.position[frame], dtype=np.float64) + offset
    return Camera(config.camera.width_px, config.camera.height_px, lens, pose, float(config.camera.grain))


def _about_x(angle: float) -> Floats:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _about_y(angle: float) -> Floats:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
