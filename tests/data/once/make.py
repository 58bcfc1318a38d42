"""Write a tiny set in ONCE's native layout: sequences with their JSON, splits, images and sweeps."""

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
MAIN = "data/000076/000076.json"
VIDEO = "000076/cam01"
OTHERS = ("ImageSets/train.txt",)
BAD_ROW = "upside down"
WIDTH, HEIGHT = 96, 51
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"[10.5, 12.0, 20.5", b"[20.5, 12.0, 10.5", 1),
    "changed": lambda data: data.replace(b"[10.5", b"[11.5", 1),
    "same_size": lambda data: data.replace(b"[10.5", b"[10.6", 1),
}
EXCUSED = {
    "test_a_damaged_side_file_costs_no_video": "a list of a split is text: half of it is a shorter list",
    "test_case_11_hostile_name": "sequences are called by six digits; others are foreign",
}
FIRST_MS = 1616343527200
NAMES = {"000076": "train", "000027": "val", "000112": "raw_small"}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write three sequences of one camera each, of which the last has no boxes.

    Args:
        root: where to; made with its parents.
        frames: of each sequence.
    """
    (root / "ImageSets").mkdir(parents=True, exist_ok=True)
    for name, split in NAMES.items():
        (root / "ImageSets" / f"{split}.txt").write_text(f"{name}\n")
        folder = root / "data" / name
        for kind in ("cam01", "lidar_roof"):
            (folder / kind).mkdir(parents=True, exist_ok=True)
        held = sequence(frames, boxes=split != "raw_small")
        (folder / f"{name}.json").write_text(json.dumps(held), encoding="utf-8")
        for frame in range(frames):
            stem = str(FIRST_MS + 500 * frame)
            (folder / "cam01" / f"{stem}.jpg").write_bytes(picture())
            (folder / "lidar_roof" / f"{stem}.bin").write_bytes(sweep().tobytes())
    return root


def sequence(frames: int, *, boxes: bool = True) -> dict[str, Any]:
    """The JSON of a sequence; the vehicle goes 3 m ahead from frame to frame, and the last has no pose."""
    listed: list[dict[str, Any]] = []
    for number in range(frames):
        # The LiDAR's y points back.
        pose = [0.0, 0, 0, 1, 0, -3.0 * number, 0] if number < frames - 1 or frames < 2 else [0.0] * 7
        frame: dict[str, Any] = {"frame_id": str(FIRST_MS + 500 * number), "pose": pose}
        if boxes:
            frame["annos"] = {
                "names": ["Car", "Pedestrian"],
                "boxes_3d": [[-2.0, -12.5, -0.9, 4.3, 1.9, 1.5, 1.57], [3.0, 9.0, -0.8, 0.7, 0.6, 1.7, 0.0]],
                "boxes_2d": {"cam01": [[10.5, 12.0, 20.5, 30.25], [-1.0, -1.0, -1.0, -1.0]]},
            }
        listed.append(frame)
    return {
        "meta_info": {"weather": "sunny", "period": "morning", "image_size": [WIDTH, HEIGHT]},
        "calib": {
            "cam01": {
                "cam_to_velo": [[-1.0, 0, 0, 0], [0, 0, -1, -0.5], [0, -1, 0, -0.25], [0, 0, 0, 1]],
                "cam_intrinsic": [[60.0, 0, 48], [0, 60, 25], [0, 0, 1]],
                "distortion": [-0.34, 0.12, 0.001, -0.0005, -0.02, 0.0, 0.0, 0.0],
            }
        },
        "frames": listed,
    }


def picture() -> bytes:
    held = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (10, 20, 30)).save(held, "JPEG")
    return held.getvalue()


def sweep() -> np.ndarray:
    """(5, 4) float32 points with intensity."""
    return np.random.default_rng(0).uniform(-20, 20, (5, 4)).astype("<f4")
