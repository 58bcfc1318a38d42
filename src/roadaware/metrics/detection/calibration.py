"""Calibration of the scores of boxes and tubes: reliability per class and slice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from roadaware.arrays import Bools
from roadaware.errors import UsageError
from roadaware.metrics.detection.matches import Matches
from roadaware.statistics.calibration import (
    Bins,
    Reliability,
    UniformBins,
    expected_calibration_error,
    reliability,
)

_SCHEMA = {
    "group": pl.String,
    "kind": pl.String,
    "label": pl.String,
    "predictions": pl.Int64,
    "mean_score": pl.Float64,
    "precision": pl.Float64,
    "ece": pl.Float64,
    "valid": pl.Boolean,
}


def build_calibration_table(
    matches: Matches,
    threshold: float,
    *,
    min_score: float = 0.05,
    bins: Bins | None = None,
    groups: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """The expected calibration error of each class, of each kind, and of the same within groups of videos.

    A score is right about a prediction when the prediction hits: ECE = sum_m |B_m| / n * |precision(B_m) - score(B_m)|,
    in [0, 1], lower is better. Only predictions count: ground truth that nobody predicted shows in recall, not here.

    Args:
        matches: of boxes or of tubes.
        threshold: smallest overlap of a hit, one of `matches.thresholds`.
        min_score: predictions below are left out, as a detector's long tail of scores near 0 is right about
            itself and would hide every gap.
        bins: how predictions are grouped (default: ten of equal width).
        groups: video to its group; each group has rows of its own.

    Returns:
        columns group (null for all), kind, label (null for the kind as a whole), predictions, mean_score,
        precision, ece (null where there are no predictions) and valid.

    Raises:
        UsageError: if the matches are not at that threshold.

    Source: Guo et al., ICML 2017, eq. 3, with hits for correct answers (Küppers et al., CVPRW 2020).
    """
    column = _column(matches, threshold)
    counted = _mask_counted(matches, column) & (matches.score >= min_score)
    group_of = np.array([(groups or {}).get(video, "") for video in matches.videos], dtype=np.str_)
    names = [None, *sorted({name for name in group_of.tolist() if name})]
    rows = []
    for name in names:
        inside = counted if name is None else counted & (group_of == name)[matches.video]
        for kind in matches.kinds:
            of_kind = np.array([each == kind for each, _ in matches.classes])
            rows.append(_row(matches, column, inside & of_kind[matches.cls], bins, name, kind, None))
            for place in np.flatnonzero(of_kind):
                label = matches.classes[place][1]
                rows.append(_row(matches, column, inside & (matches.cls == place), bins, name, kind, label))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def score_reliability(
    matches: Matches,
    threshold: float,
    kind: str,
    label: str | None = None,
    *,
    min_score: float = 0.05,
    bins: Bins | None = None,
) -> Reliability | None:
    """The points of a reliability diagram; None where there are no predictions.

    Args:
        matches: of boxes or of tubes.
        threshold: smallest overlap of a hit, one of `matches.thresholds`.
        kind: of the labels.
        label: one class (default: all of the kind).
        min_score: predictions below are left out.
        bins: how predictions are grouped (default: ten of equal width).

    Raises:
        UsageError: if there is no such threshold, kind or label.
    """
    column = _column(matches, threshold)
    wanted = np.array([each == kind and label in (None, name) for each, name in matches.classes])
    if not wanted.any():
        raise UsageError(f"no {kind} '{label or ''}' here; there are the kinds {', '.join(matches.kinds)}")
    chosen = _mask_counted(matches, column) & (matches.score >= min_score) & wanted[matches.cls]
    if not chosen.any():
        return None
    return reliability(matches.score[chosen], matches.hit[chosen, column], bins or UniformBins())


def _column(matches: Matches, threshold: float) -> int:
    if threshold not in matches.thresholds:
        known = ", ".join(map(str, matches.thresholds))
        raise UsageError(f"matched at {known or 'no threshold'}, not at {threshold}")
    return matches.thresholds.index(threshold)


def _mask_counted(matches: Matches, column: int) -> Bools:
    if matches.ignored is None:
        return np.ones(len(matches), dtype=np.bool_)
    return np.asarray(~matches.ignored[:, column])


def _row(
    matches: Matches,
    column: int,
    chosen: Bools,
    bins: Bins | None,
    group: str | None,
    kind: str,
    label: str | None,
) -> tuple[object, ...]:
    score, hit = matches.score[chosen], matches.hit[chosen, column]
    if not len(score):
        return (group, kind, label, 0, None, None, None, False)
    error = expected_calibration_error(score, hit, bins or UniformBins())
    return (group, kind, label, len(score), float(score.mean()), float(hit.mean()), error, True)
