"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


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
