"""Write a tiny set in BDD100K's format: two videos with tracks, and images of which one is empty."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = "sensor json"
MAIN = "street.json"
VIDEO = "street"
OTHERS = ()
NAMES_VIDEOS = True
BAD_ROW = "upside down"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b'"x2": 30.5', b'"x2": -3.5', 1),
    "changed": lambda data: data.replace(b'"x2": 30.5', b'"x2": 31.25', 1),
    "same_size": lambda data: data.replace(b'"x2": 30.5', b'"x2": 31.5', 1),
}
OPTIONS = {"fps": 5, "size": "1280x720"}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write the set.

    Args:
        root: where to; made with its parents.
        frames: of each video.
    """
    root.mkdir(parents=True, exist_ok=True)
    for video in ("street", "yard"):
        (root / f"{video}.json").write_text(json.dumps(content(video, frames)))
    shots: list[dict[str, Any]] = [
        {"name": f"{n:08x}-19eca24a.jpg", "attributes": {"weather": "rainy"}, "timestamp": 10000}
        for n in range(2)
    ]
    shots[0]["labels"] = [label(1, "car", (1125.5, 133.25, 1156.75, 210.5))]
    (root / "val").mkdir()
    (root / "val" / "det_val.json").write_text(json.dumps(shots))
    return root


def content(video: str, frames: int) -> list[dict[str, Any]]:
    """Frames of a walker, a car that is half hidden and a crowd; the last frame has none."""
    found: list[dict[str, Any]] = []
    for n in range(frames + 1):
        shown = [
            label("00091078", "pedestrian", (10 + n, 20.25, 30.5, 60)),
            label("00091079", "car", (100, 50.5, 160, 80), occluded=True),
            label("00091080", "other person", (300, 50, 360.5, 80), crowd=True),
        ]
        size = {"width": 1280, "height": 720}
        head = {"name": f"{video}-{n + 1:07d}.jpg", "videoName": video, "frameIndex": n, "size": size}
        found.append({**head, "labels": shown if n < frames else []})
    return found


def label(
    mark: str | int, category: str, box: tuple[float, ...], *, occluded: bool = False, crowd: bool = False
) -> dict[str, Any]:
    """A label as the files have it."""
    attributes = {"occluded": occluded, "truncated": False, "crowd": crowd}
    corners = dict(zip(("x1", "y1", "x2", "y2"), box, strict=True))
    return {"id": mark, "category": category, "attributes": attributes, "box2d": corners}
