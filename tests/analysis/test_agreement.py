"""Joint correctness of two tasks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadaware.analysis.compare import OUTCOMES, compute_agreement
from roadaware.errors import InputError, UsageError
from roadaware.metrics.scores import SampleScores, predict_labels

LABELS = (("NCI", "UI", "CI"), ("NC", "C"))


def tasks(n=60, seed=0, people=12):
    rng = np.random.default_rng(seed)
    who = np.sort(rng.integers(0, people, n))
    shared = ([f"p{p}" for p in who], [f"v{p % 4}" for p in who])
    intention = SampleScores(rng.dirichlet(np.ones(3), n), rng.integers(0, 3, n), *shared)
    return intention, SampleScores(rng.random(n), rng.integers(0, 2, n), *shared)


@given(st.integers(1, 50), st.integers(0, 20))
def test_every_sample_is_counted_once_as_a_loop_counts_it(n, seed):
    first, second = tasks(n, seed)
    table = compute_agreement(first, second).table
    one, two = predict_labels(first.scores) == first.truth, predict_labels(second.scores) == second.truth
    for row in table.iter_rows(named=True):
        count = whole = 0
        for i in range(n):
            mine = row["first"] in (None, str(first.truth[i])) and row["second"] in (
                None,
                str(second.truth[i]),
            )
            outcome = {(1, 1): "both", (1, 0): "only_first", (0, 1): "only_second", (0, 0): "none"}
            whole += mine
            count += mine and outcome[int(one[i]), int(two[i])] == row["outcome"]
        assert (row["count"], row["n"]) == (count, whole)
        assert row["percent"] == (None if not whole else pytest.approx(100 * count / whole))


def test_the_wide_form_is_the_printed_table():
    wide = compute_agreement(*tasks(), labels=LABELS).wide()
    assert wide.columns == ["first", "second", "n", *OUTCOMES]
    assert wide["first"].to_list() == ["NCI", "NCI", "UI", "UI", "CI", "CI", None]
    assert wide["second"].to_list() == ["NC", "C", "NC", "C", "NC", "C", None]
    sums = wide.select(OUTCOMES).sum_horizontal().to_list()
    assert sums == pytest.approx([100.0] * 7)
    assert wide["n"][-1] == 60


def test_intervals_hold_the_percentage_and_are_absent_without_resamples():
    found = compute_agreement(*tasks(400, people=80), labels=LABELS, resamples=200)
    for row in found.table.iter_rows(named=True):
        assert row["low_pedestrian"] <= row["percent"] <= row["high_pedestrian"]
        assert row["low_video"] <= row["high_video"]
    assert compute_agreement(*tasks()).table["low_pedestrian"].null_count() == 28


def test_the_interval_is_that_of_resampled_pedestrians():
    first, second = tasks(200, people=40)
    found = compute_agreement(first, second, resamples=400).percent("both")
    both = (predict_labels(first.scores) == first.truth) & (predict_labels(second.scores) == second.truth)
    assert found == pytest.approx(100 * both.mean())
    rng = np.random.default_rng(9)
    names = np.unique(first.pedestrian)
    sums = np.array([(both[first.pedestrian == p].sum(), (first.pedestrian == p).sum()) for p in names])
    plain = []
    for _ in range(2000):
        s = sums[rng.integers(0, len(names), len(names))].sum(axis=0)
        plain.append(100 * s[0] / s[1])
    row = compute_agreement(first, second, resamples=2000).table.row(24, named=True)
    assert row["outcome"] == "both"
    assert row["first"] is None
    assert [row["low_pedestrian"], row["high_pedestrian"]] == pytest.approx(
        np.percentile(plain, [2.5, 97.5]), abs=1.0
    )


def test_an_absent_combination_has_no_percentage():
    first, second = tasks()
    found = compute_agreement(
        replace(first, truth=np.zeros(60, dtype=int)), second, labels=LABELS, resamples=20
    )
    assert found.percent("both", "UI", "C") is None
    assert found.percent("both", "NCI", "C") is not None


def test_rows_in_any_order_are_paired_by_their_place():
    first, second = tasks()
    turned = second.take(np.arange(60)[::-1])
    assert compute_agreement(first, turned).table.equals(compute_agreement(first, second).table)


def test_other_samples_names_and_outcomes_are_refused():
    first, second = tasks()
    with pytest.raises(InputError, match="same samples"):
        compute_agreement(first, second.take(np.arange(59)))
    with pytest.raises(InputError, match="same samples"):
        compute_agreement(first, replace(second, pedestrian=np.roll(second.pedestrian, 20), video=None))
    with pytest.raises(InputError, match="2 classes need 2 names"):
        compute_agreement(first, second, labels=(LABELS[0], ("NC",)))
    with pytest.raises(UsageError, match="no outcome 'all'"):
        compute_agreement(first, second).percent("all")
