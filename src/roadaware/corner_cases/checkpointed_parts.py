"""Parts: a folder of results that are made piece by piece, each whole or not there, for one order alone."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.corner_cases.loader import Captures, Moment
from roadaware.corner_cases.sources import DetectionSource, SemanticSource
from roadaware.errors import InputError, UsageError
from roadaware.io import sources
from roadaware.io.files import build_disk_error, list_folder_names, read_regular, write_atomically
from roadaware.io.parquet import read_parquet

PARTS = "parts"
BESIDE = "beside"
"""Notes of a part: name to digest of its further tables."""
_OWN = "notes_blake2b"
"""The note with the digest of all other notes of a part."""
REMEDY = "say --overwrite to make all anew, or name another folder"
_CHANGED = {
    "order": "another order",
    "source_digest": "a set that has changed since",
    "pictures": "a set that has changed since",
    "classes_digest": "other names of classes (classes.json beside the masks)",
    "detections_digest": "detections that have changed since",
}
_LOG = logging.getLogger("roadaware")
_LIMIT = 1 << 28


def prepare_result_folder(
    folder: Path,
    main: str,
    head: Mapping[str, Any],
    what: str,
    *,
    overwrite: bool = False,
    complete: Callable[[Any], Any] = lambda known: known,
) -> None:
    """Write the request into a folder, or check that the folder has the same one.

    An order of which no part was done holds nothing that could be lost: another one takes its place.

    Args:
        folder: new, empty, or of the same order.
        main: name of the file that says it.
        head: what is asked for, JSON-ready, with `format`.
        what: the results, in messages.
        overwrite: drop the parts that were made by whatever order.
        complete: adds to the head of an earlier version what that did not say.

    Raises:
        UsageError: if it is a file, or holds something else.
        DiskError: if it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder to write into")
    try:
        found = list_folder_names(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise build_disk_error(folder, 0, error) from error
    if found:
        known = _parse_json(folder / main) if main in found else None
        if not isinstance(known, dict) or known.get("format") != head["format"]:
            raise UsageError(
                f"{folder} holds other things ({', '.join(found[:5])}); name a new or empty folder with --out"
            )
        if overwrite:
            _drop(folder / PARTS)
        elif complete(known) != head and list_folder_names(folder / PARTS):
            raise UsageError(f"{folder} holds {what} of {_difference(complete(known), head)}; {REMEDY}")
    write_atomically(folder / main, (json.dumps(head, indent=1, sort_keys=True) + "\n").encode())
    try:
        (folder / PARTS).mkdir(exist_ok=True)
    except OSError as error:
        raise build_disk_error(folder, 0, error) from error


def _drop(folder: Path) -> None:
    """Remove what lies in the folder of the parts.

    Raises:
        DiskError: if the disk refuses.
    """
    try:
        for path in folder.iterdir() if folder.is_dir() else ():
            path.unlink()
    except OSError as error:
        raise build_disk_error(folder, 0, error) from error


def _difference(known: Mapping[str, Any], head: Mapping[str, Any]) -> str:
    """The difference between the request of existing parts and this one."""
    differing = (words for name, words in _CHANGED.items() if known.get(name) != head.get(name))
    return " and of ".join(dict.fromkeys(differing)) or "another version"


def read_finished_part(folder: Path, number: int) -> dict[str, Any] | None:
    """The notes of a finished part; None where it is not finished or damaged."""
    path = _path(folder, number).with_suffix(".json")
    record = _parse_json(path) if path.exists() else None
    if not isinstance(record, dict) or not isinstance(record.get("blake2b"), str):
        return None
    # Parts of earlier versions hold no digest of their notes.
    if record.pop(_OWN, None) not in (None, _digest_notes(record)):
        _LOG.warning("%s is damaged and is made again", path)
        return None
    try:
        data = read_regular(path.with_suffix(".parquet"), limit=_LIMIT)
    except (InputError, OSError):
        return None
    if sources.digest(data) != record["blake2b"]:
        _LOG.warning("%s is damaged and is made again", path.with_suffix(".parquet"))
        return None
    for name in record.get(BESIDE) or {}:
        if read_beside(folder, number, name, record) is None:
            _LOG.warning("%s is damaged and is made again", _beside(path, name))
            return None
    return record


def read_beside(folder: Path, number: int, name: str, facts: Mapping[str, Any]) -> pl.DataFrame | None:
    """A further table of a part; None where it was not kept, or is not the one that was written."""
    digests = facts.get(BESIDE)
    if not isinstance(digests, dict) or name not in digests:
        return None
    try:
        data = read_regular(_beside(_path(folder, number), name), limit=_LIMIT)
    except (InputError, OSError):
        return None
    return read_parquet(data) if sources.digest(data) == digests[name] else None


def write_part(
    folder: Path,
    number: int,
    table: pl.DataFrame,
    facts: Mapping[str, Any],
    beside: Mapping[str, pl.DataFrame] | None = None,
) -> None:
    """Write a part: its table, then its notes, which mark it as finished.

    Args:
        folder: of all parts.
        number: of the part.
        table: its rows.
        facts: its notes, JSON-ready.
        beside: further tables by name.

    Raises:
        DiskError: if the disk refuses.
    """
    path = _path(folder, number)
    held = {**facts, "blake2b": _write_table(path, table)}
    if beside:
        held[BESIDE] = {name: _write_table(_beside(path, name), each) for name, each in beside.items()}
    # Last: a crash in between leaves a table without notes, which counts as not done.
    notes = json.dumps({**held, _OWN: _digest_notes(held)}) + "\n"
    write_atomically(path.with_suffix(".json"), notes.encode())


def _digest_notes(facts: Mapping[str, Any]) -> str:
    return sources.digest(json.dumps(facts).encode())


def _write_table(path: Path, table: pl.DataFrame) -> str:
    """Write a table; its digest."""
    data = io.BytesIO()
    table.write_parquet(data, compression="zstd")
    write_atomically(path, data.getvalue())
    return sources.digest(data.getvalue())


def _beside(path: Path, name: str) -> Path:
    return path.with_name(f"{path.stem}-{name}")


def read_part_table(folder: Path, number: int) -> pl.DataFrame:
    """The rows of a part that is done."""
    return read_parquet(_path(folder, number))


def _path(folder: Path, number: int) -> Path:
    return folder / PARTS / f"{number:06d}.parquet"


def _parse_json(path: Path) -> Any:
    try:
        return json.loads(read_regular(path, limit=_LIMIT))
    except (InputError, OSError, ValueError, RecursionError):
        return None


# Resuming: which finished parts still hold, by the files that their images were made of.

MARKS = "marks"
"""Notes of a part on the files of its images."""


def describe_sources(semantics: SemanticSource, detections: DetectionSource) -> dict[str, str]:
    """Digests of the sources that must not change between the parts of one result.

    Args:
        semantics: whose names of classes count here; its masks count part by part.
        detections: all of them count.
    """
    return {"classes_digest": semantics.digest, "detections_digest": detections.digest}


def digest_part_files(
    captures: Captures, semantics: SemanticSource, moments: Sequence[Moment], left: Collection[int]
) -> dict[str, Any]:
    """Digest of the state of the files of a part's images, for `is_part_current`.

    Args:
        captures: of the set.
        semantics: of the same.
        moments: of the part.
        left: places among them of images that were left out.
    """

    def files(places: Iterable[int]) -> Iterator[Path]:
        for place in places:
            moment = moments[place]
            yield from captures.files(moment)
            yield from semantics.files(moment.video, moment.frame)

    made = (place for place in range(len(moments)) if place not in left)
    return {
        "left": sorted(left),
        "made": digest_file_stats(files(made)),
        "missed": digest_file_stats(files(sorted(left))),
    }


def is_part_current(
    facts: Mapping[str, Any], captures: Captures, semantics: SemanticSource, moments: Sequence[Moment]
) -> bool:
    """Whether a finished part needs not be made again: no file of an image that was left out has changed.

    Raises:
        UsageError: if the sweep, image or mask of something that was proposed for has changed.
    """
    marks = facts.get(MARKS)
    if not isinstance(marks, dict) or not isinstance(marks.get("left"), list):
        return False
    now = digest_part_files(captures, semantics, moments, frozenset(marks["left"]))
    if now["made"] != marks.get("made"):
        between = " to ".join(dict.fromkeys((format_moment(moments[0]), format_moment(moments[-1]))))
        what = "a sweep, image or mask has changed since proposals were made of it"
        raise UsageError(f"{what}, in {between}; {REMEDY}")
    return bool(now["missed"] == marks.get("missed"))


def format_moment(moment: Moment) -> str:
    """How an image is called in messages."""
    return f"{sources.to_printable(moment.video)}, frame {moment.frame}"


def digest_file_stats(paths: Iterable[Path]) -> str:
    """Digest of names, sizes, times and readability of files.

    Args:
        paths: of files, be they there or not.
    """
    seen: list[tuple[str, int, int, bool]] = []
    for path in paths:
        try:
            status = path.stat()
            seen.append((str(path), status.st_size, status.st_mtime_ns, os.access(path, os.R_OK)))
        except (OSError, ValueError):
            seen.append((str(path), -1, -1, False))
    return sources.digest(repr(seen).encode())
