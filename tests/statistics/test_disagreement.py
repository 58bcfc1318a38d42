"""What passes say together: they agree, or they do not, or they agree in knowing nothing."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.statistics.conformal import (
    compute_quantile_interval,
    entropy,
    expand_binary_probabilities,
    mutual_information,
    standard_deviation,
)


def test_sure_passes_that_differ_disagree_and_unsure_ones_that_agree_do_not() -> None:
    passes = np.array([[[0.0], [0.5], [0.3]], [[1.0], [0.5], [0.3]]])
    assert mutual_information(passes) == pytest.approx([np.log(2), 0, 0])
    assert entropy(passes.mean(axis=0))[:2] == pytest.approx([np.log(2), np.log(2)])
    assert standard_deviation(passes)[:, 0].tolist() == [0.5, 0, 0]


def test_one_probability_means_what_two_do() -> None:
    passes = np.random.default_rng(0).random((5, 8, 1))
    both = expand_binary_probabilities(passes)
    assert both.sum(axis=-1) == pytest.approx(1)
    assert mutual_information(passes) == pytest.approx(mutual_information(both))


def test_disagreement_lies_between_nothing_and_all_doubt() -> None:
    drawn = np.random.default_rng(1).dirichlet(np.ones(4), size=(6, 50))
    found = mutual_information(drawn)
    assert (found >= 0).all()
    assert (found <= entropy(drawn.mean(axis=0)) + 1e-12).all()
    assert mutual_information(drawn[::-1]) == pytest.approx(found)


def test_an_interval_is_of_values_that_were_said_and_weighs_them() -> None:
    passes = np.linspace(0.01, 0.2, 20)[:, None] * np.array([[1.0, -1.0]])
    low, high = compute_quantile_interval(
        passes, np.full(20, 1 / 20), 0.9
    )  # of 20, one lies beyond at each end
    assert low == pytest.approx([0.01, -0.20])
    assert high == pytest.approx([0.19, -0.02])
    low, high = compute_quantile_interval([[0.1], [0.5], [0.9]], [0.02, 0.9, 0.08], 0.9)
    assert (low[0], high[0]) == (0.5, 0.9)
    low, high = compute_quantile_interval([[0.3]], [1.0], 0.9)
    assert (low[0], high[0]) == (0.3, 0.3)


@pytest.mark.parametrize("equal", [True, False])
def test_an_interval_is_what_counting_weight_upwards_gives(equal: bool) -> None:
    rng = np.random.default_rng(4)
    for m in (1, 2, 7, 30):
        passes = rng.integers(0, 9, (m, 6)) / 9
        weight = np.full(m, 1 / m) if equal else rng.dirichlet(np.ones(m))
        expected = []
        for column in passes.T:
            ends, reached = [], 0.0
            for value, share in sorted(zip(column, weight, strict=True)):
                before, reached = reached, reached + share
                ends += [value for end in (0.1, 0.9) if before < end - 1e-9 <= reached]
            expected.append(ends)
        assert np.transpose(compute_quantile_interval(passes, weight, 0.8)).tolist() == expected


def test_no_doubt_is_a_plain_zero() -> None:
    assert not np.signbit(entropy([[1.0]])).any()
