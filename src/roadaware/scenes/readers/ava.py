"""AVA: who does what, in a picture a second, boxes in shares of the picture, several actions for a box.

Gu and others, "AVA: A video dataset of spatio-temporally localized atomic visual actions", CVPR 2018;
annotations under CC BY 4.0, research.google.com/ava.

Takes a csv without header (`video,timestamp,x1,y1,x2,y2,action[,person]`), or a folder or zip with such files
and, found by their names, a label map (`*action_list*`, `*.pbtxt`) and excluded moments (`*excluded*.csv`).
Videos are not needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.ava_labels import LabelMap, numbered, read_labels
from roadaware.scenes.readers.ava_rows import moments, read_rows, with_persons
from roadaware.scenes.readers.ava_tables import (
    KIND,
    Place,
    boxes_of,
    labelled,
    labels_of,
    numbered_boxes,
    persons,
)
from roadaware.scenes.readers.file_by_file import none_read, take_each
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.source import FileSource, Source, shown
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes

VERSION = 1
LICENCE = "CC BY 4.0 (annotations)"
MOST_BYTES = 1 << 31
_WANTED = "AVA needs its annotations, a file such as 'ava_val_v2.2.csv',"
_HINT = "Point at the csv, or the folder or zip that holds it."
_EXCLUDED = re.compile(r"exclu", re.IGNORECASE)
_MAP = re.compile(r".*\.pbtxt(\.txt)?|.*action_list.*\.txt", re.IGNORECASE)
_SPLITS = {"train": "train", "val": "val", "test": "test"}


@dataclass(frozen=True)
class _Parts:
    """Names of the files of a set, by what they are."""

    truth: list[str]
    labels: list[str]
    excluded: list[str]


def find(path: Path) -> Source:
    """The annotations at `path`: a csv, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there are none.
        InputError: if the path cannot be read.
    """
    source = locate(path, lambda found: bool(_parts(found).truth), _WANTED, _HINT, suffix=".csv")
    source.most_bytes = MOST_BYTES
    return source


def inputs(source: Source, labels: str | Path | None = None, excluded: str | Path | None = None) -> list[str]:
    """Names of the files that `read` would read."""
    parts = _parts(source, labels, excluded)
    return [*parts.truth, *parts.labels, *parts.excluded]


def read(
    source: Source,
    *,
    labels: str | Path | None = None,
    excluded: str | Path | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    A video is one pixel wide and high, so that its boxes are the numbers of the file; a frame is a second.
    Labels stand in the order of the files. Boxes in excluded moments are kept; `frames.annotated` is false.

    Args:
        source: see `find`.
        labels: a label map that lies elsewhere.
        excluded: excluded moments that lie elsewhere.
        processes: not used: files are read by one process.
        progress: told how many files are read, of how many.

    Raises:
        InputError: if there are several label maps, one cannot be read, or no file of annotations can.
    """
    parts, findings = _parts(source, labels, excluded), Findings()
    known = _label_map(source, parts.labels, findings)
    files: list[tuple[str, pl.DataFrame]] = []
    left_aside = [_moments(source, name, findings) for name in parts.excluded]
    taken: dict[str, str] = {}

    def take(name: str, found: Findings) -> None:
        files.append((name, _rows(source, name, taken, found)))

    errors = take_each(parts.truth, take, findings, progress)
    if not files:
        raise none_read(errors)
    known = known or numbered(
        {action for _, rows in files for action in rows["action"].drop_nulls().unique()}
    )
    tables = _tables(files, left_aside, known, findings)
    for name in ("boxes", "labels", "tubes", "frames"):
        findings.read[name] += len(tables[name])
    names = [*parts.truth, *parts.labels, *parts.excluded]
    return Scenes(**tables, rejected=findings.table(), meta=_meta(source.contents(names), known, findings))


def _meta(contents: str, known: LabelMap, findings: Findings) -> Meta:
    return Meta(
        dataset="AVA",
        licence=LICENCE,
        vocabularies={KIND: known.names},
        source_digest=contents,
        rows_read=dict(sorted(findings.read.items())),
        notes={**findings.notes(), "unit_pictures": True, "label_ids": {KIND: list(known.ids)}},
    )


def _parts(source: Source, labels: str | Path | None = None, excluded: str | Path | None = None) -> _Parts:
    """The files of a set: what lies there, and what the user names elsewhere in its place."""
    if isinstance(source, FileSource):
        truth, maps, aside = [source.name], [], []
    else:
        tables = source.files("", ".csv")
        aside = [name for name in tables if _EXCLUDED.search(name)]
        truth = [name for name in tables if name not in aside]
        maps = [name for name in source.entries()[0] if _MAP.fullmatch(name)]
    maps = maps if labels is None else [source.lend(Path(labels))]
    aside = aside if excluded is None else [source.lend(Path(excluded))]
    return _Parts(truth, maps, aside)


def _label_map(source: Source, names: Sequence[str], findings: Findings) -> LabelMap | None:
    """The label map, if there is one.

    Raises:
        InputError: if there are several, or it cannot be read.
    """
    if not names:
        return None
    if len(names) > 1:
        held = ", ".join(shown(name) for name in names)
        hint = "name the one to read by the option 'labels'"
        raise InputError(f"several label maps: {held}", where=shown(str(source.path)), hint=hint)
    return read_labels(source.read(names[0]), source.where(names[0]), findings)


def _moments(source: Source, name: str, findings: Findings) -> pl.DataFrame:
    """The excluded moments of a file."""
    held = moments(source.read(name), name, source.where(name), findings)
    findings.read["files"] += 1
    return held


def _rows(source: Source, name: str, taken: dict[str, str], findings: Findings) -> pl.DataFrame:
    """The rows of a file with `person`.

    Raises:
        InputError: if it cannot be read, holds scores, or a video that an earlier file has.
    """
    where = source.where(name)
    rows = read_rows(source.read(name), name, where, findings)
    rows = with_persons(rows, name, where, findings)
    for video in rows["video"].unique(maintain_order=True):
        if video in taken:
            message = f"it has the video '{shown(video, 60)}', and so has '{shown(taken[video], 80)}'"
            raise InputError(message, where=where, hint="read the files one by one")
    taken.update(dict.fromkeys(rows["video"].unique(maintain_order=True), name))
    return rows


def _tables(
    files: Sequence[tuple[str, pl.DataFrame]],
    left_aside: Sequence[pl.DataFrame],
    known: LabelMap,
    findings: Findings,
) -> dict[str, pl.DataFrame]:
    """The tables of all files; videos in the order in which they first appear."""
    boxes: list[pl.DataFrame] = []
    labels: list[pl.DataFrame] = []
    tubes: list[pl.DataFrame] = []
    for name, rows in files:
        place = Place(name, findings)
        boxed = labelled(rows.filter(pl.col(CORNERS[0]).is_not_null()), known, place)
        boxed = numbered_boxes(
            boxed, ["video", "frame", *CORNERS, "person"], place, sum(len(each) for each in boxes)
        )
        boxed, own = persons(boxed, place, sum(len(each) for each in tubes))
        boxes.append(boxes_of(boxed))
        labels.append(labels_of(boxed))
        tubes.append(own)
    named = [(name, rows.select("video", "frame")) for name, rows in files]
    videos = pl.concat(
        [
            rows.select("video").unique(maintain_order=True).with_columns(splits=_splits(name))
            for name, rows in named
        ]
        + [rows.select("video").with_columns(splits=_splits("")) for rows in left_aside]
    ).unique(subset="video", keep="first", maintain_order=True)
    return {
        "videos": videos.with_columns(
            width_px=pl.lit(1, pl.Int64), height_px=pl.lit(1, pl.Int64), fps=pl.lit(1, pl.Float32)
        ),
        "frames": _frames([rows for _, rows in named], left_aside, videos),
        "boxes": pl.concat(boxes),
        "labels": pl.concat(labels),
        "tubes": pl.concat(tubes),
    }


def _splits(name: str) -> pl.Expr:
    """The split that a file's name tells, as a list."""
    words = re.split(r"[^a-z]+", name.lower())
    held = [f"default/{split}" for word, split in _SPLITS.items() if word in words]
    return pl.lit(pl.Series([held], dtype=pl.List(pl.String))).first()


def _frames(
    named: Sequence[pl.DataFrame], left_aside: Sequence[pl.DataFrame], videos: pl.DataFrame
) -> pl.DataFrame:
    """Every moment that a file names, in the order of videos and time."""
    out = [rows.with_columns(annotated=pl.lit(value=False)) for rows in left_aside]
    frames = pl.concat([*out, *[rows.unique().with_columns(annotated=pl.lit(value=True)) for rows in named]])
    frames = frames.group_by("video", "frame").agg(pl.col("annotated").all())
    order = videos.select("video").with_row_index("order")
    frames = frames.join(order, on="video", how="left").sort("order", "frame")
    return frames.select("video", "frame", pl.col("frame").cast(pl.Float32).alias("t_s"), "annotated")
