"""Folders of long work: what was asked for stands in a record, and the same work goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from roadaware import __version__
from roadaware.errors import RoadawareError, UsageError
from roadaware.scenes.disk import atomic_write, disk_error, names_in, read_regular

_LIMIT = 1 << 26


def begin(
    folder: Path, record: str, kind: str, settings: Mapping[str, Any], *, overwrite: bool = False
) -> bool:
    """Make the folder of some work, or see that it holds the same work; whether it goes on.

    Args:
        folder: new, empty, or of the same work.
        record: name of its file in the folder.
        kind: of work, in the record.
        settings: JSON-ready; what the outcome depends on.
        overwrite: begin anew where other settings were.

    Raises:
        UsageError: if it is a file, or holds other things or work with other settings.
        DiskError: if it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder to write into")
    asked = json.loads(json.dumps(dict(settings)))
    try:
        held = names_in(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, 0, error) from error
    found = _read(folder / record) if record in held else {}
    if held and found.get("format") != kind:
        what = f"{folder} holds other things ({', '.join(held[:5])})"
        raise UsageError(f"{what}; name a new or empty folder")
    told = found.get("settings")
    before: dict[str, Any] = told if isinstance(told, dict) else {}
    differ = sorted(name for name in {*before, *asked} if before.get(name) != asked.get(name))
    if held and differ and not overwrite:
        raise UsageError(
            f"{folder} holds work with other settings ({', '.join(differ)}); name another folder, or say "
            "--overwrite to begin anew"
        )
    written = {"format": kind, "version": __version__, "settings": asked}
    atomic_write(folder / record, (json.dumps(written, indent=1) + "\n").encode())
    return bool(held) and not differ and not overwrite


def _read(path: Path) -> dict[str, Any]:
    with suppress(RoadawareError, OSError, ValueError, RecursionError):
        found = json.loads(read_regular(path, limit=_LIMIT))
        if isinstance(found, dict):
            return found
    return {}
