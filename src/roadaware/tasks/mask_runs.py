"""Masks of many pictures in a folder, one PNG each, in the form that proposals of corner cases read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.errors import DiskError, InputError, UsageError
from roadaware.scenes.disk import atomic_write, disk_error
from roadaware.scenes.holding import Hold
from roadaware.scenes.mask_files import png
from roadaware.scenes.readers.source import leads_out, shown
from roadaware.tasks.kept_folders import begin

FORMAT, RECORD, CLASSES = "roadaware-masks", "masks.json", "classes.json"
_MOST_LABELS = 1 << 16


class MaskRun:
    """The folder of a run: `VIDEO/000000.png`, ..., `classes.json` (names by number) and `masks.json`.

    A mask that is there and not older than its picture stands; each is written whole or not at all.

    Args:
        folder: new, empty, or of the same run.
        settings: JSON-ready; what the masks depend on.
        labels: names of the classes, by number.
        overwrite: begin anew where another run is.

    Raises:
        UsageError: if the folder holds other things, or a run with other settings.
        InputError: if there are no labels, or more than 16 bits can number.
        DiskError: if it cannot be written to.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], labels: Sequence[str], *, overwrite: bool = False
    ) -> None:
        if not 0 < len(labels) <= _MOST_LABELS:
            raise InputError(f"a mask tells 1 to {_MOST_LABELS} classes apart, not {len(labels)}")
        self.folder, self.labels = folder, tuple(labels)
        self.bits = 8 if len(labels) <= 256 else 16
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        self._hold = Hold(folder)
        goes_on = begin(folder, RECORD, FORMAT, {**settings, "labels": list(labels)}, overwrite=overwrite)
        if not goes_on:
            self._clear()
        atomic_write(folder / CLASSES, (json.dumps(list(labels)) + "\n").encode())

    def _clear(self) -> None:
        """Take away masks of other settings."""
        try:
            for path in self.folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
        except OSError as error:
            raise disk_error(self.folder, 0, error) from error

    def path(self, video: str, frame: int) -> Path:
        """Where the mask of a picture lies.

        Args:
            video: its name.
            frame: counts from 0.

        Raises:
            InputError: if the name leads out of the folder.
        """
        if leads_out(f"{video}/0"):
            raise InputError("the name of the video leads out of the folder", where=shown(video))
        return self.folder / video / f"{frame:06d}.png"

    def stands(self, video: str, frame: int, picture: Path) -> bool:
        """Whether the mask of a picture is there and not older than it.

        Args:
            video: its name.
            frame: counts from 0.
            picture: the file that the picture lies in.
        """
        try:
            found = self.path(video, frame).stat()
            return found.st_size > 0 and found.st_mtime_ns >= picture.stat().st_mtime_ns
        except OSError:
            return False

    def keep(self, video: str, frame: int, mask: npt.NDArray[np.integer[Any]]) -> None:
        """Write a mask.

        Args:
            video: its name.
            frame: counts from 0.
            mask: (H, W) number of the class of each pixel.

        Raises:
            UsageError: if it holds a number without a label.
            DiskError: if the disk refuses.
        """
        if int(mask.max(initial=0)) >= len(self.labels):
            raise UsageError(f"class {int(mask.max())} has no name: there are {len(self.labels)}")
        path = self.path(video, frame)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DiskError(f"{path.parent} could not be made: {error.strerror or error}") from error
        atomic_write(path, png(mask, self.bits))
