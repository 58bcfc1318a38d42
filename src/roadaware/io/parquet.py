"""Parquet files and bytes as tables; other modules call polars' own readers nowhere, a lint rule sees to it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO

import polars as pl

from roadaware.errors import raise_interrupt
from roadaware.io.storage import locate_content

_FREE_VALUES = 20_000_000
_MOST_VALUES_A_BYTE = 100
"""A column of one value repeated takes next to no bytes: 90 kB were seen to hold 20 million rows of two."""


def read_parquet(source: bytes | Path) -> pl.DataFrame:
    """Read a table, from bytes or from the one file of that name.

    Polars by itself takes a path with brackets or stars for a pattern, so that a run in the folder `drive [1]` is not
    found, and of some damaged files it panics, which is no `Exception`.

    Raises:
        polars.exceptions.PolarsError: if it is damaged, no Parquet, or of far more values than its bytes can tell apart.
        OSError: if the file cannot be read.
    """
    try:
        held = locate_content(source) if isinstance(source, Path) else source
        size = len(held) if isinstance(held, bytes) else held.stat().st_size
        n_values = _count_values(held)
        if n_values > max(_FREE_VALUES, _MOST_VALUES_A_BYTE * size):
            raise pl.exceptions.ComputeError(f"{n_values:,} values in {size:,} bytes")
        return pl.read_parquet(held, glob=False)
    except pl.exceptions.PanicException as error:
        raise_interrupt(error)
        raise pl.exceptions.ComputeError("the file is damaged") from error


def _count_values(source: bytes | Path) -> int:
    """Rows times columns, as the end of a file says."""
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    rows: int = pl.scan_parquet(stream, glob=False).select(pl.len()).collect().item()
    return rows * len(pl.read_parquet_schema(source))


def scan_parquet(paths: Path | list[Path] | IO[bytes]) -> pl.LazyFrame:
    """A lazy table of one file, or of several one after the other, each by the very name that it has."""
    if isinstance(paths, Path):
        paths = locate_content(paths)
    elif isinstance(paths, list):
        paths = [locate_content(path) for path in paths]
    return pl.scan_parquet(paths, glob=False)


def read_parquet_columns(source: bytes | Path) -> list[str]:
    """The names of the columns of a table, in bytes or the one file of that name; no row is read.

    Raises:
        polars.exceptions.PolarsError: if it is damaged or no Parquet.
        OSError: if the file cannot be read.
    """
    try:
        return list(pl.read_parquet_schema(locate_content(source) if isinstance(source, Path) else source))
    except pl.exceptions.PanicException as error:
        raise_interrupt(error)
        raise pl.exceptions.ComputeError("the file is damaged") from error
