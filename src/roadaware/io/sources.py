"""Sources of datasets behind one interface: a folder, a zip archive, a file or several of them; files by name,
bounded in size and confined.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import re
import stat
import struct
import sys
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io.storage import locate_content

MAX_FILE_BYTES = 1 << 28
# Control characters steer a terminal, and marks of direction reorder what a person reads.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def to_printable(text: str, limit: int = 200) -> str:
    """The text fit for a message: control, direction and broken characters escaped, long ones cut."""
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_outside(name: str) -> bool:
    """Whether a name is absolute, names a drive, or climbs out of its folder."""
    plain = name.replace("\\", "/")
    return plain.startswith("/") or ".." in plain.split("/") or plain[1:2] == ":" or "\0" in plain


def resolve_inside(root: Path, name: str) -> Path:
    """The real path of `name` inside `root`.

    Args:
        root: a resolved folder.
        name: a relative name with `/` between its parts, as data may give it.

    Raises:
        InputError: if the name is absolute, climbs out, names a drive, or a link on its way leaves the root
            or runs in a circle; or if nothing is there.
    """
    where = f"{to_printable(str(root))}: {to_printable(name)}"
    if is_outside(name):
        raise InputError("the name leads out of the dataset's folder", where=where)
    try:
        real = Path(os.path.realpath(root / name, strict=True))
    except (OSError, ValueError) as error:
        raise build_read_error(error, where) from error
    if not real.is_relative_to(root):
        hint = "copy the file into the folder, or point at the folder that really holds it"
        raise InputError("a link leads out of the dataset's folder", where=where, hint=hint)
    return real


class Source(ABC):
    """Source of a dataset; every name is relative to it, with `/` between its parts.

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
        """Close open files."""

    def where(self, name: str) -> str:
        """The name for messages: the dataset's path and the file in it."""
        return f"{to_printable(str(self.path))}: {to_printable(self.prefix + name)}"

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
            raise build_read_error(error, self.where(name)) from error

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
        """A stamp that changes when a file does, without reading contents where sizes and times suffice."""

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
        return to_printable(str(self.path / name))

    def close(self) -> None:
        """Does nothing: no file is kept open."""

    def at(self, folder: str) -> FolderSource:
        """A folder inside this one as root."""
        return FolderSource(resolve_inside(self.path, folder))

    def entries(self, folder: str = "") -> tuple[list[str], list[str]]:
        """The sorted names right inside a folder: what is no folder, and the folders."""
        path = resolve_inside(self.path, folder) if folder else self.path
        files: list[str] = []
        folders: list[str] = []
        try:
            with os.scandir(path) as found:
                for entry in found:
                    if not entry.name.startswith("."):
                        (folders if _is_folder(entry) else files).append(entry.name)
        except OSError as error:
            raise build_read_error(error, to_printable(str(path))) from error
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

    def open(self, name: str) -> FileIO:
        """A file of any size, open to be read in parts.

        Raises:
            InputError: if it is no regular file or cannot be opened.
        """
        return open_file(resolve_inside(self.path, name), self.where(name), most=sys.maxsize)

    def measure(self, name: str) -> int:
        """The size of a file in bytes.

        Raises:
            InputError: as `open`.
        """
        with self.open(name) as stream:
            return os.fstat(stream.fileno()).st_size

    def _read(self, name: str) -> bytes:
        return read_file(resolve_inside(self.path, name), self.where(name), self.most_bytes)

    def _head(self, name: str, count: int) -> bytes:
        return read_file_head(resolve_inside(self.path, name), count, self.where(name))


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

    def files(self, folder: str, suffix: str = "") -> list[str]:
        """The file's name, however its ending is spelled."""
        return [] if folder or not self.name.lower().endswith(suffix) else [self.name]


def read_file(path: Path, where: str | None = None, most: int = MAX_FILE_BYTES) -> bytes:
    """The whole content of a regular file; never waits on a pipe or device.

    Args:
        path: the file.
        where: names it in errors.
        most: how many bytes it may have.

    Raises:
        InputError: if it is no regular file, too large, unreadable, or changes while it is read.
    """
    where = where or to_printable(str(path))
    try:
        with open_file(path, where, most) as stream:
            size = os.fstat(stream.fileno()).st_size
            # One byte more than there should be: a file that grows is noticed.
            data = _drain(stream.read, size + 1)
    except (OSError, ValueError) as error:
        raise build_read_error(error, where) from error
    if len(data) != size:
        message = f"the file changed while it was read: {len(data)} bytes of {size}"
        raise InputError(message, where=where, hint="wait until it is written, then read again")
    return data


def read_file_head(path: Path, count: int, where: str | None = None) -> bytes:
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
        raise build_read_error(error, where or to_printable(str(path))) from error


def open_file(path: Path, where: str | None = None, most: int = MAX_FILE_BYTES) -> FileIO:
    """A regular file, open to be read without a buffer; never waits on a pipe or device.

    Args:
        path: the file.
        where: names it in errors.
        most: how many bytes it may have.

    Raises:
        InputError: if it is no regular file, too large or cannot be opened.
    """
    where = where or to_printable(str(path))
    try:
        # Before it is opened, since that can do things to a device; again below: it may be another by now.
        _require_regular(path.stat(), where)
        stream = FileIO(os.open(locate_content(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, ValueError) as error:
        raise build_read_error(error, where) from error
    try:
        status = os.fstat(stream.fileno())
        _require_regular(status, where)
        if status.st_size > most:
            raise InputError(format_too_large(status.st_size, most), where=where)
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


def format_too_large(size: int, most: int) -> str:
    """The message for a file that is larger than any of the datasets' files."""
    return f"{size} bytes; files of at most {most} bytes are read"


def build_read_error(error: OSError | ValueError | NotImplementedError, where: str) -> InputError:
    """The system's refusal in the words of this library."""
    number = error.errno if isinstance(error, OSError) else None
    messages = {
        errno.ENOENT: ("there is no such file", None),
        errno.ELOOP: ("links run in a circle", "remove the links and put the file there"),
        errno.EACCES: ("no permission to read it", "change its permissions, or run as its owner"),
        errno.ENOTDIR: ("a part of the path is a file, not a folder", None),
    }
    message, hint = messages.get(number or 0, (f"cannot be read: {to_printable(str(error))}", None))
    return InputError(message, where=where, hint=hint)


def digest(data: bytes) -> str:
    """Thirty-two hexadecimal digits of blake2b."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


# The text of a file of annotations: UTF-8, or UTF-16 with its mark, and never empty.


_NO_TEXT = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "a zip", b"\x93NUMPY": "a numpy array", b"PAR1": "Parquet"}


def decode_utf_text(data: bytes, where: str, *, expected: str, hint: str) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark.

    Args:
        data: what the file holds.
        where: names the file in errors.
        expected: what it should hold, in words.
        hint: what to do where it does not.

    Raises:
        InputError: if it is empty or not of that encoding (with the byte).
    """
    for mark, kind in _NO_TEXT.items():
        # Letters alone may begin a text, too; Parquet ends with them as well.
        if data.startswith(mark) and (kind != "Parquet" or data.endswith(mark)):
            unpack = "; unpack it first: gunzip --keep FILE" if kind == "gzip" else ""
            raise InputError(
                f"the file is no text but {kind}", where=where, hint=f"expected {expected}{unpack}"
            )
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    wide = marked and not data.startswith(codecs.BOM_UTF32_LE)
    encoding = "utf-16" if wide else "utf-8"
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not {encoding.upper()}: {error.reason}"
        raise InputError(message, where=where, hint=hint) from error
    if not text or text.isspace():
        raise InputError(f"the file is empty; expected {expected}", where=where, hint=hint)
    return text


# A zip archive as a source: vetted when it is opened, its members read one by one, none unpacked.

MAX_ARCHIVE_BYTES = 4 << 30
# Deflate packs up to 1032 to 1, which only repetition reaches; small members may do that.
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
                with locate_content(self.path).open("rb") as stream:
                    while block := stream.read(1 << 20):
                        digest.update(block)
            except OSError as error:
                raise build_read_error(error, to_printable(str(self.path))) from error
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
            raise InputError(format_too_large(info.file_size, self.most_bytes), where=self.where(name))
        try:
            with self._archive.open(info) as stream:
                # One byte more than is promised: a member that holds more is noticed, and not unpacked.
                data = stream.read(info.file_size + 1)
        except ZIP_ERRORS as error:
            message = f"the archive is damaged here: {to_printable(str(error)) or type(error).__name__}"
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
    """Content of an archive, for all sources that share it.

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
    where = to_printable(str(path))
    if path.stat().st_size == 0:
        raise InputError("the file is empty; expected a folder or a zip archive", where=where)
    try:
        archive = zipfile.ZipFile(locate_content(path))
    except ZIP_ERRORS as error:
        message = (
            f"neither a folder nor a whole zip archive: {to_printable(str(error)) or type(error).__name__}"
        )
        raise InputError(message, where=where, hint="fetch the archive again, or unpack it") from error
    try:
        check_archive_members(archive.infolist(), where)
    except BaseException:
        archive.close()
        raise
    return archive


def check_archive_members(members: Sequence[zipfile.ZipInfo], where: str) -> None:
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
        # Members that share their bytes multiply without looking like a bomb each.
        elif member.header_offset < end:
            wrong = "overlaps another member"
        if wrong:
            message = f"the archive is not to be trusted: '{to_printable(member.filename)}' {wrong}"
            raise InputError(message, where=where, hint="fetch the archive from its publisher")
        names.add(member.filename)
        # The fixed part of a member's header has 30 bytes.
        end = member.header_offset + 30 + member.compress_size
    if total > MAX_ARCHIVE_BYTES or _is_bomb(total, packed):
        raise InputError(f"the archive would unpack to {total} bytes from {packed}", where=where)


def _member_fault(member: zipfile.ZipInfo) -> str:
    if not member.filename:
        return "has no name"
    if is_outside(member.filename):
        return "leads out of it"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "is a link"
    if member.flag_bits & 0x1:
        return "is encrypted"
    # What the other methods need of memory and time is not bounded here.
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


# Folders and archives that lie beside each other, seen as the folders of one source.


class JoinedSource(Source):
    """Several sources, each under the name of one folder at the top.

    Args:
        path: what the user pointed at, for messages.
        parts: folder at the top to the source that stands for it.
    """

    def __init__(self, path: Path, parts: dict[str, Source]) -> None:
        super().__init__(path)
        self.parts = dict(parts)

    def close(self) -> None:
        """Close every part."""
        for part in self.parts.values():
            part.close()

    def where(self, name: str) -> str:
        """The name for messages, as its part tells it."""
        part, _, rest = name.partition("/")
        return self.parts[part].where(rest) if part in self.parts and rest else super().where(name)

    def at(self, folder: str) -> Source:
        """A part, or a folder inside one."""
        part, _, rest = folder.partition("/")
        if part not in self.parts:
            raise InputError(
                "there is no such folder", where=f"{to_printable(str(self.path))}: {to_printable(folder)}"
            )
        return self.parts[part].at(rest) if rest else self.parts[part]

    def entries(self, folder: str = "") -> tuple[list[str], list[str]]:
        """The parts at the top; below, what the part says."""
        if not folder:
            return [], sorted(self.parts)
        part, _, rest = folder.partition("/")
        return self.parts[part].entries(rest) if part in self.parts else ([], [])

    def stamp(self, names: Iterable[str]) -> str:
        """What changes when a file of a part does, or a part lies elsewhere."""
        held: dict[str, list[str]] = {part: [] for part in self.parts}
        for name in names:
            part, _, rest = name.partition("/")
            held[part].append(rest)
        stamps = [(part, str(self.parts[part].path), self.parts[part].stamp(held[part])) for part in held]
        return digest(repr(sorted(stamps)).encode())

    def holds(self, name: str) -> bool:
        """Whether a part has something of that name."""
        part, _, rest = name.partition("/")
        return part in self.parts and (not rest or self.parts[part].holds(rest))

    def _read(self, name: str) -> bytes:
        part, _, rest = name.partition("/")
        if part not in self.parts:
            raise InputError("there is no such file", where=self.where(name))
        return self.parts[part].read(rest)


# From a path to the dataset that lies there: the folder itself, one inside it, or its zip archive.

_DEEPEST = 6
_MOST_FOLDERS = 2000


def open_source(path: Path) -> Source:
    """The folder or zip archive at `path`.

    Raises:
        DatasetNotFoundError: if nothing is there; says what is there instead.
        InputError: if it is neither, or an archive that is damaged or not to be trusted.
    """
    where = to_printable(str(path))
    try:
        real = Path(os.path.realpath(path, strict=True))
        mode = real.stat().st_mode
    except FileNotFoundError as error:
        raise DatasetNotFoundError(f"there is nothing at {where} ({_neighbours(path)})") from error
    except (OSError, ValueError) as error:
        raise build_read_error(error, where) from error
    if stat.S_ISDIR(mode):
        return FolderSource(real)
    if not stat.S_ISREG(mode):
        raise InputError("not a regular file, and not a folder", where=where)
    return ZipSource(real)


def find_source(
    path: Path, fits: Callable[[Source], bool], wanted: str, hint: str, *, suffix: str | None = None
) -> Source:
    """The source that `fits`: `path` itself, a folder at most six levels inside, or a zip lying there.

    The nearest level counts, and folders before the archives that lie beside them. The walk ends after
    2,000 folders.

    Args:
        path: a folder or archive.
        fits: whether a source is the dataset.
        wanted: what the dataset needs, for the message, such as "JAAD needs 'annotations/'".
        hint: what to point at instead.
        suffix: of the dataset's own files; a path that ends so is one of them, and the source is that file.

    Raises:
        DatasetNotFoundError: if none fits, or several do and none is nearer than the others.
    """
    if suffix is not None and path.name.lower().endswith(suffix) and path.is_file():
        return FileSource(Path(os.path.realpath(path)))
    source = open_source(path)
    unread: list[InputError] = []
    if found := _nearest(source, fits, unread):
        if len(found) > 1:
            names = ", ".join(to_printable(f"{source.path}/{source.prefix}") for source in found)
            for source in found:
                source.close()
            raise DatasetNotFoundError(
                f"{wanted.removesuffix(',')}, and several folders have it: {names}. Point at one of them"
            )
        return found[0]
    saw = ", ".join(_listing(source)) or "nothing"
    source.close()
    text = "".join(f" {error.where}: {error.message}." for error in unread[:3])
    raise DatasetNotFoundError(
        f"{wanted} and found none in {to_printable(str(path))} (saw: {saw}).{text} {hint}"
    )


def _nearest(source: Source, fits: Callable[[Source], bool], unread: list[InputError]) -> list[Source]:
    """All that fit on the nearest level on which any does; archives that cannot be read go to `unread`."""
    level, left = [source], _MOST_FOLDERS
    for _ in range(_DEEPEST + 1):
        found = [candidate for candidate in level if fits(candidate)]
        found = found or [z for candidate in level for z in _archives(candidate, fits, unread)]
        if found:
            return found
        # The bound counts over all levels: links in a circle end with it.
        level = list(islice((inner for candidate in level for inner in _inside(candidate)), left))
        left -= len(level)
    return []


def _archives(source: Source, fits: Callable[[Source], bool], unread: list[InputError]) -> list[Source]:
    """What fits in the zip archives right inside a folder."""
    if not isinstance(source, FolderSource):
        return []
    held: list[Source] = []
    for name in source.entries()[0]:
        if not name.lower().endswith(".zip"):
            continue
        try:
            archive: Source = open_source(resolve_inside(source.path, name))
        except InputError as error:
            unread.append(error)
            continue
        if inner := _nearest(archive, fits, unread):
            held += inner
        else:
            archive.close()
    return held


def _inside(source: Source) -> Iterator[Source]:
    for name in source.entries()[1]:
        try:
            candidate = source.at(name)
            candidate.entries()
        except InputError:
            continue
        yield candidate


def _listing(source: Source, most: int = 8) -> list[str]:
    files, folders = source.entries()
    names = [f"{to_printable(name, 60)}/" for name in folders] + [to_printable(name, 60) for name in files]
    return names[:most] + (["…"] if len(names) > most else [])


def _neighbours(path: Path) -> str:
    """What the nearest existing parent holds."""
    for parent in path.absolute().parents:
        if parent.is_dir():
            try:
                saw = ", ".join(_listing(FolderSource(parent))) or "nothing"
            except InputError:
                saw = "nothing that may be listed"
            return f"{to_printable(str(parent))} holds: {saw}"
    return "no folder on the way exists"
