"""PIE: pedestrians and their intention in front of a car, 53 videos, unpacked or from its own zips.

Rasouli, Kotseruba, Kunic and Tsotsos, "PIE: a large-scale dataset and models for pedestrian intention
estimation and trajectory prediction", ICCV 2019. Annotations under the MIT licence, github.com/aras62/PIE.

Takes `annotations/`, `annotations_attributes/` and `annotations_vehicle/`, each unpacked or as the zip of
that name, or any one of them; of attributes alone come pedestrians without boxes, their `start_frame` and
`end_frame` null. Videos themselves are not needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.joined import JoinedSource
from roadaware.scenes.readers.locate import locate, open_source
from roadaware.scenes.readers.pie_parts import Part, read_part
from roadaware.scenes.readers.pie_terms import PARTS, VOCABULARIES
from roadaware.scenes.readers.records import Document, Record, Walked
from roadaware.scenes.readers.source import FolderSource, Source, confine, shown
from roadaware.scenes.readers.workers import Walkers, cores
from roadaware.scenes.tables import Meta, Scenes

VERSION = 1
LICENCE = "MIT (annotations)"
Progress = Callable[[int, int, str], None]
_SET = re.compile(r"set\d+")


def find(path: Path) -> Source:
    """PIE at `path` or in it; where parts of it are zips, a source that shows them as folders.

    Raises:
        DatasetNotFoundError: if none of the three parts is to be found.
        InputError: if the path, or an archive of that name, cannot be read.
    """
    wanted = f"PIE needs one of {', '.join(PARTS)} (a folder with set01, ... in it, or its zip)"
    source = locate(path, lambda found: bool(_places(found)), wanted, "Point at the folder that holds it.")
    places = _places(source)
    if all(place == part for part, place in places.items()):
        return source
    return JoinedSource(source.path, {part: _opened(source, place, part) for part, place in places.items()})


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    return [
        name
        for part, suffix in PARTS.items()
        if source.has_folder(part)
        for folder in source.entries(part)[1]
        if _SET.fullmatch(folder)
        for name in source.files(f"{part}/{folder}", suffix)
    ]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All of PIE as Scenes; what could not be taken is in `rejected`, oddities in `meta.notes["warnings"]`.

    Args:
        source: see `find`.
        processes: workers for files that need the slow way; as many as there are cores unless given.
        progress: told how many videos are done, of how many.

    Raises:
        InputError: if no video can be read.
    """
    present = inputs(source)
    videos = _videos(present)
    findings = Findings()
    _warn_missing(videos, findings)
    parts: list[Part] = []
    with Walkers(_boxes(source), processes) as walkers:
        for part in _parts(source, videos, walkers):
            parts.append(part)
            findings.merge(part.findings)
            if progress is not None:
                progress(len(parts), len(videos), "videos")
    if not any(part.tables for part in parts):
        raise _nothing(source, parts)
    return Scenes(
        **_assembled([part.tables for part in parts if part.tables]),
        rejected=findings.table(),
        meta=Meta(
            dataset="PIE",
            licence=LICENCE,
            vocabularies=VOCABULARIES,
            source_digest=source.contents(present),
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )


def _places(source: Source) -> dict[str, str]:
    """Part to where it lies in the source: a folder with sets in it, or else an archive of its name."""
    files, folders = source.entries()
    places: dict[str, str] = {}
    for part in PARTS:
        if part in folders and any(_SET.fullmatch(name) for name in source.entries(part)[1]):
            places[part] = part
        elif isinstance(source, FolderSource) and f"{part}.zip" in files:
            places[part] = f"{part}.zip"
        elif isinstance(source, FolderSource) and f"annotations/{part}.zip" in source.files(
            "annotations", ".zip"
        ):
            places[part] = f"annotations/{part}.zip"
    return places


def _opened(source: Source, place: str, part: str) -> Source:
    """One part; inside an archive its sets lie in a folder of its name, or right at the top.

    Raises:
        InputError: if the archive cannot be read or holds no sets.
    """
    if not place.endswith(".zip"):
        return source.at(place)
    archive = open_source(confine(source.path, place))
    layers = [archive.at(part)] if archive.has_folder(part) else []
    for inner in [*layers, archive]:
        if any(_SET.fullmatch(name) for name in inner.entries()[1]):
            return inner
    archive.close()
    message = f"expected folders set01, set02, ... inside and found none in {shown(place)}"
    raise InputError(message, where=shown(str(source.path)), hint=f"fetch PIE's own {part}.zip")


def _boxes(source: Source) -> Source:
    """Where a worker process finds the annotations."""
    return source.parts.get("annotations", source) if isinstance(source, JoinedSource) else source


def _videos(present: Sequence[str]) -> dict[str, dict[str, str]]:
    """Video, such as `set01/video_0001`, to its files by folder; videos in order."""
    videos: dict[str, dict[str, str]] = {}
    for name in present:
        part, _, rest = name.partition("/")
        videos.setdefault(rest.removesuffix(PARTS[part]), {})[part] = name
    return dict(sorted(videos.items()))


def _warn_missing(videos: dict[str, dict[str, str]], findings: Findings) -> None:
    """Videos that lack a kind of file which others have."""
    for part in PARTS:
        lacking = [video for video, files in videos.items() if part not in files]
        if len(lacking) < len(videos):
            findings.warn(f"videos without a file in {part}/", lacking[0] if lacking else "", len(lacking))


def _parts(source: Source, videos: dict[str, dict[str, str]], walkers: Walkers) -> Iterator[Part]:
    """Videos in order, two at work at a time."""

    def walk_there(documents: Sequence[Document], record: Record, root: str) -> list[Walked]:
        if walkers.source is source:
            return walkers(documents, record, root)
        inner = [replace(document, name=document.name.partition("/")[2]) for document in documents]
        return walkers(inner, record, root)

    with ThreadPoolExecutor(min(2, cores())) as threads:
        try:
            yield from threads.map(
                lambda item: read_part(source, item[0], item[1], walk_there), videos.items()
            )
        finally:
            threads.shutdown(wait=True, cancel_futures=True)


def _nothing(source: Source, parts: Sequence[Part]) -> InputError:
    """Why not one video could be read: the first reason, with how many there were."""
    first = next((part.error for part in parts if part.error is not None), None)
    if first is None:
        message = f"the sets hold no files named video_*{{{', '.join(PARTS.values())}}}"
        return InputError(message, where=shown(str(source.path)), hint="unpack PIE's archives again")
    if len(parts) == 1:
        return first
    message = f"none of {len(parts)} videos can be read; the first: {first.message}"
    return InputError(message, where=first.where, hint=first.hint)


def _assembled(parts: Sequence[dict[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """The videos' tables under each other, tubes and boxes numbered in their order."""
    tables = {name: [part[name] for part in parts] for name in ("videos", "frames", "tubes", "boxes")}
    start = 0
    for place, tubes in enumerate(tables["tubes"]):
        for name in ("tubes", "boxes"):
            tables[name][place] = tables[name][place].with_columns(pl.col("tube") + start)
        start += len(tubes)
    whole = {name: pl.concat(held) for name, held in tables.items()}
    boxes = whole["boxes"].with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64))
    first = ["box", "video", "frame", "tube"]
    return {
        **whole,
        "boxes": boxes.select(*first, pl.exclude(first)),
        "tubes": whole["tubes"].select("tube", "video", pl.exclude("tube", "video")),
    }
