"""Write a tiny set in HC-STVG's native formats: raw, processed, and the truth of the official evaluation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = "json"
MAIN = "test_proc.json"
VIDEO = "55_vfjywN5CN0Y"
OTHERS = ()
BAD_ROW = "upside down"
MEMBER = "trajectory"
_BOX = re.compile(rb"\[([0-9.]+), ([0-9.]+), ([0-9.]+), ([0-9.]+)\]")
DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: _BOX.sub(rb"[\1, \2, -\3, \4]", data, count=1),
    "changed": lambda data: _BOX.sub(rb"[\1, \2, \g<3>1, \4]", data, count=1),
    "same_size": lambda data: data.replace(b"red coat", b"new coat", 1),
}


def make(root: Path, *, frames: int = 12) -> Path:
    """Write the processed files of two splits: one video for test, two for training."""
    root.mkdir(parents=True, exist_ok=True)
    write(root / MAIN, processed({f"{VIDEO}.mp4": raw(frames, start=2)}))
    rest = {f"{n}_kxGpLqVM7gY.mp4": raw(frames + n, start=n) for n in (1, 2)}
    write(root / "train_proc.json", processed(rest))
    return root


def write(path: Path, content: Any) -> None:
    """Write a file of any of the forms."""
    path.write_text(json.dumps(content), encoding="utf-8")


def with_video(root: Path, name: str) -> None:
    """Add a video of that name to the main file."""
    held = json.loads((root / MAIN).read_bytes())
    (more,) = processed({name: raw(12)})
    write(root / MAIN, [*held, more | {"video_id": len(held)}])


def written_boxes(data: bytes) -> int | None:
    """How many boxes stand in the trajectories; None where the file is not of this form."""
    try:
        return sum(len(each["trajectory"]) for each in json.loads(data))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def with_name(data: bytes, name: str) -> bytes:
    """The file with one sentence's number put for a name."""
    content = json.loads(data)
    content[0]["video_id"] = name
    return json.dumps(content).encode()


def hostile(content: Any, text: str) -> None:
    """Put a text where a sentence, a video, a span and a box are due."""
    first = content[0]
    content += [text, {"video_id": text, "tube_start_frame": text}, {**first, "video_id": [text]}]
    content.append({**first, "video_id": text, "original_video_id": text, "trajectory": text})
    first["trajectory"][1][2] = text
    first["width"] = text


def numbers() -> dict[str, Callable[[Any], None]]:
    """Numbers that a careless reader would make room for."""

    def at(key: str, value: int) -> Callable[[Any], None]:
        return lambda content: content[0].update({key: value})

    huge = (10_000_000, 10**9, 10**18, 10**300)
    keys = ("frame_count", "tube_start_frame", "tube_end_frame", "width", "video_id")
    return {f"{key}_{value}"[:30]: at(key, value) for key in keys for value in huge}


def raw(frames: int, *, start: int = 4) -> dict[str, Any]:
    """A person who walks to the right, from frame `start`, counted from 1, to the frame before the last."""
    boxes = [[100.5 + 3 * n, 40.25, 60, 150.5] for n in range(frames - start)]
    return {
        "bbox": boxes,
        "st_time": start // 2,
        "ed_time": frames // 2,
        "img_num": frames,
        "caption": "The man in the red coat walks to the door.",
        "width": 640,
        "height": 360,
        "st_frame": start,
    }


def raw_2(frames: int, *, start: int = 4) -> dict[str, Any]:
    """The same as version 2 writes it."""
    held = raw(frames, start=start)
    width, height = held.pop("width"), held.pop("height")
    text = held.pop("caption")
    return {**held, "img_size": [height, width], "English": text, "Chinese": "穿红外套的男人走向门口。"}


def processed(files: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What TubeDETR's preprocessing makes of raw annotations of version 1."""
    return [
        {
            "original_video_id": name.removesuffix(".mp4"),
            "frame_count": held["img_num"],
            "width": held["width"],
            "height": held["height"],
            "tube_start_frame": held["st_frame"],
            "tube_end_frame": held["st_frame"] + len(held["bbox"]),
            "tube_start_time": held["st_time"],
            "tube_end_time": held["ed_time"],
            "video_path": f"0/{name}",
            "caption": held["caption"],
            "video_id": number,
            "trajectory": held["bbox"],
        }
        for number, (name, held) in enumerate(files.items())
    ]


def official(files: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The truth of the official evaluation: ends included, boxes by frame as corners."""
    found = {}
    for name, held in files.items():
        start, boxes = held["st_frame"], held["bbox"]
        corners = {str(start + n): [x, y, x + w, y + h] for n, (x, y, w, h) in enumerate(boxes)}
        found[name] = {"st_frame": start, "ed_frame": start + len(boxes) - 1, "bbox": corners}
    return found
