"""Words and numbers of reports: hand-worked cases, and laws over any text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadaware.reports.text import (
    capitalize_text,
    encode_invisible,
    format_count,
    format_interval,
    format_name,
    format_number,
    format_percent,
    format_signed,
    sanitize_text,
    trim_paths,
)


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
    assert encode_invisible(given_text) == seen


@given(st.text(st.characters()))
def test_visible_text_holds_nothing_that_acts(value: str) -> None:
    shown = encode_invisible(value)
    assert all(unicodedata.category(c) not in {"Cc", "Cs", "Cn"} for c in shown)
    assert not set(shown) & set(
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u2028\u2029"
    )
    assert encode_invisible(shown) == shown
    shown.encode("utf-8")


def test_long_text_is_cut() -> None:
    assert encode_invisible("x" * 50, longest=10) == "x" * 9 + "…"


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
    assert trim_paths(given_text) == seen
    assert sanitize_text(given_text) == seen


def test_numbers_have_fixed_digits_and_true_signs() -> None:
    assert format_number(0.8548, 2) == "0.85"
    assert format_number(-0.0004) == "0.000"
    assert format_number(-0.5) == "−0.500"
    assert format_number(None) == format_number(float("nan")) == format_number(float("inf")) == "–"
    assert format_signed(0.0004) == "0.000"
    assert format_signed(0.25) == "+0.250"
    assert [format_signed(odd) for odd in (None, float("nan"), float("inf"), -float("inf"))] == ["–"] * 4
    assert format_signed(-0.25) == "−0.250"
    assert format_interval(0.1, 0.25, 2) == "0.10 to 0.25"
    assert format_interval(None, 0.2) == "–"
    assert format_count(391_038) == "391,038"
    assert format_count(None) == "–"


def test_shares_never_round_to_all_or_nothing() -> None:
    assert format_percent(399, 769) == "52 %"
    assert format_percent(0, 10) == "0 %"
    assert format_percent(10, 10) == "100 %"
    assert format_percent(1, 391_038) == "under 1 %"
    assert format_percent(390_000, 391_038) == "over 99 %"
    assert format_percent(1, 0) == "–"


def test_names_become_words() -> None:
    assert format_name("soft_balanced_accuracy") == "soft balanced accuracy"
    assert format_name("weighted_f1") == "weighted F1"
    assert format_name("auc_thresholded") == "AUC, thresholded"
    assert capitalize_text("boosting wins") == "Boosting wins"
    assert capitalize_text("pf_action_jaad wins") == "Pf_action_jaad wins"
