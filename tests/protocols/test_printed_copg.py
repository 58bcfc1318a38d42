"""Printed parameters: numbers by hand, one default row in all tables, and the doubtful ones marked."""

from __future__ import annotations

import polars as pl
import pytest

from roadaware.protocols.coda import select_printed_knobs
from roadaware.protocols.copg_ablation import GRID


@pytest.mark.parametrize(
    ("knob", "value", "row"),
    [
        ("theta_deg", 4, (1.3, 3.1, 1039, 763)),
        ("min_points", 20, (2.0, 5.1, 1513, 1038)),
        ("max_distance_m", 100, (1.9, 5.1, 1548, 1040)),
        ("max_background", 0.75, (1.8, 6.1, 2315, 1056)),
        ("max_common_iou", 0.5, (1.8, 5.2, 1660, 1041)),
    ],
)
def test_rows_by_hand(knob: str, value: float, row: tuple[float, ...]) -> None:
    found = select_printed_knobs(knob, value)
    assert found.select("ap", "ar", "proposals", "scenes").rows() == [row]


def test_the_default_row_stands_in_every_table() -> None:
    rows = select_printed_knobs().filter(pl.col("proposals") == 1522)
    assert rows.select("ap", "ar", "scenes").unique().rows() == [(2.0, 5.1, 1040)]
    assert set(rows["knob"]) == set(GRID)
    assert (rows["table"].unique().sort() == pl.Series(["5", "6", "7"])).all()


def test_values_are_those_of_the_usual_grid() -> None:
    for knob, values in GRID.items():
        assert select_printed_knobs(knob)["value"].to_list() == list(values)


def test_doubtful_rows_say_why() -> None:
    doubts = select_printed_knobs().drop_nulls("doubt")
    assert doubts.select("knob", "value").rows() == [
        ("min_points", 5.0),
        ("min_points", 10.0),
        ("max_background", 0.3),
        ("max_common_iou", 0.0),
    ]
