"""Accuracy, precision, recall and F1 as functions of confusion counts, of many counts at a time."""

from __future__ import annotations

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
