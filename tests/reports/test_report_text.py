"""Words and numbers of reports: hand-worked cases, and laws over any text."""

from __future__ import annotations

import doctest
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadaware.reports import evaluation, text
from roadaware.reports.text import (
    count,
    inert,
    interval,
    number,
    percent,
    private,
    sentence,
    signed,
    visible,
    words,
)


@pytest.mark.parametrize("module", [text, evaluation])
def test_the_examples_in_docstrings_hold(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted > 0
    assert not found.failed


@pytest.mark.parametrize(
    ("given_text", "seen"),
    [
        ("video_0001", "video_0001"),
        ("Zürich 歩行者", "Zürich 歩行者"),
        ("a\x1b[2J", "a\\x1b[2J"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u2028b", "a\\u2028b"),
        ("a\nb\tc", "a b c"),
        ("\ud800", "\\ud800"),
        ("\ufffe", "\\ufffe"),
        ("\x00", "\\x00"),
    ],
)
def test_what_would_act_is_written_out(given_text: str, seen: str) -> None:
    assert visible(given_text) == seen


@given(st.text(st.characters()))
def test_visible_text_holds_nothing_that_acts(value: str) -> None:
    shown = visible(value)
    assert all(unicodedata.category(c) not in {"Cc", "Cs", "Cn"} for c in shown)
    assert not set(shown) & set(
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u2028\u2029"
    )
    assert visible(shown) == shown
    shown.encode("utf-8")


def test_long_text_is_cut() -> None:
    assert visible("x" * 50, longest=10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("given_text", "seen"),
    [
        ("/home/someone/data/jaad.zip", "…/jaad.zip"),
        ("cannot read /opt/a/b.xml: empty", "cannot read …/b.xml: empty"),
        ("'/srv/x/y'", "'…/y'"),
        (r"C:\Users\someone\x.csv", "…/x.csv"),
        ("set01/video_0001", "set01/video_0001"),
        ("one-way / two-way", "one-way / two-way"),
        ("325/215/1189", "325/215/1189"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
        ("annotations/video_0001.xml:7", "annotations/video_0001.xml:7"),
    ],
)
def test_absolute_paths_lose_their_folders(given_text: str, seen: str) -> None:
    assert private(given_text) == seen
    assert inert(given_text) == seen


def test_numbers_have_fixed_digits_and_true_signs() -> None:
    assert number(0.8548, 2) == "0.85"
    assert number(-0.0004) == "0.000"
    assert number(-0.5) == "−0.500"
    assert number(None) == number(float("nan")) == number(float("inf")) == "–"
    assert signed(0.0004) == "0.000"
    assert signed(0.25) == "+0.250"
    assert [signed(odd) for odd in (None, float("nan"), float("inf"), -float("inf"))] == ["–"] * 4
    assert signed(-0.25) == "−0.250"
    assert interval(0.1, 0.25, 2) == "0.10 to 0.25"
    assert interval(None, 0.2) == "–"
    assert count(391_038) == "391,038"
    assert count(None) == "–"


def test_shares_never_round_to_all_or_nothing() -> None:
    assert percent(399, 769) == "52 %"
    assert percent(0, 10) == "0 %"
    assert percent(10, 10) == "100 %"
    assert percent(1, 391_038) == "under 1 %"
    assert percent(390_000, 391_038) == "over 99 %"
    assert percent(1, 0) == "–"


def test_names_become_words() -> None:
    assert words("soft_balanced_accuracy") == "soft balanced accuracy"
    assert words("weighted_f1") == "weighted F1"
    assert words("auc_thresholded") == "AUC, thresholded"
    assert sentence("boosting wins") == "Boosting wins"
    assert sentence("pf_action_jaad wins") == "Pf_action_jaad wins"
