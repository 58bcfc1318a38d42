"""VidSTG: sentences about people and things in videos of VidOR, statements and questions, with their tubes.

Zhang, Zhao, Zhao, Wang, Liu and Gao, "Where does it exist: spatio-temporal video grounding for multi-form
sentences", CVPR 2020; github.com/Guaranteer/VidSTG-Dataset, which carries no licence.

Takes a JSON file, or all that lie in a folder or zip, or in `annotations/` in it: processed as TubeDETR does,
or raw; a raw one needs VidOR's files `<video>.json` in folders beside it. Videos are not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roadaware.errors import InputError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.file_by_file import take_each
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import decode, no_collection, parse
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.sentences import Grounded, nothing, tables_of
from roadaware.scenes.readers.source import FileSource, FolderSource, Source
from roadaware.scenes.readers.vidstg_files import read_file
from roadaware.scenes.tables import Meta, Scenes

VERSION = 1
LICENCE = "none given (annotations)"
MOST_BYTES = 1 << 30
_WANTED = "VidSTG needs its annotations, a file '*.json',"
_HINT = "Point at the file, or the folder or zip that holds it."
_PLACE = "annotations"
_DEEPEST, _MOST_FILES = 4, 50_000


class _FileBeside(FolderSource):
    """A raw file, with the folder it lies in: VidOR's files are sought there.

    Args:
        path: the resolved file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.parent)
        self.name = path.name


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    source = locate(path, lambda found: bool(_annotations(found)), _WANTED, _HINT, suffix=".json")
    if isinstance(source, FileSource) and _starts_a_list(source):
        source = _FileBeside(source.path / source.name)
    source.most_bytes = MOST_BYTES
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` may read."""
    return [*_annotations(source), *_vidor(source).values()]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Frames count from 0, as in the files. A tube is one target of one video, whatever number of sentences
    speak of it, and owns its boxes also where no sentence does. Sentences are called by their number in the
    file that the published preprocessing makes: for each raw annotation questions first, then captions.

    Args:
        source: see `find`.
        processes: not used: a file is read by one process.
        progress: told how many files are read, of how many.

    Raises:
        InputError: if no file, or nothing in it, can be read.
    """
    grounded = Grounded(Findings())
    names, beside = _annotations(source), _vidor(source)

    def vidor(video: str) -> Any:
        if video not in beside:
            raise InputError(f"VidOR's file '{video}.json' does not lie in a folder beside the annotations")
        where = source.where(beside[video])
        return parse(decode(source.read(beside[video]), where), where)

    def take(name: str, _: Findings) -> None:
        where = source.where(name)
        with no_collection():
            read_file(decode(source.read(name), where), name, where, grounded, vidor)

    errors = take_each(names, take, grounded.findings, progress)
    if not grounded.sentences:
        raise nothing(errors, grounded.findings, source.where(names[0]))
    tables, vocabularies = tables_of(grounded, 0)
    return Scenes(
        **tables,
        rejected=grounded.findings.table(),
        meta=Meta(
            dataset="VidSTG",
            licence=LICENCE,
            vocabularies=vocabularies,
            source_digest=source.contents([name for name in inputs(source) if name in source.digests]),
            rows_read=dict(sorted(grounded.findings.read.items())),
            notes={**grounded.findings.notes(), "first_frame": 0},
        ),
    )


def _annotations(source: Source) -> list[str]:
    """The files of annotations: the one that was named, or those of the folder or of `annotations/` in it."""
    if isinstance(source, FileSource | _FileBeside):
        return [source.name]
    return source.files("", ".json") or source.files(_PLACE, ".json")


def _vidor(source: Source) -> dict[str, str]:
    """Video to VidOR's file of it, in the folders beside the annotations."""
    if isinstance(source, FileSource):
        return {}
    taken = set(_annotations(source))
    found: dict[str, str] = {}
    for name in _inside(source, "", 0):
        if name not in taken and len(found) < _MOST_FILES:
            found.setdefault(name.rpartition("/")[2].removesuffix(".json"), name)
    return found


def _inside(source: Source, folder: str, depth: int) -> Iterator[str]:
    """The JSON files in the folders inside a folder."""
    try:
        files, folders = source.entries(folder)
    except InputError:
        return
    yield from (f"{folder}/{name}" for name in files if folder and name.endswith(".json"))
    for name in folders if depth < _DEEPEST else ():
        yield from _inside(source, f"{folder}/{name}" if folder else name, depth + 1)


def _starts_a_list(source: FileSource) -> bool:
    """Whether a file is raw: its first sign opens a list."""
    try:
        with (source.path / source.name).open("rb") as stream:
            return stream.read(256).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    except OSError:
        return False
