"""Saving and opening tables of the size of a dataset, beside plain Parquet without digests and checks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.measure import call
from roadaware.scenes.store import open_scenes, save
from roadaware.scenes.tables import Scenes

_ROWS = 400_000


def opening() -> tuple[str, str, str]:
    """A set of 400,000 boxes: open with digests and checks, against polars alone."""
    scenes = _boxes()
    with tempfile.TemporaryDirectory() as folder:
        save(scenes, Path(folder) / "set")
        scenes.boxes.write_parquet(Path(folder) / "plain.parquet")
        ours = call(lambda: open_scenes(Path(folder) / "set"))
        plain = call(lambda: pl.read_parquet(Path(folder) / "plain.parquet"))  # noqa: TID251 - what ours is compared with
    got = f"{ours.seconds * 1e3:.0f} ms (Parquet alone, unchecked: {plain.seconds * 1e3:.0f} ms)"
    return "open 400,000 boxes, digest checked", "50 ms", got


def saving() -> tuple[str, str, str]:
    """A set of 400,000 boxes: save atomically with digests, against polars alone."""
    scenes = _boxes()
    with tempfile.TemporaryDirectory() as folder:
        ours = call(lambda: save(scenes, Path(folder) / "set", overwrite=True))
        plain = call(lambda: scenes.boxes.write_parquet(Path(folder) / "plain.parquet"))
    got = f"{ours.seconds * 1e3:.0f} ms (Parquet alone: {plain.seconds * 1e3:.0f} ms)"
    return "save 400,000 boxes, atomic and fsynced", "100 ms", got


def _boxes() -> Scenes:
    """400,000 boxes of ten columns in 400 videos, coordinates as annotators draw them."""
    rng = np.random.default_rng(0)
    row = np.arange(_ROWS)
    corner = rng.integers(0, 900, (_ROWS, 2)).astype(np.float32)
    size = rng.integers(10, 200, (_ROWS, 2)).astype(np.float32)
    names = [f"video_{n:04d}" for n in range(400)]
    video = pl.Series("video", row // 1000).replace_strict(list(range(400)), names, return_dtype=pl.String)
    boxes = pl.DataFrame(
        {
            "box": row,
            "video": video,
            "frame": row % 250,
            "tube": row // 250,
            "x1_px": corner[:, 0],
            "y1_px": corner[:, 1],
            "x2_px": corner[:, 0] + size[:, 0],
            "y2_px": corner[:, 1] + size[:, 1],
            "occlusion": pl.Series(
                rng.choice(["none", "part", "full"], _ROWS), dtype=pl.Enum(["none", "part", "full"])
            ),
            "look": pl.Series(rng.choice(["no", "yes"], _ROWS), dtype=pl.Enum(["no", "yes"])),
        }
    )
    tubes = pl.DataFrame({"tube": np.arange(1600), "video": [names[n // 4] for n in range(1600)]})
    return Scenes(videos=pl.DataFrame({"video": names}), tubes=tubes, boxes=boxes)


BENCHMARKS = (opening, saving)
