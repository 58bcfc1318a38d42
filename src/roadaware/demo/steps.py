"""A demo under way: its folder, what it is asked, and the steps that it prints."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from roadaware.cli import console
from roadaware.errors import UsageError
from roadaware.io.files import build_disk_error
from roadaware.io.folders import encode_json, is_vacant, read_marker, write_text
from roadaware.reports import terminal

FORMAT = "roadaware-demo"
MARKER = "demo.json"


class Demo:
    """Prints the steps as they are made, so that nobody waits in front of an empty screen.

    Args:
        folder: of the demo.
        draws: resamples of each interval.
        seed: of the demo.
        aloud: whether to print; not where JSON alone is asked for.
    """

    def __init__(self, folder: Path, draws: int, seed: int, *, aloud: bool = True) -> None:
        self.folder, self.draws, self.seed = folder, draws, seed
        self.started_s = time.monotonic()
        self._aloud = aloud
        self._step = 0

    def step(self, title: str, command: str) -> None:
        """A new step, and the command that would do it alone."""
        self._step += 1
        heading = terminal.apply_style(f"{self._step}. {title}", "title")
        self.say(f"{chr(10) * (self._step > 1)}{heading}\n   $ roadaware {terminal.format_cell(command)}")

    def say(self, words: str) -> None:
        """A part of the result."""
        if self._aloud:
            console.print_result(words)

    def write_marker(self, names: Sequence[str]) -> None:
        """Say in a marker what is about to be written, before anything of it is written.

        However the demo ends, the next one finds the marker and knows that these names are its own.

        Args:
            names: the files and folders right in the folder that will be written.

        Raises:
            DiskError: if it cannot be written there.
            UsageError: if something stands there that is not a demo's.
        """
        found = read_marker(self.folder / MARKER, FORMAT)
        if found is None and self.folder.is_dir() and not is_vacant(self.folder):
            raise UsageError(
                f"{self.folder} holds other things (no {MARKER} of a demo); name a new or empty folder with -o"
            )
        listed = found.get("files") if found else None
        ours = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        for name in names:
            if name not in ours and (self.folder / name).exists():
                raise UsageError(
                    f"{self.folder / name} was not written by a demo; move it, or name another folder with -o"
                )
        write_text(self.folder / MARKER, encode_json({"format": FORMAT, "files": sorted({*ours, *names})}))

    def remove_folders(self, names: Sequence[str]) -> None:
        """Remove folders of an earlier demo, which `write_marker` has found to be its own.

        Raises:
            DiskError: if the disk refuses.
        """
        for name in names:
            try:
                if (self.folder / name).exists():
                    shutil.rmtree(self.folder / name)
            except OSError as error:
                raise build_disk_error(self.folder / name, 1, error) from error
