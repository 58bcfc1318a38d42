"""From a path to the dataset that lies there: the folder itself, one inside it, or its zip archive."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.readers.archive import ZipSource
from roadaware.scenes.readers.source import FileSource, FolderSource, Source, confine, shown, unreadable

_DEEPEST = 6
_MOST_FOLDERS = 2000


def open_source(path: Path) -> Source:
    """The folder or zip archive at `path`.

    Raises:
        DatasetNotFoundError: if nothing is there; says what is there instead.
        InputError: if it is neither, or an archive that is damaged or not to be trusted.
    """
    where = shown(str(path))
    try:
        real = Path(os.path.realpath(path, strict=True))
        mode = real.stat().st_mode
    except FileNotFoundError as error:
        raise DatasetNotFoundError(f"there is nothing at {where} ({_neighbours(path)})") from error
    except (OSError, ValueError) as error:
        raise unreadable(error, where) from error
    if stat.S_ISDIR(mode):
        return FolderSource(real)
    if not stat.S_ISREG(mode):
        raise InputError("not a regular file, and not a folder", where=where)
    return ZipSource(real)


def locate(
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
        return _only(found, wanted)
    saw = ", ".join(_listing(source)) or "nothing"
    source.close()
    told = "".join(f" {error.where}: {error.message}." for error in unread[:3])
    raise DatasetNotFoundError(f"{wanted} and found none in {shown(str(path))} (saw: {saw}).{told} {hint}")


def _nearest(source: Source, fits: Callable[[Source], bool], unread: list[InputError]) -> list[Source]:
    """All that fit on the nearest level on which any does; archives that cannot be read go to `unread`."""
    level, left = [source], _MOST_FOLDERS
    for _ in range(_DEEPEST + 1):
        found = [candidate for candidate in level if fits(candidate)]
        found = found or [z for candidate in level for z in _archives(candidate, fits, unread)]
        if found:
            return found
        level = list(islice((inner for candidate in level for inner in _inside(candidate)), left))
        left -= len(level)
    return []


def _only(found: Sequence[Source], wanted: str) -> Source:
    if len(found) > 1:
        names = ", ".join(shown(f"{source.path}/{source.prefix}") for source in found)
        for source in found:
            source.close()
        raise DatasetNotFoundError(f"{wanted}, and several folders have it: {names}. Point at one of them")
    return found[0]


def _archives(source: Source, fits: Callable[[Source], bool], unread: list[InputError]) -> list[Source]:
    """What fits in the zip archives right inside a folder."""
    if not isinstance(source, FolderSource):
        return []
    held: list[Source] = []
    for name in source.entries()[0]:
        if not name.lower().endswith(".zip"):
            continue
        try:
            archive: Source = open_source(confine(source.path, name))
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
    names = [f"{shown(name, 60)}/" for name in folders] + [shown(name, 60) for name in files]
    return names[:most] + (["…"] if len(names) > most else [])


def _neighbours(path: Path) -> str:
    """What the nearest existing parent holds."""
    for parent in path.absolute().parents:
        if parent.is_dir():
            try:
                saw = ", ".join(_listing(FolderSource(parent))) or "nothing"
            except InputError:
                saw = "nothing that may be listed"
            return f"{shown(str(parent))} holds: {saw}"
    return "no folder on the way exists"
