"""Folders and archives of a few files, for tests of sources."""

from __future__ import annotations

import zipfile
from pathlib import Path


def packed(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def as_zip(folder: Path, prefix: str = "") -> Path:
    files = [path for path in folder.rglob("*") if path.is_file()]
    members = {prefix + path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return packed(folder.parent / "set.zip", members)
