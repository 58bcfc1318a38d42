"""Rates from confusion counts against scikit-learn."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from roadaware.statistics import classification

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=25)


@pytest.mark.slow
@given(PAIRS)
def test_macro_rates_equal_scikit_learn_with_weights(pairs):
    truth, decision, weight = np.array(pairs).T
    counts = classification.confusion_matrix(truth, decision, 4, weight=weight / 7)[0]
    shared = {"average": "macro", "zero_division": 0.0, "sample_weight": weight / 7}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [
            sk.accuracy_score(truth, decision, sample_weight=weight / 7),
            sk.balanced_accuracy_score(truth, decision, sample_weight=weight / 7),
            sk.precision_score(truth, decision, **shared),
            sk.recall_score(truth, decision, **shared),
            sk.f1_score(truth, decision, **shared),
        ]
    found = [
        classification.accuracy(counts),
        classification.balanced_accuracy(counts),
        classification.precision(counts, "macro"),
        classification.recall(counts, "macro"),
        classification.f1(counts, "macro"),
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@given(PAIRS, st.integers(1, 4))
def test_counts_of_clusters_add_up_to_the_whole(pairs, n_clusters):
    truth, decision, _ = np.array(pairs).T
    cluster = np.arange(len(truth)) % n_clusters
    parts = classification.confusion_matrix(truth, decision, 4, cluster=cluster, n_clusters=n_clusters)
    assert (parts.sum(axis=0) == classification.confusion_matrix(truth, decision, 4)[0]).all()


def test_many_counts_at_once_equal_one_at_a_time():
    counts = np.random.default_rng(0).integers(0, 5, (20, 3, 3)).astype(float)
    for rate in (classification.precision, classification.recall, classification.f1):
        together = rate(counts, "macro")
        np.testing.assert_array_equal(together, [rate(one, "macro") for one in counts])


def test_zero_by_zero_is_a_number_or_undefined():
    never_decided = np.array([[3.0, 0.0], [1.0, 0.0]])
    assert classification.precision(never_decided, "binary", zero_division=0.0) == 0.0
    assert classification.precision(never_decided, "binary", zero_division=1.0) == 1.0
    assert np.isnan(classification.precision(never_decided, "binary", zero_division=None))
    assert classification.f1(never_decided, "binary", zero_division=None) == 0.0
    assert np.isnan(classification.precision(never_decided, "macro", zero_division=None))


def test_absent_classes_leave_the_mean_only_where_zero_division_is_a_number():
    two_of_three = np.zeros((3, 3))
    two_of_three[:2, :2] = [[3.0, 1.0], [0.0, 4.0]]
    assert classification.recall(two_of_three, "macro") == (0.75 + 1.0) / 2
    assert np.isnan(classification.recall(two_of_three, "macro", zero_division=None))
    assert classification.balanced_accuracy(two_of_three) == (0.75 + 1.0) / 2
    assert np.isnan(classification.balanced_accuracy(two_of_three, zero_division=None))


def test_a_class_that_is_never_decided_for_is_in_the_mean_all_the_same():
    assert classification.balanced_accuracy(np.array([[3.0, 0.0], [1.0, 0.0]])) == (1.0 + 0.0) / 2
    assert classification.balanced_accuracy(np.array([[3.0, 1.0], [0.0, 0.0]])) == 0.75


@pytest.mark.parametrize("zero_division", [0.0, None])
def test_no_samples_give_nothing(zero_division):
    empty = np.zeros((2, 2))
    assert np.isnan(classification.accuracy(empty))
    assert np.isnan(classification.balanced_accuracy(empty, zero_division=zero_division))
    for average in ("binary", "macro"):
        assert np.isnan(classification.precision(empty, average, zero_division=zero_division))
        assert np.isnan(classification.f1(empty, average, zero_division=zero_division))


def test_one_cluster_and_zero_for_zero_by_zero_unless_said():
    counts = classification.confusion_matrix(np.array([0, 0]), np.array([0, 0]), 2)
    np.testing.assert_array_equal(counts, [[[2, 0], [0, 0]]])
    for rate in (classification.precision, classification.recall, classification.f1):
        assert rate(counts[0], "binary") == 0.0
        assert rate(counts[0], "macro") == 1.0


def test_a_total_below_one_is_enough():
    counts = np.array([[0.0, 0.0], [0.0, 0.5]])
    for rate in (classification.precision, classification.recall, classification.f1):
        assert rate(counts, "binary") == 1.0
        assert rate(counts, "macro") == 1.0
