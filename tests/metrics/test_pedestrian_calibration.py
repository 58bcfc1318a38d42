"""Calibration of pedestrian scores: formulas, laws, intervals, and what is undefined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_sets import random_set
from sklearn import metrics as sk

from roadaware.config import from_dict, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.calibration import METRIC_NAMES, CalibrationConfig, evaluate
from roadaware.metrics.scores import SampleScores
from roadaware.statistics.calibration import AdaptiveBins, UniformBins, expected_calibration_error
from roadaware.statistics.intervals import PercentileResamples

REFERENCE, DEFAULT = CalibrationConfig.reference(), CalibrationConfig.default()


def calibrated(n=6000, people=600, seed=0):
    """Scores that are right as often as they say."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 1, n)
    who = rng.integers(0, people, n)
    names = np.array([f"v{k % 40}/p{k}" for k in who])
    videos = np.array([f"v{k % 40}" for k in who])
    return SampleScores(p, rng.random(n) < p, names, videos, rng.integers(30, 91, n))


@pytest.mark.parametrize("config", [REFERENCE, DEFAULT])
def test_two_scores_or_one_are_the_same_model(config):
    one = random_set(3, n=600)
    two = SampleScores(
        np.hstack([1 - one.scores, one.scores]), one.truth, one.pedestrian, one.video, one.tte_frames
    )
    found, again = (evaluate(state, config).values() for state in (one, two))
    assert again.pop("brier") == pytest.approx(2 * found.pop("brier"))
    assert again == pytest.approx(found, nan_ok=True)


@pytest.mark.parametrize("task", ["action", "intention", "risk"])
def test_every_metric_equals_its_plain_formula(task):
    state = random_set(1, task, n=900)
    p = state.scores if state.scores.shape[1] > 1 else np.hstack([1 - state.scores, state.scores])
    confidence, right = p.max(axis=1), p.argmax(axis=1) == state.truth
    hot = np.eye(p.shape[1])[state.truth]
    found = evaluate(state, DEFAULT).values()
    classes = range(p.shape[1])
    expected = {
        "ece": expected_calibration_error(confidence, right, AdaptiveBins.default()),
        "uniform_ece": expected_calibration_error(confidence, right, UniformBins(10)),
        "nll": sk.log_loss(state.truth, p, labels=classes),
        "brier": ((p - hot) ** 2).sum(axis=1).mean() / (2 if task == "action" else 1),
        "accuracy": right.mean(),
        "confidence": confidence.mean(),
        "overconfidence": confidence.mean() - right.mean(),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    assert found["mce"] >= found["ece"]
    assert found["uniform_mce"] >= found["uniform_ece"]
    assert tuple(found) == METRIC_NAMES


@pytest.mark.parametrize("config", [REFERENCE, DEFAULT])
def test_parts_merge_to_the_whole_in_any_order(config):
    state = random_set(5, "risk", n=500)
    cut = np.random.default_rng(0).random(500) < 0.3
    merged = state.take(~cut).merge(state.take(cut))
    assert evaluate(merged, config, resamples=20).summary.equals(
        evaluate(state, config, resamples=20).summary
    )


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["action", "intention"]))
def test_a_draw_is_an_evaluation_of_what_was_drawn(seed, task):
    """The state made of the drawn pedestrians, each as often as drawn, has the drawn metrics."""
    from roadaware.metrics.calibration import CalibrationCore

    state = random_set(seed, task, n=300, people=30, ties=task == "action")
    core = CalibrationCore.of(state, DEFAULT)
    names = core.unit["pedestrian"]
    drawn = core.drawn("pedestrian", PercentileResamples(1), seed)
    picked = names[np.random.default_rng(seed).integers(0, len(names), (1, len(names)))[0]]
    rows = np.concatenate([np.flatnonzero(state.pedestrian == name) for name in picked])
    again = SampleScores(state.scores[rows], state.truth[rows], state.pedestrian[rows])
    expected = evaluate(again, DEFAULT).values()
    del expected["ece_if_calibrated"]
    assert {name: float(values[0]) for name, values in drawn.items()} == pytest.approx(expected, abs=1e-12)


def test_a_calibrated_model_is_found_to_be_one_and_a_boastful_one_is_not():
    state = calibrated()
    found = evaluate(state, DEFAULT, resamples=1000)
    assert found.value("ece") < 0.02
    assert found.value("ece_if_calibrated") == pytest.approx(found.value("ece"), rel=0.7)
    row = found.row("overconfidence")
    assert row["low_pedestrian"] < 0 < row["high_pedestrian"]
    logit = 3 * np.log(state.scores / (1 - state.scores))
    sure = SampleScores(1 / (1 + np.exp(-logit)), state.truth, state.pedestrian, state.video)
    worse = evaluate(sure, DEFAULT, resamples=1000)
    assert worse.row("ece")["low_pedestrian"] > 0.05 > found.row("ece")["high_pedestrian"]
    assert worse.value("overconfidence") > 0.05
    assert worse.value("nll") > found.value("nll")


def test_bins_hold_all_samples_and_intervals_hold_their_accuracy():
    found = evaluate(calibrated(), DEFAULT, resamples=200).instances("bin")
    for _, bins in found.group_by("binning"):
        assert bins["n"].sum() == 6000
        for low, high in (("low_pedestrian", "high_pedestrian"), ("low_video", "high_video")):
            assert ((bins[low] < bins["accuracy"]) & (bins["accuracy"] < bins[high])).all()
    assert ((found["low"] <= found["confidence"]) & (found["confidence"] <= found["high"])).all()


def test_the_interval_of_a_bin_that_holds_all_samples_is_that_of_the_accuracy():
    state = calibrated(n=300, people=40)
    flat = SampleScores(np.full(300, 0.75), state.truth, state.pedestrian, state.video)
    found = evaluate(flat, DEFAULT, resamples=100)
    row = found.row("accuracy")
    for bin_ in found.instances("bin").iter_rows(named=True):
        assert (bin_["n"], bin_["pedestrians"], bin_["accuracy"]) == (300, 40, row["value"])
        for end in ("low_pedestrian", "high_pedestrian", "low_video", "high_video"):
            assert bin_[end] == pytest.approx(row[end])


def test_a_bin_of_two_samples_has_an_interval():
    people = np.arange(6)
    scores = np.array([0.91, 0.92, 0.11, 0.12, 0.13, 0.14])
    state = SampleScores(scores, np.array([1, 0, 0, 1, 0, 0]), people, people)
    bins = evaluate(state, DEFAULT, resamples=100).instances("bin").filter(binning="uniform", n=2)
    assert bins["accuracy"].to_list() == [0.5]
    assert bins["low_pedestrian"].null_count() == 0
    assert bins["low_pedestrian"][0] < 0.5 < bins["high_pedestrian"][0]


def test_groups_are_sets_of_their_own():
    state = random_set(2, n=500)
    tte = np.where(state.tte_frames > 60, "tte=60+", "tte=0-60")
    odd = np.array(["odd" if k % 2 else None for k in range(500)])
    found = evaluate(state, DEFAULT, groupings=[tte, odd])
    assert found.groups == ("tte=0-60", "tte=60+", "odd")
    alone = evaluate(state.take(tte == "tte=60+"), DEFAULT)
    assert found.values("tte=60+") == alone.values()
    assert set(found.instances("bin")["group"].unique()) == {None, *found.groups}
    with pytest.raises(InputError, match="500 labels"):
        evaluate(state, DEFAULT, groupings=[["a"]])


def test_what_is_undefined_says_why():
    nobody = random_set(0).take(np.zeros(200, dtype=bool))
    found = evaluate(nobody, DEFAULT, resamples=5)
    assert not found.summary["valid"].any()
    assert set(found.summary["reason"]) == {"no samples"}
    assert found.instances("bin").is_empty()

    flat = np.concatenate([np.linspace(1, 0.6, 5), np.full(45, 0.5)])
    state = SampleScores(flat, np.ones(50), np.arange(50).astype(str))
    found = evaluate(state, REFERENCE, resamples=5)
    assert found.value("ece") is None
    assert "the published code stops there" in found.row("ece")["reason"]
    assert found.value("uniform_ece") is not None
    assert evaluate(state, DEFAULT).value("ece") is not None
    assert evaluate(state, DEFAULT).row("ece_if_calibrated")["reason"] == "no resamples were asked for"


def test_bins_that_come_to_nothing_as_published_are_noted():
    confidence = np.concatenate([[1, 0.99, 0.98, 0.97, 0.6], np.linspace(0.52, 0.5, 45)])
    state = SampleScores(confidence, np.ones(50), np.arange(50).astype(str))
    found = evaluate(state, REFERENCE, resamples=50)
    assert found.value("ece") < 0
    assert found.row("ece")["low_pedestrian"] is None
    assert "never closed" in found.notes[0]
    assert found.instances("bin")["n"].to_list()[:2] == [1526, -1476]
    assert evaluate(state, DEFAULT).notes == ()


def test_constant_scores_and_impossible_truths_are_noted():
    state = SampleScores(np.full(60, 1.0), np.arange(60) % 2, np.arange(60).astype(str))
    found = evaluate(state, DEFAULT)
    assert found.value("ece") == 0.5
    assert found.value("nll") == pytest.approx(-np.log(1e-12) / 2)
    constant, impossible = found.notes
    assert "all 60 confidences are 1" in constant
    assert "30 samples give their true class a probability below 1e-12" in impossible


def test_scores_that_are_no_probabilities_are_refused():
    state = random_set(0, "intention")
    half = SampleScores(state.scores / 2, state.truth, state.pedestrian)
    with pytest.raises(InputError, match=r"sum to 1 within 0\.001; 200 of 200 rows do not, row 1 first"):
        evaluate(half, DEFAULT)
    with pytest.raises(UsageError, match="resamples"):
        evaluate(state, DEFAULT, resamples=-1)


def test_the_configuration_is_data_and_refuses_nonsense():
    assert from_dict(CalibrationConfig, to_dict(REFERENCE)) == REFERENCE != DEFAULT
    assert CalibrationConfig().uniform_bins == 10  # as most papers have it
    for wrong in ({"borrow": "all"}, {"z": 0.0}, {"uniform_bins": 0}, {"least_probability": 1.0}):
        with pytest.raises(UsageError):
            CalibrationConfig(**wrong)
