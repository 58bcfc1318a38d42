"""A command that keeps what it has when it is asked to stop: signals are noted instead of ending it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

from roadaware.cli.interrupts import Terminated
from roadaware.training.stopping import signals_to


class Asked:
    """Whether a signal has asked the command to stop.

    Args:
        number: of the signal; None while it may go on.
    """

    def __init__(self) -> None:
        self.number: int | None = None

    def __call__(self) -> bool:
        """Whether one has."""
        return self.number is not None

    def end(self) -> None:
        """End as the signal wants it, once all is saved; nothing where there was none.

        Raises:
            KeyboardInterrupt: after SIGINT.
            Terminated: after SIGTERM.
        """
        if self.number == signal.SIGTERM:
            raise Terminated
        if self.number is not None:
            raise KeyboardInterrupt


@contextlib.contextmanager
def patient() -> Iterator[Asked]:
    """Within: the first SIGINT or SIGTERM is noted, a second one ends the command at once.

    What watches the process for signals, and ends it when it does not follow quickly, is told nothing of the
    first, for saving may take longer. Outside the main thread signals stay as they are.
    """
    asked = Asked()

    def note(number: int) -> None:
        if asked():
            raise KeyboardInterrupt
        asked.number = number

    with signals_to(note):
        yield asked
