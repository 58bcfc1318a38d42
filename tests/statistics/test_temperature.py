"""The temperature that fits: found again where it was applied, one where there is nothing to mend."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

from roadaware.statistics.calibration import fit_temperature, log_loss


def honest(n: int, labels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and labels drawn from what they say."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, labels)) * 2
    if labels == 1:
        return logits, (rng.random(n) < expit(logits[:, 0])).astype(int)
    said = softmax(logits, axis=1).cumsum(axis=1)
    return logits, np.minimum((rng.random((n, 1)) > said).sum(axis=1), labels - 1)


@pytest.mark.parametrize("labels", [1, 4])
@pytest.mark.parametrize("applied", [0.5, 3.0])
def test_logits_that_were_blown_up_are_brought_back(labels: int, applied: float) -> None:
    logits, truth = honest(3000, labels)
    before = fit_temperature(logits, truth)
    assert before == pytest.approx(1, abs=0.12)
    assert fit_temperature(applied * logits, truth) == pytest.approx(applied * before, rel=1e-4)


def test_no_other_temperature_has_a_smaller_loss() -> None:
    logits, truth = honest(500, 3)
    best = fit_temperature(5 * logits, truth)
    least = log_loss(5 * logits, truth, best)
    assert all(log_loss(5 * logits, truth, best * by) > least for by in (0.5, 0.99, 1.01, 2.0))
    assert least < log_loss(5 * logits, truth)


def test_loss_by_hand() -> None:
    half = -np.log(0.25) / 2 - np.log(0.75) / 2
    assert log_loss([[np.log(3)], [np.log(3)]], [0, 1]) == pytest.approx(half)
    assert log_loss([[np.log(9)], [np.log(9)]], [0, 1], 2.0) == pytest.approx(half)
    passes = [[[np.log(3)]], [[-np.log(3)]]]  # 3/4 and 1/4, on average 1/2
    assert log_loss(passes, [1]) == pytest.approx(np.log(2))


def test_passes_that_agree_are_as_one() -> None:
    logits, truth = honest(200, 1)
    assert fit_temperature(np.stack([logits] * 3), truth) == pytest.approx(fit_temperature(logits, truth))


@pytest.mark.parametrize("applied", [0.3, 2.0, 11.0])
def test_temperature_by_hand(applied: float) -> None:
    """Three of four are right at odds of 3 to 1."""
    assert fit_temperature([[applied * np.log(3)]] * 4, [1, 1, 0, 1]) == pytest.approx(applied, rel=3e-7)


def test_answers_that_are_all_right_cannot_be_too_sure_nor_wrong_ones_too_unsure() -> None:
    right, wrong = (fit_temperature([[0.1], [-0.1]], truth) for truth in ([1, 0], [0, 1]))
    assert (right, wrong) == pytest.approx((0.01, 100.0), rel=1e-5)


@pytest.mark.parametrize(
    ("logits", "truth"),
    [
        ([[0.0]], [0, 1]),
        ([[np.nan]], [0]),
        ([[0.0], [np.inf]], [0, 1]),
        ([[0.0]], [2]),
        ([[0.0], [0.0]], [0, 2]),
        ([[0.0], [0.0]], [-1, 1]),
        ([[0.0], [0.0]], [0, 0.7]),
        (np.zeros((0, 1)), []),
        ([0.0], [0]),
    ],
)
def test_what_does_not_fit_is_refused(logits: list, truth: list) -> None:
    with pytest.raises(ValueError, match=r"should|finite"):
        fit_temperature(logits, truth)
