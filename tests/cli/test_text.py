"""What is printed: tables that line up, and nothing out of data that can steer a terminal."""

from __future__ import annotations

import copy
import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadaware.errors import InputError, clip_text
from roadaware.reports import terminal


@given(st.text())
def test_no_text_of_a_cell_can_steer_a_terminal(value: str) -> None:
    shown = terminal.format_cell(value)
    assert not [c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160 or "\u202a" <= c <= "\u202e"]


def test_controls_are_written_out() -> None:
    assert terminal.format_cell("a\x1b[2J\tb\nc\u202ed") == "a\\x1b[2J\\tb\\nc\\u202ed"
    assert terminal.encode_invisible("a\n\tb\r\x07") == "a\n\tb\\x0d\\x07"


def test_a_table_lines_up() -> None:
    shown = terminal.format_table(["name", "n"], [("long name", 1), ("x", 100)])
    assert shown.splitlines() == [
        "name         n",
        "---------  ---",
        "long name    1",
        "x          100",
    ]


def test_numbers_and_sizes() -> None:
    assert terminal.format_number(0.12345) == "0.123"
    assert terminal.format_number(None) == "-"
    assert terminal.format_interval(0.1, None) == "-"
    assert terminal.format_interval(0.1, 0.2) == "[0.100, 0.200]"
    assert (
        terminal.format_duration(3.14159),
        terminal.format_duration(12.34),
        terminal.format_duration(75),
    ) == (
        "3.14 s",
        "12.3 s",
        "1 min 15 s",
    )
    assert (
        terminal.format_bytes(12),
        terminal.format_bytes(12_345),
        terminal.format_bytes(2e9),
        terminal.format_bytes(5e12),
    ) == (
        "12 bytes",
        "12.3 kB",
        "2.0 GB",
        "5.0 TB",
    )


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("variable", ["NO_COLOR", "CI"])
def test_styles_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    for name in ("NO_COLOR", "CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdout", _Terminal())
    assert terminal.apply_style("bad", "bad") == "\x1b[31mbad\x1b[0m"
    monkeypatch.setenv(variable, "1")
    assert terminal.apply_style("bad", "bad") == "bad"
    monkeypatch.delenv(variable)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal.apply_style("bad", "bad") == "bad"


def test_paragraphs_are_joined_and_examples_keep_their_lines() -> None:
    doc = """First line
    goes on.

    For example:

        a \\
            b

    Parameters
    ----------
    x: nothing
    """
    assert terminal.format_paragraphs(doc) == "First line goes on.\n\nFor example:\n\n    a \\\n        b"


@pytest.mark.parametrize("size", [0, 1, 1999, 2000, 2001, 5000, 10**6])
def test_a_long_message_keeps_how_it_begins_and_how_it_ends(size: int) -> None:
    message = "begin " + "x" * size + " end"
    shown = clip_text(message, terminal.MESSAGE)
    assert len(shown) <= terminal.MESSAGE
    assert (shown == message) == (len(message) <= terminal.MESSAGE)
    assert shown.startswith("begin ")
    assert shown.endswith(" end")


def test_an_error_about_a_file_is_never_longer_than_a_paragraph() -> None:
    error = InputError("it is not whole: " + "x" * 5000, where="here.npz", hint="copy it again")
    assert len(str(error)) < 1100
    assert str(error).startswith("here.npz: it is not whole: x")
    assert str(error).endswith("copy it again")
    assert str(copy.copy(error)) == str(error)


def test_a_cell_is_never_longer_than_a_line_or_two() -> None:
    assert len(terminal.format_cell("x" * 100_000)) < 600
    assert max(map(len, terminal.format_table(["a"], [["y" * 100_000], ["z"]]).splitlines())) < 600
