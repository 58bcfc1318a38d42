"""Write a tiny set of nuScenes: keyframes in a file each, and, by `tables`, the JSON tables of a version."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

FORMAT = "sensor json"
WARNS = False
MAIN = "keyframe_1.json"
MOMENT = "ca9a282c9e77460f8360f564131a8af5"
VIDEO = f"{MOMENT}/CAM_FRONT"
OTHERS = ()
BAD_ROW = "upside down"
MEMBER = "images"
WIDTH, HEIGHT = 64, 36
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"[10.5, 12.0, 20.5", b"[20.5, 12.0, 10.5", 1),
    "changed": lambda data: data.replace(b"[10.5", b"[11.5", 1),
    "same_size": lambda data: data.replace(b"[10.5", b"[10.6", 1),
}
EGO_SE3_LIDAR = [[0.0, 1, 0, 0.94], [-1, 0, 0, 0], [0, 0, 1, 1.84], [0, 0, 0, 1]]
EGO_SE3_CAMERA = [[0.0, 0, 1, 1.7], [-1, 0, 0, 0], [0, -1, 0, 1.5], [0, 0, 0, 1]]
CAMERA_SE3_LIDAR = [[1.0, 0, 0, 0], [0, 0, -1, -0.34], [0, 1, 0, -0.5], [0, 0, 0, 1]]
LENS = [[50.0, 0, 32], [0, 50, 18], [0, 0, 1]]


def make(root: Path, *, frames: int = 2) -> Path:
    """Write two keyframes of one camera each.

    Args:
        root: where to; made with its parents.
        frames: not used: a keyframe is one.
    """
    root.mkdir(parents=True, exist_ok=True)
    for number, token in enumerate((MOMENT, "39586f9d59004284a7114a68825e8eec"), 1):
        (root / f"keyframe_{number}.json").write_text(json.dumps(keyframe(token, number)), encoding="utf-8")
        (root / f"front_{number}.jpg").write_bytes(picture())
        (root / f"top_{number}.pcd.bin").write_bytes(sweep().tobytes())
    return root


def keyframe(token: str, number: int) -> dict[str, Any]:
    """One keyframe; its vehicle went 0.5 m ahead between image and sweep."""
    boxes = [[10.5, 12.0, 20.5, 30.25], [40.25, 3.0, 64.0, 36.0]]
    instances = [
        {"bbox": box, "bbox_label": label, "depth": 12.25, "velocity": [float("nan"), float("nan")]}
        for box, label in zip(boxes, (1, 0), strict=True)
    ]
    image = {
        "img_path": f"front_{number}.jpg",
        "cam2img": LENS,
        "cam2ego": EGO_SE3_CAMERA,
        "lidar2cam": CAMERA_SE3_LIDAR,
        "timestamp": 1532402927.5,
    }
    return {
        "cam_instances": {"CAM_FRONT": instances},
        "metainfo": {"categories": {"car": 0, "barrier": 1}},
        "token": token,
        "timestamp": 1532402927.75,
        "ego2global": [[1.0, 0, 0, 100.5], [0, 1, 0, 20], [0, 0, 1, 0], [0, 0, 0, 1]],
        "images": {"CAM_FRONT": image},
        "lidar_points": {
            "num_pts_feats": 5,
            "lidar_path": f"top_{number}.pcd.bin",
            "lidar2ego": EGO_SE3_LIDAR,
        },
    }


def picture() -> bytes:
    held = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (10, 20, 30)).save(held, "JPEG")
    return held.getvalue()


def sweep() -> np.ndarray:
    """(6, 5) float32 points with intensity and ring."""
    points = np.random.default_rng(0).uniform(2, 20, (6, 5)).astype("<f4")
    points[:, 4] = [0, 1, 2, 0, 1, 2]
    return points


def tables(root: Path) -> Path:
    """Write `v1.0-mini/` with two scenes: a car that comes nearer in the first, nothing in the second."""
    folder = root / "v1.0-mini"
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in content().items():
        (folder / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
    return root


def content() -> dict[str, list[dict[str, Any]]]:
    """The rows of the tables: three keyframes, two sensors; between keyframes the vehicle goes 2 m ahead."""
    level, ahead = [1.0, 0, 0, 0], [0.5, -0.5, 0.5, -0.5]
    found: dict[str, list[dict[str, Any]]] = {
        "sensor": [
            {"token": "s-front", "channel": "CAM_FRONT", "modality": "camera"},
            {"token": "s-top", "channel": "LIDAR_TOP", "modality": "lidar"},
            {"token": "s-radar", "channel": "RADAR_FRONT", "modality": "radar"},
        ],
        "calibrated_sensor": [
            sensor("front", ahead, [1.7, 0, 1.5], LENS),
            sensor("top", [0.70710678, 0, 0, -0.70710678], [0.94, 0, 1.84], []),
            sensor("radar", level, [3.4, 0, 0.5], []),
        ],
        "category": [
            {"token": "k-car", "name": "vehicle.car"},
            {"token": "k-cone", "name": "movable_object.trafficcone"},
        ],
        "instance": [{"token": "i-car", "category_token": "k-car"}],
        "scene": [{"token": "d-0", "name": "scene-0061"}, {"token": "d-1", "name": "scene-0103"}],
        "sample": [],
        "sample_data": [],
        "ego_pose": [],
        "sample_annotation": [],
    }
    for number, scene in enumerate(("d-0", "d-0", "d-1")):
        time = 1_532_402_927_000_000 + 500_000 * number
        sample = f"m-{number}"
        found["sample"].append({"token": sample, "timestamp": time, "scene_token": scene})
        for name in ("front", "top", "radar"):
            token = f"{sample}-{name}"
            late = 0 if name == "front" else 40_000
            found["ego_pose"].append({"token": token, "translation": [2.0 * number, 0, 0], "rotation": level})
            found["sample_data"].append(
                {
                    "token": token,
                    "sample_token": sample,
                    "ego_pose_token": token,
                    "calibrated_sensor_token": f"c-{name}",
                    "filename": f"samples/{name}/{number}.bin",
                    "timestamp": time + late,
                    "is_key_frame": True,
                    "width": WIDTH if name == "front" else 0,
                    "height": HEIGHT if name == "front" else 0,
                }
            )
        if scene == "d-0":
            found["sample_annotation"].append(
                {
                    "token": f"a-{number}",
                    "sample_token": sample,
                    "instance_token": "i-car",
                    "translation": [13.7, 0, 1.5],
                    "size": [2.0, 4.0, 1.0],
                    "rotation": level,
                    "num_lidar_pts": 7,
                }
            )
    return found


def sensor(
    name: str, rotation: list[float], translation: list[float], lens: list[list[float]]
) -> dict[str, Any]:
    held = {"token": f"c-{name}", "sensor_token": f"s-{name}", "translation": translation}
    return {**held, "rotation": rotation, "camera_intrinsic": lens}
