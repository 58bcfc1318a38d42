"""Files and folders that a command writes: checked before the work starts, whole or absent afterwards."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from roadaware.addresses import conceal
from roadaware.errors import DiskError, UsageError


def check_file(path: Path | None) -> None:
    """Fail early if a file cannot be written.

    Raises:
        DiskError: if it cannot be written there.
        UsageError: if it is a folder.
    """
    from roadaware.scenes.disk import is_stream

    if path is None or str(path) == "-" or is_stream(path):
        return
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name the file to write in it")
    if path.exists() and not os.access(path, os.W_OK):
        raise DiskError(f"{path} cannot be written (permission denied); choose another path")
    _check_parent(path.absolute().parent, path)


def check_folder(path: Path | None) -> None:
    """Fail early if a folder cannot be made, or not be written to.

    Raises:
        DiskError: if it cannot be written there.
        UsageError: if it is a file.
    """
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; name a folder to write into")
    _check_parent(path.absolute(), path)


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


def _check_parent(folder: Path, target: Path) -> None:
    """The nearest folder that exists must be a folder we can write to."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise DiskError(f"{target} cannot be made: {folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DiskError(f"{target} cannot be made: no permission to write in {folder}")
