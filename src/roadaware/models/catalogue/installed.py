"""What of the catalogue is installed, and the one place where a name becomes a path."""

from __future__ import annotations

import difflib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roadaware.errors import DiskError, InputError, UsageError
from roadaware.models.catalogue.entries import Entry, find_entry, read_catalogue
from roadaware.places import cache_folder
from roadaware.scenes.disk import disk_error, names_in, read_regular, temporary_beside

RECORD = "catalogue.json"
"""In the folder of an installed model: where it came from, and what was checked."""
WEIGHTS = "model.safetensors"
_LIMIT = 1 << 20


def models_folder() -> Path:
    """Where installed models lie: `models/` in the cache folder."""
    return cache_folder() / "models"


def installed_folder(entry: Entry) -> Path | None:
    """The folder of an installed model; None where it is not installed.

    Args:
        entry: of the catalogue.
    """
    folder = models_folder() / entry.name
    return folder if read_record(folder) is not None else None


def installed_path(entry: Entry) -> Path | None:
    """What commands open of an installed model: a file of ours, or a folder of transformers.

    Args:
        entry: of the catalogue.
    """
    folder = installed_folder(entry)
    if folder is None:
        return None
    return folder if (folder / "config.json").is_file() else folder / WEIGHTS


def read_record(folder: Path) -> dict[str, Any] | None:
    """What the record of an installed model says; None where there is none.

    Args:
        folder: of the model.
    """
    try:
        found = json.loads(read_regular(folder / RECORD, limit=_LIMIT))
    except (InputError, OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def resolve_weights(given: Path, tasks: Sequence[str] = ()) -> Path:
    """The path of weights that were named on a command line: a path, or a name of the catalogue.

    What exists under the path is meant first; `./NAME` is never a name of the catalogue.

    Args:
        given: as it was typed.
        tasks: what the command can use; none for anything.

    Raises:
        UsageError: if the name is one of the catalogue and not installed, or of a model for something else.
    """
    name = str(given)
    entries = read_catalogue()
    if given.exists() or name not in entries:
        _refuse_typo(given, entries)
        return given
    entry = entries[name]
    if tasks and entry.task not in tasks:
        raise UsageError(
            f"{name} is a model for {entry.task}, and needed is one for {' or '.join(tasks)}; "
            "`roadaware models list` says what each is for"
        )
    found = installed_path(entry)
    if found is None:
        raise UsageError(f"{name} is not installed: `roadaware models get {name}` fetches it")
    return found


def _refuse_typo(given: Path, entries: dict[str, Entry]) -> None:
    """Refuse what is neither there nor a path, and looks like a name of the catalogue."""
    name = str(given)
    if given.exists() or given.suffix or "/" in name:
        return
    near = difflib.get_close_matches(name, entries, n=1)
    if near:
        raise UsageError(f"there is no file or folder {name!r}; did you mean the model '{near[0]}'?")


def remove_model(name: str) -> int:
    """Remove an installed model, whole; the bytes that it took, 0 where it was not there.

    Args:
        name: of the catalogue.

    Raises:
        UsageError: if there is no such name.
        DiskError: if it cannot be removed.
    """
    folder = models_folder() / find_entry(name).name
    if not folder.is_dir():
        return 0
    size = folder_bytes(folder)
    gone = temporary_beside(folder)
    try:
        folder.rename(gone)  # at once: nobody opens half of it
        shutil.rmtree(gone)
    except OSError as error:
        raise DiskError(f"{folder} cannot be removed: {error.strerror}") from error
    return size


def folder_bytes(folder: Path) -> int:
    """Bytes of the files of an installed model.

    Args:
        folder: of the model.
    """
    return sum((folder / name).lstat().st_size for name in names_in(folder))


def replace_folder(made: Path, folder: Path) -> None:
    """Put a whole folder in the place of another, or of nothing.

    Args:
        made: is whole, beside `folder`.
        folder: where it goes.

    Raises:
        DiskError: if the disk refuses.
    """
    old = temporary_beside(folder)
    try:
        if folder.exists():
            folder.rename(old)
        made.rename(folder)
    except OSError as error:
        raise disk_error(folder, 0, error) from error
    shutil.rmtree(old, ignore_errors=True)
