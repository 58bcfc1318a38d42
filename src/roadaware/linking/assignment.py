"""The assignment of the greatest sum between rows and columns, compiled; imports numba."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.geometry.compiled import kernel


@kernel
def _add_row(
    first: int,
    gain: Floats,
    rows: Ints,
    columns: Ints,
    n_columns: int,
    high: Floats,
    low: Floats,
    owner: Ints,
    before: Ints,
) -> None:
    """Give a row its column, along the shortest path of exchanges with the rows that have theirs."""
    total = low.shape[0]
    nearest, seen = np.full(total, np.inf), np.zeros(total, np.bool_)
    owner[0], at = first, 0
    while owner[at] != 0:
        seen[at] = True
        row, step, following = owner[at], np.inf, 0
        for j in range(1, total):
            if seen[j]:
                continue
            if j <= n_columns:
                worth = gain[rows[row - 1], columns[j - 1]]
                cost = -worth if worth > 0.0 else np.inf
            else:
                cost = 0.0 if j - n_columns == row else np.inf
            reached = cost - high[row] - low[j]
            if reached < nearest[j]:
                nearest[j], before[j] = reached, at
            if nearest[j] < step:
                step, following = nearest[j], j
        for j in range(total):
            if seen[j]:
                high[owner[j]] += step
                low[j] -= step
            else:
                nearest[j] -= step
        at = following
    while at != 0:
        owner[at] = owner[before[at]]
        at = before[at]


@kernel
def assign(gain: Floats) -> Ints:
    """(rows,) the column of each row in an assignment of the greatest sum, -1 for none.

    A row and a column may stay free; only what is above 0 is assigned.

    Args:
        gain: (rows, columns).

    Source: shortest augmenting paths with potentials (Jonker and Volgenant, Computing 1987).
    """
    n, m = gain.shape
    given = np.full(n, -1, np.int64)
    of_row, of_column = np.zeros(n, np.int64), np.zeros(m, np.int64)
    for i in range(n):
        for j in range(m):
            if gain[i, j] > 0.0:
                of_row[i] += 1
                of_column[j] += 1
    rows, columns = np.empty(n, np.int64), np.empty(m, np.int64)
    n_rows, n_columns = 0, 0
    for i in range(n):
        alone = of_row[i] == 1
        if alone:
            for j in range(m):
                if gain[i, j] > 0.0:
                    alone = of_column[j] == 1
                    if alone:
                        given[i], of_column[j] = j, 0
        if of_row[i] > 0 and not alone:
            rows[n_rows] = i
            n_rows += 1
    for j in range(m):
        if of_column[j] > 0:
            columns[n_columns] = j
            n_columns += 1
    # Column 0 is where a search begins; behind the real ones stands one for each row, in which it is free.
    total = n_columns + n_rows + 1
    high, low = np.zeros(n_rows + 1), np.zeros(total)
    owner, before = np.zeros(total, np.int64), np.zeros(total, np.int64)
    for i in range(1, n_rows + 1):
        _add_row(i, gain, rows, columns, n_columns, high, low, owner, before)
    for j in range(1, n_columns + 1):
        if owner[j] > 0:
            given[rows[owner[j] - 1]] = columns[j - 1]
    return given
