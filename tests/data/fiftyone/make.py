"""Write a tiny set in FiftyOne's format: two videos whose frames lie in a file each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = "sensor json"
MAIN = "frames/street.json"
VIDEO = "street"
BAD_ROW = "upside down"
MEMBER = "frames"
WARNS = False
NAMES_VIDEOS = True
"""Samples name their videos and their files of frames."""
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"0.2525", b"-0.525", 1),
    "changed": lambda data: data.replace(b"0.2525", b"0.255", 1),
    "same_size": lambda data: data.replace(b"0.2525", b"0.2575", 1),
}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write the set.

    Args:
        root: where to; made with its parents.
        frames: of each video, but for one more in which there is nothing.
    """
    (root / "frames").mkdir(parents=True, exist_ok=True)
    samples = []
    for video in ("street", "yard"):
        (root / "frames" / f"{video}.json").write_text(json.dumps({"frames": content(frames)}))
        samples.append(sample(video, frames))
    (root / "samples.json").write_text(json.dumps({"samples": samples}))
    held = {"name": "tiny", "media_type": "video", "default_classes": ["person", "car"], "info": {}}
    (root / "metadata.json").write_text(json.dumps(held))
    return root


def others_in(root: Path) -> tuple[str, ...]:
    """The files without which no frame has a meaning; no damage of them leaves the videos."""
    return ("metadata.json", "samples.json")


def with_video(root: Path, name: str) -> None:
    """Add a video of that name, with a file of its frames."""
    held = json.loads((root / "samples.json").read_bytes())
    (root / "frames" / "more.json").write_text(json.dumps({"frames": content(3)}))
    held["samples"].append(sample(name, 3) | {"frames": "frames/more.json"})
    (root / "samples.json").write_text(json.dumps(held))


def sample(video: str, frames: int) -> dict[str, Any]:
    """A video as `samples.json` has it."""
    size = {"frame_width": 640, "frame_height": 480, "frame_rate": 5.0, "total_frame_count": frames + 1}
    about = {"_cls": "VideoMetadata", **size}
    return {
        "filepath": f"data/{video}.mp4",
        "tags": ["train"],
        "metadata": about,
        "frames": f"frames/{video}.json",
    }


def content(frames: int) -> dict[str, Any]:
    """Frames of a walker, a car, and something without a class or a track, which is to be ignored; the last is empty."""
    found: dict[str, Any] = {}
    for n in range(1, frames + 2):
        shown = [
            detection((0.1 + n / 100, 0.25, 0.2525, 0.5), label="person", index=7),
            detection((0.5, 0.25, 0.125, 0.0625), label="car", index=2),
            detection((0.75, 0.5, 0.125, 0.25), ignore=True),
        ]
        held = {"_cls": "Detections", "detections": shown if n <= frames else []}
        found[str(n)] = {"frame_number": n, "ground_truth": held}
    return found


def detection(box: tuple[float, ...], **said: Any) -> dict[str, Any]:
    """A box as the files have it."""
    return {"_cls": "Detection", "bounding_box": list(box), **said}
