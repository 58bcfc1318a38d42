"""Holding: a folder that a long work writes into belongs to one process, until that ends in whatever way."""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roadaware.errors import UsageError

# Reentrant: garbage collection may run a finalizer in the thread that holds it.
_guard = threading.RLock()


@dataclass
class _Lock:
    """An open folder that is locked, and how many hold it in the thread that did so."""

    handle: int
    thread: int
    holders: int = 0


_locks: dict[str, _Lock] = {}


class Hold:
    """A lock on a folder, held until `release` or the end of this object.

    The folder itself is locked, so that nothing is left in it, and a process that was killed holds nothing.
    Where the file system has no locks, work goes on without one. One thread may hold a folder several times.

    Args:
        folder: if it is not there, or none, nothing is held: whoever writes into it says what is wrong.

    Raises:
        UsageError: if somebody else holds it; says which process, and since when it runs.
    """

    def __init__(self, folder: Path) -> None:
        self._end: Callable[[], Any] = weakref.finalize(self, lambda: None)
        name = os.path.realpath(folder)
        with _guard:
            lock = _locks.get(name)
            # A flock belongs to the open folder: another thread opens its own, and so is refused.
            if lock is None or lock.thread != threading.get_ident():
                try:
                    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                except OSError:
                    return
                try:
                    _take(handle, folder)
                except BaseException:
                    os.close(handle)
                    raise
                lock = _locks[name] = _Lock(handle, threading.get_ident())
            lock.holders += 1
        self._end = weakref.finalize(self, _release, name)

    def release(self) -> None:
        """Let go of the folder; once is enough."""
        self._end()


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Context manager: holds the folder's lock against other processes and threads.

    Args:
        folder: is made where it is not there; where work fails and it is still empty, it is taken away.

    Raises:
        UsageError: as of `Hold`.
    """
    made = not folder.exists()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    hold = Hold(folder)
    try:
        yield
    except BaseException:
        if made:
            with suppress(OSError):
                folder.rmdir()
        raise
    finally:
        hold.release()


def _release(name: str) -> None:
    with _guard:
        lock = _locks[name]
        lock.holders -= 1
        if not lock.holders:
            os.close(_locks.pop(name).handle)


def _take(handle: int, folder: Path) -> None:
    """Lock an open folder.

    Raises:
        UsageError: if it is locked already.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{folder} is being written to by {_holder(handle)}. Wait until it ends, stop it, or name "
            "another folder"
        ) from None
    except OSError:
        return


def _holder(handle: int) -> str:
    """Who has locked an open folder, as far as the system tells."""
    status = os.fstat(handle)
    # As /proc/locks writes it: device in hexadecimal, inode in decimal digits.
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5] == place and int(words[4]) > 0:
                return f"process {words[4]}{_since(int(words[4]))}"
    return "another process"


def _since(process: int) -> str:
    """Since when a process runs."""
    with suppress(OSError, ValueError, IndexError):
        # The name of the command may hold blanks and brackets: fields count from its last bracket.
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        up = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        ran_s = up - int(fields[19]) / os.sysconf("SC_CLK_TCK")
        began = datetime.fromtimestamp(datetime.now(tz=UTC).timestamp() - ran_s, tz=UTC)
        return f", which runs since {began:%Y-%m-%d %H:%M:%S} UTC"
    return ""
