"""Write a tiny set in YOLO's format: a text file for each image, with tracks, and the names of the classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

FORMAT = "text"
MAIN = "labels/train/street_000001.txt"
VIDEO = "street"
OTHERS = ()
FRAME = 0
"""The main file is this frame of the video alone."""
BAD_ROW = "upside down"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    # A text file that breaks off is seen where a character does.
    "cut": lambda data: data[: len(data) // 2] + b"\xff\xfe\xff",
    "bad_row": lambda data: data.replace(b"0.25 0.5", b"-0.25 0.5", 1),
    "changed": lambda data: data.replace(b"0.25 0.5", b"0.125 0.5", 1),
    "same_size": lambda data: data.replace(b"0.25 0.5", b"0.26 0.5", 1),
}
OPTIONS = {"size": "640x480", "fps": 10}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write two videos, one of each split.

    Args:
        root: where to; made with its parents.
        frames: of each video.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / "data.yaml").write_text("train: images/train\nval: images/val\nnames:\n  0: person\n  1: car\n")
    for split, video in (("train", "street"), ("val", "yard")):
        folder = root / "labels" / split
        folder.mkdir(parents=True, exist_ok=True)
        for frame in range(1, frames + 1):
            lines = [f"0 0.{30 + frame} 0.5 0.25 0.5 3", "1 0.75 0.25 0.5 0.5 4", "1 0.5 0.5 0.0625 0.125"]
            (folder / f"{video}_{frame:06d}.txt").write_text("\n".join(lines) + "\n")
    return root
