"""Scores that are joined to samples by key, and those that come by row."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from table_sets import small_predictions

from roadaware.errors import InputError
from roadaware.scenes.tables import Predictions, Scenes, build_sample_predictions, sample_scores

UNIT = st.floats(0, 1, width=32)


def scenes_of(keys):
    return Scenes(samples=pl.DataFrame({"sample": pl.Series(keys, dtype=pl.Int64)}))


@settings(deadline=None)
@given(st.permutations(list(range(6))), st.integers(1, 4), st.data())
def test_scores_come_back_in_the_order_of_the_samples(order, width, data):
    scores = data.draw(arrays(np.float32, (6, width), elements=UNIT)).astype(np.float64)
    scenes = scenes_of(range(6))
    shuffled = build_sample_predictions(scenes.samples[order], scores[order])
    np.testing.assert_array_equal(sample_scores(shuffled, scenes), scores)


def test_lists_and_arrays_give_the_same_scores():
    predictions = small_predictions()
    listed = predictions.samples.with_columns(pl.col("scores").cast(pl.List(pl.Float32)))
    found = [sample_scores(each, scenes_of(range(6))) for each in (predictions, Predictions(samples=listed))]
    assert found[0].shape == (6, 2)
    np.testing.assert_array_equal(*found)


def test_one_score_a_sample_may_come_without_a_second_axis():
    predictions = build_sample_predictions(scenes_of([4, 5, 6]).samples, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(sample_scores(predictions, scenes_of([6, 5, 4])), [[1.0], [0.5], [0.0]])


def test_no_samples_have_no_scores():
    predictions = build_sample_predictions(scenes_of([]).samples, np.zeros((0, 3)))
    assert sample_scores(predictions, scenes_of([])).shape[0] == 0


@pytest.mark.parametrize("shape", [(5, 2), (0,), (7,), (6, 0), (), (6, 2, 1)], ids=str)
def test_scores_by_row_need_a_row_for_each_sample(shape):
    with pytest.raises(InputError, match=r"6 samples|scores should be"):
        build_sample_predictions(scenes_of(range(6)).samples, np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_score_that_is_no_number_is_refused(bad):
    scores = np.zeros((6, 2))
    scores[3, 1] = bad
    with pytest.raises(InputError, match=r"not finite in 1 rows, first \[{'row': 3, 'sample': 3}\]"):
        build_sample_predictions(scenes_of(range(6)).samples, scores)


def test_missing_and_foreign_samples_are_counted_and_named():
    with pytest.raises(InputError, match=r"2 samples without scores, 1 scores of unknown") as caught:
        sample_scores(small_predictions(), scenes_of([0, 7, 1, 2, 3, 4, 8]))
    assert "[7, 8]" in str(caught.value)
    assert "[5]" in str(caught.value)


def test_predictions_without_scores_say_what_they_have():
    with pytest.raises(InputError, match=r"no scores; their columns are \['sample'\]"):
        sample_scores(Predictions(samples=scenes_of([0]).samples), scenes_of([0]))


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([[0.5], [0.5, 0.5]], r"same number of scores; found \[1, 2\]"),
        ([[0.5, None], [0.5, 0.5]], "1 scores are null"),
        ([None, [0.5]], "1 samples without scores"),
    ],
)
def test_uneven_rows_of_scores_are_refused(rows, told):
    samples = pl.DataFrame({"sample": [0, 1], "scores": pl.Series(rows, dtype=pl.List(pl.Float32))})
    with pytest.raises(InputError, match=told):
        sample_scores(Predictions(samples=samples), scenes_of([0, 1]))
