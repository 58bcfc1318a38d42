"""Tables of run folders, read back with the columns, types and bounds that runs are written with."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

# Numbers of a file that somebody else wrote reach axes and sums.
_LARGEST = 1e9
"""Far beyond any score, threshold or metric, and far from where arithmetic with them ends."""


def read_table(
    data: bytes,
    columns: Mapping[str, Any],
    *,
    filled: Collection[str] = (),
    below: Mapping[str, int] | None = None,
    among: Mapping[str, Collection[str]] | None = None,
) -> pl.DataFrame:
    """A table whose columns are as due; the digest of a file says who wrote it last, not that it is right.

    Runs that were written before version 0.9 have no columns of cautions; they get empty ones.

    Args:
        data: the content of a Parquet file.
        columns: name to type of those that are due, where any whole numbers stand for each other; further
            columns may stand beside them.
        filled: those without null.
        below: filled columns of whole numbers from 0, and what each is less than.
        among: filled columns of text, and the words of each.

    Raises:
        ValueError: saying which column is not as it is due.
        PolarsError: if the file is no table.
    """
    table = pl.read_parquet(io.BytesIO(data))
    below, among = below or {}, among or {}
    for name, kind in columns.items():
        if name not in table.columns and name.startswith("caution_"):
            table = table.with_columns(pl.lit(None, pl.String).alias(name))
        found = table.schema.get(name)
        if found is None or (found != kind and not (found.is_integer() and kind.is_integer())):
            raise ValueError(f"expected a column {name!r} of {kind}, found {found or 'none'}")
        column = table[name]
        if (name in filled or name in below or name in among) and column.null_count():
            raise ValueError(f"expected a value in each row of {name!r}, found {column.null_count()} without")
        if column.dtype == pl.Float64 and not column.drop_nulls().is_between(-_LARGEST, _LARGEST).all():
            raise ValueError(f"expected numbers within {_LARGEST:g} in {name!r}, found others")
        if name in below and not column.is_between(0, below[name], closed="left").all():
            raise ValueError(f"expected 0 to {below[name] - 1} in {name!r}, found {_ends(column)}")
        if name in among and (other := set(column) - set(among[name])):
            raise ValueError(f"expected {', '.join(among[name])} in {name!r}, found {min(other)[:60]!r}")
    return table


def _ends(column: pl.Series) -> str:
    """The least and the greatest value."""
    return f"{column.min()!r} to {column.max()!r}"
