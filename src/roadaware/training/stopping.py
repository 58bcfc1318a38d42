"""Stopping: a signal ends a run behind its step, with everything saved; a second one ends it at once."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


class Stop:
    """The signal that stops the run.

    Args:
        number: of the signal; None while it may go on.
    """

    def __init__(self) -> None:
        self.number: int | None = None

    def __bool__(self) -> bool:
        return self.number is not None


@contextlib.contextmanager
def handle_stop_signals() -> Iterator[Stop]:
    """Within: SIGINT and SIGTERM are noted, and passed on to child processes, instead of ending the process.

    A step takes as long as it takes, and a checkpoint too, so whoever watches the process for signals learns
    nothing of them meanwhile. Outside the main thread signals stay as they are.
    """
    stop = Stop()

    def note(number: int) -> None:
        if stop:
            raise KeyboardInterrupt
        stop.number = number
        if number == signal.SIGTERM:  # a terminal sends Ctrl-C to all of them itself
            for child in multiprocessing.active_children():
                with contextlib.suppress(OSError):
                    os.kill(child.pid or 0, number)

    with handle_signals(note):
        yield stop


@contextlib.contextmanager
def handle_signals(note: Callable[[int], None]) -> Iterator[None]:
    """Within: SIGINT and SIGTERM call `note` with their number, and no other handler is called.

    Outside the main thread signals stay as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def told(number: int, frame: FrameType | None) -> None:
        note(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # Event loops hear of signals by this descriptor.
    wake = signal.set_wakeup_fd(-1)
    for number in before:
        signal.signal(number, told)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wake)
