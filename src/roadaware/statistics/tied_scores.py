"""How far average precision depends on the order of equal scores, which an unstable sort leaves open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats
from roadaware.statistics.average_precision import drawn_precision


@dataclass(frozen=True, eq=False)
class TiedSpan:
    """The least and the greatest average precision over all orders of claims with equal scores.

    Args:
        low: (C, T) wrong claims before right ones.
        high: (C, T) right claims before wrong ones.
        claims: how many claims share class and score with others of which some are right and some wrong.
    """

    low: Floats
    high: Floats
    claims: int


def tied_span(
    cls: npt.NDArray[np.int32],
    score: Floats,
    hit: Bools,
    n_truth: npt.NDArray[np.int64],
    rule: str,
    *,
    ignored: Bools | None = None,
) -> TiedSpan | None:
    """The span of average precision over all orders of equal scores; None where their order changes nothing.

    Every rule grows with the precision at each right claim, and that is greatest for all of them at once
    where the right claims of each score come first, and least where they come last. So both ends are exact,
    as far as which claims are right does not depend on the order itself.

    Args:
        cls: (n,) class of each claim.
        score: (n,) its score.
        hit: (n, T) whether it is right.
        n_truth: (C,) how much truth there is.
        rule: one of `average_precision.AP_RULES`.
        ignored: (n, T) claims that are passed over.

    >>> cls, score, hit = np.zeros(2, np.int32), np.ones(2), np.array([[True], [False]])
    >>> found = tied_span(cls, score, hit, np.array([1]), "raw")
    >>> float(found.low[0, 0]), float(found.high[0, 0]), found.claims
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
        for end, first in enumerate((~right[:, t], right[:, t])):
            rank = np.lexsort((~first, group))
            area = drawn_precision(
                starts, video, hit[rank, t, None], n_truth[None], once, rule, ignored=passed[rank, t, None]
            )
            ends[end, :, t] = area[0, :, 0]
    return TiedSpan(ends[0], ends[1], int(np.isin(group, np.flatnonzero(mixed.any(axis=1))).sum()))
