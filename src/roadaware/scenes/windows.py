"""The boxes of each sample's observation as one dense array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.errors import InputError, UsageError
from roadaware.scenes.positions import Positions, positions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes


def windows(
    scenes: Scenes,
    samples: pl.DataFrame,
    columns: Sequence[str] = CORNERS,
    *,
    before: int = 0,
    after: int = 0,
) -> npt.NDArray[np.float64]:
    """(n, before + T + after, c) what the boxes of each sample's observation hold, by position in the tube.

    A position counts the boxes of a tube, so a gap in its frames takes no place. T is the number of boxes
    that every sample observes; only where a tube ends are there fewer, and its last box is repeated. Where
    a tube begins, its first is. Nothing behind an observation is looked at but by `after`.

    Args:
        scenes: the boxes.
        samples: (n rows) with `tube`, `start_frame` and `end_frame`.
        columns: (c) columns of the boxes table; text comes as the codes of `coded`, null as NaN.
        before: positions to add ahead of the observation.
        after: positions to add behind it.

    Raises:
        InputError: if a column is unknown, or a sample's tube has no box at its first frame.
        UsageError: if samples observe unequal numbers of boxes inside their tubes.
    """
    missing = [c for c in columns if c not in scenes.boxes.columns]
    if missing:
        raise InputError(f"the boxes have no column {missing}; they have {scenes.boxes.columns}")
    index = positions(scenes.boxes)
    rows = observed_rows(index, samples, before=before, after=after)
    values = np.empty((*rows.shape, len(columns)))
    for place, column in enumerate(columns):
        values[..., place] = _numbers(scenes.boxes[column])[rows]
    return values


def observed_rows(index: Positions, samples: pl.DataFrame, *, before: int = 0, after: int = 0) -> Ints:
    """(n, before + T + after) rows of the boxes table that each sample's observation covers.

    Args:
        index: the positions of the boxes.
        samples: (n rows) with `tube`, `start_frame` and `end_frame`.
        before: positions to add ahead of the observation.
        after: positions to add behind it.

    Raises:
        InputError: if there are no boxes, or a sample's tube has none at its first frame.
        UsageError: if samples observe unequal numbers of boxes inside their tubes.
    """
    if samples.is_empty():
        return np.empty((0, before + after), dtype=np.int64)
    if not len(index.row):
        raise InputError(
            f"{len(samples)} samples look at boxes, and these scenes have none",
            hint="attributes alone carry intention only; read the box annotations too (of PIE, annotations/)",
        )
    tube, start, end = (samples[c].to_numpy() for c in ("tube", "start_frame", "end_frame"))
    first = index.locate(tube, start)
    if (first < 0).any():
        lost = samples.filter(pl.Series(first < 0)).select("sample", "tube", "start_frame")
        raise InputError(
            f"{len(lost)} samples begin where their tube has no box, first {lost.head(3).rows()}",
            hint="samples belong to the scenes they were cut from",
        )
    begin, length = index.extent(tube)
    last = begin + length - 1
    behind = index.from_frame(tube, end)
    observed = max(1, int((behind - first).max()))
    uneven = (behind - first < observed) & (behind <= last)
    if uneven.any():
        shown = samples.filter(pl.Series(uneven)).select("sample", "start_frame", "end_frame").head(3).rows()
        raise UsageError(
            f"{int(uneven.sum())} samples observe fewer than the {observed} boxes that others do, "
            f"first {shown}; one array would show them the future: ask for the samples of each length "
            "by themselves"
        )
    offsets = np.arange(-before, observed + after)
    place = np.clip(first[:, None] + offsets, begin[:, None], last[:, None])
    return np.asarray(index.row[place], dtype=np.int64)


def coded(column: pl.Series) -> pl.Series:
    """A column of text as an Enum: one that is an Enum keeps its codes, other text is numbered in its order.

    Args:
        column: (n,) text of any type.
    """
    if isinstance(column.dtype, pl.Enum):
        return column
    text = column.cast(pl.String)
    return text.cast(pl.Enum(text.drop_nulls().unique().sort()))


def _numbers(column: pl.Series) -> npt.NDArray[np.float64]:
    """The column as float64, null as NaN."""
    if column.dtype in (pl.Enum, pl.Categorical, pl.String):
        column = coded(column).to_physical()
    return column.cast(pl.Float64).to_numpy()
