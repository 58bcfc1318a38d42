"""Processes that work side by side, and end with the one that started them, however that ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from roadaware.errors import UsageError, raise_interrupt


def stop_with_parent() -> None:
    """Let this process end when its parent does, and leave Ctrl-C to the parent.

    To be called in a new process, as the initializer of a pool: workers of a parent that is killed wait for
    work for ever, since each holds both ends of the pipe that it waits at.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    # sys.exit in a thread ends that thread alone.
    os._exit(1)


_DIED = (
    "a process that made scenes died: free some memory or ask for fewer processes "
    "(a script that makes scenes by several needs `if __name__ == '__main__':`)"
)


def run_parallel(make: Callable[[int], None], numbers: Sequence[int], processes: int) -> Generator[int]:
    """Call a function with each number, several at a time; yields the numbers as they are done.

    When one fails, or whoever takes the numbers stops, the others are ended where they are.

    Args:
        make: can be pickled.
        numbers: to call it with, in this order.
        processes: how many at a time.

    Raises:
        UsageError: if a process died.
    """
    crew: dict[Connection, BaseProcess] = {}
    # Reversed: pop takes from the end.
    left = list(reversed(numbers))
    busy: dict[Connection, int] = {}
    try:
        while left and len(crew) < processes:
            line = _start_worker(crew, make)
            busy[line] = left.pop()
            line.send(busy[line])
        while busy:
            ready = wait(list(busy))
            for line in [line for line in busy if line in ready]:
                done = busy.pop(line)
                if (failure := line.recv()) is not None:
                    raise failure
                if left:
                    busy[line] = left.pop()
                    line.send(busy[line])
                yield done
    except (EOFError, BrokenPipeError, ConnectionResetError) as error:
        raise UsageError(_DIED) from error
    finally:
        for line, process in crew.items():
            process.kill()
            process.join()
            line.close()


def _start_worker(crew: dict[Connection, BaseProcess], make: Callable[[int], None]) -> Connection:
    """The line to a new process, which is now in the crew."""
    # A fork would copy locks that threads of this process hold, and wait for them for ever.
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, make), daemon=True)
    process.start()
    # With this copy open, the death of the process would never show as the end of the line.
    there.close()
    crew[here] = process
    return here


def _work(line: Connection, make: Callable[[int], None]) -> None:
    """In a process of the crew: what is asked for, until the line is cut. Ctrl-C is not for it."""
    stop_with_parent()
    while True:
        try:
            number = line.recv()
        except EOFError:
            return
        failure: Exception | None = None
        try:
            make(number)
        except Exception as error:
            raise_interrupt(error)
            failure = error
        line.send(failure)
