"""The page of all predictors says what the kept results say."""

from __future__ import annotations

import runpy
from pathlib import Path

import polars as pl
import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture(scope="module")
def script() -> dict:
    return runpy.run_path(str(DOCS / "predictors.py"))


def test_the_page_is_what_the_results_make_of_it(script) -> None:
    """`python docs/predictors.py` writes it again."""
    page = (DOCS / "predictors.md").read_text("utf-8")
    held = [pl.read_csv(DOCS / f"predictors{name}.csv") for name in ("", "_pairs")]
    assert script["whole"](page, *held) == page


def test_results_of_runs_become_rows_with_intervals_of_the_means_alone(script, tmp_path) -> None:
    held = pl.read_csv(DOCS / "predictors.csv")
    first = held.filter(pl.col("run") == "mean").row(0, named=True)
    facts = {name: first[name] for name in (*script["FACTS"], *script["OF_RUN"])}
    ends = dict.fromkeys(script["ENDS"], 0.25)
    long = [
        {**facts, "digest": "new", "run": run, "metric": name, "value": 0.5, **ends}
        for run in ("seed 0", "mean")
        for name in script["KEEP"]
    ]
    pl.DataFrame(long).write_parquet(tmp_path / "results.parquet")
    found = script["kept"]([tmp_path, tmp_path])
    mean, seed = found.iter_rows(named=True)
    assert (mean["auc"], mean["low_video_auc"]) == (0.5, 0.25)
    assert (seed["auc"], seed["low_video_auc"]) == (0.5, None)
    difference = {**dict.fromkeys(script["ENDS"], 0.1), "difference": 0.2, "verdict": "better"}
    pairs = [{**difference, "digest": "new", "metric": name} for name in script["KEEP"]]
    page = script["whole"]((DOCS / "predictors.md").read_text("utf-8"), found, pl.DataFrame(pairs))
    assert "+0.200 [+0.100, +0.100] [+0.100, +0.100] better" in page
    assert "0.500 [0.250, 0.250] [0.250, 0.250]" in page
