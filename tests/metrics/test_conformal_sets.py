"""Conformal sets hold what they promise where pedestrians are alike, and a plain count says the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sample_sets import random_set

from roadaware.errors import InputError, UsageError
from roadaware.metrics.calibration import Promise, evaluate_coverage
from roadaware.metrics.scores import SampleScores


@pytest.mark.parametrize(("task", "level"), [("action", 0.9), ("intention", 0.8), ("risk", 0.6)])
def test_sets_hold_what_they_promise_whatever_the_scores(task: str, level: float) -> None:
    state = random_set(2, task, n=1200, people=400)
    for found in evaluate_coverage(state, level, halvings=30).values():
        assert found.low <= found.coverage <= found.high
        assert found.coverage == pytest.approx(level, abs=0.03)
        assert 0 <= found.empty + found.single <= 1
        assert found.size >= found.single


def test_sets_of_the_likeliest_labels_are_those_of_a_plain_count() -> None:
    state = random_set(3, "intention", n=90, people=13)
    found = evaluate_coverage(state, 0.75, halvings=12, seed=5)["lac"]
    rng, names = np.random.default_rng(5), np.unique(state.pedestrian)
    halves = [plain_half(state, set(names[rng.permutation(13)[:6]].tolist())) for _ in range(12)]
    covered, size, empty, single = np.array(halves).T
    assert covered.std() > 0
    assert found == Promise(
        coverage=pytest.approx(covered.mean()),
        low=pytest.approx(np.percentile(covered, 2.5)),
        high=pytest.approx(np.percentile(covered, 97.5)),
        size=pytest.approx(size.mean()),
        empty=pytest.approx(empty.mean()),
        single=pytest.approx(single.mean()),
    )


def plain_half(state: SampleScores, chosen: set[str]) -> tuple[float, float, float, float]:
    """Coverage, size, empty and single sets of those not chosen, with a threshold from the chosen."""
    scores, tested = [], []
    for row, truth, who in zip(
        state.scores.tolist(), state.truth.tolist(), state.pedestrian.tolist(), strict=True
    ):
        if who in chosen:
            scores.append(1 - row[truth])
        else:
            tested.append((row, truth))
    threshold = sorted(scores)[math.ceil((len(scores) + 1) * 0.75) - 1]
    sets = [{label for label, p in enumerate(row) if 1 - p <= threshold} for row, _ in tested]
    right = [truth in held for held, (_, truth) in zip(sets, tested, strict=True)]
    size = np.array([len(held) for held in sets])
    return float(np.mean(right)), size.mean(), (size == 0).mean(), (size == 1).mean()


def test_equal_seeds_give_equal_sets_and_nonsense_is_refused() -> None:
    state = random_set(0)
    assert evaluate_coverage(state, 0.9, halvings=3, seed=1) == evaluate_coverage(
        state, 0.9, halvings=3, seed=1
    )
    assert evaluate_coverage(state, 0.9) == evaluate_coverage(state, 0.9, halvings=100, seed=0)
    for level in (0.0, 1.0, 90.0):
        with pytest.raises(UsageError):
            evaluate_coverage(state, level)
    with pytest.raises(UsageError, match="not 0 times"):
        evaluate_coverage(state, 0.9, halvings=0)
    with pytest.raises(InputError, match="found 1"):
        evaluate_coverage(SampleScores(state.scores, state.truth, np.full(len(state), "one")), 0.9)
