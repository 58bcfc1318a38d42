"""Each usual mistake in scores is named, with its evidence; sound scores are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.analysis.doctor import samples as checks
from roadaware.analysis.doctor.diagnosis import Diagnosis

TRUTH = np.repeat([0, 1, 0, 1, 0, 0], 20)
PEOPLE = np.repeat([f"p{k}" for k in range(6)], 20)


def good(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    base = np.repeat(rng.uniform(0.1, 0.3, 6), 20) + 0.5 * TRUTH
    return np.clip(base + rng.normal(0, 0.02, len(TRUTH)), 0, 1)[:, None]


def codes(found: list[Diagnosis]) -> list[str]:
    return [item.code for item in found]


def softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def test_sound_scores_have_no_finding() -> None:
    values = good()
    found = checks.check_column_count(values, "action") + checks.score_scale(values)
    found += checks.check_constant_scores(values) + checks.check_class_order(values, TRUTH)
    assert found + checks.check_row_alignment(values, PEOPLE) == []


@pytest.mark.parametrize(
    ("values", "code", "remedy"),
    [
        (good() * 100, "percent", "100"),
        (good() * 8 - 4, "logits", "sigmoid"),
        (np.tile([-3.0, 2.0, 40.0], (5, 1)), "logits", "softmax"),
        (np.full((5, 3), 0.5), "sums", "softmax"),
    ],
)
def test_the_scale_of_scores(values: np.ndarray, code: str, remedy: str) -> None:
    found = checks.score_scale(values)
    assert codes(found) == [code]
    assert remedy in found[0].remedy


@pytest.mark.parametrize("stray", [1.1, 73.0, -0.2])
def test_a_stray_score_is_named_and_not_taken_for_the_scale(stray: float) -> None:
    values = good()
    values[6] = stray
    (found,) = checks.score_scale(values)
    assert found.code == "scores_outside"
    assert found.says == "1 of 120 scores lie outside [0, 1], in 1 rows."
    assert found.evidence == f"row 7 holds {stray:g}"


def test_stray_scores_among_several_columns() -> None:
    values = softmax(np.random.default_rng(0).normal(size=(40, 12)))
    percent = 100 * values
    values[4, 3], values[9, 0], values[9, 11] = 1.5, -1, 2
    (found,) = checks.score_scale(values)
    assert found.says == "3 of 480 scores lie outside [0, 1], in 2 rows."
    assert found.evidence == "row 5 holds 1.5, row 10 holds -1"
    assert codes(checks.score_scale(percent)) == ["percent"]


@pytest.mark.parametrize(
    ("columns", "task", "remedy"),
    [(2, "action", "second"), (12, "action", "--task risk"), (1, "risk", "--task action"), (5, "risk", "12")],
)
def test_the_number_of_columns(columns: int, task: str, remedy: str) -> None:
    found = checks.check_column_count(np.full((4, columns), 0.1), task)
    assert codes(found) == ["column_count"]
    assert remedy in found[0].remedy


def test_constant_scores() -> None:
    assert codes(checks.check_constant_scores(np.full((10, 1), 0.5))) == ["constant"]


def test_a_reversed_score_says_what_turning_it_would_give() -> None:
    found = checks.check_class_order(1 - good(), TRUTH)
    assert codes(found) == ["reversed"]
    assert found[0].evidence == "AUC 0.000; 1 - score would give 1.000"


def test_a_weak_score_is_not_called_reversed() -> None:
    weak = np.random.default_rng(0).uniform(0, 1, (len(TRUTH), 1))
    assert checks.check_class_order(weak, TRUTH) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda values: values[:, ::-1], "reversed"),
        (lambda values: np.roll(values, 1, axis=1), "moved by one to the left"),
        (lambda values: np.roll(values, -1, axis=1), "moved by one to the right"),
    ],
)
def test_columns_in_another_order(change: object, says: str) -> None:
    truth = np.arange(12).repeat(5)
    values = softmax(4 * np.eye(12)[truth])
    assert checks.check_class_order(values, truth) == []
    found = checks.check_class_order(change(values), truth)  # type: ignore[operator]
    assert codes(found) == ["class_order"]
    assert says in found[0].says


def test_shuffled_rows_are_seen_without_any_truth() -> None:
    values = good()
    shuffled = values[np.random.default_rng(1).permutation(len(values))]
    assert codes(checks.check_row_alignment(shuffled, PEOPLE)) == ["rows_shuffled"]


def test_few_neighbours_say_nothing() -> None:
    values = np.random.default_rng(0).uniform(0, 1, (10, 1))
    assert checks.check_row_alignment(values, np.array(["a"] * 10)) == []
