"""Whether claimed spans of sentences are counted as the true ones are."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.analysis.doctor.diagnosis import Diagnosis, suspicious, wrong
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes

_FEW = 5


def spans(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether claimed spans are shifted by a constant, or of another unit.

    Args:
        predictions: with `queries`.
        scenes: with `queries`.
    """
    columns = ["query", "start_frame", "end_frame"]
    if not set(columns) <= set(predictions.queries.columns) & set(scenes.queries.columns):
        return []
    both = predictions.queries.select(columns).join(
        scenes.queries.select(columns), on="query", suffix="_true"
    )
    both = both.drop_nulls()
    if len(both) < _FEW:
        return []
    return _unit(both) or _shift(both)


def _unit(both: pl.DataFrame) -> list[Diagnosis]:
    ratio = both.select((pl.col("end_frame") / pl.col("end_frame_true").clip(1)).median()).item()
    if 0.4 < ratio < 2.5:
        return []
    says = f"Claimed spans end at {ratio:.2g} times the true frame: seconds, or indices of sampled frames?"
    evidence = f"half of {len(both)} sentences end at less than that"
    return wrong("span_unit", says, evidence, "Give frames of the original video.")


def _shift(both: pl.DataFrame) -> list[Diagnosis]:
    """A shift that nearly all spans share."""
    late = np.concatenate([(both[c] - both[f"{c}_true"]).to_numpy() for c in ("start_frame", "end_frame")])
    middle = float(np.median(late))
    if middle == 0 or np.mean(np.abs(late - middle) <= 0.5) < 0.8:
        return []
    says = f"Claimed spans are {abs(middle):g} frames {'late' if middle > 0 else 'early'}."
    evidence = f"{np.mean(late == middle):.0%} of starts and ends differ from the true ones by exactly that"
    return suspicious(
        "span_shift", says, evidence, "Frames count from 0; an end is the frame after the last."
    )
