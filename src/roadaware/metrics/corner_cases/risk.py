"""Objects that block a path of the vehicle, where poses of camera, vehicle and ground are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats
from roadaware.errors import InputError, UsageError
from roadaware.metrics.corner_cases.inputs import BLOCKS
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_ALONG = 9
"""Points of an object's foot that are considered."""
_KMH = 3.6


@dataclass(frozen=True)
class Paths:
    """The paths that a vehicle may take: arcs from where it is, as curved as comfort and steering let it.

    Args:
        width_m: of the vehicle, with what it keeps clear on both sides.
        horizon_s: how far ahead in time a path reaches.
        least_m: how far it reaches at least, also of a vehicle that stands.
        lateral_mps2: the largest acceleration to the side.
        radius_m: of the tightest turn.
        ground_m: height of the ground in the vehicle's frame: 0 where that frame stands on the road, about
            -0.93 for KITTI, whose frame is that of its inertial unit.
    """

    width_m: float = 2.5
    horizon_s: float = 3.0
    least_m: float = 10.0
    lateral_mps2: float = 3.0
    radius_m: float = 6.0
    ground_m: float = 0.0

    def __post_init__(self) -> None:
        for name in ("width_m", "horizon_s", "least_m", "lateral_mps2", "radius_m"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} should be a number above 0; got {getattr(self, name)!r}")


def add_blocking(scenes: Scenes, paths: Paths | None = None) -> Scenes:
    """The ground truth with the column `blocks_path`: whether an object stands where a path leads.

    An object stands where the lower edge of its box meets the ground, which is taken for flat. It blocks a
    path if an arc that the vehicle may take leads over a part of that edge within the horizon. Null where
    it is not known: no calibration, no speed, an edge at or above the horizon of the image.

    Args:
        scenes: boxes, `sensors` with intrinsics and `ego_SE3_sensor` of a camera (x right, y down, z ahead),
            frames with `ego_speed_kmh`, and the scene of each video.
        paths: that the vehicle may take.

    Raises:
        InputError: if no box has a camera of known geometry and a known speed.

    Source: Li et al., ECCV 2022 (CODA), section 4, the criterion of risk, which has no numbers there.
    """
    paths = paths or Paths()
    cameras = _cameras(scenes)
    boxes = scenes.boxes.with_columns(pl.col("video").cast(pl.String))
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    speed = pl.col("ego_speed_kmh") if "ego_speed_kmh" in frames.columns else pl.lit(None, dtype=pl.Float64)
    speeds = frames.select("video", "frame", speed=speed.cast(pl.Float64))
    table = boxes.select("video", "frame", *CORNERS).join(
        speeds, on=["video", "frame"], how="left", maintain_order="left"
    )
    found: list[bool | None] = [None] * len(table)
    for video in table["video"].unique(maintain_order=True):
        if video not in cameras:
            continue
        rows = table.with_row_index("row").filter((pl.col("video") == video) & pl.col("speed").is_not_null())
        foot, seen = project_to_ground(
            rows.select(CORNERS).to_numpy().astype(np.float64), *cameras[video], paths
        )
        blocked = find_blocking(foot, rows["speed"].to_numpy().astype(np.float64) / _KMH, paths)
        for row, known, block in zip(rows["row"].to_list(), seen.tolist(), blocked.tolist(), strict=True):
            found[row] = block if known else None
    if not any(each is not None for each in found):
        raise InputError(
            "of no object it is known where it stands: there is no camera with intrinsics and a pose in the "
            "vehicle, or no speed of the vehicle",
            hint="sets of images alone have no geometry; leave the criterion of risk away",
        )
    return scenes.with_tables(boxes=scenes.boxes.with_columns(pl.Series(BLOCKS, found, dtype=pl.Boolean)))


def project_to_ground(boxes: Floats, camera: Floats, pose: Floats, paths: Paths) -> tuple[Floats, Bools]:
    """(n, 9, 2) points of the ground under the lower edge of each box, x ahead and y to the left, in metres.

    Args:
        boxes: (n, 4) corners in pixels.
        camera: (3, 3) intrinsics.
        pose: (4, 4) of the camera in the vehicle.
        paths: states the height of the ground.

    Returns:
        the points, and (n,) whether the edge meets the ground before the vehicle.
    """
    share = np.linspace(0, 1, _ALONG)
    u = boxes[:, :1] + (boxes[:, 2:3] - boxes[:, :1]) * share
    v = np.broadcast_to(boxes[:, 3:4], u.shape)
    rays = np.stack([u, v, np.ones_like(u)], axis=-1) @ np.linalg.inv(camera).T @ pose[:3, :3].T
    down = paths.ground_m - pose[2, 3]
    # A ray that is level or leads upwards meets no ground.
    seen = (rays[..., 2] * np.sign(down) > 1e-9).all(axis=1)
    scale = down / np.where(np.abs(rays[..., 2]) > 1e-9, rays[..., 2], 1.0)
    points: Floats = pose[:2, 3] + scale[..., None] * rays[..., :2]
    return points, seen & (points[..., 0] > 0).all(axis=1)


def find_blocking(points: Floats, speed_mps: Floats, paths: Paths) -> Bools:
    """(n,) whether a path leads over one of the points of an object.

    Through each point ahead leads one arc that begins along the vehicle, of curvature 2 y / (x² + y²). A
    point is in the way if a possible arc passes it within half the vehicle's width before the path ends.

    Args:
        points: (n, k, 2) x ahead and y to the left, in metres.
        speed_mps: (n,) of the vehicle.
        paths: that it may take.
    """
    reach = np.maximum(speed_mps * paths.horizon_s, paths.least_m)[:, None]
    # Of a vehicle that hardly moves the steering alone bounds the curvature; a / v^2 would be infinite.
    tight = np.minimum(paths.lateral_mps2 / np.maximum(speed_mps, 0.1) ** 2, 1 / paths.radius_m)[:, None]
    x, y = points[..., 0], points[..., 1]
    away = np.maximum(x**2 + y**2, 1e-9)
    bend = np.clip(2 * y / away, -tight, tight)
    # The nearest possible arc: where the exact one is possible, the point lies on it.
    # The arc of a line has no radius.
    straight = np.abs(bend) < 1e-6
    radius = 1 / np.where(straight, 1.0, bend)
    beside = np.where(straight, np.abs(y), np.abs(np.hypot(x, y - radius) - np.abs(radius)))
    angle = np.arctan2(x, np.where(bend > 0, radius - y, y - radius))
    along = np.where(straight, x, angle * np.abs(radius))
    near: Bools = (beside <= paths.width_m / 2) & (along >= 0) & (along <= reach) & (x > 0)
    return np.asarray(near.any(axis=1))


def _cameras(scenes: Scenes) -> dict[str, tuple[Floats, Floats]]:
    """Video to the intrinsics and the pose of its camera; the first pose, where it changes."""
    held: dict[tuple[str, str], tuple[Floats, Floats]] = {}
    for row in scenes.sensors.iter_rows(named=True):
        if row.get("intrinsics") is None or row.get("ego_SE3_sensor") is None:
            continue
        camera = np.array(row["intrinsics"], dtype=np.float64).reshape(3, 3)
        pose = np.array(row["ego_SE3_sensor"], dtype=np.float64).reshape(4, 4)
        held.setdefault((str(row["scene"]), str(row["sensor"])), (camera, pose))
    found = {}
    for row in scenes.videos.iter_rows(named=True):
        scene = str(row.get("scene") or "")
        own = [key for key in held if key[0] == scene and row.get("sensor") in (None, key[1])]
        if len(own) == 1:
            found[str(row["video"])] = held[own[0]]
    return found
