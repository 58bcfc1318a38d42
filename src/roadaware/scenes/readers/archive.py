"""A zip archive as a source: vetted when it is opened, its members read one by one, none unpacked."""

from __future__ import annotations

import hashlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roadaware.errors import InputError
from roadaware.scenes.readers.source import Source, leads_out, shown, too_large, unreadable

MAX_ARCHIVE_BYTES = 4 << 30
_BOMB_RATIO, _BOMB_BYTES = 200, 64 << 20
ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    EOFError,
    RuntimeError,
    ValueError,
    OverflowError,
    OSError,
)
"""What reading a damaged archive raises."""


class ZipSource(Source):
    """A zip archive, its members read one by one and never unpacked to disk."""

    def __init__(self, path: Path, prefix: str = "", shared: _Index | None = None) -> None:
        super().__init__(path, prefix)
        self._index = shared or _index(_open_archive(path))
        self._archive = self._index.archive
        self._stamp = ""

    def at(self, folder: str) -> ZipSource:
        """A folder of the same archive as root."""
        return ZipSource(self.path, f"{self.prefix}{folder}/", self._index)

    def close(self) -> None:
        """Close the archive, for all sources that share it."""
        self._archive.close()

    def entries(self, folder: str = "") -> tuple[list[str], list[str]]:
        """The sorted names right inside a folder: what is no folder, and the folders."""
        files, folders = self._index.tree.get(f"{self.prefix}{folder}".rstrip("/"), (set(), set()))
        return sorted(files), sorted(folders)

    def stamp(self, names: Iterable[str]) -> str:
        """The digest of the whole archive, and of what lies elsewhere."""
        if not self._stamp:
            digest = hashlib.blake2b(digest_size=16)
            try:
                with self.path.open("rb") as stream:
                    while block := stream.read(1 << 20):
                        digest.update(block)
            except OSError as error:
                raise unreadable(error, shown(str(self.path))) from error
            self._stamp = digest.hexdigest()
        lent = [name for name in names if name in self.lent]
        return f"{self._stamp}{self.contents(lent)}" if lent else self._stamp

    def holds(self, name: str) -> bool:
        """Whether the archive has a file of that name."""
        return self.prefix + name in self._index.members

    def _read(self, name: str) -> bytes:
        info = self._index.members.get(self.prefix + name)
        if info is None:
            raise InputError("the archive has no such file", where=self.where(name))
        if info.file_size > self.most_bytes:
            raise InputError(too_large(info.file_size, self.most_bytes), where=self.where(name))
        try:
            with self._archive.open(info) as stream:
                data = stream.read(info.file_size + 1)
        except ZIP_ERRORS as error:
            message = f"the archive is damaged here: {shown(str(error)) or type(error).__name__}"
            raise InputError(message, where=self.where(name), hint="fetch the archive again") from error
        if len(data) != info.file_size:
            message = f"the archive promises {info.file_size} bytes and holds {len(data)}"
            raise InputError(message, where=self.where(name), hint="fetch the archive again")
        return data

    def _head(self, name: str, count: int) -> bytes:
        try:
            with self._archive.open(self._index.members[self.prefix + name]) as stream:
                return stream.read(count)
        except (KeyError, *ZIP_ERRORS) as error:
            raise InputError("cannot be read", where=self.where(name)) from error


@dataclass(frozen=True)
class _Index:
    """What an archive holds, for all sources that share it.

    Args:
        archive: opened and vetted.
        members: files by their whole name.
        tree: folder to the files and folders right inside it; hidden ones are left out.
    """

    archive: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]
    tree: dict[str, tuple[set[str], set[str]]]


def _index(archive: zipfile.ZipFile) -> _Index:
    members = {info.filename: info for info in archive.infolist() if not info.is_dir()}
    return _Index(archive, members, _tree(archive.namelist()))


def _open_archive(path: Path) -> zipfile.ZipFile:
    where = shown(str(path))
    if path.stat().st_size == 0:
        raise InputError("the file is empty; expected a folder or a zip archive", where=where)
    try:
        archive = zipfile.ZipFile(path)
    except ZIP_ERRORS as error:
        message = f"neither a folder nor a whole zip archive: {shown(str(error)) or type(error).__name__}"
        raise InputError(message, where=where, hint="fetch the archive again, or unpack it") from error
    try:
        vet_members(archive.infolist(), where)
    except BaseException:
        archive.close()
        raise
    return archive


def vet_members(members: Sequence[zipfile.ZipInfo], where: str) -> None:
    """Refuse an archive that an honest tool would not have made.

    Args:
        members: all of it.
        where: names the archive in errors.

    Raises:
        InputError: if a member leads out, is a link, encrypted, doubled, packed in an unusual way or a bomb.
    """
    total, packed = sum(m.file_size for m in members), sum(m.compress_size for m in members)
    names: set[str] = set()
    end = 0
    for member in sorted(members, key=lambda m: m.header_offset):
        wrong = _member_fault(member)
        if member.filename in names:
            wrong = "stands in it twice"
        elif member.header_offset < end:
            wrong = "overlaps another member"
        if wrong:
            message = f"the archive is not to be trusted: '{shown(member.filename)}' {wrong}"
            raise InputError(message, where=where, hint="fetch the archive from its publisher")
        names.add(member.filename)
        end = member.header_offset + 30 + member.compress_size
    if total > MAX_ARCHIVE_BYTES or _is_bomb(total, packed):
        raise InputError(f"the archive would unpack to {total} bytes from {packed}", where=where)


def _member_fault(member: zipfile.ZipInfo) -> str:
    if not member.filename:
        return "has no name"
    if leads_out(member.filename):
        return "leads out of it"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "is a link"
    if member.flag_bits & 0x1:
        return "is encrypted"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in an unusual way (only stored and deflated members are read)"
    if _is_bomb(member.file_size, member.compress_size):
        return f"would unpack to {member.file_size} bytes from {member.compress_size}"
    return ""


def _is_bomb(size: int, packed: int) -> bool:
    return size > _BOMB_BYTES and size > _BOMB_RATIO * max(packed, 1)


def _tree(names: Iterable[str]) -> dict[str, tuple[set[str], set[str]]]:
    """Folder to the files and folders right inside it; hidden ones are left out."""
    tree: dict[str, tuple[set[str], set[str]]] = {"": (set(), set())}
    for name in names:
        *parents, last = name.split("/")
        for depth, folder in enumerate(parents):
            if not folder.startswith("."):
                tree.setdefault("/".join(parents[:depth]), (set(), set()))[1].add(folder)
        if last and not last.startswith("."):
            tree.setdefault("/".join(parents), (set(), set()))[0].add(last)
    return tree
