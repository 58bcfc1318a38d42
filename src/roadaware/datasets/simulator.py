"""Simulator: scenes that `roadaware simulate` made up, with exact truth for every task.

Made up by this library; free of terms.

Takes the folder that was written, a folder that holds it, or its zip: `simulation.json`, which says what was
made up, and for each finished scene a folder `scenes/<name>/` with its `tables`. Films, masks and sweeps lie
beside the tables and are not needed. An unfinished simulation gives the scenes that are finished."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.datasets import Progress
from roadaware.datasets.issues import Findings
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io.json import decode, ensure_object, parse
from roadaware.io.sources import Source, find_source, is_outside, to_printable
from roadaware.scenes.concatenation import concat
from roadaware.scenes.store import decode_scenes
from roadaware.scenes.tables import Scenes

VERSION = 1
FORMAT = "roadaware-simulation"
FORMAT_VERSION = 1
MAIN = "simulation.json"
_SCENES, _TABLES, _META = "scenes", "tables", "meta.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WANTED = f"a simulation needs '{MAIN}' and its annotations in '{_SCENES}/'"
_HINT = "Point at the folder that `roadaware simulate --out` wrote."


def find(path: Path) -> Source:
    """The simulation at `path`: its folder, one that holds it, or its zip.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(
        path, lambda found: MAIN in found.entries()[0] and found.has_folder(_SCENES), _WANTED, _HINT
    )


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    return [MAIN, *(file for name in _list_finished_scenes(source) for file in _files(source, name))]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All finished scenes in the order of their names; a damaged one is in `rejected`, whole.

    Paths of films and sweeps are relative to the simulation's folder. `meta.notes["simulation"]` holds its
    configuration and seed, `meta.notes["unfinished"]` how many of its scenes are still to be made.

    Args:
        source: see `find`.
        processes: not used: tables are read by one process.
        progress: told how many scenes are done, of how many.

    Raises:
        InputError: if `simulation.json` is damaged or of a later version, or no scene can be read.
    """
    findings = Findings()
    head = _head(source)
    findings.read["files"] += 1
    names = _list_finished_scenes(source)
    parts: list[Scenes] = []
    errors: list[InputError] = []
    for done, name in enumerate(names, 1):
        try:
            parts.append(_scene(source, name))
            findings.read["files"] += 1
        except InputError as error:
            errors.append(error)
            findings.reject_file(f"{_folder(name)}/{_META}", error)
        if progress is not None:
            progress(done, len(names), "scenes")
    if not parts:
        raise _nothing(errors, source)
    return _concat_scenes(parts, head, source, findings, planned=_count_planned_scenes(head, names))


def _head(source: Source) -> dict[str, Any]:
    """What `simulation.json` says.

    Raises:
        InputError: if it is damaged, or not of this format and version.
    """
    where = source.where(MAIN)
    head = ensure_object(parse(decode(source.read(MAIN), where), where), where, "the simulation")
    try:
        json.dumps(head, allow_nan=False)
    except ValueError as error:
        raise InputError("a number is beyond all that floats hold", where=where, hint=_HINT) from error
    if head.get("format") != FORMAT:
        message = f"expected the format '{FORMAT}', found {to_printable(repr(head.get('format')), 60)}"
        raise InputError(message, where=where, hint=_HINT)
    if type(head.get("version")) is not int or head["version"] != FORMAT_VERSION:
        found = to_printable(repr(head.get("version")), 20)
        message = f"expected version {FORMAT_VERSION} of the format, found {found}"
        raise InputError(
            message, where=where, hint="read it with the roadaware that wrote it, or a later one"
        )
    return head


def _count_planned_scenes(head: dict[str, Any], names: list[str]) -> int:
    """How many scenes there should be."""
    scenes = head.get("scenes")
    count = len(scenes) if isinstance(scenes, list) else scenes
    return count if type(count) is int and count >= len(names) else len(names)


def _folder(name: str) -> str:
    return f"{_SCENES}/{name}/{_TABLES}"


def _list_finished_scenes(source: Source) -> list[str]:
    """Names of the scenes whose tables are complete: `meta.json` is written last."""
    names = source.entries(_SCENES)[1]
    return [name for name in names if f"{_folder(name)}/{_META}" in source.files(_folder(name), ".json")]


def _files(source: Source, name: str) -> list[str]:
    folder = _folder(name)
    return [f"{folder}/{_META}", *source.files(folder, ".parquet")]


def _scene(source: Source, name: str) -> Scenes:
    """One scene.

    Raises:
        InputError: if a file of its tables is damaged, or they are not those of this scene.
    """
    folder = _folder(name)
    if not _NAME.fullmatch(name):
        raise InputError(f"'{to_printable(name, 60)}' is no name of a made-up scene", where=folder)
    scenes = decode_scenes(source.where(folder), lambda file: source.read(f"{folder}/{file}"))
    videos = scenes.videos["video"].to_list()
    if videos != [name] or not scenes.rejected.is_empty():
        found = ", ".join(to_printable(str(video), 60) for video in videos[:3]) or "no video"
        raise InputError(
            f"expected the tables of '{to_printable(name)}', found those of {found}", where=folder
        )
    return scenes.with_tables(
        videos=_prefix_paths(
            scenes.videos, name, [c for c in scenes.videos.columns if c.split("_")[-1] == "path"]
        ),
        sweeps=_prefix_paths(scenes.sweeps, name, ["path"]),
    )


def _prefix_paths(frame: pl.DataFrame, name: str, columns: list[str]) -> pl.DataFrame:
    """The rows with paths that start at the simulation's folder instead of the scene's.

    Raises:
        InputError: if one leads out of the scene's folder.
    """
    held = [c for c in columns if c in frame.columns]
    for path in (path for c in held for path in frame[c].drop_nulls().to_list()):
        if is_outside(path):
            raise InputError(
                f"the path '{to_printable(path)}' leads out of its folder", where=f"{_SCENES}/{name}"
            )
    return frame.with_columns((pl.lit(f"{_SCENES}/{name}/") + pl.col(c)).alias(c) for c in held)


def _nothing(errors: list[InputError], source: Source) -> InputError:
    if not errors:
        message = f"no scene is finished in {to_printable(str(source.path))}; simulate again: it goes on"
        return DatasetNotFoundError(message)
    first = errors[0]
    return InputError(f"none of {len(errors)} scenes can be read: {first.message}", where=first.where)


def _concat_scenes(
    parts: list[Scenes], head: dict[str, Any], source: Source, findings: Findings, *, planned: int
) -> Scenes:
    whole = concat(parts)
    for table, frame in whole.filled().items():
        findings.read[table] += len(frame)
    told = {key: head[key] for key in ("config", "seed", "program") if key in head}
    refused = int((findings.table()["table"] == "files").sum())
    notes = {**whole.meta.notes, "simulation": told, "unfinished": planned - len(parts) - refused}
    meta = replace(
        whole.meta,
        source_digest=source.contents(inputs(source)),
        rows_read=dict(sorted(findings.read.items())),
        notes={**notes, **findings.notes()},
    )
    return whole.with_tables(rejected=findings.table(), meta=meta)
