"""The printed tables as data: complete, in range, and in agreement with themselves."""

from __future__ import annotations

from collections import Counter

import numpy as np

from roadaware.metrics.pedestrians import METRIC_NAMES
from roadaware.protocols.printed_iv2024 import (
    AGREEMENT_COLUMNS,
    SWAPPED,
    TABLE_I,
    TABLE_IV,
    TABLE_V,
    iterate_printed_cells,
)

CELLS = list(iterate_printed_cells())


def test_every_row_has_all_its_columns():
    rows = Counter((cell.table, cell.dataset, cell.task, cell.model) for cell in CELLS)
    models = ("SFGRU", "PCPA", "BiPed", "PedFormer")
    assert all(rows["II", "pie", "intention", model] == 16 for model in models)
    blocks = [
        ("III", "pie", "action"),
        ("III", "jaad", "action"),
        ("VI", "pie", "risk"),
        ("VI", "jaad", "risk"),
    ]
    assert all(rows[(*block, model)] == 19 for block in blocks for model in models)
    assert len(CELLS) == 4 * 16 + 4 * 4 * 19 + 15 * 4 + 7 * 4


def test_no_cell_is_there_twice():
    keys = [(c.table, c.dataset, c.task, c.model, c.metric, c.group) for c in CELLS]
    assert len(set(keys)) == len(keys)


def test_metrics_are_those_of_the_project():
    assert {cell.metric for cell in CELLS} <= {*METRIC_NAMES, *AGREEMENT_COLUMNS}


def test_shares_lie_in_range():
    assert all(0 <= cell.value <= (100 if cell.table == "V" else 1) for cell in CELLS)


def test_scenarios_of_a_factor_add_up_to_the_test_set():
    for factor in ("scale", "state", "road"):
        rows = [row for row in TABLE_IV if row.group.startswith(factor)]
        assert tuple(np.sum([r.intention for r in rows], axis=0)) == TABLE_I["pie", "intention"]["test"]
        assert tuple(np.sum([r.action for r in rows], axis=0)) == TABLE_I["pie", "action"]["test"]


def test_agreement_columns_add_up_to_a_hundred_percent():
    rows = [values for name, values in TABLE_V.items() if name != "overall"]
    np.testing.assert_allclose(np.sum(rows, axis=0), 100, atol=0.25)
    assert round(sum(TABLE_V["overall"]), 6) == 100


def test_the_swapped_cells_exist():
    keys = {(c.table, c.dataset, c.model, c.metric) for c in CELLS}
    for table, dataset, model, first, second in SWAPPED:
        assert {(table, dataset, model, first), (table, dataset, model, second)} <= keys
