"""Several fits on the same samples: means of metrics, and intervals that see the same pedestrians."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.errors import InputError, UsageError
from roadaware.metrics.multi_seed import evaluate_fits
from roadaware.metrics.pedestrians import PedestrianConfig, SampleScores, evaluate_samples
from roadaware.protocols.cross_dataset.cells import build_metric_rows
from roadaware.statistics.intervals import PercentileResamples

CONFIG = PedestrianConfig.default("action")


def state(seed: int, people: int = 30) -> SampleScores:
    rng = np.random.default_rng(seed)
    names = np.repeat([f"v{k // 5}/p{k}" for k in range(people)], 4)
    truth = np.repeat(np.arange(people) % 2, 4)
    scores = np.clip(0.5 + 0.3 * (truth - 0.5) + rng.normal(0, 0.2, len(truth)), 0, 1)
    return SampleScores(scores, truth, names, np.array([name.split("/")[0] for name in names]))


def row(table, run: str, metric: str = "auc") -> dict:
    (found,) = [r for r in table.iter_rows(named=True) if (r["run"], r["metric"]) == (run, metric)]
    return found


def test_each_fit_is_judged_as_by_itself_and_the_mean_is_that_of_the_metrics():
    fits = {"a": state(0), "b": state(1), "joined": state(2)}
    table = evaluate_fits(fits, CONFIG, averaged=("a", "b"), resamples=50)
    for name, each in fits.items():
        alone = evaluate_samples(each, CONFIG, resamples=50).row("auc")
        found = row(table, name)
        for key in ("value", "low_pedestrian", "high_pedestrian", "low_video", "high_video"):
            assert found[key] == alone[key]
    mean = row(table, "mean")
    assert mean["value"] == pytest.approx((row(table, "a")["value"] + row(table, "b")["value"]) / 2)
    assert mean["low_pedestrian"] < mean["value"] < mean["high_pedestrian"]


def test_the_mean_of_a_fit_and_itself_is_that_fit():
    table = evaluate_fits({"a": state(0), "b": state(0)}, CONFIG, averaged=("a", "b"), resamples=50)
    one, mean = row(table, "a", "f1"), row(table, "mean", "f1")
    assert {**one, "run": ""} == pytest.approx({**mean, "run": ""})


def test_what_is_undefined_for_one_fit_is_undefined_for_the_mean_and_no_resamples_give_no_intervals():
    table = evaluate_fits({"a": state(0)}, CONFIG, averaged=("a",))
    assert row(table, "mean", "weighted_f1")["value"] is None
    assert row(table, "mean")["low_video"] is None


def test_the_seed_is_0_where_none_is_given():
    fits, drawn = {"a": state(0)}, PercentileResamples(20)
    plain, zero, one = (
        evaluate_fits(fits, CONFIG, resamples=drawn, **s) for s in ({}, {"seed": 0}, {"seed": 1})
    )
    assert plain.equals(zero)
    assert not plain.equals(one)
    assert evaluate_fits(fits, CONFIG)["low_pedestrian"].null_count() == len(plain)


def test_fits_of_other_samples_and_unknown_ones_are_refused():
    with pytest.raises(InputError, match="same samples"):
        evaluate_fits({"a": state(0), "b": state(0, people=20)}, CONFIG)
    with pytest.raises(UsageError, match="'c'"):
        evaluate_fits({"a": state(0)}, CONFIG, averaged=("c",))


def test_a_recall_of_1_counts_those_who_cross_in_each_fit_and_in_the_mean():
    names = np.array([f"v{k}/p{k}" for k in range(30)])
    truth = np.arange(30) < 3
    scores = SampleScores(np.where(truth, 0.9, 0.1), truth.astype(int), names, names)
    table = evaluate_fits({"a": scores, "b": scores}, CONFIG, averaged=("a", "b"), resamples=50)
    for run in ("a", "mean"):
        assert row(table, run, "recall")["low_pedestrian"] == pytest.approx(0.025 ** (1 / 3))
    (found,) = [each for each in build_metric_rows(scores, 50) if each["metric"] == "f1"]
    assert found["low"] == pytest.approx(0.025 ** (1 / 3))
