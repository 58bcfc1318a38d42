"""The pedestrian metrics against a plain slow version, worked cases, and the laws every metric keeps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_metrics import plain_metrics
from sample_sets import TASKS, random_set, sample_sets

from example_counts import tried
from roadaware.metrics.pedestrians import (
    PedestrianConfig,
    SampleScores,
    build_core,
    evaluate_samples,
)
from roadaware.statistics.intervals import RANGES, PercentileResamples, Units

CONFIGS = {
    "reference": PedestrianConfig.reference,
    "default": PedestrianConfig.default,
    "total variation": lambda task: replace(
        PedestrianConfig.default(task), delta_over_classes="total_variation"
    ),
}


def plain(state, config):
    return plain_metrics(state.scores, state.truth, state.pedestrian.tolist(), state.tte_frames, config)


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        got = np.nan if found[name] is None else found[name]
        np.testing.assert_allclose(got, value, rtol=0, atol=1e-12, err_msg=name, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("ties", [False, True])
def test_every_metric_equals_the_plain_version(task, config, ties):
    state = random_set(3, task, ties=ties)
    result = evaluate_samples(state, CONFIGS[config](task))
    assert_same(result.values(), plain(state, CONFIGS[config](task)))


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
@tried(25)
def test_every_metric_equals_the_plain_version_on_any_set(task, config, data):
    state = data.draw(sample_sets(task))
    result = evaluate_samples(state, CONFIGS[config](task))
    assert_same(result.values(), plain(state, CONFIGS[config](task)))


@pytest.mark.parametrize("task", TASKS)
def test_every_metric_keeps_to_the_range_that_its_interval_goes_by(task):
    for seed in range(3):
        values = evaluate_samples(random_set(seed, task), PedestrianConfig.default(task)).values()
        for name, value in values.items():
            low, high = RANGES["share"]
            assert value is None or low <= value <= high, f"{name} leaves its range: name its kind in SCALES"


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("unit", ["pedestrian", "video"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("config", ["reference", "default"])
def test_each_draw_equals_the_plain_version_of_the_resampled_set(task, unit, config):
    config = CONFIGS[config](task)
    state = random_set(5, task, n=120, people=30, ties=True)
    core = build_core(state, config)
    drawn = core.drawn(unit, PercentileResamples(12), seed=1)
    names = core.people.name if unit == "pedestrian" else core.people.video
    (times,) = Units.of(names, PercentileResamples(12), 1).weights()
    for d in range(len(times)):
        rows, names = [], []
        for p, name in enumerate(core.people.name):
            for copy in range(times[d, p]):
                mine = np.flatnonzero(state.pedestrian == name)
                rows.extend(mine)
                names.extend([f"{name} {copy}"] * len(mine))
        expected = plain_metrics(
            state.scores[rows],
            state.truth[rows],
            names,
            state.tte_frames[rows],
            config,
            max_tte=state.tte_frames.max(),
        )
        assert_same({name: values[d] for name, values in drawn.items()}, expected)


def test_a_worked_case_of_one_pedestrian_who_wavers():
    # p: 0.9, 0.4, 0.8 -> votes 1, 0, 1; truth 1. q: 0.1, 0.2 -> votes 0, 0; truth 0.
    state = SampleScores(
        np.array([0.9, 0.4, 0.8, 0.1, 0.2]),
        np.array([1, 1, 1, 0, 0]),
        ["p", "p", "p", "q", "q"],
        tte_frames=[90, 60, 30, 90, 30],
    )
    result = evaluate_samples(state, PedestrianConfig.reference("action"))
    assert result.value("accuracy") == 4 / 5
    assert result.value("soft_accuracy") == 1.0
    assert result.value("hard_accuracy") == 0.5
    assert result.value("hard_recall") == 0.0
    assert result.value("confidence_delta_max") == pytest.approx((0.5 + 0.1) / 2, abs=1e-15)
    assert result.value("confidence_delta_mean") == pytest.approx((0.45 + 0.1) / 2, abs=1e-15)
    w = np.exp(-0.5 * ((90 - np.array([90, 60, 30, 90, 30])) / 90 / 0.3) ** 2)
    assert result.value("weighted_accuracy") == pytest.approx(1 - w[1] / w.sum(), abs=1e-15)
    assert result.value("average_precision") == 1.0


def votes(*classes, truth, k=3):
    """One pedestrian whose samples decide for the given classes."""
    return SampleScores(np.eye(k)[list(classes)], np.array(truth), ["p"] * len(classes))


def test_votes_whose_mean_is_the_first_pass_as_unanimous_in_the_reference_only():
    state = votes(1, 0, 2, truth=[1, 1, 1])
    for config, hard, agreed in (("reference", 1, True), ("default", 0, False)):
        people = evaluate_samples(state, CONFIGS[config]("intention")).instances()
        assert people["hard"].to_list() == [hard]
        assert people["agreed"].to_list() == [agreed]


def test_a_pedestrian_without_agreement_is_wrong_in_the_configured_way():
    state = votes(1, 2, 2, 0, truth=[1, 1, 1, 1])
    assert evaluate_samples(state, PedestrianConfig.reference("intention")).instances()["hard"][0] == 0
    assert evaluate_samples(state, PedestrianConfig.default("intention")).instances()["hard"][0] == 2
    zero = votes(0, 2, 2, truth=[0, 0, 0])
    assert evaluate_samples(zero, PedestrianConfig.reference("intention")).instances()["hard"][0] == 1
    assert evaluate_samples(zero, PedestrianConfig.default("intention")).instances()["hard"][0] == 2


def test_equal_votes_for_wrong_classes_go_to_the_larger_sum_of_scores():
    state = SampleScores([[0.0, 0.9, 0.1], [0.0, 0.1, 0.8], [1.0, 0.0, 0.0]], [0, 0, 0], ["p"] * 3)
    people = evaluate_samples(state, PedestrianConfig.default("intention")).instances()
    assert people["hard"][0] == 1


@pytest.mark.parametrize(
    ("truth", "first", "mode"), [([2, 1, 1], 2, 1), ([0, 1], 0, 1), ([1, 0, 1, 0], 1, 0), ([2, 2, 0], 2, 2)]
)
def test_the_truth_of_a_pedestrian_is_the_first_or_the_most_frequent_and_latest(truth, first, mode):
    state = votes(*[0] * len(truth), truth=truth)
    config = PedestrianConfig.default("intention")
    found = evaluate_samples(state, replace(config, instance_truth="first")).instances()["truth"][0]
    assert found == first
    assert evaluate_samples(state, config).instances()["truth"][0] == mode


def test_single_samples_have_no_delta_by_default_and_a_delta_of_zero_in_the_reference():
    state = SampleScores([0.2, 0.6, 0.9], [0, 0, 1], ["p", "p", "q"])
    reference = evaluate_samples(state, PedestrianConfig.reference("action"))
    default = evaluate_samples(state, PedestrianConfig.default("action"))
    assert reference.value("confidence_delta_max") == pytest.approx(0.2)
    assert default.value("confidence_delta_max") == pytest.approx(0.4)
    assert default.row("confidence_delta_max")["n"] == 1
    assert default.instances()["confidence_delta_max"].to_list() == [pytest.approx(0.4), None]


def test_half_is_not_crossing():
    state = SampleScores([0.5, 0.5], [0, 1], ["p", "q"])
    assert evaluate_samples(state, PedestrianConfig.default("action")).instances("sample")[
        "decision"
    ].to_list() == [0, 0]


def test_weights_hold_the_longest_time_of_the_set_by_default_and_of_the_group_in_the_reference():
    state = SampleScores(
        [0.9, 0.1, 0.9, 0.9], [1, 1, 1, 0], ["a", "b", "c", "d"], tte_frames=[40, 30, 90, 90]
    )
    groups = ["near", "near", "far", "far"]
    alone = state.take(np.array([0, 1]))
    reference, default = PedestrianConfig.reference("action"), PedestrianConfig.default("action")
    of_group = evaluate_samples(state, reference, groups=groups).value("weighted_recall", "near")
    assert of_group == evaluate_samples(alone, reference).value("weighted_recall")
    w = np.exp(-0.5 * ((90 - np.array([40, 30])) / 90 / 0.3) ** 2)
    of_set = evaluate_samples(state, default, groups=groups).value("weighted_recall", "near")
    assert of_set == pytest.approx(w[0] / w.sum(), abs=1e-15)
    assert of_set != of_group


@pytest.mark.parametrize("task", TASKS)
def test_perfect_scores_have_the_best_value(task):
    k = {"action": 1, "intention": 3, "risk": 12}[task]
    truth = np.arange(4 * max(2, k)) % max(2, k)
    people = [f"p{t}" for t in truth]
    scores = truth[:, None].astype(float) if k == 1 else np.eye(k)[truth]
    state = SampleScores(scores, truth, people, tte_frames=30 + np.arange(len(truth)))
    for config in (PedestrianConfig.reference(task), PedestrianConfig.default(task)):
        for name, value in evaluate_samples(state, config).values().items():
            if name == "auc_thresholded" and k > 1:
                assert value is None
            else:
                assert value == (0.0 if name.startswith("confidence_delta") else 1.0), name


@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
@tried(25)
def test_any_split_merges_to_the_whole_exactly(task, data):
    whole = data.draw(sample_sets(task))
    part = np.array(data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole))))
    shuffled = np.random.default_rng(data.draw(st.integers(0, 9))).permutation(len(whole))
    one, two = whole.take(shuffled[part[shuffled]]), whole.take(shuffled[~part[shuffled]])
    config = PedestrianConfig.default(task)
    expected = evaluate_samples(whole, config, resamples=5)
    for merged in (one.merge(two), two.merge(one)):
        assert evaluate_samples(merged, config, resamples=5).summary.equals(expected.summary)


@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
@tried(20)
def test_the_order_of_pedestrians_does_not_matter(task, data):
    state = data.draw(sample_sets(task))
    names = np.unique(state.pedestrian)
    place = dict(zip(names, data.draw(st.permutations(range(len(names)))), strict=True))
    blocks = np.argsort([place[name] for name in state.pedestrian], kind="stable")
    moved = replace(state.take(blocks), order=np.arange(len(state)))
    config = PedestrianConfig.reference(task)
    assert_same(
        evaluate_samples(moved, config).values(),
        {k: np.nan if v is None else v for k, v in evaluate_samples(state, config).values().items()},
    )


def test_a_rate_of_one_is_bounded_by_the_pedestrians_that_it_is_made_of():
    truth = np.array([1, 1, 1] + [0] * 37)
    people = np.array([f"p{n}" for n in range(40)])
    videos = np.array([f"v{n // 2}" for n in range(40)])
    state = SampleScores(np.where(truth, 0.9, 0.1)[:, None], truth, people, videos, np.full(40, 60))
    rows = evaluate_samples(state, PedestrianConfig.default("action"), resamples=100).summary.rows_by_key(
        "metric", named=True
    )
    for metric, n, n_videos in (
        ("accuracy", 40, 20),
        ("soft_recall", 3, 2),
        ("precision", 3, 2),
        ("auc", 3, 2),
    ):
        (row,) = rows[metric]
        assert row["low_pedestrian"] == pytest.approx(0.025 ** (1 / n)), metric
        assert row["low_video"] == pytest.approx(0.025 ** (1 / n_videos)), metric
