"""Intervals over units: hand-worked jackknives, percentiles, bounds, cautions, and how often they hold."""

import numpy as np
import pytest
from scipy import stats

from roadaware.statistics import intervals
from roadaware.statistics.cautions import AT_END, ENOUGH, ENOUGH_SIGNED, FEW, LARGEST
from roadaware.statistics.intervals import (
    Interval,
    PercentileResamples,
    Units,
    _build_interval,
    encode_resample_count,
    get_difference_scale,
    select_interval_method,
)


def leave_out_means(values):
    """The mean without each value."""
    return (values.sum() - values) / (len(values) - 1)


def over(values, scale="plain", resamples=1000):
    """The interval of the mean of some units' values."""
    units = Units(len(values), resamples, 0)
    found = np.concatenate(list(units.weights()))
    return units.interval(values.mean(), found @ values / found.sum(axis=1), scale)


def freedom(changes):
    """Degrees of freedom for the changes that units make, before they are bounded."""
    return min(
        np.abs(changes).sum() ** 2 / (changes**2).sum() - 1,
        2 * len(changes) / (np.mean(changes**4) / np.mean(changes**2) ** 2 - 1),
    )


def lean(changes, times):
    """By how many standard errors an interval is moved to the longer tail."""
    return stats.skew(changes) * (1 + 2 * times**2) / (6 * np.sqrt(len(changes)))


def test_the_jackknife_leaves_out_one_unit_after_the_other():
    (weights,) = Units(4, 1000, 0).weights()
    np.testing.assert_array_equal(weights, 1 - np.eye(4))
    assert weights.dtype == np.int32
    assert [len(part) for part in Units(5, 1000, 0).weights(2)] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate(list(Units(5, 9, 0).weights(2))), 1 - np.eye(5))
    np.testing.assert_array_equal(next(Units(4, 4, 0).weights()), 1 - np.eye(4))


@pytest.mark.parametrize(("n", "resamples", "groups"), [(10, 3, 3), (10, 9, 9), (7, 1, 2), (300, 100, 100)])
def test_more_units_than_draws_are_left_out_in_groups(n, resamples, groups):
    weights = np.concatenate(list(Units(n, resamples, 5).weights()))
    assert weights.shape == (groups, n)
    assert (weights.sum(axis=0) == groups - 1).all()
    sizes = n - weights.sum(axis=1)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(weights, np.concatenate(list(Units(n, resamples, 5).weights(7))))
    assert (weights != np.concatenate(list(Units(n, resamples, 6).weights()))).any()


def test_items_of_a_unit_come_and_go_together():
    unit = np.array(["a", "b", "a", "c", "b"])
    units = Units.of(unit, 100, 0)
    np.testing.assert_array_equal(next(units.weights()), [[0, 1, 0, 1, 1], [1, 0, 1, 1, 0], [1, 1, 1, 0, 1]])
    drawn = next(Units.of(unit, PercentileResamples(100), 0).weights())
    assert drawn.shape == (100, 5)
    assert (drawn[:, 0] == drawn[:, 2]).all()
    assert (drawn[:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert Units.of(np.array(["a", "a"]), 10, 0) is None
    assert Units.of(np.array(["a", "b"]), 10, 0).n == 2


@pytest.mark.parametrize("resamples", [300, PercentileResamples(300)])
def test_memory_does_not_grow_with_the_draws(monkeypatch, resamples):
    units = Units.of(np.repeat(np.arange(50), 4), resamples, 0)
    whole = np.concatenate(list(units.weights()))
    monkeypatch.setattr(intervals, "_BLOCK", 2000)
    parts = list(units.weights())
    assert {part.shape for part in parts} == {(10, 200)}
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_the_error_of_a_mean_is_its_standard_error():
    values = np.array([-3.0, -1.0, 1.0, 3.0])
    low, high = over(values).low, over(values).high
    error = values.std(ddof=1) / 2
    effective = 8.0**2 / 20.0  # (sum |d|)^2 / sum d^2 of -3, -1, 1, 3
    reach = stats.t.ppf(0.975, effective - 1) * error  # tails: 8 / (1.64 - 1) is more
    assert (low, high) == pytest.approx((-reach, reach), abs=1e-12)


def test_units_that_all_move_a_mean_alike_count_in_full():
    values = np.array([1.0, -1.0] * 6)
    found = over(values)
    assert found.high == pytest.approx(stats.t.ppf(0.975, 11) * values.std(ddof=1) / np.sqrt(12), abs=1e-12)


def test_one_unit_that_moves_all_leaves_one_degree_of_freedom():
    units = Units(12, 1000, 0)
    without = np.r_[0.0, np.full(11, 1.0)]
    found = units.interval(1.0, without, "plain")
    error = np.sqrt(11 / 12)
    bias, times = 11 * (11 / 12 - 1.0), stats.t.ppf(0.975, 1)
    further = error * lean(1.0 - without, times)
    assert found.low == pytest.approx(1 - times * error, rel=1e-9)
    assert found.high == pytest.approx(1 + times * error - bias + further, rel=1e-9)


def test_a_bias_moves_the_end_that_it_points_away_from():
    values = np.random.default_rng(1).normal(size=15)
    units, mean, square = Units(15, 1000, 0), values.mean(), (values**2).mean()
    without = [values[np.arange(15) != k] for k in range(15)]
    variance = units.interval(square - mean**2, np.array([one.var() for one in without]), "plain")
    moved = values.var() - np.array([one.var() for one in without])
    bias = -14 * moved.mean()
    assert bias == pytest.approx(-values.var(ddof=1) / 15, rel=1e-9)
    times, error = stats.t.ppf(0.975, freedom(moved)), np.sqrt(14 / 15 * (moved**2).sum())
    further = lean(moved, times) * error
    assert further > 0
    assert variance.low == pytest.approx(values.var() - times * error)
    assert variance.high == pytest.approx(values.var() + times * error - bias + further)
    mirrored = units.interval(-values.var(), np.array([-one.var() for one in without]), "plain")
    assert (mirrored.low, mirrored.high) == pytest.approx((-variance.high, -variance.low))


@pytest.mark.parametrize(("n", "most"), [(5, 4.0), (10, 8**0.5), (500, 0.4)])
def test_what_jumps_add_up_to_is_no_bias(n: int, most: float):
    # Every unit moves the number by 0.01 in one direction, and by a little of its own in either.
    moved = 0.01 + 0.001 * np.where(np.arange(n) % 2, 1.0, -1.0)
    found = Units(n, 1000, 0).interval(3.0, 3.0 - moved, "plain")
    times, error = stats.t.ppf(0.975, freedom(moved)), np.sqrt((n - 1) / n * (moved**2).sum())
    bias, reach = (n - 1) * moved.mean(), times * error
    further = lean(moved, times) * error
    assert found.low == pytest.approx(3.0 - reach + min(further, 0))
    assert found.high == pytest.approx(3.0 + reach + min(bias, most * reach) + max(further, 0))
    assert (bias > most * reach) == (n == 500)


def test_groups_of_other_sizes_weigh_by_what_they_leave():
    values = np.random.default_rng(2).normal(size=7)
    units = Units(7, 3, 4)
    weights = next(units.weights())
    left = weights.sum(axis=1)
    shares = 7 / (7 - left)
    pseudo = shares * values.mean() - (shares - 1) * (weights @ values / left)
    changes = (pseudo - values.mean()) / np.sqrt(shares - 1)
    times, error = stats.t.ppf(0.975, np.clip(freedom(changes), 1, 2)), np.sqrt((changes**2).mean())
    bias, further = values.mean() - pseudo.mean(), error * lean(changes, times)
    found = units.interval(values.mean(), weights @ values / left, "plain")
    assert found.low == pytest.approx(values.mean() - times * error - max(bias, 0) + min(further, 0))
    assert found.high == pytest.approx(values.mean() + times * error - min(bias, 0) + max(further, 0))
    assert (found.n_units, found.n_resamples, found.n_valid) == (7, 3, 3)


def test_a_share_is_judged_by_its_odds():
    values = np.array([0.9, 0.8, 0.95, 0.7, 1.0, 0.85, 0.6, 0.9, 1.0, 0.95, 0.8])
    plain, share = over(values), over(values, "share")
    odds = np.log(values.mean() / (1 - values.mean()))
    times = stats.t.ppf(0.975, freedom(values - values.mean()))
    reach = times * stats.sem(values) / (values.mean() * (1 - values.mean()))
    assert share.low == pytest.approx(1 / (1 + np.exp(reach - odds)))
    assert share.high == pytest.approx(1 / (1 + np.exp(-reach - odds)))
    assert share.low < plain.low
    assert share.high < plain.high


def test_a_positive_number_is_judged_by_its_logarithm():
    values = np.array([0.1, 0.4, 2.0, 0.3, 0.9, 0.2, 0.5, 1.4, 0.6, 0.7])
    positive, mean, error = over(values, "positive"), values.mean(), stats.sem(values)
    times = stats.t.ppf(0.975, freedom(values - mean))
    assert positive.low == pytest.approx(mean * np.exp(-times * error / mean))
    further = error * lean(values - mean, times)
    assert further > 0
    assert positive.high == pytest.approx(mean * np.exp(times * error / mean) + further)
    far = Units(2, 9, 0).interval(0.01, np.array([-10.0, 12.0]), "positive")
    assert far.low == pytest.approx(0.0, abs=1e-9)
    assert np.isfinite(far.high)
    assert Units(30, 99, 0).interval(0.0, np.zeros(30), "positive").high == 0.0


def test_the_lower_end_of_an_error_is_judged_by_its_square():
    values = np.random.default_rng(4).normal(0.1, 0.05, 20)
    times, mean = stats.t.ppf(0.975, freedom(values - values.mean())), values.mean()
    reach = times * stats.sem(values)
    found = over(values, "error")
    assert found.low == pytest.approx(np.sqrt((mean - reach) ** 2 - reach**2 / 4))
    assert found.high == pytest.approx(mean + reach)
    assert found.low < mean - reach
    assert over(values - 0.08, "error").low == 0.0


@pytest.mark.parametrize(("value", "low"), [(1.49, 0.0), (1.5, 0.0), (1.51, np.sqrt(1.01 * 0.01))])
def test_an_error_reaches_zero_at_two_thirds_of_itself(value, low):
    assert _build_interval(value, 1.0, "error") == (pytest.approx(low), value + 1.0)


def test_the_longer_tail_moves_its_end_alone():
    values = np.random.default_rng(5).exponential(size=25)
    found, turned = over(values), over(-values)
    times, error = stats.t.ppf(0.975, freedom(values - values.mean())), stats.sem(values)
    assert found.low == pytest.approx(values.mean() - times * error)
    assert found.high == pytest.approx(values.mean() + times * error + error * lean(values, times))
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def test_the_tails_of_changes_can_leave_fewer_degrees_of_freedom():
    values = np.r_[np.linspace(-1, 1, 38), -9.0, 9.0]
    effective = np.abs(values).sum() ** 2 / (values**2).sum() - 1
    assert freedom(values) < effective
    reach = stats.t.ppf(0.975, freedom(values)) * stats.sem(values)
    assert over(values).high == pytest.approx(reach)


@pytest.mark.parametrize(
    ("scale", "ends"),
    [
        ("error", (0, 1)),
        ("difference", (-1, 1)),
        ("signed", (-1, 1)),
        ("to_one", (-8.9, 1)),
        ("plain", (-8.9, 9.9)),
    ],
)
def test_ends_stay_in_their_range(scale, ends):
    found = Units(2, 9, 0).interval(0.5, np.array([0.5 - 0.74, 0.5 + 0.74]), scale)
    assert (found.low, found.high) == pytest.approx(ends, abs=0.06)


def test_a_share_at_its_bound_has_the_ends_of_n_of_n():
    for n in (4, 20):
        exact = stats.binomtest(n, n).proportion_ci(0.95, method="exact")
        best = Units(n, 99, 0).interval(1.0, np.ones(n))
        worst = Units(n, 99, 0).interval(0.0, np.zeros(n))
        assert (best.low, best.high) == pytest.approx((exact.low, 1.0), abs=1e-12)
        assert (worst.low, worst.high) == pytest.approx((0.0, 1 - exact.low), abs=1e-12)
    assert best.caution == worst.caution == AT_END
    error = Units(20, 99, 0).interval(0.0, np.zeros(20), "error")
    assert error.high == pytest.approx(1 - exact.low)
    whole = Units(20, 99, 0).interval(1.0, np.ones(20), "error")
    assert (whole.low, whole.high) == (1.0, 1.0)
    flat = Units(20, 99, 0).interval(0.0, np.zeros(20), "difference")
    assert (flat.low, flat.high, flat.caution, flat.excludes_zero) == (0.0, 0.0, AT_END, False)
    inside = Units(20, 99, 0).interval(0.4, np.full(20, 0.4))
    assert (inside.low, inside.high, inside.caution) == (0.4, 0.4, AT_END)
    rounded = Units(20, 99, 0).interval(1.0, np.r_[np.ones(19), 1 - 1e-12])
    assert rounded.low == pytest.approx(exact.low)
    moved = Units(20, 99, 0).interval(1.0, np.r_[np.ones(19), 1 - 1e-6])
    assert moved.low > 0.99


def test_fewer_than_ten_units_call_for_caution():
    values = np.random.default_rng(0).normal(size=ENOUGH)
    assert ENOUGH == 10
    assert over(values).caution is None
    assert over(values[:-1]).caution == FEW
    assert Units(9, 99, 0).interval(1.0, np.ones(9)).caution == FEW


def test_fewer_than_twenty_units_of_a_signed_error_call_for_caution():
    values = np.random.default_rng(0).uniform(-0.1, 0.2, ENOUGH_SIGNED)
    assert ENOUGH_SIGNED == 20
    assert over(values, "signed").caution is None
    assert over(values[:-1], "signed").caution == FEW
    assert over(values[:-1], "difference").caution is None


def test_the_largest_of_several_always_calls_for_caution():
    values = np.random.default_rng(0).uniform(0.2, 0.4, 12)
    assert over(values, "largest").caution == LARGEST
    assert over(values[:9], "largest").caution == FEW
    assert Units(20, 99, 0).interval(0.0, np.zeros(20), "largest").caution == AT_END
    assert (over(values, "largest").low, over(values, "largest").high) == pytest.approx(
        (over(values, "error").low, over(values, "error").high)
    )


def test_a_value_beyond_its_own_percentiles_calls_for_caution():
    units = Units(30, PercentileResamples(201), 0)
    values = np.linspace(0.2, 0.4, 201)
    assert units.interval(0.3, values).caution is None
    assert units.interval(0.1, values).caution == AT_END
    assert units.interval(0.205, values).caution == AT_END
    assert units.interval(0.395, values).caution == AT_END


def test_without_a_unit_that_defines_it_a_number_has_no_interval():
    found = Units(30, 99, 0).interval(0.5, np.r_[np.full(29, 0.5), np.nan])
    assert found == Interval(None, None, 29, 30, 30, None)
    assert not found.excludes_zero
    units = Units(30, PercentileResamples(100), 0)
    drawn = np.r_[np.linspace(0, 1, 95), [np.nan] * 5]
    kept = units.interval(0.5, drawn)
    assert (kept.low, kept.high) == pytest.approx(tuple(np.nanpercentile(drawn, (2.5, 97.5))))
    assert (kept.n_valid, kept.n_resamples) == (95, 100)
    assert units.interval(0.5, np.r_[drawn[:94], [np.nan] * 6]).low is None
    assert units.interval(np.nan, drawn).low is None


def test_percentiles_are_those_of_scipy():
    values = np.random.default_rng(3).gamma(2.0, size=40)
    units = Units(40, PercentileResamples(20_000), 1)
    means = np.concatenate(list(units.weights())) @ values / 40
    ours = units.interval(values.mean(), means, "plain")
    theirs = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(9)
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_methods_have_names():
    assert encode_resample_count(7, "percentile") == encode_resample_count(7, "jackknife") == 7
    assert select_interval_method(encode_resample_count(7, "percentile")) == "percentile"
    assert select_interval_method(encode_resample_count(PercentileResamples(7), "jackknife")) == "jackknife"
    assert {scale: get_difference_scale(scale) for scale in intervals.RANGES} == {
        "share": "difference",
        "error": "difference",
        "largest": "difference",
        "positive": "plain",
        "to_one": "plain",
        "signed": "plain",
        "difference": "plain",
        "plain": "plain",
    }


@pytest.mark.parametrize(
    ("low", "high", "excludes"), [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False), (0.0, 0.1, False)]
)
def test_zero_at_an_end_is_inside(low, high, excludes):
    assert Interval(low, high, 100, 100).excludes_zero is excludes
    assert Interval(-high, -low, 100, 100).excludes_zero is excludes
    assert not Interval(None, None, 0, 100).excludes_zero


@pytest.mark.parametrize(("n", "least", "most"), [(8, 0.92, 0.985), (20, 0.925, 0.975), (60, 0.93, 0.97)])
def test_the_interval_holds_the_mean_as_often_as_it_says(n, least, most):
    rng = np.random.default_rng(n)
    ends = [over(values) for values in rng.normal(size=(1500, n))]
    held = np.mean([one.low <= 0.0 <= one.high for one in ends])
    assert least <= held <= most


@pytest.mark.parametrize(
    ("scale", "value", "ends"),
    [
        ("share", 1.0, (None, 1.0)),
        ("error", 0.9, (0.0, 1.0)),
        ("to_one", 0.9, (None, 1.0)),
        ("difference", 0.9, (-1.0, 1.0)),
    ],
)
def test_no_end_leaves_its_range_by_a_little(scale, value, ends):
    found = Units(2, 9, 0).interval(value, np.array([value - 0.5, value + 0.4]), scale)
    assert found.high == ends[1]
    assert ends[0] is None or found.low == ends[0]


@pytest.mark.parametrize("scale", ["share", "positive"])
def test_at_zero_the_upper_end_lies_as_far_off_as_on_a_plain_scale(scale):
    found = Units(4, 9, 0).interval(0.0, np.array([0.001, 0.0, 0.0, 0.0]), scale)
    # One of four units makes every change, sqrt(3) * 0.001, which leaves one degree of freedom.
    assert found.low == 0.0
    assert found.high == pytest.approx(12.7062047 * np.sqrt(3) * 0.001 / 2, rel=1e-6)


def test_a_change_above_rounding_is_no_steady_number():
    wide = Units(4, 9, 0).interval(0.5, 0.5 + np.array([2e-8, 0, 0, 0]))
    assert wide.low < 0.5 < wide.high
    still = Units(4, 9, 0).interval(0.5, 0.5 + np.array([2e-10, 0, 0, 0]))
    assert (still.low, still.high) == (0.5, 0.5)


def test_items_beyond_a_block_come_one_weighting_at_a_time(monkeypatch):
    monkeypatch.setattr(intervals, "_BLOCK", 1)
    assert [len(part) for part in Units(3, 99, 0).weights()] == [1, 1, 1]


def test_ten_units_are_enough():
    assert ENOUGH == 10
    for n, caution in ((9, FEW), (10, None)):
        assert Units(n, 99, 0).interval(0.5, 0.5 + np.linspace(-0.1, 0.1, n)).caution == caution
    assert Interval(None, None, 0, 0).n_units == 0


def test_a_steady_share_is_bounded_by_the_units_that_hold_its_class():
    units = Units(60, 99, 0)
    for holding, n in ((None, 60), (2, 2), (99, 60)):
        all_right, none = (
            units.interval(1.0, np.ones(60), holding=holding),
            units.interval(0.0, np.zeros(60), holding=holding),
        )
        assert (all_right.low, all_right.high) == (0.025 ** (1 / n), 1.0)
        assert (none.low, none.high) == (0.0, 1 - 0.025 ** (1 / n))
    assert units.interval(0.0, np.zeros(60), holding=0).low is None
