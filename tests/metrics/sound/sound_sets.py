"""Sounds told by hand or by chance, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.scenes.tables import Meta, Predictions, Scenes

Box = tuple[float, float, float, float]
Map = npt.NDArray[np.floating]


@dataclass
class Heard:
    """One sound: its boxes in pixels of an image of `side`, who drew each, and what is predicted."""

    boxes: list[Box]
    map: Map | None
    annotators: list[str] = field(default_factory=list)
    label: str = "siren"
    side: int = 1
    video: str = ""


def tables(heard: Sequence[Heard], first: int = 0) -> tuple[Predictions, Scenes]:
    """Predictions and truth of sounds, numbered by their places from `first` on; a video each unless told."""
    videos = [each.video or f"v{place}" for place, each in enumerate(heard, first)]
    labels = sorted({each.label for each in heard})
    rows = [
        (place, box, annotator)
        for place, each in enumerate(heard)
        for box, annotator in zip(each.boxes, each.annotators or [None] * len(each.boxes), strict=True)
    ]
    corners = np.array([box for _, box, _ in rows], dtype=np.float64).reshape(-1, 4)
    owned = {video: each.side for video, each in zip(videos, heard, strict=True)}
    scenes = Scenes(
        videos=pl.DataFrame(
            {"video": list(owned), "width_px": list(owned.values()), "height_px": list(owned.values())}
        ),
        sounds=pl.DataFrame(
            {
                "sound": range(first, first + len(heard)),
                "video": videos,
                "name": [f"s{place}" for place in range(len(heard))],
                "label": [labels.index(each.label) for each in heard],
            }
        ),
        boxes=pl.DataFrame(
            {
                "box": range(len(rows)),
                "video": pl.Series([videos[place] for place, _, _ in rows], dtype=pl.String),
                "frame": pl.Series([0] * len(rows), dtype=pl.Int64),
                **{c: corners[:, n] for n, c in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))},
                "sound": pl.Series([first + place for place, _, _ in rows], dtype=pl.Int64),
                "annotator": pl.Series([annotator for _, _, annotator in rows], dtype=pl.String),
            }
        ),
        meta=Meta(vocabularies={"sound": tuple(labels)}),
    )
    predicted = [(first + place, each) for place, each in enumerate(heard) if each.map is not None]
    maps = [each.map for _, each in predicted if each.map is not None]
    predictions = Predictions(
        sounds=pl.DataFrame(
            {
                "sound": pl.Series([number for number, _ in predicted], dtype=pl.Int64),
                "video": pl.Series([videos[number - first] for number, _ in predicted], dtype=pl.String),
                "map": pl.Series([each.ravel().tolist() for each in maps], dtype=pl.List(pl.Float64)),
                "map_width": pl.Series([each.shape[1] for each in maps], dtype=pl.Int64),
            }
        )
    )
    return predictions, scenes


def random_heard(seed: int, n: int = 24) -> list[Heard]:
    """Sounds with several boxes of several annotators, and maps of several sizes that sometimes fit them."""
    rng = np.random.default_rng(seed)
    made = []
    for place in range(n):
        side = int(rng.choice([1, 256]))
        boxes, annotators = [], []
        for _ in range(int(rng.integers(1, 5))):
            x, y = rng.integers(-1, 12, size=2) / 16
            w, h = rng.integers(1, 10, size=2) / 16
            boxes.append(tuple(float(v) for v in np.array([x, y, x + w, y + h]) * side))
            annotators.append(str(rng.choice(["ann", "bob", "eve"])))
        shape = [(14, 14), (7, 9), (28, 28), (32, 32), (300, 250)][place % 5]
        values = rng.random(shape).astype(np.float32)
        if rng.random() < 0.6:
            ys, xs = np.mgrid[0 : shape[0], 0 : shape[1]]
            box = np.array(boxes[0]) / side
            inside = (xs / shape[1] >= box[0]) & (xs / shape[1] < box[2])
            inside &= (ys / shape[0] >= box[1]) & (ys / shape[0] < box[3])
            values = (inside + values * 0.3).astype(np.float32)
        silent = rng.random() < 0.1
        label = str(rng.choice(["siren", "shouting", "trumpet"]))
        made.append(Heard(boxes, None if silent else values, annotators, label, side, f"v{place // 2}"))
        made[-1].side = made[place - 1].side if place % 2 else side
        if place % 2 and made[-1].side != side:
            scale = made[-1].side / side
            made[-1].boxes = [tuple(v * scale for v in box) for box in boxes]  # type: ignore[misc]
    return made
