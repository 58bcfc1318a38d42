"""Areas from one sort against scikit-learn, ties and resamples included."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from roadaware.statistics import classification as module
from roadaware.statistics.classification import Ranking, average_precision, roc_auc

SAMPLES = st.lists(st.tuples(st.booleans(), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=40)


@pytest.mark.slow
@given(SAMPLES)
def test_areas_equal_scikit_learn_with_multiplicities_as_weights(samples):
    positive, level, times = np.array(samples).T
    positive, score = positive.astype(bool), level / 6
    multiplicity = times[None].astype(np.int32)
    ap, auc = Ranking.of(positive, score).areas(multiplicity, np.arange(len(samples)))
    some_positive, some_negative = times[positive].sum() > 0, times[~positive].sum() > 0
    assert np.isnan(ap[0]) == (not some_positive)
    assert np.isnan(auc[0]) == (not (some_positive and some_negative))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if some_positive:
            expected = sk.average_precision_score(positive, score, sample_weight=times)
            assert ap[0] == pytest.approx(expected, abs=1e-12)
        if some_positive and some_negative:
            assert auc[0] == pytest.approx(sk.roc_auc_score(positive, score, sample_weight=times), abs=1e-12)


@pytest.mark.slow
@given(SAMPLES)
def test_single_values_equal_scikit_learn_or_are_none(samples):
    positive, level, _ = np.array(samples).T
    positive, score = positive.astype(bool), level / 6
    if positive.any():
        expected = sk.average_precision_score(positive, score)
        assert average_precision(positive, score) == pytest.approx(expected, abs=1e-12)
    else:
        assert average_precision(positive, score) is None
    if positive.any() and not positive.all():
        assert roc_auc(positive, score) == pytest.approx(sk.roc_auc_score(positive, score), abs=1e-12)
    else:
        assert roc_auc(positive, score) is None


def test_blocks_of_draws_give_the_same_areas(monkeypatch):
    rng = np.random.default_rng(0)
    ranking = Ranking.of(rng.random(50) > 0.5, np.round(rng.random(50), 1))
    times, cluster = rng.integers(0, 3, (33, 10)).astype(np.int32), rng.integers(0, 10, 50)
    whole = ranking.areas(times, cluster)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 8 * 50 * 4)
    for one, other in zip(ranking.areas(times, cluster), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_one_score_for_all_is_chance():
    positive = np.array([True, False, False, False])
    assert roc_auc(positive, np.full(4, 0.3)) == 0.5
    assert average_precision(positive, np.full(4, 0.3)) == 0.25


def test_no_samples_have_no_area():
    assert average_precision(np.array([], dtype=bool), np.array([])) is None
    assert roc_auc(np.array([], dtype=bool), np.array([])) is None


@pytest.mark.parametrize(("limit", "sizes"), [(80, [2, 2, 1]), (1, [1] * 5), (400, [5])])
def test_blocks_hold_as_many_resamples_as_fit(monkeypatch, limit, sizes):
    seen, work = [], Ranking._block

    def block(self, times, cluster):
        seen.append(len(times))
        return work(self, times, cluster)

    monkeypatch.setattr(module, "_BLOCK_BYTES", limit)
    monkeypatch.setattr(Ranking, "_block", block)
    ranking = Ranking.of(np.array([True, False, True, False, False]), np.arange(5.0))
    ranking.areas(np.ones((5, 5), dtype=np.int32), np.arange(5))
    assert seen == sizes
