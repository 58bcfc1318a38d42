"""Write a tiny set in COCO's format: videos with tracks in one file, images in another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = "sensor json"
MAIN = "street.json"
VIDEO = "street"
OTHERS = ()
BAD_ROW = "negative"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"20.5, 40", b"-20.5, 40", 1),
    "changed": lambda data: data.replace(b"20.5, 40", b"21.5, 40.5", 1),
    "same_size": lambda data: data.replace(b"20.5, 40", b"21.5, 40", 1),
}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write a video of two tracks, and images of which one is empty.

    Args:
        root: where to; made with its parents.
        frames: of the video.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / MAIN).write_text(json.dumps(content(frames)))
    shots = content(2)
    del shots["videos"]
    shots["images"] = [
        {"id": n + 1, "file_name": f"shot{n}.png", "width": 640, "height": 480} for n in range(2)
    ]
    shots["annotations"] = [
        {key: value for key, value in each.items() if key != "track_id"} for each in shots["annotations"][:2]
    ]
    (root / "shots.json").write_text(json.dumps(shots))
    return root


def content(frames: int) -> dict[str, Any]:
    """A video with a walker, a car and a crowd."""
    images, boxes = [], []
    for frame in range(frames):
        images.append({"id": frame + 1, "video_id": 1, "frame_id": frame, "file_name": f"street/{frame + 1:06d}.jpg",
                       "width": 640, "height": 480})  # fmt: skip
        for category, track, box, crowd in (
            (1, 7, [10 + frame, 20.25, 20.5, 40], 0),
            (2, 9, [100, 50, 60, 30], 1),
        ):
            boxes.append({"id": len(boxes) + 1, "image_id": frame + 1, "category_id": category, "bbox": box,
                          "area": box[2] * box[3], "iscrowd": crowd, "track_id": track})  # fmt: skip
    return {
        "videos": [{"id": 1, "name": "street", "fps": 10}],
        "images": images,
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "car"}],
        "annotations": boxes,
    }
