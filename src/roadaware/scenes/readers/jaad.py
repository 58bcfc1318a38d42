"""JAAD 2.0: pedestrians in front of a car, 346 videos, from the unpacked repository or its zip.

Rasouli, Kotseruba and Tsotsos, "Are they going to cross? A benchmark dataset and baseline for pedestrian
crosswalk behavior", ICCV Workshops 2017. Annotations under the MIT licence, github.com/ykotseruba/JAAD.

Needs `annotations/`; takes `annotations_attributes/`, `annotations_traffic/`, `annotations_vehicle/`,
`split_ids/` and, when asked, `annotations_appearance/` where they are. Videos themselves are not needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.jaad_parts import Part, read_part
from roadaware.scenes.readers.jaad_terms import SIDES, VOCABULARIES
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.source import Source, shown
from roadaware.scenes.readers.workers import Walkers, cores
from roadaware.scenes.tables import Meta, Scenes

VERSION = 1
LICENCE = "MIT (annotations)"
_BATCH = 24
_SUBSETS = ("all_videos", "default", "high_visibility")


def find(path: Path) -> Source:
    """The JAAD repository at `path`, in it, or in a zip there.

    Raises:
        DatasetNotFoundError: if `annotations/` with XML files is not to be found.
        InputError: if the path cannot be read.
    """
    return locate(
        path,
        lambda source: bool(source.files("annotations", ".xml")),
        "JAAD needs 'annotations/'",
        "Point at the unpacked repository or its zip.",
    )


def inputs(source: Source, *, appearance: bool = False) -> list[str]:
    """Names of the files that `read` would read."""
    kinds = [kind for kind in SIDES if kind != "appearance" or appearance]
    names = source.files("annotations", ".xml")
    for kind in kinds:
        names += source.files(f"annotations_{kind}", f"_{kind}.xml")
    for subset in _SUBSETS:
        names += source.files(f"split_ids/{subset}", ".txt")
    return names


def read(
    source: Source,
    *,
    appearance: bool = False,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All of JAAD as Scenes; what could not be taken is in `rejected`, oddities in `meta.notes["warnings"]`.

    Args:
        source: the repository, see `find`.
        appearance: also read the 24 appearance flags of every box.
        processes: workers for files that need the slow way; as many as there are cores unless given.
        progress: told how many videos are done, of how many.

    Raises:
        InputError: if no video can be read.
    """
    present = inputs(source, appearance=appearance)
    names = [name for name in present if name.startswith("annotations/")]
    videos = sorted(((_stem(name), name) for name in names), key=lambda video: shown(video[0]))
    findings = Findings()
    parts: list[Part] = []
    with Walkers(source, processes) as walkers:
        for done, part in enumerate(_parts(source, videos, present, walkers, appearance=appearance), 1):
            parts.append(part)
            findings.merge(part.findings)
            if progress is not None:
                progress(min(done * _BATCH, len(videos)), len(videos), "videos")
    if not any(len(part.videos) for part in parts):
        raise _nothing(parts, len(videos))
    _refuse_strays(videos, present, findings)
    tables = _assembled(parts)
    tables["videos"] = _with_splits(tables["videos"], _splits(source, present, findings), findings)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=Meta(
            dataset="JAAD",
            licence=LICENCE,
            vocabularies=VOCABULARIES,
            source_digest=source.contents(present),
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )


def _parts(
    source: Source,
    videos: Sequence[tuple[str, str]],
    present: Sequence[str],
    walkers: Walkers,
    *,
    appearance: bool,
) -> Iterator[Part]:
    """Batches of videos in order, two at work at a time."""
    batches = [videos[start : start + _BATCH] for start in range(0, len(videos), _BATCH)]
    known = frozenset(present)
    with ThreadPoolExecutor(min(2, cores())) as threads:
        try:
            yield from threads.map(
                lambda batch: read_part(source, batch, known, walkers, appearance=appearance), batches
            )
        finally:
            threads.shutdown(wait=True, cancel_futures=True)


def _nothing(parts: Sequence[Part], total: int) -> InputError:
    """Why not one video could be read: the first reason, with how many there were."""
    first = next(error for part in parts for error in part.errors)
    if total == 1:
        return first
    message = f"none of {total} annotation files can be read; the first: {first.message}"
    return InputError(message, where=first.where, hint=first.hint)


def _refuse_strays(videos: Sequence[tuple[str, str]], present: Sequence[str], findings: Findings) -> None:
    """Files of attributes, traffic, ... that belong to no annotated video."""
    known = {video for video, _ in videos}
    for name in present:
        folder, _, kind = PurePosixPath(name).parts[0].partition("_")
        if folder == "annotations" and kind in SIDES and _stem(name).removesuffix(f"_{kind}") not in known:
            findings.reject("files", name, "", "no file in annotations/ belongs to it")


def _assembled(parts: Sequence[Part]) -> dict[str, pl.DataFrame]:
    """The parts under each other, tubes and boxes numbered in their order."""
    held = [part for part in parts if len(part.videos)]
    videos = pl.concat([part.videos for part in held])
    frames = pl.concat([part.frames for part in held])
    counts = [len(part.tubes) for part in held]
    offsets = [sum(counts[:place]) for place in range(len(held))]
    tubes = pl.concat(
        [part.tubes.with_columns(pl.col("tube") + n) for n, part in zip(offsets, held, strict=True)]
    )
    boxes = pl.concat(
        [part.boxes.with_columns(pl.col("tube") + n) for n, part in zip(offsets, held, strict=True)]
    )
    boxes = boxes.with_columns(box=pl.int_range(len(boxes), dtype=pl.Int64))
    first = ["box", "video", "frame", "tube"]
    return {
        "videos": videos,
        "frames": frames,
        "boxes": boxes.select(*first, pl.exclude(first)),
        "tubes": tubes.select("tube", "video", pl.exclude("tube", "video")),
    }


def _splits(source: Source, present: Sequence[str], findings: Findings) -> dict[str, list[str]]:
    """Video to the names of the splits that hold it, as the lists in `split_ids/` say."""
    held: dict[str, list[str]] = {}
    for subset in _SUBSETS:
        for split in ("train", "val", "test"):
            name = f"split_ids/{subset}/{split}.txt"
            if name not in present:
                findings.warn("split lists that are missing", name)
                continue
            try:
                lines = _lines(source, name)
            except InputError as error:
                findings.reject_file(name, error)
                continue
            findings.read["files"] += 1
            if not lines:
                findings.warn("split lists that are empty", name)
            for video in lines:
                held.setdefault(video, []).append(f"{subset}/{split}")
    return held


def _lines(source: Source, name: str) -> list[str]:
    """The distinct words of a text file, in order."""
    try:
        return list(dict.fromkeys(source.read(name).decode("utf-8-sig").split()))
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8: {error.reason}"
        raise InputError(message, where=source.where(name)) from error


def _with_splits(videos: pl.DataFrame, held: dict[str, list[str]], findings: Findings) -> pl.DataFrame:
    """The videos with their splits; a video in two of one subset, or a split without its video, is odd."""
    names = set(videos["video"])
    for video, splits in held.items():
        if video not in names:
            findings.warn("videos of a split list that have no annotations", f"{video} in {splits[0]}")
        if len({split.partition("/")[0] for split in splits}) < len(splits):
            findings.warn("videos that stand in two splits of one subset", f"{video} in {', '.join(splits)}")
    lists = [held.get(video, []) for video in videos["video"]]
    return videos.with_columns(pl.Series("splits", lists, dtype=pl.List(pl.String)))


def _stem(name: str) -> str:
    return PurePosixPath(name).name.removesuffix(".xml")
