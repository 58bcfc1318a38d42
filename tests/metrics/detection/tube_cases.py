"""Tubes of one class by hand, and what is found of them."""

from __future__ import annotations

import polars as pl
from random_tubes import KINDS

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.scenes.tables import Meta, Predictions, Scenes

REFERENCE, DEFAULT = DetectionConfig.reference(), DetectionConfig.default()
CONFIGS = {"reference": REFERENCE, "default": DEFAULT}
CLASSES = tuple((kind, label) for kind, labels in KINDS.items() for label in labels)
EDGES = ("x1_px", "y1_px", "x2_px", "y2_px")


def one_class(
    truth: list[list[tuple[int, tuple[float, ...]]]],
    predicted: list[tuple[float, list[tuple[int, tuple[float, ...]]]]],
    *,
    vocabulary: tuple[str, ...] = ("Ped",),
) -> tuple[Scenes, Predictions]:
    """Tubes of the label `Ped` in one video of 682x512 pixels: each track has one derived tube."""
    meta = Meta(vocabularies={"agent": vocabulary})
    videos = pl.DataFrame({"video": ["v"], "width_px": [682], "height_px": [512]})
    parts = [_tables(tubes) for tubes in (truth, [tube for _, tube in predicted])]
    scores = pl.Series("score", [score for score, _ in predicted], dtype=pl.Float64)
    tubes = parts[1]["tubes"].with_columns(score=pl.concat([scores, scores]))
    return (
        Scenes(videos=videos, meta=meta, **parts[0]),
        Predictions(videos=videos, meta=meta, **{**parts[1], "tubes": tubes}),
    )


def _tables(tubes: list[list[tuple[int, tuple[float, ...]]]]) -> dict[str, pl.DataFrame]:
    n = len(tubes)
    rows = [(frame, tube, *box) for tube, held in enumerate(tubes) for frame, box in held]
    edges = dict.fromkeys(EDGES, pl.Float64)
    boxes = pl.DataFrame(rows, schema={"frame": pl.Int64, "tube": pl.Int64, **edges}, orient="row")
    table = {
        "tube": range(2 * n),
        "video": ["v"] * 2 * n,
        "parent": [None] * n + list(range(n)),
        "kind": [None] * n + ["agent"] * n,
        "spans": [None] * n + [[[0, 1000]]] * n,
    }
    schema = {
        "tube": pl.Int64,
        "video": pl.String,
        "parent": pl.Int64,
        "kind": pl.String,
        "spans": pl.List(pl.List(pl.Int64)),
    }
    labels = {"tube": range(n, 2 * n), "kind": ["agent"] * n, "label": [0] * n}
    return {
        "boxes": boxes.with_columns(video=pl.lit("v")).with_row_index("box"),
        "tubes": pl.DataFrame(table, schema=schema),
        "tube_labels": pl.DataFrame(labels, schema={"tube": pl.Int64, "kind": pl.String, "label": pl.Int64}),
    }


WIDE = (0.0, 0.0, 9.0, 9.0)


def run(frames: range | list[int], box: tuple[float, ...] = WIDE) -> list[tuple[int, tuple[float, ...]]]:
    return [(frame, box) for frame in frames]
