"""Paths judged as tracks: on the boxes that the detector itself would take to be there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roadaware.cli import console
from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.cli.event_scoring import Asked
    from roadaware.scenes.predictions import Predictions
    from roadaware.scenes.tables import Scenes


def judge_tracks(
    tubes: Predictions | None, scenes: Scenes, asked: Asked
) -> tuple[dict[str, Any] | None, str]:
    """How well the paths follow the true tracks, JSON-ready, and which of their boxes count, in words.

    Args:
        tubes: with paths; None where there are none.
        scenes: truth.
        asked: resamples, and the least score of a box.
    """
    from roadaware.metrics.tracking.config import TrackingConfig
    from roadaware.metrics.tracking.evaluate import evaluate_tracks

    if tubes is None:
        return None, ""
    floor, words = tracking_floor(tubes, asked.min_score)
    config = replace(TrackingConfig.default(), min_score=floor)
    with console.working("tracking"):
        found = evaluate_tracks(tubes, scenes, config, draws=asked.draws, seed=asked.seed)
    return {
        row["metric"]: {
            "value": row["value"],
            "low": row["low_video"],
            "high": row["high_video"],
            "units": row["units_video"],
            "caution": row["caution_video"],
        }
        for row in found.of_group().iter_rows(named=True)
    }, words


def tracking_floor(tubes: Predictions, asked: float | None) -> tuple[float | None, str]:
    """The score that a box of a path needs to count in tracking metrics, and words on it.

    Args:
        tubes: paths, whose detector may have a threshold.
        asked: the score that was asked for; None for the detector's.

    Raises:
        UsageError: if a score is asked for and the boxes have none.
    """
    from roadaware.scenes.advice import advice_in

    boxes = tubes.boxes
    scored = boxes.is_empty() or ("score" in boxes.columns and boxes["score"].null_count() < len(boxes))
    if asked is not None:
        if not scored:
            raise UsageError("--min-score asks for scores of boxes, and these claims have none")
        return asked, f"boxes at or above {asked:g}, as asked for"
    advice = advice_in(tubes.meta)
    if advice.min_score is not None and scored:
        words = f"boxes at or above {advice.min_score:g}, the detector's threshold; --min-score to change"
        return advice.min_score, words
    why = "the detectors' thresholds differ" if "min_score" in advice.disputed else "no threshold is known"
    return None, f"all boxes, however weak: {why}; --min-score sets one" if scored else ""
