"""What the paper on CODA prints of its proposals under other knobs: Tables 5 to 7, doubtful numbers marked.

They are about CODA-ONCE, judged against what was annotated there after people had gone through the proposals
of one setting, so that settings which find other things are judged too low.

Source: Li et al., CODA: A Real-World Road Corner Case Dataset for Object Detection in Autonomous Driving,
ECCV 2022 (arXiv:2203.07724), appendix B.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

TABLES = ("5", "6", "7")
COLUMNS: dict[str, Any] = {
    "table": pl.String,
    "knob": pl.String,
    "value": pl.Float64,
    "ap": pl.Float64,
    "ar": pl.Float64,
    "proposals": pl.Int64,
    "scenes": pl.Int64,
    "doubt": pl.String,
}


def printed_knobs(knob: str | None = None, value: float | None = None) -> pl.DataFrame:
    """Printed rows in the order of print; AP and AR in per cent, `scenes` are pictures with a proposal.

    Args:
        knob: field of `CopgConfig`; all unless given.
        value: of the knob; all unless given.

    >>> printed_knobs("theta_deg", 8)["ar"].item()
    5.1
    """
    rows = _every_row()
    if knob is not None:
        rows = rows.filter(pl.col("knob") == knob)
    return rows if value is None else rows.filter((pl.col("value") - value).abs() < 1e-9)


@cache
def _every_row() -> pl.DataFrame:
    doubts = {(row["table"], row["row"]): row["note"] for row in _lines("notes")}
    rows = [
        (
            table,
            row["knob"],
            float(row["value"]),
            float(row["AP"]),
            float(row["AR"]),
            int(row["proposals"]),
            int(row["scenes"]),
            doubts.get((table, f"{row['knob']} {row['value']}")),
        )
        for table in TABLES
        for row in _lines(f"table_{int(table):02d}")
    ]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _lines(name: str) -> list[dict[str, str]]:
    source = files("roadaware.protocols") / "data" / f"coda_{name}.csv"
    with source.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))
