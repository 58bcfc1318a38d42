"""Average precision from ranked hits, by any of the rules in use, for many resamples of videos at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats
from roadaware.statistics.average_precision_kernels import accumulate_precision_areas

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
        precision: (n,) share of the predictions so far that are right.
        recall: (n,) share of the truth that is found so far; 0 where there is no truth.
        score: (n,) score of the prediction that gives the point.
        n_truth: how many ground-truth items there are.
    """

    precision: Floats
    recall: Floats
    score: Floats
    n_truth: int


def compute_precision_recall(hit: Bools, score: Floats, n_truth: int) -> PrecisionRecall:
    """Precision and recall after each prediction.

    Args:
        hit: (n,) whether each prediction is right, by falling score.
        score: (n,) the scores.
        n_truth: how many ground-truth items there are.

    >>> compute_precision_recall(np.array([True, False, True]), np.array([0.9, 0.8, 0.7]), 4).recall
    array([0.25, 0.25, 0.5 ])
    """
    found = np.cumsum(hit, dtype=np.float64)
    # 1 at least, as in the published evaluators: without ground truth recall is 0, not NaN.
    return PrecisionRecall(found / np.arange(1, len(hit) + 1), found / max(1, n_truth), score, n_truth)


def average_precision(hit: npt.ArrayLike, n_truth: int, rule: str) -> float:
    """Average precision of one ranking, in [0, 1]; 0 where there is no truth or no prediction.

    Args:
        hit: (n,) whether each prediction is right, by falling score.
        n_truth: how many ground-truth items there are.
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
    return float(resample_average_precision(starts, video, marks, np.array([[n_truth]]), once, rule)[0, 0, 0])


def resample_average_precision(
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

    A prediction of a video that is drawn twice stands twice, one after the other, as does the truth it meets.

    Args:
        starts: (C + 1,) where the predictions of each class start, and n.
        video: (n,) video of each prediction; predictions by class and falling score.
        hit: (n, T) whether each prediction is right.
        n_truth: (resamples, C) how many ground-truth items there are in each draw.
        weights: (resamples, V) how often each video is drawn.
        rule: one of AP_RULES.
        ignored: (n, T) predictions that are passed over.

    Returns:
        (resamples, C, T) in [0, 1]; 0 where there is no truth or no prediction.

    Raises:
        ValueError: if there is no such rule.
    """
    if rule not in AP_RULES:
        raise ValueError(f"no rule '{rule}' of average precision; there are {', '.join(AP_RULES)}")
    resamples, n_classes, thresholds = len(weights), len(starts) - 1, hit.shape[1]
    areas = np.empty((resamples, n_classes, thresholds))
    passed = _bytes(np.zeros((0, thresholds)) if ignored is None else ignored)
    for first in range(0, resamples, _AT_ONCE):
        block = slice(first, first + _AT_ONCE)
        area = np.zeros((n_classes, thresholds, len(weights[block])))
        accumulate_precision_areas(
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
    # Areas out of what the walk summed up; those in float32 may pass 1 in the seventh digit.
    if rule == "trapezoid":
        # The trapezoid's steps of recall were divided in the walk, in 32 bits; the other sums were not.
        return np.minimum(areas, 1.0)
    steps = 101.0 if rule in ("interp101", "coco") else np.maximum(n_truth, 1)[:, :, None]
    return areas / steps


def _bytes(marks: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Truth values as bytes, without a copy where they are."""
    return np.ascontiguousarray(marks, dtype=np.bool_).view(np.uint8)


# How far average precision depends on the order of equal scores, which an unstable sort leaves open.


@dataclass(frozen=True, eq=False)
class TiedSpan:
    """The least and the greatest average precision over all orders of predictions with equal scores.

    Args:
        low: (C, T) wrong predictions before right ones.
        high: (C, T) right predictions before wrong ones.
        predictions: how many predictions share class and score with others of which some are right and some wrong.
    """

    low: Floats
    high: Floats
    predictions: int


def compute_tied_span(
    cls: npt.NDArray[np.int32],
    score: Floats,
    hit: Bools,
    n_truth: npt.NDArray[np.int64],
    rule: str,
    *,
    ignored: Bools | None = None,
) -> TiedSpan | None:
    """The span of average precision over all orders of equal scores; None where their order changes nothing.

    Every rule grows with the precision at each right prediction, and that is greatest for all of them at once
    where the right predictions of each score come first, and least where they come last. So both ends are exact,
    as far as which predictions are right does not depend on the order itself.

    Args:
        cls: (n,) class of each prediction.
        score: (n,) its score.
        hit: (n, T) whether it is right.
        n_truth: (C,) how many ground-truth items there are.
        rule: one of `average_precision.AP_RULES`.
        ignored: (n, T) predictions that are passed over.

    >>> cls, score, hit = np.zeros(2, np.int32), np.ones(2), np.array([[True], [False]])
    >>> found = compute_tied_span(cls, score, hit, np.array([1]), "raw")
    >>> float(found.low[0, 0]), float(found.high[0, 0]), found.predictions
    (0.5, 1.0, 2)
    """
    order = np.lexsort((-score, cls))
    cls, score, hit = cls[order], score[order], hit[order]
    passed = np.zeros_like(hit) if ignored is None else ignored[order]
    new = np.ones(len(cls), dtype=np.bool_)
    new[1:] = (cls[1:] != cls[:-1]) | (score[1:] != score[:-1])
    group = np.cumsum(new) - 1
    counted, right = ~passed, hit & ~passed
    sizes, rights = (np.zeros((int(new.sum()), hit.shape[1]), dtype=np.int64) for _ in range(2))
    np.add.at(sizes, group, counted)
    np.add.at(rights, group, right)
    mixed = (rights > 0) & (rights < sizes)
    if not mixed.any():
        return None
    starts = np.searchsorted(cls, np.arange(len(n_truth) + 1))
    ends = np.empty((2, len(n_truth), hit.shape[1]))
    video, once = np.zeros(len(cls), dtype=np.int32), np.ones((1, 1), dtype=np.int32)
    for t in range(hit.shape[1]):
        # False sorts first, so what `first` marks leads its group: wrong predictions, then right ones.
        for end, first in enumerate((~right[:, t], right[:, t])):
            rank = np.lexsort((~first, group))
            area = resample_average_precision(
                starts, video, hit[rank, t, None], n_truth[None], once, rule, ignored=passed[rank, t, None]
            )
            ends[end, :, t] = area[0, :, 0]
    return TiedSpan(ends[0], ends[1], int(np.isin(group, np.flatnonzero(mixed.any(axis=1))).sum()))
