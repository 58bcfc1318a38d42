"""Resampling of clusters and percentile intervals."""

import numpy as np
import pytest

from roadaware.statistics import bootstrap
from roadaware.statistics.bootstrap import Interval, percentile_interval, resamples


def multiplicities(n_clusters, draws, seed, at_once=10_000):
    return np.concatenate(list(bootstrap.multiplicities(n_clusters, draws, seed, at_once)))


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
def test_draws_are_those_of_the_seed_however_many_come_at_once(n_clusters, at_once):
    whole = np.random.default_rng(4).integers(0, n_clusters, size=(100, n_clusters))
    expected = [np.bincount(row, minlength=n_clusters) for row in whole]
    np.testing.assert_array_equal(multiplicities(n_clusters, 100, 4, at_once), expected)


def test_memory_does_not_grow_with_the_draws(monkeypatch):
    unit = np.repeat(np.arange(50), 4)
    (whole,) = resamples(unit, 300, seed=0)
    monkeypatch.setattr(bootstrap, "_BLOCK", 2000)
    parts = list(resamples(unit, 300, seed=0))
    assert [part.shape for part in parts] == [(10, 200)] * 30
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_no_clusters_and_no_draws_are_empty():
    assert multiplicities(0, 5, seed=0).shape == (5, 0)
    assert multiplicities(5, 0, seed=0).shape == (0, 5)


def test_items_of_a_unit_come_and_go_together():
    unit = np.array(["a", "b", "a", "c", "b"])
    (times,) = resamples(unit, 100, seed=0)
    assert (times[:, 0] == times[:, 2]).all()
    assert (times[:, 1] == times[:, 4]).all()
    assert (times[:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert resamples(np.array(["a", "a"]), 10, seed=0) is None


def test_the_interval_covers_the_mean_of_a_known_distribution_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(400):
        values = rng.normal(size=60)
        means = multiplicities(60, 400, seed=trial) @ values / 60
        found = percentile_interval(means)
        covered += found.low <= 0.0 <= found.high
    assert 0.91 <= covered / 400 <= 0.98


def test_undefined_draws_are_dropped_and_counted():
    values = np.r_[np.linspace(0, 1, 97), [np.nan] * 3]
    found = percentile_interval(values)
    assert (found.n_valid, found.n_draws) == (97, 100)
    assert found.low == pytest.approx(0.025)
    assert percentile_interval(np.r_[np.ones(94), [np.nan] * 6]) == Interval(None, None, 94, 100)
    assert percentile_interval(np.array([])) == Interval(None, None, 0, 0)


@pytest.mark.parametrize(
    ("low", "high", "excludes"), [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False), (0.0, 0.1, False)]
)
def test_zero_at_an_end_is_inside(low, high, excludes):
    assert Interval(low, high, 100, 100).excludes_zero is excludes
    assert not Interval(None, None, 0, 100).excludes_zero
