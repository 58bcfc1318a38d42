"""Write a tiny set as VoTT exports it: three videos of version 1; and a project of version 2."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FORMAT = "json"
MAIN = "video_0002.mp4.json"
VIDEO = "video_0002.mp4"
OTHERS = ()
BAD_ROW = "upside down"
DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: re.sub(rb'"x2": [0-9.]+', b'"x2": 1.5', data, count=1),
    "changed": lambda data: re.sub(rb'"x2": [0-9.]+', b'"x2": 1270.5', data, count=1),
    "same_size": lambda data: data.replace(b'"y1": 3', b'"y1": 2', 1),
}
TAGS = ["Car", "Ped", "Stop", "MovAway", "Jun"]
_SIZES = {"video_0001.mp4": (1280, 960), VIDEO: (1280, 720), "video_0010.mp4": (1920, 1080)}


def make(root: Path, *, frames: int = 12) -> None:
    """One file for each video, as version 1 writes it."""
    root.mkdir(parents=True, exist_ok=True)
    for name, size in _SIZES.items():
        (root / f"{name}.json").write_text(json.dumps(version_1(frames, size)), encoding="utf-8")


def written_boxes(data: bytes) -> int | None:
    """How many regions stand in the frames; None where the file is not of this form."""
    try:
        frames = json.loads(data)["frames"]
        return sum(len(held) for held in frames.values() if isinstance(held, list))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def version_1(frames: int, size: tuple[int, int]) -> dict[str, Any]:
    """A walker and a car that are tracked, and a light that is drawn anew in each frame."""
    listed: dict[str, list[dict[str, Any]]] = {str(frame): [] for frame in range(1, frames + 1)}
    for frame in range(2, frames + 1):
        listed[str(frame)].append(_region((100 + 3.5 * frame, 300.25), (60, 150), size, 7, ["Ped"], 1))
    for frame in range(1, frames, 2):
        tags = ["Car", "Stop" if frame > frames // 2 else "MovAway", "Jun"]
        listed[str(frame)].append(_region((500, 310.5 + frame), (200, 120.5), size, 12, tags, 2))
    for frame in range(1, 4):
        listed[str(frame)].append(_region((900, 40), (30, 80), size, 100 + frame, [], 3))
    return {
        "frames": listed,
        "framerate": "12",
        "inputTags": ",".join(TAGS),
        "suggestiontype": "track",
        "scd": False,
        "visitedFrames": [int(frame) for frame in listed],
        "tag_colors": ["#f9e90c"] * len(TAGS),
    }


def version_2(frames: int, *, rate: int | None = 4) -> dict[str, Any]:
    """A whole project: frames of one video by their time, and two images."""
    video = {"id": "v0", "name": "drive.mp4", "type": 2, "state": 2, "size": {"width": 1280, "height": 720}}
    assets: dict[str, Any] = {"v0": {"asset": video, "regions": [], "version": "2.2.0"}}
    for n in range(frames):
        time = n / (rate or 4)
        frame = {
            "id": f"f{n}",
            "name": f"drive.mp4#t={time}",
            "type": 3,
            "state": 2 if n else 1,
            "timestamp": time,
            "parent": video,
            "size": video["size"],
        }
        regions = [_drawn(f"r{n}", (10.5 + n, 20, 100, 50.5), ["Car"])] if n else []
        assets[f"f{n}"] = {"asset": frame, "regions": regions, "version": "2.2.0"}
    for n, (width, height) in enumerate([(640, 480), (320, 240)]):
        image = {
            "id": f"i{n}",
            "name": f"image_{n}.jpg",
            "type": 1,
            "state": 2,
            "size": {"width": width, "height": height},
        }
        assets[f"i{n}"] = {
            "asset": image,
            "regions": [_drawn(f"s{n}", (1, 2, 30, 40), ["Ped", "Stop"])],
            "version": "2.2.0",
        }
    project: dict[str, Any] = {"name": "drives", "version": "2.2.0", "assets": assets}
    project["tags"] = [{"name": tag, "color": "#5db300"} for tag in TAGS]
    if rate is not None:
        project["videoSettings"] = {"frameExtractionRate": rate}
    return project


def _region(
    corner: tuple[float, float],
    extent: tuple[float, float],
    size: tuple[int, int],
    number: int,
    tags: list[str],
    name: int,
) -> dict[str, Any]:
    box = {
        "x1": corner[0],
        "y1": corner[1],
        "x2": corner[0] + extent[0],
        "y2": corner[1] + extent[1],
    }
    return {
        **box,
        "width": size[0],
        "height": size[1],
        "box": box,
        "UID": f"{number:08x}",
        "id": number,
        "type": "Rectangle",
        "tags": tags,
        "name": name,
    }


def _drawn(name: str, box: tuple[float, float, float, float], tags: list[str]) -> dict[str, Any]:
    left, top, width, height = box
    corners = [(left, top), (left + width, top), (left + width, top + height), (left, top + height)]
    return {
        "id": name,
        "type": "RECTANGLE",
        "tags": tags,
        "boundingBox": {"left": left, "top": top, "width": width, "height": height},
        "points": [{"x": x, "y": y} for x, y in corners],
    }
