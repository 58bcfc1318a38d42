"""Ctrl-C and SIGTERM: they end a process within two seconds, its workers with it, or are noted until all is saved."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

from roadaware.errors import Terminated

# Leaves time to end workers within the two seconds that are promised.
_GRACE_S = 1.2
# Long enough to be out of the callback in which nothing can be raised.
_AGAIN_S = 0.02


@contextlib.contextmanager
def handle_interrupts() -> Iterator[None]:
    """Within: SIGINT raises KeyboardInterrupt, SIGTERM raises Terminated, and a deaf process is ended.

    Python runs signal handlers between two bytecodes of the main thread only. A thread that waits on the
    wake-up descriptor hears the signal at once, and ends the process when the main thread has not come
    back by itself, as inside a long call into compiled code or a wait for workers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard, wake = socket.socketpair()
    # Python refuses a wake-up descriptor that could block its signal handler.
    wake.setblocking(False)
    finished = threading.Event()
    watchdog = threading.Thread(target=_watch, args=(heard, finished), name="interrupts", daemon=True)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hook = sys.unraisablehook
    sys.unraisablehook = partial(_send_again, hook)
    old_wake = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)
    watchdog.start()
    try:
        yield
    finally:
        finished.set()
        sys.unraisablehook = hook
        signal.set_wakeup_fd(old_wake)
        for number, handler in before.items():
            signal.signal(number, handler)
        wake.close()
        watchdog.join()
        heard.close()


@contextlib.contextmanager
def postpone_interrupts() -> Iterator[None]:
    """Within: SIGINT and SIGTERM wait for the end of the block, as while a process starts.

    Handlers are exchanged instead of signals being blocked, which new processes would inherit. Outside the main thread
    signals stay as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # What is no function raises nothing here: the signal is ignored, or ends the process.
    before = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


def stop_children() -> None:
    """Kill the worker processes that are still there."""
    for child in multiprocessing.active_children():
        child.kill()


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _send_again(usual: Callable[[sys.UnraisableHookArgs], Any], lost: sys.UnraisableHookArgs) -> None:
    """Send a signal again that met Python where nothing can be raised, as in a weak reference."""
    numbers: dict[type, int] = {KeyboardInterrupt: signal.SIGINT, Terminated: signal.SIGTERM}
    number = numbers.get(lost.exc_type)
    if number is None:
        usual(lost)
        return
    # Not from here: its handler would raise in this function, where Python would drop it once more.
    timer = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))
    timer.daemon = True
    timer.start()


def _watch(heard: socket.socket, finished: threading.Event) -> None:
    """Wait for a signal; give the main thread its grace, then end the process. An empty read means: done."""
    received = heard.recv(1)
    while received and received[0] not in (signal.SIGINT, signal.SIGTERM):
        received = heard.recv(1)
    if received and not finished.wait(_GRACE_S):
        stop_children()
        # As shells number a process that a signal has ended; sys.exit would end this thread alone.
        os._exit(128 + received[0])


# Work that keeps what it has when it is asked to stop: signals are noted instead of ending it.


class Stop:
    """Whether a signal has asked to stop: true, and called it returns True, once one has.

    Args:
        number: of the signal; None while it may go on.
    """

    def __init__(self) -> None:
        self.number: int | None = None

    def __bool__(self) -> bool:
        return self.number is not None

    def __call__(self) -> bool:
        """Whether one has."""
        return bool(self)

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
def stop_gracefully(*, children: bool = False) -> Iterator[Stop]:
    """Within: the first SIGINT or SIGTERM is noted, a second one ends the process at once.

    A step takes as long as it takes, and saving too, so what watches the process for signals, and ends it when
    it does not follow quickly, learns nothing of the first. Outside the main thread signals stay as they are.

    Args:
        children: whether SIGTERM is passed on to child processes; a terminal sends Ctrl-C to all of them itself.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        if stop:
            raise KeyboardInterrupt
        stop.number = number
        if children and number == signal.SIGTERM:
            for child in multiprocessing.active_children():
                with contextlib.suppress(OSError):
                    os.kill(child.pid or 0, number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # Event loops hear of signals by this descriptor.
    wake = signal.set_wakeup_fd(-1)
    for number in before:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wake)
