"""Parquet files that hold next to nothing and would be far more in memory."""

from __future__ import annotations

import io

import polars as pl
import pytest

from roadaware.io.parquet import read_parquet


def test_a_value_repeated_without_end_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roadaware.io.parquet._FREE_VALUES", 100_000)
    stream = io.BytesIO()
    pl.select(a=pl.repeat(1, 400_000), b=pl.repeat(2.0, 400_000)).write_parquet(stream, compression="zstd")
    with pytest.raises(pl.exceptions.ComputeError, match="800,000 values in"):
        read_parquet(stream.getvalue())
    stream = io.BytesIO()
    rows = pl.select(a=pl.int_range(100_000), b=pl.repeat(None, 100_000, dtype=pl.Int64))
    rows.write_parquet(stream)
    assert read_parquet(stream.getvalue()).equals(rows)
