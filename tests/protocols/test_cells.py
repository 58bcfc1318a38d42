"""Rounding as the paper rounds, tolerance, and verdicts counted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadaware.protocols.iv2024 import STATUSES, Cell, count_verdicts, is_match, round_twice, tolerance


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.8548, 0.86),
        (0.3148, 0.32),
        (0.2791, 0.28),
        (0.845, 0.84),
        (0.8449, 0.84),
        (0.4249, 0.42),
        (1.0, 1.0),
    ],
)
def test_rounding_twice_goes_over_the_third_decimal_and_halves_to_even(value, printed):
    assert round_twice(value) == printed


def test_rounding_to_three_decimals_goes_over_the_fourth():
    assert round_twice(0.45795, 3) == 0.458
    assert round_twice(0.47104, 3) == 0.471


@given(st.floats(0, 1), st.sampled_from([1, 2, 3]))
def test_whatever_is_printed_is_within_the_tolerance(value, digits):
    assert is_match(value, round_twice(value, digits), digits)


@pytest.mark.parametrize(
    ("obtained", "printed", "digits", "expected"),
    [
        (0.866, 0.86, 2, True),
        (0.8661, 0.86, 2, False),
        (0.854, 0.86, 2, True),
        (0.8539, 0.86, 2, False),
        (0.4715, 0.471, 3, True),
        (0.4717, 0.471, 3, False),
    ],
)
def test_the_tolerance_is_inclusive_and_follows_the_digits(obtained, printed, digits, expected):
    assert is_match(obtained, printed, digits) is expected


def test_the_tolerance_in_numbers():
    assert [tolerance(digits) for digits in (1, 2, 3)] == [0.06, 0.006, 0.0006]


def test_a_cell_is_json_and_counts_name_every_verdict():
    cell = Cell("III", "jaad", "action", "PedFormer", "accuracy", None, 0.86, 0.8548, "match")
    fields = json.loads(json.dumps(cell.as_dict()))
    assert fields["as_printed"] == fields["printed"] == 0.86
    assert {"table", "dataset", "model", "metric", "printed", "obtained", "status"} <= set(fields)
    assert count_verdicts([cell, cell]) == {**dict.fromkeys(STATUSES, 0), "match": 2}
