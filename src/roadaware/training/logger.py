"""Logger: losses and times of each step as lines of JSON and for TensorBoard."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roadaware.errors import DiskError
from roadaware.io.files import build_disk_error, write_atomically

LOG, TIMING = "log.jsonl", "timing.jsonl"
"""What a step came to, the same for each run of a recipe; and what its time was, which never is."""
_log = logging.getLogger("roadaware")


def read_log(folder: Path, name: str = LOG) -> list[dict[str, Any]]:
    """The lines of a run's log; one that was cut off is left out.

    Args:
        folder: of the run.
        name: of the log; default: that of losses and metrics.
    """
    path = folder / name
    found = []
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found


class Journal:
    """Writes lines behind those up to a step; a full disk is reported once and does not end the run.

    `seconds` is how long the steps took that are behind it.

    Args:
        folder: of the run; it must exist.
        step: lines of later steps, of a run that was cut off, are taken out.
        tensorboard: also write its event files.

    Raises:
        DiskError: if the log cannot be begun.
    """

    def __init__(self, folder: Path, step: int, *, tensorboard: bool) -> None:
        self.folder = folder
        for name in (LOG, TIMING):
            kept = [line for line in read_log(folder, name) if line["step"] <= step]
            write_atomically(folder / name, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self.seconds = float(kept[-1].get("seconds", 0.0)) if kept else 0.0
        self._failed = False
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def write(
        self,
        step: int,
        values: Mapping[str, Any],
        timing: Mapping[str, float],
        *,
        scalars: Mapping[str, float],
    ) -> None:
        """Add a line to both logs, and numbers to the board.

        Args:
            step: steps done.
            values: of the line, JSON-ready.
            timing: what the clock says of it.
            scalars: for the board.
        """
        try:
            for name, line in ((LOG, values), (TIMING, timing)):
                with (self.folder / name).open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"step": step, **line}) + "\n")
            if self._board is not None:
                for name, value in scalars.items():
                    self._board.add_scalar(name, value, step)
        except OSError as error:
            if not self._failed:
                failure: DiskError = build_disk_error(self.folder / LOG, 1, error)
                _log.warning("the log is not complete: %s", failure)
            self._failed = True

    def close(self) -> None:
        """Write out buffered lines."""
        if self._board is not None:
            self._board.close()
