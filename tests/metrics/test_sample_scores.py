"""The state of the pedestrian metrics: what it takes, what it refuses, and how parts merge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadaware.errors import InputError
from roadaware.metrics.scores import SampleScores, clip_scores, predict_labels


def test_plain_lists_become_arrays_of_their_types():
    state = SampleScores([0.1, 0.9], [0, 1.0], ["p", "q"], tte_frames=[30, 40])
    assert state.scores.shape == (2, 1)
    assert state.scores.dtype == np.float64
    assert state.truth.tolist() == [0, 1]
    assert state.places.tolist() == [0, 1]
    assert state.n_classes == 2
    assert len(state) == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -0.1, 1.0000001])
def test_scores_outside_the_unit_interval_are_refused_with_their_rows(bad):
    with pytest.raises(InputError, match=r"2 rows do not, first rows 1, 3"):
        SampleScores([0.1, bad, 0.2, bad], [0, 1, 0, 1], list("pqrs"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": [0, 2]}, r"truth should lie in 0\.\.1.*rows 1 with \[2\]"),
        ({"truth": [0, -1]}, r"truth should lie in 0\.\.1"),
        ({"truth": [0, 0.5]}, "truth should be whole numbers"),
        ({"truth": [0, np.nan]}, "truth should be whole numbers"),
        ({"truth": [0]}, "2 rows of scores need 2 values of truth"),
        ({"pedestrian": ["p"]}, "need 2 values of pedestrian"),
        ({"video": ["v", "v", "v"]}, "need 2 values of video"),
        ({"tte_frames": [[1], [2]]}, "need 2 values of tte_frames"),
        ({"tte_frames": ["a", "b"]}, "tte_frames should be whole numbers"),
        ({"order": [4, 4]}, r"places \[4\].*more than once"),
        ({"pedestrian": ["p", "p"], "video": ["v", "w"]}, r"\['p'\] occur in more than one video"),
        ({"scores": np.zeros((2, 0))}, "shape"),
        ({"scores": np.zeros((2, 1, 1))}, "shape"),
    ],
)
def test_contradictions_are_refused(change, message):
    fields = {"scores": [0.1, 0.9], "truth": [0, 1], "pedestrian": ["p", "q"]}
    with pytest.raises(InputError, match=message):
        SampleScores(**(fields | change))


def test_merging_orders_the_samples():
    one = SampleScores([0.1, 0.3], [0, 1], ["p", "q"], order=[2, 0])
    two = SampleScores([0.2], [1], ["p"], order=[1])
    for merged in (one.merge(two), two.merge(one)):
        assert merged.scores[:, 0].tolist() == [0.3, 0.2, 0.1]
        assert merged.pedestrian.tolist() == ["q", "p", "p"]


def test_merging_refuses_repeats_and_parts_of_other_shapes():
    one = SampleScores([0.1], [0], ["p"], ["v"], order=[0])
    with pytest.raises(InputError, match="merged twice"):
        one.merge(one)
    with pytest.raises(InputError, match="differ in video"):
        one.merge(SampleScores([0.1], [0], ["p"], order=[1]))
    with pytest.raises(InputError, match="numbers of scores"):
        one.merge(SampleScores([[0.1, 0.2]], [0], ["p"], ["v"], order=[1]))
    with pytest.raises(InputError, match="tte_frames"):
        one.merge(SampleScores([0.1], [0], ["p"], ["v"], tte_frames=[30], order=[1]))


@given(st.lists(st.floats(-2e-6, 1 + 2e-6), min_size=1, max_size=20))
def test_clipping_moves_what_is_near_and_refuses_what_is_far(values):
    scores = np.array(values)[:, None]
    inside = np.clip(scores, 0, 1)
    if np.abs(scores - inside).max() > 1e-6:
        with pytest.raises(InputError, match="rows do not"):
            clip_scores(scores)
    else:
        found, count = clip_scores(scores)
        assert (found == inside).all()
        assert count == (scores != inside).sum()


def test_nan_is_never_clipped():
    with pytest.raises(InputError, match="1 rows do not, first rows 0"):
        clip_scores(np.array([[np.nan]]))


def test_the_first_of_equal_scores_is_decided():
    assert predict_labels(np.array([[0.4, 0.4, 0.2], [0.1, 0.2, 0.7]])).tolist() == [0, 2]
