"""ROAD and ROAD-Waymo: road events, boxes and tubes with agents, actions and locations, from their JSON.

Singh et al., "ROAD: The road event awareness dataset for autonomous driving", TPAMI 2022. Annotations under
CC BY-NC-SA 4.0, github.com/gurkirt/road-dataset; ROAD-Waymo has the same schema, github.com/salmank255.

Takes a file, or every `road*.json` of a folder or zip; labels are matched by name, and those that the file
does not use are counted and left out. Images and videos are not needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import clean, decode, kind_of, members, no_collection
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.road_raw import RawVideo, read_raw
from roadaware.scenes.readers.road_tables import Tables, tables_of
from roadaware.scenes.readers.road_terms import Terms, read_terms
from roadaware.scenes.readers.source import FileSource, Source, shown
from roadaware.scenes.tables import Meta, Scenes

VERSION = 1
MOST_BYTES = 4 << 30
_LICENCES = {
    "ROAD": "CC BY-NC-SA 4.0 (annotations)",
    "ROAD-Waymo": "Waymo Dataset License Agreement for Non-Commercial Use (annotations)",
}
_NAME = re.compile(r"road.*\.json", re.IGNORECASE)
_WAYMO = re.compile(r"waymo|road[-_]?(?:plus|pp|\+\+)", re.IGNORECASE)
_WANTED = "ROAD needs its annotations, a file 'road*.json',"
_HINT = "Point at the file, such as road_trainval_v1.0.json, or the folder or zip that holds it."


def find(path: Path) -> Source:
    """The annotation files at `path`: a JSON file, a folder with `road*.json` in it, or a zip of one.

    Raises:
        DatasetNotFoundError: if there is none, or files of both datasets lie in one folder.
        InputError: if the path cannot be read.
    """
    source = locate(path, lambda found: bool(inputs(found)), _WANTED, _HINT, suffix=".json")
    source.most_bytes = MOST_BYTES
    datasets = sorted({dataset for name in inputs(source) if (dataset := _dataset(name))})
    if len(datasets) > 1:
        source.close()
        raise DatasetNotFoundError(f"{shown(str(path))} holds files of {' and '.join(datasets)}. {_HINT}")
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    if isinstance(source, FileSource):
        return [source.name]
    return [name for name in source.files("", ".json") if _NAME.fullmatch(name)]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All videos of the files; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Args:
        source: see `find`.
        processes: not used: one file is read by one process.
        progress: told how many hundredths of the files' text are read, of how many.

    Raises:
        InputError: if no video can be read.
    """
    names = inputs(source)
    findings = Findings()
    held: list[_File] = []
    errors: list[InputError] = []
    for place, name in enumerate(names):
        try:
            file = _read_file(source, name, _Told(progress, 100 * place, 100 * len(names)))
            _refuse_other_labels(source.where(name), file, held)
        except InputError as error:
            errors.append(error)
            findings.reject_file(name, error)
            continue
        findings.read["files"] += 1
        findings.merge(file.findings)
        held.append(file)
    parts = _parts(held, findings)
    if not parts:
        raise _nothing(errors, findings, source, names)
    cut = sum(int(video.boxes.cut) for file in held for video in file.videos)
    tables = _assembled(parts)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=_meta(source, names, held[0].terms, tables["videos"], findings, cut),
    )


@dataclass(frozen=True)
class _File:
    """What one file holds."""

    name: str
    terms: Terms
    videos: list[RawVideo]
    findings: Findings


@dataclass(frozen=True)
class _Told:
    """Tells progress of one file within all."""

    progress: Progress | None
    start: int
    total: int

    def __call__(self, hundredths: int) -> None:
        if self.progress is not None:
            self.progress(self.start + hundredths, self.total, "hundredths of the text")


def _read_file(source: Source, name: str, told: _Told) -> _File:
    """The columns of one file's videos.

    Raises:
        InputError: if it cannot be read as a whole: no strict JSON, labels or videos missing.
    """
    where = source.where(name)
    text = decode(source.read(name), where)
    findings = Findings()
    top: dict[str, Any] = {}
    videos: list[RawVideo] = []
    with no_collection():
        for place, path, value in members(text, where, lambda path: path in ((), ("db",))):
            told(place * 100 // len(text))
            if len(path) != 2:
                top[path[0] if path else ""] = value
                continue
            video = shown(clean(path[1]), 255)
            try:
                videos.append(read_raw(video, value, name, f"{where}, {video}"))
            except InputError as error:
                findings.reject("videos", name, video, error.message)
    if "" in top:
        message = f"expected an object at the top and found {kind_of(top[''])}"
        raise InputError(message, where=where, hint=_HINT)
    terms = read_terms(top, where, findings)
    if "db" in top:
        raise InputError(f"'db' should be an object and is {kind_of(top['db'])}", where=where)
    told(100)
    return _File(name, terms, videos, findings)


def _refuse_other_labels(where: str, file: _File, held: Sequence[_File]) -> None:
    """Two files of one set have the same labels.

    Raises:
        InputError: if this one's differ from those of the first.
    """
    if held and file.terms.vocabularies != held[0].terms.vocabularies:
        message = f"its labels are not those of {shown(held[0].name)}"
        raise InputError(message, where=where, hint="read the two files one by one")


def _parts(held: Sequence[_File], findings: Findings) -> list[Tables]:
    """The tables of every video, each video once."""
    parts: list[Tables] = []
    seen: set[str] = set()
    for file in held:
        for video in file.videos:
            if video.name in seen:
                findings.reject("videos", file.name, video.name, "stands in the set twice")
                continue
            seen.add(video.name)
            tables, met = tables_of(video, file.terms)
            findings.merge(met)
            parts.append(tables)
    return parts


def _assembled(parts: Sequence[Tables]) -> Tables:
    """The videos' tables under each other, boxes and tubes numbered in their order."""
    shifted: list[Tables] = []
    boxes = tubes = 0
    for part in parts:
        tube, box = pl.col("tube") + tubes, pl.col("box") + boxes
        shifted.append(
            part
            | {
                "boxes": part["boxes"]
                .select((pl.int_range(pl.len(), dtype=pl.Int64) + boxes).alias("box"), pl.all())
                .with_columns(tube),
                "labels": part["labels"].with_columns(box),
                "tubes": part["tubes"].with_columns(tube, pl.col("parent") + tubes),
                "tube_labels": part["tube_labels"].with_columns(tube),
            }
        )
        boxes, tubes = boxes + len(part["boxes"]), tubes + len(part["tubes"])
    return {name: pl.concat([part[name] for part in shifted]) for name in parts[0]}


def _nothing(
    errors: Sequence[InputError], findings: Findings, source: Source, names: Sequence[str]
) -> InputError:
    """Why not one video could be read: the first reason, with how many files there were."""
    if not errors:
        refused = findings.table().filter(table="videos")["reason"]
        message = f"no video can be read; the first: {refused[0]}" if len(refused) else "'db' holds no video"
        return InputError(message, where=source.where(names[0]), hint=_HINT)
    if len(names) == 1:
        return errors[0]
    message = f"none of {len(names)} files can be read; the first: {errors[0].message}"
    return InputError(message, where=errors[0].where, hint=errors[0].hint)


def _meta(
    source: Source,
    names: Sequence[str],
    terms: Terms,
    videos: pl.DataFrame,
    findings: Findings,
    cut: int,
) -> Meta:
    dataset = _dataset(names[0]) or _dataset_by_splits(videos)
    return Meta(
        dataset=dataset,
        licence=_LICENCES[dataset],
        vocabularies=terms.vocabularies,
        composites=terms.composites,
        source_digest=source.contents(names),
        rows_read=dict(sorted(findings.read.items())),
        notes={
            **findings.notes(),
            "native_kinds": terms.native_kinds,
            "children": terms.children,
            "all_labels": {labels.kind: list(labels.every) for labels in terms.kinds},
            "boxes_cut_at_the_edge": cut,
        },
    )


def _dataset(name: str) -> str | None:
    """What a file's name says of the dataset."""
    if _WAYMO.search(name):
        return "ROAD-Waymo"
    return "ROAD" if _NAME.fullmatch(name) else None


def _dataset_by_splits(videos: pl.DataFrame) -> str:
    """ROAD has three splits for validation, ROAD-Waymo one."""
    named = set(videos["splits"].explode().drop_nulls())
    return "ROAD-Waymo" if named & {"train", "val"} else "ROAD"
