"""Files and folders that a command writes: whole or absent afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from roadaware.addresses import conceal
from roadaware.errors import DiskError


def json_text(data: Any) -> str:
    """Strict JSON: a value that is not finite is an error, not `NaN`; no text holds a secret of an address.

    Raises:
        ValueError: if a number is not finite.
    """
    return json.dumps(_concealed(data), allow_nan=False, ensure_ascii=True, indent=2) + "\n"


def _concealed(data: Any) -> Any:
    if isinstance(data, str):
        return conceal(data)
    if isinstance(data, dict):
        return {name: _concealed(value) for name, value in data.items()}
    return [_concealed(value) for value in data] if isinstance(data, list | tuple) else data


def write_text(path: Path, text: str) -> None:
    """Write a whole file at once, with the folders above it; a device (`/dev/stderr`) is written to as it is.

    Raises:
        DiskError: if it cannot be written.
    """
    from roadaware.scenes.disk import atomic_write

    if not path.parent.is_dir():
        make_folder(path.absolute().parent)
    atomic_write(path, text.encode("utf-8", errors="backslashreplace"))


def make_folder(path: Path) -> None:
    """Make a folder and those above it.

    Raises:
        DiskError: if that is not possible.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(
            f"{path} could not be made: {error.strerror or error}; choose a folder you can write to"
        ) from error
