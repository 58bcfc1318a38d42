"""Write a tiny set in the format of KITTI tracking: a file of labels for each drive, and an image."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from PIL import Image

FORMAT = "text"
WARNS = False
MAIN = "training/label_02/0001.txt"
VIDEO = "0001"
BAD_ROW = "upside down"
WIDTH, HEIGHT = 62, 19
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"8.79 7.34 19.43", b"19.43 7.34 8.79", 1),
    "changed": lambda data: data.replace(b"8.79", b"9.25", 1),
    "same_size": lambda data: data.replace(b"8.79", b"8.78", 1),
}
EXCUSED = {
    "test_case_11_hostile_name": "drives are called by four digits; other files are foreign",
}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write two drives with a walker, a car and what nobody cared for.

    Args:
        root: where to; made with its parents.
        frames: of each drive.
    """
    for drive in ("0001", "0003"):
        write_drive(root / "training", drive, frames)
    return root


def write_drive(folder: Path, drive: str, frames: int) -> None:
    """The labels of a drive and its first image."""
    rows = []
    for frame in range(frames):
        x1, x2 = 8.79 + frame, 19.43 + frame
        rows += [
            f"{frame} -1 DontCare -1 -1 -10 50.50 6.25 59.75 10.50 -1000 -1000 -1000 -10 -1 -1 -1",
            f"{frame} 0 Pedestrian 0 0 -1.82 {x1:.2f} 7.34 {x2:.2f} 17.94 1.63 0.48 0.77 3.23 1.59 8.55 -1.47",
            f"{frame} 4 Car 1 2 -1.67 27.39 8.13 30.07 13.39 1.41 1.58 4.36 3.18 2.27 34.38 -1.58",
        ]
    labels = folder / "label_02"
    labels.mkdir(parents=True, exist_ok=True)
    (labels / f"{drive}.txt").write_text("\n".join(rows) + "\n")
    images = folder / "image_02" / drive
    images.mkdir(parents=True, exist_ok=True)
    held = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (90, 100, 110)).save(held, format="PNG")
    (images / "000000.png").write_bytes(held.getvalue())
