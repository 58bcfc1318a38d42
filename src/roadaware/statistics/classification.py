"""Numbers of classifiers, for many resamples at a time: rates of confusion counts, areas under curves from one sort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints

Average = Literal["binary", "macro"]


def confusion_matrix(
    truth: Ints,
    decision: Ints,
    n_classes: int,
    *,
    weight: Floats | None = None,
    cluster: Ints | None = None,
    n_clusters: int = 1,
) -> Floats:
    """Sums of weights by cluster, true class and decided class.

    Counts add up, so the counts of any resample of clusters are a product of multiplicities and this array.

    Args:
        truth: (n,) true classes in [0, n_classes).
        decision: (n,) decided classes in [0, n_classes).
        n_classes: number of classes.
        weight: (n,) weight of each sample; 1 where not given.
        cluster: (n,) cluster of each sample in [0, n_clusters); all in one where not given.
        n_clusters: number of clusters.

    Returns:
        (n_clusters, n_classes, n_classes), rows by truth, columns by decision.

    >>> confusion_matrix(np.array([0, 1, 1]), np.array([0, 1, 0]), 2)[0]
    array([[1., 0.],
           [1., 1.]])
    """
    cell = truth * n_classes + decision
    # One number for each cell of each cluster's matrix, so that one pass counts all.
    if cluster is not None:
        cell = cluster * n_classes**2 + cell
    flat = np.bincount(cell, weights=weight, minlength=n_clusters * n_classes**2)
    return flat.astype(np.float64).reshape(n_clusters, n_classes, n_classes)


def accuracy(counts: Floats) -> Floats:
    """Share of right decisions: trace / total, in [0, 1], higher is better; NaN without samples.

    Args:
        counts: (..., k, k) confusion counts.

    Source: Rasouli and Kotseruba, IV 2024, section III.C.

    >>> float(accuracy(np.array([[3.0, 1.0], [1.0, 3.0]])))
    0.75
    """
    return _ratio(_right(counts).sum(-1), counts.sum((-2, -1)))


def balanced_accuracy(counts: Floats, *, zero_division: float | None = 0.0) -> Floats:
    """Mean recall over classes, in [0, 1], higher is better.

    Args:
        counts: (..., k, k) confusion counts.
        zero_division: a number leaves classes without truth out of the mean, as scikit-learn does;
            None makes the mean undefined (NaN) where a class has no truth.

    Source: Rasouli and Kotseruba, IV 2024, section III.C.

    >>> float(balanced_accuracy(np.array([[8.0, 2.0], [1.0, 1.0]])))
    0.65
    """
    recalls = _ratio(_right(counts), counts.sum(-1))
    return _mean_where(recalls, (counts.sum(-1) > 0) | (zero_division is None))


def precision(counts: Floats, average: Average, *, zero_division: float | None = 0.0) -> Floats:
    """Share of the decisions for a class that are right: TP / (TP + FP), in [0, 1], higher is better.

    Args:
        counts: (..., k, k) confusion counts.
        average: `binary`, the value of class 1, or `macro`, the mean over classes.
        zero_division: value of 0 / 0, with the mean over classes that occur in truth or decisions, as
            scikit-learn does; None leaves 0 / 0 undefined, and with it the mean over all classes.

    Source: Rasouli and Kotseruba, IV 2024, section III.C.

    >>> float(precision(np.array([[8.0, 2.0], [1.0, 1.0]]), "binary").round(3))
    0.333
    """
    return _average_rates(_right(counts), counts.sum(-2), counts, average, zero_division)


def recall(counts: Floats, average: Average, *, zero_division: float | None = 0.0) -> Floats:
    """Share of a class that is found: TP / (TP + FN), in [0, 1], higher is better; arguments as `precision`.

    Source: supplement of Chaotic World, ICCV 2023, section 3.2.

    >>> float(recall(np.array([[8.0, 2.0], [1.0, 1.0]]), "binary"))
    0.5
    """
    return _average_rates(_right(counts), counts.sum(-1), counts, average, zero_division)


def f1(counts: Floats, average: Average, *, zero_division: float | None = 0.0) -> Floats:
    """Harmonic mean of precision and recall: 2 TP / (2 TP + FP + FN), in [0, 1]; arguments as `precision`.

    Source: Rasouli and Kotseruba, IV 2024, section III.C.

    >>> float(f1(np.array([[8.0, 2.0], [1.0, 1.0]]), "binary"))
    0.4
    """
    found = 2 * _right(counts)
    return _average_rates(found, counts.sum(-1) + counts.sum(-2), counts, average, zero_division)


def _right(counts: Floats) -> Floats:
    return np.diagonal(counts, axis1=-2, axis2=-1)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole, NaN (undefined) where whole is 0."""
    undefined = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    ratio: Floats = np.divide(part, whole, out=undefined, where=whole != 0)
    return ratio


def _mean_where(values: Floats, kept: npt.NDArray[np.bool_]) -> Floats:
    """Mean over the last axis of the kept values; NaN where none is kept."""
    return _ratio(np.where(kept, values, 0.0).sum(-1), kept.sum(-1).astype(np.float64))


def _average_rates(
    part: Floats, whole: Floats, counts: Floats, average: Average, zero_division: float | None
) -> Floats:
    rates = _ratio(part, whole)
    if zero_division is not None:
        rates = np.where(whole == 0, zero_division, rates)
    if average == "binary":
        some = counts.sum((-2, -1)) > 0
        positive: Floats = np.where(some, rates[..., 1], np.nan)
        return positive
    return _mean_where(rates, ((counts.sum(-1) + counts.sum(-2)) > 0) | (zero_division is None))


_BLOCK_BYTES = 8_000_000


@dataclass(frozen=True)
class Ranking:
    """Samples in the order of falling score, and the groups of equal score that hold a positive sample.

    Only these groups change the areas, so sums are read off at their ends and nowhere else.

    Args:
        order: (n,) sample at each rank.
        first: (g,) rank of the first sample of each group.
        last: (g,) rank of the last sample of each group.
        positives: (p,) positive samples by falling score.
        group_starts: (g,) place in `positives` where each group starts.
    """

    order: Ints
    first: Ints
    last: Ints
    positives: Ints
    group_starts: Ints

    @classmethod
    def of(cls, positive: npt.NDArray[np.bool_], score: Floats) -> Ranking:
        """Sort once.

        Args:
            positive: (n,) whether the sample is of the class.
            score: (n,) its score, finite; higher means more likely of the class.
        """
        order = np.argsort(-score, kind="stable")
        ordered = score[order]
        # Equal scores share one threshold, so precision is read at the end of each group only.
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else order
        ends = np.r_[starts[1:], len(order)] - 1
        ranks = np.flatnonzero(positive[order])
        group_of = np.searchsorted(starts, ranks, side="right") - 1
        groups, group_starts = np.unique(group_of, return_index=True)
        return cls(order, starts[groups], ends[groups], order[ranks], group_starts.astype(np.int64))

    def areas(self, multiplicity: npt.NDArray[np.int32], cluster: Ints) -> tuple[Floats, Floats]:
        """Average precision and area under the ROC curve of each resample of clusters.

        AP = sum over thresholds of (R_i - R_{i-1}) P_i, without interpolation, and AUC = P(score of a
        positive > score of a negative) + P(equal) / 2; equal scores share one threshold. Both in [0, 1],
        higher is better.

        Args:
            multiplicity: (resamples, clusters) how often each cluster occurs in each resample.
            cluster: (n,) cluster of each sample.

        Returns:
            (resamples,) average precision, NaN without positives; (resamples,) area under the ROC curve, NaN
            without positives or without negatives.

        Source: Rasouli and Kotseruba, IV 2024, section III.C (mAP and AUC).

        >>> ranking = Ranking.of(np.array([False, False, True, True]), np.array([0.1, 0.4, 0.35, 0.8]))
        >>> ap, auc = ranking.areas(np.ones((1, 4), dtype=np.int32), np.arange(4))
        >>> ap.round(4), auc
        (array([0.8333]), array([0.75]))
        """
        resamples = len(multiplicity)
        ap, auc = np.full(resamples, np.nan), np.full(resamples, np.nan)
        if not len(self.first):
            return ap, auc
        step = max(1, _BLOCK_BYTES // (8 * len(self.order)))
        for start in range(0, resamples, step):
            block = slice(start, start + step)
            ap[block], auc[block] = self._block(multiplicity[block], cluster)
        return ap, auc

    def _block(self, multiplicity: npt.NDArray[np.int32], cluster: Ints) -> tuple[Floats, Floats]:
        """`areas` for so few resamples that the running sums stay in the processor's cache."""
        seen = np.cumsum(np.take(multiplicity, cluster[self.order], axis=1), axis=1, dtype=np.int64)
        total = seen[:, -1].astype(np.float64)
        here = np.take(multiplicity, cluster[self.positives], axis=1).astype(np.float64)
        if len(self.group_starts) < len(self.positives):
            here = np.add.reduceat(here, self.group_starts, axis=1)
        found = np.cumsum(here, axis=1)
        above = seen[:, self.last].astype(np.float64)
        before = np.where(self.first > 0, seen[:, self.first - 1], 0)
        positives = found[:, -1]
        negatives = total - positives
        shares = np.divide(found, above, out=np.zeros_like(found), where=above > 0)
        wrong_above = above - found
        wrong_before = before - (found - here)
        # Each positive is above the negatives behind its group, and ties with those within count half.
        pairs = (here * (negatives[:, None] - (wrong_above + wrong_before) / 2)).sum(axis=1)
        return (
            _divide((here * shares).sum(axis=1), positives),
            _divide(pairs, positives * negatives),
        )


def average_precision(positive: npt.NDArray[np.bool_], score: Floats) -> float | None:
    """Average precision of one class, None without positives; see `Ranking.areas`.

    Source: Rasouli and Kotseruba, IV 2024, section III.C (mAP).

    >>> average_precision(np.array([True, False]), np.array([0.9, 0.1]))
    1.0
    """
    return _replace_nan(_single(positive, score)[0])


def roc_auc(positive: npt.NDArray[np.bool_], score: Floats) -> float | None:
    """Area under the ROC curve of one class, None when one side is empty; see `Ranking.areas`.

    Source: Rasouli and Kotseruba, IV 2024, section III.C (AUC).

    >>> roc_auc(np.array([True, False]), np.array([0.5, 0.5]))
    0.5
    """
    return _replace_nan(_single(positive, score)[1])


def _single(positive: npt.NDArray[np.bool_], score: Floats) -> tuple[float, float]:
    once = np.ones((1, 1), dtype=np.int32)
    ap, auc = Ranking.of(positive, score).areas(once, np.zeros(len(score), dtype=np.int64))
    return float(ap[0]), float(auc[0])


def _replace_nan(value: float) -> float | None:
    return None if np.isnan(value) else value


def _divide(part: Floats, whole: Floats) -> Floats:
    ratio: Floats = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return ratio
