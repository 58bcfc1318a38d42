"""Resumable run folders: a record holds the request, and the same request continues where it stopped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from roadaware import __version__
from roadaware.errors import DiskError, InputError, RoadawareError, UsageError
from roadaware.io.files import build_disk_error, list_folder_names, read_regular, write_atomically
from roadaware.io.folders import Hold
from roadaware.io.images import encode_png
from roadaware.io.sources import is_outside, to_printable
from roadaware.tasks.videos import Film, iterate_batches

if TYPE_CHECKING:
    from roadaware.models.segmenters import Segmenter

_LIMIT = 1 << 26


def open_run_folder(
    folder: Path, record: str, kind: str, settings: Mapping[str, Any], *, overwrite: bool = False
) -> tuple[Hold, bool]:
    """Make a run folder, or check that it holds the same request; the hold on it, and whether it continues.

    Args:
        folder: new, empty, or of the same work.
        record: name of its file in the folder.
        kind: of work, in the record.
        settings: JSON-ready; what the outcome depends on.
        overwrite: begin anew where other settings were.

    Raises:
        UsageError: if it is a file, holds other things or work with other settings, or another process is at
            work in it.
        DiskError: if it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder to write into")
    # As it will be read back: tuples have become lists.
    asked = json.loads(json.dumps(dict(settings)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        hold, held = Hold(folder), list_folder_names(folder)
    except OSError as error:
        raise build_disk_error(folder, 0, error) from error
    found = _read(folder / record) if record in held else {}
    if held and found.get("format") != kind:
        what = f"{folder} holds other things ({', '.join(held[:5])})"
        raise UsageError(f"{what}; name a new or empty folder")
    recorded = found.get("settings")
    before: dict[str, Any] = recorded if isinstance(recorded, dict) else {}
    differ = sorted(name for name in {*before, *asked} if before.get(name) != asked.get(name))
    if held and differ and not overwrite:
        raise UsageError(
            f"{folder} holds work with other settings ({', '.join(differ)}); name another folder, or say "
            "--overwrite to begin anew"
        )
    written = {"format": kind, "version": __version__, "settings": asked}
    write_atomically(folder / record, (json.dumps(written, indent=1) + "\n").encode())
    return hold, bool(held) and not differ and not overwrite


def _read(path: Path) -> dict[str, Any]:
    with suppress(RoadawareError, OSError, ValueError, RecursionError):
        found = json.loads(read_regular(path, limit=_LIMIT))
        if isinstance(found, dict):
            return found
    return {}


# Masks of many images in a folder, one PNG each, in the form that proposals of corner cases read.

FORMAT, RECORD, CLASSES = "roadaware-masks", "masks.json", "classes.json"
_MOST_LABELS = 1 << 16


class MaskRun:
    """The folder of a run: `VIDEO/000000.png`, ..., `classes.json` (names by number) and `masks.json`.

    A mask that is there and not older than its image stands; each is written whole or not at all. What was
    done so far: masks `written`, those that were there `before`, images that are `gone` with the reason, and
    the `pixels` of each class that were written.

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
        self.written = self.before = 0
        self.gone: list[str] = []
        self.pixels = np.zeros(len(labels), dtype=np.int64)
        settings = {**settings, "labels": list(labels)}
        self._hold, goes_on = open_run_folder(folder, RECORD, FORMAT, settings, overwrite=overwrite)
        if not goes_on:
            self._clear()
        write_atomically(folder / CLASSES, (json.dumps(list(labels)) + "\n").encode())

    def _clear(self) -> None:
        """Take away masks of other settings."""
        try:
            for path in self.folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
        except OSError as error:
            raise build_disk_error(self.folder, 0, error) from error

    def segment(
        self,
        segmenter: Segmenter,
        films: Sequence[Film],
        *,
        batch: int = 1,
        progress: Callable[[int, int, str], None] = lambda done, total, unit: None,
    ) -> None:
        """Write the masks that are not there yet.

        Args:
            segmenter: that looks.
            films: whose images are to have masks.
            batch: images that are looked at together.
            progress: called with the images done and the total.

        Raises:
            DiskError: if the disk refuses.
        """
        total = sum(len(film.frames) for film in films)
        for film in films:
            whole = None if film.is_pictures else Path(film.path)
            due = [n for n in film.frames if not self.stands(film.video, n, whole or film.picture(n))]
            self.before += len(film.frames) - len(due)
            for frames, images in iterate_batches(
                film, due, batch, lambda shot: self.gone.append(shot.fault)
            ):
                for frame, mask in zip(frames, segmenter.segment(images), strict=True):
                    self.keep(film.video, frame, mask)
                    self.pixels += np.bincount(mask.ravel(), minlength=len(self.labels))
                    self.written += 1
                progress(self.written + self.before + len(self.gone), total, "pictures")

    def path(self, video: str, frame: int) -> Path:
        """Path of the mask of an image.

        Args:
            video: its name.
            frame: counts from 0.

        Raises:
            InputError: if the name leads out of the folder.
        """
        if is_outside(f"{video}/0"):
            raise InputError("the name of the video leads out of the folder", where=to_printable(video))
        return self.folder / video / f"{frame:06d}.png"

    def stands(self, video: str, frame: int, image: Path) -> bool:
        """Whether the mask of an image is there and not older than it.

        Args:
            video: its name.
            frame: counts from 0.
            image: the file that the image lies in.
        """
        try:
            found = self.path(video, frame).stat()
            return found.st_size > 0 and found.st_mtime_ns >= image.stat().st_mtime_ns
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
        write_atomically(path, encode_png(mask, self.bits))
