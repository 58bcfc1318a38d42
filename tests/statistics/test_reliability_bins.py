"""Reliability bins and the expected calibration error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from roadaware.statistics.calibration import (
    EqualMassBins,
    UniformBins,
    expected_calibration_error,
    reliability,
)


def test_a_worked_case():
    found = reliability([0.05, 0.15, 0.15, 0.95], [0, 0, 1, 1], UniformBins(10))
    assert found.count.tolist() == [1, 2, 1]
    assert found.accuracy.tolist() == [0.0, 0.5, 1.0]
    assert found.confidence == pytest.approx([0.05, 0.15, 0.95])
    assert found.low.tolist() == found.high.tolist() == [0.05, 0.15, 0.95]
    assert found.closed
    ece = expected_calibration_error([0.05, 0.15, 0.15, 0.95], [0, 0, 1, 1], UniformBins(10))
    assert ece == pytest.approx((0.05 + 2 * 0.35 + 0.05) / 4)


def test_bins_equal_scikit_learns_away_from_edges():
    rng = np.random.default_rng(0)
    confidence = rng.random(500)
    correct = rng.random(500) < confidence
    found = reliability(confidence, correct, UniformBins(7))
    accuracy, mean = calibration_curve(correct, confidence, n_bins=7)
    assert found.accuracy == pytest.approx(accuracy, abs=1e-12)
    assert found.confidence == pytest.approx(mean, abs=1e-12)


@given(st.integers(1, 60), st.integers(1, 12))
def test_equal_mass_bins_differ_by_one_sample_at_most(n, bins):
    confidence = np.random.default_rng(n).random(n)
    found = reliability(confidence, np.ones(n), EqualMassBins(bins))
    assert found.count.sum() == n
    assert len(found.count) == min(n, bins)
    assert found.count.max() - found.count.min() <= 1
    assert (np.diff(found.confidence) >= 0).all()


@pytest.mark.parametrize("bins", [UniformBins(5), EqualMassBins(5)])
def test_certain_and_right_is_perfect_and_certain_and_wrong_the_worst(bins):
    assert expected_calibration_error(np.ones(20), np.ones(20), bins) == 0.0
    assert expected_calibration_error(np.ones(20), np.zeros(20), bins) == 1.0


def test_the_ends_of_the_interval_have_a_bin():
    assert reliability([0.0, 1.0], [0, 1]).count.tolist() == [1, 1]
    assert UniformBins(4).assign(np.array([0.0, 0.25, 0.2500001, 1.0])).tolist() == [0, 0, 1, 3]


@pytest.mark.parametrize(
    ("confidence", "correct", "bins", "message"),
    [
        ([], [], UniformBins(), "n > 0"),
        ([0.5], [1, 0], UniformBins(), "should be"),
        ([1.5], [1], UniformBins(), "should lie in"),
        ([np.nan], [1], UniformBins(), "should lie in"),
        ([0.5], [1], UniformBins(0), "at least one bin"),
    ],
)
def test_bad_input_is_refused(confidence, correct, bins, message):
    with pytest.raises(ValueError, match=message):
        reliability(confidence, correct, bins)
