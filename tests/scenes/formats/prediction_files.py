"""Tiny scenes, and files of detections and tubes in them as the published code writes such files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.scenes.tables import Meta, Scenes

VOCABULARIES = {
    "agentness": ("agent_ness",),
    "agent": ("Ped", "Car"),
    "action": ("Stop", "Mov", "Xing"),
    "location": ("Jun", "Pav"),
    "duplex": ("Ped-Xing",),
    "event": ("Ped-Xing-Jun", "Car-Stop-Jun"),
    "av_action": ("AV-Stop", "AV-Mov"),
}
NATIVE = {"agentness": "agent_ness", "location": "loc", "event": "triplet"}
CLASSES, AV = 10, 2
VIDEOS = ("drive/one", "two")
FRAMES = 6


def scenes(frames: int = FRAMES) -> Scenes:
    """Two videos without annotations, with the names of all labels."""
    return Scenes(
        videos=pl.DataFrame({"video": VIDEOS, "width_px": 1280, "height_px": 960, "n_frames": frames}),
        meta=Meta(
            dataset="ROAD",
            vocabularies=VOCABULARIES,
            composites={"duplex": ("agent", "action")},
            notes={"native_kinds": NATIVE, "children": {"duplex": [[0, 2]]}, "warnings": []},
        ),
    )


def main(rows: int, seed: int = 0, classes: int = CLASSES) -> npt.NDArray[np.float32]:
    """(rows, 5 + classes) detections."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 300, (rows, 2))
    held = np.hstack([corners, corners + rng.uniform(1, 200, (rows, 2)), rng.random((rows, 1 + classes))])
    return held.astype(np.float32) if rows else np.zeros((0, 200), np.float32)


def ego(seed: int = 0, size: int = AV) -> npt.NDArray[np.float32]:
    """(size,) scores of a frame."""
    return np.random.default_rng(1000 + seed).random(size, dtype=np.float32)


def put(folder: Path, name: str, value: Any, protocol: int = 4) -> Path:
    """Write one pickle; bytes are written as they are."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol=protocol))
    return path


def detections(folder: Path) -> Path:
    """Six frames of two videos with 0 to 3 boxes each."""
    for place, video in enumerate(VIDEOS):
        for frame in range(FRAMES):
            seed = 10 * place + frame
            put(folder, f"{video}/{frame + 1:05d}.pkl", {"ego": ego(seed), "main": main(seed % 4, seed)})
    return folder


def tube(label: int, start: int, end: int, seed: int = 0) -> dict[str, Any]:
    """A tube over the frames [start, end), which the file counts from 1."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 300, (end - start, 2))
    scores = rng.random(end - start, dtype=np.float32)
    return {
        "label_id": label,
        "scores": scores,
        "boxes": np.hstack([corners, corners + 50]).astype(np.float32),
        "score": float(scores.mean()),
        "frames": np.arange(start, end) + 1,
    }


def tubes() -> dict[str, Any]:
    """Tubes of three kinds in two videos."""
    return {
        "agent": {"drive/one": [tube(0, 0, 4), tube(1, 1, 6, 1)], "two": [tube(1, 0, 6, 2)]},
        "loc": {"drive/one": [tube(1, 0, 4)], "two": []},
        "triplet": {"drive/one": [], "two": [tube(1, 2, 5, 3), tube(0, 2, 5, 3)]},
    }
