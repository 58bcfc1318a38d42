"""Conformal sets: the promise on exchangeable samples, nested by alpha, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roadaware.statistics.conformal import (
    Conformal,
    calibrate_conformal,
    compute_nonconformity,
    compute_set_coverage,
    group_coverage,
)

RULES = [("lac", False), ("aps", False), ("aps", True)]


def samples(n: int, labels: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that are not to be trusted, and labels."""
    truth = rng.integers(labels, size=n)
    odd = rng.normal(size=(n, labels)) + 1.2 * np.eye(labels)[truth]
    said = np.exp(3 * odd)
    return said / said.sum(axis=1, keepdims=True), truth


@pytest.mark.parametrize(("rule", "randomised"), RULES)
@pytest.mark.parametrize("labels", [2, 5])
def test_sets_hold_the_truth_as_often_as_promised(rule: str, randomised: bool, labels: int) -> None:
    rng, alpha, n = np.random.default_rng(labels), 0.2, 49
    shares = []
    for draw in range(150):
        said, truth = samples(n + 100, labels, rng)
        found = calibrate_conformal(said[:n], truth[:n], alpha, rule, randomised=randomised, seed=draw)
        shares.append(compute_set_coverage(found.sets(said[n:], seed=draw + 1000), truth[n:]).coverage)
    error = np.std(shares) / math.sqrt(len(shares))
    assert np.mean(shares) > 1 - alpha - 4 * error
    if rule == "lac" or randomised:  # scores without ties: not much more than promised either
        assert np.mean(shares) < 1 - alpha + 1 / (n + 1) + 4 * error


@pytest.mark.parametrize(("rule", "randomised"), RULES)
def test_a_smaller_alpha_never_takes_a_label_away(rule: str, randomised: bool) -> None:
    said, truth = samples(300, 4, np.random.default_rng(0))
    sets = [
        calibrate_conformal(said, truth, alpha, rule, randomised=randomised).sets(said, seed=1)
        for alpha in (0.5, 0.2, 0.1, 0.01)
    ]
    for larger, smaller in zip(sets[1:], sets[:-1], strict=True):
        assert (larger | ~smaller).all()


def test_scores_by_hand() -> None:
    said = [[0.5, 0.2, 0.3]]
    assert compute_nonconformity(said, "lac")[0] == pytest.approx([0.5, 0.8, 0.7])
    assert compute_nonconformity(said, "aps")[0] == pytest.approx([0.5, 1.0, 0.8])
    assert compute_nonconformity([[0.25]], "lac")[0] == pytest.approx([0.25, 0.75])


def test_the_threshold_counts_the_sample_to_come() -> None:
    said, truth = np.linspace(0.05, 0.95, 19)[:, None], np.ones(19, dtype=int)
    assert calibrate_conformal(said, truth, 0.1).threshold == pytest.approx(0.9)  # the 18th of 19
    few = calibrate_conformal(said[:8], truth[:8], 0.1)
    assert few.threshold == math.inf
    assert few.sets(said).all()


def test_labels_in_another_order_give_the_same_sets_in_that_order() -> None:
    said, truth = samples(200, 3, np.random.default_rng(2))
    order = np.array([2, 0, 1])
    for rule in ("lac", "aps"):
        plain = calibrate_conformal(said, truth, 0.1, rule).sets(said)
        turned = calibrate_conformal(said[:, order], np.argsort(order)[truth], 0.1, rule).sets(said[:, order])
        assert (turned == plain[:, order]).all()


def test_coverage_by_hand_and_by_group() -> None:
    sets = np.array([[True, False], [True, True], [False, False], [False, True]])
    found = compute_set_coverage(sets, [0, 1, 1, 0])
    assert (found.coverage, found.size, found.empty, found.single) == (0.5, 1.0, 0.25, 0.5)
    by = group_coverage(sets, [0, 1, 1, 0], ["near", "near", "far", "far"])
    assert {name: (one.n, one.coverage) for name, one in by.items()} == {"far": (2, 0.0), "near": (2, 1.0)}


@pytest.mark.parametrize(
    ("said", "truth", "alpha"), [([[0.5]], [0], 0.0), ([[1.5]], [0], 0.1), ([[0.5]], [0, 1], 0.1)]
)
def test_what_promises_nothing_is_refused(said: list, truth: list, alpha: float) -> None:
    with pytest.raises(ValueError, match="should"):
        calibrate_conformal(said, truth, alpha)


def test_what_is_not_said_is_ninety_percent_and_not_random() -> None:
    said, truth = samples(60, 3, np.random.default_rng(1))
    found = calibrate_conformal(said, truth, rule="aps")
    assert (found.alpha, found.randomised) == (0.1, False)
    assert found == calibrate_conformal(said, truth, 0.1, "aps", randomised=False)
    assert calibrate_conformal(said, truth, rule="aps", randomised=True) == calibrate_conformal(
        said, truth, rule="aps", randomised=True, seed=0
    )
    assert not Conformal("aps", 0.1, 0.5).randomised
    drawn = Conformal("aps", 0.1, 0.5, randomised=True)
    np.testing.assert_array_equal(drawn.sets(said), drawn.sets(said, seed=0))
    np.testing.assert_array_equal(
        compute_nonconformity(said, "aps", True), compute_nonconformity(said, "aps", True, seed=0)
    )


def test_a_label_whose_score_is_the_threshold_is_in() -> None:
    assert Conformal("lac", 0.5, 0.25).sets([[0.25, 0.75]]).tolist() == [[False, True]]


def test_the_largest_score_is_the_threshold_where_it_is_the_place_asked_for() -> None:
    # Of 3 scores the ceil(4 * 0.75) = 3rd; of 3 with less missing, the 4th, which is none.
    assert calibrate_conformal([[0.5], [0.75], [0.25]], [1, 1, 1], 0.25).threshold == 0.75
    assert calibrate_conformal([[0.5], [0.75], [0.25]], [1, 1, 1], 0.25 - 1e-8).threshold == math.inf


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.5])
def test_a_share_that_may_be_missing_lies_between_none_and_all(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha should lie"):
        calibrate_conformal([[0.5]], [1], alpha)


def test_probabilities_are_refused_beyond_their_ends_and_not_at_them() -> None:
    assert compute_nonconformity([[0.0, 1.0]], "lac").tolist() == [[1.0, 0.0]]
    for wrong in (1.2, -0.2, math.nan):
        with pytest.raises(ValueError, match="should lie in"):
            compute_nonconformity([[0.5, 0.5], [0.5, wrong]], "lac")


def test_coverage_counts_what_decides_and_refuses_other_lengths() -> None:
    sets = np.array([[True, False], [True, True], [False, False], [False, True], [True, False]])
    found = compute_set_coverage(sets, [0, 0, 0, 0, 0])
    assert (found.coverage, found.size, found.empty, found.single) == (0.6, 1.0, 0.2, 0.6)
    for labels in ([0, 1], []):
        with pytest.raises(ValueError, match="n > 0"):
            compute_set_coverage(sets, labels)
    with pytest.raises(ValueError, match="n > 0"):
        compute_set_coverage(sets[:0], [])
