"""Thresholds by number and by name."""

from __future__ import annotations

import pytest

from roadaware.errors import UsageError
from roadaware.metrics.detection.config import RANGE, build_thresholds


def test_numbers_rise_and_keep_the_names_they_were_asked_by() -> None:
    found = build_thresholds([1, "0.2", 0.50, "0.2"])
    assert found.values == (0.2, 0.5, 1.0)
    assert found.columns == {"1": (2,), "0.2": (0,), "0.5": (1,)}


def test_the_range_is_ten_thresholds_from_a_half_on() -> None:
    found = build_thresholds([RANGE, 0.75, 0.3])
    assert found.values == (0.3, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
    assert found.columns == {"0.5:0.95": tuple(range(1, 11)), "0.75": (6,), "0.3": (0,)}


@pytest.mark.parametrize("wrong", [0, -0.5, 1.001, "2", "half", float("nan"), "0.5:0.9"])
def test_what_is_no_threshold_is_refused(wrong: float | str) -> None:
    with pytest.raises(UsageError, match=r"a number in \(0, 1\]"):
        build_thresholds([wrong])
