"""Chaotic World's csv of sounds: when and where something is heard, its boxes as literals, never run."""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from roadaware.errors import InputError
from roadaware.scenes.readers.csvlines import decode, rows_of
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.source import shown

COLUMNS = ("start_fid", "start_time", "bbox", "ssl")
LONGEST_LITERAL = 20_000
_DEEPEST = 8
_MOST_FRAMES = 10_000_000
_LITERAL = re.compile(r"[-+0-9eE.,\s\[\]()]*", re.ASCII)
_WHOLE = re.compile(r"([0-9]{1,9})(?:\.0*)?", re.ASCII)
_TIME = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,30})?(?:e[-+]?[0-9]{1,2})?", re.ASCII | re.IGNORECASE)
_NEAR = (-1.0, 2.0)
_HINT = f"its columns are {', '.join(COLUMNS)}; `bbox` is a list of boxes [x1, y1, x2, y2] in quotes"

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Sound:
    """What is heard.

    Args:
        line: where it stands in the file.
        frame: number of its picture, as in the file.
        time: seconds from the start of the video, None where it is no number.
        name: the class of sound.
        boxes: where it comes from, in shares of the picture; the published code uses the first.
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
    _, header = next(rows_of(decode(data, where), where))
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
    rows = rows_of(decode(data, where), where)
    line, header = next(rows)
    names = [name.lower() for name in header]
    missing = [name for name in COLUMNS if names.count(name) != 1]
    if missing:
        found = shown(", ".join(header), 160)
        message = f"columns are missing or stand twice: {', '.join(missing)}; found {found}"
        raise InputError(message, where=f"{where}:{line}", hint=_HINT)
    at = [names.index(name) for name in COLUMNS]
    sounds: list[Sound] = []
    first = ""
    for number, cells in rows:
        try:
            if len(cells) != len(names):
                raise _RowError(f"{len(cells)} cells where the header names {len(names)}")
            sounds.append(_sound(number, [cells[place] for place in at]))
        except _RowError as error:
            first = first or f"line {number}: {error}"
            findings.reject("sounds", file, ", ".join(cells[:2]), str(error), number)
    if not sounds and first:
        raise InputError(f"no row can be read; the first: {first}", where=where, hint=_HINT)
    return sounds


def boxes_of(text: str) -> tuple[Box, ...]:
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
        found.append(_box(value))
        return
    for inner in value:
        _collect(inner, found, depth + 1)


def _box(numbers: list[Any] | tuple[Any, ...]) -> Box:
    if len(numbers) != 4:
        raise ValueError(f"a box of {len(numbers)} numbers where 4 are due")
    if any(not _NEAR[0] <= number <= _NEAR[1] for number in numbers):
        raise ValueError("a box far outside the picture, in pixels where 0 to 1 is due?")
    x1, y1, x2, y2 = (float(number) for number in numbers)
    if x2 < x1 or y2 < y1:
        raise ValueError("a box is upside down, x2 < x1 or y2 < y1")
    return x1, y1, x2, y2


def _sound(line: int, cells: list[str]) -> Sound:
    """A row as a sound.

    Raises:
        _RowError: if it is none.
    """
    frame, time, literal, name = cells
    whole = _WHOLE.fullmatch(frame)
    if whole is None or int(whole[1]) > _MOST_FRAMES:
        raise _RowError(f"start_fid should be a whole number from 0 and is '{shown(frame, 60)}'")
    if not name:
        raise _RowError("ssl, the class of sound, is empty")
    try:
        boxes = boxes_of(literal)
    except ValueError as error:
        raise _RowError(f"bbox: {error}: '{shown(literal, 120)}'") from error
    seconds = float(time) if _TIME.fullmatch(time) else None
    return Sound(line, int(whole[1]), seconds, shown(name, 255), boxes)
