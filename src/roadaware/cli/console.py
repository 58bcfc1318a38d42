"""Where words go: results to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from roadaware.addresses import mask_secrets
from roadaware.errors import NOTE, clip_text
from roadaware.reports.terminal import MESSAGE, encode_invisible
from roadaware.steps import STEP, set_progress_display
from roadaware.steps import log_step as log_step

# In a log file every line stays: few of them are enough.
_EVERY_S = 5.0


class _State:
    """How loud the current command is."""

    quiet = False
    verbosity = 0
    said = frozenset[str]()


def configure(*, quiet: bool, verbosity: int) -> None:
    """Set the loudness, and send the library's log to standard error."""
    _State.quiet, _State.verbosity, _State.said = quiet, verbosity, frozenset()
    logger = logging.getLogger("roadaware")
    for handler in [h for h in logger.handlers if isinstance(h, _Handler)]:
        logger.removeHandler(handler)
    logger.addHandler(_Handler())
    levels = {0: NOTE, 1: logging.INFO}
    logger.setLevel(logging.ERROR if quiet else levels.get(verbosity, logging.DEBUG))
    set_progress_display(show_progress)


def configure_streams() -> None:
    """Make the standard streams write what they cannot encode as escapes (LANG=C) instead of failing.

    A standard output that is closed (`>&-`) becomes a pipe that nobody reads, a closed standard error
    the null device: so no file that is opened later takes their place.
    """
    # Descriptor 0 is taken, or else the next file that is opened would be standard input.
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    if sys.stdout is None:
        # Standard output as it is when its reader has gone
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
        os.close(writer)
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def print_result(text: str, *, concealed: bool = False) -> None:
    """Results, for standard output.

    The text is ours, with the styles we gave it; texts of data files went through `text.format_cell` or `encode_invisible`.

    Args:
        text: to write.
        concealed: secrets of addresses were already taken out of it.
    """
    text = text if concealed else mask_secrets(text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def print_note(text: str) -> None:
    """What is going on, for standard error; silent under --quiet."""
    if not _State.quiet:
        _to_stderr(text)


def print_error(text: str) -> None:
    """What went wrong, for standard error, --quiet or not."""
    _to_stderr(text)


def print_warning(text: str) -> None:
    """What users should know, --quiet or not; once in a command, however many videos it holds for."""
    if text not in _State.said:
        _State.said |= {text}
        _to_stderr(text)


def print_trace(text: str) -> None:
    """Where in the program something went wrong, whole, for those who asked for it."""
    _write_to_stderr(encode_invisible(mask_secrets(text)))


def get_verbosity() -> int:
    """0, or how many times -v was given."""
    return _State.verbosity


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _State.quiet


def is_terminal() -> bool:
    """Whether a line on standard error can be written over again."""
    return _bars_wanted()


@contextlib.contextmanager
def show_progress(what: str) -> Iterator[Progress]:
    """Show how far a step is: a bar on a terminal, a line now and then elsewhere, nothing under --quiet."""
    shown = Progress(what)
    try:
        yield shown
    finally:
        shown.close()


class Progress:
    """Called with (done, total) or (done, total, unit) as work proceeds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._bar: Any = None
        self._task: Any = None
        self._last_s = time.monotonic()

    def __call__(self, done: int, total: int, unit: str = "") -> None:
        """Show that `done` of `total` items are finished."""
        if _State.quiet:
            return
        if _bars_wanted():
            self._move(done, total)
        elif time.monotonic() - self._last_s >= _EVERY_S:
            self._last_s = time.monotonic()
            _to_stderr(f"{self._what}: {done} of {total} {unit}".rstrip())

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _move(self, done: int, total: int) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(encode_invisible(self._what), total=total)
        self._bar.update(self._task, completed=done, total=total)


class _Handler(logging.Handler):
    """The library's log, one line each, on whatever standard error is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = "" if record.levelno in (NOTE, STEP) else f"{record.levelname.lower()}: "
        _to_stderr(f"{kind}{record.getMessage()}")


def _bars_wanted() -> bool:
    return sys.stderr.isatty() and not os.environ.get("CI") and not os.environ.get("TQDM_DISABLE")


def _to_stderr(text: str) -> None:
    """Every message goes through here: nothing in it steers the terminal, and none fills it."""
    _write_to_stderr(clip_text(encode_invisible(mask_secrets(text)), MESSAGE))


def _write_to_stderr(text: str) -> None:
    # A standard error that is gone must not turn a finished job into a failed one.
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
