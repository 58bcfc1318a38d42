"""Files that are written whole or not at all, grown piece by piece under a temporary name, and read only
when they are what they seem.
"""

from __future__ import annotations

import errno
import fcntl
import importlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from roadaware.errors import DamagedError, DiskError, InputError

_TEMPORARY = re.compile(r"\.roadaware-(\d{1,10})-[0-9a-f]{8}\.tmp")
# Linux writes at most 2 GiB a call; between pieces Ctrl-C is answered.
_CHUNK = 1 << 24
# As many links as Linux itself follows.
_LINKS = 40


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash at any moment, meets the old content or the new, whole.

    What dead processes left unfinished in the same folder is removed. A device or a pipe (`/dev/stdout`)
    is written to as it is.

    Args:
        path: where to; its folder must exist. A link is followed.
        data: the whole content.

    Raises:
        DiskError: if the file cannot be written; what stood there before still stands.
        BrokenPipeError: if it is a pipe and its reader has gone.
    """
    path, written = Path(path), False
    try:
        if is_stream(path):
            # Write to a stream as it is: to a descriptor where it stands, so that what it holds stays
            number = _descriptor(path)
            handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC) if number is None else os.dup(number)
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            return
        # A rename would put a file in the place of the link.
        path = path.resolve()
        write_and_rename(path, data)
        written = True
        flush_folder(path.parent)
    except BrokenPipeError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise build_disk_error(path, len(data), error, written=written) from error
    with suppress(OSError):
        remove_stale_files(path.parent)


def is_stream(path: Path) -> bool:
    """Whether what is written to a path goes into a device, a pipe or an open descriptor (`/dev/fd/3`)."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) or _descriptor(path) is not None


def _descriptor(path: Path) -> int | None:
    """The open descriptor that a name such as /dev/stdout stands for; None for other names."""
    for _ in range(_LINKS):
        if Path(os.path.realpath(path.parent)) == Path(f"/proc/{os.getpid()}/fd"):
            return int(path.name) if path.name.isdecimal() else None
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def write_and_rename(path: Path, data: bytes) -> None:
    """Write to a temporary name, flush it to the disk, rename it; on failure remove the temporary file.

    Raises:
        OSError: whatever the system says.
    """
    temporary = make_temporary_path(path)
    # O_EXCL: nothing that somebody put under this name is written through.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            with suppress(OSError):  # what was private stays so
                os.fchmod(handle, stat.S_IMODE(path.stat().st_mode))
            with suppress(OSError):  # the lock tells other machines' and containers' sweeps that we live
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest[:_CHUNK]) :]
            # Before the rename: after a loss of power the name could stand for a file without its content.
            os.fsync(handle)
            # Renames inside a folder are atomic; /tmp may lie on another disk.
            temporary.replace(path)
        finally:
            os.close(handle)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    note_written(path)


_written: list[set[Path]] = []


def note_written(path: Path) -> None:
    """Tell `collect_written` of a file or folder that has got its final name."""
    for each in _written:
        each.add(path)


@contextmanager
def collect_written() -> Iterator[set[Path]]:
    """Collect what gets its final name within the block, in any thread of this process: files and whole folders."""
    found: set[Path] = set()
    _written.append(found)
    try:
        yield found
    finally:
        _written[:] = [each for each in _written if each is not found]


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the file system can do that.

    Raises:
        OSError: if flushing failed.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems refuse to flush a folder; the file itself has been flushed.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(handle)


def remove_stale_files(folder: Path) -> None:
    """Remove temporary files and folders of processes that are gone.

    Raises:
        OSError: if the folder cannot be read.
    """
    with os.scandir(folder) as entries:
        left = [(Path(entry.path), match) for entry in entries if (match := is_temporary(entry.name))]
    for path, owner in left:
        # A number may belong to a process of another machine or container: its lock tells.
        if not is_running(owner) and not _is_locked(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()


def make_temporary_path(path: Path) -> Path:
    """A new name in the same folder that `remove_stale_files` knows to be ours."""
    return path.parent / f".roadaware-{os.getpid()}-{secrets.token_hex(4)}.tmp"


def is_temporary(name: str) -> int | None:
    """The process number that a temporary file's name carries; None for any other name."""
    match = _TEMPORARY.fullmatch(name)
    return int(match[1]) if match else None


def list_folder_names(folder: Path) -> list[str]:
    """Names of what lies in a folder but for what killed writers left; none where there is no folder.

    A folder that holds nothing else is as good as new: who was killed before the first file stood goes on.

    Raises:
        OSError: if the folder cannot be looked into.
    """
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if is_temporary(path.name) is None)


def read_regular(path: Path, *, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes; links, pipes and devices are refused.

    Of a file that stands for one in a store it is that of the store.

    Raises:
        FileNotFoundError: if there is none.
        InputError: if it is no regular file, cannot be read or fetched.
        DamagedError: if it is larger, or changes while it is read.
    """
    try:
        # O_NONBLOCK: opening a pipe must not wait for its writer.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise InputError("expected a regular file, found a folder, pipe or device", where=str(path))
            if found.st_size > limit:
                raise DamagedError(f"expected {limit:,} bytes, found {found.st_size:,}", where=str(path))
            if found.st_mode & stat.S_ISVTX:  # as stand-ins have it
                # `storage` is built on this module.
                content: Path = importlib.import_module("roadaware.io.storage").locate_content(path)
                if content != path:
                    return read_regular(content, limit=limit)
            with os.fdopen(handle, "rb", closefd=False) as file:
                # One byte more than there should be: a file that grows is noticed.
                data = file.read(found.st_size + 1)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise
    except OSError as error:
        what = "a link" if error.errno == errno.ELOOP else error.strerror
        raise InputError(f"expected a readable regular file, found: {what}", where=str(path)) from error
    if len(data) != found.st_size:
        raise DamagedError(f"{found.st_size:,} bytes became {len(data):,} while reading", where=str(path))
    return data


@contextmanager
def lock_folder(folder: Path) -> Iterator[bool]:
    """Hold the folder against other writers; False where the file system has no locks.

    The lock goes with the process, however it ends.

    Raises:
        OSError: if the folder cannot be opened.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            held = True
        except OSError:
            held = False
        yield held
    finally:
        os.close(handle)


def check_room(target: Path, *, is_folder: bool = False) -> None:
    """Fail early where a file or folder could not be made: in the nearest folder that exists one is tried.

    Args:
        target: what will be written; the folders above it are made then, where they are missing.
        is_folder: whether it is a folder, and is written into where it exists.

    Raises:
        DiskError: if something above it is no folder, may not be written to, or has no space left.
    """
    folder = target.absolute() if is_folder else target.absolute().parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise DiskError(f"{target} cannot be made: {folder} is not a folder")
    try:
        if not os.access(folder, os.W_OK | os.X_OK) or (target.is_file() and not os.access(target, os.W_OK)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        _try(folder)
        room = os.statvfs(folder)
        # File systems without a size of their own say 0 blocks.
        if room.f_blocks and not room.f_bavail:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise DiskError(
            f"{target} cannot be made: {error.strerror} ({folder}); choose another place"
        ) from error


_LONGEST, _DEEPEST, _WHOLE = 255, 255, 3800
"""Bytes of one name in every file system that is common; folders in one another; bytes of a path, with room
for the names of files in a folder."""


def describe_unreachable(path: Path) -> str | None:
    """Why the system cannot say whether there is something at a path; None where it can."""
    try:
        path.stat()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            return error.strerror
    except ValueError as error:  # a NUL in the name
        return str(error)
    # What lies below a missing folder the system does not look at.
    names = [len(os.fsencode(part)) for part in path.absolute().parts]
    too_long = max(names) > _LONGEST or len(names) > _DEEPEST or sum(names) + len(names) > _WHOLE
    return os.strerror(errno.ENAMETOOLONG) if too_long else None


def _try(folder: Path) -> None:
    """Make a file in a folder and drop it again: one without a name where the file system has such.

    Raises:
        OSError: whatever the system says.
    """
    try:
        os.close(os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            raise
        named = make_temporary_path(folder / "x")
        os.close(os.open(named, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        named.unlink()


def build_disk_error(path: Path, needed: int, error: Exception, *, written: bool = False) -> DiskError:
    """What the system said about a write; where there was no room, the bytes it needed and those there are.

    Args:
        path: what was written to.
        needed: bytes of the whole output; 0 or 1 where nobody knows.
        error: what the system raised.
        written: whether the new content stands there already, and only its survival is in doubt.
    """
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if written:
        return DiskError(
            f"{path} is written, but the disk did not confirm it: {reason}\n  It can be read now and may be "
            "gone after a loss of power. Check the disk and write it again."
        )
    stands = "what stood there before still stands"
    if isinstance(error, OSError) and error.errno not in _NO_ROOM:
        return DiskError(
            f"cannot write {path}: {reason}; {stands}\n  Name a place that can be made and written to."
        )
    wanted = f"{needed:,} bytes are needed, " if needed > 1 else ""
    return DiskError(
        f"cannot write {path}: {reason}\n  {wanted}{_free(path)}; {stands}. Free some space, or name a place "
        "that can be written to."
    )


_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def _free(path: Path) -> str:
    """How many bytes are free where a path lies, in words."""
    place = path.parent
    while not place.is_dir() and place != place.parent:
        place = place.parent
    try:
        return f"{shutil.disk_usage(place).free:,} bytes are free at {place}"
    except OSError:
        return f"free space at {place} is unknown"


def is_running(process: int) -> bool:
    """Whether a process of this machine still runs; not one that ended and that its parent has not asked about."""
    try:
        os.kill(process, 0)  # sends nothing
    # OverflowError: a number that no process can have.
    except (ProcessLookupError, OverflowError):
        return False
    # No permission to signal it: it lives, and belongs to somebody else.
    except OSError:
        return True
    # The state stands behind the name, which may hold brackets itself. Without /proc it counts as running.
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0] not in ("Z", "X")
    return True


def _is_locked(path: Path) -> bool:
    """Whether a living writer holds the file, as far as the file system knows of locks."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


# Unfinished: a file that grows piece by piece under a temporary name and gets its own once it is whole.


class Unfinished:
    """A file being written; a crash at any moment leaves what stood under its name before.

    Args:
        path: what it is called in the end; its folder must exist. A link is followed.

    Raises:
        DiskError: if no file can be made there.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.path = Path(path).resolve()
            self._temporary = make_temporary_path(self.path)
            handle = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except (OSError, RuntimeError, ValueError) as error:
            raise build_disk_error(Path(path), 1, error) from error
        with suppress(OSError):  # the lock tells other machines' and containers' sweeps that we live
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.file: BinaryIO = os.fdopen(handle, "w+b")

    def finish(self) -> None:
        """Flush the file to the disk and give it its name.

        Raises:
            DiskError: if that fails; what stood there before still stands.
        """
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
            self._temporary.replace(self.path)
            note_written(self.path)
            flush_folder(self.path.parent)
        except (OSError, ValueError) as error:
            failure = self.failure(error)
            self.abandon()
            raise failure from error
        self.file.close()
        with suppress(OSError):
            remove_stale_files(self.path.parent)

    def abandon(self) -> None:
        """Remove what was written; nothing happens to a file that is finished."""
        with suppress(OSError, ValueError):
            self.file.close()
        with suppress(OSError):
            self._temporary.unlink()

    def failure(self, error: Exception) -> DiskError:
        """The system's message about a failed write."""
        return build_disk_error(self.path, 1, error)


class Growing:
    """Base of writers of one `Unfinished` file: `close` keeps it, an exception inside `with` removes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def close(self) -> None:
        """Complete the file and give it its name."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Remove the unfinished file."""
        raise NotImplementedError


# Sink: a file that a container writes to, which remembers that the disk refused.


class Sink:
    """A file as a container writes to it: keeps the first failure for `check`, and writes nothing after it.

    The container keeps what is raised for later, and prints what is raised after that.

    Args:
        file: where to.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._failed: OSError | None = None

    def write(self, data: bytes) -> int:
        """Write, as files do."""
        return self._tried(lambda: self._file.write(data), len(data))

    def seek(self, place: int, whence: int = 0) -> int:
        """Go to a place, as files do."""
        return self._tried(lambda: self._file.seek(place, whence), 0)

    def tell(self) -> int:
        """The place, as files do."""
        return self._tried(self._file.tell, 0)

    def check(self) -> None:
        """Nothing, where all was written.

        Raises:
            OSError: the first failure.
        """
        if self._failed is not None:
            raise self._failed

    def _tried(self, act: Callable[[], int], otherwise: int) -> int:
        if self._failed is None:
            try:
                return act()
            except OSError as error:
                self._failed = error
        return otherwise
