"""Which score a detector's boxes need where each of them counts in full: the one that tracks best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from roadaware.errors import InputError
from roadaware.metrics.tracking.config import TrackingConfig
from roadaware.metrics.tracking.evaluate import evaluate_tracks
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes

METRICS = ("precision", "recall", "f1", "mota", "hota")
STEPS = tuple(round(0.05 + 0.01 * step, 2) for step in range(76))
"""Floors that are tried: every hundredth from 0.05 to 0.8."""


def score_floors(
    tubes: Predictions,
    scenes: Scenes,
    config: TrackingConfig | None = None,
    floors: Sequence[float] = STEPS,
) -> pl.DataFrame:
    """Tracking metrics of the boxes of paths from each score on.

    Args:
        tubes: linked detections with all their weak boxes.
        scenes: truth that the detector neither learnt from nor is judged on.
        config: how paths are judged; `TrackingConfig.default()` unless given. Its floor has no meaning here.
        floors: scores to try.

    Returns:
        A row for each floor, rising: `min_score` and `METRICS`, fractions, null where undefined.

    Raises:
        InputError: as `evaluate_tracks`.
    """
    config = config or TrackingConfig.default()
    rows = []
    for floor in sorted(floors):
        found = evaluate_tracks(tubes, scenes, replace(config, min_score=floor)).of_group()
        values = dict(zip(found["metric"].to_list(), found["value"].to_list(), strict=True))
        rows.append({"min_score": floor, **{name: values[name] for name in METRICS}})
    return pl.DataFrame(rows, schema=dict.fromkeys(("min_score", *METRICS), pl.Float64))


def best_floor(table: pl.DataFrame) -> float:
    """The floor with the greatest F1 of boxes; the lowest of equals.

    Args:
        table: as `score_floors` gave it.

    Raises:
        InputError: if F1 is nowhere defined, or 0 everywhere.

    >>> best_floor(pl.DataFrame({"min_score": [0.1, 0.2, 0.3], "f1": [0.4, 0.6, 0.6]}))
    0.2
    """
    best = table.filter(pl.col("f1") == pl.col("f1").max())
    if best.is_empty() or not best["f1"][0]:
        raise InputError("no floor tells boxes from weak ones: none meets the truth, or there is none")
    return float(best["min_score"].min())  # type: ignore[arg-type]
