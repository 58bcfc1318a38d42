"""Two tiny videos with boxes that move, as tables and as mp4, to learn from in a test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.io.video import VideoWriter
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Scenes
from roadaware.training.recipe import Recipe
from roadaware.training.recipe_files import parse_recipe

WIDTH, HEIGHT, FRAMES = 64, 64, 12
WORDS = {
    "agent": ("Ped", "Car"),
    "action": ("TurLft", "TurRht", "Stop"),
    "duplex": ("Car-TurLft", "Ped-Stop"),
    "av_action": ("AV-Stop", "AV-TurLft", "AV-TurRht"),
}
CHILDREN = {"duplex": [[1, 0], [0, 2]]}


def made_scenes(videos: int = 2) -> Scenes:
    """A car that turns left above a person who stands; the last two frames are not annotated."""
    rows, labels = [], []
    for video in range(videos):
        for frame in range(FRAMES):
            for tube, (x, y, side) in enumerate(((4 + 3 * frame, 8 + 4 * video, 20), (30, 40, 16))):
                box = len(rows)
                rows.append((box, f"film-{video}", frame, 2 * video + tube, x, y, x + side, y + side))
                named = ((1, 0, 0), (0, 2, 1))[tube]
                labels += [(box, kind, label) for kind, label in zip(WORDS, named, strict=False)]
    names = [f"film-{video}" for video in range(videos)]
    schema = ["box", "video", "frame", "tube", "x1_px", "y1_px", "x2_px", "y2_px"]
    frames = [(name, frame) for name in names for frame in range(FRAMES)]
    return Scenes(
        videos=pl.DataFrame(
            {
                "video": names,
                "width_px": [WIDTH] * videos,
                "height_px": [HEIGHT] * videos,
                "n_frames": [FRAMES] * videos,
                "path": [f"{name}.mp4" for name in names],
            }
        ),
        frames=pl.DataFrame(frames, schema=["video", "frame"], orient="row").with_columns(
            annotated=pl.col("frame") < FRAMES - 2
        ),
        tubes=pl.DataFrame({"tube": range(2 * videos), "video": [name for name in names for _ in (0, 1)]}),
        boxes=pl.DataFrame(rows, schema=schema, orient="row").with_columns(
            pl.col(side).cast(pl.Float32) for side in schema[4:]
        ),
        labels=pl.DataFrame(labels, schema=["box", "kind", "label"], orient="row"),
        frame_labels=pl.DataFrame(
            [(name, frame, "av_action", 1) for name, frame in frames],
            schema=["video", "frame", "kind", "label"],
            orient="row",
        ),
        meta=Meta(
            dataset="made",
            vocabularies=WORDS,
            composites={"duplex": ("agent", "action")},
            notes={"children": CHILDREN},
        ),
    )


def made_folder(folder: Path, scenes: Scenes | None = None) -> Path:
    """Tables and videos in a folder."""
    scenes = scenes or made_scenes()
    save(scenes, folder / "tables")
    (folder / "films").mkdir()
    rng = np.random.default_rng(0)
    for name in scenes.videos["video"].to_list():
        with VideoWriter(folder / "films" / f"{name}.mp4", WIDTH, HEIGHT, 12) as film:
            for frame in range(FRAMES):
                picture = rng.integers(0, 60, (HEIGHT, WIDTH, 3), dtype=np.uint8)
                picture[8:28, 4 + 3 * frame : 24 + 3 * frame] = 220
                picture[40:56, 30:46, 0] = 200
                film.write(picture)
    return folder


def made_recipe(folder: Path, **changes: dict[str, Any]) -> Recipe:
    """A network of a few thousand weights that learns from a `made_folder` for 6 steps."""
    given: dict[str, dict[str, Any]] = {
        "model": {
            "name": "retinanet3d-compact",
            "base": "compact",
            "fields": {
                "stage_widths": [8, 8, 8, 8],
                "stage_blocks": [1, 1, 1, 1],
                "width": 8,
                "head_layers": 1,
                "anchor_sizes_px": [16, 32],
                "anchor_scales": [1],
                "short_side_px": 64,
            },
        },
        "data": {
            "reader": "saved",
            "roots": [str(folder / "tables")],
            "media": str(folder / "films"),
        },
        "clips": {"frames": 4, "stride": 4, "batch": 2, "shift": True},
        "schedule": {"steps": 6, "optimizer": "adamw", "lr": 1e-3, "decay": "cosine", "ema": 0.9},
        "augment": {"flip": 0.5, "colour": 0.5, "zoom": [0.8, 1.2], "shift": 0.1},
        "machine": {"accelerator": "cpu", "threads": 1, "tensorboard": False},
    }
    for part, fields in changes.items():
        given[part] = {**given.get(part, {}), **fields}
    return parse_recipe(given)


def named(recipe: Recipe, name: str) -> Recipe:
    """The recipe under another name."""
    return replace(recipe, name=name)
