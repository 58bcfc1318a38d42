"""A made street: pedestrians who walk towards the middle cross, those who walk along do not."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.scenes.tables import Meta, Scenes

ACTIONS = pl.Enum(["stopped", "moving_slow", "moving_fast", "decelerating", "accelerating"])
CROSSING = pl.Enum(["not-crossing", "crossing", "irrelevant"])
FRAMES = 130
SPLITS = {"video_0001": "train", "video_0002": "val", "video_0003": "test"}


def street(people: int = 24, seed: int = 0, *, vehicle: bool = True) -> Scenes:
    """Three videos, one per split, with `people` pedestrians each; every third crosses at frame 110."""
    rng = np.random.default_rng(seed)
    tubes, boxes = [], []
    for video in SPLITS:
        for number in range(people):
            crosses = number % 3 == 0
            tube = len(tubes)
            tubes.append((tube, video, f"0_{video[-1]}_{number:02d}", "crossing" if crosses else None,
                          110 if crosses else None, "annotated" if crosses else "none"))  # fmt: skip
            boxes.append(_track(rng, tube, video, crosses))
    return Scenes(
        videos=pl.DataFrame(
            {
                "video": list(SPLITS),
                "width_px": [1920, 1920, 960],
                "height_px": [1080, 1080, 540],
                "splits": [[f"default/{split}"] for split in SPLITS.values()],
            }
        ),
        frames=_frames(rng) if vehicle else pl.DataFrame(schema={"video": pl.String, "frame": pl.Int64}),
        tubes=pl.DataFrame(
            tubes,
            schema={
                "tube": pl.Int64,
                "video": pl.String,
                "name": pl.String,
                "crossing": CROSSING,
                "event_frame": pl.Int64,
                "event_source": pl.String,
            },
            orient="row",
        ),
        boxes=pl.concat(boxes).with_row_index("box"),
        meta=Meta(dataset="JAAD"),
    )


def _track(rng: np.random.Generator, tube: int, video: str, crosses: bool) -> pl.DataFrame:
    left = bool(rng.random() < 0.5)
    start = rng.uniform(150, 500) if left else rng.uniform(1420, 1770)
    speed = rng.uniform(2, 4) * (1 if left else -1) if crosses else rng.normal(0, 1)
    x = start + speed * np.arange(FRAMES) + rng.normal(0, 1, FRAMES)
    height = rng.uniform(150, 250) if crosses else rng.uniform(60, 200)
    scale = 0.5 if video == "video_0003" else 1.0
    return pl.DataFrame(
        {
            "video": video,
            "frame": np.arange(FRAMES),
            "tube": tube,
            "x1_px": (x - height / 5) * scale,
            "y1_px": np.full(FRAMES, 700 - height) * scale,
            "x2_px": (x + height / 5) * scale,
            "y2_px": np.full(FRAMES, 700.0) * scale,
        }
    )


def _frames(rng: np.random.Generator) -> pl.DataFrame:
    codes = rng.integers(0, 5, (len(SPLITS), FRAMES))
    return pl.concat(
        pl.DataFrame(
            {
                "video": video,
                "frame": np.arange(FRAMES),
                "annotated": True,
                "vehicle_action": pl.Series([ACTIONS.categories[int(k)] for k in row], dtype=ACTIONS),
            }
        )
        for video, row in zip(SPLITS, codes, strict=True)
    )
