"""Rows that are too many for memory: gathered for a while, then written to a part on disk."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.io.files import build_disk_error, make_temporary_path, write_and_rename


class Parts:
    """A table that grows; its parts are `NAME-000000.parquet`, `NAME-000001.parquet`, ...

    Args:
        folder: of the parts.
        name: of the table.
        schema: column to its type; one of them may be an array.
    """

    def __init__(self, folder: Path, name: str, schema: Mapping[str, Any]) -> None:
        self._folder, self._name, self.schema = folder, name, pl.Schema(schema)
        self._held: dict[str, list[npt.NDArray[Any]]] = {column: [] for column in self.schema}
        self._n_parts, self.waiting, self.rows = 0, 0, 0

    def add(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add rows.

        Args:
            columns: (n, ...) each.
        """
        n = len(next(iter(columns.values())))
        if n:
            for column, held in self._held.items():
                held.append(columns[column])
            self.rows, self.waiting = self.rows + n, self.waiting + n

    def flush(self) -> None:
        """Write the collected rows.

        Raises:
            DiskError: if the disk refuses.
        """
        if not self.waiting:
            return
        frame = pl.DataFrame(
            [
                pl.Series(name, np.concatenate(self._held[name]), dtype=kind)
                for name, kind in self.schema.items()
            ]
        )
        stream = io.BytesIO()
        frame.write_parquet(stream, compression="zstd")
        path, data = self._folder / f"{self._name}-{self._n_parts:06d}.parquet", stream.getvalue()
        try:
            write_and_rename(path, data)
        except OSError as error:
            raise build_disk_error(path, len(data), error) from error
        for held in self._held.values():
            held.clear()
        self._n_parts, self.waiting = self._n_parts + 1, 0

    def scan(self) -> pl.LazyFrame:
        """All rows that were flushed, in order."""
        return open_part_rows(self._folder, self._name, self.schema)


def write_rows(rows: pl.LazyFrame, target: Path) -> None:
    """Write rows as one file, whole or not at all, in little memory.

    Args:
        rows: of parts.
        target: of the file.

    Raises:
        DiskError: if the disk refuses; what stood there still stands.
    """
    held = make_temporary_path(target)
    try:
        rows.sink_parquet(held, compression="zstd", maintain_order=True)
        held.replace(target)
    except (OSError, pl.exceptions.ComputeError) as error:
        held.unlink(missing_ok=True)
        if not isinstance(error, OSError) and "os error" not in str(error):
            raise
        raise build_disk_error(target, 1, error) from error


def open_part_rows(folder: Path, name: str, schema: Mapping[str, Any]) -> pl.LazyFrame:
    """The rows of a table's parts, in order.

    Args:
        folder: of the parts.
        name: of the table.
        schema: for a table without parts.
    """
    paths = sorted(folder.glob(f"{name}-*.parquet"))
    return pl.scan_parquet(paths) if paths else pl.LazyFrame(schema=pl.Schema(schema))
