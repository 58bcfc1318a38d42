"""A process that has everything imported and forks one that runs a command, for each line it is given.

The first line names modules to import. Orders and answers are lines of JSON. An order is {"words", "cwd",
"env", "at", "signal"}: the words of a command, where it runs, and at which of its steps at the file system
(from 1 on; 0: at none) which signal meets it.
The answers are the number of its process, then how it ended and how many steps it took.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import mmap
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
_SHARED = struct.Struct("qdd")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Steps:
    """Counts what a process does at the file system below some folders; a signal meets it before one step.

    Args:
        below: the folders.
        shared: what the starter of the process sees, too: steps so far, and when the signal was sent, in
            seconds of the clock and of the process.
        at: which step; 0 for none.
        number: of the signal.
    """

    def __init__(self, below: tuple[str, ...], shared: mmap.mmap, at: int, number: int) -> None:
        self.below, self.shared, self.at, self.number, self.count = below, shared, at, number, 0
        self.sent = (0.0, 0.0)

    def watch(self) -> None:
        """Begin to count."""
        sys.addaudithook(self._heard)
        for name in ("fsync", "write"):
            setattr(os, name, self._counted(getattr(os, name)))

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            written = flags & _WRITES if isinstance(flags, int) else set(str(mode)) & set("wax+")
        elif event in STEPS:
            path, written = arguments[0], True
        else:
            return
        if written and isinstance(path, str | bytes | os.PathLike):
            place = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - links stay links
            if place.startswith(self.below):
                self._step()

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(handle: int, *arguments: Any) -> Any:
            if handle > 2:
                self._step()
            return call(handle, *arguments)

        return wrapped

    def _step(self) -> None:
        self.count += 1
        if self.count == self.at:
            self.sent = (time.monotonic(), time.process_time())
        _SHARED.pack_into(self.shared, 0, self.count, *self.sent)
        if self.count == self.at:
            os.kill(os.getpid(), self.number)


def _command(order: dict[str, Any], shared: mmap.mmap) -> None:
    """In the new process: run the command and end as `roadaware` does."""
    os.setsid()
    os.chdir(order["cwd"])
    os.environ.update(order["env"])
    for stream, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        flags = os.O_RDONLY if stream == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        handle = os.open(name if stream == 0 else f"../{name}", flags, 0o600)
        os.dup2(handle, stream)
        os.close(handle)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    sys.argv = ["roadaware", *order["words"]]
    below = (str(Path.cwd()), os.environ["ROADAWARE_HOME"], os.environ["TMPDIR"])
    Steps(below, shared, order["at"], order["signal"]).watch()
    from roadaware.cli import main

    code = main()
    (Path(os.environ["TMPDIR"]).parent / "modules").write_text("\n".join(sys.modules))
    sys.exit(code)


def _answer(**said: Any) -> None:
    print(json.dumps(said), flush=True)


def refuse_threads() -> None:
    """No fork takes threads along; those that tidy up behind polars need not come.

    Raises:
        AssertionError: if there are others.
    """
    names = [(each / "comm").read_text().strip() for each in Path("/proc/self/task").iterdir()]
    left = [name for name in names if not name.startswith(("jemalloc_bg", "polars-ooc"))]
    assert len(left) == 1, f"a process with threads cannot be forked: {left}"


def serve() -> None:
    """Run what is ordered until nobody orders any more."""
    shared = mmap.mmap(-1, _SHARED.size)
    _answer(ready=os.getpid())
    for line in sys.stdin:
        order = json.loads(line)
        shared[:] = bytes(_SHARED.size)
        process = os.fork()
        if process == 0:
            _command(order, shared)
        _answer(process=process)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _, status = os.waitpid(process, 0)
        ended_s, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        steps, *sent = _SHARED.unpack(shared)
        code = os.waitstatus_to_exitcode(status)
        _answer(code=code, ended_s=ended_s, cpu_s=cpu_s, steps=steps, sent=sent)


if __name__ == "__main__":
    for module in sys.stdin.readline().split():  # before the fork: no process imports them again
        if module.partition(".")[0] == "onnxruntime":  # begins a thread as it is imported
            continue
        with contextlib.suppress(Exception):  # some are only there once others have made them
            importlib.import_module(module)
    gc.freeze()
    refuse_threads()
    serve()
