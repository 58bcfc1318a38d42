"""Metrics of when equal plain loops over pairs and moments, and laws hold where worked cases end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_counts import tried
from roadaware.errors import InputError
from roadaware.metrics.time_to_event import (
    TimedMoments,
    brier_terms,
    calibration_error,
    calibration_in_time,
    count_concordant,
    integrate_brier,
    kaplan_meier,
    measure_warnings,
    read_warning_time,
)


def draw(seed: int, n: int, m: int = 4) -> TimedMoments:
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0, 1, (n, m))
    survival = np.cumprod(1 - steps / 2, axis=1)
    # Times on a grid, so that some are equal.
    times = rng.integers(0, 8, n) / 2
    return TimedMoments(times, rng.random(n) < 0.6, survival, np.arange(1.0, m + 1), rng.integers(0, 4, n))


def plain_pairs(risk: np.ndarray, time: np.ndarray, event: np.ndarray) -> tuple[float, float]:
    right = pairs = 0.0
    for i in range(len(risk)):
        for j in range(len(risk)):
            if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
                pairs += 1
                right += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    return right, pairs


def plain_survival(time: np.ndarray, event: np.ndarray, at: float, *, before: bool = False) -> float:
    share = 1.0
    for t in sorted(set(time.tolist())):
        if t < at or (t == at and not before):
            left = sum(time >= t)
            share *= 1 - sum((time == t) & event) / left
    return share


@tried(40)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 25))
def test_concordance_is_that_of_all_pairs(seed: int, n: int) -> None:
    held = draw(seed, n)
    risk = np.round(held.risk, 1)
    right, pairs = plain_pairs(risk, held.time_s, held.event)
    concordant, comparable = count_concordant(risk, held.time_s, held.event, held.unit, 4)
    assert concordant.sum() == pytest.approx(right)
    assert comparable.sum() == pytest.approx(pairs)
    some = held.unit == 2
    assert concordant[2, 2] == pytest.approx(plain_pairs(risk[some], held.time_s[some], held.event[some])[0])


@tried(40)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 25))
def test_survival_and_brier_are_those_of_their_sums(seed: int, n: int) -> None:
    held = draw(seed, n)
    for before in (False, True):
        found = kaplan_meier(held.time_s, held.event, held.horizon_s, before=before)
        plain = [plain_survival(held.time_s, held.event, at, before=before) for at in held.horizon_s]
        assert found == pytest.approx(plain)
    terms = brier_terms(held)
    censored = ~held.event
    for i in range(n):
        for k, at in enumerate(held.horizon_s):
            if held.event[i] and held.time_s[i] <= at:
                share = plain_survival(held.time_s, censored, held.time_s[i], before=True)
                wanted = held.survival[i, k] ** 2 / share
            elif held.time_s[i] > at:
                wanted = (1 - held.survival[i, k]) ** 2 / plain_survival(held.time_s, censored, at)
            else:
                wanted = 0.0
            assert terms[i, k] == pytest.approx(wanted)


def test_without_censoring_brier_is_the_mean_square() -> None:
    held = draw(1, 50)
    all_seen = TimedMoments(held.time_s, np.ones(50, bool), held.survival, held.horizon_s, held.unit)
    alive = held.time_s[:, None] > held.horizon_s
    assert brier_terms(all_seen).mean(axis=0) == pytest.approx(((alive - held.survival) ** 2).mean(axis=0))
    assert integrate_brier(np.array([[0.0, 1.0, 1.0]]), np.array([1.0, 2.0, 3.0])) == pytest.approx([0.75])


def concordance(held: TimedMoments) -> float:
    """The share of comparable pairs whose earlier event has the larger risk."""
    alone = np.zeros(len(held.risk), dtype=np.int64)
    concordant, comparable = count_concordant(held.risk, held.time_s, held.event, alone, 1)
    return float(concordant.item() / comparable.item())


def test_who_knows_when_is_best_and_who_does_not_is_the_prior() -> None:
    times = np.linspace(0.1, 4, 60)
    horizon = np.arange(0.5, 4, 0.5)
    knows = (times[:, None] > horizon).astype(float)
    every = np.ones(60, dtype=bool)
    best = TimedMoments(times, every, knows, horizon, np.arange(60))
    assert brier_terms(best).max() == 0
    # Risks of equal steps are equal: a half for each such pair.
    assert concordance(best) > 0.9
    prior = np.tile(kaplan_meier(times, every, horizon), (60, 1))
    flat = TimedMoments(times, every, prior, horizon, np.arange(60))
    assert concordance(flat) == 0.5
    curve = calibration_in_time(flat, bins=1)
    assert calibration_error(curve) == pytest.approx(np.zeros(len(horizon)), abs=1e-9)
    assert curve[:, 0, 2].tolist() == [60] * len(horizon)


def test_moments_that_are_none_are_refused() -> None:
    good = draw(0, 5)
    for wrong in (
        {"event": good.event[:4]},
        {"survival": good.survival[:, :2]},
        {"survival": good.survival[:, ::-1]},
        {"survival": good.survival + 0.5},
        {"time_s": good.time_s - 9},
        {"time_s": good.time_s * np.nan},
        {"horizon_s": good.horizon_s[::-1].copy()},
    ):
        with pytest.raises(InputError):
            TimedMoments(**{**vars(good), **wrong})


def test_warnings_are_counted_by_hand() -> None:
    """One who crosses at 9 s, warned of from 6 s on, with an early alarm that went out; one who never does."""
    score = np.array([0.9, 0.2, 0.2, 0.6, 0.8, 0.1, 0.7, 0.7, 0.1, 0.65, 0.1, 0.1])
    t_s = np.array([0.0, 1.0, 5.0, 6.0, 6.4, 6.7, 7.0, 8.8, 0.0, 1.0, 2.0, 3.0])
    unit = np.array([0] * 8 + [1] * 4)
    event = np.array([9.0, np.nan])
    thresholds = np.array([0.95, 0.75, 0.62, 0.05])
    curve = measure_warnings(score, t_s, unit, event, 0.5, thresholds=thresholds, hold_s=0.6)
    # At .75 the alarm at 0 s is false, that at 6.4 s is out before the event; at .62 it is on from 8.8 s alone.
    assert curve.false_per_hour.tolist() == [0, 2, 4, 12]
    assert curve.warned.tolist() == [0, 0, 1, 1]
    assert curve.warning_s == pytest.approx([0, 0, 0.2, 0.2])
    long = measure_warnings(score, t_s, unit, event, 0.5, thresholds=thresholds, hold_s=2.0)
    assert long.warning_s == pytest.approx([0, 0, 2.6, 4.0])
    assert read_warning_time(curve, 1.0)[1:] == (0.0, 0.0, 0.0)
    assert read_warning_time(long, 4.0) == pytest.approx((0.05, 4.0, 1.0, 4.0))
    nobody = measure_warnings(score[8:], t_s[8:], unit[8:] - 1, np.array([np.nan]), 1.0)
    assert np.isnan(nobody.warned).all()
    assert len(measure_warnings(score[:0], t_s[:0], unit[:0], np.zeros(0), 1.0).threshold) == 0


def test_a_rising_score_warns_longer_at_a_lower_threshold() -> None:
    t_s = np.tile(np.arange(0, 5, 0.1), 20)
    unit = np.repeat(np.arange(20), 50)
    score = t_s / 5
    curve = measure_warnings(score, t_s, unit, np.full(20, 5.0), 1.0)
    assert (np.diff(curve.warning_s) >= -1e-9).all()
    assert curve.false_per_hour.max() == 0
