"""Journal: what a run says of each step, as lines of JSON and for TensorBoard."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roadaware.errors import DiskError
from roadaware.scenes.disk import atomic_write, disk_error

LOG = "log.jsonl"
_log = logging.getLogger("roadaware")


def logged(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's log; one that was cut off is left out.

    Args:
        folder: of the run.
    """
    path = folder / LOG
    found = []
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found


class Journal:
    """Writes lines behind those up to a step; a full disk is told once and does not end the run.

    Args:
        folder: of the run; it must exist.
        step: lines of later steps, of a run that was cut off, are taken out.
        tensorboard: also write its event files.

    Raises:
        DiskError: if the log cannot be begun.
    """

    def __init__(self, folder: Path, step: int, *, tensorboard: bool) -> None:
        self.path = folder / LOG
        kept = [line for line in logged(folder) if line["step"] <= step]
        atomic_write(self.path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self._failed = False
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def write(self, step: int, values: Mapping[str, Any], *, scalars: Mapping[str, float]) -> None:
        """Add a line, and numbers to the board.

        Args:
            step: steps done.
            values: of the line, JSON-ready.
            scalars: for the board.
        """
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **values}) + "\n")
            if self._board is not None:
                for name, value in scalars.items():
                    self._board.add_scalar(name, value, step)
        except OSError as error:
            if not self._failed:
                failure: DiskError = disk_error(self.path, 1, error)
                _log.warning("the log is not complete: %s", failure)
            self._failed = True

    def close(self) -> None:
        """Write out what waits."""
        if self._board is not None:
            self._board.close()
