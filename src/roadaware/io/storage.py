"""Addresses of stores (S3, Google Cloud, http, memory) as paths: what they name is mirrored in the cache folder, and
what is made in a mirror is committed back.

A mirror holds texts whole; Parquet, films, images, sweeps and archives are stand-ins of the same size and time until
`locate_content` fetches one, into a pool whose size is bounded. What roadaware writes lies in the store under its own names
beside `_roadaware/log/`, whose entries say which files with which digests belong together: a reader sees one commit or the
next. Where a store refuses to put what is there already, the number of an entry decides who was first, and nothing that a
slower writer does changes a file that counts; a lease tells writers of each other in every store.
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
from roadaware.steps import show_progress

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
_SILENCE_S = 30.0
"""How long a server of http may send nothing before a try counts as failed."""


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
        self._is_conditional = True  # until it says that it is not
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
                if what == _ONCE and _is_precondition(cause):
                    raise FileExistsError from error
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
        message = f"could not be {'written' if what == _ONCE else what}: {name}: {lines[0] if lines else ''}"[
            :400
        ]
        failure = InputError(message, where=self.url, hint=hint)
        return DiskError(str(failure)) if what in _WRITES else failure

    def read(self, name: str) -> bytes:
        """The content of a small file."""
        return self.call(lambda: bytes(self.fs.cat_file(self.place(name))), "read")

    def put(self, name: str, content: bytes | Path, *, new: bool = False) -> None:
        """Write a file at once.

        Args:
            name: of the file below the address.
            content: its bytes, or the path of a file that holds them.
            new: only where nothing of that name is there.

        Raises:
            FileExistsError: if it shall be new, and the store says that it is there.
        """
        place = self.place(name)

        def write(**how: Any) -> None:
            if isinstance(content, Path):
                self.fs.put_file(str(content), place, **how)
            else:
                self.fs.pipe_file(place, content, **how)

        if new and self._is_conditional:
            try:
                self.call(partial(write, mode="create"), _ONCE)
                return
            except NotImplementedError:
                self._is_conditional = False
        if new and self.call(lambda: self.fs.exists(place), "looked for"):
            raise FileExistsError(name)
        self.call(write, "written")

    def remove(self, name: str) -> bool:
        """Remove a file, if it is there; whether that is allowed."""
        try:
            self.call(lambda: self.fs.rm_file(self.place(name)), "removed")
        except FileNotFoundError:
            pass
        except DiskError as error:
            if not _is_refusal(error):
                raise
            return False
        return True

    def names(self, folder: str) -> dict[str, dict[str, Any]]:
        """Files below a folder, by their names in it, with what the store says of each; pages are asked one by one.

        Raises:
            InputError: if it cannot be listed, or the list names what lies elsewhere.
        """
        base = self.place(folder)
        self.fs.invalidate_cache()  # others write, too
        try:
            listed = self.call(lambda: self.fs.find(base, detail=True), "listed")
        except FileNotFoundError:
            return {}
        except InputError as error:
            # Where a list is empty the client of S3 asks for a file of that name, too, which is refused to who may list
            # a prefix alone.
            if not _is_refusal(error) or self.scheme != "s3" or not self._is_empty(base):
                raise
            return {}
        found = {}
        for name, facts in listed.items():
            if not isinstance(name, str) or not isinstance(facts, dict):
                raise InputError(
                    f"its list holds {ascii(name)[:200]}, which is no name with facts", where=self.url
                )
            below = name[len(base) :]
            if base and name != base and not (name.startswith(base) and below.startswith("/")):
                if self.scheme.startswith("http"):  # a page links to whatever it likes
                    continue
                raise InputError(f"its list names {ascii(name)[:200]}, which lies elsewhere", where=self.url)
            if below.strip("/") and not name.endswith("/"):
                found[below.removeprefix("/")] = facts
        return found

    def _is_empty(self, place: str) -> bool:
        bucket, _, key = place.partition("/")
        said = self.call(
            lambda: self.fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=f"{key}/", MaxKeys=1), "listed"
        )
        return not said.get("KeyCount")

    def below(self, name: str) -> _Store:
        """The place of a folder in this one."""
        head, chain, holder = self.url.partition("::")
        return _Store(f"{head.rstrip('/')}/{name}{chain}{holder}") if name else self


def _is_precondition(cause: BaseException | None) -> bool:
    """Whether a server of S3 has answered 412; s3fs knows it as a file that exists only where the answer of AWS names it."""
    said = getattr(cause, "response", None)
    return isinstance(said, dict) and said.get("ResponseMetadata", {}).get("HTTPStatusCode") == 412


def _is_refusal(error: RoadawareError) -> bool:
    """Whether a store has said that somebody is not allowed to do something."""
    return isinstance(error.__cause__, PermissionError)


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
    # A large file may take hours as long as it comes; of itself aiohttp ends each request after five minutes,
    # and waits that long for a server that has stopped in the middle.
    how["timeout"] = aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE_S, sock_read=_SILENCE_S)
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
        pinned: names under which a writer that was overtaken may yet put or remove something, whenever it wakes: what
            counts lies under its key for good.
        base: of the last entry that lists all files.
    """

    version: int = 0
    files: dict[str, _Entry] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    base: int = 0

    def follow(self, version: int, added: Mapping[str, _Entry], removed: Collection[str]) -> None:
        """Be what the next entry of the log makes of it."""
        self.version = version
        for name in removed:
            self.files.pop(name, None)
        self.files |= added
        self.gone = (self.gone | set(removed)) - set(added)


_KEY = re.compile(rf"(?:{OURS}/files/[0-9a-f-]{{1,80}})?")
_DIGEST = re.compile(r"(?:[0-9a-f]{32})?")
_LARGEST = 1 << 43
"""Bytes of a file that is believed to be one: 8 TB."""
_LOG_BYTES = 1 << 30
"""Of an entry of a log; one of a million files has 150 MB."""


def _check_name(name: object, where: str) -> str:
    """A name of a file below a place.

    Raises:
        InputError: if it is none, or would lead out of the folder of its place.
    """
    try:
        parts = name.split("/") if isinstance(name, str) else []
        fits = all(part not in ("", ".", "..") and 0 < len(part.encode()) < 256 for part in parts)
    except UnicodeEncodeError:
        fits = False
    if not isinstance(name, str) or not fits or "\0" in name or len(name) > 1024:
        raise InputError(
            f"expected the name of a file below it, found {ascii(name)[:200]}, which leads out of its folder or is none",
            where=where,
        )
    return name


def _check_names(names: Collection[object], where: str) -> list[str]:
    """Names that a log says are files of a result."""
    found = [_check_name(name, where) for name in names]
    for name in found:
        if any(_is_left_alone(part) or part == OURS for part in name.split("/")):
            raise InputError(f"{ascii(name)[:200]} is no name of a result", where=where)
    return found


def _parse_entry(name: str, said: object, where: str) -> _Entry:
    """What a log, or a stand-in, says of a file.

    Raises:
        InputError: if it says it in no way that roadaware does.
    """
    if isinstance(said, list) and len(said) == 4:
        size, stamp, digest, key = said
        numbers = type(size) is int and 0 <= size <= _LARGEST and type(stamp) is int and 0 <= stamp < 1 << 63
        texts = isinstance(digest, str) and _DIGEST.fullmatch(digest) and isinstance(key, str)
        if numbers and texts and _KEY.fullmatch(key):
            return _Entry(size, stamp, digest, key)
    raise InputError(
        f"expected size, time, digest and key of {name!a:.200}, found {said!a:.200}", where=where
    )


def _list_versions(store: _Store) -> list[int]:
    """Numbers of the entries of a log, in order.

    Raises:
        InputError: if something else lies there.
    """
    found = []
    for name, facts in store.names(f"{OURS}/log").items():
        digits = name.removesuffix(".json")
        if (
            not digits.isascii()
            or not digits.isdecimal()
            or len(digits) > 15
            or name != f"{int(digits):08d}.json"
        ):
            raise InputError(f"{OURS}/log/{ascii(name)[1:-1][:200]} is no entry of a log", where=store.url)
        if not isinstance(size := facts.get("size") or 0, int) or size > _LOG_BYTES:
            raise InputError(
                f"{OURS}/log/{name} is no log of roadaware: it has {ascii(size)[:30]} bytes", where=store.url
            )
        found.append(int(digits))
    return sorted(found)


def _read_log(store: _Store, version: int) -> tuple[dict[str, Any], dict[str, _Entry]]:
    """An entry of a log, with the files that it says are new.

    Raises:
        FileNotFoundError: if it is not there any more.
        InputError: if it is none.
    """
    where = f"{store.url}/{OURS}/log/{version:08d}.json"
    try:
        said = json.loads(store.read(f"{OURS}/log/{version:08d}.json"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"the log is damaged: {ascii(str(error))[1:-1][:200]}", where=where) from error
    kinds = {"base": bool, "files": dict, "removed": list, "pinned": list}
    if not isinstance(said, dict) or said.get("format") != _FORMAT:
        raise InputError("this is no log of roadaware", where=where)
    said.setdefault("pinned", [])
    for name, kind in kinds.items():
        if not isinstance(said.get(name), kind):
            raise InputError(f"the log is damaged: its {name} is {ascii(said.get(name))[:100]}", where=where)
    for listed in (said["removed"], said["pinned"]):
        _check_names(listed, where)
    added = {
        name: _parse_entry(name, said["files"][name], where) for name in _check_names(said["files"], where)
    }
    return said, added


def _read_tree(store: _Store) -> _Tree | None:
    """What the log of a place says; None where there is none.

    Raises:
        InputError: if it is damaged; names the entry.
    """
    for _ in range(5):
        versions = _list_versions(store)
        if not versions:
            return None
        found, entries = _Tree(), list[tuple[int, dict[str, Any], dict[str, _Entry]]]()
        try:
            for version in reversed(versions):
                entries.append((version, *_read_log(store, version)))
                if entries[-1][1]["base"]:
                    break
        except FileNotFoundError:  # a writer has just put a new base in the place of earlier entries
            continue
        first = entries[-1][0]
        if not entries[-1][1]["base"] or [each[0] for each in entries[::-1]] != list(
            range(first, versions[-1] + 1)
        ):
            continue
        for version, said, added in reversed(entries):
            found.follow(version, added, said["removed"])
            found.pinned |= set(said["pinned"])
        found.base = first
        _check_folders(found.files, f"{store.url}/{OURS}/log")
        return found
    raise InputError(
        "its log has gaps, or changes all the time", where=store.url, hint="wait until it is written"
    )


def _check_folders(files: Mapping[str, _Entry], where: str) -> None:
    """Refuse a name that is both a file and a folder, which stores can have and disks cannot."""
    for name in files:
        for depth in range(name.count("/")):
            if (above := name.rsplit("/", depth + 1)[0]) in files:
                raise InputError(
                    f"{ascii(above)[:200]} is a file, and {ascii(name)[:200]} lies in it", where=where
                )


def _list_tree(store: _Store) -> _Tree:
    """The files of a place without a log; folders in it that have one are seen as it says.

    Raises:
        InputError: if a name or a log is none; names it.
    """
    found, logs = _Tree(), set[str]()
    for name, facts in store.names("").items():
        above, ours, _ = f"/{name}".partition(f"/{OURS}/")
        if ours:
            logs.add(above.lstrip("/"))
        elif not any(_is_left_alone(part) for part in _check_name(name, store.url).split("/")):
            found.files[name] = _read_facts(name, facts, store.url)
    for above in logs:
        inner = _read_tree(store.below(_check_name(above, store.url) if above else ""))
        if inner is not None:
            start = f"{above}/" if above else ""
            found.files = {name: facts for name, facts in found.files.items() if not name.startswith(start)}
            for name, entry in inner.files.items():
                key = f"{start}{entry.key}" if entry.key else ""
                found.files[f"{start}{name}"] = _Entry(entry.size, entry.stamp, entry.digest, key)
    _check_folders(found.files, store.url)
    return found


def _is_left_alone(name: str) -> bool:
    """Whether a file or folder is no result: hidden, unfinished or a lock. It is neither fetched, written nor removed."""
    return not name or name.startswith(".") or name.endswith(".lock") or is_temporary(name) is not None


def _read_facts(name: str, facts: Mapping[str, Any], where: str) -> _Entry:
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
    text = " ".join(str(facts.get(each) or "") for each in named)
    # Whatever tells one content from another, as a time that files can have.
    stamp = (
        int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=6).digest(), "big") * 1000
    )
    size = facts.get("size") or 0
    if type(size) is not int or not 0 <= size <= _LARGEST:
        raise InputError(f"{name!a:.200} is said to have {ascii(size)[:100]} bytes", where=where)
    return _Entry(size, stamp)


# The mirror: a folder of the cache that stands for a place.

_LARGE = {
    *(
        ".parquet",
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
"""A file beside a mirror: the commit that it is of; of one that is written to, or whose writer has died, the name of the
writer's lease, too: it may hold what the store does not have."""
_NOTES = "notes"
"""A folder beside the mirror of a writer: of each worker, a line for each file that it has put."""
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
        # A signed address is a secret, which other processes could see there: what it names has no stand-ins.
        self._is_signed = "?" in store.url
        if not self._is_signed:
            os.environ[_SETTING] = json.dumps({**_read_setting(), self.folder.name: store.url})

    def fetch(self, tree: _Tree, within: str = "", *, whole: bool = False) -> None:
        """Bring files to what the store has.

        Args:
            tree: what the store has.
            within: the file or folder that is wanted; empty for all.
            whole: also remove what the store does not have.

        Raises:
            InputError: if more must be fetched at once than the pool may hold, or something cannot be.
            DiskError: if there is no room for it.
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
            self._check_size(due)
        for _ in _spread(lambda name: self._bring(name, due[name]), due, f"fetching {self.store.url}"):
            pass

    def _check_size(self, due: Mapping[str, _Entry]) -> None:
        now = [
            each.size
            for name, each in due.items()
            if not self._is_lazy(name, each) and not _matches(self._other / name, each)
        ]
        size, most = sum(now), _most_bytes()
        count = f"{len(now):,} files with {size / 1e6:,.1f} MB"
        _LOG.log(
            NOTE, "fetching %s of %s, of %d when they are opened", count, self.store.url, len(due) - len(now)
        )
        if size > most:
            raise InputError(
                f"{count} must be fetched at once, and {GIGABYTES}={most / 1e9:g} allows {most / 1e6:,.1f} MB",
                where=self.store.url,
                hint=f"name a folder or file below it, or set {GIGABYTES}={-(-size // 10**9)}",
            )
        if size > (free := shutil.disk_usage(self.folder).free):
            raise DiskError(
                f"{count} of {self.store.url} do not fit onto the disk of {self.folder.parent}, which has "
                f"{free / 1e6:,.1f} MB left; free some, or let ROADAWARE_HOME name another place"
            )

    def _is_lazy(self, name: str, entry: _Entry) -> bool:
        return not self._is_signed and _is_lazy(name, entry)

    def _bring(self, name: str, entry: _Entry) -> None:
        path, other = self.tree / name, self._other / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            clash = path.is_dir()
        except (FileExistsError, NotADirectoryError):
            clash = True
        if clash:  # which stores of objects allow
            raise InputError(
                f"{ascii(name)[:200]} lies in a file, or is a folder too: a disk holds one of both",
                where=self.store.url,
            )
        try:
            # What was made or read here need not be fetched; files that may be added to are copied.
            if _matches(other, entry) and not _read_stand_in(other):
                copy = make_temporary_path(path)
                os.link(other, copy) if self._is_lazy(name, entry) else shutil.copy2(other, copy)
                copy.replace(path)
            elif self._is_lazy(name, entry):
                _stand_in(path, name, entry)
            else:
                _download(self.store, name, entry, path)
                os.utime(path, ns=(entry.stamp, entry.stamp))
        except OSError as error:
            raise DiskError(f"{path} could not be written: {error.strerror or error}") from error


def _spread(act: Callable[[str], _Value], names: Collection[str], what: str) -> Iterator[_Value]:
    """What an act returns of each name, in order, several at a time; the first failure leaves those not begun."""
    with show_progress(what) as progress, ThreadPoolExecutor(_AT_A_TIME) as pool:
        for done, value in enumerate(pool.map(act, names), 1):
            yield value
            progress(done, len(names), "files")


def _read_setting() -> dict[str, str]:
    """Addresses of stores by the names of the folders that stand for them; none where somebody else wrote it."""
    with suppress(ValueError, RecursionError):
        said = json.loads(os.environ.get(_SETTING) or "{}")
        if isinstance(said, dict) and all(isinstance(url, str) for url in said.values()):
            return said
    return {}


def _matches(path: Path, entry: _Entry) -> bool:
    """Whether a file is as a log or listing says, by its size and time."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    return (status.st_size, status.st_mtime_ns) == (entry.size, entry.stamp)


def _is_lazy(name: str, entry: _Entry) -> bool:
    # A request may hold a signature, which no file shall keep.
    return entry.size > _SMALL_BYTES and Path(name).suffix.lower() in _LARGE and "?" not in entry.key


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


def _stand_in(path: Path, name: str, entry: _Entry) -> None:
    """Put a file of the same size and time, which says where its content is, in the place of one."""
    building = make_temporary_path(path)
    said = [entry.size, entry.stamp, entry.digest, entry.key or name]  # a file may get another name here
    with building.open("wb") as stream:
        stream.write(_HEAD + json.dumps(said).encode() + b"\n")
        stream.truncate(entry.size)
    os.utime(building, ns=(entry.stamp, entry.stamp))
    # The mark that `locate_content` looks at; it has no other meaning for files.
    building.chmod(0o644 | stat.S_ISVTX)
    building.replace(path)


def _read_stand_in(path: Path) -> tuple[str, _Entry] | None:
    """The address of the store and the facts of the content of a stand-in; None for any other file."""
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
    url = _read_setting().get(parts[0])
    if not head.startswith(_HEAD) or url is None:
        return None
    size, stamp, digest, key = json.loads(head[len(_HEAD) :].partition(b"\n")[0])
    return url, _Entry(size, stamp, digest, key)


def locate_content(path: Path) -> Path:
    """Where the content of a file lies: the file itself, or of a stand-in the copy in the pool, which is fetched.

    Raises:
        InputError: if it cannot be fetched.
        DiskError: if there is no room for it.
    """
    found = _read_stand_in(path)
    if found is None:
        return path
    url, entry = found
    text = f"{url}\0{entry.key}\0{entry.size}\0{entry.stamp}\0{entry.digest}"
    pool = _home() / "pool"
    copy = pool / f"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}{path.suffix.lower()}"
    if not copy.is_file():
        pool.mkdir(parents=True, exist_ok=True)
        _make_room(pool, entry.size)
        _download(_Store(url), entry.key, entry, copy)
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
        try:
            tree = _read_tree(root)
        except InputError as error:
            # Who may read what is below the address alone sees no log above it.
            if depth < len(names) and _is_refusal(error):
                break
            raise
        if tree is not None:
            return _fetch_within(root, tree, "/".join(names[depth:]))
    try:
        facts = store.call(lambda: store.fs.info(store.root), "found")
    except FileNotFoundError as error:
        raise InputError("there is nothing of that name", where=url, hint="Check the address.") from error
    except InputError as error:
        tree = _list_tree(store) if store.writable and _is_refusal(error) else _Tree()
        if not tree.files:
            raise
        return _fetch_within(store, tree, "")
    if facts.get("type") == "directory" or (store.scheme.startswith("http") and url.endswith("/")):
        return _fetch_within(store, _list_tree(store), "")
    # What follows a ? belongs to the request, and :: leads to what holds an archive.
    head, chain, holder = store.url.partition("::")
    plain, asked, query = head.partition("?")
    parent, _, last = plain.rpartition("/")
    entry = _read_facts(last, facts, url)
    key = f"{last}?{query}" if asked else ""
    tree = _Tree(0, {_check_name(unquote(last) or "file", url): _Entry(entry.size, entry.stamp, key=key)})
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
        # In the name of whatever awaits its own: no other writer puts or removes that.
        self._token = secrets.token_hex(8)
        self._leased, self._overtook, self._lost = False, False, ""
        self._beats, self._heard_s = 0, 0.0
        self._lease_turn = threading.Lock()
        self._hold = Hold(self._mirror.folder)
        self._tree = _Tree()
        self._notes, self._heard_bytes = dict[str, _Entry](), dict[str, int]()
        self._there: os.stat_result | None = None
        self._stop, self._over = threading.Event(), threading.Event()
        self._turn = threading.Lock()
        self._threads: list[threading.Thread] = []
        try:
            self._open(folder=folder)
        except BaseException:
            self._give_up_lease()
            self._hold.release()
            raise

    def _open(self, *, folder: bool) -> None:
        state = self._mirror.folder / _STATE
        version, _, writer = (state.read_text() if state.is_file() else "").partition(" ")
        found = _read_tree(self._store)
        if folder or found is not None:
            self._take_lease(writer)
            found = _read_tree(self._store)
        if found is None:
            try:
                facts = self._store.call(lambda: self._store.fs.info(self._store.root), "found")
            except FileNotFoundError:
                facts = {}
            except (
                InputError
            ) as error:  # who may look at what is below the address alone writes a folder there
                if not _is_refusal(error):
                    raise
                facts = {}
            if facts.get("type") == "file":
                # The rules on outputs see that something is there; it is not read.
                shutil.rmtree(self.path, ignore_errors=True)
                self.path.unlink(missing_ok=True)
                self.path.touch()
                self._there = self.path.stat()
                return
            found = _list_tree(self._store)
        if self._overtook:
            found.pinned |= found.gone | {name for name, each in found.files.items() if each.key}
        self._tree = found
        # Of the same commit: what has changed in the folder since was done here, and is not lost.
        same = version == str(found.version)
        # A single file is not gone on with: what an earlier command left of one would be taken for its result.
        if not (same and folder) or (found.files and not found.version):
            if folder and writer and (kept := self._set_aside()):
                _LOG.warning(
                    "%s was written to by another process since; what an earlier command made here and could not "
                    "store is kept in %s", self._store.url, kept
                )  # fmt: skip
            if not found.files or self.path.is_file():
                shutil.rmtree(self.path, ignore_errors=True)
                self.path.unlink(missing_ok=True)
            if found.files:
                self._mirror.fetch(found, whole=True)
        if folder:
            shutil.rmtree(self._mirror.folder / _NOTES, ignore_errors=True)
            self._note_version(self._token)
            self._begin(self._keep_up)

    def _note_version(self, writer: str = "") -> None:
        write_and_rename(self._mirror.folder / _STATE, f"{self._tree.version} {writer}".encode())

    def _begin(self, act: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=act, daemon=True))
        self._threads[-1].start()

    def _set_aside(self) -> Path | None:
        """Move what the folder holds and the store does not into one of its own; None where there is nothing."""
        kept = _home() / "kept" / f"{self._mirror.folder.name}-{secrets.token_hex(4)}" / self.path.name
        for path in list(_walk(self.path)):
            name = str(path.relative_to(self.path))
            entry = self._tree.files.get(name)
            if (entry is None or not _matches(path, entry)) and not _read_stand_in(path):
                (kept / name).parent.mkdir(parents=True, exist_ok=True)
                path.replace(kept / name)
        return kept if kept.exists() else None

    # The lease.

    def _read_lease(self) -> dict[str, Any] | None:
        try:
            said = json.loads(self._store.read(_LEASE))
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        except InputError as error:  # as S3 says of what is not there to who may list a prefix alone
            if not _is_refusal(error) or "lease.json" in self._store.names(OURS):
                raise
            return None
        # Who may not remove it says that it is free.
        return said if isinstance(said, dict) and said.get("id") else None

    def _take_lease(self, earlier: str) -> None:
        """Be the one who writes.

        Args:
            earlier: the lease of who wrote to this folder before, and is gone: its lock is ours.

        Raises:
            UsageError: if somebody else is, and lives.
        """
        before = self._read_lease()
        if before is not None and before.get("id") != earlier:
            holder = _format_holder(before)
            _LOG.log(NOTE, "%s: is %s still writing to it?", self._store.url, holder)
            ends_s = time.monotonic() + 3 * _BEAT_S
            self._overtook = True
            while self._overtook and time.monotonic() < ends_s:
                time.sleep(_BEAT_S / 5)
                now = self._read_lease()
                if now is not None and now != before:
                    raise UsageError(
                        f"{self._store.url} is being written to by process {_format_holder(now)}; wait "
                        "for it, or name another place"
                    )
                self._overtook = now is not None
        self._beat()
        # Of two who came at once the later one has the lease, which both see only after they have written.
        time.sleep(_BEAT_S / 10)
        now = self._read_lease()
        if now is None or now.get("id") != self._token:
            raise UsageError(f"{self._store.url} has just been taken by another process; name another place")
        self._leased = True
        self._begin(self._keep_lease)

    def _beat(self) -> None:
        holder = f"{os.getpid()} on {os.uname().nodename}"
        self._store.put(
            _LEASE, json.dumps({"id": self._token, "holder": holder, "beat": self._beats}).encode()
        )
        self._beats, self._heard_s = self._beats + 1, time.monotonic()

    def _renew(self) -> None:
        """Say that the holder of the lease lives.

        Raises:
            UsageError: if another process has taken it.
        """
        with self._lease_turn:
            now = None if self._lost else self._read_lease()
            if now is not None and now.get("id") != self._token:
                self._lost = _format_holder(now)
            if self._lost:
                raise UsageError(
                    f"{self._store.url} was taken over by process {self._lost}, which had not heard of this one for "
                    f"{3 * _BEAT_S:g} s; nothing more is written to it"
                )
            self._beat()

    def _check_lease(self) -> None:
        """Refuse to write once another process has the lease, or after a time in which one could have taken it."""
        if self._leased and (self._lost or time.monotonic() - self._heard_s > 2 * _BEAT_S):
            self._renew()

    def _keep_lease(self) -> None:
        """Renew the lease, whatever else is going on, until all is written."""
        while not self._over.wait(_BEAT_S):
            try:
                self._renew()
            except UsageError as error:
                _LOG.warning("%s", error)
                return
            except (RoadawareError, OSError) as error:  # whoever writes next hears of it
                _LOG.debug("%s", error)

    def _give_up_lease(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        with suppress(RoadawareError, OSError):
            now = self._read_lease() if self._leased else None
            if now is not None and now.get("id") == self._token and not self._store.remove(_LEASE):
                self._store.put(_LEASE, b"{}")
        self._leased = False

    # Commits.

    def _keep_up(self) -> None:
        """Commit now and then what is whole."""
        committed_s = time.monotonic()
        while not self._stop.wait(_BEAT_S):
            if time.monotonic() - committed_s > _COMMIT_S:
                try:
                    self._commit(whole=False)
                except (RoadawareError, OSError) as error:  # the last commit, when the work is over, says so
                    _LOG.debug("%s", error)
                committed_s = time.monotonic()

    def close(self) -> None:
        """Commit what is there, whatever came of the work, and let others write.

        Raises:
            UsageError: if another process has taken the place over; says where what was made here is kept.
            DiskError: if the store does not take it; the next command that names the address tries it again.
        """
        self._stop.set()
        for thread in self._threads[1:]:
            thread.join()
        try:
            if self.path.is_file():
                now, before = self.path.stat(), self._there
                if before is None or any(
                    getattr(now, name) != getattr(before, name)
                    for name in ("st_ino", "st_size", "st_mtime_ns")
                ):
                    self._store.put("", self.path)
            elif self.path.is_dir():
                self._commit(whole=True)
                self._note_version()
        except UsageError as error:
            if not (kept := self._set_aside()):
                raise
            (self._mirror.folder / _STATE).unlink(missing_ok=True)
            raise UsageError(f"{error}\n  What was made here and is not in it is kept in {kept}") from error
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
                self._read_notes()
                what = f"storing {self._store.url}"
                sent = list(_spread(lambda name: self._send(name, seen[name], before.get(name)), due, what))
                added = {name: entry for name, entry in zip(due, sent, strict=True) if entry is not None}
                self._log(added, removed)
            # A place in which nothing was written is left as it was: a command that is refused changes nothing.
            if whole and self._tree.version:
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
                _stand_in(seen[name], name, self._tree.files[name])

    def _is_unsettled(self) -> bool:
        return any(each.key and name not in self._tree.pinned for name, each in self._tree.files.items())

    def _send(self, name: str, path: Path, known: _Entry | None) -> _Entry | None:
        """Put a file where it does not stand in the place of one that counts, or that another writer may touch.

        What the worker that made it has put already is not put again.
        """
        pinned = name in self._tree.pinned
        note = self._notes.pop(name, None)
        if note is not None and _matches(path, note) and (note.key or not pinned):
            return note
        own = known is None and not pinned
        return _put_file(self._store, name, path, self._token, self._check_lease, known=known, own=own)

    def _read_notes(self) -> None:
        """Take in what workers have put since the last time."""
        folder = self._mirror.folder / _NOTES
        for path in sorted(folder.glob(f"{self._token}-*")):
            with path.open("rb") as stream:
                stream.seek(self._heard_bytes.get(path.name, 0))
                said = stream.read()
            # A worker that was killed may have left half a line.
            whole = said[: said.rfind(b"\n") + 1]
            self._heard_bytes[path.name] = self._heard_bytes.get(path.name, 0) + len(whole)
            for line in whole.splitlines():
                # What a damaged line named is put again by the writer.
                with suppress(ValueError, TypeError):
                    name, *facts = json.loads(line)
                    self._notes[name] = _Entry(*facts)

    def _log(self, added: Mapping[str, _Entry], removed: list[str], *, base: bool = False) -> None:
        """Write the next entry of the log.

        Args:
            added: files that are new or changed.
            removed: names of files that are gone.
            base: list all files, so that earlier entries can go.

        Raises:
            UsageError: if another writer was faster.
        """
        self._check_lease()
        version = self._tree.version + 1
        base = base or version == 1
        gone = set(removed)
        files_written = {
            name: [each.size, each.stamp, each.digest, each.key]
            for name, each in (self._tree.files | dict(added) if base else added).items()
            if name not in gone
        }
        entry = {"format": _FORMAT, "base": base, "files": files_written, "removed": [] if base else removed}
        if self._tree.pinned:
            entry["pinned"] = sorted(self._tree.pinned)
        place, data = f"{OURS}/log/{version:08d}.json", json.dumps(entry).encode()
        try:
            self._store.put(place, data, new=True)
            faster = False
        except FileExistsError:
            # A first try may have come through though its answer was lost.
            faster = self._store.read(place) != data
        # A writer who had the number, too, and went on has removed the entry by now.
        if faster or _list_versions(self._store)[-1:] != [version]:
            raise UsageError(
                f"{self._store.url} was written to by another process meanwhile; its result stands"
            )
        self._tree.follow(version, added, removed)
        self._tree.base = version if base else self._tree.base
        self._note_version(self._token)

    def _settle(self) -> None:
        """Give replaced files their names, write one entry that lists all, and remove what nobody needs any more."""
        self._check_lease()
        tree, log, waiting = self._tree, f"{OURS}/log", f"{OURS}/files"
        # Listed before the entry that lists all, or else before the lease is seen to be ours: what another writer puts
        # later stays, and what one has put before will not count.
        due = {
            f"{log}/{version:08d}.json" for version in _list_versions(self._store) if version <= tree.version
        }
        due |= {f"{waiting}/{name}" for name in self._store.names(waiting)}
        if tree.base == tree.version and not tree.gone and not self._is_unsettled():
            self._renew()
            due.discard(f"{log}/{tree.version:08d}.json")
        else:
            for name, each in tree.files.items():
                if not each.key:
                    continue
                self._check_lease()
                if _read_stand_in(self.path / name):
                    places = (self._store.place(each.key), self._store.place(name))
                    self._store.call(partial(self._store.fs.cp_file, *places), "copied")
                else:
                    self._store.put(name, self.path / name)
            for name in tree.gone:
                self._store.remove(name)
            named = {
                name: _Entry(each.size, each.stamp, each.digest)
                for name, each in tree.files.items()
                if each.key and name not in tree.pinned
            }
            self._log(named, [], base=True)
            tree.gone = set()
        for name in sorted(due - {each.key for each in tree.files.values()}):
            self._store.remove(name)


def _put_file(
    store: _Store,
    name: str,
    path: Path,
    token: str,
    check_lease: Callable[[], None],
    *,
    known: _Entry | None = None,
    own: bool = True,
) -> _Entry | None:
    """Put a file into a store; None where it is gone.

    Args:
        store: where to.
        name: of the file in it.
        path: of the file here.
        token: of the lease, which is in the name of whatever awaits its own.
        check_lease: raises where another writer has it.
        known: what counts under this name; None for nothing.
        own: whether it may get its own name at once, where nothing of that name is there.
    """
    for _ in range(5):
        try:
            status, content = path.stat(), locate_content(path)
            found = _Entry(status.st_size, status.st_mtime_ns, _digest_file(content))
            if known is not None and (known.size, known.digest) == (found.size, found.digest):
                return _Entry(found.size, found.stamp, found.digest, known.key)
            check_lease()
            key = f"{OURS}/files/{token}-{found.digest}"
            if own:
                # What another writer left there, or put since, stays until the log says what counts.
                with suppress(FileExistsError):
                    store.put(name, content, new=True)
                    key = ""
            if key:
                store.put(key, content)
            after = path.stat()
        except FileNotFoundError:
            return None
        # Who was replaced meanwhile is sent as it is now, which is what a crash would have left.
        if (after.st_mtime_ns, after.st_ino) == (status.st_mtime_ns, status.st_ino):
            return _Entry(found.size, found.stamp, found.digest, key)
    raise InputError(f"{name} changes all the time", where=store.url)


# Workers put what they make, so that the writer has the log alone to write.


class _Outlet:
    """A place that the process which began the work writes to, as its workers see it.

    A file that a worker has put counts for nobody until the writer's log names it: whoever is killed before that leaves
    what any killed writer leaves.

    Args:
        folder: of the writer's mirror.
        url: of the place.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self._store = _Store(url)
        self._token = (folder / _STATE).read_text().partition(" ")[2]
        self._notes = folder / _NOTES / f"{self._token}-{os.uname().nodename}-{os.getpid()}"
        self._heard_s, self._turn = -float("inf"), threading.Lock()
        self.is_open = bool(self._token)

    def send(self, files: Mapping[str, Path]) -> None:
        """Put files, and note what was put for the writer, who puts the others.

        Args:
            files: by their names in the store.
        """
        if not self.is_open:
            return
        put = partial(_put_file, self._store, token=self._token, check_lease=self._check_lease)
        self.is_open = False  # after a failure: what each part would wait for is tried by the writer alone
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            sent = list(pool.map(lambda name: put(name, files[name]), files))
        self.is_open = True
        said = [
            [name, each.size, each.stamp, each.digest, each.key]
            for name, each in zip(files, sent, strict=True)
            if each is not None
        ]
        self._notes.parent.mkdir(exist_ok=True)
        with self._notes.open("a") as stream:
            stream.write("".join(f"{json.dumps(each)}\n" for each in said))

    def _check_lease(self) -> None:
        with self._turn:
            if time.monotonic() - self._heard_s < _BEAT_S:
                return
            if json.loads(self._store.read(_LEASE)).get("id") != self._token:
                raise UsageError(f"{self._store.url} was taken over by another process")
            self._heard_s = time.monotonic()


_OUTLETS: dict[Path, _Outlet] = {}
_SHARED = ("s3", "gs")
"""Stores that other processes see, too."""


def send_written(written: Collection[Path]) -> None:
    """Put files that lie in the mirror of a place which is written to into its store; others are left alone.

    The process that writes to the place hears of it by notes beside the mirror, and puts what they do not name itself.
    """
    if not written or not (urls := _read_setting()):
        return
    home, due = _home(), dict[Path, dict[str, Path]]()
    for path in written:
        real = Path(os.path.realpath(path))
        parts = real.relative_to(home).parts if real.is_relative_to(home) else ()
        url = urls.get(parts[0], "") if len(parts) > 2 and parts[0].endswith("-out") else ""
        if not url.startswith(_SHARED) or any(map(_is_left_alone, parts[2:])):
            continue
        tree = home.joinpath(*parts[:2])
        for file in _walk(real) if real.is_dir() else (real,):
            due.setdefault(tree.parent, {})[str(file.relative_to(tree))] = file
    for folder, files in due.items():
        try:
            if folder not in _OUTLETS:
                _OUTLETS[folder] = _Outlet(folder, urls[folder.name])
            _OUTLETS[folder].send(files)
        except (RoadawareError, OSError, ValueError) as error:  # the writer meets it, too, and says so
            _LOG.debug("%s", error)


def _format_holder(lease: Mapping[str, Any]) -> str:
    return ascii(str(lease.get("holder")))[1:-1][:200]


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
