"""From the tables of scenes and predictions to judged pedestrians."""

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError, UsageError
from roadaware.metrics.pedestrians import PedestrianConfig, SampleScores, evaluate, evaluate_samples
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Meta, Predictions, Scenes, build_sample_predictions

ACTION = PedestrianConfig.default("action")


def scenes(**columns):
    samples = {
        "sample": [10, 11, 12, 13],
        "video": ["a", "a", "b", "b"],
        "tube": [0, 0, 1, 2],
        "tte_frames": [60, 50, 40, 30],
        "kind": ["action"] * 4,
        "label": [1, 1, 0, 0],
        "split": ["test", "test", "test", "val"],
    }
    return Scenes(
        videos=pl.DataFrame({"video": ["a", "b"]}),
        tubes=pl.DataFrame({"tube": [0, 1, 2], "video": ["a", "b", "b"], "name": ["p", "p", None]}),
        samples=pl.DataFrame(samples | columns),
        meta=Meta(vocabularies={"action": ("not-crossing", "crossing")}),
    )


def prediction(scenes, scores):
    return build_sample_predictions(scenes.samples, np.array(scores)[:, None])


def test_tables_give_what_arrays_give():
    truth = scenes()
    scores = np.array([0.75, 0.25, 0.5, 1.0])
    result = evaluate(prediction(truth, scores), truth, ACTION, resamples=20)
    state = SampleScores(
        scores, [1, 1, 0, 0], ["a/p", "a/p", "b/p", "b/2"], ["a", "a", "b", "b"], [60, 50, 40, 30]
    )
    assert result.summary.equals(evaluate_samples(state, ACTION, resamples=20).summary)
    assert result.instances()["pedestrian"].to_list() == ["a/p", "b/2", "b/p"]
    assert result.notes == ()
    assert result.config["type"] == "PedestrianConfig"


@pytest.mark.parametrize("saved", [False, True])
def test_saturated_scores_rank_as_they_do_in_arrays(tmp_path, saved):
    truth = scenes()
    scores = np.array([1 - 1e-9, 1 - 3e-9, 1 - 2e-9, 0.5 + 1e-9])
    predicted = prediction(truth, scores)
    if saved:
        save(predicted, tmp_path / "prediction")
        predicted = open_predictions(tmp_path / "prediction")
    # Of the four pairs of a crosser and another, one is in the wrong order.
    assert evaluate(predicted, truth, ACTION).value("auc") == 0.75


def test_predictions_are_joined_by_sample_and_not_by_row():
    truth = scenes()
    predicted = prediction(truth, [0.75, 0.25, 0.5, 1.0])
    turned = Predictions(samples=predicted.samples.reverse())
    assert evaluate(turned, truth, ACTION).summary.equals(evaluate(predicted, truth, ACTION).summary)


def test_pedestrians_keep_their_names_whatever_the_order_of_tubes():
    truth = scenes()
    predicted = prediction(truth, [0.75, 0.25, 0.5, 1.0])
    turned = truth.with_tables(tubes=truth.tubes.reverse())
    found, expected = (evaluate(predicted, each, ACTION).instances() for each in (turned, truth))
    assert found.equals(expected)


def test_a_split_is_judged_alone():
    truth = scenes()
    test = truth.with_tables(samples=truth.samples.filter(pl.col("split") == "test"))
    predicted = prediction(test, [0.75, 0.25, 0.5])
    result = evaluate(predicted, truth, ACTION, split="test")
    assert result.row("accuracy")["n"] == 3
    with pytest.raises(InputError, match="1 samples without scores"):
        evaluate(predicted, truth, ACTION)
    with pytest.raises(UsageError, match="samples in split 'nowhere' should ask for action"):
        evaluate(predicted, truth, ACTION, split="nowhere")


def test_predictions_of_all_splits_are_judged_on_one():
    truth = scenes()
    predicted = prediction(truth, [0.75, 0.25, 0.5, 1.0])
    of_test = Predictions(samples=predicted.samples.head(3))
    found, expected = (evaluate(each, truth, ACTION, split="test").summary for each in (predicted, of_test))
    assert found.equals(expected)
    foreign = Predictions(samples=predicted.samples.with_columns(pl.col("sample").replace(13, 99)))
    with pytest.raises(InputError, match=r"0 samples without scores, 1 scores of unknown samples[^$]*\[99\]"):
        evaluate(foreign, truth, ACTION, split="test")
    with pytest.raises(InputError, match=r"1 samples without scores, 0 scores of unknown samples[^$]*\[10\]"):
        evaluate(Predictions(samples=predicted.samples.tail(3)), truth, ACTION, split="test")


def test_the_task_must_be_that_of_the_samples():
    truth = scenes()
    with pytest.raises(UsageError, match=r"should ask for risk; they ask for \['action'\]"):
        evaluate(prediction(truth, [0.5] * 4), truth, PedestrianConfig.default("risk"))
    with pytest.raises(UsageError, match="they ask for nothing"):
        evaluate(prediction(truth, [0.5] * 4), Scenes(), ACTION)


def test_samples_without_a_label_are_not_judged():
    truth = scenes(label=[1, None, 0, 0])
    with pytest.raises(InputError, match=r"need a label to be judged; null in samples \[11\]"):
        evaluate(prediction(truth, [0.5] * 4), truth, ACTION)


def test_unknown_times_leave_the_weighted_metrics_undefined():
    truth = scenes(tte_frames=[60, None, 40, 30])
    row = evaluate(prediction(truth, [0.5] * 4), truth, ACTION).row("weighted_f1")
    assert row["reason"] == "no time to event is given"


def test_rounding_just_outside_is_clipped_and_noted():
    truth = scenes()
    result = evaluate(prediction(truth, [1.0000005, 0.0, 0.5, 1.0]), truth, ACTION)
    assert result.notes == ("1 score outside [0, 1] by no more than 1e-6 was clipped",)
    result = evaluate(prediction(truth, [1.0000005, -1e-7, 0.5, 1.0]), truth, ACTION)
    assert result.notes == ("2 scores outside [0, 1] by no more than 1e-6 were clipped",)
    with pytest.raises(InputError, match="1 rows do not, first rows 0"):
        evaluate(prediction(truth, [1.001, 0.0, 0.5, 1.0]), truth, ACTION)


def test_a_result_shows_how_many_metrics_are_defined_and_the_first_of_them():
    truth = scenes()
    result = evaluate(prediction(truth, [0.9, 0.2, 0.6, 0.1]), truth, ACTION, resamples=0)
    whole = result.summary.filter(pl.col("group").is_null())
    first = whole.filter("valid").row(0, named=True)
    shown = repr(result)
    assert shown.startswith(f"MetricResult({int(whole['valid'].sum())} of {len(whole)} metrics defined: ")
    assert f"{first['metric']} {round(first['value'], 4)}, " in shown
