"""Chaotic World: actions, relations and localised sounds in videos of disasters, crowds and violence.

Ong and others, "Chaotic World: A large and challenging benchmark for human behavior understanding in chaotic
events", ICCV 2023; annotations from its authors on request.

Takes the folder or zip that holds `AR_ava_format/` (actions: `chaos_{train,test}_1fps.csv`,
`chaos_{train,test}_exclude.csv`, `annotation/<UID>.csv`, `list_action.pbtxt`) or `SSL_ssl_format/` (sounds:
`annotation/{group,frame}/<UID>.csv`, `train_ssl.txt`, `test_ssl.txt`), a folder of such csv files inside
these, or one csv. Videos and images are not needed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import polars as pl

from roadaware.datasets import READERS, Progress
from roadaware.datasets.ava import (
    KIND,
    LabelMap,
    Place,
    add_label_index,
    assign_box_ids,
    build_person_tubes,
    parse_box_rows,
    parse_excluded_frames,
    parse_person_numbers,
    read_first_column,
    read_labels,
    select_action_labels,
    select_boxes,
)
from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, find_canonical_name, list_label_names
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.errors import InputError, UsageError
from roadaware.io.csv import decode, iterate_line_batches, parse_quoted_rows, split_cells
from roadaware.io.sources import FileSource, Source, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

# Lists of actions that choose and name those of a set: numbers brought to those of its files, rows kept.

LEFT_ASIDE = "labels of actions that the list of labels does not have, left aside"


def map_to_file_ids(listed: LabelMap) -> LabelMap:
    """A list of Chaotic World's actions with the numbers of its csv files, which run from 0 to 49.

    Its own list runs from 1 to 50. A list of some of them alone is taken to run from 0 if 0 is in it, from 1
    if 50 is, and else from where its names fit better, from 1 where that tells nothing.

    Args:
        listed: as its file has it.
    """
    ids = listed.ids
    if 0 in ids:
        return listed
    fits = [_fitting(listed, start) for start in (0, 1)]
    if len(ACTIONS_OFFICIAL) not in ids and fits[0] > fits[1]:
        return listed
    return LabelMap(tuple(number - 1 for number in ids), listed.names)


def select_actions(scenes: Scenes, listed: LabelMap) -> Scenes:
    """Scenes with the actions of a list alone, called and ordered as there.

    An action is the listed one of its name or, where no name of the set is listed, of its number. Boxes that
    carry nothing but other actions are left out, as the readers of files do.

    Args:
        scenes: with the vocabulary `action`, and the numbers of its words in `meta.notes["label_ids"]` where
            they are not their places.
        listed: the list; of Chaotic World's actions with its numbers or those of the csv files.

    Raises:
        InputError: if the scenes have no actions, or none that is listed.
    """
    names = scenes.meta.vocabularies.get(KIND)
    if names is None:
        raise InputError("the truth has no actions that a list of labels could name", hint="leave it away")
    own = scenes.meta.notes.get("label_ids", {}).get(KIND, range(len(names)))
    if scenes.meta.dataset == "Chaotic World":
        listed = map_to_file_ids(listed)
    # The place of each of the set's actions in the list, by name if any name is listed, else by
    # number
    spelled = {name: place for place, name in enumerate(listed.names)}
    spelled |= {
        known: p for name, p in spelled.items() if (known := find_canonical_name(name, "action")) is not None
    }
    named = {place: spelled[name] for place, name in enumerate(names) if name in spelled}
    numbers = {number: place for place, number in enumerate(listed.ids)}
    places = named or {place: numbers[number] for place, number in enumerate(own) if number in numbers}
    if not places:
        raise InputError(
            f"no action of the list of labels is one of the truth's {len(names)}",
            hint="compare names and numbers of the list with `roadaware read`",
        )
    meta = replace(
        scenes.meta,
        vocabularies={**scenes.meta.vocabularies, KIND: listed.names},
        notes={**scenes.meta.notes, "label_ids": {KIND: list(listed.ids)}},
    )
    labels = scenes.labels.with_columns(action=pl.col("kind").cast(pl.String) == KIND)
    moved = pl.col("label").replace_strict(places, default=None, return_dtype=pl.Int64)
    labels = labels.with_columns(label=pl.when("action").then(moved).otherwise(pl.col("label")))
    kept = labels.filter(pl.col("label").is_not_null()).drop("action")
    bare = labels.filter(pl.col("label").is_null()).select("box").unique().join(kept, on="box", how="anti")
    lost = len(labels) - len(kept)
    if lost:
        warnings = [*meta.notes.get("warnings", []), {"what": LEFT_ASIDE, "count": lost, "example": ""}]
        meta = replace(meta, notes={**meta.notes, "warnings": warnings})
    boxes = scenes.boxes.join(bare, on="box", how="anti", maintain_order="left")
    return scenes.with_tables(labels=kept, boxes=boxes, meta=meta)


def _fitting(listed: LabelMap, start: int) -> int:
    """How many names are those of their numbers, counted from `start`."""
    official = dict(enumerate(ACTIONS_OFFICIAL, start))
    pairs = zip(listed.ids, listed.names, strict=True)
    return sum(find_canonical_name(name, "action") == official.get(number) for number, name in pairs)


# Chaotic World's csv of actions: columns by their names or from both ends, then read as rows of AVA.

MOST_COLUMNS = 64
_NAMES: dict[str, tuple[str, ...]] = {
    "video": ("video_uid", "uid", "video_id", "video", "video_name"),
    "frame": ("frame_id", "frame", "fid", "key_frame", "keyframe", "frame_current", "mid_frame", "frame_no"),
    "action": ("action_id", "action_label_id", "action", "label_id", "label", "action_label"),
    "person": ("person_id", "person", "pid", "entity_id"),
    "start": ("frame_start", "start_frame", "start_fid"),
    "end": ("frame_end", "end_frame", "end_fid"),
    "time": ("time_current", "time", "time_s", "timestamp"),
}
_CORNERS = (
    ("x1", "y1", "x2", "y2"),
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("x0", "y0", "x1", "y1"),
    ("left", "top", "right", "bottom"),
)
_STEMS = {
    "video": ("vid", "uid", "clip", "name"),
    "frame": ("fr", "fid", "key", "idx", "index", "img"),
    "action": ("act", "label", "class", "behav", "cat"),
    "person": ("per", "id", "track", "actor", "entity", "tube"),
}
_FRONT = {"video": 0, "frame": 1, "x1": 2, "y1": 3, "x2": 4, "y2": 5, "action": 6, "person": 7}
# Counted from the end, as published code does: the columns in between are not documented.
_BACK = {"start": -5, "end": -4, "time": -3}
_ACTION_HINT = (
    "its columns are video_uid, frame, x1, y1, x2, y2, action_id, person_id, ..., frame_start, frame_end, "
    "time_current, and two more; a file without a header is read by the reader `ava`"
)
_AVA = (
    "if these are annotations of AVA, delete the header, which that format does not have; those of Chaotic "
    "World have the columns video_uid, frame, x1, y1, x2, y2, action_id, person_id, and more"
)


@dataclass(frozen=True)
class Columns:
    """Columns of a file.

    Args:
        count: how many columns its header names.
        at: what to the place of its column; what the file lacks is absent.
    """

    count: int
    at: dict[str, int]


def read_actions(data: bytes, file: str, where: str, findings: Findings) -> pl.DataFrame:
    """The rows of a csv with a header; those that cannot be taken are refused.

    Args:
        data: the file's bytes.
        file: its name, for what is refused.
        where: names it in errors.
        findings: takes what is refused (as rows of `boxes`) and counts it.

    Returns:
        (n) as `ava_rows.parse_box_rows`, with `person` for the eighth cell, and `start`, `end` (frames of the clip, as
        numbered in the file) and `time` in seconds; null where they are unknown.

    Raises:
        InputError: if it is no text, has no header, lacks a column, is in pixels, or no row can be taken.
    """
    pieces = iterate_line_batches(decode(data, where), where)
    first = next(pieces)
    # The cells of the first line
    line = first.head(1)
    count = str(line["text"][0]).count(",") + 1
    row = split_cells(line, where, min(count, MOST_COLUMNS + 1)).row(0)
    columns = find_columns([cell or "" for cell in row[2 : 2 + row[1]]], f"{where}:{first['line'][0]}")
    besides: list[pl.DataFrame] = []
    body = _bodies([first.slice(1)], pieces)
    tables = (_as_ava(split_cells(lines, where, columns.count), columns, besides) for lines in body)
    rows = parse_box_rows(tables, file, where, findings, due=(columns.count,))
    rows = parse_person_numbers(rows, file, where, findings)
    return rows.join(pl.concat(besides), on="line", how="left", maintain_order="left")


def find_columns(header: Sequence[str], where: str) -> Columns:
    """Where the columns are: by their names, and those of other names by their places from both ends.

    A column that is known by its place alone must have a name of the kind, unless no name is known at all.

    Raises:
        InputError: if the row is no header, or a column that is needed has no place.
    """
    if len(header) > MOST_COLUMNS:
        raise InputError(f"{len(header):,} columns; at most {MOST_COLUMNS}", where=where, hint=_ACTION_HINT)
    numbers = pl.Series(header[2:6], dtype=pl.String).cast(pl.Float64, strict=False)
    if len(header) < len(_FRONT) or numbers.count():
        found = ",".join(header[:8])
        raise InputError(
            f"expected a header, found '{to_printable(found, 120)}'", where=where, hint=_ACTION_HINT
        )
    names = [name.strip().lower() for name in header]
    # The columns whose names are known and stand once
    at = {}
    for what, known in _NAMES.items():
        once = [name for name in known if names.count(name) == 1]
        if once:
            at[what] = names.index(once[0])
    for quad in _CORNERS:
        # x1 is the left edge in one spelling and the right one in another: all four names decide together.
        if all(names.count(name) == 1 for name in quad):
            at |= {what: names.index(name) for what, name in zip(_CORNERS[0], quad, strict=True)}
            break
    named = bool(at.keys() & _FRONT.keys())
    for what, place in _FRONT.items():
        if what in at:
            continue
        fits = not named or any(stem in names[place] for stem in _STEMS.get(what, ()))
        if place in at.values() or not fits:
            message = f"a column is missing: no '{_get_column_name(what)}' in the header {to_printable(','.join(names), 160)}"
            raise InputError(message, where=where, hint=_AVA if len(names) <= len(_FRONT) else _ACTION_HINT)
        at[what] = place
    for what, place in _BACK.items():
        if what not in at and len(names) + place not in (*at.values(), *range(len(_FRONT))):
            at[what] = len(names) + place
    return Columns(len(names), at)


def _get_column_name(what: str) -> str:
    return _NAMES[what][0] if what in _NAMES else what


def _bodies(first: list[pl.DataFrame], rest: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The pieces behind the header."""
    yield from first
    yield from rest


def _as_ava(table: pl.DataFrame, columns: Columns, besides: list[pl.DataFrame]) -> pl.DataFrame:
    """The cells in the order of AVA; start, end and time of each row go to `besides`."""
    plain = {f"c{n}": pl.col(f"c{columns.at[what]}") for n, what in enumerate(_FRONT)}
    cell = {what: pl.col(f"c{columns.at[what]}") if what in columns.at else pl.lit("") for what in _BACK}
    time = cell["time"].cast(pl.Float64, strict=False)
    besides.append(
        table.select(
            "line",
            start=cell["start"].str.replace(r"\.0*$", "").cast(pl.Int64, strict=False),
            end=cell["end"].str.replace(r"\.0*$", "").cast(pl.Int64, strict=False),
            time=pl.when(time.cast(pl.Float32).is_finite() & (time >= 0)).then(time),
        )
    )
    return table.select("line", "cells", **plain)


# Chaotic World's csv of sounds: when and where something is heard, its boxes as literals, never run.

COLUMNS = ("start_fid", "start_time", "bbox", "ssl")
# Python's documentation warns that `ast.literal_eval` can run out of memory or stack on small texts.
LONGEST_LITERAL = 20_000
_DEEPEST = 8
_MOST_FRAMES = 10_000_000
# No letter but e: neither a name nor a call can stand in what `ast` is given.
_LITERAL = re.compile(r"[-+0-9eE.,\s\[\]()]*", re.ASCII)
_WHOLE = re.compile(r"([0-9]{1,9})(?:\.0*)?", re.ASCII)
_TIME = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,30})?(?:e[-+]?[0-9]{1,2})?", re.ASCII | re.IGNORECASE)
_NEAR = (-1.0, 2.0)
_SOUND_HINT = f"its columns are {', '.join(COLUMNS)}; `bbox` is a list of boxes [x1, y1, x2, y2] in quotes"

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Sound:
    """One sound.

    Args:
        line: where it stands in the file.
        frame: number of its image, as in the file.
        time: seconds from the start of the video, None where it is no number.
        name: the class of sound.
        boxes: where it comes from, in shares of the image; the published code uses the first.
    """

    line: int
    frame: int
    time: float | None
    name: str
    boxes: tuple[Box, ...]


class _RowError(Exception):
    """Why a row is refused."""


def is_of_sounds(data: bytes, where: str) -> bool:
    """Whether the first line of a csv names the columns of sounds.

    Raises:
        InputError: if the file is no text, or empty.
    """
    _, header = next(parse_quoted_rows(decode(data, where), where))
    names = [name.lower() for name in header]
    return "ssl" in names or ("bbox" in names and "start_fid" in names)


def read_sounds(data: bytes, file: str, where: str, findings: Findings) -> list[Sound]:
    """The rows of a csv of sounds; those that cannot be taken are refused as rows of `sounds`.

    Args:
        data: the file's bytes.
        file: its name, for what is refused.
        where: names it in errors.
        findings: takes what is refused and counts it, boxes too.

    Raises:
        InputError: if it is no text, lacks a column, has a quote that is not closed, or no row can be taken.
    """
    rows = parse_quoted_rows(decode(data, where), where)
    line, header = next(rows)
    names = [name.lower() for name in header]
    missing = [name for name in COLUMNS if names.count(name) != 1]
    if missing:
        found = to_printable(", ".join(header), 160)
        message = f"columns are missing or stand twice: {', '.join(missing)}; found {found}"
        raise InputError(message, where=f"{where}:{line}", hint=_SOUND_HINT)
    at = [names.index(name) for name in COLUMNS]
    sounds: list[Sound] = []
    first = ""
    for number, cells in rows:
        try:
            if len(cells) != len(names):
                raise _RowError(f"{len(cells)} cells where the header names {len(names)}")
            sounds.append(_parse_sound(number, [cells[place] for place in at]))
        except _RowError as error:
            first = first or f"line {number}: {error}"
            findings.reject("sounds", file, ", ".join(cells[:2]), str(error), number)
    if not sounds and first:
        raise InputError(f"no row can be read; the first: {first}", where=where, hint=_SOUND_HINT)
    return sounds


def parse_sound_boxes(text: str) -> tuple[Box, ...]:
    """The boxes of a literal: a list of four numbers, or lists of such, some levels deep.

    Raises:
        ValueError: if it is too long, no such literal, or holds a box that is none.
    """
    if len(text) > LONGEST_LITERAL:
        raise ValueError(f"a literal of {len(text):,} characters; at most {LONGEST_LITERAL:,} are read")
    if not _LITERAL.fullmatch(text):
        raise ValueError("it is no list of numbers")
    found: list[Box] = []
    _collect(_value(text), found)
    if not found:
        raise ValueError("it holds no box")
    return tuple(found)


def _value(text: str) -> Any:
    """The value of a literal; most are JSON too, which means the same and is read ten times as fast.

    Raises:
        ValueError: if it is none.
    """
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError("it is no list of numbers") from error


def _collect(value: Any, found: list[Box], depth: int = 0) -> None:
    """Add the boxes of a value to those found."""
    if depth > _DEEPEST or not isinstance(value, list | tuple):
        raise ValueError("it is no list of numbers, or of such lists")
    if value and all(isinstance(number, int | float) for number in value):
        numbers = value
        if len(numbers) != 4:
            raise ValueError(f"a box of {len(numbers)} numbers where 4 are due")
        if any(not _NEAR[0] <= number <= _NEAR[1] for number in numbers):
            raise ValueError("a box far outside the image, in pixels where 0 to 1 is due?")
        x1, y1, x2, y2 = (float(number) for number in numbers)
        if x2 < x1 or y2 < y1:
            raise ValueError("a box is upside down, x2 < x1 or y2 < y1")
        found.append((x1, y1, x2, y2))
        return
    for inner in value:
        _collect(inner, found, depth + 1)


def _parse_sound(line: int, cells: list[str]) -> Sound:
    """A row as a sound.

    Raises:
        _RowError: if it is none.
    """
    frame, time, literal, name = cells
    whole = _WHOLE.fullmatch(frame)
    if whole is None or int(whole[1]) > _MOST_FRAMES:
        raise _RowError(f"start_fid should be a whole number from 0 and is '{to_printable(frame, 60)}'")
    if not name:
        raise _RowError("ssl, the class of sound, is empty")
    try:
        boxes = parse_sound_boxes(literal)
    except ValueError as error:
        raise _RowError(f"bbox: {error}: '{to_printable(literal, 120)}'") from error
    seconds = float(time) if _TIME.fullmatch(time) else None
    return Sound(line, int(whole[1]), seconds, to_printable(name, 255), boxes)


# From rows of actions and sounds of Chaotic World to tables: frames from 0, boxes in pixels of 320 x 180.

FPS, WIDTH, HEIGHT = 25, 320, 180
ACTIONS = LabelMap(tuple(range(len(ACTIONS_OFFICIAL))), ACTIONS_OFFICIAL)
_SCHEMAS = {
    "boxes": {
        "box": pl.Int64,
        "video": pl.String,
        "frame": pl.Int64,
        "tube": pl.Int64,
        **dict.fromkeys(CORNERS, pl.Float64),
        "sound": pl.Int64,
    },
    "sounds": {
        "sound": pl.Int64,
        "video": pl.String,
        "name": pl.String,
        "frame": pl.Int64,
        "t_s": pl.Float32,
        "label": pl.Int64,
    },
}


@dataclass
class Held:
    """Content of the files.

    Args:
        actions: name of a file to its rows, see `chaotic_actions.read_actions`.
        sounds: name of a file to its video and sounds.
        files: video to the file of its actions.
        excluded: `video` and `frame` of moments that are left aside.
        splits: video to the splits that name it.
        known: the actions that are read, with the numbers of the files.
    """

    actions: dict[str, pl.DataFrame] = field(default_factory=dict)
    sounds: dict[str, tuple[str, list[Sound]]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    excluded: list[pl.DataFrame] = field(default_factory=list)
    splits: dict[str, list[str]] = field(default_factory=dict)
    known: LabelMap = ACTIONS

    @property
    def lowest(self) -> int:
        """The smallest number of a frame, 1 where there is none."""
        low = [int(str(rows["frame"].min())) for rows in self.actions.values() if len(rows)]
        low += [sound.frame for _, sounds in self.sounds.values() for sound in sounds]
        return min(low, default=1)


def build_chaotic_tables(
    held: Held, first_frame: int, findings: Findings
) -> tuple[dict[str, pl.DataFrame], dict[str, tuple[str, ...]]]:
    """The tables of all files, and the vocabularies.

    Args:
        held: what they hold; its actions are those of `held.known`.
        first_frame: the number of a video's first frame.
        findings: takes oddities, what is refused, and the count of rows.
    """
    actions = {name: _early_refused(rows, name, first_frame, findings) for name, rows in held.actions.items()}
    boxes, labels, tubes = _actions(actions, held.known, first_frame, findings)
    heard, places = _words(held, findings)
    sounds, sounding = _sounds(held, first_frame, len(boxes), places, findings)
    # Every moment that was annotated for actions, or left aside, with its time and its clip
    rows = list(actions.values())
    schema = {"video": pl.String, "frame": pl.Int64, "time": pl.Float64, "start": pl.Int64, "end": pl.Int64}
    seen = [pl.DataFrame(schema=schema), *(each.select(list(schema)) for each in rows)]
    table = pl.concat(seen).with_columns(annotated=pl.lit(value=True))
    aside = [
        each.with_columns(pl.col("frame") - first_frame, annotated=pl.lit(value=False))
        for each in held.excluded
    ]
    table = pl.concat([table, *aside], how="diagonal").filter(pl.col("frame") >= 0)
    order = table.select(pl.col("video").unique(maintain_order=True)).with_row_index("order")
    table = table.group_by("video", "frame").agg(
        pl.col("time", "start", "end").drop_nulls().first(), pl.col("annotated").all()
    )
    table = table.join(order, on="video", how="left").sort("order", "frame")
    frames = table.select(
        "video",
        "frame",
        pl.col("time").cast(pl.Float32).alias("t_s"),
        "annotated",
        clip_start_frame="start",
        clip_end_frame="end",
    )
    named = [rows["video"] for rows in actions.values()] + [each["video"] for each in (sounds, frames)]
    tables = {
        "videos": _videos(named, held.splits),
        "frames": frames,
        "boxes": pl.concat([boxes, sounding]),
        "labels": labels,
        "tubes": tubes,
        "sounds": sounds,
    }
    for video in sorted(held.splits.keys() - set(tables["videos"]["video"])):
        findings.warn("videos that a list names and no file has", video)
    for name in ("boxes", "labels", "tubes", "frames", "sounds"):
        findings.read[name] += len(tables[name])
    vocabularies = {KIND: held.known.names} | ({"sound": heard} if heard else {})
    return tables, vocabularies


def _early_refused(rows: pl.DataFrame, file: str, first: int, findings: Findings) -> pl.DataFrame:
    """The rows with frames from 0; those before the first frame are refused."""
    rows = rows.with_columns(pl.col("frame", "start", "end") - first)
    early = rows.filter(pl.col("frame") < 0)
    findings.read["boxes"] += len(early)
    item = pl.format("{}, {}", "video", pl.col("frame") + first)
    reason = pl.lit(f"a frame before the first, which is number {first}")
    findings.reject_rows("boxes", early.select("line", file=pl.lit(file), item=item, reason=reason))
    return rows.filter(pl.col("frame") >= 0)


def _actions(
    files: Mapping[str, pl.DataFrame], known: LabelMap, first_frame: int, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Boxes, labels and tubes of all files, with the actions that are known."""
    boxes = [pl.DataFrame(schema=_SCHEMAS["boxes"])]
    labels = [pl.DataFrame(schema={"box": pl.Int64, "kind": pl.String, "label": pl.Int64})]
    texts, numbers = ("video", "name"), ("start_frame", "end_frame")
    schema = {"tube": pl.Int64, **dict.fromkeys(texts, pl.String), **dict.fromkeys(numbers, pl.Int64)}
    tubes = [pl.DataFrame(schema=schema)]
    for file, rows in files.items():
        place = Place(file, findings, first_frame)
        boxed = add_label_index(rows.filter(pl.col(CORNERS[0]).is_not_null()), known, place)
        keys = ["video", "frame", *CORNERS, "person"]
        boxed = assign_box_ids(boxed, keys, place, sum(len(each) for each in boxes))
        boxed, own = build_person_tubes(boxed, place, sum(len(each) for each in tubes))
        table = select_boxes(boxed).with_columns(
            pl.col("x1_px", "x2_px") * WIDTH, pl.col("y1_px", "y2_px") * HEIGHT, sound=pl.lit(None, pl.Int64)
        )
        boxes.append(table)
        labels.append(select_action_labels(boxed))
        tubes.append(own)
    return pl.concat(boxes), pl.concat(labels), pl.concat(tubes)


def _words(held: Held, findings: Findings) -> tuple[tuple[str, ...], dict[str, int]]:
    """The classes of sounds, those of the paper first, and the place of each name as the files spell it."""
    if not held.sounds:
        return (), {}
    known = list_label_names("sound")
    used = {sound.name for _, sounds in held.sounds.values() for sound in sounds}
    spelled = {name: find_canonical_name(name, "sound") for name in sorted(used)}
    foreign = [name for name, official in spelled.items() if official is None]
    for name in foreign:
        findings.warn("classes of sound that the paper does not name, kept", name)
    words = (*known, *foreign)
    return words, {name: words.index(official or name) for name, official in spelled.items()}


def _sounds(
    held: Held, first: int, start: int, places: Mapping[str, int], findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The table of sounds, and their boxes, numbered from `start`."""
    sounds: list[tuple[object, ...]] = []
    boxes: list[tuple[object, ...]] = []
    for file, (video, found) in held.sounds.items():
        for each in found:
            frame = each.frame - first
            if frame < 0:
                reason = f"a frame before the first, which is number {first}"
                findings.reject("sounds", file, f"{video}, {each.frame}", reason, each.line)
                continue
            if each.time is None:
                findings.warn("times of sounds that are no seconds, kept as null", f"{file}:{each.line}")
            label = places[each.name]
            number = len(sounds)
            sounds.append((number, video, f"{video}_{each.frame:06d}", frame, each.time, label))
            for x1, y1, x2, y2 in each.boxes:
                corners = (x1 * WIDTH, y1 * HEIGHT, x2 * WIDTH, y2 * HEIGHT)
                boxes.append((start + len(boxes), video, frame, None, *corners, number))
    return (
        pl.DataFrame(sounds, schema=_SCHEMAS["sounds"], orient="row"),
        pl.DataFrame(boxes, schema=_SCHEMAS["boxes"], orient="row"),
    )


def _videos(named: Sequence[pl.Series], splits: Mapping[str, list[str]]) -> pl.DataFrame:
    """Every video once, in the order in which they appear."""
    names = pl.concat([each.rename("video") for each in named]).unique(maintain_order=True)
    held = pl.Series("splits", [splits.get(name, []) for name in names], dtype=pl.List(pl.String))
    return pl.DataFrame([names, held]).with_columns(
        width_px=pl.lit(WIDTH, pl.Int64), height_px=pl.lit(HEIGHT, pl.Int64), fps=pl.lit(FPS, pl.Float32)
    )


VERSION = 1
_WANTED = (
    "Chaotic World needs its annotations, a folder 'AR_ava_format/' or 'SSL_ssl_format/' with csv files,"
)
_HINT = "Point at the folder that holds them, its zip, or one csv."
_EXCLUDED = re.compile(r"exclu", re.IGNORECASE)
_SPLIT = re.compile(r"(?:^|[^a-z])(train|val|test)(?:[^a-z]|$)", re.IGNORECASE)
_PICTURES, _GROUPS = ("picked", "all"), ("group", "frame")


@dataclass
class _Parts:
    """Names of the files of a set, by what they are.

    Args:
        any: csv files, each of actions or of sounds: the one given, or those of a folder inside a set.
    """

    any: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    naming: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    sounds: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """All of them."""
        every = [
            *self.any,
            *self.actions,
            *self.naming,
            *self.excluded,
            *self.labels,
            *self.sounds,
            *self.lists,
        ]
        return list(dict.fromkeys(every))


def find(path: Path) -> Source:
    """The annotations at `path`: a csv, or a folder or zip in which they lie.

    Raises:
        DatasetNotFoundError: if there are none.
        InputError: if the path cannot be read.
    """

    def fits(source: Source) -> bool:
        parts = _parts(source)
        return bool(parts.actions or parts.sounds or parts.any)

    return find_source(path, fits, _WANTED, _HINT, suffix=".csv")


def inputs(
    source: Source,
    images: str | None = None,
    sounds: str | None = None,
    first_frame: int | None = None,
    labels: str | Path | None = None,
) -> list[str]:
    """Names of the files that `read` would read."""
    lent = [] if labels is None else [source.lend(Path(labels))]
    return [*_parts(source, images, sounds).names, *lent]


def read(
    source: Source,
    *,
    pictures: str | None = None,
    sounds: str | None = None,
    first_frame: int | None = None,
    labels: str | Path | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Boxes are in pixels of the published images of 320 x 180, from the shares of the files. A sound has all
    its boxes; the published code uses the first.

    Args:
        pictures: `picked`, those of `chaos_*_1fps.csv`, or `all`, those of `annotation/` (default: whichever are
            there).
        sounds: `group` or `frame`, the folder of the csv of sounds (default: what is there).
        first_frame: number of a video's first frame: 1, or 0 (default: 1), and 0 where a file names it.
        labels: a list of the actions that are read, with their names (default: all fifty by their official names).
            Its numbers may run from 1, those of the csv files run from 0.

    Raises:
        UsageError: if an option is none.
        InputError: if no file can be read, or the list of actions cannot.
    """
    # Raises UsageError if an option is none
    if (
        pictures not in (None, *_PICTURES)
        or sounds not in (None, *_GROUPS)
        or first_frame not in (None, 0, 1)
    ):
        raise UsageError("'pictures' is picked or all, 'sounds' is group or frame, 'first_frame' is 0 or 1")
    parts, findings, held = _parts(source, pictures, sounds), Findings(), Held()
    names = parts.names
    if labels is not None:
        names.append(source.lend(Path(labels)))
        name = names[-1]
        held.known = map_to_file_ids(read_labels(source.read(name), source.where(name), findings))
    _read_sides(source, parts, held, findings)
    jobs = _jobs(source, parts)
    way = dict(jobs)
    errors = read_each_file(
        list(way), lambda name, found: way[name](source, name, held, found), findings, progress
    )
    if len(errors) == len(way):
        raise build_unreadable_error(errors)
    lowest = min(held.lowest, 1)
    first = lowest if first_frame is None else first_frame
    tables, vocabularies = build_chaotic_tables(held, first, findings)
    notes = {"first_frame": first, "label_ids": {"action": list(held.known.ids)}, "published_box": "first"}
    meta = findings.build_meta(READERS["chaotic_world"], vocabularies, source.contents(names), **notes)
    return Scenes(**tables, rejected=findings.table(), meta=meta)


_T = TypeVar("_T")
_Take = Callable[[Source, str, Held, Findings], None]


def _jobs(source: Source, parts: _Parts) -> list[tuple[str, _Take]]:
    """Each csv with how it is read."""
    jobs = [(name, _kind(source, name)) for name in parts.any]
    jobs += [(name, _take_actions) for name in parts.actions]
    return jobs + [(name, _take_sounds) for name in parts.sounds]


def _kind(source: Source, name: str) -> _Take:
    """How a csv is read that may be of actions or of sounds."""
    return _take_sounds if is_of_sounds(source.read(name), source.where(name)) else _take_actions


def _take_actions(source: Source, name: str, held: Held, findings: Findings) -> None:
    """Add the rows of a file of actions.

    Raises:
        InputError: if it cannot be read, or has a video that an earlier file has.
    """
    where = source.where(name)
    rows = read_actions(source.read(name), name, where, findings)
    videos = rows["video"].unique(maintain_order=True).to_list()
    for video in videos:
        if video in held.files:
            message = f"it has the video '{to_printable(video, 60)}', and so has '{to_printable(held.files[video], 80)}'"
            raise InputError(message, where=where, hint="read the files one by one")
    held.files |= dict.fromkeys(videos, name)
    findings.warn("files of actions without a row", name, int(rows.is_empty()))
    held.actions[name] = rows
    if split := _split(name):
        for video in videos:
            held.splits.setdefault(video, []).append(f"action/{split}")


def _take_sounds(source: Source, name: str, held: Held, findings: Findings) -> None:
    """Add the sounds of a file, whose name is that of its video."""
    video = to_printable(PurePosixPath(name).stem, 255)
    held.sounds[name] = (video, read_sounds(source.read(name), name, source.where(name), findings))


def _read_sides(source: Source, parts: _Parts, held: Held, findings: Findings) -> None:
    """Read the files that say more about the others: splits, moments left aside, names of actions."""
    for name in parts.lists:
        lines = _side(source, name, findings, lambda data, where: decode(data, where).split("\n"))
        for video in dict.fromkeys(line.strip() for line in lines or () if line.strip()):
            held.splits.setdefault(to_printable(video, 255), []).append(f"sound/{_split(name)}")
    for name in parts.excluded:
        found = _side(source, name, findings, partial(_aside, name, findings))
        held.excluded += [] if found is None else [found]
    for name in parts.labels:
        known = _side(source, name, findings, lambda data, where: read_labels(data, where, findings))
        if known is not None:
            # Warn of actions that a label map calls otherwise than the official fifty; numbers may
            # run from 1
            official = dict(zip(ACTIONS.ids, ACTIONS.names, strict=True))
            for number, own in zip(known.ids, known.names, strict=True):
                if find_canonical_name(own, "action") != official.get(number - min(known.ids)):
                    findings.warn("names of the label map that are not the official ones, left aside", own)
    for name in parts.naming:
        videos = _side(source, name, findings, read_first_column)
        for video in videos if videos is not None else ():
            held.splits.setdefault(to_printable(video, 255), []).append(f"action/{_split(name)}")


def _aside(name: str, findings: Findings, data: bytes, where: str) -> pl.DataFrame:
    """The moments of a file of exclusions."""
    return parse_excluded_frames(data, name, where, findings, header=True)


def _side(source: Source, name: str, findings: Findings, take: Callable[[bytes, str], _T]) -> _T | None:
    """Content of a side file; one that cannot be read is refused."""
    try:
        value = take(source.read(name), source.where(name))
    except InputError as error:
        findings.reject_file(name, error)
        return None
    findings.read["files"] += 1
    return value


def _parts(source: Source, images: str | None = None, sounds: str | None = None) -> _Parts:
    """The files of a set, with or without the folders around them."""
    if isinstance(source, FileSource):
        return _Parts(any=[source.name])
    parts = _Parts()
    for base in ("AR_ava_format", "") if source.has_folder("AR_ava_format") else ("",):
        _add_actions(source, base, images, parts)
        if parts.actions:
            break
    for base in ("SSL_ssl_format", "") if source.has_folder("SSL_ssl_format") else ("",):
        # The files of sounds in a folder
        for group in _GROUPS if sounds is None else (sounds,):
            parts.sounds = parts.sounds or source.files(f"{base}/annotation/{group}".strip("/"), ".csv")
        lists = source.files(base, ".txt") if parts.sounds else []
        parts.lists = [
            name for name in lists if PurePosixPath(name).name.endswith("_ssl.txt") and _split(name)
        ]
        if parts.sounds:
            break
    if not (parts.actions or parts.sounds or source.entries()[1]):
        tables = source.files("", ".csv")
        parts.excluded = [name for name in tables if _EXCLUDED.search(name)]
        parts.any = [name for name in tables if name not in parts.excluded]
    return parts


def _add_actions(source: Source, base: str, images: str | None, parts: _Parts) -> None:
    """The files of actions in a folder."""
    tables = source.files(base, ".csv")
    aside = [name for name in tables if _EXCLUDED.search(PurePosixPath(name).name)]
    picked = [name for name in tables if name not in aside and PurePosixPath(name).name.startswith("chaos_")]
    every = source.files(f"{base}/annotation".strip("/"), ".csv")
    parts.actions = every if images == "all" or (images is None and not picked) else picked
    parts.naming = [name for name in picked if name not in parts.actions and _split(name)]
    parts.excluded = aside if parts.actions else []
    parts.labels = source.files(base, ".pbtxt") if parts.actions else []


def _split(name: str) -> str | None:
    """The split in the name of a file."""
    found = _SPLIT.search(PurePosixPath(name).stem)
    return found[1].lower() if found else None
