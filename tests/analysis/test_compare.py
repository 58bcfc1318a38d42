"""Paired comparison of two models on the same samples."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.compare import compare
from roadaware.errors import InputError, UsageError
from roadaware.metrics.pedestrians import PedestrianConfig, SampleScores, build_core
from roadaware.statistics.intervals import PercentileResamples, Units

CONFIG = PedestrianConfig.default("action")


def models(seed=0, gap=0.0, n_people=120, samples=4):
    """Two noisy models of one set, the first less noisy by `gap`."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), samples)
    truth = rng.integers(0, 2, n_people)[person]
    made = []
    for noise in (0.45 - gap, 0.45):
        scores = np.clip(truth + noise * rng.normal(size=len(truth)), 0, 1)
        made.append(
            SampleScores(
                scores,
                truth,
                [f"p{p}" for p in person],
                [f"v{p % 30}" for p in person],
                np.tile([90, 70, 50, 30], n_people),
            )
        )
    return made


def test_the_better_model_is_called_better_in_every_direction():
    good, poor = models(gap=0.2)
    found = compare(good, poor, CONFIG, resamples=300)
    assert found.verdict("auc") == "better"
    assert found.verdict("confidence_delta_max") == "better"
    assert compare(poor, good, CONFIG, resamples=300).verdict("auc") == "worse"
    assert compare(poor, good, CONFIG, resamples=300).verdict("confidence_delta_max") == "worse"


def test_swapping_the_models_turns_the_sign_of_everything():
    a, b = models(gap=0.03)
    there, back = compare(a, b, CONFIG, resamples=200).table, compare(b, a, CONFIG, resamples=200).table
    for unit in ("pedestrian", "video"):
        assert there[f"low_{unit}"].to_list() == pytest.approx((-back[f"high_{unit}"]).to_list(), abs=1e-12)
    assert (there["difference"] == -back["difference"]).all()


def test_a_model_is_not_different_from_itself():
    a, _ = models()
    table = compare(a, a, CONFIG, resamples=50).table
    assert set(table["verdict"]) == {"not different"}
    assert table["difference"].abs().max() == 0.0


@pytest.mark.slow
def test_equally_good_models_are_rarely_called_different():
    called = [compare(*models(seed), CONFIG, resamples=200).verdict("auc") for seed in range(40)]
    assert called.count("not different") >= 34


def test_intervals_come_from_shared_resamples():
    a, b = models(gap=0.05)
    found = compare(a, b, CONFIG, resamples=PercentileResamples(100), seed=3)
    one, two = build_core(a, CONFIG), build_core(b, CONFIG)
    for unit in ("pedestrian", "video"):
        names = one.people.name if unit == "pedestrian" else one.people.video
        (times,) = Units.of(names, PercentileResamples(100), 3).weights()
        differences = one.values(times)["f1"] - two.values(times)["f1"]
        row = found.table.filter(found.table["metric"] == "f1").row(0, named=True)
        assert row[f"low_{unit}"] == np.percentile(differences, 2.5)
        assert row[f"high_{unit}"] == np.percentile(differences, 97.5)


def test_by_default_intervals_come_from_leaving_both_models_without_one_unit():
    a, b = models(gap=0.05)
    row = compare(a, b, CONFIG, resamples=1000).table.row(by_predicate=pl.col("metric") == "f1", named=True)
    one, two = build_core(a, CONFIG), build_core(b, CONFIG)
    units = one.units("video", 1000, 0)
    (times,) = units.weights()
    assert (times.sum(axis=0) == len(times) - 1).all()
    differences = one.values(times)["f1"] - two.values(times)["f1"]
    expected = units.interval(row["difference"], differences, "difference")
    assert (row["low_video"], row["high_video"]) == (expected.low, expected.high)
    assert row["caution_video"] == expected.caution


def test_what_is_hard_for_both_models_cancels():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    difficulty = rng.normal(size=300) * 0.5
    made = [
        SampleScores(np.clip(truth + difficulty + 0.05 * rng.normal(size=300), 0, 1), truth, np.arange(300))
        for _ in range(2)
    ]
    found = compare(*made, CONFIG, resamples=300).table
    row = found.filter(found["metric"] == "auc").row(0, named=True)
    one, two = (build_core(model, CONFIG) for model in made)
    resamples = PercentileResamples(300)
    apart = one.drawn("pedestrian", resamples, 0)["auc"] - two.drawn("pedestrian", resamples, 1)["auc"]
    width = row["high_pedestrian"] - row["low_pedestrian"]
    assert width < 0.5 * np.ptp(np.percentile(apart, [2.5, 97.5]))


def test_both_units_must_agree():
    # All of the gain lies in one of three videos: by pedestrian it is clear, by video it is not.
    truth = np.arange(300) % 2
    video = np.arange(300) // 100
    a = SampleScores(truth.astype(float), truth, [str(i) for i in range(300)], video.astype(str))
    wrong = np.where((video == 0) & (np.arange(300) % 4 < 2), 1 - truth, truth)
    b = replace(a, scores=wrong.astype(float))
    found = compare(a, b, CONFIG, resamples=400).table
    row = found.filter(found["metric"] == "accuracy").row(0, named=True)
    assert row["verdict_pedestrian"] == "better"
    assert row["verdict_video"] == row["verdict"] == "not different"


def test_without_videos_pedestrians_decide():
    a, b = (replace(model, video=None) for model in models(gap=0.2))
    found = compare(a, b, CONFIG, resamples=100)
    assert found.verdict("auc") == "better"
    assert found.table["verdict_video"].null_count() == len(found.table)


def test_what_has_no_value_has_no_verdict():
    a = SampleScores([0.2, 0.6], [0, 0], ["p", "q"])
    found = compare(a, replace(a, scores=[0.1, 0.1]), CONFIG, resamples=50)
    assert found.verdict("auc") == "undefined"
    assert "auc: undefined" in found.lines()
    alone = SampleScores([0.2, 0.6], [0, 1], ["p", "p"])
    assert compare(alone, alone, CONFIG, resamples=50).verdict("accuracy") == "no interval"


def test_sentences_name_the_models_and_the_intervals():
    a, b = models(gap=0.2)
    line = next(
        x for x in compare(a, b, CONFIG, resamples=100, names=("LR", "GRU")).lines() if x.startswith("auc:")
    )
    assert line.startswith("auc: LR is better than GRU, ")
    assert "by pedestrian" in line
    assert "by video" in line


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": 1}, "differ in truth in 1 of 480 samples, first at place 0"),
        ({"pedestrian": "x"}, "differ in pedestrian"),
        ({"video": None}, "only one of A and B knows video"),
        ({"order": 999}, "differ in order"),
    ],
)
def test_other_samples_are_refused(change, message):
    a, b = models()
    name, value = next(iter(change.items()))
    if value is not None:
        column = getattr(b, name).copy()
        column[0] = 1 - column[0] if name == "truth" else value
        value = column
    b = replace(b, **{name: value}, **({"video": None} if name == "pedestrian" else {}))
    a = replace(a, video=None) if name == "pedestrian" else a
    with pytest.raises(InputError, match=message):
        compare(a, b, CONFIG, resamples=10)


def test_other_numbers_of_samples_and_no_resamples_are_refused():
    a, b = models()
    with pytest.raises(InputError, match="A has 480 samples and B has 2"):
        compare(a, b.take(np.array([0, 1])), CONFIG, resamples=10)
    with pytest.raises(UsageError, match="at least 1 resample"):
        compare(a, b, CONFIG, resamples=0)
    with pytest.raises(UsageError, match="no metric 'x'"):
        compare(a, b, CONFIG, resamples=5).verdict("x")
