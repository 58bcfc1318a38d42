"""Rows of cells of a csv file, or of a Parquet table, which says the same in columns."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from roadaware.errors import DamagedError, InputError
from roadaware.scenes import csvfiles
from roadaware.scenes.readers.source import read_file

_MOST_COLUMNS = 1024
_PARQUET = b"PAR1"


def rows(path: Path, *, header: bool) -> Iterator[tuple[int, list[str]]]:
    """The line number (from 1) and the cells of every row; of Parquet as the csv file would have them.

    Without header, a column of lists gives as many cells as they have numbers. What is missing is an empty
    cell.

    Args:
        path: a csv file, or a Parquet file, which ends in `.parquet`.
        header: whether the first row names the columns, as it does in a csv file with a header.

    Raises:
        InputError: as `csvfiles.rows`; if a Parquet table has another name, is too large, or holds other
            things than numbers and words where there is no header (`DamagedError` if it is no whole table).
    """
    if path.suffix.lower() == ".parquet":
        return _of_table(path, header=header)
    if _begins(path) == _PARQUET:
        raise InputError("this is a Parquet table", where=str(path), hint="Let its name end in .parquet.")
    return csvfiles.rows(path)


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
        _check(path, frame.schema)
    for line, row in enumerate(frame.iter_rows(), 1 + header):
        yield (
            line,
            [_text(cell) for cell in row] if header else [text for cell in row for text in _texts(cell)],
        )


def _read(path: Path) -> pl.DataFrame:
    """The table, if it is not too large."""
    held = io.BytesIO(read_file(path, most=csvfiles.MAX_CHARACTERS))
    try:
        lazy = pl.scan_parquet(held)
        schema, length = lazy.collect_schema(), int(lazy.select(pl.len()).collect().item())
        if length > csvfiles.MAX_ROWS or len(schema) > _MOST_COLUMNS:
            raise InputError(
                f"expected up to {csvfiles.MAX_ROWS:,} rows of {_MOST_COLUMNS:,} columns, "
                f"found {length:,} of {len(schema):,}",
                where=str(path),
            )
        return lazy.collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DamagedError(
            f"expected a Parquet table, found: {reason}", where=str(path), hint="Write the file again."
        ) from error


def _check(path: Path, schema: pl.Schema) -> None:
    """Refuse columns that are neither numbers, words, nor lists of numbers."""
    for name, kind in schema.items():
        inner = kind.inner if isinstance(kind, pl.List | pl.Array) else kind
        words = not isinstance(kind, pl.List | pl.Array) and inner in (pl.String, pl.Categorical, pl.Boolean)
        if not (words or (isinstance(inner, pl.DataType) and inner.is_numeric())):
            raise InputError(
                f"expected numbers or words in column {name[:40]!r}, found {kind}",
                where=str(path),
                hint="Keep the columns of the csv file: one row per sample.",
            )


def _texts(cell: object) -> list[str]:
    """One cell, or those of a list."""
    return [text for each in cell for text in _texts(each)] if isinstance(cell, list) else [_text(cell)]


def _text(cell: object) -> str:
    """What a csv file would say; floats as they are, exactly."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
