"""Chaotic World's csv of actions: columns by their names or from both ends, then read as rows of AVA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers.ava_rows import taken, with_persons
from roadaware.scenes.readers.csvlines import cells_of, decode, pieces_of
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.source import shown

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
_BACK = {"start": -5, "end": -4, "time": -3}
_HINT = (
    "its columns are video_uid, frame, x1, y1, x2, y2, action_id, person_id, ..., frame_start, frame_end, "
    "time_current, and two more; a file without a header is read by the reader `ava`"
)
_AVA = (
    "if these are annotations of AVA, delete the header, which that format does not have; those of Chaotic "
    "World have the columns video_uid, frame, x1, y1, x2, y2, action_id, person_id, and more"
)


@dataclass(frozen=True)
class Columns:
    """Where a file has what.

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
        (n) as `ava_rows.taken`, with `person` for the eighth cell, and `start`, `end` (frames of the clip, as
        numbered in the file) and `time` in seconds; null where they are unknown.

    Raises:
        InputError: if it is no text, has no header, lacks a column, is in pixels, or no row can be taken.
    """
    pieces = pieces_of(decode(data, where), where)
    first = next(pieces)
    columns = columns_of(_header(first.head(1), where), f"{where}:{first['line'][0]}")
    besides: list[pl.DataFrame] = []
    body = _bodies([first.slice(1)], pieces)
    tables = (_as_ava(cells_of(lines, where, columns.count), columns, besides) for lines in body)
    rows = taken(tables, file, where, findings, due=(columns.count,))
    rows = with_persons(rows, file, where, findings)
    return rows.join(pl.concat(besides), on="line", how="left", maintain_order="left")


def columns_of(header: Sequence[str], where: str) -> Columns:
    """Where the columns are: by their names, and those of other names by their places from both ends.

    A column that is known by its place alone must have a name of the kind, unless no name is known at all.

    Raises:
        InputError: if the row is no header, or a column that is needed has no place.
    """
    if len(header) > MOST_COLUMNS:
        raise InputError(f"{len(header):,} columns; at most {MOST_COLUMNS}", where=where, hint=_HINT)
    numbers = pl.Series(header[2:6], dtype=pl.String).cast(pl.Float64, strict=False)
    if len(header) < len(_FRONT) or numbers.count():
        found = ",".join(header[:8])
        raise InputError(f"expected a header, found '{shown(found, 120)}'", where=where, hint=_HINT)
    names = [name.strip().lower() for name in header]
    at = _by_name(names)
    named = bool(at.keys() & _FRONT.keys())
    for what, place in _FRONT.items():
        if what in at:
            continue
        fits = not named or any(stem in names[place] for stem in _STEMS.get(what, ()))
        if place in at.values() or not fits:
            message = (
                f"a column is missing: no '{_spelled(what)}' in the header {shown(','.join(names), 160)}"
            )
            raise InputError(message, where=where, hint=_AVA if len(names) <= len(_FRONT) else _HINT)
        at[what] = place
    for what, place in _BACK.items():
        if what not in at and len(names) + place not in (*at.values(), *range(len(_FRONT))):
            at[what] = len(names) + place
    return Columns(len(names), at)


def _by_name(names: Sequence[str]) -> dict[str, int]:
    """The columns whose names are known and stand once."""
    at = {}
    for what, known in _NAMES.items():
        found = [name for name in known if names.count(name) == 1]
        if found:
            at[what] = names.index(found[0])
    for quad in _CORNERS:
        if all(names.count(name) == 1 for name in quad):
            at |= {what: names.index(name) for what, name in zip(_CORNERS[0], quad, strict=True)}
            break
    return at


def _spelled(what: str) -> str:
    return _NAMES[what][0] if what in _NAMES else what


def _header(line: pl.DataFrame, where: str) -> list[str]:
    """The cells of the first line."""
    count = str(line["text"][0]).count(",") + 1
    row = cells_of(line, where, min(count, MOST_COLUMNS + 1)).row(0)
    return [cell or "" for cell in row[2 : 2 + row[1]]]


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
