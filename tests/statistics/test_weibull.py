"""Weibull densities with a location: scipy's density, the likeliest parameters, and what cannot be fitted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from roadaware.errors import InputError
from roadaware.statistics.distributions import Weibull, fit_weibull


@pytest.mark.parametrize("shape", [0.7, 1.0, 1.5, 8.0])
def test_the_density_is_scipys(shape: float) -> None:
    values = np.array([-3.0, -2.0, -1.999, 0.0, 1.5, 40.0])
    ours = Weibull(shape, 2.5, -2.0).log_density(values)
    theirs = stats.weibull_min.logpdf(values, shape, -2.0, 2.5)
    there = values > -2
    np.testing.assert_allclose(ours[there], theirs[there], rtol=1e-12)
    assert ours[0] == -np.inf


@pytest.mark.parametrize(("shape", "there"), [(0.7, np.inf), (1.0, -np.log(2.5)), (1.5, -np.inf)])
def test_the_density_at_the_location_itself(shape: float, there: float) -> None:
    assert Weibull(shape, 2.5, -2.0).log_density([-2.0])[0] == pytest.approx(there)


def test_far_above_the_density_vanishes_without_a_warning() -> None:
    assert Weibull(50.0, 1.0, 0.0).log_density([1e300])[0] == -np.inf


@pytest.mark.parametrize(
    ("shape", "scale", "location"), [(1.6, 3.0, -5.0), (2.0, 1.0, 0.0), (5.0, 2.0, 10.0)]
)
def test_a_fit_is_as_likely_as_scipys_and_finds_what_was_drawn(
    shape: float, scale: float, location: float
) -> None:
    drawn = stats.weibull_min.rvs(shape, location, scale, size=800, random_state=1)
    fitted = fit_weibull(drawn)
    theirs = stats.weibull_min.logpdf(drawn, *stats.weibull_min.fit(drawn)).sum()
    assert fitted.log_density(drawn).sum() >= theirs - 1e-3
    median = fitted.location + fitted.scale * np.log(2) ** (1 / fitted.shape)
    assert median == pytest.approx(np.median(drawn), abs=0.1 * scale)
    assert fitted.location < drawn.min()


def test_no_other_parameters_nearby_are_likelier() -> None:
    drawn = stats.weibull_min.rvs(2.5, 1.0, 2.0, size=60, random_state=3)
    fitted = fit_weibull(drawn)
    best = fitted.log_density(drawn).sum()
    for shape, scale, shift in np.random.default_rng(0).normal(0, 0.05, (200, 3)):
        other = Weibull(
            max(fitted.shape * (1 + shape), 1), fitted.scale * (1 + scale), fitted.location + shift
        )
        assert other.log_density(drawn).sum() <= best + 1e-6


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("shape", [1.5, 2.5, 6.0])
def test_a_fit_solves_the_likelihood_equations(shape: float, scale: float) -> None:
    """Derivatives by scale, shape and location are 0 (Lawless, section 5.2)."""
    drawn = stats.weibull_min.rvs(shape, 2.0, scale, size=80, random_state=3)
    fitted = fit_weibull(drawn)
    z = (drawn - fitted.location) / fitted.scale
    powers = z**fitted.shape
    assert powers.mean() == pytest.approx(1, rel=1e-9)
    assert (powers * np.log(z)).mean() - np.log(z).mean() == pytest.approx(1 / fitted.shape, rel=1e-9)
    pull = (fitted.shape - 1) * (1 / z).mean()
    assert fitted.shape * (powers / z).mean() == pytest.approx(pull, rel=3e-6)


def test_other_units_give_the_same_fit_in_those_units() -> None:
    drawn = stats.weibull_min.rvs(3.0, 0.0, 1.0, size=100, random_state=5)
    one, other = fit_weibull(drawn), fit_weibull(drawn * 1000 - 7)
    assert other.shape == pytest.approx(one.shape, rel=1e-3)
    assert other.scale == pytest.approx(one.scale * 1000, rel=1e-3)


def test_values_that_crowd_at_their_smallest_are_exponential() -> None:
    drawn = np.random.default_rng(0).exponential(1.0, 300) ** 3
    fitted = fit_weibull(drawn)
    assert fitted.shape == 1.0
    assert fitted.scale == pytest.approx(drawn.mean() - fitted.location)
    assert fitted.location == drawn.min() - 1e-6 * np.ptp(drawn)  # the likelier, the nearer


def test_values_that_crowd_at_their_largest_keep_the_location_within_reach() -> None:
    drawn = -np.random.default_rng(0).exponential(1.0, 300)
    fitted = fit_weibull(drawn)
    assert np.isfinite(fitted.log_density(drawn)).all()
    assert drawn.min() - fitted.location <= 100.001 * np.ptp(drawn)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], "0 values are too few"),
        ([1.0, 2.0, 3.0], "3 values are too few"),
        ([1.0, 2.0, 3.0, np.nan], "1 of 4 values are not finite"),
        ([4.0] * 9, "all 9 values are 4"),
    ],
)
def test_what_cannot_be_fitted_says_why(values: list[float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        fit_weibull(values)


def test_values_nearly_all_at_their_largest_have_the_largest_shape_that_is_looked_for() -> None:
    assert fit_weibull([0.0] + [1.0] * 400).shape == 1e4


@pytest.mark.parametrize("low", [0.0, 0.5, -1e6])
def test_a_billionth_is_no_spread(low: float) -> None:
    least = 1e-9 * max(1.0, abs(low))
    held = np.array([0.0, 1.0, 0.0, 0.0])
    with pytest.raises(InputError, match="needs some spread"):
        fit_weibull(low + 0.99 * least * held)
    assert low - 101 * 1.01 * least <= fit_weibull(low + 1.007 * least * held).location < low
    with pytest.raises(InputError, match="needs some spread"):
        fit_weibull(1e-9 * held)


@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]])
def test_one_value_apart_is_spread_enough(values: list[float]) -> None:
    assert np.isfinite(fit_weibull(values).log_density(values)).all()


@pytest.mark.parametrize("held", [(0.0, 1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, np.inf)])
def test_what_is_no_density_is_refused(held: tuple[float, float, float]) -> None:
    with pytest.raises(InputError, match="finite and above 0"):
        Weibull(*held)
