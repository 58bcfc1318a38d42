"""MOT text as ground truth: a folder for each sequence, as MOTChallenge, TrackEval and CVAT have it.

Layout: `SEQUENCE/gt/gt.txt` with `SEQUENCE/seqinfo.ini` (also below `train/`, `val/`, `test/`); the names of classes in
`SEQUENCE/gt/labels.txt`, one a line from class 1 (as CVAT writes it), else those of MOT17.
A line: `frame,id,left,top,width,height,conf,class,visibility`. Frames, tracks and pixels count from 1: one is taken off
frame, left and top, and the right edge is left + width, excluded. A conf of 0 marks a box to ignore.
Holds: track, class, ignored boxes, rate, size, length. Does not: boxes without a track, occlusion in words.
"""

from __future__ import annotations

import configparser
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import LONGEST_PATH, BoxSource, build_box_scenes
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.facts import FACTS, LARGEST_SIDE, check_classes, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, select_first_reason
from roadaware.datasets.relation_tables import format_video_name
from roadaware.errors import InputError
from roadaware.io.csv import decode, iterate_line_batches, split_cells
from roadaware.io.sources import Source, decode_utf_text, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

VERSION = 1
TRUTH, INFO, LABELS = "gt/gt.txt", "seqinfo.ini", "gt/labels.txt"
MOT17 = ("pedestrian", "person on vehicle", "car", "bicycle", "motorbike", "non motorized vehicle", "static person",
         "distractor", "occluder", "occluder on the ground", "occluder full", "reflection", "crowd")  # fmt: skip
"""Classes 1 to 13 of MOT16 and MOT17 (Milan et al., 2016), where no file names them."""
FIRST_PIXEL = 1.0
_SPLITS = {"train": "train", "val": "val", "test": "test"}
_WANTED = "MOT needs its annotations, a file 'gt/gt.txt' for each sequence,"
_HINT = "Point at the folder that holds the sequences, each with 'gt/gt.txt' and 'seqinfo.ini'."
_DUE = (7, 8, 9, 10)
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?$"
_WHOLE = r"^-?\d{1,16}(\.0*)?$"


def find(path: Path) -> Source:
    """The sequences at `path`: the folder, one inside it, or its zip.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(_list_sequences(source)), _WANTED, _HINT)


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    facts = [FACTS] if source.holds(FACTS) else []
    return facts + [
        name
        for folder in _list_sequences(source)
        for name in (f"{folder}/{TRUTH}", f"{folder}/{INFO}", f"{folder}/{LABELS}")
        if source.holds(name)
    ]


def _list_sequences(source: Source) -> list[str]:
    folders = source.entries("")[1]
    held = [name for name in folders if source.holds(f"{name}/{TRUTH}")]
    for split in folders:
        if split.lower() in _SPLITS:
            held += [
                f"{split}/{name}"
                for name in source.entries(split)[1]
                if source.holds(f"{split}/{name}/{TRUTH}")
            ]
    return sorted(held)


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    classes: str | list[str] | None = None,
) -> Scenes:
    """All sequences as Scenes; what was refused is in `rejected`, with its line.

    Args:
        classes: names of classes 1, 2, ... where no `labels.txt` has them; default: those of MOT17.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no sequence can be read.
    """
    findings = Findings()
    found = BoxSource("mot", findings)
    facts = read_facts(source, classes=classes)
    errors: list[InputError] = []
    folders = _list_sequences(source)
    seen: set[str] = set()
    for done, folder in enumerate(folders, 1):
        name = f"{folder}/{TRUTH}"
        try:
            video = format_video_name(PurePosixPath(folder).name)
            if video in seen:
                raise InputError(f"a second sequence called {to_printable(video)}", where=source.where(name))
            if len(os.fsencode(PurePosixPath(folder).name)) > LONGEST_NAME:
                raise InputError(
                    f"the sequence's name has more than {LONGEST_NAME} bytes", where=source.where(name)
                )
            rows = _read_rows(source, folder, facts.classes, found)
            info = _read_info(source, f"{folder}/{INFO}")
        except InputError as error:
            errors.append(error)
            findings.reject_file(name, error)
        else:
            findings.read["files"] += 1
            seen.add(video)
            split = _SPLITS.get(folder.partition("/")[0].lower()) if "/" in folder else None
            last = rows.filter(pl.col("reason").is_null())["frame"].max()
            length = info.pop("n_frames") or (int(last) + 1 if isinstance(last, int) else 0)
            found.videos.append({"video": video, "fps": facts.fps, **{k: v for k, v in info.items() if v is not None},
                                 "n_frames": length, "splits": [f"default/{split}"] if split else None})  # fmt: skip
            if facts.size_px and info.get("width_px") is None:
                found.videos[-1] |= dict(zip(("width_px", "height_px"), facts.size_px, strict=True))
            found.rows.append(rows.with_columns(video=pl.lit(video)))
        if progress is not None:
            progress(done, len(folders), "sequences")
    if not found.videos:
        raise build_unreadable_error(errors)
    held = pl.concat([part["label"] for part in found.rows]).drop_nulls().unique().to_list()
    found.classes += [name for name in MOT17 if name in held and name not in found.classes]
    return build_box_scenes(found, source.contents(inputs(source)))


def _read_rows(source: Source, folder: str, named: tuple[str, ...] | None, found: BoxSource) -> pl.DataFrame:
    """The lines of a sequence as `box_rows.ROWS`."""
    name = f"{folder}/{TRUTH}"
    where = source.where(name)
    labels = f"{folder}/{LABELS}"
    classes: tuple[str, ...] = named or MOT17
    is_known = bool(named)
    if source.holds(labels):
        text = decode_utf_text(
            source.read(labels), source.where(labels), expected="names of classes", hint=_HINT
        )
        classes = check_classes(
            [line.strip() for line in text.splitlines() if line.strip()], source.where(labels)
        )
        is_known = True
    if is_known:
        found.classes = list(dict.fromkeys([*found.classes, *classes]))
    data = source.read(name)
    # A sequence in which there is nothing has an empty file.
    lines = list(iterate_line_batches(decode(data, where), where)) if data.strip() else []
    empty = pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
    table = pl.concat([split_cells(part, where, 9) for part in (lines or [empty])])
    numbers = {
        name: pl.when(pl.col(cell).str.contains(_NUMBER)).then(pl.col(cell)).cast(pl.Float64, strict=False)
        for name, cell in (("left", "c2"), ("top", "c3"), ("width", "c4"), ("height", "c5"), ("conf", "c6"))
    }
    wholes = {
        name: pl.when(pl.col(cell).str.contains(_WHOLE))
        .then(pl.col(cell).str.replace(r"\.0*$", ""))
        .cast(pl.Int64, strict=False)
        for name, cell in (("number", "c0"), ("id", "c1"), ("klass", "c7"))
    }
    table = table.with_columns(**numbers, **wholes)
    left, top = (pl.col(side) - FIRST_PIXEL for side in ("left", "top"))
    known = dict(enumerate(classes, 1))
    given = pl.col("c7").is_not_null() & (pl.col("c7") != "") & (pl.col("c7") != "-1")
    table = table.with_columns(
        left.alias(CORNERS[0]),
        top.alias(CORNERS[1]),
        (left + pl.col("width")).round(9).alias(CORNERS[2]),
        (top + pl.col("height")).round(9).alias(CORNERS[3]),
        label=pl.when(given).then(
            pl.col("klass").replace_strict(known, default=None, return_dtype=pl.String)
        ),
        track=pl.when(pl.col("id") >= 0).then(pl.col("id")).cast(pl.String),
        frame=pl.col("number") - 1,
        ignore=pl.col("conf") == 0,
        item=pl.concat_str([pl.col(f"c{n}").fill_null("").str.slice(0, 16) for n in range(6)], separator=","),
        file=pl.lit(to_printable(name, LONGEST_PATH)),
    )
    reason = select_first_reason(
        (~pl.col("cells").is_in(_DUE), pl.format("{} fields where 7 to 10 are due", "cells")),
        (
            pl.col("number").is_null() | (pl.col("number") < 1) | (pl.col("number") > MOST_FRAMES),
            pl.format("frame '{}'; frames count from 1", pl.col("c0").str.slice(0, 40)),
        ),
        (
            pl.col("id").is_null() | (pl.col("id") < -1),
            pl.format("track '{}'; tracks count from 1, and -1 is none", pl.col("c1").str.slice(0, 40)),
        ),
        (
            pl.any_horizontal(pl.col("left", "top", "width", "height", "conf").is_null()),
            "a corner, side or conf is no finite number",
        ),
        (
            (pl.col("width") < 0) | (pl.col("height") < 0),
            pl.format("the box is upside down, with sides of {} and {}", "width", "height"),
        ),
        (
            given & pl.col("label").is_null(),
            pl.format(
                f"class '{{}}' is none of the {len(known)} classes, from 1", pl.col("c7").str.slice(0, 40)
            ),
        ),
    )
    return table.with_columns(reason)


def _read_info(source: Source, name: str) -> dict[str, Any]:
    """What seqinfo.ini says: n_frames, width_px, height_px, fps; None where it is silent.

    Raises:
        InputError: if it is no ini file, or a number in it is none.
    """
    found: dict[str, Any] = dict.fromkeys(("n_frames", "width_px", "height_px", "fps"))
    if not source.holds(name):
        return found
    where = source.where(name)
    parser = configparser.ConfigParser(interpolation=None)
    text = decode_utf_text(
        source.read(name), where, expected="an ini file", hint="such as: [Sequence] seqLength=600"
    )
    try:
        parser.read_string(text)
        record = dict(parser["Sequence"]) if parser.has_section("Sequence") else {}
    except configparser.Error as error:
        raise InputError(f"expected an ini file: {str(error).splitlines()[0]}", where=where) from error
    most = {"n_frames": MOST_FRAMES, "width_px": LARGEST_SIDE, "height_px": LARGEST_SIDE}
    for key, column in (("seqlength", "n_frames"), ("imwidth", "width_px"), ("imheight", "height_px")):
        value = record.get(key, "").strip()
        if value and not (re.fullmatch(r"\d{1,9}", value, re.ASCII) and int(value) <= most[column]):
            raise InputError(
                f"{key} is '{to_printable(value, 40)}', no number up to {most[column]:,}", where=where
            )
        found[column] = int(value) or None if value else None
    rate = record.get("framerate", "").strip()
    if rate and not (re.fullmatch(r"\d{1,4}(\.\d{1,9})?", rate, re.ASCII) and 0 < float(rate) <= 1000):
        raise InputError(f"framerate is '{to_printable(rate, 40)}', no number up to 1000", where=where)
    found["fps"] = float(rate) if rate else None
    return found
