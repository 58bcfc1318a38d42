"""Folders and archives of a few files, for tests of sources."""

from __future__ import annotations

import zipfile
from pathlib import Path


def small_folder(root: Path) -> Path:
    """Three files on three levels, and a hidden one."""
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "one.xml").write_bytes(b"<one/>")
    (root / "a" / "b" / "two.xml").write_bytes(b"<two/>")
    (root / "a" / ".hidden.xml").write_bytes(b"no")
    (root / "top.txt").write_bytes(b"text")
    return root


def packed(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def as_zip(folder: Path, prefix: str = "") -> Path:
    files = [path for path in folder.rglob("*") if path.is_file()]
    members = {prefix + path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return packed(folder.parent / "set.zip", members)
