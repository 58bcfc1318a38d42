"""Whether claimed spans of sentences are counted as the true ones are."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.analysis.doctor.diagnosis import Diagnosis, note, suspicious, wrong
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
    odd = _odd(both, _lengths(scenes))
    if len(both) < _FEW:
        return odd
    return odd + (_unit(both) or _shift(both, int(scenes.meta.notes.get("first_frame", 0))))


def _lengths(scenes: Scenes) -> pl.DataFrame:
    """`query` and `n_frames` of its video, null where that is not known."""
    videos = scenes.videos.with_columns(pl.col("video").cast(pl.String))
    if "n_frames" not in videos.columns:
        videos = videos.with_columns(n_frames=pl.lit(None, pl.Int64))
    queries = scenes.queries.select("query", pl.col("video").cast(pl.String))
    return queries.join(videos.select("video", "n_frames"), on="video", how="left").select(
        "query", "n_frames"
    )


def _odd(both: pl.DataFrame, lengths: pl.DataFrame) -> list[Diagnosis]:
    """Spans without frames, and spans that leave their video."""
    found: list[Diagnosis] = []
    empty = both.filter(pl.col("end_frame") <= pl.col("start_frame"))
    if len(empty):
        evidence = f"{len(empty)} of {len(both)} end where they start, or before"
        remedy = "An end is the frame after the last."
        found += suspicious("empty_span", "Claimed spans hold no frame.", evidence, remedy)
    placed = both.join(lengths, on="query")
    outside = placed.filter((pl.col("end_frame") > pl.col("n_frames") + 1) | (pl.col("start_frame") < 0))
    if len(outside):
        evidence = f"{len(outside)} of {len(both)}, as far as frame {outside['end_frame'].max()!r}"
        found += suspicious(
            "beyond_video", "Claimed spans leave their video.", evidence, "Frames count from 0."
        )
    return found


def _unit(both: pl.DataFrame) -> list[Diagnosis]:
    ratio = both.select((pl.col("end_frame") / pl.col("end_frame_true").clip(1)).median()).item()
    if 0.4 < ratio < 2.5:
        return []
    says = f"Claimed spans end at {ratio:.2g} times the true frame: seconds, or indices of sampled frames?"
    evidence = f"half of {len(both)} sentences end at less than that"
    return wrong("span_unit", says, evidence, "Give frames of the original video.")


def _shift(both: pl.DataFrame, first_frame: int) -> list[Diagnosis]:
    """A shift that nearly all spans share; the published evaluator takes numbers as the file has them."""
    late = np.concatenate([(both[c] - both[f"{c}_true"]).to_numpy() for c in ("start_frame", "end_frame")])
    middle = float(np.median(late))
    if middle == 0 or np.mean(np.abs(late - middle) <= 0.5) < 0.8:
        return []
    if middle == first_frame:
        says = f"Claimed spans are in the truth file's numbers, which count from {first_frame}."
        remedy = "TubeDETR's evaluator takes them so (--config tubedetr-hcstvg); ours counts from 0."
        return note("file_numbers", says, f"nearly all differ by {middle:g}", remedy)
    says = f"Claimed spans are {abs(middle):g} frames {'late' if middle > 0 else 'early'}."
    evidence = f"{np.mean(late == middle):.0%} of starts and ends differ from the true ones by exactly that"
    return suspicious(
        "span_shift", says, evidence, "Frames count from 0; an end is the frame after the last."
    )
