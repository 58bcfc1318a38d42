"""Energies of logits, by hand, and the share of the unknown that two densities give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from roadaware.corner_cases.scorers import (
    NEUTRAL,
    EnergyConfig,
    EnergyModel,
    compute_energy,
    convert_to_logits,
    fit_energies,
)
from roadaware.errors import InputError, UsageError
from roadaware.statistics.distributions import Weibull

SOFTMAX = EnergyConfig.reference()


def test_energies_are_those_of_the_equations() -> None:
    logits, heat = [[2.0, -1.0, 0.5]], 1.5
    summed = -heat * math.log(sum(math.exp(x / heat) for x in logits[0]))
    each = -heat * sum(math.log(1 + math.exp(x / heat)) for x in logits[0])
    assert compute_energy(logits, SOFTMAX)[0] == pytest.approx(summed)
    assert compute_energy(logits)[0] == pytest.approx(each)
    assert EnergyConfig.reference().temperature == 1.5


def test_one_sigmoid_is_a_softmax_with_nothing_else_at_zero() -> None:
    logits = np.array([[-3.0], [0.0], [4.0]])
    both = np.column_stack([np.zeros(3), logits])
    np.testing.assert_allclose(compute_energy(logits), compute_energy(both, SOFTMAX))


@pytest.mark.parametrize("form", ["softplus", "logsumexp"])
def test_whatever_a_detector_is_surer_of_has_less_energy_and_large_logits_do_no_harm(form) -> None:
    config = EnergyConfig(form, 1.0)
    found = compute_energy([[-900.0, -900], [-2, -2], [0, -2], [5, -2], [900, 900]], config)
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()


def test_scores_become_their_logits_and_certain_ones_stay_finite() -> None:
    found = convert_to_logits([[0.5, 0.2], [1.0, 0.0]])
    np.testing.assert_allclose(found[0], [0, math.log(0.25)])
    assert np.isfinite(found).all()
    assert found[1, 0] == pytest.approx(-found[1, 1])


def test_the_share_is_that_of_two_densities() -> None:
    known, unknown = Weibull(2.0, 3.0, 1.0), Weibull(1.5, 1.0, 0.0)
    model = EnergyModel(known, unknown, EnergyConfig())
    heights = np.array([0.5, 1.5, 3.0, 6.0])
    p_known, p_unknown = (stats.weibull_min.pdf(heights, *each) for each in ((2, 1, 3), (1.5, 0, 1)))
    np.testing.assert_allclose(model.unknown_share(-heights), p_unknown / (p_known + p_unknown))
    assert model.unknown_share([-0.5])[0] == 1.0, "no known object has been as unlike all classes"


def test_beyond_both_densities_the_nearer_one_goes_on() -> None:
    model = EnergyModel(Weibull(2.0, 3.0, 1.0), Weibull(1.5, 1.0, 0.5), EnergyConfig())
    assert model.unknown_share([3.0, 0.0, -0.501, -1e9]).tolist() == [1.0, 1.0, 1.0, 1.0]
    turned = EnergyModel(model.unknown, model.known, EnergyConfig())
    assert turned.unknown_share([3.0, 0.0, -0.501, -1e9]).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert EnergyModel(model.known, model.known, model.config).unknown_share([-2.0])[0] == NEUTRAL


def test_kinds_that_differ_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    known, unknown = -rng.weibull(3, 400) * 4 - 3, -rng.weibull(2, 400)
    model = fit_energies(known, unknown, EnergyConfig())
    assert model.unknown_share(known).mean() < 0.1 < 0.9 < model.unknown_share(unknown).mean()


@pytest.mark.parametrize(
    ("logits", "config", "told"),
    [
        ([[0.0, np.nan], [1.0, 2.0]], EnergyConfig(), "1 of 2 boxes have a logit that is not finite"),
        ([[0.0, np.inf]], SOFTMAX, "not finite"),
        ([[1.0], [2.0]], SOFTMAX, "one class alone"),
        (np.zeros((3, 0)), EnergyConfig(), "at least one class"),
    ],
)
def test_logits_that_are_none_are_refused(logits, config, told) -> None:
    with pytest.raises(InputError, match=told):
        compute_energy(logits, config)


@pytest.mark.parametrize(
    ("known", "unknown", "told"),
    [
        ([1.0, 2, 3, 4, 5], [1.0, 2], "2 unknown objects have a detection, too few"),
        ([], [1.0, 2, 3, 4], "0 known objects"),
        ([2.0] * 8, [1.0, 2, 3, 4], "energies of known objects: all 8 values are -2"),
    ],
)
def test_too_little_to_fit_says_of_which_kind(known, unknown, told) -> None:
    with pytest.raises(InputError, match=told):
        fit_energies(known, unknown, EnergyConfig())


def test_scores_that_hold_no_energy_are_refused() -> None:
    with pytest.raises(InputError, match="sum to 1, as after a softmax"):
        convert_to_logits([[0.25, 0.75], [0.5, 0.5]])
    with pytest.raises(InputError, match="lie in 0 to 1"):
        convert_to_logits([[0.25, 1.75]])
    with pytest.raises(InputError, match="lie in 0 to 1"):
        convert_to_logits([[0.25, np.nan]])


def test_a_config_is_checked() -> None:
    with pytest.raises(UsageError, match="temperature"):
        EnergyConfig(temperature=0)
    with pytest.raises(UsageError, match="softplus or logsumexp"):
        EnergyConfig("softmax")  # type: ignore[arg-type]
