"""Where a dataset lies, seen one way: its files by name, read whole, bounded in size and confined to it."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from roadaware.errors import InputError

MAX_FILE_BYTES = 1 << 28
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str, limit: int = 200) -> str:
    """The text fit for a message: control, direction and broken characters escaped, long ones cut."""
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def leads_out(name: str) -> bool:
    """Whether a name is absolute, names a drive, or climbs out of its folder."""
    plain = name.replace("\\", "/")
    return plain.startswith("/") or ".." in plain.split("/") or plain[1:2] == ":" or "\0" in plain


def confine(root: Path, name: str) -> Path:
    """The real path of `name` inside `root`.

    Args:
        root: a resolved folder.
        name: a relative name with `/` between its parts, as data may give it.

    Raises:
        InputError: if the name is absolute, climbs out, names a drive, or a link on its way leaves the root
            or runs in a circle; or if nothing is there.
    """
    where = f"{shown(str(root))}: {shown(name)}"
    if leads_out(name):
        raise InputError("the name leads out of the dataset's folder", where=where)
    try:
        real = Path(os.path.realpath(root / name, strict=True))
    except (OSError, ValueError) as error:
        raise unreadable(error, where) from error
    if not real.is_relative_to(root):
        hint = "copy the file into the folder, or point at the folder that really holds it"
        raise InputError("a link leads out of the dataset's folder", where=where, hint=hint)
    return real


class Source(ABC):
    """Where a dataset lies; every name is relative to it, with `/` between its parts.

    Args:
        path: the resolved folder or archive.
        prefix: the folder inside it that counts as the root, empty or ending with `/`.
    """

    most_bytes = MAX_FILE_BYTES
    """The largest file that is read; a reader of larger ones sets it for its source."""

    def __init__(self, path: Path, prefix: str = "") -> None:
        self.path, self.prefix = path, prefix
        self.digests: dict[str, str] = {}
        self.glimpsed: dict[str, tuple[int, int] | str] = {}
        self.lent: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of what is open."""

    def where(self, name: str) -> str:
        """The name for messages: the dataset's path and the file in it."""
        return f"{shown(str(self.path))}: {shown(self.prefix + name)}"

    def read(self, name: str) -> bytes:
        """The whole content of one file; its digest is kept in `digests`.

        Raises:
            InputError: if it is no regular file, too large, unreadable, damaged or changing.
        """
        data = read_file(Path(name), most=self.most_bytes) if name in self.lent else self._read(name)
        self.digests[name] = digest(data)
        return data

    def head(self, name: str, count: int) -> bytes:
        """The first bytes of one file, which has no part in `digests`; none of a file that cannot be read.

        Args:
            name: of the file.
            count: of bytes, fewer where the file is shorter.
        """
        try:
            return self.beginning(name, count)
        except InputError:
            return b""

    def beginning(self, name: str, count: int) -> bytes:
        """As `head`, of a file that should be readable if it is there.

        Raises:
            InputError: if it cannot be read.
        """
        try:
            return self._head(name, count)
        except (OSError, ValueError) as error:
            raise unreadable(error, self.where(name)) from error

    def lend(self, path: Path) -> str:
        """The name under which a file that the user named elsewhere is read as one of the dataset's own."""
        name = os.path.realpath(path)
        self.lent.add(name)
        return name

    def contents(self, names: Iterable[str]) -> str:
        """A digest of the content of the named files; those already read are not read again."""
        for name in (names := sorted(names)):
            if name not in self.digests:
                try:
                    self.read(name)
                except InputError:
                    self.digests[name] = "unreadable"
        return digest(repr([(name, self.digests[name]) for name in names]).encode())

    @abstractmethod
    def at(self, folder: str) -> Source:
        """The same source with a folder inside it as root."""

    @abstractmethod
    def entries(self, folder: str = "") -> tuple[list[str], list[str]]:
        """The sorted names right inside a folder: what is no folder, and the folders; no hidden ones.

        Raises:
            InputError: if the folder cannot be listed.
        """

    @abstractmethod
    def stamp(self, names: Iterable[str]) -> str:
        """What changes when a file does, without reading contents where the system can tell."""

    @abstractmethod
    def holds(self, name: str) -> bool:
        """Whether something of that name is there, readable or not."""

    @abstractmethod
    def _read(self, name: str) -> bytes: ...

    def _head(self, name: str, count: int) -> bytes:
        return self._read(name)[:count]

    def files(self, folder: str, suffix: str = "") -> list[str]:
        """Names (from the root) of what lies in a folder and ends with the suffix; no folder, no names.

        A folder or device with a fitting name is listed too: reading it then says what is wrong.
        """
        base = folder.rstrip("/")
        if not self.has_folder(base):
            return []
        files, folders = self.entries(base)
        found = files + [name for name in folders if suffix]
        return [f"{base}/{name}" if base else name for name in sorted(found) if name.endswith(suffix)]

    def has_folder(self, folder: str) -> bool:
        """Whether there is a folder of that name."""
        if not folder:
            return True
        parent, _, name = folder.rpartition("/")
        return self.has_folder(parent) and name in self.entries(parent)[1]


class FolderSource(Source):
    """A folder on disk."""

    def where(self, name: str) -> str:
        """The file's path, for messages."""
        return shown(str(self.path / name))

    def close(self) -> None:
        """Nothing is held open."""

    def at(self, folder: str) -> FolderSource:
        """A folder inside this one as root."""
        return FolderSource(confine(self.path, folder))

    def entries(self, folder: str = "") -> tuple[list[str], list[str]]:
        """The sorted names right inside a folder: what is no folder, and the folders."""
        path = confine(self.path, folder) if folder else self.path
        files: list[str] = []
        folders: list[str] = []
        try:
            with os.scandir(path) as found:
                for entry in found:
                    if not entry.name.startswith("."):
                        (folders if _is_folder(entry) else files).append(entry.name)
        except OSError as error:
            raise unreadable(error, shown(str(path))) from error
        return sorted(files), sorted(folders)

    def stamp(self, names: Iterable[str]) -> str:
        """Changes with the name, size or time of any of the files."""
        seen: list[tuple[str, int, int]] = []
        for name in sorted(names):
            try:
                status = (self.path / name).stat()
                seen.append((name, status.st_size, status.st_mtime_ns))
            except OSError:
                seen.append((name, -1, -1))
        return digest(repr(seen).encode())

    def holds(self, name: str) -> bool:
        """Whether something of that name is there, readable or not."""
        return os.path.lexists(self.path / name)

    def _read(self, name: str) -> bytes:
        return read_file(confine(self.path, name), self.where(name), self.most_bytes)

    def _head(self, name: str, count: int) -> bytes:
        return file_head(confine(self.path, name), count, self.where(name))


class FileSource(FolderSource):
    """One file on disk, seen as a folder that holds nothing else.

    Args:
        path: the resolved file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.parent)
        self.name = path.name

    def entries(self, folder: str = "") -> tuple[list[str], list[str]]:
        """The file's name, and no folders."""
        return ([] if folder else [self.name]), []


def read_file(path: Path, where: str | None = None, most: int = MAX_FILE_BYTES) -> bytes:
    """The whole content of a regular file; never waits on a pipe or device.

    Args:
        path: the file.
        where: names it in errors.
        most: how many bytes it may have.

    Raises:
        InputError: if it is no regular file, too large, unreadable, or changes while it is read.
    """
    where = where or shown(str(path))
    try:
        with open_file(path, where, most) as stream:
            size = os.fstat(stream.fileno()).st_size
            data = _drain(stream.read, size + 1)
    except (OSError, ValueError) as error:
        raise unreadable(error, where) from error
    if len(data) != size:
        message = f"the file changed while it was read: {len(data)} bytes of {size}"
        raise InputError(message, where=where, hint="wait until it is written, then read again")
    return data


def file_head(path: Path, count: int, where: str | None = None) -> bytes:
    """The first bytes of a regular file, however large; never waits on a pipe or device.

    Args:
        path: the file.
        count: of bytes, fewer where the file is shorter.
        where: names it in errors.

    Raises:
        InputError: if it is no regular file or cannot be read.
    """
    try:
        with open_file(path, where, most=sys.maxsize) as stream:
            return _drain(stream.read, count)
    except (OSError, ValueError) as error:
        raise unreadable(error, where or shown(str(path))) from error


def open_file(path: Path, where: str | None = None, most: int = MAX_FILE_BYTES) -> FileIO:
    """A regular file, open to be read without a buffer; never waits on a pipe or device.

    Args:
        path: the file.
        where: names it in errors.
        most: how many bytes it may have.

    Raises:
        InputError: if it is no regular file, too large or cannot be opened.
    """
    where = where or shown(str(path))
    try:
        _require_regular(path.stat(), where)
        stream = FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, ValueError) as error:
        raise unreadable(error, where) from error
    try:
        status = os.fstat(stream.fileno())
        _require_regular(status, where)
        if status.st_size > most:
            raise InputError(too_large(status.st_size, most), where=where)
    except BaseException:
        stream.close()
        raise
    return stream


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _require_regular(status: os.stat_result, where: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise InputError("expected a file and found a folder", where=where)
    if not stat.S_ISREG(status.st_mode):
        raise InputError("not a regular file", where=where)


def _drain(read: Callable[[int], bytes | None], most: int) -> bytes:
    blocks, left = [], most
    while left and (block := read(left)):
        blocks.append(block)
        left -= len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def too_large(size: int, most: int) -> str:
    """The message for a file that is larger than any of the datasets' files."""
    return f"{size} bytes; files of at most {most} bytes are read"


def unreadable(error: OSError | ValueError | NotImplementedError, where: str) -> InputError:
    """The system's refusal in the words of this library."""
    number = error.errno if isinstance(error, OSError) else None
    messages = {
        errno.ENOENT: ("there is no such file", None),
        errno.ELOOP: ("links run in a circle", "remove the links and put the file there"),
        errno.EACCES: ("no permission to read it", "change its permissions, or run as its owner"),
        errno.ENOTDIR: ("a part of the path is a file, not a folder", None),
    }
    message, hint = messages.get(number or 0, (f"cannot be read: {shown(str(error))}", None))
    return InputError(message, where=where, hint=hint)


def digest(data: bytes) -> str:
    """Thirty-two hexadecimal digits of blake2b."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
