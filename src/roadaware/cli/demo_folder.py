"""The demo's folder: what in it is the demo's, so that the next one may start over."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from roadaware.cli.folders import marked, vacant
from roadaware.cli.output import json_text, write_text
from roadaware.errors import UsageError
from roadaware.scenes.disk import disk_error

FORMAT = "roadaware-demo"
MARKER = "demo.json"


def claim(folder: Path, names: Sequence[str]) -> None:
    """Say in a marker what the demo is about to write, before anything of it is written.

    However the demo ends, the next one finds the marker and knows that these names are its own.

    Args:
        folder: where the demo goes: new, empty, or that of an earlier demo.
        names: the files and folders right in it that will be written.

    Raises:
        DiskError: if it cannot be written there.
        UsageError: if something stands there that is not a demo's.
    """
    found = marked(folder / MARKER, FORMAT)
    if found is None and folder.is_dir() and not vacant(folder):
        raise UsageError(
            f"{folder} holds other things (no {MARKER} of a demo); name a new or empty folder with -o"
        )
    listed = found.get("files") if found else None
    ours = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    for name in names:
        if name not in ours and (folder / name).exists():
            raise UsageError(
                f"{folder / name} was not written by a demo; move it, or name another folder with -o"
            )
    write_text(folder / MARKER, json_text({"format": FORMAT, "files": sorted({*ours, *names})}))


def clear(folder: Path, names: Sequence[str]) -> None:
    """Remove folders of an earlier demo, which `claim` has found to be its own.

    Args:
        folder: of the demo.
        names: folders right in it.

    Raises:
        DiskError: if the disk refuses.
    """
    for name in names:
        try:
            if (folder / name).exists():
                shutil.rmtree(folder / name)
        except OSError as error:
            raise disk_error(folder / name, 1, error) from error
