"""Write a tiny set in the format of the VGG Image Annotator 2: a project and the annotations of another one."""

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
WARNS = False
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b'"width": 20.5', b'"width": -2.5', 1),
    "changed": lambda data: data.replace(b'"width": 20.5', b'"width": 21.25', 1),
    "same_size": lambda data: data.replace(b'"width": 20.5', b'"width": 21.5', 1),
}
OPTIONS = {"fps": 5, "size": "640x480"}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write the set.

    Args:
        root: where to; made with its parents.
        frames: of each video, but for one more in which there is nothing.
    """
    root.mkdir(parents=True, exist_ok=True)
    options = {"person": "", "2": "car"}
    offered = {
        "region": {"class": {"type": "dropdown", "options": options}, "track": {"type": "text"}},
        "file": {},
    }
    project = {
        "_via_settings": {},
        "_via_attributes": offered,
        "_via_img_metadata": content("street", frames),
    }
    (root / "street.json").write_text(json.dumps(project))
    (root / "yard.json").write_text(json.dumps(content("yard", frames)))
    return root


def content(video: str, frames: int) -> dict[str, Any]:
    """Images of a walker, a car and something without a class or a track, which is to be ignored; the last is empty."""
    found: dict[str, Any] = {}
    for n in range(1, frames + 2):
        shown = [
            region((10 + n, 20.25, 20.5, 40), {"class": "person", "track": "7"}),
            region((100, 50.5, 60, 30), {"class": "2" if video == "street" else "car", "track": "van"}),
            region((300, 50, 60.5, 30), {"ignore": "1"}),
        ]
        file = f"{video}_{n:06d}.jpg"
        entry = {
            "filename": file,
            "size": 1000,
            "regions": shown if n <= frames else [],
            "file_attributes": {},
        }
        found[f"{file}1000"] = entry
    return found


def region(box: tuple[float, ...], attributes: dict[str, str]) -> dict[str, Any]:
    """A region as the files have it."""
    shape = {"name": "rect", **dict(zip(("x", "y", "width", "height"), box, strict=True))}
    return {"shape_attributes": shape, "region_attributes": attributes}
