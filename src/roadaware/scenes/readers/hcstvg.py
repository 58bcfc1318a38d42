"""HC-STVG: a person in a short video described by a sentence; its span and one box in each of its frames.

Tang, Liao, Liu, Li, Jin, Jiang, Yu and Xu, "Human-centric spatio-temporal video grounding with visual
transformers", 2020; github.com/tzhhhh123/HC-STVG, which carries no licence.

Takes a JSON file, or all that lie in a folder or zip, in any of four forms, seen from their content: the raw
annotations of versions 1 and 2, the list that TubeDETR's preprocessing makes of them, and the truth of the
official evaluation. Videos are not needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roadaware.errors import UsageError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.file_by_file import take_each
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.hcstvg_files import read_file
from roadaware.scenes.readers.json import decode, no_collection, parse
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.sentences import Grounded, nothing, tables_of
from roadaware.scenes.readers.source import FileSource, Source
from roadaware.scenes.tables import Meta, Scenes

VERSION = 1
LICENCE = "none given (annotations)"
_MADE = "_proc.json"
_WANTED = "HC-STVG needs its annotations, a file '*.json',"
_HINT = "Point at the file, or the folder or zip that holds it."


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return locate(path, lambda source: bool(source.files("", ".json")), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **_: Any) -> list[str]:
    """Names of the files that `read` would read; a processed file gives way to the raw one beside it."""
    found = [source.name] if isinstance(source, FileSource) else source.files("", ".json")
    return [name for name in found if not (name.endswith(_MADE) and name.replace(_MADE, ".json") in found)]


def read(
    source: Source,
    *,
    first_frame: int | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Args:
        source: see `find`.
        first_frame: the number that the files give a video's first frame; 1 unless told or a frame 0 is
            named. `meta.notes["first_frame"]` says which it was.
        processes: not used: files are small.
        progress: told how many files are read, of how many.

    Raises:
        UsageError: if `first_frame` is neither 0 nor 1.
        InputError: if no file, or nothing in it, can be read.
    """
    if first_frame is not None and (type(first_frame) is not int or not 0 <= first_frame <= 1):
        raise UsageError("'first_frame' is 0 or 1")
    grounded = Grounded(Findings())
    names = inputs(source)

    def take(name: str, _: Findings) -> None:
        where = source.where(name)
        with no_collection():
            read_file(parse(decode(source.read(name), where), where), name, where, grounded)

    errors = take_each(names, take, grounded.findings, progress)
    if not grounded.sentences:
        raise nothing(errors, grounded.findings, source.where(names[0]))
    first = min(1, grounded.lowest()) if first_frame is None else first_frame
    tables, vocabularies = tables_of(grounded, first)
    return Scenes(
        **tables,
        rejected=grounded.findings.table(),
        meta=Meta(
            dataset="HC-STVG",
            licence=LICENCE,
            vocabularies=vocabularies,
            source_digest=source.contents(names),
            rows_read=dict(sorted(grounded.findings.read.items())),
            notes={**grounded.findings.notes(), "first_frame": first},
        ),
    )
