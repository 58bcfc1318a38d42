"""Write a tiny set in the format of ActivityNet: videos with segments, two of them in one file, and one without any."""

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
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"30.5]", b"0.25]", 1),
    "changed": lambda data: data.replace(b"30.5]", b"31.25]", 1),
    "same_size": lambda data: data.replace(b"30.5]", b"31.5]", 1),
}
OPTIONS = {"fps": 10}
EXCUSED = {"test_strict_refuses_a_bad_row": "it has segments and no boxes, so that a segment is refused"}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write the set.

    Args:
        root: where to; made with its parents.
        frames: segments of each video.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / MAIN).write_text(json.dumps(content({VIDEO: frames})))
    (root / "yard.json").write_text(json.dumps(content({"yard": frames, "yard 2": 1})))
    (root / "empty.json").write_text(json.dumps(content({"empty": 0})))
    return root


def content(videos: dict[str, int]) -> dict[str, Any]:
    """Videos with as many segments."""
    listed = {
        video: {
            "duration": 82.73,
            "subset": "training",
            "resolution": "320x240",
            "url": f"https://example.org/{video}",
            "annotations": [
                {"segment": [n + 0.75, 30.5], "label": ("crossing", "waiting")[n % 2]} for n in range(count)
            ],
        }
        for video, count in videos.items()
    }
    return {"version": "VERSION 1.3", "taxonomy": [], "database": listed}
