"""Write a tiny set in UCF101-24's native format: a pickle as numpy 1 wrote it, five videos, three actions."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.io.pickles import load

FORMAT = "pickle"
MAIN = "pyannot_with_class_names.pkl"
VIDEO = "Diving/v_Diving_g01_c02"
OTHERS = ()
CLASSES = ["Basketball", "Biking", "Diving"]
TRAIN = ["Basketball/v_Basketball_g08_c01", "Diving/v_Diving_g08_c03"]
SOLE = True
BAD_ROW = "lies outside the image"


def make(root: Path, *, frames: int = 12) -> Path:
    """Write the set.

    Args:
        root: where to; made with its parents.
        frames: of each video, at least 4.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / MAIN).write_bytes(written(content(frames)))
    return root


def content(frames: int = 12) -> dict[str, Any]:
    """What the file holds, as numpy has it."""
    videos = {
        VIDEO: [tube(2, 0, frames), tube(2, 1, frames - 1, left=200)],
        "Basketball/v_Basketball_g01_c01": [tube(0, 1, frames // 2), tube(0, frames // 2 + 1, frames)],
        "Biking/v_Biking_g02_c01": [],
        **{name: [tube(CLASSES.index(name.partition("/")[0]), 0, 3)] for name in TRAIN},
    }
    entries = {
        np.str_(name): {"annotations": tubes, "numf": np.uint8(frames), "label": _label(name)}
        for name, tubes in videos.items()
    }
    return {"db": entries, "trainvideos": list(TRAIN), "classes": list(CLASSES)}


def tube(label: int, start: int, end: int, *, left: int = 21) -> dict[str, Any]:
    """A box that moves two pixels to the right in each of the frames [start, end), counted from 1."""
    frame = np.arange(start, end)
    boxes = np.stack([left + 2 * frame, 31 + 0 * frame, 40 + 0 * frame, 60 + frame], axis=1)
    return {
        "label": label,
        "ef": end,
        "boxes": boxes.astype(np.uint8 if left < 128 else np.uint16),
        "sf": start,
    }


def written(value: Any) -> bytes:
    """A pickle as numpy 1 and Python 3 wrote them."""
    return pickle.dumps(value, protocol=3).replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def _label(name: str) -> int:
    return CLASSES.index(name.partition("/")[0])


def with_video(root: Path, name: str) -> None:
    """Add a copy of the main video under another name."""
    path = root / MAIN
    held = load(path.read_bytes(), MAIN)
    held["db"][name] = held["db"][VIDEO]
    path.write_bytes(written(held))


def _first_box(x: int, y: int, width: int, height: int) -> Callable[[bytes], bytes]:
    """A change of the main video's first box."""
    return lambda data: data.replace(bytes([21, 31, 40, 60]), bytes([x, y, width, height]), 1)


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": _first_box(250, 250, 250, 250),
    "changed": _first_box(9, 9, 9, 9),
    "same_size": _first_box(9, 9, 9, 9),
}
