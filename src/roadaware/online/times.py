"""Table of when each frame of a watch was known, apart from events and tables, which are the same in every run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from roadaware.errors import DamagedError, InputError
from roadaware.io.parquet import read_parquet
from roadaware.scenes.store import open_predictions
from roadaware.scenes.tables import Predictions

TIMES, FIGURES = "timing.parquet", "timing.json"
"""Of the folder of a watch: the times of its frames; and how fast it was, beside its summary."""
TABLES = "predictions"
READY: dict[str, Any] = {"frame": pl.Int64, "ready_s": pl.Float64}
_READY_BOX = "_frame_of_ready"


def read_times(folder: Path) -> pl.DataFrame:
    """When each frame of a watch was known: `frame`, and `ready_s` in seconds of the stream.

    An event was known when its `frame` was.

    Args:
        folder: of a watch. Up to version 0.8 the times stand in its boxes, and are read off them.

    Raises:
        InputError: if no watch is there.
        DamagedError: if the times are not whole.
    """
    path = folder / TIMES
    if path.is_file():
        try:
            return read_parquet(path).select(pl.col(name).cast(kind) for name, kind in READY.items())
        except (OSError, pl.exceptions.PolarsError) as error:
            raise DamagedError(f"no whole table of times: {error}", where=str(path)) from error
    boxes = open_predictions(folder / TABLES).boxes
    if "ready_s" not in boxes.columns:
        raise InputError(f"expected {TIMES} of a watch", where=str(folder), hint="name the folder of a watch")
    if "interpolated" in boxes.columns:
        boxes = boxes.filter(~pl.col("interpolated"))
    found = boxes.group_by("frame").agg(pl.col("ready_s").max()).sort("frame")
    return found.select(pl.col(name).cast(kind) for name, kind in READY.items())


def open_timed(folder: Path) -> Predictions:
    """The tables of a watch with `boxes.ready_s`, as `metrics.streaming` reads them.

    Args:
        folder: of a watch; of one up to version 0.8 too, whose tables hold the times themselves.

    Raises:
        DatasetNotFoundError, InputError, DamagedError: as `read_times` and `open_predictions`.
    """
    tables = open_predictions(folder / TABLES)
    return tables if "ready_s" in tables.boxes.columns else add_ready_times(tables, read_times(folder))


def add_ready_times(tables: Predictions, times: pl.DataFrame) -> Predictions:
    """The tables with `boxes.ready_s`; an interpolated box has the time of the next detected one of its tube.

    Args:
        tables: of one video; returned as they are where they have the column.
        times: columns `READY`.
    """
    boxes = tables.boxes
    if "ready_s" in boxes.columns or boxes.is_empty():
        return tables
    when = pl.col("frame")
    if "interpolated" in boxes.columns:
        found = pl.when(~pl.col("interpolated")).then("frame")
        when = found.backward_fill().over("tube", order_by="frame")
    boxes = boxes.with_columns(when.alias(_READY_BOX)).join(
        times.rename({"frame": _READY_BOX}), on=_READY_BOX, how="left", maintain_order="left"
    )
    return tables.with_tables(boxes=boxes.drop(_READY_BOX))
