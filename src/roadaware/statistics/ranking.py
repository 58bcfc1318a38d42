"""Areas under the precision-recall and ROC curves from one sort, for many resamples at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints

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
            multiplicity: (draws, clusters) how often each cluster occurs in each resample.
            cluster: (n,) cluster of each sample.

        Returns:
            (draws,) average precision, NaN without positives; (draws,) area under the ROC curve, NaN
            without positives or without negatives.

        Source: Rasouli and Kotseruba, IV 2024, section III.C (mAP and AUC).

        >>> ranking = Ranking.of(np.array([False, False, True, True]), np.array([0.1, 0.4, 0.35, 0.8]))
        >>> ap, auc = ranking.areas(np.ones((1, 4), dtype=np.int32), np.arange(4))
        >>> ap.round(4), auc
        (array([0.8333]), array([0.75]))
        """
        draws = len(multiplicity)
        ap, auc = np.full(draws, np.nan), np.full(draws, np.nan)
        if not len(self.first):
            return ap, auc
        step = max(1, _BLOCK_BYTES // (8 * len(self.order)))
        for start in range(0, draws, step):
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
            _ratio((here * shares).sum(axis=1), positives),
            _ratio(pairs, positives * negatives),
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


def _ratio(part: Floats, whole: Floats) -> Floats:
    ratio: Floats = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return ratio
