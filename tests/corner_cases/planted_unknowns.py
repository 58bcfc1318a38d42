"""Small images of common things and of strange ones, with what a detector says of both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions, Scenes

WIDTH, HEIGHT = 96, 64
CORNERS = ("x1_px", "y1_px", "x2_px", "y2_px")
COMMON, STRANGE, NOWHERE = (8, 20, 32, 44), (56, 16, 84, 44), (38, 2, 50, 12)


def planted_pictures(folder: Path, count: int, seed: int = 0) -> Scenes:
    """Images under `folder` with a blue square, which is common, and a red grid, which is not."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{seed}-{n}" for n in range(count)]
    for name in names:
        picture = rng.integers(90, 120, (HEIGHT, WIDTH, 3)).astype(np.uint8)
        x1, y1, x2, y2 = COMMON
        picture[y1:y2, x1:x2] = (20, 40, rng.integers(200, 240))
        x1, y1, x2, y2 = STRANGE
        picture[y1:y2:3, x1:x2] = (230, 20, 10)
        picture[y1:y2, x1:x2:3] = (230, 20, 10)
        Image.fromarray(picture).save(folder / f"{name}.png")
    rows = [(name, box, strange) for name in names for box, strange in ((COMMON, False), (STRANGE, True))]
    boxes = pl.DataFrame(
        {
            "box": range(len(rows)),
            "video": [name for name, _, _ in rows],
            "frame": [0] * len(rows),
            **{c: [float(box[k]) for _, box, _ in rows] for k, c in enumerate(CORNERS)},
            "corner_case": [strange for *_, strange in rows],
        }
    )
    labels = pl.DataFrame(
        {
            "box": range(len(rows)),
            "kind": ["corner"] * len(rows),
            "label": [int(strange) for *_, strange in rows],
        }
    )
    return Scenes(
        videos=pl.DataFrame({"video": names}),
        frames=pl.DataFrame({"video": names, "frame": [0] * count, "path": [f"{n}.png" for n in names]}),
        boxes=boxes,
        labels=labels,
        meta=Meta(dataset="planted", vocabularies={"corner": ("car", "debris")}),
    )


def film_of(scenes: Scenes) -> Scenes:
    """The images of a set as the frames of one video, read from a source."""
    names = scenes.videos["video"].cast(pl.String).to_list()
    number = pl.col("video").cast(pl.String).replace_strict(names, list(range(len(names))))
    frames, boxes = (
        table.with_columns(frame=number.cast(pl.Int64), video=pl.lit("film"))
        for table in (scenes.frames, scenes.boxes)
    )
    meta = replace(scenes.meta, source_digest="0f")
    return scenes.with_tables(videos=pl.DataFrame({"video": ["film"]}), frames=frames, boxes=boxes, meta=meta)


def planted_detections(scenes: Scenes, seed: int = 0) -> Predictions:
    """Boxes on every object, two classes: sure of common things, not of strange ones."""
    rng = np.random.default_rng(seed)
    boxes = scenes.boxes
    middle = np.where(boxes["corner_case"].to_numpy(), -2.5, 3.0)
    logits = np.column_stack([rng.normal(middle, 0.7), rng.normal(-4, 0.5, len(boxes))])
    scores = (1 / (1 + np.exp(-logits))).astype(np.float32)
    table = boxes.select("box", "video", "frame", *CORNERS).with_columns(
        score=pl.Series(scores.max(axis=1)), scores=pl.Series(scores, dtype=pl.Array(pl.Float32, 2))
    )
    meta = set_score_layout(Meta(vocabularies={"agent": ("car", "person")}), "boxes", ["agent"])
    return Predictions(boxes=table, meta=meta)


def planted_proposals(scenes: Scenes) -> Predictions:
    """Of every image a proposal on the common thing, one on the strange one, and one on nothing."""
    rows = [(str(name), box) for name in scenes.videos["video"] for box in (COMMON, STRANGE, NOWHERE)]
    table = pl.DataFrame(
        {
            "box": range(len(rows)),
            "video": [name for name, _ in rows],
            "frame": [0] * len(rows),
            **{c: [float(box[k]) for _, box in rows] for k, c in enumerate(CORNERS)},
            "score": [0.8, 0.6, 0.4] * (len(rows) // 3),
        }
    )
    return Predictions(boxes=table)
