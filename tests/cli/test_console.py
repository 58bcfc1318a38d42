"""Words on standard error: bars for terminals, lines for logs, silence under --quiet."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from roadaware import steps
from roadaware.cli import console, main


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "TQDM_DISABLE"):
        monkeypatch.delenv(name, raising=False)


def work(what: str = "reading") -> None:
    with console.show_progress(what) as progress:
        for done in range(1, 4):
            progress(done, 3, "videos")


def test_a_terminal_gets_a_bar_and_its_cursor_back(monkeypatch: pytest.MonkeyPatch) -> None:
    console.configure(quiet=False, verbosity=0)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    work("reading\x1b]0;title\x07")
    assert "reading" in stream.getvalue()
    assert "\x1b]0;" not in stream.getvalue()
    assert stream.getvalue().rfind("\x1b[?25h") > stream.getvalue().rfind("\x1b[?25l")


@pytest.mark.parametrize("variable", ["CI", "TQDM_DISABLE"])
def test_no_bar_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    console.configure(quiet=False, verbosity=0)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setenv(variable, "1")
    work()
    assert stream.getvalue() == ""


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    console.configure(quiet=False, verbosity=0)
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    monkeypatch.setattr(console, "_EVERY_S", 0.0)
    work()
    assert stream.getvalue().splitlines() == [f"reading: {done} of 3 videos" for done in (1, 2, 3)]


def test_quiet_is_quiet_but_errors_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    console.configure(quiet=True, verbosity=0)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    work()
    console.print_note("by the way")
    logging.getLogger("roadaware").warning("hm")
    assert stream.getvalue() == ""
    console.print_error("no")
    assert stream.getvalue() == "no\n"


def test_the_log_is_one_escaped_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    console.configure(quiet=False, verbosity=0)
    console.configure(quiet=False, verbosity=0)
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    logging.getLogger("roadaware.scenes").warning("odd name %s", "\x1b[2J")
    logging.getLogger("roadaware.scenes").info("detail")
    assert stream.getvalue() == "warning: odd name \\x1b[2J\n"


def test_every_message_is_bounded_and_escaped_whoever_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    console.configure(quiet=False, verbosity=0)
    long = "begin \x1b[2J" + "x" * 10_000 + " end"
    for speak in (console.print_note, console.print_error, logging.getLogger("roadaware.any").warning):
        speak(long)
    console.print_trace(long)
    *bounded, trace = said.getvalue().splitlines()
    assert [len(line) < 2100 for line in bounded] == [True] * 3
    assert all("\\x1b[2J" in line and "left out" in line and line.endswith(" end") for line in bounded)
    assert len(trace) > 10_000
    assert "\x1b" not in trace


def test_a_closed_standard_error_does_not_fail_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    console.configure(quiet=False, verbosity=0)
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    console.print_note("nobody hears this")


def test_a_wait_for_kernels_is_told_once_and_not_to_the_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    from roadaware.geometry.compiled import _Announcer

    told = []
    for quiet in (False, True):
        console.configure(quiet=quiet, verbosity=0)
        monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
        announcer = _Announcer()
        for _ in range(3):
            announcer.on_start(None)
        told.append(stream.getvalue().splitlines())
    assert len(told[0]) == 1
    assert told[0][0].startswith("compiling kernels, which takes some seconds")
    assert told[1] == []


def test_a_call_is_no_louder_for_the_one_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", "jaad", "there-is-none", "-vv"]) == 3
    assert "Traceback" in capsys.readouterr().err
    assert main(["read", "jaad", "there-is-none", "--no-such-option"]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("verbosity", [0, 1])
def test_steps_of_the_library_are_shown_as_the_command_line_shows_its_own(
    monkeypatch: pytest.MonkeyPatch, verbosity: int
) -> None:
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    monkeypatch.setattr(console, "_EVERY_S", 0.0)
    console.configure(quiet=False, verbosity=verbosity)
    with steps.show_progress("linking") as progress, steps.log_step("judging"):
        progress(1, 2, "videos")
    first, *others = stream.getvalue().splitlines()
    assert first == "linking: 1 of 2 videos"
    assert [line.partition(":")[0] for line in others] == ["judging"] * verbosity


def test_steps_are_silent_where_nobody_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_display", steps._show_nothing)
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with steps.show_progress("linking") as progress:
        progress(1, 2)
    assert stream.getvalue() == ""
