"""Folders of results: held by one process, swapped in whole for an earlier result, with everything that is not ours."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roadaware.addresses import mask_secrets
from roadaware.errors import DiskError, RoadawareError, UsageError
from roadaware.io.files import (
    build_disk_error,
    flush_folder,
    is_running,
    is_temporary,
    note_written,
    read_regular,
    write_and_rename,
    write_atomically,
)

# Files and folders that a command writes: whole or absent afterwards.


def encode_json(data: Any) -> str:
    """Strict JSON: a value that is not finite is an error, not `NaN`; no text holds a secret of an address.

    Raises:
        ValueError: if a number is not finite.
    """
    return json.dumps(_mask_values(data), allow_nan=False, ensure_ascii=True, indent=2) + "\n"


def _mask_values(data: Any) -> Any:
    if isinstance(data, str):
        return mask_secrets(data)
    if isinstance(data, dict):
        return {name: _mask_values(value) for name, value in data.items()}
    return [_mask_values(value) for value in data] if isinstance(data, list | tuple) else data


def write_text(path: Path, text: str) -> None:
    """Write a whole file at once, with the folders above it; a device (`/dev/stderr`) is written to as it is.

    Raises:
        DiskError: if it cannot be written.
    """
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """As `write_text`, of bytes.

    Raises:
        DiskError: if it cannot be written.
    """
    if not path.parent.is_dir():
        make_folder(path.absolute().parent)
    write_atomically(path, data)


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


def remove_folder(path: Path) -> None:
    """Remove a folder of ours with all that is in it; a link is removed, not followed.

    Raises:
        DiskError: if that is not possible.
    """
    try:
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
    except OSError as error:
        raise DiskError(
            f"{path} could not be removed: {error.strerror or error}; remove it yourself"
        ) from error


FORMAT = "roadaware-run"
MARKER = "results.json"
_LIMIT = 1 << 28
_TEMPORARY = re.compile(r"\.roadaware-run-(\d{1,10})-[0-9a-f]{8}\.tmp")


def add_marker(files: Mapping[str, bytes], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a result and the marker that lists them with their digests.

    Args:
        files: name to content; a name may lie in a folder inside.
        facts: what else the marker says, JSON-ready.
    """
    listed = {name: digest(data) for name, data in files.items()}
    return {**files, MARKER: encode_json({"format": FORMAT, **facts, "files": listed}).encode()}


def digest(data: bytes) -> str:
    """What a marker holds for a file: its blake2b, 16 bytes in hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def read_marker(path: Path, form: str) -> dict[str, Any] | None:
    """What a marker says; None where there is none, or one of somebody else."""
    with suppress(RoadawareError, OSError, ValueError, RecursionError):
        found = json.loads(read_regular(path, limit=_LIMIT))
        if isinstance(found, dict) and found.get("format") == form:
            return found
    return None


def list_result_files(folder: Path) -> frozenset[str] | None:
    """The names of the files that a result in the folder consists of; None where no result is there."""
    found = read_marker(folder / MARKER, FORMAT)
    if found is None or not isinstance(found.get("files"), dict):
        return None
    return frozenset({MARKER, *found["files"]})


def is_damaging(output: Path, given: Path, *, whole: bool) -> bool:
    """Whether writing an output would change an input.

    Args:
        output: what will be written, without links.
        given: the input, without links.
        whole: whether all of a folder is the input, but pages that were written into it; else what results list.
    """
    if output == given or (output.exists() and given.exists() and output.samefile(given)):
        return True
    if whole:
        return output.is_file() and output.suffix.lower() != ".html" and output.is_relative_to(given)
    inside = [folder for folder in output.parents if folder.is_relative_to(given)]
    return any(str(output.relative_to(folder)) in (list_result_files(folder) or ()) for folder in inside)


def list_other_names(folder: Path, ours: Collection[str] = ()) -> str:
    """The first few names in a folder that are neither ours nor left by dead processes, with commas.

    Raises:
        DiskError: if it cannot be looked into.
    """
    try:
        held = sorted(path.name for path in folder.iterdir() if path.name not in ours)
    except OSError as error:
        raise DiskError(f"{folder} cannot be looked into: {error.strerror}; name another folder") from error
    return ", ".join(name for name in held if is_temporary(name) is None and not name.endswith(".lock"))[:200]


def is_vacant(folder: Path) -> bool:
    """Whether nothing is in a folder but what killed writers left unfinished.

    Raises:
        DiskError: if it cannot be looked into.
    """
    try:
        return all(is_temporary(path.name) is not None for path in folder.iterdir())
    except OSError as error:
        raise DiskError(f"{folder} cannot be looked into: {error.strerror}; name another folder") from error


def check_result(folder: Path, *, overwrite: bool) -> None:
    """Fail early if a result may not be written there.

    Raises:
        DiskError: if the folder cannot be looked into.
        UsageError: if an earlier result is there and may not be replaced, or anything else.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder to write into")
    if not folder.is_dir() or is_vacant(folder):
        return
    if list_result_files(folder) is None:
        raise UsageError(f"{folder} holds other things (no {MARKER} of ours); name a new or empty folder")
    if not overwrite:
        raise UsageError(f"{folder} holds an earlier result; say --overwrite to replace it, or name another")


def write_result_folder(folder: Path, files: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Write files into a new folder beside the target, then swap the two.

    Of an earlier result only the files that its marker lists are replaced; all else stays.

    Args:
        folder: the target; a link is followed.
        files: name to content, the marker among them.
        overwrite: replace an earlier result.

    Raises:
        DiskError: if it cannot be written; what stood there still stands.
        UsageError: if something stands there that may not be replaced.
    """
    check_result(folder, overwrite=overwrite)
    target = Path(os.path.realpath(folder))
    ours = (list_result_files(target) if target.is_dir() else None) or frozenset()
    _refuse_clash(target, files, ours)
    make_folder(target.parent)
    # Remove what killed processes left half-built
    with suppress(OSError):
        for path in target.parent.iterdir():
            match = _TEMPORARY.fullmatch(path.name)
            if match and not is_running(int(match[1])):
                shutil.rmtree(path, ignore_errors=True)
    building = target.parent / f".roadaware-run-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    try:
        for name, data in files.items():
            (building / name).parent.mkdir(parents=True, exist_ok=True)
            write_and_rename(building / name, data)
        _keep(target, building, ours)
        flush_folder(building)
        old = _swap(building, target)
        flush_folder(target.parent)
        if old is not None:
            _keep(old, target, ours)  # what was added in the meantime
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise build_disk_error(folder, sum(map(len, files.values())), error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _others(folder: Path, ours: frozenset[str], inside: str = "") -> Iterator[str]:
    """The names of what is not ours: files, links, and folders that hold nothing."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        name = f"{inside}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            with os.scandir(entry) as held:
                empty = next(held, None) is None
            yield from [name] if empty else _others(Path(entry), ours, f"{name}/")
        elif name not in ours and is_temporary(entry.name) is None:
            yield name


def _refuse_clash(folder: Path, files: Mapping[str, bytes], ours: frozenset[str]) -> None:
    """Stop where a new file would stand in the place of one that is not ours.

    Raises:
        UsageError: if one would.
    """
    if not folder.is_dir():
        return
    folders = {str(above) for name in files for above in Path(name).parents}
    for name in _others(folder, ours):
        above = {str(part) for part in Path(name).parents}
        if name in files or above & set(files) or (name in folders and not (folder / name).is_dir()):
            raise UsageError(
                f"{folder / name} is not ours and would be replaced; move it, or name a new folder"
            )


def _keep(old: Path, new: Path, ours: frozenset[str]) -> None:
    """Bring what is not ours along: the same files under a second name, copies where there are no such.

    Raises:
        OSError: whatever the system says.
    """
    if not old.is_dir():
        return
    for name in _others(old, ours):
        source, place = old / name, new / name
        if os.path.lexists(place):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and not source.is_symlink():
            place.mkdir()
            continue
        try:
            # A second name takes no room, and the old folder can go.
            os.link(source, place, follow_symlinks=False)
        except OSError:
            shutil.copy2(source, place, follow_symlinks=False)


def _swap(new: Path, target: Path) -> Path | None:
    """Put the new folder in the place of the old in one step; where the old one is now.

    Raises:
        OSError: whatever the system says.
    """
    if not target.exists() or not any(target.iterdir()):
        new.replace(target)
        return None
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    # AT_FDCWD and RENAME_EXCHANGE of Linux: neither folder is ever missing.
    at_cwd, flag_exchange = -100, 2
    if exchange is not None and exchange(at_cwd, bytes(new), at_cwd, bytes(target), flag_exchange) == 0:
        return new
    # File systems without an exchange: two renames. The old one's name between them is one that no sweep
    # removes, for a crash would leave it as the only copy of what is not ours.
    aside = target.with_name(f"{target.name}.replaced-{os.getpid()}-{secrets.token_hex(4)}")
    target.replace(aside)
    new.replace(target)
    return aside


def replace_folder(new: Path, target: Path) -> None:
    """Put a folder in the place of another, or where none is, in one step; what stood there is removed.

    Args:
        new: must lie beside the target.
        target: nothing, or a folder.

    Raises:
        OSError: whatever the system says; then the target is as it was.
    """
    old = _swap(new, target)
    note_written(target)
    flush_folder(target.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


# Holding: a folder that a long work writes into belongs to one process, until that ends in whatever way.

# Reentrant: garbage collection may run a finalizer in the thread that holds it.
_guard = threading.RLock()


@dataclass
class _Lock:
    """An open folder that is locked, and how many hold it in the thread that did so."""

    handle: int
    thread: int
    holders: int = 0


_locks: dict[str, _Lock] = {}


class Hold:
    """A lock on a folder, held until `release` or the end of this object.

    The folder itself is locked, so that nothing is left in it, and a process that was killed holds nothing.
    Where the file system has no locks, work goes on without one. One thread may hold a folder several times.

    Args:
        folder: if it is not there, or none, nothing is held: whoever writes into it says what is wrong.

    Raises:
        UsageError: if somebody else holds it; says which process, and since when it runs.
    """

    def __init__(self, folder: Path) -> None:
        self._end: Callable[[], Any] = weakref.finalize(self, lambda: None)
        name = os.path.realpath(folder)
        with _guard:
            lock = _locks.get(name)
            # A flock belongs to the open folder: another thread opens its own, and so is refused.
            if lock is None or lock.thread != threading.get_ident():
                try:
                    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                except OSError:
                    return
                try:
                    _take(handle, folder)
                except BaseException:
                    os.close(handle)
                    raise
                lock = _locks[name] = _Lock(handle, threading.get_ident())
            lock.holders += 1
        self._end = weakref.finalize(self, _release, name)

    def release(self) -> None:
        """Let go of the folder; once is enough."""
        self._end()


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Context manager: holds the folder's lock against other processes and threads.

    Args:
        folder: is made where it is not there; where work fails and it is still empty, it is taken away.

    Raises:
        UsageError: as of `Hold`.
    """
    made = not folder.exists()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    hold = Hold(folder)
    try:
        yield
    except BaseException:
        if made:
            with suppress(OSError):
                folder.rmdir()
        raise
    finally:
        hold.release()


def _release(name: str) -> None:
    with _guard:
        lock = _locks[name]
        lock.holders -= 1
        if not lock.holders:
            os.close(_locks.pop(name).handle)


def is_held(folder: Path) -> bool:
    """Whether a process of this machine holds a folder, as far as the file system has locks."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def _take(handle: int, folder: Path) -> None:
    """Lock an open folder.

    Raises:
        UsageError: if it is locked already.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{folder} is being written to by {_holder(handle)}. Wait until it ends, stop it, or name "
            "another folder"
        ) from None
    except OSError:
        return


def _holder(handle: int) -> str:
    """Who has locked an open folder, as far as the system tells."""
    status = os.fstat(handle)
    # As /proc/locks writes it: device in hexadecimal, inode in decimal digits.
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5] == place and int(words[4]) > 0:
                return f"process {words[4]}{_since(int(words[4]))}"
    return "another process"


def _since(process: int) -> str:
    """Since when a process runs."""
    with suppress(OSError, ValueError, IndexError):
        # The name of the command may hold blanks and brackets: fields count from its last bracket.
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        up = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        ran_s = up - int(fields[19]) / os.sysconf("SC_CLK_TCK")
        began = datetime.fromtimestamp(datetime.now(tz=UTC).timestamp() - ran_s, tz=UTC)
        return f", which runs since {began:%Y-%m-%d %H:%M:%S} UTC"
    return ""
