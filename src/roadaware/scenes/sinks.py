"""Sink: a file that a container writes to, which remembers that the disk refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO


class Sink:
    """A file as a container writes to it: keeps the first failure for `check`, and writes nothing after it.

    The container keeps what is raised for later, and prints what is raised after that.

    Args:
        file: where to.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._failed: OSError | None = None

    def write(self, data: bytes) -> int:
        """Write, as files do."""
        return self._tried(lambda: self._file.write(data), len(data))

    def seek(self, place: int, whence: int = 0) -> int:
        """Go to a place, as files do."""
        return self._tried(lambda: self._file.seek(place, whence), 0)

    def tell(self) -> int:
        """The place, as files do."""
        return self._tried(self._file.tell, 0)

    def check(self) -> None:
        """Nothing, where all was written.

        Raises:
            OSError: the first failure.
        """
        if self._failed is not None:
            raise self._failed

    def _tried(self, act: Callable[[], int], otherwise: int) -> int:
        if self._failed is None:
            try:
                return act()
            except OSError as error:
                self._failed = error
        return otherwise
