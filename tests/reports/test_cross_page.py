"""The page on predictors away from home says what the kept results say."""

from __future__ import annotations

import runpy
from pathlib import Path

import polars as pl
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> dict:
    return runpy.run_path(str(DOCS / "cross.py"))


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return pl.read_csv(DOCS / "cross.csv")


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "cross.md").read_text("utf-8")


def test_the_tables_are_what_the_results_make_of_them(script, table, page) -> None:
    """`python docs/cross.py` writes them again."""
    assert script["whole"](page, table) == page


def test_the_text_counts_cells_below_chance_as_the_results_do(script, table, page) -> None:
    below, surely, whole = script["below_chance"](script["Held"](table))
    assert f"{below} of {whole} cells rank worse than chance, in {surely} of them beyond" in page


@pytest.mark.parametrize(
    ("model", "trained", "metric", "told"),
    [
        ("every model", "home less away", "auc", "by {0:.3f} [{1:.3f}, {2:.3f}]"),
        ("every model", "home less away", "ece", "by {3:.3f}\n[{5:.3f}, {4:.3f}]"),
        ("tabular less networks", "away", "auc", "rank {0:.3f} [{1:.3f}, {2:.3f}] better"),
        ("tabular less networks", "away", "ece", "ECE is {3:.3f} [{5:.3f}, {4:.3f}] lower"),
        ("tabular less networks", "home", "auc", "({0:.3f} [{1:.3f}, {2:.3f}])"),
    ],
)
def test_the_text_has_the_differences_of_the_results(table, page, model, trained, metric, told) -> None:
    found = table.filter(model=model, trained_on=trained, metric=metric)
    ends = found.select("value", "low", "high").row(0)
    assert told.format(*ends, *(-end for end in ends)) in page


def test_the_results_keep_one_row_for_each_place(script, table) -> None:
    assert not table.select(script["KEY"]).is_duplicated().any()
    assert (DOCS / "cross.csv").stat().st_size < 300_000
