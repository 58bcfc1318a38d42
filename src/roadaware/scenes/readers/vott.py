"""Boxes drawn with the Visual Object Tagging Tool: exports of version 1 (one per video) and of version 2.

Microsoft, github.com/microsoft/VoTT, whose exports carry no licence of their own: it is the owner's.

Takes a JSON file, or all that lie in a folder or zip; exports of a whole project (`*-export.json`) stand for
the files of single assets beside them. Images and videos are not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from roadaware.errors import InputError, UsageError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import clean, decode, parse
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.source import FileSource, Source, shown
from roadaware.scenes.readers.vott_files import Reading, Sheet, read_sheet
from roadaware.scenes.readers.vott_tables import tables_of
from roadaware.scenes.tables import Meta, Scenes

VERSION = 1
_FIELDS = ("id", "name", "UID")
_WANTED = "VoTT needs its annotations, a file '*.json',"
_HINT = "Point at the exported file, or at the folder or zip that holds it."


def find(path: Path) -> Source:
    """The exports at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return locate(path, lambda source: bool(source.files("", ".json")), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **_: Any) -> list[str]:
    """Names of the files that `read` would read."""
    found = [source.name] if isinstance(source, FileSource) else source.files("", ".json")
    return [name for name in found if name.endswith("-export.json")] or found


def read(
    source: Source,
    *,
    kinds: Mapping[str, Sequence[str]] | None = None,
    first_frame: int = 1,
    track: str = "id",
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Args:
        source: see `find`.
        kinds: kind of label to its tags, in class order; tags of none of them are of the kind `tag`.
        first_frame: the number that version 1 gives a video's first frame.
        track: the field that names a track; a name counts if two frames have it and none has it twice.
        processes: not used: files are small.
        progress: told how many files are read, of how many.

    Raises:
        UsageError: if an option is none.
        InputError: if no file can be read.
    """
    asked = _kinds(kinds or {})
    if track not in _FIELDS or type(first_frame) is not int or not 0 <= first_frame <= 1:
        raise UsageError(f"'track' is one of {', '.join(_FIELDS)}, 'first_frame' is 0 or 1")
    findings = Findings()
    sheets: list[Sheet] = []
    errors: list[InputError] = []
    names = inputs(source)
    for done, name in enumerate(names, 1):
        found = Findings()
        try:
            where = source.where(name)
            value = parse(decode(source.read(name), where), where)
            sheets.append(read_sheet(value, _video(name), Reading(name, where, first_frame, track, found)))
        except InputError as error:
            errors.append(error)
            findings.reject_file(name, error)
        else:
            findings.read["files"] += 1
            findings.merge(found)
        if progress is not None:
            progress(done, len(names), "files")
    if not sheets:
        raise _nothing(errors)
    tables, vocabularies = tables_of(sheets, asked, findings)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=Meta(
            dataset="VoTT",
            licence="that of whoever drew the boxes",
            vocabularies=vocabularies,
            source_digest=source.contents(names),
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )


def _kinds(kinds: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The asked kinds, each tag in one of them.

    Raises:
        UsageError: if a tag stands twice.
    """
    twice = [
        tag for tag, count in Counter(tag for tags in kinds.values() for tag in tags).items() if count > 1
    ]
    if twice:
        raise UsageError(f"'kinds' names {', '.join(twice)} twice")
    return {kind: list(tags) for kind, tags in kinds.items()}


def _video(name: str) -> str:
    """What a file is about: its name without the ending, `video.mp4` of `video.mp4.json`."""
    return shown(clean(PurePosixPath(name).name.removesuffix(".json")), 255)


def _nothing(errors: Sequence[InputError]) -> InputError:
    """Why not one file could be read."""
    if len(errors) == 1:
        return errors[0]
    message = f"none of {len(errors)} files can be read; the first: {errors[0].message}"
    return InputError(message, where=errors[0].where, hint=errors[0].hint)
