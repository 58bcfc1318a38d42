"""Cuboids of proposals as files of other tools: labels of KITTI, a text per image, and detections of nuScenes, one JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import make_folder
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions

CuboidForm = Literal["kitti", "nuscenes"]
KIND = "Misc"
"""What KITTI calls a thing of none of its classes."""
UNKNOWN = "unknown"
"""The class in nuScenes' files: its own have none for what nobody named."""
CUBOID = ("x_m", "y_m", "z_m", "length_m", "width_m", "height_m", "yaw_rad")
"""Columns of a cuboid in the LiDAR's frame (x ahead, y left, z up), as ONCE has them: its middle, sizes, and its turn."""
NUSCENES = "nuscenes.json"


def format_kitti_labels(boxes: pl.DataFrame, camera_SE3_lidar: Floats) -> str:  # noqa: N803
    """The lines of one image, the best first: sixteen fields, the last one the score.

    The place is the middle of the bottom in the camera's frame, the turn that about its axis down. How much is hidden
    or cut off is not known: both are -1.

    Args:
        boxes: rows of one image with their cuboids.
        camera_SE3_lidar: (4, 4) from the LiDAR to the camera of the image.
    """
    lines = []
    for row in boxes.sort("score", descending=True, maintain_order=True).iter_rows(named=True):
        x, y, z, length, width, height, yaw = (float(row[name]) for name in CUBOID)
        bottom = camera_SE3_lidar[:3, :3] @ np.array([x, y, z - height / 2]) + camera_SE3_lidar[:3, 3]
        ahead = camera_SE3_lidar[:3, :3] @ np.array([np.cos(yaw), np.sin(yaw), 0.0])
        turn = float(np.arctan2(-ahead[2], ahead[0]))
        alpha = turn - float(np.arctan2(bottom[0], bottom[2]))
        # Into one turn: -pi to pi.
        alpha = float((alpha + np.pi) % (2 * np.pi) - np.pi)
        numbers = [alpha, *(row[name] for name in CORNERS), height, width, length, *bottom.tolist(), turn]
        lines.append(f"{KIND} -1 -1 {' '.join(f'{value:.2f}' for value in numbers)} {row['score']:.4f}")
    return "".join(f"{line}\n" for line in lines)


def build_nuscenes_results(boxes: pl.DataFrame, poses: Mapping[tuple[str, int], Floats]) -> dict[str, Any]:
    """The content of a file of detections as nuScenes' devkit reads it: boxes in the world, by image.

    A sample is called `VIDEO/000012`. Velocities are those of tracks where the boxes have `velocity_x_m_s`, else 0.

    Args:
        boxes: rows with their cuboids.
        poses: video and frame to the (4, 4) pose of the LiDAR in the world.
    """
    from scipy.spatial.transform import Rotation

    results: dict[str, list[dict[str, Any]]] = {f"{video}/{frame:06d}": [] for video, frame in sorted(poses)}
    moving = "velocity_x_m_s" in boxes.columns
    for row in boxes.sort("video", "frame", "score", descending=[False, False, True]).iter_rows(named=True):
        x, y, z, length, width, height, yaw = (float(row[name]) for name in CUBOID)
        pose = poses[row["video"], row["frame"]]
        turned = pose[:3, :3] @ Rotation.from_euler("z", yaw).as_matrix()
        quaternion = Rotation.from_matrix(turned).as_quat(scalar_first=True)
        velocity = [row["velocity_x_m_s"] or 0.0, row["velocity_y_m_s"] or 0.0] if moving else [0.0, 0.0]
        sample = f"{row['video']}/{row['frame']:06d}"
        results[sample].append(
            {
                "sample_token": sample,
                "translation": (pose[:3, :3] @ np.array([x, y, z]) + pose[:3, 3]).tolist(),
                "size": [width, length, height],
                "rotation": quaternion.tolist(),
                "velocity": velocity,
                "detection_name": UNKNOWN,
                "detection_score": float(row["score"]),
                "attribute_name": "",
            }
        )
    inputs = ("use_camera", "use_lidar", "use_radar", "use_map", "use_external")
    return {"meta": {name: name in ("use_camera", "use_lidar") for name in inputs}, "results": results}


def write_cuboids(
    proposals: Predictions,
    folder: Path,
    forms: tuple[CuboidForm, ...],
    *,
    cameras: Mapping[tuple[str, int], Floats],
    poses: Mapping[tuple[str, int], Floats],
) -> dict[str, int]:
    """Write the cuboids of proposals for other tools; how many of each form, and how many boxes have none.

    Args:
        proposals: with cuboids in the LiDAR's frame.
        folder: where to: `kitti/VIDEO/000012.txt` and `nuscenes.json`.
        forms: which.
        cameras: video and frame to the (4, 4) way from the LiDAR to the camera.
        poses: the same to the pose of the LiDAR in the world; those of no image where the set does not say.

    Raises:
        UsageError: if the proposals have no cuboids, or nuScenes' form is asked for without poses.
        DiskError: if the disk refuses.
    """
    boxes = proposals.boxes.with_columns(pl.col("video").cast(pl.String))
    missing = [name for name in CUBOID if name not in boxes.columns]
    if missing:
        raise UsageError(
            f"these proposals have no cuboids ({', '.join(missing)}); propose again with this version"
        )
    if "tube" in boxes.columns and "velocity_x_m_s" in proposals.tubes.columns:
        speeds = proposals.tubes.select("tube", "velocity_x_m_s", "velocity_y_m_s")
        boxes = boxes.join(speeds, on="tube", how="left", maintain_order="left")
    known = boxes.drop_nulls(list(CUBOID))
    record = {"without a cuboid": len(boxes) - len(known)} if len(known) < len(boxes) else {}
    if "nuscenes" in forms:
        if len(poses) < len(cameras):
            raise UsageError(
                "nuScenes' form places boxes in the world, and the set does not say where the vehicle was in "
                f"{len(cameras) - len(poses):,} of {len(cameras):,} images; ask for kitti"
            )
        make_folder(folder)
        content = build_nuscenes_results(known, poses)
        write_atomically(folder / NUSCENES, json.dumps(content, allow_nan=False).encode())
        record["nuscenes"] = len(known)
    if "kitti" in forms:
        parts = known.partition_by("video", "frame", as_dict=True)
        for (video, frame), way in cameras.items():
            held = parts.get((video, frame), known.clear())
            path = folder / "kitti" / video / f"{frame:06d}.txt"
            make_folder(path.parent)
            write_atomically(path, format_kitti_labels(held, way).encode())
        record["kitti"] = len(known)
    return record
