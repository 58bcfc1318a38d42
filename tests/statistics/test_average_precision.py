"""Average precision by each rule, against its definition, scikit-learn and hand-worked cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from example_counts import tried
from roadaware.statistics.average_precision import (
    AP_RULES,
    average_precision,
    compute_precision_recall,
    resample_average_precision,
)

HITS = [True, False, True, True, False, False, True]
"""Precision 1, 1/2, 2/3, 3/4, 3/5, 1/2, 4/7; with five truths, recall rises by 1/5 at each hit."""
BY_HAND = {
    "trapezoid": 0.2 * (1 + (1 / 2 + 2 / 3) / 2 + (2 / 3 + 3 / 4) / 2 + (1 / 2 + 4 / 7) / 2),
    "envelope": 0.2 * (1 + 3 / 4 + 3 / 4 + 4 / 7),
    "interp101": (21 * 1 + 20 * 3 / 4 + 20 * 3 / 4 + 20 * 4 / 7) / 101,
    "raw": 0.2 * (1 + 2 / 3 + 3 / 4 + 4 / 7),
    "coco": (21 * 1 + 20 * 3 / 4 + 20 * 3 / 4 + 20 * 4 / 7) / 101,
}


@pytest.mark.parametrize("rule", AP_RULES)
def test_worked_by_hand(rule: str) -> None:
    assert average_precision(HITS, 5, rule) == pytest.approx(BY_HAND[rule], abs=1e-7)


@pytest.mark.parametrize("rule", AP_RULES)
def test_the_ends_of_the_scale(rule: str) -> None:
    assert average_precision([True, True], 2, rule) == pytest.approx(1.0, abs=1e-7)
    assert average_precision([False, False], 2, rule) == 0.0
    assert average_precision([], 2, rule) == 0.0
    assert average_precision([], 0, rule) == 0.0
    assert average_precision([False], 0, rule) == 0.0


def test_a_rule_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="trapezoid, envelope, interp101, raw"):
        average_precision([True], 1, "voc07")


def defined(hits: list[bool], n: int, rule: str) -> float:
    """Each rule as its definition reads."""
    points = compute_precision_recall(np.array(hits, dtype=np.bool_), np.zeros(len(hits)), n)
    steps = np.diff(points.recall, prepend=0.0)
    best = np.maximum.accumulate(points.precision[::-1])[::-1]
    if rule == "trapezoid":
        before = np.concatenate([[1.0], points.precision[:-1]])
        return float((steps * (points.precision + before) / 2).sum())
    if rule == "raw":
        return float((steps * points.precision).sum())
    if rule == "envelope":
        return float((steps * best).sum())
    if rule == "coco":
        places = np.searchsorted(points.recall, np.linspace(0, 1, 101), side="left")
        return float(np.append(best, 0.0)[places].mean())
    found = np.round(points.recall * n)
    reached = [best[found >= np.ceil(k * n / 100)] for k in range(101)]
    return float(np.mean([r[0] if len(r) else 0.0 for r in reached]))


@tried(150)
@given(st.lists(st.booleans(), max_size=40), st.integers(1, 30), st.sampled_from(AP_RULES))
def test_every_rule_is_what_it_says(hits: list[bool], more: int, rule: str) -> None:
    n = sum(hits) + more - 1
    if n:
        assert average_precision(hits, n, rule) == pytest.approx(defined(hits, n, rule), abs=2e-6)


@given(st.lists(st.booleans(), min_size=1, max_size=40).filter(any))
@tried(40)
def test_raw_is_what_scikit_learn_computes_without_ties(hits: list[bool]) -> None:
    expected = average_precision_score(hits, -np.arange(len(hits)))
    assert average_precision(hits, sum(hits), "raw") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rule", AP_RULES)
def test_a_video_drawn_twice_is_two_equal_videos(rule: str) -> None:
    rng = np.random.default_rng(4)
    video = rng.integers(0, 3, 60).astype(np.int32)
    hit = rng.random((60, 2)) < 0.4
    ignored = (rng.random((60, 2)) < 0.2) & ~hit
    truth = np.array([30, 40, 50])
    weights = np.array([[1, 1, 1], [2, 0, 1], [0, 3, 0]], dtype=np.int32)
    starts = np.array([0, len(video)])
    found = resample_average_precision(
        starts, video, hit, (weights @ truth)[:, None], weights, rule, ignored=ignored
    )
    for draw, weight in enumerate(weights):
        rows = np.repeat(np.arange(len(video)), weight[video])
        for t in range(2):
            kept = rows[~ignored[rows, t]]
            expected = average_precision(hit[kept, t], int(weight @ truth), rule)
            assert found[draw, 0, t] == pytest.approx(expected, abs=1e-6)


def test_more_resamples_than_are_walked_at_once() -> None:
    rng = np.random.default_rng(0)
    video, hit = rng.integers(0, 4, 30).astype(np.int32), rng.random((30, 1)) < 0.5
    weights = rng.integers(0, 3, (1500, 4)).astype(np.int32)
    n = (weights @ np.full(4, 10))[:, None]
    whole = resample_average_precision(np.array([0, 30]), video, hit, n, weights, "envelope")
    last = resample_average_precision(np.array([0, 30]), video, hit, n[-1:], weights[-1:], "envelope")
    assert whole.shape == (1500, 1, 1)
    assert whole[-1] == last[0]


@pytest.mark.parametrize(("hits", "n_truth"), [(2, 1), (3, 2), (101, 100)])
def test_the_trapezoids_stop_at_one_where_more_is_right_than_there_is(hits, n_truth):
    assert average_precision([True] * hits, n_truth, "trapezoid") == 1.0


@pytest.mark.parametrize("right_first", [28, 29, 56, 57, 58, 100])
def test_recalls_are_those_of_pycocotools(right_first):
    hit = np.array([True] * right_first + [False] * 3 + [True] * (100 - right_first))
    found = compute_precision_recall(hit, -np.arange(103.0), 100)
    best = np.append(np.maximum.accumulate(found.precision[::-1])[::-1], 0)
    for rule, recalls in (("coco", np.linspace(0, 1, 101)), ("interp101", np.arange(101) / 100)):
        expected = best[np.searchsorted(found.recall, recalls)].mean()
        assert average_precision(hit, 100, rule) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rule", ["interp101", "coco"])
def test_recalls_between_hundredths_by_hand(rule):
    """Of three truths the first reaches the recalls 0 to 0.33, the others those to 0.66 and to 1."""
    expected = (34 + (33 + 34) * 3 / 4) / 101
    assert average_precision([True, False, True, True], 3, rule) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rule", AP_RULES)
def test_a_single_prediction_that_one_threshold_passes_over(rule):
    once, nothing = np.ones((1, 1), np.int32), np.zeros(1, np.int32)
    hit, ignored = np.array([[False, True]]), np.array([[True, False]])
    found = resample_average_precision(
        np.array([0, 1]), nothing, hit, np.array([[1]]), once, rule, ignored=ignored
    )
    assert found.tolist() == [[[0.0, 1.0]]]
