"""Compiled loops over the cells of maps: resizing and scaling, votes of boxes, tallies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats32, Ints, Ints32
from roadaware.geometry.compiled import kernel


@kernel
def resize_maps(
    maps: Floats32,
    rows: Ints,
    row_next: Ints,
    row_part: Floats32,
    cols: Ints,
    col_next: Ints,
    col_part: Floats32,
) -> Floats32:
    """(n, size, size) maps resized between neighbouring cells and scaled to [0, 1]; NaN where constant.

    A sum is rounded once, as processors with fused multiplication and addition do.

    Args:
        maps: (n, h, w).
        rows: (size,) the row above each resized row.
        row_next: (size,) the row below it.
        row_part: (size,) how far it lies between both.
        cols: (size,) the same of columns.
        col_next: (size,) the same of columns.
        col_part: (size,) the same of columns.
    """
    n, height, _ = maps.shape
    size = len(rows)
    found = np.empty((n, size, size), dtype=np.float32)
    wide = np.empty((height, size), dtype=np.float32)
    for i in range(n):
        for y in range(height):
            for x in range(size):
                a, b = maps[i, y, cols[x]], maps[i, y, col_next[x]]
                wide[y, x] = np.float32(np.float64(a) + np.float64(b - a) * np.float64(col_part[x]))
        low, high = np.float32(np.inf), np.float32(-np.inf)
        for y in range(size):
            part = np.float64(row_part[y])
            for x in range(size):
                a, b = wide[rows[y], x], wide[row_next[y], x]
                value = np.float32(np.float64(a) + np.float64(b - a) * part)
                found[i, y, x] = value
                low, high = min(low, value), max(high, value)
        span = high - low
        for y in range(size):
            for x in range(size):
                found[i, y, x] = (found[i, y, x] - low) / span if span > 0 else np.float32(np.nan)
    return found


@kernel
def count_votes(first: Ints, edges: Ints, owner: Ints, size: int) -> Ints32:
    """(n, size, size) how many owners have a box over each cell.

    Args:
        first: (n + 1,) where each item's boxes start.
        edges: (boxes, 4) x1, y1, x2, y2 in cells, half open, within the image.
        owner: (boxes,) whose box it is; boxes of one owner stand together and count once.
        size: cells in a row.
    """
    n = len(first) - 1
    votes = np.zeros((n, size, size), dtype=np.int32)
    last = np.full((size, size), -1, dtype=np.int64)
    for i in range(n):
        for box in range(first[i], first[i + 1]):
            for y in range(edges[box, 1], edges[box, 3]):
                for x in range(edges[box, 0], edges[box, 2]):
                    if last[y, x] != owner[box]:
                        votes[i, y, x] += 1
                        last[y, x] = owner[box]
    return votes


@kernel
def count_cells_by_votes(votes: Ints32, predicted: npt.NDArray[np.bool_], most: int) -> Ints:
    """(n, most + 1) predicted cells with 0, 1, ... votes.

    Args:
        votes: (n, height, width) at most `most` each.
        predicted: (n, height, width).
        most: votes that a cell can have.
    """
    n, height, width = votes.shape
    held = np.zeros((n, most + 1), dtype=np.int64)
    for i in range(n):
        for y in range(height):
            for x in range(width):
                # Added up rather than asked for: the edges of a map are hard to foresee.
                held[i, votes[i, y, x]] += np.int64(predicted[i, y, x])
    return held
