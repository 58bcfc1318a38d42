"""VidVRD and VidOR: who does what to whom in videos, with a track for everybody who takes part.

Shang, Ren, Guo, Zhang and Chua, "Video visual relation detection", ACM MM 2017; Shang, Di, Xiao, Cao, Yang
and Chua, "Annotating objects and relations in user-generated videos", ICMR 2019.

Takes the annotations of one video, a folder or zip with a file for each (right in it, or in the folders of
the splits, at any of VidOR's depths), or one file with all: {video: annotation}, or the truth that
VidVRD-helper writes, {video: [relations with their own trajectories]}. Videos are not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np
import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.file_by_file import none_read, take_each
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import decode, no_collection
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.relation_tables import tables_of, words
from roadaware.scenes.readers.source import FileSource, Source
from roadaware.scenes.readers.vidvrd_files import Clip, clips_of
from roadaware.scenes.tables import Meta, Scenes

VERSION = 1
LICENCE = "that of the annotations' authors"
SPLITS = ("train", "training", "validation", "val", "test")
MOST_BYTES = 2 << 30
_DEEPEST = 3
_WANTED = "VidVRD needs its annotations, files '*.json',"
_HINT = "Point at a file, or at the folder or zip that holds the files or the folders of their splits."


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip with some in it or in folders of splits.

    Raises:
        DatasetNotFoundError: if there are none.
        InputError: if the path cannot be read.
    """
    source = locate(path, _fits, _WANTED, _HINT, suffix=".json")
    source.most_bytes = MOST_BYTES
    return source


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read: those right here, then split by split."""
    if isinstance(source, FileSource):
        return [source.name]
    if _own_split(source):
        return sorted(_below(source, "", _DEEPEST))
    found = sorted(_below(source, "", 1))
    folders = source.entries()[1]
    for split in SPLITS:
        if split in folders:
            found += sorted(_below(source, split, _DEEPEST))
    return found


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All videos as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Corners are those of the file, in double precision; x2_px and y2_px are the last pixels inside, so that a
    box with x1_px = x2_px is one pixel wide, and the published overlap adds 1 to each side. Relations come in
    the file's order. Refused are boxes upside down, of an object that is not listed or that the frame has
    already, or behind the last frame; and relations of somebody with himself, of objects that are not
    listed, that end before they begin, or with a frame in which one of the two has no box. The name of the
    tracker behind a box is not read.

    Args:
        source: see `find`.
        processes: not used: files are read by one process.
        progress: told how many files are read, of how many.

    Raises:
        InputError: if no file can be read.
    """
    findings = Findings()
    clips: dict[str, Clip] = {}
    names = inputs(source)

    def take(name: str, found: Findings) -> None:
        for clip in _clips(source, name, found):
            if clip.packed.video in clips:
                other = clips[clip.packed.video].file
                found.reject("videos", name, clip.packed.video, f"stands in {other} too", rows=0)
                found.read.subtract(_rows(clip))
            else:
                clips[clip.packed.video] = clip

    errors = take_each(names, take, findings, progress)
    if not clips:
        raise _nothing(errors, source)
    return _scenes(list(clips.values()), source, names, findings)


def _clips(source: Source, name: str, findings: Findings) -> list[Clip]:
    """The videos of one file, all or, where it is damaged, none."""
    where = source.where(name)
    split = _own_split(source) or (PurePosixPath(name).parts[0] if "/" in name else None)
    with no_collection():
        return list(clips_of(decode(source.read(name), where), where, name, split, findings))


def _rows(clip: Clip) -> dict[str, int]:
    """How many rows of each table were counted for a video that is then left out."""
    packed = clip.packed
    counts = {"boxes": len(packed.frames), "relations": len(packed.relations)}
    return counts | dict.fromkeys(("tubes", "tube_labels"), len(packed.names))


def _scenes(clips: list[Clip], source: Source, names: list[str], findings: Findings) -> Scenes:
    packed = [clip.packed for clip in clips]
    vocabularies = words(packed)
    tables = tables_of(packed, vocabularies)
    if "generated" not in tables["boxes"].columns:
        tables["boxes"] = tables["boxes"].with_columns(generated=pl.lit(None, pl.Boolean))
    return Scenes(
        videos=_videos(clips),
        frames=_frames(clips),
        **tables,
        rejected=findings.table(),
        meta=Meta(
            dataset="VidVRD",
            licence=LICENCE,
            vocabularies=vocabularies,
            source_digest=source.contents(names),
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )


def _videos(clips: list[Clip]) -> pl.DataFrame:
    rows = [
        {
            "video": clip.packed.video,
            "scene": clip.packed.video,
            "width_px": clip.size[0],
            "height_px": clip.size[1],
            "fps": clip.fps,
            "n_frames": clip.n_frames,
            "path": clip.path,
            "splits": None if clip.split is None else [clip.split],
        }
        for clip in clips
    ]
    numbers = {"width_px": pl.Int64, "height_px": pl.Int64, "fps": pl.Float32, "n_frames": pl.Int64}
    texts = {"video": pl.String, "scene": pl.String}
    return pl.DataFrame(rows, schema={**texts, **numbers, "path": pl.String, "splits": pl.List(pl.String)})


def _frames(clips: list[Clip]) -> pl.DataFrame:
    """One row for each frame that a file lists: each was looked at, also where nobody is in it."""
    counts = np.array([clip.listed for clip in clips], dtype=np.int64)
    of = np.repeat(np.arange(len(clips)), counts)
    frame = pl.Series("frame", np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts))
    rate = pl.Series([clip.fps for clip in clips], dtype=pl.Float64).gather(of)
    names = pl.Series([clip.packed.video for clip in clips], dtype=pl.String).gather(of)
    time = (frame / rate).cast(pl.Float32)
    return pl.DataFrame({"video": names, "frame": frame, "t_s": time}).with_columns(
        annotated=pl.lit(value=True)
    )


def _own_split(source: Source) -> str | None:
    """The split that the folder itself is, or the one that holds the file."""
    name = PurePosixPath(source.prefix.rstrip("/")).name or source.path.name
    return name if name in SPLITS else None


def _fits(source: Source) -> bool:
    return bool(inputs(source))


def _below(source: Source, folder: str, depth: int) -> Iterator[str]:
    """The JSON files in a folder and, so many levels down, in those in it."""
    try:
        files, folders = source.entries(folder)
    except InputError:
        return
    base = f"{folder}/" if folder else ""
    yield from (f"{base}{name}" for name in (*files, *folders) if name.endswith(".json"))
    if depth > 1:
        for inner in folders:
            yield from _below(source, f"{base}{inner}", depth - 1)


def _nothing(errors: list[InputError], source: Source) -> InputError:
    """Why not one video could be read."""
    if not errors:
        return InputError("no file holds a video", where=str(source.path), hint=_HINT)
    return none_read(errors)
