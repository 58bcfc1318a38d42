"""Addresses of stores (S3, Google Cloud, http, memory) as paths: what they name is mirrored in the cache folder, and
what is made in a mirror is committed back.

A mirror holds tables and texts whole; films, images, sweeps and archives are stand-ins of the same size and time until
`locate_content` fetches one, into a pool whose size is bounded. What roadaware writes lies in the store under its own names
beside `_roadaware/log/`, whose entries say which files with which digests belong together: a reader sees one commit or the
next. Where a store refuses to put what is there already, the number of an entry decides who was first; a lease tells
writers of each other in every store.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import logging
import os
import re
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from roadaware.addresses import STORES, is_same_host, keep_secret, show_place
from roadaware.errors import NOTE, DiskError, InputError, RoadawareError, UsageError, raise_interrupt
from roadaware.io.files import is_temporary, make_temporary_path, write_and_rename
from roadaware.io.folders import Hold
from roadaware.places import get_cache_folder

_Value = TypeVar("_Value")
_LOG = logging.getLogger("roadaware")

# Addresses.

SCHEMES = (*STORES, "http", "https")
"""What the address of a store begins with."""
_URL = re.compile(rf"(?:{'|'.join(SCHEMES)})://\S*", re.IGNORECASE)
_EXTRA = "{}:// needs fsspec and its client, which are an extra: pip install 'roadaware[storage]'"
_SETTING = "ROADAWARE_MIRRORS"
"""The environment's variable by which processes that this one starts know whose stand-ins they meet."""


def is_store_url(text: str) -> bool:
    """Whether a text is the address of a store.

    >>> [is_store_url(text) for text in ("s3://bucket/run", "rtsp://camera/1", "runs/found", "s3:/x")]
    [True, False, False, False]
    """
    return _URL.fullmatch(text) is not None


# The store: a few calls of fsspec, tried again where that may help, with errors in words.

_WAITS_S = (0.5, 2.0, 8.0)
"""Between tries of one request; clients try by themselves, too."""


class _RedirectError(OSError):
    """A server of http points to another machine."""


_FINAL = (
    ValueError,
    FileNotFoundError,
    PermissionError,
    NotADirectoryError,
    IsADirectoryError,
    ImportError,
    _RedirectError,
)
"""What no other try would mend."""
_ONCE = "written as a new one"
_WRITES = (_ONCE, "written", "copied", "removed")
_AT_A_TIME = 8
"""Files under way at once: of small ones the time is that of the answer, not of the line."""


class _Store:
    """A place in a store.

    Args:
        url: its address; without user and password, which the client finds by its own ways.

    Raises:
        UsageError: if the address holds a password, or its client is not installed.
        InputError: if it cannot be opened, such as an archive that is none.
    """

    def __init__(self, url: str) -> None:
        keep_secret(url)
        self.scheme = url.partition(":")[0].lower()
        self.url = url if self.scheme in ("http", "https", "zip") else url.rstrip("/")
        if any("@" in re.split("[/?#]", part.partition("://")[2])[0] for part in url.split("::")):
            raise UsageError(
                "the address of a store holds neither user nor password: say them in the ways of its client, such as "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws/credentials, or GOOGLE_APPLICATION_CREDENTIALS"
            )
        http = {"get_client": _open_http_client}
        try:
            core = importlib.import_module("fsspec.core")
            how: dict[str, Any] = {"http": http, "https": http} if "::" in url else {}
            self.fs, self.root = core.url_to_fs(url, **(http if self.scheme in ("http", "https") else how))
        except ImportError as error:
            raise UsageError(_EXTRA.format(self.scheme)) from error
        except Exception as error:
            # Whatever the client raises: it opens archives itself, and their damage has errors of its own.
            raise_interrupt(error)
            raise self.build_error(error, "opened") from error
        self.root = str(self.root).rstrip("/")
        self.writable = self.scheme in ("s3", "gs", "memory")

    def place(self, name: str = "") -> str:
        """Where the client finds a name below the address."""
        return f"{self.root}/{name}" if name else self.root

    def call(self, act: Callable[[], _Value], what: str) -> _Value:
        """What a call of the client returns, which is tried four times.

        Raises:
            FileNotFoundError, FileExistsError: as the client says; of a write the first is an error like others.
            NotImplementedError: if what is to be new cannot be written so.
            InputError, DiskError: of any other failure.
        """
        for wait_s in (*_WAITS_S, None):
            try:
                return act()
            except Exception as error:
                raise_interrupt(error)
                # Of http the client says that nothing is there, whatever the reason.
                cause = error.__cause__
                if (
                    self.scheme.startswith("http")
                    and isinstance(cause, Exception)
                    and getattr(cause, "status", 0) != 404
                ):
                    error = cause
                missing = isinstance(error, FileNotFoundError) and (what not in _WRITES or what == "removed")
                if missing or isinstance(error, FileExistsError):
                    raise
                # Clients of S3 say it by a number.
                if isinstance(error, NotImplementedError) or getattr(error, "errno", None) == errno.ENOSYS:
                    if what == _ONCE:
                        raise NotImplementedError from error
                    raise self.build_error(error, what) from error
                status = getattr(error, "status", 0)
                refused = isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
                refused |= getattr(error, "errno", None) == errno.ECONNREFUSED
                if wait_s is None or refused or isinstance(error, _FINAL):
                    raise self.build_error(error, what) from error
                _LOG.debug("%s again in %g s: %s", what, wait_s, type(error).__name__)
                time.sleep(wait_s)
        raise AssertionError

    def build_error(self, error: Exception, what: str) -> RoadawareError:
        """A failure of the client in words."""
        lines = str(error).splitlines()
        name = type(error).__name__
        hint = "Try it again later; what is done stays."
        if isinstance(error, PermissionError) or "Credential" in name:
            hint = "Credentials are found as the client does: AWS_... variables, ~/.aws, or those of Google Cloud."
        elif isinstance(error, FileNotFoundError):
            hint = "Check the address: its bucket must be there."
        message = f"could not be {what}: {name}: {lines[0] if lines else ''}"[:400]
        failure = InputError(message, where=self.url, hint=hint)
        return DiskError(str(failure)) if what in _WRITES else failure

    def read(self, name: str) -> bytes:
        """The content of a small file."""
        return self.call(lambda: bytes(self.fs.cat_file(self.place(name))), "read")

    def put(self, name: str, data: bytes, *, new: bool = False) -> None:
        """Write a small file at once.

        Raises:
            FileExistsError: if it shall be new, and the store says that it is there.
        """
        if new:
            try:
                self.call(lambda: self.fs.pipe_file(self.place(name), data, mode="create"), _ONCE)
                return
            except NotImplementedError:
                if self.call(lambda: self.fs.exists(self.place(name)), "looked for"):
                    raise FileExistsError(name) from None
        self.call(lambda: self.fs.pipe_file(self.place(name), data), "written")

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            self.call(lambda: self.fs.rm_file(self.place(name)), "removed")

    def names(self, folder: str) -> dict[str, dict[str, Any]]:
        """Files below a folder, by their names in it, with what the store says of each; pages are asked one by one."""
        base = self.place(folder)
        self.fs.invalidate_cache()  # others write, too
        with suppress(FileNotFoundError):
            found = self.call(lambda: self.fs.find(base, detail=True), "listed")
            return {
                name[len(base) :].strip("/"): facts
                for name, facts in ((str(key), facts) for key, facts in found.items())
                if len(name) > len(base) and not name.endswith("/")
            }
        return {}


async def _open_http_client(**how: Any) -> Any:
    """A client of http that follows redirects on the same machine alone: others get neither questions nor secrets."""
    aiohttp = importlib.import_module("aiohttp")
    rule = aiohttp.TraceConfig()

    async def check(_session: Any, _context: Any, asked: Any) -> None:
        # aiohttp follows either of them.
        target = asked.response.headers.get("Location") or asked.response.headers.get("URI") or "//"
        if not is_same_host(str(asked.url), target):
            raise _RedirectError("it redirects to another machine, where nothing is asked")

    rule.on_request_redirect.append(check)
    return aiohttp.ClientSession(trace_configs=[rule], **how)


# The log of a folder that roadaware wrote: which files belong together.

OURS = "_roadaware"
"""The folder in the store that holds what is no result: the log, the lease, and files that await their name."""
_FORMAT = "roadaware-storage"


@dataclass(frozen=True)
class _Entry:
    """A file as a log, or a listing, says it.

    Args:
        size: bytes.
        stamp: nanoseconds of its last change where it was made; of a listing whatever changes with the content.
        digest: blake2b of its content; empty where nobody knows.
        key: where it lies; empty where under its own name.
    """

    size: int
    stamp: int
    digest: str = ""
    key: str = ""


@dataclass
class _Tree:
    """All files below a place.

    Args:
        version: of the last commit; 0 where there is no log.
        files: by name.
        gone: names of files that no longer count, and may lie there still.
    """

    version: int = 0
    files: dict[str, _Entry] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def follow(self, version: int, added: Mapping[str, _Entry], removed: Collection[str]) -> None:
        """Be what the next entry of the log makes of it."""
        self.version = version
        for name in removed:
            self.files.pop(name, None)
        self.files |= added
        self.gone = (self.gone | set(removed)) - set(added)


_MOST_BYTES, _FARTHEST_NS = 1 << 50, 1 << 62
"""What a file may say of itself: a petabyte, and the years that file systems know."""


def _parse_name(name: str) -> str:
    """A name in a log, as a file system takes it; whether it leads out is asked where it is written.

    Raises:
        ValueError: if it is none.
    """
    if not name or "\0" in name or any(not 0 < len(part.encode()) <= 255 for part in name.split("/")):
        raise ValueError(f"{name[:60]!r} is no name of a file")
    return name


def _parse_entry(facts: Any) -> _Entry:
    """A file as a log says it: size, time, digest and where it lies.

    Raises:
        TypeError, ValueError: if it is none, or lies elsewhere than in the folder of what awaits its name.
    """
    size, stamp, digest, key = facts
    numbers = type(size) is type(stamp) is int and 0 <= size <= _MOST_BYTES and abs(stamp) <= _FARTHEST_NS
    if not (numbers and isinstance(digest, str) and re.fullmatch(rf"({OURS}/files/\w+)?", key)):
        raise ValueError(f"{str(facts)[:80]} says no file")
    return _Entry(size, stamp, digest, key)


def _read_tree(store: _Store) -> _Tree | None:
    """What the log of a place says; None where there is none."""
    for _ in range(5):
        held = sorted(store.names(f"{OURS}/log"))
        found = _Tree()
        try:
            for name in held:
                said = json.loads(store.read(f"{OURS}/log/{name}"))
                if not isinstance(said, dict) or said.get("format") != _FORMAT:
                    raise InputError(f"{OURS}/log/{name} is no log of roadaware", where=store.url)
                found = _Tree() if said["base"] else found
                added = {_parse_name(each): _parse_entry(facts) for each, facts in said["files"].items()}
                found.follow(int(name.partition(".")[0]), added, [str(each) for each in said["removed"]])
        except FileNotFoundError:  # a writer has just put a new base in the place of earlier entries
            continue
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"its log is damaged: {error}", where=store.url) from error
        return found if held else None
    raise InputError("its log changes all the time", where=store.url, hint="wait until it is written")


def _list_tree(store: _Store) -> _Tree:
    """The files of a place without a log; folders in it that have one are seen as it says."""
    found, logs = _Tree(), set[str]()
    for name, facts in store.names("").items():
        above, ours, _ = f"/{name}".partition(f"/{OURS}/")
        if ours:
            logs.add(above.lstrip("/"))
        elif not any(_is_left_alone(part) for part in name.split("/")):
            found.files[name] = _read_facts(facts)
    for above in logs:
        inner = _read_tree(_Store(f"{store.url}/{above}"))
        if inner is not None:
            found.files = {
                name: facts for name, facts in found.files.items() if not name.startswith(f"{above}/")
            }
            for name, entry in inner.files.items():
                key = f"{above}/{entry.key}" if entry.key else ""
                found.files[f"{above}/{name}"] = _Entry(entry.size, entry.stamp, entry.digest, key)
    return found


def _is_left_alone(name: str) -> bool:
    """Whether a file or folder is no result: hidden, unfinished or a lock. It is neither fetched, written nor removed."""
    return not name or name.startswith(".") or name.endswith(".lock") or is_temporary(name) is not None


def _read_facts(facts: Mapping[str, Any]) -> _Entry:
    # As the clients of S3, GCS, local files, http and zip archives call them.
    named = (
        "ETag",
        "etag",
        "CRC",
        "LastModified",
        "Last-Modified",
        "mtime",
        "created",
        "updated",
        "date_time",
    )
    text = " ".join(str(facts.get(name) or "") for name in named)
    # Whatever tells one content from another, as a time that files can have.
    stamp = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") * 1000
    return _Entry(int(facts.get("size") or 0), stamp)


# The mirror: a folder of the cache that stands for a place.

_MEDIA = {
    *(
        ".mp4",
        ".mov",
        ".mkv",
        ".webm",
        ".avi",
        ".m4v",
        ".mpg",
        ".mpeg",
        ".ts",
        ".wav",
        ".zip",
        ".bin",
        ".pcd",
    ),
    *(".png", ".jpg", ".jpeg"),
}
"""Endings of files that are fetched when somebody opens them, if they are no small ones."""
_SMALL_BYTES = 1 << 16
_HEAD = b"roadaware: the content of this file lies in a store\n"
_HEAD_BYTES = 4096
_STATE = "version"
GIGABYTES = "ROADAWARE_STORAGE_GB"
"""The environment's variable for the size of the pool, 20 unless it is set."""


def _home() -> Path:
    # Real, since callers compare real paths with it.
    return Path(os.path.realpath(get_cache_folder() / "storage"))


def is_mirror(path: Path) -> bool:
    """Whether a path lies in the mirror of a store."""
    return Path(os.path.realpath(path)).is_relative_to(_home())


class _Mirror:
    """The folder of a place; who writes to the place has one of its own, which no reader changes.

    Args:
        store: the place.
        writing: whether it is that of the writer.
    """

    def __init__(self, store: _Store, *, writing: bool = False) -> None:
        self.store = store
        name = hashlib.blake2b(store.url.encode(), digest_size=10).hexdigest()
        self.folder = _home() / (f"{name}-out" if writing else name)
        last = re.sub(r"[^A-Za-z0-9_. @+=-]", "_", store.root.rpartition("/")[2]).lstrip(".") or "store"
        # Under its last name, of which commands make names of videos and runs.
        self.tree = self.folder / last
        self._other = _home() / (name if writing else f"{name}-out") / last
        self.folder.mkdir(parents=True, exist_ok=True)
        show_place(str(self.tree), store.url)
        show_place(str(self.folder), store.url)
        known = json.loads(os.environ.get(_SETTING) or "{}")
        os.environ[_SETTING] = json.dumps({**known, self.folder.name: store.url})

    def fetch(self, tree: _Tree, within: str = "", *, whole: bool = False) -> None:
        """Bring files to what the store has.

        Args:
            tree: what the store has.
            within: the file or folder that is wanted; empty for all.
            whole: also remove what the store does not have.
        """
        due = {
            name: each
            for name, each in tree.files.items()
            if (not within or name == within or name.startswith(f"{within}/"))
            and not _matches(self.tree / name, each)
        }
        self.tree.mkdir(parents=True, exist_ok=True)
        for path in list(_walk(self.tree)) if whole else ():
            if str(path.relative_to(self.tree)) not in tree.files:
                path.unlink(missing_ok=True)
        if due:
            size = sum(each.size for name, each in due.items() if not _is_lazy(name, each))
            _LOG.log(
                NOTE, "fetching %d files of %s, %.1f MB of them at once", len(due), self.store.url, size / 1e6
            )
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            for _ in pool.map(lambda name: self._bring(name, due[name]), due):
                pass

    def _bring(self, name: str, entry: _Entry) -> None:
        path, other = self.tree / name, self._other / name
        if ".." in name.split("/") or not Path(os.path.normpath(path)).is_relative_to(self.tree):
            raise InputError(f"a name leads out of its folder: {name!r}", where=self.store.url)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            clash = path.is_dir()
        except (FileExistsError, NotADirectoryError):
            clash = True
        if clash:  # which stores of objects allow
            raise InputError(
                f"{name!r} lies in a file, or is a folder too: a disk holds one of both", where=self.store.url
            )
        # What was made or read here need not be fetched; files that may be added to are copied.
        if _matches(other, entry) and not _read_stand_in(other):
            copy = make_temporary_path(path)
            os.link(other, copy) if _is_lazy(name, entry) else shutil.copy2(other, copy)
            copy.replace(path)
        elif _is_lazy(name, entry):
            _stand_in(path, entry)
        else:
            _download(self.store, name, entry, path)
            os.utime(path, ns=(entry.stamp, entry.stamp))


def _matches(path: Path, entry: _Entry) -> bool:
    """Whether a file is as a log or listing says, by its size and time."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    return (status.st_size, status.st_mtime_ns) == (entry.size, entry.stamp)


def _is_lazy(name: str, entry: _Entry) -> bool:
    # A request may hold a signature, which no file shall keep.
    return entry.size > _SMALL_BYTES and Path(name).suffix.lower() in _MEDIA and "?" not in entry.key


def _walk(folder: Path) -> Iterator[Path]:
    """Files below a folder that have their final names: nothing hidden, unfinished or a lock."""
    with suppress(FileNotFoundError):
        for entry in sorted(os.scandir(folder), key=lambda each: each.name):
            if _is_left_alone(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))
            elif entry.is_file():
                yield Path(entry.path)


def _download(store: _Store, name: str, entry: _Entry, path: Path) -> None:
    """Fetch a file to a path, whole or not at all.

    Raises:
        InputError: if it is not there, or not what the log says.
    """
    building = make_temporary_path(path)
    try:
        try:
            store.call(lambda: store.fs.get_file(store.place(entry.key or name), str(building)), "fetched")
        except FileNotFoundError as error:
            raise InputError(f"{name} is not there any more", where=store.url) from error
        size = building.stat().st_size
        wrong = entry.digest and _digest_file(building) != entry.digest
        if wrong or (size != entry.size and (entry.size or entry.digest)):
            raise InputError(
                f"{name} is not what its log or listing says ({size:,} bytes for {entry.size:,})",
                where=store.url,
                hint="somebody writes to it, or it was damaged: try it again",
            )
        building.replace(path)
    except OSError as error:
        raise DiskError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            building.unlink()


def _digest_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


# Stand-ins.


def _stand_in(path: Path, entry: _Entry) -> None:
    """Put a file of the same size and time, which says where its content is, in the place of one."""
    building = make_temporary_path(path)
    with building.open("wb") as stream:
        stream.write(_HEAD + json.dumps([entry.size, entry.stamp, entry.digest, entry.key]).encode() + b"\n")
        stream.truncate(entry.size)
    os.utime(building, ns=(entry.stamp, entry.stamp))
    # The mark that `locate_content` looks at; it has no other meaning for files.
    building.chmod(0o644 | stat.S_ISVTX)
    building.replace(path)


def _read_stand_in(path: Path) -> tuple[str, str, _Entry] | None:
    """Address, name and facts of the content of a stand-in; None for any other file."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return None
    if not kind & stat.S_ISVTX or not stat.S_ISREG(kind):
        return None
    real, home = Path(os.path.realpath(path)), _home()
    if not real.is_relative_to(home) or len(parts := real.relative_to(home).parts) < 3:
        return None
    with real.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    url = json.loads(os.environ.get(_SETTING) or "{}").get(parts[0])
    if not head.startswith(_HEAD) or url is None:
        return None
    return url, "/".join(parts[2:]), _Entry(*json.loads(head[len(_HEAD) :].partition(b"\n")[0]))


def locate_content(path: Path) -> Path:
    """Where the content of a file lies: the file itself, or of a stand-in the copy in the pool, which is fetched.

    Args:
        path: any file.

    Raises:
        InputError: if it cannot be fetched.
        DiskError: if there is no room for it.
    """
    found = _read_stand_in(path)
    if found is None:
        return path
    url, name, entry = found
    text = f"{url}\0{entry.key or name}\0{entry.size}\0{entry.stamp}\0{entry.digest}"
    pool = _home() / "pool"
    copy = pool / f"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}{path.suffix.lower()}"
    if not copy.is_file():
        pool.mkdir(parents=True, exist_ok=True)
        _make_room(pool, entry.size)
        _download(_Store(url), name, entry, copy)
    with suppress(OSError):  # the least recently used one goes first
        os.utime(copy)
    return copy


def _make_room(pool: Path, size: int) -> None:
    """Remove copies, the least recently used first, until one of a size fits; who reads one goes on reading it."""
    most = _most_bytes()
    if size > most:
        raise DiskError(
            f"a file of {size:,} bytes does not fit into {GIGABYTES}={most / 1e9:g}; set it higher"
        )
    held = []
    for path in pool.iterdir():
        with suppress(OSError):
            status = path.stat()
            held.append((status.st_mtime_ns, status.st_size, path))
    total = sum(each for _, each, _ in held) + size
    for _, each, path in sorted(held):
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= each


def _most_bytes() -> float:
    text = os.environ.get(GIGABYTES) or "20"
    try:
        most = float(text) * 1e9
    except ValueError:
        most = -1.0
    if not 0 <= most < float("inf"):
        raise UsageError(f"{GIGABYTES} is a number of gigabytes, not {text!r}")
    return most


# Reading: the path of an address.


def fetch_path(url: str) -> Path:
    """The path in a mirror of what an address names: all of its tables and texts, stand-ins of what else is large.

    Args:
        url: of a file or folder: s3, gs, memory, http(s), zip, or file.

    Raises:
        UsageError: if the client of the store is not installed, or the address holds a password.
        InputError: if nothing is there, or it cannot be read.
    """
    if url.lower().startswith("file://"):
        host, slash, rest = url[len("file://") :].partition("/")
        if host not in ("", "localhost") or not slash:
            raise UsageError(f"{url}: expected file:///PATH with three slashes, or the path alone")
        return Path(unquote(f"/{rest}"))
    store = _Store(url)
    # A path inside a folder that roadaware wrote is what the log of that folder says.
    above, _, rest = store.url.partition("://")[2].partition("/")
    names = rest.split("/") if rest and store.writable else []
    for depth in range(len(names), -1, -1) if store.writable else ():
        root = (
            store if depth == len(names) else _Store(f"{store.scheme}://{'/'.join([above, *names[:depth]])}")
        )
        tree = _read_tree(root)
        if tree is not None:
            return _fetch_within(root, tree, "/".join(names[depth:]))
    try:
        facts = store.call(lambda: store.fs.info(store.root), "found")
    except FileNotFoundError as error:
        raise InputError("there is nothing of that name", where=url, hint="Check the address.") from error
    if facts.get("type") == "directory" or (store.scheme.startswith("http") and url.endswith("/")):
        return _fetch_within(store, _list_tree(store), "")
    # What follows a ? belongs to the request, and :: leads to what holds an archive.
    head, chain, holder = store.url.partition("::")
    plain, asked, query = head.partition("?")
    parent, _, last = plain.rpartition("/")
    entry = _read_facts(facts)
    key = f"{last}?{query}" if asked else ""
    tree = _Tree(0, {unquote(last) or "file": _Entry(entry.size, entry.stamp, key=key)})
    return _fetch_within(_Store(f"{parent}{chain}{holder}"), tree, next(iter(tree.files)))


def _fetch_within(store: _Store, tree: _Tree, within: str) -> Path:
    if within and not any(name == within or name.startswith(f"{within}/") for name in tree.files):
        raise InputError(f"the results in {store.url} hold nothing of the name {within}", where=store.url)
    mirror = _Mirror(store)
    mirror.fetch(tree, within)
    path = mirror.tree / within
    if not within:
        path.mkdir(exist_ok=True)
    return path


# Writing: a mirror whose changes are committed while the work goes on, and when it is over.

_BEAT_S = 5.0
"""A lease is renewed so often; whoever finds one waits three times as long to see whether its holder lives."""
_COMMIT_S = 30.0
_LEASE = f"{OURS}/lease.json"


class Publication:
    """A place in a store that a command writes to, through the folder `path`.

    Args:
        url: of s3, gs or memory.
        folder: whether it is a folder; else a file, which is put at once when the work is over.

    Raises:
        UsageError: if nothing can be written there, or another process writes to it.
        InputError: if the store does not answer.
    """

    def __init__(self, url: str, *, folder: bool) -> None:
        self._store = _Store(url)
        if not self._store.writable:
            raise UsageError(f"{self._store.scheme}:// is read alone; results go to s3://, gs:// or a folder")
        self._mirror = _Mirror(self._store, writing=True)
        self.path = self._mirror.tree
        self._leased, self._lost = "", ""
        self._hold = Hold(self._mirror.folder)
        self._tree = _Tree()
        self._there: os.stat_result | None = None
        self._stop = threading.Event()
        self._turn = threading.Lock()
        self._thread: threading.Thread | None = None
        try:
            self._open(folder=folder)
        except BaseException:
            self._give_up_lease()
            self._hold.release()
            raise

    def _open(self, *, folder: bool) -> None:
        found = _read_tree(self._store)
        if folder or found is not None:
            self._take_lease()
            found = _read_tree(self._store)
        if found is None:
            with suppress(FileNotFoundError):
                facts = self._store.call(lambda: self._store.fs.info(self._store.root), "found")
                if facts.get("type") == "file":
                    # The rules on outputs see that something is there; it is not read.
                    shutil.rmtree(self.path, ignore_errors=True)
                    self.path.unlink(missing_ok=True)
                    self.path.touch()
                    self._there = self.path.stat()
                    return
            found = _list_tree(self._store)
        self._tree = found
        state = self._mirror.folder / _STATE
        # Of the same commit: what has changed in the folder since was done here, and is not lost.
        same = state.is_file() and state.read_text() == str(found.version)
        # A single file is not gone on with: what an earlier command left of one would be taken for its result.
        if not (same and folder) or (found.files and not found.version):
            if not found.files or self.path.is_file():
                shutil.rmtree(self.path, ignore_errors=True)
                self.path.unlink(missing_ok=True)
            if found.files:
                self._mirror.fetch(found, whole=True)
            write_and_rename(state, str(found.version).encode())
        if folder:
            self._thread = threading.Thread(target=self._keep_up, daemon=True)
            self._thread.start()

    # The lease.

    def _read_lease(self) -> dict[str, Any] | None:
        try:
            said = json.loads(self._store.read(_LEASE))
        except (FileNotFoundError, ValueError):
            return None
        return said if isinstance(said, dict) else None

    def _take_lease(self) -> None:
        """Be the one who writes.

        Raises:
            UsageError: if somebody else is, and lives.
        """
        before = self._read_lease()
        if before is not None:
            _LOG.log(NOTE, "%s: is %s still writing to it?", self._store.url, before.get("holder"))
            ends_s = time.monotonic() + 3 * _BEAT_S
            while time.monotonic() < ends_s:
                time.sleep(_BEAT_S / 5)
                now = self._read_lease()
                if now is not None and now != before:
                    raise UsageError(
                        f"{self._store.url} is being written to by process {str(now.get('holder'))[:200]}; wait "
                        "for it, or name another place"
                    )
                if now is None:
                    break
        self._leased = secrets.token_hex(8)
        self._beat(0)
        # Of two who came at once the later one has the lease, which both see only after they have written.
        time.sleep(_BEAT_S / 10)
        now = self._read_lease()
        if now is None or now.get("id") != self._leased:
            self._leased = ""
            raise UsageError(f"{self._store.url} has just been taken by another process; name another place")

    def _beat(self, number: int) -> None:
        holder = f"{os.getpid()} on {os.uname().nodename}"
        self._store.put(_LEASE, json.dumps({"id": self._leased, "holder": holder, "beat": number}).encode())

    def _give_up_lease(self) -> None:
        with suppress(RoadawareError, OSError):
            now = self._read_lease() if self._leased else None
            if now is not None and now.get("id") == self._leased:
                self._store.remove(_LEASE)
        self._leased = ""

    def _keep_up(self) -> None:
        """Renew the lease, and commit now and then what is whole."""
        number, committed_s = 0, time.monotonic()
        while not self._stop.wait(_BEAT_S):
            number += 1
            try:
                now = self._read_lease()
                if now is not None and now.get("id") != self._leased:
                    self._lost = str(now.get("holder"))[:200]
                    return
                self._beat(number)
                if time.monotonic() - committed_s > _COMMIT_S:
                    self._commit(whole=False)
                    committed_s = time.monotonic()
            except (RoadawareError, OSError) as error:  # the last commit, when the work is over, says so
                _LOG.debug("%s", error)

    # Commits.

    def close(self) -> None:
        """Commit what is there, whatever came of the work, and let others write.

        Raises:
            DiskError: if the store does not take it; the next command that names the address tries it again.
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        try:
            if self._lost:
                raise UsageError(
                    f"{self._store.url} was taken over by process {self._lost}; nothing more was written"
                )
            if self.path.is_file():
                now, before = self.path.stat(), self._there
                if before is None or any(
                    getattr(now, name) != getattr(before, name)
                    for name in ("st_ino", "st_size", "st_mtime_ns")
                ):
                    self._upload(self.path, "")
            elif self.path.is_dir():
                self._commit(whole=True)
        except (InputError, DiskError, OSError) as error:
            raise DiskError(
                f"{error}\n  It is kept in storage/{self._mirror.folder.name} of the cache folder, and written when a "
                "command names the address again."
            ) from error
        finally:
            self._give_up_lease()
            self._hold.release()

    def _commit(self, *, whole: bool) -> None:
        """Write what has changed since the last commit, then the entry of the log that makes it count.

        In the midst of work only what was whole when this began is taken, so that what a commit holds is what a crash at
        some moment would have left: a file that lists others is never newer than they are.

        Args:
            whole: whether the work is over.
        """
        with self._turn:
            began_ns = time.time_ns() - 20_000_000  # clocks of file systems tick every few milliseconds
            seen = {str(path.relative_to(self.path)): path for path in _walk(self.path)}
            before, added, late = self._tree.files, dict[str, _Entry](), False
            due = []
            for name, path in seen.items():
                with suppress(FileNotFoundError):
                    status = path.stat()
                    if not whole and status.st_mtime_ns >= began_ns:
                        late = True
                    elif (known := before.get(name)) is None or (known.size, known.stamp) != (
                        status.st_size,
                        status.st_mtime_ns,
                    ):
                        due.append(name)
            removed = [] if late else [name for name in before if name not in seen]
            if due or removed or (whole and self._is_unsettled()):
                with ThreadPoolExecutor(_AT_A_TIME) as pool:
                    sent = pool.map(lambda name: self._send(name, seen[name], before.get(name)), due)
                    added = {name: entry for name, entry in zip(due, sent, strict=True) if entry is not None}
                self._log(added, removed)
            # A place in which nothing was written is left as it was: a command that is refused changes nothing.
            if whole and (due or removed or self._is_unsettled() or self._tree.version):
                self._settle()
            self._shrink(seen)

    def _shrink(self, seen: Mapping[str, Path]) -> None:
        """Replace films and the like, the oldest first, by stand-ins where they take more than the pool may."""
        held = [
            (each.stamp, name)
            for name, each in self._tree.files.items()
            if _is_lazy(name, each) and name in seen
        ]
        total = sum(self._tree.files[name].size for _, name in held)
        for _, name in sorted(held):
            if total <= _most_bytes():
                return
            total -= self._tree.files[name].size
            if _matches(seen[name], self._tree.files[name]) and not _read_stand_in(seen[name]):
                _stand_in(seen[name], self._tree.files[name])

    def _is_unsettled(self) -> bool:
        return any(each.key for each in self._tree.files.values())

    def _send(self, name: str, path: Path, known: _Entry | None) -> _Entry | None:
        """Put a file where it does not stand in the place of one that counts."""
        for _ in range(5):
            try:
                status = path.stat()
                found = _Entry(status.st_size, status.st_mtime_ns, _digest_file(path))
                if known is not None and (known.size, known.digest) == (found.size, found.digest):
                    return _Entry(found.size, found.stamp, found.digest, known.key)
                key = f"{OURS}/files/{found.digest}" if known is not None else ""
                self._upload(path, key or name)
                after = path.stat()
            except FileNotFoundError:
                return None
            # Who was replaced meanwhile is sent as it is now, which is what a crash would have left.
            if (after.st_mtime_ns, after.st_ino) == (status.st_mtime_ns, status.st_ino):
                return _Entry(found.size, found.stamp, found.digest, key)
        raise InputError(f"{name} changes all the time", where=self._store.url)

    def _upload(self, path: Path, key: str) -> None:
        self._store.call(lambda: self._store.fs.put_file(str(path), self._store.place(key)), "written")

    def _log(self, added: Mapping[str, _Entry], removed: list[str], *, base: bool = False) -> None:
        """Write the next entry of the log.

        Args:
            added: files that are new or changed.
            removed: names of files that are gone.
            base: list all files, so that earlier entries can go.

        Raises:
            UsageError: if another writer was faster.
        """
        version = self._tree.version + 1
        base = base or version == 1
        gone = set(removed)
        files_written = {
            name: [each.size, each.stamp, each.digest, each.key]
            for name, each in (self._tree.files | dict(added) if base else added).items()
            if name not in gone
        }
        entry = {"format": _FORMAT, "base": base, "files": files_written, "removed": [] if base else removed}
        place, data = f"{OURS}/log/{version:08d}.json", json.dumps(entry).encode()
        try:
            self._store.put(place, data, new=True)
        except FileExistsError:
            # A first try may have come through though its answer was lost.
            if self._store.read(place) != data:
                raise UsageError(
                    f"{self._store.url} was written to by another process meanwhile; its result stands"
                ) from None
        self._tree.follow(version, added, removed)
        write_and_rename(self._mirror.folder / _STATE, str(version).encode())

    def _settle(self) -> None:
        """Give replaced files their names, write one entry that lists all, and remove what nobody needs any more."""
        keyed = {name: each for name, each in self._tree.files.items() if each.key}
        for name, each in keyed.items():
            if _read_stand_in(self.path / name):
                places = (self._store.place(each.key), self._store.place(name))
                self._store.call(partial(self._store.fs.cp_file, *places), "copied")
            else:
                self._upload(self.path / name, name)
        for name in self._tree.gone:
            self._store.remove(name)
        held = self._store.names(f"{OURS}/log")
        if keyed or len(held) > 1:
            named = {name: _Entry(each.size, each.stamp, each.digest) for name, each in keyed.items()}
            self._log(named, [], base=True)
            self._tree.gone = set()
            for name in sorted(held):
                self._store.remove(f"{OURS}/log/{name}")
        for name in self._store.names(f"{OURS}/files"):
            self._store.remove(f"{OURS}/files/{name}")


@contextmanager
def publish(url: str) -> Iterator[Path]:
    """A folder whose content is in the store when the block is over, also what was whole before an error.

    Args:
        url: of a folder in s3, gs or memory.

    Raises:
        UsageError, DiskError: as of `Publication`.
    """
    with ExitStack() as stack:
        made = Publication(url, folder=True)
        stack.callback(made.close)
        yield made.path
