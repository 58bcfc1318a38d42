"""Csv files: read line by line with a bound on everything and every complaint naming its line, and written
so that no cell is a formula.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from roadaware.errors import DamagedError, InputError, raise_interrupt
from roadaware.io import text_rows
from roadaware.io.parquet import scan_parquet
from roadaware.io.sources import decode_utf_text, read_file

MAX_LINE = 65_536
MAX_LINES = 20_000_000
# A piece of empty lines takes 70 times its size while it is cut.
_PIECE, _ROWS = 1 << 20, 1 << 16
_DAMAGED = "the file is damaged, cut off or no text: fetch it again, or write it again as UTF-8 csv"
_ONE_ROW = "one row per line is due: write it again with a line break behind each row"


def is_blank(data: bytes) -> bool:
    """Whether a file holds nothing but blanks and the mark of its encoding."""
    return not data.removeprefix(codecs.BOM_UTF8).strip() or data in (
        codecs.BOM_UTF16_LE,
        codecs.BOM_UTF16_BE,
    )


def decode(data: bytes, where: str) -> str:
    """The text of a csv file in UTF-8, or in UTF-16 with its mark; every line ends with a line feed.

    Raises:
        InputError: if it is empty, not of that encoding (with the byte), or holds a NUL (with the line).
    """
    text = decode_utf_text(data, where, expected="rows of csv", hint=_DAMAGED)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (place := text.find("\0")) >= 0:
        line = text.count("\n", 0, place) + 1
        raise InputError("expected text, found a NUL character", where=f"{where}:{line}", hint=_DAMAGED)
    return text


def iterate_line_batches(text: str, where: str) -> Iterator[pl.DataFrame]:
    """The lines that hold anything, with their numbers from 1, some tens of thousands at a time.

    Yields:
        (n) `line` and `text`.

    Raises:
        InputError: if one is longer than MAX_LINE bytes, or there are more than MAX_LINES.
    """
    # Counted first: even empty lines would become millions of rows.
    if text.count("\n") >= MAX_LINES:
        message = f"more than {MAX_LINES:,} lines"
        raise InputError(message, where=where, hint="read larger sets in parts")
    start, line = 0, 1
    while start < len(text):
        # Pieces end at line ends, so that no row is split.
        end = text.find("\n", start + _PIECE)
        end = len(text) if end < 0 else end
        series = pl.Series("text", [text[start:end]], dtype=pl.String).str.split("\n").explode()
        long = series.str.len_bytes() > MAX_LINE
        if long.any():
            place = int(long.arg_true()[0])
            message = f"a line of {len(series[place]):,} characters; at most {MAX_LINE:,} bytes are read"
            raise InputError(message, where=f"{where}:{line + place}", hint=_ONE_ROW)
        numbers = pl.int_range(line, line + len(series), eager=True).alias("line")
        filled = pl.DataFrame([numbers, series]).filter(pl.col("text").str.contains(r"\S"))
        yield from filled.iter_slices(_ROWS)
        start, line = end + 1, line + len(series)


def split_cells(lines: pl.DataFrame, where: str, columns: int) -> pl.DataFrame:
    """The cells of each line, without blanks around them.

    Args:
        lines: (n) see `iterate_line_batches`.
        where: names the file in errors.
        columns: how many cells are kept; missing ones are null.

    Returns:
        (n) `line`, `cells` (how many the line has), `c0` to `c<columns - 1>` as text.

    Raises:
        InputError: if a quote is opened on a line and not closed on it.
    """
    names = [f"c{n}" for n in range(columns)]
    # Without quotes every comma separates: polars splits these lines at once, csv only the others.
    parts = lines["text"].str.split_exact(",", columns).struct.unnest()
    parts.columns = [*names, "rest"]
    table = parts.select(pl.col(names).str.strip_chars())
    count = lines["text"].str.count_matches(",", literal=True) + 1
    table = table.with_columns(line=lines["line"], cells=count.cast(pl.Int64))
    quoted = lines["text"].str.contains('"', literal=True)
    if quoted.any():
        table = _with_quoted(table, lines.filter(quoted), quoted, where, columns)
    return table.select("line", "cells", *names)


def parse_quoted_rows(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that holds anything, for files whose every row has quotes or a name.

    Raises:
        InputError: as `iterate_line_batches` and `split_cells`.
    """
    for piece in iterate_line_batches(text, where):
        for number, line in piece.iter_rows():
            yield number, _cells(line, number, where)


def _with_quoted(
    table: pl.DataFrame, lines: pl.DataFrame, quoted: pl.Series, where: str, columns: int
) -> pl.DataFrame:
    """The table with the lines that hold quotes split by the rules of csv."""
    names = [f"c{n}" for n in range(columns)]
    rows = []
    for number, line in lines.iter_rows():
        cells = _cells(line, number, where)
        held = [*cells, *[None] * columns][:columns]
        rows.append((number, len(cells), *held))
    schema = {"line": pl.Int64, "cells": pl.Int64, **dict.fromkeys(names, pl.String)}
    ours = pl.DataFrame(rows, schema=schema, orient="row")
    plain = table.select(list(schema)).filter(~quoted)
    return pl.concat([plain, ours]).sort("line")


def _cells(line: str, number: int, where: str) -> list[str]:
    """The cells of one line by the rules of csv."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    try:
        found = next(csv.reader([line], strict=True, skipinitialspace=True))
    except csv.Error as error:
        message = f"expected balanced quotes, found a row that is not csv ({error})"
        hint = "a quote is opened and not closed on this line; a row is one line"
        raise InputError(message, where=f"{where}:{number}", hint=hint) from error
    return [cell.strip() for cell in found]


# Rows of cells of a csv file, or of a Parquet table, which says the same in columns.

_MOST_COLUMNS = 1024
_PARQUET = b"PAR1"


def read_cells(path: Path, *, header: bool) -> Iterator[tuple[int, list[str]]]:
    """The line number (from 1) and the cells of every row; of Parquet as the csv file would have them.

    Without header, a column of lists gives as many cells as they have numbers. What is missing is an empty
    cell.

    Args:
        path: a csv file, or a Parquet file, which ends in `.parquet`.
        header: whether the first row names the columns, as it does in a csv file with a header.

    Raises:
        InputError: as `read_cells`; if a Parquet table has another name, is too large, or holds other
            things than numbers and words where there is no header (`DamagedError` if it is no whole table).
    """
    if path.suffix.lower() == ".parquet":
        return _of_table(path, header=header)
    if _begins(path) == _PARQUET:
        raise InputError("this is a Parquet table", where=str(path), hint="Let its name end in .parquet.")
    return text_rows.read_csv_rows(path)


def _begins(path: Path) -> bytes:
    """The first bytes of a file; none of what cannot be opened, which its reader tells."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as held:
            return held.read(len(_PARQUET))
    except OSError:
        return b""


def _of_table(path: Path, *, header: bool) -> Iterator[tuple[int, list[str]]]:
    frame = _read(path)
    if header:
        yield 1, frame.columns
    else:
        # Columns that are neither numbers, words, nor lists of numbers are refused.
        for name, kind in frame.schema.items():
            inner = kind.inner if isinstance(kind, pl.List | pl.Array) else kind
            words = not isinstance(kind, pl.List | pl.Array) and inner in (
                pl.String,
                pl.Categorical,
                pl.Boolean,
            )
            if not (words or (isinstance(inner, pl.DataType) and inner.is_numeric())):
                raise InputError(
                    f"expected numbers or words in column {name[:40]!r}, found {kind}",
                    where=str(path),
                    hint="Keep the columns of the csv file: one row per sample.",
                )
    for line, row in enumerate(frame.iter_rows(), 1 + header):
        yield (
            line,
            [_text(cell) for cell in row] if header else [text for cell in row for text in _texts(cell)],
        )


def _read(path: Path) -> pl.DataFrame:
    """The table, if it is not too large."""
    held = io.BytesIO(read_file(path, most=text_rows.MAX_CHARACTERS))
    try:
        lazy = scan_parquet(held)
        schema, length = lazy.collect_schema(), int(lazy.select(pl.len()).collect().item())
        if length > text_rows.MAX_ROWS or len(schema) > _MOST_COLUMNS:
            raise InputError(
                f"expected up to {text_rows.MAX_ROWS:,} rows of {_MOST_COLUMNS:,} columns, "
                f"found {length:,} of {len(schema):,}",
                where=str(path),
            )
        return lazy.collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise_interrupt(error)
        reason = str(error).splitlines()[0]
        raise DamagedError(
            f"expected a Parquet table, found: {reason}", where=str(path), hint="Write the file again."
        ) from error


def _texts(cell: object) -> list[str]:
    """One cell, or those of a list."""
    return [text for each in cell for text in _texts(each)] if isinstance(cell, list) else [_text(cell)]


def _text(cell: object) -> str:
    """What a csv file would say; floats as they are, exactly."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


# Tables as csv that people open: no text in them can call a function, and numbers stay exact.

# Apostrophes before the sign count too, so that `from_sheets` can undo exactly what was done.
_FORMULA = r"^'*[=+@\t\r-]"
# YouTube names some of AVA's videos with a minus in front: no formula, and they must stay as they are.
_PLAIN = r"^[A-Za-z0-9_.-]+$"
_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def format_csv(table: pl.DataFrame, *, header: bool = True) -> str:
    """A table as csv, with as many digits as its numbers need.

    Text that a spreadsheet would compute gets an apostrophe in front; see `escape_formulas`.

    Args:
        table: without columns of lists.
        header: whether the first line names the columns.
    """
    texts = [name for name, dtype in table.schema.items() if isinstance(dtype, _TEXTS)]
    return table.with_columns(escape_formulas(pl.col(name)) for name in texts).write_csv(
        include_header=header
    )


def escape_formulas(column: pl.Expr) -> pl.Expr:
    """Text with an apostrophe before formulas of spreadsheets, which begin with =, +, -, @ or a tab.

    Names of letters, digits, `_`, `.` and `-` stay as they are. What has apostrophes before such a sign gets
    one more, so that `from_sheets` gives back what was written.

    >>> pl.DataFrame({"a": ["=1+1", "-5KQ66", "'=1", "it's"]}).select(escape_formulas(pl.col("a")))["a"].to_list()
    ["'=1+1", '-5KQ66', "''=1", "it's"]
    """
    text = column.cast(pl.String)
    computed = text.str.contains(_FORMULA) & ~text.str.contains(_PLAIN)
    return pl.when(computed).then("'" + text).otherwise(text).alias(column.meta.output_name())


def from_sheets(column: pl.Expr) -> pl.Expr:
    """The inverse of `escape_formulas`."""
    return column.cast(pl.String).str.replace(r"^'('*[=+@\t\r-])", "$1").alias(column.meta.output_name())
