"""UCF101-24: one human action per video as tubes, 3,194 videos, from the corrected annotations.

Singh, Saha, Sapienza, Torr and Cuzzolin, "Online real-time multiple spatiotemporal action localisation and
prediction", ICCV 2017; annotations for research use, github.com/gurkirt/corrected-UCF101-Annots; videos of
Soomro, Zamir and Shah, "UCF101", 2012.

Takes the file `pyannot_with_class_names.pkl`, or a folder or zip that holds it. It is a pickle and is read
as data: nothing in it is run. Images and videos are not needed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.pickles import load
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.source import FileSource, Source, shown
from roadaware.scenes.readers.ucf24_raw import Raw, read_raw
from roadaware.scenes.readers.ucf24_tables import tables_of
from roadaware.scenes.tables import Meta, Scenes

VERSION = 3
LICENCE = "research use (annotations)"
BACKGROUND = "Non_action"
_USUAL = "pyannot_with_class_names.pkl"
_NAME = re.compile(r"pyannot.*\.pkl", re.IGNORECASE)
_WANTED = f"UCF101-24 needs its corrected annotations, a file '{_USUAL}',"
_HINT = "Point at the file, or the folder or zip that holds it."
_NATIVE = {"agentness": "action_ness", "action": "action", "av_action": "av_action"}


def find(path: Path) -> Source:
    """The annotation file at `path`: the file itself, or a folder or zip with it.

    Raises:
        DatasetNotFoundError: if there is none, or several and none has the usual name.
        InputError: if the path cannot be read.
    """
    source = locate(path, lambda found: bool(inputs(found)), _WANTED, _HINT, suffix=".pkl")
    names = inputs(source)
    if len(names) > 1:
        source.close()
        held = ", ".join(shown(name) for name in names)
        raise DatasetNotFoundError(f"{shown(str(path))} holds several files of annotations: {held}. {_HINT}")
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    if isinstance(source, FileSource):
        return [source.name]
    names = [name for name in source.files("", ".pkl") if _NAME.fullmatch(name)]
    return [_USUAL] if _USUAL in names else names


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All videos of the file; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Every frame counts as annotated, also those without action: their `av_action` is `Non_action`.

    Args:
        source: see `find`.
        processes: not used: one file is read by one process.
        progress: told how many videos are done, of how many.

    Raises:
        InputError: if the file is damaged, holds anything but arrays and plain containers, or no video in it
            can be read.
    """
    (name,) = inputs(source)
    where = source.where(name)
    findings = Findings()
    held = _held(load(source.read(name), where), where)
    raw = read_raw(held, name, where, findings, progress)
    findings.read["files"] += 1
    return Scenes(**tables_of(raw, findings), rejected=findings.table(), meta=_meta(source, raw, findings))


def _held(held: Any, where: str) -> dict[str, Any]:
    """The file's three parts.

    Raises:
        InputError: if it is something else.
    """
    if type(held) is not dict or not {"db", "trainvideos", "classes"} <= held.keys():
        found = (
            f"keys {[shown(str(key), 40) for key in held][:5]}" if type(held) is dict else type(held).__name__
        )
        message = f"expected a dict with 'db', 'trainvideos' and 'classes', found {found}"
        raise InputError(message, where=where, hint=_HINT)
    return held


def _meta(source: Source, raw: Raw, findings: Findings) -> Meta:
    return Meta(
        dataset="UCF101-24",
        licence=LICENCE,
        vocabularies={
            "agentness": (_NATIVE["agentness"],),
            "action": raw.classes,
            "av_action": (BACKGROUND, *raw.classes),
        },
        source_digest=source.contents([raw.file]),
        rows_read=dict(sorted(findings.read.items())),
        notes={**findings.notes(), "native_kinds": _NATIVE, "children": {}},
    )
