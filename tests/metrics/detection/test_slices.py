"""Slices by the size of boxes, where a prediction outside is wrong nowhere."""

from __future__ import annotations

import polars as pl
import pytest

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import Slice, evaluate
from roadaware.scenes.tables import Meta, Predictions, Scenes

AP = "frame_ap@0.5:agentness:agent"
EDGES = ("x1_px", "y1_px", "x2_px", "y2_px")
Edges = tuple[float, float, float, float]
HIGH: Edges = (10, 0, 20, 100)
WIDE: Edges = (300, 300, 400, 310)
LARGE: Edges = (450, 100, 550, 200)


def boxes(*edges: Edges) -> pl.DataFrame:
    return pl.DataFrame(edges, schema=dict.fromkeys(EDGES, pl.Float64), orient="row").select(
        pl.int_range(pl.len()).alias("box"), pl.lit("v").alias("video"), pl.lit(0).alias("frame"), *EDGES
    )


@pytest.mark.parametrize(
    ("size", "n", "value"),
    [
        (None, 2, 2 / 3),  # wrong, right, right: the best precision from either recall on is 2/3
        (pl.col("width_px") < 50, 1, 1.0),
        (pl.col("height_px") < 50, 1, 1.0),
        (pl.col("x1_px") > 200, 1, 0.5),
        (pl.col("y1_px") < 50, 1, 1.0),
        (pl.col("x2_px") < 500, 2, 1.0),
        (pl.col("y2_px") > 150, 1, 0.5),
    ],
)
def test_what_lies_outside_a_slice_is_neither_asked_for_nor_wrong(
    size: pl.Expr | None, n: int, value: float
) -> None:
    meta = Meta(vocabularies={"agentness": ("agent",)})
    videos = pl.DataFrame({"video": ["v"], "width_px": [640], "height_px": [480]})
    scenes = Scenes(
        videos=videos,
        frames=pl.DataFrame({"video": ["v"], "frame": [0], "annotated": [True]}),
        boxes=boxes(HIGH, WIDE),
        meta=meta,
    )
    detections = boxes(LARGE, HIGH, WIDE).with_columns(score=pl.Series([0.9, 0.6, 0.5]))
    predictions = Predictions(videos=videos, boxes=detections, meta=meta)
    config = DetectionConfig(ap="envelope")
    found = evaluate(predictions, scenes, config, slices={"part": Slice(size=size)}).row(AP, "part")
    assert found["n"] == n
    assert found["value"] == pytest.approx(value)
