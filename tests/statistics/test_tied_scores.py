"""The span of average precision over orders of equal scores, against every order that there is."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from roadaware.statistics.average_precision import AP_RULES, average_precision, compute_tied_span


def every_order(score: np.ndarray, hit: np.ndarray, n_truth: int, rule: str) -> list[float]:
    """Average precision of each order of equal scores."""
    groups = [np.flatnonzero(score == value) for value in sorted(set(score.tolist()), reverse=True)]
    orders = product(*(sorted(set(permutations(hit[group].tolist()))) for group in groups))
    return [average_precision([mark for group in order for mark in group], n_truth, rule) for order in orders]


@pytest.mark.parametrize("rule", AP_RULES)
@pytest.mark.parametrize("seed", range(6))
def test_the_span_is_that_of_all_orders(rule: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, classes = 24, 3
    cls, score = rng.integers(0, classes, n).astype(np.int32), rng.integers(0, 4, n) / 4
    hit = rng.random((n, 2)) < (0.4, 0.2)
    n_truth = np.array([hit[cls == c].sum(axis=0).max() + c for c in range(classes)])
    found = compute_tied_span(cls, score, hit, n_truth, rule)
    assert found is not None
    for c in range(classes):
        for t in range(2):
            values = every_order(score[cls == c], hit[cls == c, t], int(n_truth[c]), rule)
            assert (found.low[c, t], found.high[c, t]) == pytest.approx((min(values), max(values)), abs=1e-6)


def test_no_span_where_all_of_a_score_are_right_or_all_are_wrong() -> None:
    cls, score = np.zeros(4, np.int32), np.array([0.9, 0.9, 0.4, 0.4])
    hit = np.array([[True], [True], [False], [False]])
    assert compute_tied_span(cls, score, hit, np.array([2]), "envelope") is None
    assert compute_tied_span(cls[:0], score[:0], hit[:0], np.array([2]), "envelope") is None


def test_other_classes_and_what_is_passed_over_make_no_tie() -> None:
    cls, score = np.array([0, 1], np.int32), np.array([0.5, 0.5])
    assert compute_tied_span(cls, score, np.array([[True], [False]]), np.array([1, 1]), "raw") is None
    same, hit = np.zeros(2, np.int32), np.array([[True], [False]])
    aside = np.array([[False], [True]])
    assert compute_tied_span(same, score, hit, np.array([1]), "raw", ignored=aside) is None
    found = compute_tied_span(same, score, hit, np.array([1]), "raw")
    assert found is not None
    assert found.predictions == 2


def test_a_tie_at_one_threshold_counts() -> None:
    cls, score = np.zeros(3, np.int32), np.array([0.5, 0.5, 0.25])
    hit = np.array([[True, True], [True, False], [False, False]])
    found = compute_tied_span(cls, score, hit, np.array([2]), "raw")
    assert found is not None
    assert found.predictions == 2
    assert (found.low.tolist(), found.high.tolist()) == ([[1.0, 0.25]], [[1.0, 0.5]])
