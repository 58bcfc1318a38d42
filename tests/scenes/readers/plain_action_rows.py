"""AVA's csv read row by row with Python's own means: what the fast reader must agree with."""

from __future__ import annotations

import csv
import math
import re
from typing import NamedTuple

_ASCII_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|infinity|nan)", re.ASCII | re.I)


class Row(NamedTuple):
    """A row as numbers; `corners` is None for a moment without a box, `action` for a box without one."""

    line: int
    video: str
    frame: int
    corners: tuple[float, ...] | None
    action: int | None
    last: str | None


class NoFileError(Exception):
    """The whole file is refused."""


def rows_of(text: str) -> tuple[list[Row], list[int]]:
    """The rows that can be taken, and the numbers of the lines that cannot."""
    if "\0" in text or not text.strip():
        raise NoFileError
    taken: list[Row] = []
    refused: list[int] = []
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")), 1):
        if not line.strip():
            continue
        if len(line.encode()) > 65_536:
            raise NoFileError
        try:
            cells = (
                next(csv.reader([line], strict=True, skipinitialspace=True))
                if '"' in line
                else line.split(",")
            )
        except csv.Error as error:
            raise NoFileError from error
        row = _row(number, [cell.strip() for cell in cells])
        taken += [row] if row else []
        refused += [] if row else [number]
    return taken, refused


def number(text: str) -> float | None:
    """A number as Python reads it, without its underscores, blanks and foreign digits."""
    return float(text) if _ASCII_NUMBER.fullmatch(text) else None


def _whole(text: str) -> int | None:
    found = re.fullmatch(r"[-+]?\d+", text, re.ASCII)
    value = int(text) if found and len(text) < 4000 else None
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


def _row(line: int, cells: list[str]) -> Row | None:
    if len(cells) not in (7, 8):
        return None
    video, moment, *box, action = cells[:7]
    frame = _whole(re.sub(r"\.0*$", "", moment))
    if not video or len(video.encode()) > 255 or frame is None or not 0 <= frame <= 10_000_000:
        return None
    last = cells[7] if len(cells) == 8 and cells[7] else None
    if not any(box) and not action:
        return Row(line, video, frame, None, None, last)
    corners = [number(text) for text in box]
    if any(value is None or not math.isfinite(value) or not -1 <= value <= 2 for value in corners):
        return None
    x1, y1, x2, y2 = (float(value or 0) for value in corners)
    if x2 < x1 or y2 < y1 or (action and _whole(action) is None):
        return None
    return Row(line, video, frame, (x1, y1, x2, y2), _whole(action), last)
