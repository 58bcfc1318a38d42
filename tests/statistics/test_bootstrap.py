"""Resampling of clusters and the percentiles of draws."""

import numpy as np
import pytest

from roadaware.statistics import intervals
from roadaware.statistics.intervals import compute_percentile_interval


def multiplicities(n_clusters, resamples, seed, at_once=10_000):
    return np.concatenate(list(intervals.sample_cluster_counts(n_clusters, resamples, seed, at_once)))


def test_each_draw_takes_as_many_clusters_as_there_are():
    times = multiplicities(50, 200, seed=3)
    assert times.shape == (200, 50)
    assert (times.sum(axis=1) == 50).all()
    assert times.min() == 0


def test_clusters_are_drawn_evenly():
    times = multiplicities(20, 5000, seed=0)
    assert times.mean(axis=0) == pytest.approx(np.ones(20), abs=0.06)
    assert times.var() == pytest.approx(1 - 1 / 20, abs=0.02)


def test_seeds_decide():
    assert (multiplicities(9, 9, seed=1) == multiplicities(9, 9, seed=1)).all()
    assert (multiplicities(9, 9, seed=1) != multiplicities(9, 9, seed=2)).any()


@pytest.mark.parametrize("at_once", [1, 3, 64, 100])
@pytest.mark.parametrize("n_clusters", [1, 2, 7, 256])
def test_resamples_are_those_of_the_seed_however_many_come_at_once(n_clusters, at_once):
    whole = np.random.default_rng(4).integers(0, n_clusters, size=(100, n_clusters))
    expected = [np.bincount(row, minlength=n_clusters) for row in whole]
    np.testing.assert_array_equal(multiplicities(n_clusters, 100, 4, at_once), expected)


def test_no_clusters_and_no_resamples_are_empty():
    assert multiplicities(0, 5, seed=0).shape == (5, 0)
    assert multiplicities(5, 0, seed=0).shape == (0, 5)


def test_the_ends_are_the_percentiles_of_scipy():
    from scipy.stats import scoreatpercentile

    values = np.random.default_rng(0).gamma(2.0, size=777)
    assert compute_percentile_interval(values) == pytest.approx(
        (scoreatpercentile(values, 2.5), scoreatpercentile(values, 97.5)), abs=1e-12
    )
    assert compute_percentile_interval(np.arange(201.0)) == (5.0, 195.0)


def test_undefined_resamples_are_dropped_up_to_one_in_twenty():
    values = np.r_[np.linspace(0, 1, 97), [np.nan] * 3]
    assert compute_percentile_interval(values) == pytest.approx((0.025, 0.975))
    assert compute_percentile_interval(np.r_[np.ones(95), [np.nan] * 5]) == (1.0, 1.0)
    assert compute_percentile_interval(np.r_[np.ones(94), [np.nan] * 6]) is None
    assert compute_percentile_interval(np.array([])) is None
    assert compute_percentile_interval(np.array([np.nan])) is None


def test_no_resamples_come_as_one_empty_block():
    assert [len(block) for block in intervals.sample_cluster_counts(5, 0, 0, at_once=1)] == [0]
    assert [len(block) for block in intervals.sample_cluster_counts(5, 3, 0, at_once=2)] == [2, 1]
