"""Text files of rows, read line by line with a bound on everything, and every complaint names its line."""

from __future__ import annotations

import csv
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from roadaware.errors import InputError

# Rows of predictions have up to some hundred numbers; a longer line is a file without line breaks.
MAX_LINE = 65_536
MAX_ROWS = 2_000_000
MAX_CHARACTERS = 1 << 28
_CHUNK = 1 << 20


def read_csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The line number (from 1) and the cells of every row; empty lines at the end of the file are ignored.

    Cells are separated by commas and may be quoted; a row is one line. A byte-order mark is skipped, and
    all three kinds of line ends are understood.

    Raises:
        InputError: if it is no regular file, not UTF-8, longer than MAX_ROWS or MAX_CHARACTERS, or a line is
            empty, too long, or holds a NUL character or a quote that is never closed.
    """
    with _open_text(path) as stream:
        empty_from = 0
        line_number = 0
        for line in _lines(stream, path):
            line_number += 1
            if not line.strip():
                empty_from = empty_from or line_number
                continue
            if empty_from:
                raise InputError(
                    "expected a row, found an empty line",
                    where=f"{path}:{empty_from}",
                    hint="Rows are matched by their order; delete the line, or put the missing row there.",
                )
            yield line_number, _line_cells(line, path, line_number)


def ensure_regular_file(path: Path, what: str) -> None:
    """Check that a path is a regular file.

    Raises:
        InputError: if it is not, saying what is there instead.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(f"{what}: {error.strerror}", where=str(path), hint=_near(path)) from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device or pipe"
        raise InputError(
            f"{what}: expected a regular file, found {kind}",
            where=str(path),
            hint="Name the csv file itself.",
        )


@contextmanager
def _open_text(path: Path) -> Iterator[TextIO]:
    ensure_regular_file(path, "csv file")
    try:
        with path.open(encoding="utf-8-sig", newline=None) as stream:
            yield stream
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except OSError as error:
        raise InputError(f"could not be read: {error.strerror or error}", where=str(path)) from error


def _lines(stream: TextIO, path: Path) -> Iterator[str]:
    number = total = 0
    # Bounded: a file without line breaks is never held whole.
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        total += len(line)
        if len(line) > MAX_LINE:
            raise InputError(
                f"expected rows of a few numbers, found a line of more than {MAX_LINE} characters",
                where=f"{path}:{number}",
                hint="Write one row per sample, with a line break after each.",
            )
        if number > MAX_ROWS or total > MAX_CHARACTERS:
            raise InputError(
                f"expected at most {MAX_ROWS:,} rows and {MAX_CHARACTERS:,} characters, found more",
                where=f"{path}:{number}",
                hint="One row per sample is due; is this the right file? Evaluate larger sets in parts.",
            )
        yield line


def _line_cells(line: str, path: Path, number: int) -> list[str]:
    where = f"{path}:{number}"
    if "\0" in line:
        raise InputError(
            "expected text, found a NUL character",
            where=where,
            hint="The file is damaged or not a text file; write it again as UTF-8 csv.",
        )
    if '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    try:
        found = next(csv.reader([line.rstrip("\n")], strict=True, skipinitialspace=True))
    except csv.Error as error:
        raise InputError(
            f"expected balanced quotes, found a row that is not csv ({error})",
            where=where,
            hint="A quote is opened and not closed on this line; a row is one line.",
        ) from error
    return [cell.strip() for cell in found]


def _not_utf8(path: Path) -> InputError:
    with path.open("rb") as stream:
        if stream.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return InputError(
                "expected UTF-8 text, found UTF-16",
                where=str(path),
                hint="Save it again as UTF-8 csv (iconv -f UTF-16 -t UTF-8 does it).",
            )
    return InputError(
        f"expected UTF-8 text, found the invalid byte number {_first_invalid(path)}",
        where=str(path),
        hint="The file is damaged or not a text file; write it again as UTF-8 csv.",
    )


def _first_invalid(path: Path) -> int:
    """Offset of the first byte that is not UTF-8."""
    offset, rest = 0, b""
    with path.open("rb") as stream:
        while block := stream.read(_CHUNK):
            data = rest + block
            try:
                data.decode("utf-8")
                rest = b""
            except UnicodeDecodeError as error:
                # A character has up to four bytes: one that the block cuts off may still be whole.
                if error.start < len(data) - 3:
                    return offset + error.start
                rest = data[error.start :]
            offset += len(data) - len(rest)
    return offset


def _near(path: Path) -> str:
    """What lies in the folder that the path names, or the nearest one above it."""
    folder = path.absolute().parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return f"{folder} cannot be listed."
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"{folder} holds: {shown or 'nothing'}."
