"""Printed numbers of the paper on CODA: Tables 1 to 3 and 8 to 10 as long tables, questionable numbers marked.

They lie in `data` as they are printed, one csv each, in per cent; `coda_notes.csv` says which numbers are
questionable and why, `*` standing for every row or column. Tables 5 to 7 (parameters of the proposals) are
`COPG_TABLES`; Table 4 (few-shot detectors) is not here.

Source: Li et al., CODA: A Real-World Road Corner Case Dataset for Object Detection in Autonomous Driving,
ECCV 2022 (arXiv:2203.07724): Table 1 in section 3, Table 2 in 5, Table 3 in 6, Tables 8 to 10 in appendix D.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

from roadaware.errors import UsageError

COLUMNS: dict[str, Any] = {
    "table": pl.String,
    "printed_as": pl.String,
    "trained_on": pl.String,
    "domain": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "doubt": pl.String,
}
TABLES = {"2": None, "3": "kitti", "8": "once", "9": "once", "10": None}
"""Tables of results, and the part of CODA that each is about; None for all of it."""
WITHOUT_CLASSES = "RPN"
"""Rows of proposals without classes begin with it."""
_SIZES = {"s": "_small", "m": "_medium", "l": "_large"}
_COUNTS = {"scenes": pl.Int64, "classes": pl.Int64, "instances": pl.Int64}


def load_printed(table: str | None = None, **where: str) -> pl.DataFrame:
    """Printed results, in the order of print; cells printed as `-` are absent.

    Columns: `table` (2, 3, 8, 9, 10); `printed_as`, the row; `trained_on` (soda10m, bdd100k, waymo; null in
    Table 3); `domain`, the part of CODA, null for all of it; `metric` as the project calls it (`corner_ar`,
    `common_ar50`, `novel_ar10`, `origin_ap`, ...); `value` in per cent; `doubt`, why it is no reference.

    Args:
        table: one of them (default: all).
        where: column to the value that is wanted.

    Raises:
        UsageError: if there is no such table or column.

    >>> load_printed("2", printed_as="RetinaNet", trained_on="bdd100k", metric="corner_ar")["value"].item()
    12.8
    """
    rows = _every_number()
    if table is not None:
        if table not in TABLES:
            raise UsageError(f"no printed results {table}; there are {', '.join(TABLES)}")
        rows = rows.filter(pl.col("table") == table)
    unknown = sorted(set(where) - set(COLUMNS))
    if unknown:
        raise UsageError(
            f"printed tables have no column {', '.join(unknown)}; they have {', '.join(COLUMNS)}"
        )
    return rows.filter(*(pl.col(name) == value for name, value in where.items()))


def load_composition() -> pl.DataFrame:
    """Table 1: `row`, `scenes`, `classes`, `instances`, `doubt`; its marks of weather and period are lost."""
    doubts = _doubts()
    rows = []
    for row in _lines("table_01"):
        counts = {name: int(row[name]) for name in _COUNTS}
        rows.append({"row": row["row"], **counts, "doubt": _doubt(doubts, "1", row["row"], "", "instances")})
    return pl.DataFrame(rows, schema={"row": pl.String, **_COUNTS, "doubt": pl.String})


@cache
def _every_number() -> pl.DataFrame:
    rows = [row for table in TABLES for row in _numbers(table)]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _numbers(table: str) -> Iterator[tuple[Any, ...]]:
    doubts = _doubts()
    for row in _lines(f"table_{int(table):02d}"):
        learnt = row.get("trained on", "")
        for column, cell in row.items():
            if column in ("row", "trained on") or cell == "-":
                continue
            doubt = _doubt(doubts, table, row["row"], learnt, column)
            yield (
                table,
                row["row"],
                learnt.lower() or None,
                TABLES[table],
                _metric(column),
                float(cell),
                doubt,
            )


def _metric(column: str) -> str:
    """The project's name of a printed column: `CORNER AR50m` is `corner_ar50_medium`."""
    group, name = column.lower().split(" ")
    size = _SIZES.get(name[-1], "")
    return f"{group}_{name[:-1] if size else name}{size}"


def _doubts() -> dict[tuple[str, ...], str]:
    return {
        (row["table"], row["row"], row["trained on"], row["column"]): row["note"] for row in _lines("notes")
    }


def _doubt(doubts: dict[tuple[str, ...], str], table: str, row: str, learnt: str, column: str) -> str | None:
    # A note on this row counts before one on all rows, and one on this column before one on all.
    for name in (row, "*"):
        for of in (column, "*"):
            if (table, name, learnt, of) in doubts:
                return doubts[table, name, learnt, of]
    return None


def _lines(name: str) -> list[dict[str, str]]:
    source = files("roadaware.protocols") / "data" / f"coda_{name}.csv"
    with source.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def select_printed(
    trained_on: str | None, *, classes: bool, domains: set[str | None]
) -> list[dict[str, Any]]:
    """Printed rows that a result may stand beside, as plain data.

    Each has `table`, `row`, `trained_on`, `values` (fractions, by the project's names of metrics), `doubts`.
    Tables 8 and 9 are about the images of ONCE, 3 about those of KITTI, 2 and 10 about all of CODA.

    Args:
        trained_on: the training set of the detector; rows of all sets where None.
        classes: whether its predictions have classes; the rows of proposals are for those that have none.
        domains: the parts of CODA that the ground truth is from; null for what is not known.
    """
    only = next(iter(domains)) if len(domains) == 1 else None
    tables = {"once": ("8", "9"), "kitti": ("3",)}.get(only or "", ("2", "10"))
    rows = load_printed().filter(pl.col("table").is_in(tables), ~pl.col("metric").str.starts_with("origin"))
    if trained_on is not None:
        rows = rows.filter(pl.col("trained_on").is_null() | (pl.col("trained_on") == trained_on))
    if tables != ("3",):
        rows = rows.filter(pl.col("printed_as").str.starts_with(WITHOUT_CLASSES) != classes)
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        key = row["printed_as"], row["trained_on"]
        blank = {
            "table": " and ".join(tables),
            "row": key[0],
            "trained_on": key[1],
            "values": {},
            "doubts": {},
        }
        held = found.setdefault(key, blank)
        # Rounded, so that per cents become the shares that one would write down.
        held["values"][row["metric"]] = round(row["value"] / 100, 4)
        if row["doubt"]:
            held["doubts"][row["metric"]] = row["doubt"]
    return list(found.values())


def get_scene_shares() -> dict[str, dict[str, float]]:
    """Shares of the scenes by weather and period of section 3; the weather adds up to 1.01.

    Source: Li et al., ECCV 2022 (CODA), section 3, diversity.
    """
    return {"weather": {"clear": 0.75, "cloudy": 0.22, "rainy": 0.04}, "period": {"night": 0.09}}


# What the paper on CODA prints of its proposals under other parameters: Tables 5 to 7, questionable numbers marked.

COPG_TABLES = ("5", "6", "7")
COPG_COLUMNS: dict[str, Any] = {
    "table": pl.String,
    "knob": pl.String,
    "value": pl.Float64,
    "ap": pl.Float64,
    "ar": pl.Float64,
    "proposals": pl.Int64,
    "scenes": pl.Int64,
    "doubt": pl.String,
}


def select_printed_knobs(knob: str | None = None, value: float | None = None) -> pl.DataFrame:
    """Printed rows in the order of print; AP and AR in per cent, `scenes` are images with a proposal.

    Args:
        knob: field of `CopgConfig` (default: all).
        value: of the parameter (default: all).

    >>> select_printed_knobs("theta_deg", 8)["ar"].item()
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
        for table in COPG_TABLES
        for row in _lines(f"table_{int(table):02d}")
    ]
    return pl.DataFrame(rows, schema=COPG_COLUMNS, orient="row")
