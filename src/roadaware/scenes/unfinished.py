"""Unfinished: a file that grows piece by piece under a temporary name and gets its own once it is whole."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from roadaware.errors import DiskError
from roadaware.scenes.disk import disk_error, sweep, sync_folder, temporary_beside


class Unfinished:
    """A file being written; a crash at any moment leaves what stood under its name before.

    Args:
        path: what it is called in the end; its folder must exist. A link is followed.

    Raises:
        DiskError: if no file can be made there.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.path = Path(path).resolve()
            self._temporary = temporary_beside(self.path)
            handle = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except (OSError, RuntimeError, ValueError) as error:
            raise disk_error(Path(path), 1, error) from error
        with suppress(OSError):  # the lock tells other machines' and containers' sweeps that we live
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.file: BinaryIO = os.fdopen(handle, "w+b")

    def finish(self) -> None:
        """Flush the file to the disk and give it its name.

        Raises:
            DiskError: if that fails; what stood there before still stands.
        """
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
            self._temporary.replace(self.path)
            sync_folder(self.path.parent)
        except (OSError, ValueError) as error:
            failure = self.failure(error)
            self.abandon()
            raise failure from error
        self.file.close()
        with suppress(OSError):
            sweep(self.path.parent)

    def abandon(self) -> None:
        """Remove what was written; nothing happens to a file that is finished."""
        with suppress(OSError, ValueError):
            self.file.close()
        with suppress(OSError):
            self._temporary.unlink()

    def failure(self, error: Exception) -> DiskError:
        """What the system said about a write, for people."""
        return disk_error(self.path, 1, error)


class Growing:
    """Base of writers of one `Unfinished` file: `close` keeps it, an exception inside `with` removes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def close(self) -> None:
        """Complete the file and give it its name."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Remove what was written."""
        raise NotImplementedError
