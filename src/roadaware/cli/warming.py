"""Telling of a warm-up, which may take long enough for somebody to wonder why nothing happens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from roadaware.cli import console

_LONG_S = 1.0


@contextmanager
def warming(what: str) -> Iterator[None]:
    """Say how long a warm-up took where that was more than a second, and always under -v.

    Args:
        what: is warmed up, in words.
    """
    begin_s = time.monotonic()
    yield
    spent_s = time.monotonic() - begin_s
    if spent_s > _LONG_S or console.verbosity():
        console.note(f"warming up {what} before the first frame: {spent_s:.2f} s")
