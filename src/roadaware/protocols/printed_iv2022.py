"""Printed numbers of the IV 2022 paper on cross-dataset evaluation: Tables I and II as one long table.

Both lie beside this module as they are printed, one csv each; `0.55/0.04` is printed as 0.55 (± 0.04).
Figures 2 and 4 to 6 show more, but print no numbers.

Source: Gesnouin, Pechberti, Stanciulescu and Moutarde, Assessing Cross-dataset Generalization of Pedestrian
Crossing Predictors, IV 2022 (hal-03682452), section III-C (Table I) and section IV (Table II)."""

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
    "model": pl.String,
    "trained_on": pl.String,
    "tested_on": pl.String,
    "doubt": pl.String,
    "pretrained": pl.Boolean,
    "metric": pl.String,
    "value": pl.Float64,
    "spread": pl.Float64,
    "digits": pl.Int64,
}
HOME, ENSEMBLE = "home", "ensemble"
DOMAINS = {"pie": "pie", "beh": "jaad-behaviour", "all": "jaad-all"}
"""Test sets as the columns call them, and as the project does."""
MODELS = {
    "VGG16 [8]": "vgg16",
    "Resnet [9]": "resnet50",
    "ConvLSTM [10]": "convlstm",
    "C3D [12]": "c3d",
    "I3D [13]": "i3d",
    "PCPA [1]": "pcpa",
    "SingleRNN [23]": "single-rnn",
    "MultiRNN [24]": "multi-rnn",
    "SFRNN [47]": "sfrnn",
    "Spi-Net [18]": "spi-net",
    "TrouSPI-net [19]": "trouspi-net",
}
DOUBTS = {
    "Nonpretrained": "deterministic",
    "Deterministic": "deterministic",
    "MC Dropout": "mc-dropout",
    "TempScaling": "temperature",
    "LL Dropout": "last-dropout",
    "LL SVI": "last-flipout",
}
RANDOM = "Nonpretrained"
"""The rows of Table II whose networks begin with random weights."""
AUC_IS = (
    "The benchmark whose routines the paper follows takes AUC of answers that were rounded to 0 and 1, which "
    "is balanced accuracy; whether the printed AUC is that too, the paper does not say."
)


def load_printed(table: str | None = None, **where: str | bool) -> pl.DataFrame:
    """Printed numbers with what they are about, in the order of print.

    Columns: `table` (I, II); `printed_as`, the row; `model`, its name in the registry; `trained_on`: `home`
    for the set that is tested on, `ensemble` for the mean of three models, one from each set; `tested_on`
    (pie, jaad-behaviour, jaad-all); `doubt` as studies out of domain name it; `pretrained`, whether the
    network of Table II began with weights of other videos (null in Table I); `metric` (auc, f1, ece, mce;
    errors in adaptive bins); `value`; `spread`, printed behind ±; `digits` of the value in print.

    Args:
        table: I or II (default: both).
        where: column to the value that is wanted.

    Raises:
        UsageError: if there is no such table or column.

    >>> load_printed("II", printed_as="Ens-LL SVI", metric="ece")["value"].to_list()
    [0.045, 0.036, 0.046]
    """
    rows = _every_number()
    if table is not None:
        rows = rows.filter(pl.col("table") == table)
        if rows.is_empty():
            raise UsageError(f"no printed table {table}; there are I and II")
    unknown = sorted(set(where) - set(COLUMNS))
    if unknown:
        raise UsageError(
            f"printed tables have no column {', '.join(unknown)}; they have {', '.join(COLUMNS)}"
        )
    return rows.filter(*(pl.col(name) == value for name, value in where.items()))


@cache
def _every_number() -> pl.DataFrame:
    return pl.DataFrame([*_table_1(), *_table_2()], schema=COLUMNS, orient="row")


def _table_1() -> Iterator[tuple[Any, ...]]:
    """Ensembles over training sets; the spread is printed once for each column."""
    spread, *rows = _lines("table_01")
    for row in rows:
        model = MODELS[row["row"]]
        for column in list(row)[1:]:
            metric, tested = column.split(" ")
            facts = (model, ENSEMBLE, DOMAINS[tested], "deterministic", None)
            yield ("I", row["row"], *facts, metric.lower(), *_number(f"{row[column]}/{spread[column]}"))


def _table_2() -> Iterator[tuple[Any, ...]]:
    """I3D with one uncertainty method after the other, in-domain and as ensemble over training sets."""
    for row in _lines("table_02"):
        # One row writes Non-pretrained, the other Nonpretrained.
        name = row["row"].removeprefix("Ens-").replace("Non-", "Non")
        learnt = ENSEMBLE if row["row"].startswith("Ens-") else HOME
        for column in list(row)[1:]:
            metric, tested = column.split(" ")
            facts = ("i3d", learnt, DOMAINS[tested], DOUBTS[name], name != RANDOM)
            yield ("II", row["row"], *facts, metric.lower(), *_number(row[column]))


def _number(cell: str) -> tuple[float, float, int]:
    value, spread = cell.split("/")
    return float(value), float(spread), len(value.partition(".")[2])


def _lines(name: str) -> list[dict[str, str]]:
    source = files("roadaware.protocols") / "data" / f"iv2022_{name}.csv"
    with source.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))
