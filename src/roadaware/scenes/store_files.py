"""Sets too large for memory: Parquet files that were written elsewhere become a saved set of Predictions."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from roadaware.errors import UsageError
from roadaware.scenes.disk import disk_error, put, sync_folder
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.store import FORMAT, VERSION, Part, content_digest
from roadaware.scenes.tables import Meta

_META = "meta.json"
_CHUNK = 1 << 22


def adopt(folder: Path, meta: Meta, files: Mapping[str, tuple[Path, int]]) -> None:
    """Make a saved set of files that lie in its folder under temporary names; `open_predictions` reads it.

    The laws of the tables are checked when it is opened, not here.

    Args:
        folder: without a set.
        meta: of the set.
        files: table to its file in the folder and its rows.

    Raises:
        UsageError: if a set stands there already.
        DiskError: if the disk refuses; there is no set then.
    """
    if (folder / _META).exists():
        raise UsageError(f"{folder} holds a saved set already; name another folder")
    try:
        parts = {table: _named(folder, table, *files[table]) for table in files}
        content = {
            "format": FORMAT,
            "version": VERSION,
            "kind": Predictions.__name__,
            "meta": asdict(meta),
            "tables": {table: asdict(part) for table, part in parts.items()},
        }
        text = json.dumps({**content, "blake2b": content_digest(content)}, indent=1, allow_nan=False)
        sync_folder(folder)
        put(folder / _META, text.encode())
        sync_folder(folder)
    except OSError as error:
        raise disk_error(folder / _META, 1, error) from error


def _named(folder: Path, table: str, path: Path, rows: int) -> Part:
    """The file under the name that its content gives it, flushed to the disk."""
    digest, size = hashlib.blake2b(digest_size=32), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
        os.fsync(file.fileno())
    found = digest.hexdigest()
    part = Part(f"{table}-{found[:16]}.parquet", rows, size, found)
    path.replace(folder / part.file)
    return part
