"""Tiny sets, one for each field of the configuration, on which its values give different numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions, Scenes

Edges = tuple[float, float, float, float]
LABELS = {"agentness": ("agent",), "agent": ("Ped", "Car"), "action": ("Mov",), "duplex": ("Ped-Mov",)}
META = Meta(
    vocabularies={**LABELS, "av_action": ("Stop", "Move")},
    composites={"duplex": ("agent", "action")},
    notes={"children": {"duplex": [[0, 0]]}},
)
SIZE = (1280, 960)
HERE: Edges = (0, 0, 10, 10)
AWAY: Edges = (500, 500, 510, 510)


@dataclass(frozen=True)
class Prediction:
    """A predicted box: its score of agentness, and those of Ped, Car, Mov and Ped-Mov."""

    edges: Edges
    score: float
    scores: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    frame: int = 0
    interpolated: bool = False


def truth(
    boxes: Sequence[tuple[int, Edges]], n_frames: int, frame_labels: Sequence[Sequence[int]] = ()
) -> Scenes:
    """Boxes of moving pedestrians by frame, the first of each in one tube, in frames that were annotated."""
    labelled = [(k, kind, 0) for k in range(len(boxes)) for kind in ("agent", "action", "duplex")]
    held = [(frame, label) for frame, labels in enumerate(frame_labels) for label in labels]
    frames = [frame for frame, _ in boxes]
    return Scenes(
        videos=_videos(),
        frames=pl.DataFrame({"video": "v", "frame": range(n_frames), "annotated": True}),
        boxes=_linked(_boxes(frames, [edges for _, edges in boxes])),
        labels=pl.DataFrame(labelled, schema=["box", "kind", "label"], orient="row"),
        tubes=pl.DataFrame(
            {"tube": [0], "video": ["v"], "start_frame": [min(frames)], "end_frame": [max(frames) + 1]}
        ),
        frame_labels=pl.DataFrame(
            [("v", frame, "av_action", label) for frame, label in held],
            schema={"video": pl.String, "frame": pl.Int64, "kind": pl.String, "label": pl.Int64},
            orient="row",
        ),
        meta=META,
    )


def predictions(boxes: Sequence[Prediction], frame_scores: Sequence[Sequence[float]] = ()) -> Predictions:
    """Predicted boxes, the first of each frame linked to one tube."""
    dense = np.array([box.scores for box in boxes], dtype=np.float32).reshape(-1, 4)
    frames = [box.frame for box in boxes]
    table = _boxes(frames, [box.edges for box in boxes]).with_columns(
        pl.Series("scores", dense, dtype=pl.Array(pl.Float32, 4)),
        score=pl.Series([box.score for box in boxes], dtype=pl.Float32),
        interpolated=pl.Series([box.interpolated for box in boxes]),
    )
    tube = {"tube": [0], "video": ["v"], "start_frame": [0], "end_frame": [max(frames) + 1], "score": [0.9]}
    scores = pl.Series("scores", [list(row) for row in frame_scores], dtype=pl.Array(pl.Float32, 2))
    meta = set_score_layout(META, "boxes", ["agent", "action", "duplex"])
    return Predictions(
        videos=_videos(),
        boxes=_linked(table),
        tubes=pl.DataFrame(tube),
        frames=pl.DataFrame({"video": ["v"] * len(scores), "frame": range(len(scores))}).with_columns(scores),
        meta=set_score_layout(meta, "frames", ["av_action"]),
    )


def _videos() -> pl.DataFrame:
    return pl.DataFrame({"video": ["v"], "width_px": [SIZE[0]], "height_px": [SIZE[1]]})


def _linked(boxes: pl.DataFrame) -> pl.DataFrame:
    """The first box of each frame in tube 0, the others in none."""
    return boxes.with_columns(tube=pl.when(pl.col("frame").is_first_distinct()).then(0))


def _boxes(frames: Sequence[int], edges: Sequence[Edges]) -> pl.DataFrame:
    names = ("x1_px", "y1_px", "x2_px", "y2_px")
    rows = [(k, "v", frame, *edge) for k, (frame, edge) in enumerate(zip(frames, edges, strict=True))]
    schema = {"box": pl.Int64, "video": pl.String, "frame": pl.Int64, **dict.fromkeys(names, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def shifted(by: float) -> Edges:
    """The box of 10 by 10 pixels, so far to the right."""
    return (by, 0, 10 + by, 10)


def value(scenes: Scenes, predictions: Predictions, metric: str) -> Callable[[DetectionConfig], float]:
    """A metric in per cent, as a function of the configuration."""

    def found(config: DetectionConfig) -> float:
        result = evaluate(predictions, scenes, config, video_thresholds=(0.5,))
        return 100.0 * (result.value(metric) or 0.0)

    return found


BOXES, TUBES, DUPLEX = "frame_map@0.5:agentness", "video_map@0.5:agentness", "frame_map@0.5:duplex"
TWO = truth([(0, HERE), (0, AWAY)], 1)
ONE = truth([(0, HERE)], 1)
RIGHT_WRONG_RIGHT = predictions(
    [Prediction(HERE, 0.9), Prediction((200, 0, 210, 10), 0.8), Prediction(AWAY, 0.7)]
)
CROWD = predictions(
    [
        Prediction(HERE, 0.9),
        *(Prediction((40 * k, 200, 40 * k + 10, 210), 0.5) for k in range(24)),
        Prediction(AWAY, 0.4),
    ]
)
FRAMES = truth([(0, HERE)], 3, [[0], [1], [0]])
PARTS = truth([(0, HERE), (1, HERE), (2, HERE), (3, HERE), (8, HERE), (9, HERE)], 10)
WEAK = predictions([Prediction(HERE, 0.9, (0.2, 0, 0.1, 0.4))])
SILENT = WEAK.with_tables(tubes=WEAK.tubes.with_columns(score=pl.lit(0.0)))
RANKED = predictions([Prediction(AWAY, 0.9, (0.9, 0, 0.1, 0.9)), Prediction(HERE, 0.9, (0.9, 0, 0.9, 0.8))])

CASES: dict[str, tuple[Callable[[DetectionConfig], float], dict[str, Any]]] = {
    "ap": (value(TWO, RIGHT_WRONG_RIGHT, BOXES), {}),
    "av_ap": (
        value(FRAMES, predictions([Prediction(HERE, 0.9)], [[0.9, 0], [0.8, 0], [0.7, 0]]), "av_ap:Stop"),
        {},
    ),
    "empty_classes": (
        value(ONE, predictions([Prediction(HERE, 0.9, (0.9, 0, 0, 0))]), "frame_map@0.5:agent"),
        {},
    ),
    "frame_size_px": (value(ONE, predictions([Prediction(shifted(3.8), 0.9)]), TUBES), {}),
    "numbers": (value(ONE, predictions([Prediction((0, 0, 5, 10), 0.9)]), BOXES), {}),
    "frame_pixel_offset": (
        value(ONE, predictions([Prediction(shifted(3.5), 0.9)]), BOXES),
        {"frame_size_px": None},
    ),
    "video_pixel_offset": (
        value(ONE, predictions([Prediction(shifted(3.5), 0.9)]), TUBES),
        {"frame_size_px": None},
    ),
    "max_per_class": (value(TWO, CROWD, BOXES), {}),
    "min_score": (value(TWO, predictions([Prediction(HERE, 0.9), Prediction(AWAY, 0.02)]), BOXES), {}),
    "min_tube_score": (value(ONE, SILENT, TUBES), {}),
    "min_av_score": (
        value(FRAMES, predictions([Prediction(HERE, 0.9)], [[0.9, 0], [0.8, 0], [0, 0]]), "av_ap:Stop"),
        {},
    ),
    "floor_when_product": (value(ONE, WEAK, DUPLEX), {"composite_scores": "product"}),
    "tube_time": (
        value(PARTS, predictions([Prediction(HERE, 0.9, frame=frame) for frame in range(4)]), TUBES),
        {},
    ),
    "composite_scores": (value(ONE, RANKED, DUPLEX), {}),
    "av_label": (
        value(
            truth([(0, HERE)], 2, [[0, 1], [1]]),
            predictions([Prediction(HERE, 0.9)], [[0.9, 0.8], [0.1, 0.2]]),
            "av_ap:Move",
        ),
        {},
    ),
    "interpolated_boxes": (
        value(ONE, predictions([Prediction(HERE, 0.8), Prediction(AWAY, 0.9, interpolated=True)]), BOXES),
        {},
    ),
}
"""Field to what is measured, and the fields that differ from the published evaluator's besides."""


def worked(field: str, chosen: Any) -> float:
    """The number of a field's case, in per cent, with one of its values."""
    measure, besides = CASES[field]
    return measure(replace(DetectionConfig.reference(), **{**besides, field: chosen}))
