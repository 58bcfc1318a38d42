"""Average precision from ranked hits, by any of the rules in use, for many resamples of videos at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats

AP_RULES = ("trapezoid", "envelope", "interp101", "raw", "coco")
"""
trapezoid: area under the straight lines between the raw points, from (precision 1, recall 0), in float32.
envelope: area under the precision that is reached at a recall or beyond it (PASCAL VOC from 2010 on).
interp101: the same precision, averaged over the recalls 0, 0.01, ..., 1 (COCO).
raw: sum of precision times step of recall, without interpolation (scikit-learn, where no scores are equal).
coco: as interp101, with the recalls as pycocotools computes them: 57 * 0.01 is larger than 57 / 100.
"""
_AT_ONCE = 1024
"""Draws that are walked together: their sums fit the processor's cache."""


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """The points of a precision-recall curve, by falling score.

    Args:
        precision: (n,) share of the claims so far that are right.
        recall: (n,) share of the truth that is found so far; 0 where there is no truth.
        score: (n,) score of the claim that gives the point.
        n_truth: how much truth there is.
    """

    precision: Floats
    recall: Floats
    score: Floats
    n_truth: int


def precision_recall(hit: Bools, score: Floats, n_truth: int) -> PrecisionRecall:
    """Precision and recall after each claim.

    Args:
        hit: (n,) whether each claim is right, by falling score.
        score: (n,) the scores.
        n_truth: how much truth there is.

    >>> precision_recall(np.array([True, False, True]), np.array([0.9, 0.8, 0.7]), 4).recall
    array([0.25, 0.25, 0.5 ])
    """
    found = np.cumsum(hit, dtype=np.float64)
    return PrecisionRecall(found / np.arange(1, len(hit) + 1), found / max(1, n_truth), score, n_truth)


def average_precision(hit: npt.ArrayLike, n_truth: int, rule: str) -> float:
    """Average precision of one ranking, in [0, 1]; 0 where there is no truth or no claim.

    Args:
        hit: (n,) whether each claim is right, by falling score.
        n_truth: how much truth there is.
        rule: one of AP_RULES.

    Raises:
        ValueError: if there is no such rule.

    Source: trapezoid, envelope: 3D-RetinaNet, the code released with Singh et al., TPAMI 2022; raw:
    supplement of Chaotic World, ICCV 2023, section 3.1; coco: pycocotools.

    >>> hits = [True, False, True]
    >>> {rule: round(average_precision(hits, 2, rule), 4) for rule in AP_RULES}
    {'trapezoid': 0.7917, 'envelope': 0.8333, 'interp101': 0.835, 'raw': 0.8333, 'coco': 0.835}
    """
    marks = np.asarray(hit, dtype=np.bool_)[:, None]
    starts = np.array([0, len(marks)])
    once = np.ones((1, 1), dtype=np.int32)
    video = np.zeros(len(marks), dtype=np.int32)
    return float(drawn_precision(starts, video, marks, np.array([[n_truth]]), once, rule)[0, 0, 0])


def drawn_precision(
    starts: npt.NDArray[np.int64],
    video: npt.NDArray[np.int32],
    hit: Bools,
    n_truth: npt.NDArray[np.int64],
    weights: npt.NDArray[np.int32],
    rule: str,
    *,
    ignored: Bools | None = None,
) -> Floats:
    """Average precision of each class and threshold in each resample of videos.

    A claim of a video that is drawn twice stands twice, one after the other, as does the truth it meets.

    Args:
        starts: (C + 1,) where the claims of each class start, and n.
        video: (n,) video of each claim; claims by class and falling score.
        hit: (n, T) whether each claim is right.
        n_truth: (draws, C) how much truth there is in each draw.
        weights: (draws, V) how often each video is drawn.
        rule: one of AP_RULES.
        ignored: (n, T) claims that are passed over.

    Returns:
        (draws, C, T) in [0, 1]; 0 where there is no truth or no claim.

    Raises:
        ValueError: if there is no such rule.
    """
    from roadaware.statistics.average_precision_kernels import backward_areas

    if rule not in AP_RULES:
        raise ValueError(f"no rule '{rule}' of average precision; there are {', '.join(AP_RULES)}")
    draws, n_classes, thresholds = len(weights), len(starts) - 1, hit.shape[1]
    areas = np.empty((draws, n_classes, thresholds))
    passed = _bytes(np.zeros((0, thresholds)) if ignored is None else ignored)
    for first in range(0, draws, _AT_ONCE):
        block = slice(first, first + _AT_ONCE)
        area = np.zeros((n_classes, thresholds, len(weights[block])))
        backward_areas(
            np.ascontiguousarray(starts, dtype=np.int64),
            np.ascontiguousarray(video, dtype=np.int32),
            _bytes(hit),
            passed,
            np.ascontiguousarray(n_truth[block].T, dtype=np.int64),
            np.ascontiguousarray(weights[block].T, dtype=np.int32),
            AP_RULES.index(rule),
            area,
        )
        areas[block] = area.transpose(2, 0, 1)
    return _divided(areas, n_truth, rule)


def _divided(sums: Floats, n_truth: npt.NDArray[np.int64], rule: str) -> Floats:
    """Areas out of what the walk summed up; those in float32 may pass 1 in the seventh digit."""
    if rule == "trapezoid":
        return np.minimum(sums, 1.0)
    steps = 101.0 if rule in ("interp101", "coco") else np.maximum(n_truth, 1)[:, :, None]
    return sums / steps


def _bytes(marks: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Truth values as bytes, without a copy where they are."""
    return np.ascontiguousarray(marks, dtype=np.bool_).view(np.uint8)
