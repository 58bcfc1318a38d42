"""Adaptive bins: worked by hand, against a sample-by-sample walk, and their laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadaware.statistics.calibration import (
    AdaptiveBins,
    NoBinningError,
    expected_calibration_error,
    reliability,
)

REFERENCE, DEFAULT = AdaptiveBins.reference(), AdaptiveBins.default()


def plain(confidence, correct, borrow="last"):
    """ECE, MCE and (size, smallest, largest, mean, accuracy) of each bin, taking one sample after another."""
    pairs = sorted(zip(confidence, correct, strict=True), key=lambda pair: -pair[0])
    n, bottom = len(pairs), pairs[-1][0]
    bins, target = [[]], math.inf
    for place, pair in enumerate(pairs):
        full = len(bins[-1]) > target
        if full and n - place > 40 and bins[-1][-1][0] - bottom > 0.05:
            bins.append([])
        bins[-1].append(pair)
        spread = bins[-1][0][0] - bins[-1][-1][0]
        target = 0.25 * (1.645 / spread) ** 2 if spread else math.inf
    sizes = [len(held) for held in bins]
    if target > sizes[-1] and len(sizes) > 1:
        missing, m = target - sizes[-1], len(sizes) - 1
        taken = [int(missing * (sizes[-1] if borrow == "last" else sizes[k]) / n) for k in range(m)]
        sizes = [size - less for size, less in zip(sizes, taken, strict=False)] + [sizes[-1] + sum(taken)]
    found, rows = [], list(pairs)
    for size in sizes:
        held = []
        while rows and len(held) != size:
            held.append(rows.pop(0))
        if len(held) == size:
            means = [sum(column) / size for column in zip(*held, strict=True)]
        else:  # it never was full: what was summed is not divided, and nothing was counted as right
            means = [sum(pair[0] for pair in held), 0.0]
        found.append((size, *((held[-1][0], held[0][0]) if held else (1.0, 0.0)), *means))
    gaps = [abs(accuracy - mean) for *_, mean, accuracy in found]
    ece = sum(gap * bin_[0] for gap, bin_ in zip(gaps, found, strict=True)) / n
    return ece, max(gaps), found[::-1]


def rows_of(found):
    return list(zip(found.count, found.low, found.high, found.confidence, found.accuracy, strict=True))


def assert_equal(confidence, correct, bins, borrow):
    ece, mce, expected = plain(confidence, correct, borrow)
    found = reliability(confidence, correct, bins)
    np.testing.assert_allclose(rows_of(found), expected, rtol=1e-9, atol=1e-12)
    assert found.expected_error == pytest.approx(ece, abs=1e-12, rel=1e-9)
    assert found.maximum_error == pytest.approx(mce, abs=1e-12, rel=1e-9)


def worked():
    """30 samples, from 1.000 down to 0.972 and at 0.8, then 42, from 0.700 down to 0.660 and at 0.6.

    The first 29 spread over 0.028 and ask for 862.9; with the next the spread is 0.2, and 16.9 are asked
    for. The others are too few to be cut. They spread over 0.1 and ask for 67.65: 25.65 are missing.
    """
    confidence = np.concatenate([1 - 0.001 * np.arange(29), [0.8], 0.7 - 0.001 * np.arange(41), [0.6]])
    return confidence, np.arange(72) < 16


def test_a_worked_case_as_published_borrows_by_the_share_of_the_borrower():
    """int(25.65 * 42 / 72) = 14 of 30 are lent: the last bin's own 42 stand where the lender's 30 belong."""
    confidence, correct = worked()
    found = reliability(confidence, correct, REFERENCE)
    assert rows_of(found) == [
        (56, 0.6, pytest.approx(0.984), pytest.approx(41.994 / 56), 0.0),
        (16, pytest.approx(0.985), 1.0, pytest.approx(0.9925), 1.0),
    ]
    assert found.expected_error == pytest.approx((16 * 0.0075 + 41.994) / 72)
    assert found.maximum_error == pytest.approx(41.994 / 56)


def test_the_worked_case_mended_borrows_by_the_share_of_the_lender():
    """int(25.65 * 30 / 72) = 10 of 30 are lent."""
    confidence, correct = worked()
    found = reliability(confidence, correct, DEFAULT)
    assert rows_of(found) == [
        (52, 0.6, pytest.approx(0.98), pytest.approx(0.732), 0.0),
        (20, pytest.approx(0.981), 1.0, pytest.approx(0.9905), 0.8),
    ]
    assert found.expected_error == pytest.approx((20 * 0.1905 + 38.064) / 72)
    assert found.maximum_error == pytest.approx(0.732)


def test_who_lends_more_than_it_has_is_never_closed_as_published_and_gone_when_mended():
    """Five samples ask for 4.2; 45 more within 0.02 miss 1646.3, of which the five are to lend 1481."""
    confidence = np.concatenate([[1, 0.99, 0.98, 0.97, 0.6], np.linspace(0.52, 0.5, 45)])
    total = 3.94 + 0.6 + 45 * 0.51
    found = reliability(confidence, np.ones(50), REFERENCE)
    assert not found.closed
    assert rows_of(found) == [(1526, 1, 0, 0, 0), (-1476, 0.5, 1, pytest.approx(total), 0)]
    assert found.expected_error == pytest.approx(-1476 * total / 50)
    mended = reliability(confidence, np.ones(50), DEFAULT)
    assert rows_of(mended) == [(50, 0.5, 1, pytest.approx(total / 50), 1)]


def test_who_lends_all_that_it_has_is_never_closed_as_published():
    """Five samples ask for 4.7; 45 more within 0.115 miss 6.15, of which the five are to lend 5.5."""
    confidence = np.concatenate([[1, 0.99, 0.98, 0.97, 0.62], np.linspace(0.615, 0.5, 45)])
    found = reliability(confidence, np.ones(50), REFERENCE)
    assert found.count.tolist() == [50, 0]
    assert not found.closed
    assert reliability(confidence, np.ones(50), DEFAULT).count.tolist() == [45, 5]


def test_a_last_bin_without_spread_is_undefined_as_published_and_kept_when_mended():
    confidence = np.append(np.linspace(1, 0.6, 5), np.full(45, 0.5))
    with pytest.raises(NoBinningError, match=r"the last 45 confidences are all 0\.5"):
        reliability(confidence, np.ones(50), REFERENCE)
    assert DEFAULT.sizes(confidence) == [5, 45]


def test_confidences_a_rounding_apart_overdraw_beyond_64_bits_as_published_and_are_equal_when_mended():
    """1 - 0.43 is 0.57 and a little more, so that the last bin asks for 10^31 samples."""
    correct = np.arange(128) % 3 > 0
    head = np.repeat([1.0, 0.9], [60, 8])
    parted, equal = (np.concatenate([head, np.tile([0.57, x], 30)]) for x in (1 - 0.43, 0.57))
    ece, mce, ((size, *_), _) = plain(parted, correct)
    found = reliability(parted, correct, REFERENCE)
    assert size > 2**63
    assert found.count.tolist() == [2**63 - 1, 1 - 2**63]
    assert found.share.tolist() == pytest.approx([size / 128, (128 - size) / 128])
    assert found.expected_error == pytest.approx(ece)
    assert found.maximum_error == pytest.approx(mce)
    mended = reliability(parted, correct, DEFAULT)
    assert mended.count.tolist() == [60, 68]
    np.testing.assert_allclose(rows_of(mended), rows_of(reliability(equal, correct, DEFAULT)), atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_mended_bins_part_no_equals_and_ignore_the_order_of_rows(seed, values):
    rng = np.random.default_rng(seed)
    confidence = 0.5 + 0.5 * np.round(rng.beta(2, 1, 400) * values) / values
    correct = rng.random(400) < confidence
    found = reliability(confidence, correct, DEFAULT)
    order = rng.permutation(400)
    again = reliability(confidence[order], correct[order], DEFAULT)
    np.testing.assert_allclose(rows_of(again), rows_of(found), atol=1e-12)
    assert (found.low[1:] > found.high[:-1]).all()
    assert found.count.sum() == 400
    assert (found.count > 0).all()


def test_the_error_of_a_calibrated_model_falls_with_the_samples():
    rng = np.random.default_rng(0)
    errors = []
    for n in (500, 50_000):
        confidence = 0.5 + 0.5 * rng.random(n)
        errors.append(expected_calibration_error(confidence, rng.random(n) < confidence, DEFAULT))
    assert errors[1] < 0.01 < errors[0] < 0.1


def test_fewer_than_forty_samples_are_one_bin():
    confidence = np.linspace(1, 0.5, 40)
    for bins in (REFERENCE, DEFAULT):
        assert bins.sizes(confidence) == [40]


@pytest.mark.parametrize("bins", [REFERENCE, DEFAULT])
def test_one_sample_and_equal_confidences_are_one_bin(bins):
    assert expected_calibration_error([0.8], [1], bins) == pytest.approx(0.2)
    found = reliability(np.full(300, 0.8), np.arange(300) % 2, bins)
    assert rows_of(found) == [(300, 0.8, 0.8, pytest.approx(0.8), 0.5)]


@pytest.mark.parametrize("bins", [REFERENCE, DEFAULT])
@pytest.mark.parametrize(("confidence", "message"), [([], "n > 0"), ([np.nan, 0.5], "should lie in")])
def test_no_samples_and_nan_are_refused(bins, confidence, message):
    with pytest.raises(ValueError, match=message):
        reliability(confidence, np.ones(len(confidence)), bins)


@pytest.mark.parametrize("seed", range(40))
def test_equal_to_a_walk_over_samples(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 1500))
    confidence = 0.5 + 0.5 * rng.beta(*rng.uniform(0.3, 4, 2), n)
    correct = rng.random(n) < confidence**2
    assert_equal(confidence, correct, REFERENCE, "last")
    expected = plain(confidence, correct, "own")
    if all(size > 0 for size, *_ in expected[2]):  # no ties: the mended rule differs in the share alone
        assert_equal(confidence, correct, DEFAULT, "own")


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=2, max_size=300))
def test_equal_to_a_walk_with_many_ties(pairs):
    confidence = np.array([0.2 + 0.02 * tenth for tenth, _ in pairs])
    correct = np.array([right for _, right in pairs])
    try:
        found = plain(confidence, correct)
    except OverflowError:  # an infinite number of samples is asked for
        with pytest.raises(NoBinningError, match="the published code stops there"):
            reliability(confidence, correct, REFERENCE)
    else:
        np.testing.assert_allclose(rows_of(reliability(confidence, correct, REFERENCE)), found[2], atol=1e-9)


def test_the_rules_as_published_and_mended_have_these_values():
    shared = (1.645, 40, 0.05)
    assert (
        AdaptiveBins()
        == AdaptiveBins.default()
        == AdaptiveBins(*shared, "own", "together", "emptied", "keep")
    )
    assert AdaptiveBins.reference() == AdaptiveBins(*shared, "last", "split", "published", "undefined")


@pytest.mark.parametrize(
    ("least_rest", "descending", "sizes"),
    [
        (0, [1.0, 0.25, 0.0, 0.0], [4]),  # 0.25 is not more than 0.25 above the smallest
        (0, [1.0, 0.2500001, 0.0, 0.0], [2, 2]),
        (2, [1.0, 0.5, 0.0, 0.0], [4]),  # 2 that remain are not more than 2
        (2, [1.0, 0.5, 0.0, 0.0, 0.0], [2, 3]),
        (0, [1.0, 0.5 + 4e-13, 0.5, 0.0], [3, 1]),  # equal to twelve decimals
        (0, [1.0, 0.5 + 6e-13, 0.5, 0.0], [2, 2]),
    ],
)
def test_a_bin_is_closed_just_where_the_rule_says(least_rest, descending, sizes):
    bins = AdaptiveBins(z=1.0, least_rest=least_rest, least_drop=0.25)
    assert bins.sizes(np.array(descending)) == sizes
