"""Which item of one file is which of another: by key, then by place and time where keys are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.quality.items import EDGES, KEY
from roadaware.geometry.boxes import iou

_NUMBERED = (*KEY, "occurrence")
_Floats = npt.NDArray[np.float64]


def aligned(files: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All items of all files, one row each, with the columns of file k under `<name>_<k>`.

    Args:
        files: what `items_of` gave, in the order of the rounds.

    Returns:
        `KEY`, `occurrence` and for each file its columns and `present_<k>`; sorted by what, video, name,
        frame.
    """
    scaled = _same_frames(files)
    numbered = _numbered(scaled)
    wide: pl.DataFrame | None = None
    for place, file in enumerate(numbered):
        own = [name for name in file.columns if name not in _NUMBERED]
        named = file.rename({name: f"{name}_{place}" for name in own})
        named = named.with_columns(pl.lit(value=True).alias(f"present_{place}"))
        wide = (
            named
            if wide is None
            else wide.join(named, on=list(_NUMBERED), how="full", coalesce=True, maintain_order="left_right")
        )
    if wide is None:
        raise ValueError("nothing to align")
    present = [pl.col(f"present_{place}").fill_null(value=False) for place in range(len(files))]
    return wide.with_columns(present).sort(_NUMBERED, maintain_order=True).with_row_index("item")


def _same_frames(files: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Frame numbers as the first file counts, where a video has another frame rate in a later one."""
    first = files[0].select("video", "fps").unique("video").rename({"fps": "asked"})
    scaled = [files[0]]
    for file in files[1:]:
        rows = file.join(first, on="video", how="left", maintain_order="left")
        factor = pl.col("asked") / pl.col("fps")
        moved = (pl.col("frame") * factor).round().cast(pl.Int64)
        differs = (pl.col("frame") >= 0) & (factor != 1)
        rows = rows.with_columns(pl.when(differs).then(moved).otherwise("frame").alias("frame"))
        scaled.append(rows.drop("asked"))
    return scaled


def _numbered(files: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """The files with `occurrence`: equal numbers under one key mean the same item."""
    keys = list(KEY)
    several = pl.concat(
        [file.filter(pl.struct(keys).is_duplicated()).select(keys) for file in files]
    ).unique()
    if several.is_empty():
        return [file.with_columns(occurrence=pl.lit(0, dtype=pl.Int64)) for file in files]
    groups = several.sort(keys).with_row_index("group")
    tagged = [file.join(groups, on=keys, how="left", maintain_order="left") for file in files]
    return [
        file.drop("group").with_columns(pl.Series("occurrence", numbers))
        for file, numbers in zip(tagged, _occurrences(tagged), strict=True)
    ]


def _occurrences(files: Sequence[pl.DataFrame]) -> list[npt.NDArray[np.int64]]:
    """The number of each row of each file within its group; 0 outside of groups."""
    numbers = [np.zeros(len(file), dtype=np.int64) for file in files]
    measures = [_measured(file) for file in files]
    members: dict[int, list[npt.NDArray[np.int64]]] = {}
    for place, file in enumerate(files):
        group = file["group"].fill_null(-1).cast(pl.Int64).to_numpy()
        order = np.argsort(group, kind="stable")
        held, starts = np.unique(group[order], return_index=True)
        for one, rows in zip(held, np.split(order, starts[1:]), strict=True):
            if one >= 0:
                members.setdefault(int(one), [np.empty(0, np.int64)] * len(files))[place] = rows
    for of_files in members.values():
        _number_group(of_files, measures, numbers)
    return numbers


def _number_group(
    members: Sequence[npt.NDArray[np.int64]],
    measures: Sequence[tuple[_Floats, _Floats]],
    numbers: Sequence[npt.NDArray[np.int64]],
) -> None:
    """Number the rows of one key: each as its partner in the latest earlier file, others anew."""
    following = 0
    for place, rows in enumerate(members):
        free = np.arange(len(rows))
        taken: set[int] = set()
        for before in range(place - 1, -1, -1):
            open_rows = [row for row in members[before] if int(numbers[before][row]) not in taken]
            costs = _costs(measures[place], rows[free], measures[before], np.array(open_rows, np.int64))
            pairs = greedy(costs)
            for a, b in pairs:
                number = int(numbers[before][open_rows[b]])
                numbers[place][rows[free[a]]] = number
                taken.add(number)
            free = np.delete(free, [a for a, _ in pairs])
        numbers[place][rows[free]] = following + np.arange(len(free))
        highest = [int(numbers[k][row]) for k in range(place + 1) for row in members[k]]
        following = max(highest, default=-1) + 1


def greedy(costs: _Floats) -> list[tuple[int, int]]:
    """Pairs of row and column, the cheapest first, each used once; infinite costs are no pairs.

    >>> greedy(np.array([[1.0, 0.5], [0.2, 0.1]]))
    [(1, 1), (0, 0)]
    """
    pairs: list[tuple[int, int]] = []
    rows, columns = set[int](), set[int]()
    for place in np.argsort(costs, axis=None, kind="stable"):
        row, column = divmod(int(place), costs.shape[1])
        if row not in rows and column not in columns and np.isfinite(costs[row, column]):
            pairs.append((row, column))
            rows.add(row)
            columns.add(column)
    return pairs


def _measured(file: pl.DataFrame) -> tuple[_Floats, _Floats]:
    """(n, 4) edges and (n, 2) start and end in the units of the limits, NaN where unknown."""
    scales = [pl.col("scale_x"), pl.col("scale_y")] * 2
    edges: Any = file.select(pl.col(edge) * scale for edge, scale in zip(EDGES, scales, strict=True))
    times: Any = file.select(pl.col(name) * pl.col("scale_t") for name in ("start", "end"))
    return edges.to_numpy().astype(np.float64), times.to_numpy().astype(np.float64)


def _costs(
    one: tuple[_Floats, _Floats],
    rows: npt.NDArray[np.int64],
    other: tuple[_Floats, _Floats],
    columns: npt.NDArray[np.int64],
) -> _Floats:
    """How unlike rows and columns are: boxes by overlap, never without any; all else by start and end."""
    if not len(rows) or not len(columns):
        return np.empty((len(rows), len(columns)))
    a, b = one[0][rows], other[0][columns]
    if np.isfinite(a).all() and np.isfinite(b).all():
        shares = iou(a, b)
        equal = (a[:, None] == b[None]).all(axis=2)
        return np.where((shares > 0) | equal, 1.0 - shares, np.inf)
    gaps = np.abs(one[1][rows][:, None] - other[1][columns][None])
    found: _Floats = np.nan_to_num(gaps, nan=0.0).sum(axis=2)
    return found
