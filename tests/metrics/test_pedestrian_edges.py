"""What pedestrian metrics do where something is missing, repeated, grouped or wrong."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from sample_sets import TASKS, random_set

from roadaware.errors import InputError, UsageError
from roadaware.metrics.pedestrians import (
    METRIC_NAMES,
    UNITS,
    PedestrianConfig,
    SampleScores,
    build_core,
    evaluate_samples,
    sample_weights,
)
from roadaware.statistics.cautions import FEW
from roadaware.statistics.intervals import PercentileResamples, get_caution_limit


@pytest.mark.parametrize("task", TASKS)
def test_an_empty_set_has_no_value_and_says_why(task):
    state = random_set(0, task).take(np.array([], dtype=int))
    for config in (PedestrianConfig.reference(task), PedestrianConfig.default(task)):
        result = evaluate_samples(state, config, resamples=10)
        assert result.summary["value"].null_count() == len(result.summary)
        assert not result.summary["valid"].any()
        assert set(result.summary["reason"]) == {"no samples"}
        assert len(result.instances()) == len(result.instances("sample")) == 0


def test_one_class_leaves_undefined_what_needs_two():
    state = SampleScores([0.2, 0.7, 0.4], [0, 0, 0], ["p", "p", "q"])
    result = evaluate_samples(state, PedestrianConfig.default("action"), resamples=50)
    for name in ("balanced_accuracy", "recall", "average_precision", "auc", "auc_thresholded", "soft_recall"):
        row = result.row(name)
        assert row["value"] is None, name
        assert not row["valid"]
        assert "1" in row["reason"], row["reason"]
        assert row["low_pedestrian"] is None
    assert result.value("accuracy") == 2 / 3
    assert result.value("precision") == 0.0


def test_scikit_learns_values_of_zero_by_zero_are_kept_in_the_reference():
    state = SampleScores([0.2, 0.3], [0, 0], ["p", "q"])
    result = evaluate_samples(state, PedestrianConfig.reference("action"))
    assert [result.value(name) for name in ("precision", "recall", "f1", "balanced_accuracy")] == [0, 0, 0, 1]
    assert result.value("auc") is None
    assert result.value("average_precision") is None


def test_reasons_name_the_missing_classes():
    state = SampleScores(np.eye(3)[[0, 1, 1]], [0, 0, 1], ["p", "q", "r"])
    result = evaluate_samples(state, PedestrianConfig.default("intention"))
    assert result.row("precision")["reason"] == "no sample is decided to be of class 2"
    assert result.row("recall")["reason"] == "no sample of class 2 in the truth"
    assert result.row("soft_recall")["reason"] == "no pedestrian of class 2 in the truth"
    assert result.row("f1")["reason"] == "class 2 occurs in neither truth nor decisions"
    assert result.row("average_precision_class_2")["reason"] == "no sample of class 2"
    assert result.row("auc_thresholded")["reason"] == "defined for one probability per sample only"


@pytest.mark.parametrize("truth", [[0, 0, 1, 1], [0, 0, 0, 0]])
@pytest.mark.parametrize("score", [0.2, 0.8])
def test_every_reason_of_one_class_alone_names_a_class(truth, score):
    state = SampleScores([score] * 4, truth, ["p", "p", "q", "q"], tte_frames=[90, 60, 90, 60])
    summary = evaluate_samples(state, PedestrianConfig.default("action")).summary
    for row in summary.filter(~summary["valid"]).iter_rows(named=True):
        told = f"{row['metric']}: {row['reason']}; say why in _missing_class"
        assert re.search(r"class \d", row["reason"]), told


def test_rows_that_do_not_sum_to_one_have_no_auc_in_the_reference():
    state = random_set(1, "intention")
    loose = replace(state, scores=state.scores * 0.5)
    reference = evaluate_samples(loose, PedestrianConfig.reference("intention"))
    assert reference.row("auc")["reason"] == "200 rows of scores do not sum to 1"
    default = evaluate_samples(loose, PedestrianConfig.default("intention")).value("auc")
    assert default == evaluate_samples(state, PedestrianConfig.reference("intention")).value("auc")


def test_without_times_to_event_only_the_weighted_metrics_are_missing():
    state = replace(random_set(2), tte_frames=None)
    summary = evaluate_samples(state, PedestrianConfig.default("action")).summary
    missing = summary.filter(~summary["valid"])
    assert missing["metric"].to_list() == [n for n in METRIC_NAMES if n.startswith("weighted_")]
    assert set(missing["reason"]) == {"no time to event is given"}
    zero = replace(random_set(2), tte_frames=np.zeros(200, dtype=int))
    row = evaluate_samples(zero, PedestrianConfig.default("action")).row("weighted_f1")
    assert row["reason"] == "no time to event is above 0"


def test_folded_risk_classes_pair_regions_at_equal_distance_from_the_centre():
    state = SampleScores(np.eye(4)[[3, 2, 1, 0]], [0, 1, 2, 3], list("abcd"))
    result = evaluate_samples(state, PedestrianConfig.default("risk"))
    assert result.value("average_precision_region_0") < 1
    assert result.value("average_precision_risk_0") == 1.0
    assert result.value("average_precision_risk_1") == 1.0
    odd = SampleScores(np.eye(5)[[4, 1, 2, 3, 0]], [0, 1, 2, 3, 4], list("abcde"))
    assert evaluate_samples(odd, PedestrianConfig.default("risk")).value("average_precision_risk_2") == 1.0


@pytest.mark.parametrize("task", TASKS)
def test_groups_are_judged_as_sets_of_their_own(task):
    state = random_set(7, task, n=600, people=100)
    labels = np.array([None, "left", "right"], dtype=object)[np.arange(600) % 3]
    config = PedestrianConfig.reference(task)
    result = evaluate_samples(state, config, groups=labels, resamples=20, seed=4)
    assert result.groups == ("left", "right")
    alone = evaluate_samples(state.take(labels == "left"), config, resamples=20, seed=4)
    assert result.of_group("left").drop("group").equals(alone.summary.drop("group"))
    counts = result.counts.filter(result.counts["group"] == "left")
    assert counts["samples"].sum() == 200
    assert result.counts.filter(result.counts["group"].is_null())["samples"].sum() == 600


def test_groups_follow_their_samples_whatever_the_order_of_rows():
    state = random_set(7)
    labels = np.where(state.scores[:, 0] > 0.3, "high", "low")
    shuffled = np.random.default_rng(0).permutation(len(state))
    config = PedestrianConfig.default("action")
    one = evaluate_samples(state, config, groups=labels)
    two = evaluate_samples(state.take(shuffled), config, groups=labels[shuffled])
    assert one.summary.equals(two.summary)


def test_float32_scores_give_the_same_metrics_within_single_precision():
    for task in TASKS:
        state = random_set(11, task)
        single = replace(state, scores=state.scores.astype(np.float32))
        config = PedestrianConfig.default(task)
        wide, narrow = evaluate_samples(state, config).values(), evaluate_samples(single, config).values()
        assert_close = {k: v for k, v in wide.items() if v is not None}
        assert set(assert_close) == {k for k, v in narrow.items() if v is not None}
        for name, value in assert_close.items():
            assert narrow[name] == pytest.approx(value, abs=1e-6), name


def test_inputs_are_not_changed_and_states_cannot_be():
    scores, truth = np.array([0.4, 0.6]), np.array([0, 1])
    state = SampleScores(scores, truth, ["p", "q"])
    evaluate_samples(state, PedestrianConfig.default("action"), resamples=5)
    assert scores.tolist() == [0.4, 0.6]
    scores[0] = 0.9
    assert state.scores[0, 0] == 0.4
    with pytest.raises(ValueError, match="read-only"):
        state.scores[0, 0] = 1.0


def test_results_and_states_survive_pickling():
    state = random_set(0)
    config = PedestrianConfig.default("action")
    again = pickle.loads(pickle.dumps(state))  # noqa: S301
    result = evaluate_samples(again, config, resamples=5)
    other = pickle.loads(pickle.dumps(result))  # noqa: S301
    assert other.summary.equals(evaluate_samples(state, config, resamples=5).summary)
    assert other.instances().equals(result.instances())
    assert other.instances("sample").equals(result.instances("sample"))


@pytest.mark.parametrize("resamples", [10, PercentileResamples(100)])
def test_equal_seeds_give_equal_intervals_and_others_do_not(resamples):
    state = random_set(0)
    config = PedestrianConfig.default("action")
    one, same, other = (
        evaluate_samples(state, config, resamples=resamples, seed=s).summary for s in (0, 0, 1)
    )
    assert one.equals(same)
    assert not one["low_pedestrian"].equals(other["low_pedestrian"])


def test_intervals_hold_the_value_and_count_their_resamples():
    result = evaluate_samples(random_set(0), PedestrianConfig.default("action"), resamples=300)
    for row in result.summary.iter_rows(named=True):
        assert row["low_pedestrian"] < row["value"] < row["high_pedestrian"], row
        assert row["low_video"] < row["high_video"]
        assert (row["valid_draws_pedestrian"], row["valid_draws_video"]) == (40, 12)
        assert (row["units_pedestrian"], row["units_video"]) == (40, 12)
        few = [units < get_caution_limit("share") for units in (40, 12)]
        assert [row[f"caution_{unit}"] for unit in UNITS] == [FEW if each else None for each in few]


def test_no_interval_where_too_many_resamples_are_undefined_or_there_is_one_unit():
    rare = SampleScores(np.linspace(0, 1, 20), [0] * 19 + [1], [str(i) for i in range(20)], ["v"] * 20)
    for resamples, least, most in ((200, 19, 19), (PercentileResamples(200), 100, 160)):
        row = evaluate_samples(rare, PedestrianConfig.default("action"), resamples=resamples).row("auc")
        assert row["value"] == 1.0
        assert row["low_pedestrian"] is None
        assert least <= row["valid_draws_pedestrian"] <= most
        assert row["low_video"] is None
        assert row["valid_draws_video"] is None


def test_video_intervals_are_wider_where_pedestrians_of_a_video_are_alike():
    rng = np.random.default_rng(0)
    video = np.repeat(np.arange(20), 10)
    right = rng.random(20)[video] > rng.random(200)
    truth = rng.integers(0, 2, 200)
    scores = np.where(right, truth, 1 - truth).astype(float)
    state = SampleScores(scores, truth, [str(i) for i in range(200)], video.astype(str))
    row = evaluate_samples(state, PedestrianConfig.default("action"), resamples=500).row("accuracy")
    assert row["high_video"] - row["low_video"] > 1.2 * (row["high_pedestrian"] - row["low_pedestrian"])


def test_the_rows_behind_the_summary_average_to_it():
    for task in TASKS:
        result = evaluate_samples(random_set(4, task), PedestrianConfig.default(task))
        people, samples = result.instances("pedestrian"), result.instances("sample")
        assert people["soft_correct"].mean() == pytest.approx(result.value("soft_accuracy"), abs=1e-12)
        assert people["hard_correct"].mean() == pytest.approx(result.value("hard_accuracy"), abs=1e-12)
        assert samples["correct"].mean() == pytest.approx(result.value("accuracy"), abs=1e-12)
        for name in ("confidence_delta_max", "confidence_delta_mean"):
            assert people[name].mean() == pytest.approx(result.value(name), abs=1e-12)
        if task != "intention":
            weighted = np.average(samples["correct"], weights=samples["weight"])
            assert weighted == pytest.approx(result.value("weighted_accuracy"), abs=1e-12)
        assert people["samples"].sum() == len(samples)


@pytest.mark.parametrize(("task", "columns"), [("action", 3), ("intention", 1), ("risk", 1)])
def test_scores_of_another_task_are_refused(task, columns):
    state = random_set(0, "action" if columns == 1 else "intention")
    with pytest.raises(InputError, match=f"{task} needs one score.*got {columns}"):
        evaluate_samples(state, PedestrianConfig.default(task))


def test_a_set_itself_is_one_draw():
    core = build_core(random_set(0), PedestrianConfig.default("action"))
    assert core.once().tolist() == [[1] * 40]
    assert {len(values) for values in core.values(core.once()).values()} == {1}


def test_wrong_requests_are_refused():
    state, config = random_set(0), PedestrianConfig.default("action")
    with pytest.raises(UsageError, match="resamples"):
        evaluate_samples(state, config, resamples=-1)
    with pytest.raises(InputError, match="200 samples need 200 labels"):
        evaluate_samples(state, config, groups=["a"])
    result = evaluate_samples(state, config)
    with pytest.raises(UsageError, match="no metric 'acc'"):
        result.value("acc")
    with pytest.raises(UsageError, match="no group 'x'"):
        result.value("auc", "x")
    with pytest.raises(UsageError, match="pedestrian, sample"):
        result.instances("frame")


@pytest.mark.parametrize(("longest", "weighted"), [(None, False), (0.0, False), (-1.0, False), (1.0, True)])
def test_a_longest_time_of_nothing_gives_no_weights(longest, weighted):
    state = SampleScores([0.2, 0.7], [0, 1], ["p", "q"], tte_frames=np.array([1, 0]))
    found = sample_weights(state, PedestrianConfig.default("action"), longest)
    if weighted:
        sigma = PedestrianConfig.default("action").tte_sigma
        np.testing.assert_allclose(found, [1.0, np.exp(-0.5 / sigma**2)])
    else:
        assert found is None
    assert sample_weights(state, PedestrianConfig.default("intention"), longest) is None
