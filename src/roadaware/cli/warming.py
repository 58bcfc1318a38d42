"""Telling of a warm-up, which may take long enough for somebody to wonder why nothing happens."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from roadaware.cli import console

_LONG_S = 1.0
_log = logging.getLogger("roadaware")


@contextmanager
def warming(what: str) -> Iterator[None]:
    """Say when kernels are compiled for a warm-up, and how long it took where that was more than a second.

    Args:
        what: is warmed up, in words.
    """
    begin_s, level = time.monotonic(), _log.level
    if not console.is_quiet():
        _log.setLevel(min(level, logging.INFO))  # a compilation is told of there
    try:
        yield
    finally:
        _log.setLevel(level)
    spent_s = time.monotonic() - begin_s
    if spent_s > _LONG_S or console.verbosity():
        console.note(f"warming up {what} before the first frame: {spent_s:.2f} s")
