"""Means of average precisions over units that are left out, and paired differences, beside loops from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.statistics.comparison import build_units, estimate, weigh_mean, weigh_ranking


def precision(positive: list[bool], score: list[float]) -> float:
    """Average precision from its definition: the share of positives at or above each threshold where one is found."""
    found = 0.0
    for threshold in sorted(set(score), reverse=True):
        above = [hit for hit, s in zip(positive, score, strict=True) if s >= threshold]
        here = [hit for hit, s in zip(positive, score, strict=True) if s == threshold]
        found += sum(here) / sum(positive) * sum(above) / len(above)
    return found


def test_each_unit_left_out_is_the_metric_without_it() -> None:
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(6), 10)
    truth = {name: rng.random(60) < 0.4 for name in "ab"}
    # Coarse scores: many are equal.
    scores = {name: np.round(rng.random(60) + 0.5 * truth[name], 1) for name in "ab"}
    units = build_units(unit, 1000)
    drawn = weigh_ranking(truth, scores, unit, units)
    for left_out in range(6):
        kept = unit != left_out
        wanted = np.mean([precision(truth[n][kept].tolist(), scores[n][kept].tolist()) for n in "ab"])
        assert drawn.values[left_out] == pytest.approx(wanted)
    whole = np.mean([precision(truth[n].tolist(), scores[n].tolist()) for n in "ab"])
    assert drawn.value == pytest.approx(whole)
    found = estimate(drawn, units)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high


def test_means_are_of_items_not_of_units() -> None:
    unit, values = np.array([0, 0, 0, 1, 2, 2]), np.array([1.0, 0, 0, 1, 1, 1])
    units = build_units(unit, 1000)
    drawn = weigh_mean(values, unit, units)
    assert drawn.value == pytest.approx(4 / 6)
    assert drawn.values.tolist() == pytest.approx([1.0, 3 / 5, 2 / 4])


def test_a_difference_of_the_same_is_nothing_and_one_unit_has_no_interval() -> None:
    unit = np.zeros(4, np.int64)
    assert build_units(unit, 1000) is None
    drawn = weigh_mean(np.arange(4.0), unit, None)
    assert str(estimate(drawn, None)) == "1.500"
    many = np.arange(4)
    units = build_units(many, 1000)
    both = weigh_mean(np.arange(4.0), many, units)
    assert estimate(both - both, units, "difference").value == 0
    assert not estimate(both - both, units, "difference").excludes_zero
    assert estimate(weigh_mean(np.zeros(0), np.zeros(0), None), None).value is None
