"""Where a fit stands, kept in a file, so that one that was ended goes on; imports torch."""

from __future__ import annotations

import io
import logging
import time
from pathlib import Path
from typing import Any

import torch

from roadaware.errors import DiskError, InputError
from roadaware.models.tensor_files import read_pickled
from roadaware.scenes.disk import atomic_write
from roadaware.training.stopping import Stop

_log = logging.getLogger("roadaware")
_FORMAT = "roadaware-fit-1"
_EVERY_S = 30.0
_SHARE = 0.05
"""Of the time that saving may take, where weights are many."""


class StoppedFitError(Exception):
    """A signal has asked the fit to end, and it is saved as far as it came."""


class Keeper:
    """Keeps a fit every half minute and when it is to stop.

    Args:
        path: the file; its folder must exist. None keeps nothing.
        stop: says when the fit is to stop.
        every_s: seconds between two saves, more where saving takes long.
    """

    def __init__(self, path: Path | None = None, stop: Stop | None = None, every_s: float = _EVERY_S) -> None:
        self.path, self.stop, self.every_s = path, Stop() if stop is None else stop, every_s
        self._next = time.monotonic() + every_s

    @property
    def due(self) -> bool:
        """Whether the fit is to be saved, or to stop."""
        return bool(self.stop) or (self.path is not None and time.monotonic() >= self._next)

    def save(self, state: dict[str, Any]) -> None:
        """Write where the fit stands; a disk that is full is told, and what stood there before still stands.

        Args:
            state: tensors and plain data.

        Raises:
            StoppedFitError: afterwards, if it is to stop.
        """
        if self.path is not None:
            began = time.monotonic()
            file = io.BytesIO()
            torch.save({"format": _FORMAT, **state}, file)
            try:
                atomic_write(self.path, file.getvalue())
            except DiskError as error:
                _log.warning("where the fit stands is not saved: %s", error)
            now = time.monotonic()
            self._next = now + max(self.every_s, (now - began) / _SHARE)
        if self.stop:
            raise StoppedFitError

    def open(self, of: dict[str, Any]) -> dict[str, Any] | None:
        """What was saved; None, with a warning where there is something, if the fit has to begin anew.

        Args:
            of: what the saved state must say of its data under `of`.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            state = read_pickled(self.path)
        except InputError:
            state = None
        if isinstance(state, dict) and state.get("format") == _FORMAT and state.get("of") == of:
            return state
        _log.warning("%s is not whole, or of other data; its fit begins anew", self.path)
        return None

    def remove(self) -> None:
        """The fit is over."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
