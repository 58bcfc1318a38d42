"""Chaotic World: who does what, and what is heard from where, in videos of disasters, crowds and violence.

Ong and others, "Chaotic World: A large and challenging benchmark for human behavior understanding in chaotic
events", ICCV 2023; annotations from its authors on request.

Takes the folder or zip that holds `AR_ava_format/` (actions: `chaos_{train,test}_1fps.csv`,
`chaos_{train,test}_exclude.csv`, `annotation/<UID>.csv`, `list_action.pbtxt`) or `SSL_ssl_format/` (sounds:
`annotation/{group,frame}/<UID>.csv`, `train_ssl.txt`, `test_ssl.txt`), a folder of such csv files inside
these, or one csv. Videos and pictures are not needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.action_lists import numbered_as_files
from roadaware.scenes.readers.ava_labels import LabelMap, read_labels
from roadaware.scenes.readers.ava_rows import first_cells, moments
from roadaware.scenes.readers.chaotic_actions import read_actions
from roadaware.scenes.readers.chaotic_sounds import is_of_sounds, read_sounds
from roadaware.scenes.readers.chaotic_tables import ACTIONS, Held, tables_of
from roadaware.scenes.readers.csvlines import decode
from roadaware.scenes.readers.file_by_file import none_read, take_each
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.source import FileSource, Source, shown
from roadaware.scenes.tables import Meta, Scenes
from roadaware.scenes.vocabularies import canonical

VERSION = 1
LICENCE = "from its authors on request (annotations)"
_WANTED = (
    "Chaotic World needs its annotations, a folder 'AR_ava_format/' or 'SSL_ssl_format/' with csv files,"
)
_HINT = "Point at the folder that holds them, its zip, or one csv."
_EXCLUDED = re.compile(r"exclu", re.IGNORECASE)
_SPLIT = re.compile(r"(?:^|[^a-z])(train|val|test)(?:[^a-z]|$)", re.IGNORECASE)
_PICTURES, _GROUPS = ("picked", "all"), ("group", "frame")


@dataclass
class _Parts:
    """Names of the files of a set, by what they are.

    Args:
        any: csv files, each of actions or of sounds: the one given, or those of a folder inside a set.
    """

    any: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    naming: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    sounds: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """All of them."""
        every = [
            *self.any,
            *self.actions,
            *self.naming,
            *self.excluded,
            *self.labels,
            *self.sounds,
            *self.lists,
        ]
        return list(dict.fromkeys(every))


def find(path: Path) -> Source:
    """The annotations at `path`: a csv, or a folder or zip in which they lie.

    Raises:
        DatasetNotFoundError: if there are none.
        InputError: if the path cannot be read.
    """

    def fits(source: Source) -> bool:
        parts = _parts(source)
        return bool(parts.actions or parts.sounds or parts.any)

    return locate(path, fits, _WANTED, _HINT, suffix=".csv")


def inputs(
    source: Source,
    pictures: str | None = None,
    sounds: str | None = None,
    first_frame: int | None = None,
    labels: str | Path | None = None,
) -> list[str]:
    """Names of the files that `read` would read."""
    lent = [] if labels is None else [source.lend(Path(labels))]
    return [*_parts(source, pictures, sounds).names, *lent]


def read(
    source: Source,
    *,
    pictures: str | None = None,
    sounds: str | None = None,
    first_frame: int | None = None,
    labels: str | Path | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Boxes are in pixels of the published pictures of 320 x 180, from the shares of the files. A sound has all
    its boxes; the published code uses the first.

    Args:
        source: see `find`.
        pictures: `picked`, those of `chaos_*_1fps.csv`, or `all`, those of `annotation/`; whichever are
            there unless told.
        sounds: `group` or `frame`, the folder of the csv of sounds; what is there unless told.
        first_frame: number of a video's first frame: 1, or 0; 1 unless told, and 0 where a file names it.
        labels: a list of the actions that are read, with their names; all fifty by their official names
            unless told. Its numbers may run from 1, those of the csv files run from 0.
        processes: not used: files are read by one process.
        progress: told how many files are read, of how many.

    Raises:
        UsageError: if an option is none.
        InputError: if no file can be read, or the list of actions cannot.
    """
    _check_options(pictures, sounds, first_frame)
    parts, findings, held = _parts(source, pictures, sounds), Findings(), Held()
    names = parts.names
    if labels is not None:
        names.append(source.lend(Path(labels)))
        held.known = _listed(source, names[-1], findings)
    _read_sides(source, parts, held, findings)
    jobs = _jobs(source, parts)
    way = dict(jobs)
    errors = take_each(
        list(way), lambda name, found: way[name](source, name, held, found), findings, progress
    )
    if len(errors) == len(way):
        raise none_read(errors)
    lowest = min(held.lowest, 1)
    first = lowest if first_frame is None else first_frame
    tables, vocabularies = tables_of(held, first, findings)
    notes = {"first_frame": first, "label_ids": {"action": list(held.known.ids)}, "published_box": "first"}
    meta = _meta(source.contents(names), vocabularies, findings, notes)
    return Scenes(**tables, rejected=findings.table(), meta=meta)


def _meta(
    contents: str, vocabularies: dict[str, tuple[str, ...]], findings: Findings, notes: dict[str, Any]
) -> Meta:
    return Meta(
        dataset="Chaotic World",
        licence=LICENCE,
        vocabularies=vocabularies,
        source_digest=contents,
        rows_read=dict(sorted(findings.read.items())),
        notes={**findings.notes(), **notes},
    )


_T = TypeVar("_T")
_Take = Callable[[Source, str, Held, Findings], None]


def _check_options(pictures: str | None, sounds: str | None, first_frame: int | None) -> None:
    """Raises UsageError if an option is none."""
    if (
        pictures not in (None, *_PICTURES)
        or sounds not in (None, *_GROUPS)
        or first_frame not in (None, 0, 1)
    ):
        raise UsageError("'pictures' is picked or all, 'sounds' is group or frame, 'first_frame' is 0 or 1")


def _jobs(source: Source, parts: _Parts) -> list[tuple[str, _Take]]:
    """Each csv with how it is read."""
    jobs = [(name, _kind(source, name)) for name in parts.any]
    jobs += [(name, _take_actions) for name in parts.actions]
    return jobs + [(name, _take_sounds) for name in parts.sounds]


def _listed(source: Source, name: str, findings: Findings) -> LabelMap:
    """The actions of a list, with the numbers of the csv files.

    Raises:
        InputError: if it cannot be read.
    """
    return numbered_as_files(read_labels(source.read(name), source.where(name), findings))


def _kind(source: Source, name: str) -> _Take:
    """How a csv is read that may be of actions or of sounds."""
    return _take_sounds if is_of_sounds(source.read(name), source.where(name)) else _take_actions


def _take_actions(source: Source, name: str, held: Held, findings: Findings) -> None:
    """Add the rows of a file of actions.

    Raises:
        InputError: if it cannot be read, or has a video that an earlier file has.
    """
    where = source.where(name)
    rows = read_actions(source.read(name), name, where, findings)
    videos = rows["video"].unique(maintain_order=True).to_list()
    for video in videos:
        if video in held.files:
            message = f"it has the video '{shown(video, 60)}', and so has '{shown(held.files[video], 80)}'"
            raise InputError(message, where=where, hint="read the files one by one")
    held.files |= dict.fromkeys(videos, name)
    findings.warn("files of actions without a row", name, int(rows.is_empty()))
    held.actions[name] = rows
    if split := _split(name):
        for video in videos:
            held.splits.setdefault(video, []).append(f"action/{split}")


def _take_sounds(source: Source, name: str, held: Held, findings: Findings) -> None:
    """Add the sounds of a file, whose name is that of its video."""
    video = shown(PurePosixPath(name).stem, 255)
    held.sounds[name] = (video, read_sounds(source.read(name), name, source.where(name), findings))


def _read_sides(source: Source, parts: _Parts, held: Held, findings: Findings) -> None:
    """Read the files that say more about the others: splits, moments left aside, names of actions."""
    for name in parts.lists:
        lines = _side(source, name, findings, lambda data, where: decode(data, where).split("\n"))
        for video in dict.fromkeys(line.strip() for line in lines or () if line.strip()):
            held.splits.setdefault(shown(video, 255), []).append(f"sound/{_split(name)}")
    for name in parts.excluded:
        found = _side(source, name, findings, partial(_aside, name, findings))
        held.excluded += [] if found is None else [found]
    for name in parts.labels:
        known = _side(source, name, findings, lambda data, where: read_labels(data, where, findings))
        if known is not None:
            _compare_names(known, findings)
    for name in parts.naming:
        videos = _side(source, name, findings, first_cells)
        for video in videos if videos is not None else ():
            held.splits.setdefault(shown(video, 255), []).append(f"action/{_split(name)}")


def _compare_names(known: LabelMap, findings: Findings) -> None:
    """Warn of actions that a label map calls otherwise than the official fifty; numbers may run from 1."""
    official = dict(zip(ACTIONS.ids, ACTIONS.names, strict=True))
    for number, own in zip(known.ids, known.names, strict=True):
        if canonical(own, "action") != official.get(number - min(known.ids)):
            findings.warn("names of the label map that are not the official ones, left aside", own)


def _aside(name: str, findings: Findings, data: bytes, where: str) -> pl.DataFrame:
    """The moments of a file of exclusions."""
    return moments(data, name, where, findings, header=True)


def _side(source: Source, name: str, findings: Findings, take: Callable[[bytes, str], _T]) -> _T | None:
    """What a side file says; one that cannot be read is refused."""
    try:
        value = take(source.read(name), source.where(name))
    except InputError as error:
        findings.reject_file(name, error)
        return None
    findings.read["files"] += 1
    return value


def _parts(source: Source, pictures: str | None = None, sounds: str | None = None) -> _Parts:
    """The files of a set, with or without the folders around them."""
    if isinstance(source, FileSource):
        return _Parts(any=[source.name])
    parts = _Parts()
    for base in ("AR_ava_format", "") if source.has_folder("AR_ava_format") else ("",):
        _add_actions(source, base, pictures, parts)
        if parts.actions:
            break
    for base in ("SSL_ssl_format", "") if source.has_folder("SSL_ssl_format") else ("",):
        _add_sounds(source, base, sounds, parts)
        if parts.sounds:
            break
    if not (parts.actions or parts.sounds or source.entries()[1]):
        tables = source.files("", ".csv")
        parts.excluded = [name for name in tables if _EXCLUDED.search(name)]
        parts.any = [name for name in tables if name not in parts.excluded]
    return parts


def _add_actions(source: Source, base: str, pictures: str | None, parts: _Parts) -> None:
    """The files of actions in a folder."""
    tables = source.files(base, ".csv")
    aside = [name for name in tables if _EXCLUDED.search(PurePosixPath(name).name)]
    picked = [name for name in tables if name not in aside and PurePosixPath(name).name.startswith("chaos_")]
    every = source.files(f"{base}/annotation".strip("/"), ".csv")
    parts.actions = every if pictures == "all" or (pictures is None and not picked) else picked
    parts.naming = [name for name in picked if name not in parts.actions and _split(name)]
    parts.excluded = aside if parts.actions else []
    parts.labels = source.files(base, ".pbtxt") if parts.actions else []


def _add_sounds(source: Source, base: str, sounds: str | None, parts: _Parts) -> None:
    """The files of sounds in a folder."""
    for group in _GROUPS if sounds is None else (sounds,):
        parts.sounds = parts.sounds or source.files(f"{base}/annotation/{group}".strip("/"), ".csv")
    lists = source.files(base, ".txt") if parts.sounds else []
    parts.lists = [name for name in lists if PurePosixPath(name).name.endswith("_ssl.txt") and _split(name)]


def _split(name: str) -> str | None:
    """The split that the name of a file tells."""
    found = _SPLIT.search(PurePosixPath(name).stem)
    return found[1].lower() if found else None
