"""Csv files by line: text decoded, cells apart, and every complaint with the number of its line."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers.encoded_text import decoded

MAX_LINE = 65_536
MAX_LINES = 20_000_000
_PIECE, _ROWS = 1 << 22, 1 << 16
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
    text = decoded(data, where, expected="rows of csv", hint=_DAMAGED)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (place := text.find("\0")) >= 0:
        line = text.count("\n", 0, place) + 1
        raise InputError("expected text, found a NUL character", where=f"{where}:{line}", hint=_DAMAGED)
    return text


def pieces_of(text: str, where: str) -> Iterator[pl.DataFrame]:
    """The lines that hold anything, with their numbers from 1, some tens of thousands at a time.

    Yields:
        (n) `line` and `text`.

    Raises:
        InputError: if one is longer than MAX_LINE bytes, or there are more than MAX_LINES.
    """
    if text.count("\n") >= MAX_LINES:
        message = f"more than {MAX_LINES:,} lines"
        raise InputError(message, where=where, hint="read larger sets in parts")
    start, line = 0, 1
    while start < len(text):
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


def cells_of(lines: pl.DataFrame, where: str, columns: int) -> pl.DataFrame:
    """The cells of each line, without blanks around them.

    Args:
        lines: (n) see `pieces_of`.
        where: names the file in errors.
        columns: how many cells are kept; missing ones are null.

    Returns:
        (n) `line`, `cells` (how many the line has), `c0` to `c<columns - 1>` as text.

    Raises:
        InputError: if a quote is opened on a line and not closed on it.
    """
    names = [f"c{n}" for n in range(columns)]
    parts = lines["text"].str.split_exact(",", columns).struct.unnest()
    parts.columns = [*names, "rest"]
    table = parts.select(pl.col(names).str.strip_chars())
    count = lines["text"].str.count_matches(",", literal=True) + 1
    table = table.with_columns(line=lines["line"], cells=count.cast(pl.Int64))
    quoted = lines["text"].str.contains('"', literal=True)
    if quoted.any():
        table = _with_quoted(table, lines.filter(quoted), quoted, where, columns)
    return table.select("line", "cells", *names)


def rows_of(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that holds anything, for files whose every row has quotes or a name.

    Raises:
        InputError: as `pieces_of` and `cells_of`.
    """
    for piece in pieces_of(text, where):
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
