"""Parquet files and bytes as tables; other modules call polars' own readers nowhere, a lint rule sees to it."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import polars as pl

from roadaware.errors import raise_interrupt
from roadaware.io.storage import locate_content


def read_parquet(source: bytes | Path) -> pl.DataFrame:
    """Read a table, from bytes or from the one file of that name.

    Polars by itself takes a path with brackets or stars for a pattern, so that a run in the folder `drive [1]` is not
    found, and of some damaged files it panics, which is no `Exception`.

    Raises:
        polars.exceptions.PolarsError: if it is damaged or no Parquet.
        OSError: if the file cannot be read.
    """
    try:
        return pl.read_parquet(locate_content(source) if isinstance(source, Path) else source, glob=False)
    except pl.exceptions.PanicException as error:
        raise_interrupt(error)
        raise pl.exceptions.ComputeError("the file is damaged") from error


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
