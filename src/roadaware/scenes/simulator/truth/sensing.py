"""Sensing: where the camera and the LiDAR sit, where the own vehicle was, and the rows of its sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Ego
from roadaware.scenes.simulator.camera import camera_of, intrinsics_of
from roadaware.scenes.simulator.episode import Episode
from roadaware.scenes.simulator.lidar import AHEAD_M

CAMERA, LIDAR = "camera", "lidar"


@dataclass(frozen=True)
class Sweep:
    """One sweep of the LiDAR.

    Args:
        frame: of the scene.
        path: of its file, relative to the scene's folder.
        n_points: in it.
    """

    frame: int
    path: str
    n_points: int


def ego_poses(ego: Ego) -> npt.NDArray[np.float32]:
    """(F, 16) poses of the own vehicle in the world, row by row.

    Args:
        ego: the own vehicle.
    """
    poses = np.tile(np.eye(4), (len(ego.heading), 1, 1))
    c, s = np.cos(ego.heading), np.sin(ego.heading)
    poses[:, 0, 0], poses[:, 0, 1], poses[:, 1, 0], poses[:, 1, 1] = c, -s, s, c
    poses[:, :3, 3] = ego.position
    return poses.reshape(-1, 16).astype(np.float32)


def ego_SE3_camera(episode: Episode) -> Floats:  # noqa: N802, the project's way to name transforms
    """(4, 4) pose of the camera in the vehicle, without its tremor.

    Args:
        episode: the scene.
    """
    zero = np.zeros(1)
    whole = np.zeros(1, dtype=np.int64)
    still = Ego(np.zeros((1, 3)), zero, zero, zero, zero, whole, whole)
    lens = replace(episode.config.camera, shake_px=0.0)
    return camera_of(still, replace(episode.config, camera=lens), 0, 0).world_SE3_camera


def sensors(episode: Episode) -> pl.DataFrame:
    """The `sensors` table of a scene.

    Args:
        episode: the scene.
    """
    lidar = episode.config.lidar
    rows: list[dict[str, Any]] = [
        {
            "sensor": CAMERA,
            "intrinsics": intrinsics_of(episode.config.camera).ravel().tolist(),
            "ego_SE3_sensor": ego_SE3_camera(episode).ravel().tolist(),
            "layout": None,
        }
    ]
    if lidar is not None:
        pose = np.eye(4)
        pose[0, 3], pose[2, 3] = AHEAD_M, lidar.height_m
        layout = f"{lidar.rings} rings x {lidar.columns} columns"
        rows.append({"sensor": LIDAR, "ego_SE3_sensor": pose.ravel().tolist(), "layout": layout})
    schema: dict[str, Any] = {
        "scene": pl.String,
        "sensor": pl.String,
        "from_frame": pl.Int64,
        "intrinsics": pl.List(pl.Float32),
        "ego_SE3_sensor": pl.List(pl.Float32),
        "layout": pl.String,
    }
    return pl.DataFrame([{"scene": episode.name, "from_frame": 0, **row} for row in rows], schema=schema)


def sweep_table(episode: Episode, sweeps: Sequence[Sweep]) -> pl.DataFrame:
    """The `sweeps` table of a scene.

    Args:
        episode: the scene.
        sweeps: that were taken.
    """
    frame = np.array([each.frame for each in sweeps], dtype=np.int64)
    poses = ego_poses(episode.ego)[frame]
    return pl.DataFrame(
        {
            "scene": pl.Series([episode.name] * len(frame), dtype=pl.String),
            "sensor": pl.Series([LIDAR] * len(frame), dtype=pl.String),
            "frame": frame,
            "path": pl.Series([each.path for each in sweeps], dtype=pl.String),
            "n_points": pl.Series([each.n_points for each in sweeps], dtype=pl.Int64),
            "t_s": (frame / episode.config.camera.fps).astype(np.float32),
            "world_SE3_ego": pl.Series(poses.tolist(), dtype=pl.List(pl.Float32)),
        }
    )
