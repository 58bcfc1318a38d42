"""Steps of long work: how long each took goes to the log, and how far it is to whoever shows it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

STEP = 21
"""Level of the library's log, just above INFO, for the seconds that a step took."""

Progress = Callable[..., None]
"""Called with (done, total) or (done, total, unit) as work proceeds."""
Display = Callable[[str], AbstractContextManager[Progress]]

_LOG = logging.getLogger("roadaware")


@contextlib.contextmanager
def log_step(what: str) -> Iterator[None]:
    """Log what is being done and how long it took; nothing where it failed."""
    started_s = time.monotonic()
    yield
    _LOG.log(STEP, "%s: %.2f s", what, time.monotonic() - started_s)


@contextlib.contextmanager
def _show_nothing(what: str) -> Iterator[Progress]:
    def ignore(*done: Any) -> None:
        """Nobody looks."""

    yield ignore


_display: Display = _show_nothing


def show_progress(what: str) -> AbstractContextManager[Progress]:
    """The function that a step calls as it proceeds, inside a `with` block; silent where nobody shows it.

    Args:
        what: the step, such as `linking`.
    """
    return _display(what)


def set_progress_display(display: Display) -> None:
    """Let this show how far steps are from now on.

    Args:
        display: opens what shows a step of this name, and gives the function to call.
    """
    global _display
    _display = display
