"""Cache of read datasets as Parquet, valid while the source is unchanged."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from roadaware import __version__
from roadaware.datasets.sensor_tables import parse_picture_size
from roadaware.errors import InputError, RoadawareError
from roadaware.io.files import read_regular, write_atomically
from roadaware.io.sources import Source
from roadaware.places import get_cache_folder
from roadaware.scenes.store import open_scenes, save
from roadaware.scenes.tables import Scenes

_LOG = logging.getLogger("roadaware")
_LONGEST_WAIT_S = 120.0
_PICTURES, _MOST_BYTES = "pictures.json", 1 << 30
Glimpsed = dict[str, tuple[int, int] | str]


@dataclass(frozen=True)
class Entry:
    """Source and options that a cached set was read from.

    Args:
        reader: the reader's name.
        version: of the reader; another version does not open what this one kept.
        source: where the dataset lies.
        inputs: names of the files that were read.
        options: the reader's options.
    """

    reader: str
    version: int
    source: Source
    inputs: Sequence[str]
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """Names the entry: one for each reader, place and options."""
        place = [str(self.source.path), self.source.prefix]
        return f"{self.reader}-{_digest([self.reader, place, sorted(self.options.items())])}"

    def state(self, images: Iterable[str]) -> str:
        """Names the state of the source and of the program; it changes when a file does.

        Args:
            images: names of those whose first bytes were read, there or not.
        """
        names = list(images)
        beside = [self.source.stamp(names)] if names else []
        return _digest([__version__, self.version, self._stamp, *beside])

    @cached_property
    def _stamp(self) -> str:
        """Taken before anything is read, so that what changes meanwhile is read anew."""
        return self.source.stamp(self.inputs)


def load_or_read(entry: Entry, fresh: Callable[[], Scenes], *, verify: bool = False) -> Scenes:
    """The Scenes that were kept for this entry, or what `fresh` reads, which is then kept.

    A cache that cannot be written costs one warning and nothing else; a damaged entry is read anew.

    Args:
        entry: what it is made from.
        fresh: reads the dataset.
        verify: open what was kept only if the contents of all files are the same, too.
    """
    try:
        folder = get_cache_folder() / "scenes" / entry.key
    except RuntimeError:
        return fresh()
    scenes = _load_cached(folder, entry, verify=verify)
    if scenes is not None:
        return scenes
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(_hold_lock(folder / "lock"))
        except OSError as error:
            _warn(folder, error)
            return fresh()
        scenes = _load_cached(folder, entry, logging.WARNING, verify=verify)
        if scenes is None:
            scenes = fresh()
            _keep(folder, entry, scenes)
        return scenes


def _load_cached(folder: Path, entry: Entry, level: int = logging.DEBUG, *, verify: bool) -> Scenes | None:
    """The kept Scenes; None where there are none, they are damaged (logged at `level`) or of other contents."""
    images = _pictures(folder)
    place = folder / entry.state(images)
    if not place.is_dir():
        return None
    try:
        scenes = open_scenes(place)
    except InputError as error:
        _LOG.log(level, "what was kept in %s cannot be opened and is read anew: %s", place, error.message)
        return None
    return scenes if not verify or _same(scenes, images, entry) else None


def _same(scenes: Scenes, images: Glimpsed, entry: Entry) -> bool:
    """Whether the files hold what they held: annotations to the byte, of images what was taken of them."""
    if scenes.meta.source_digest != entry.source.contents(entry.inputs):
        return False
    return _as_seen(entry.source, images)


def _as_seen(source: Source, images: Glimpsed) -> bool:
    """Whether the first bytes of the images still give the same sizes."""
    return all(parse_picture_size(source, name) == size for name, size in images.items())


def _pictures(folder: Path) -> Glimpsed:
    """The images that were opened for the kept set, with what their first bytes gave."""
    with suppress(RoadawareError, OSError, ValueError, RecursionError, TypeError, AttributeError):
        found = json.loads(read_regular(folder / _PICTURES, limit=_MOST_BYTES))
        return {name: size if isinstance(size, str) else tuple(size) for name, size in found.items()}
    return {}


def _keep(folder: Path, entry: Entry, scenes: Scenes) -> None:
    """Write the entry and remove those of earlier states; failing to is a warning."""
    images = entry.source.glimpsed
    state = entry.state(images)
    if not _as_seen(entry.source, images):
        return  # One was changed after it was read: the state is not that of what was read.
    try:
        for old in [path for path in folder.iterdir() if path.name != "lock"]:
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.unlink()
        if images:
            write_atomically(folder / _PICTURES, json.dumps(images).encode())
        save(scenes, folder / state, overwrite=True)
    except (RoadawareError, OSError) as error:
        _warn(folder, error)
        shutil.rmtree(folder / state, ignore_errors=True)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock file that names this process; go on without it if another holds it for too long.

    Raises:
        OSError: if it cannot be opened.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        patience = time.monotonic() + _LONGEST_WAIT_S
        # flock knows no bound in time.
        while not _taken(handle) and time.monotonic() < patience:
            time.sleep(0.02)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _warn(folder: Path, error: Exception) -> None:
    _LOG.warning("what was read cannot be kept in %s and will be read again next time: %s", folder, error)


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
