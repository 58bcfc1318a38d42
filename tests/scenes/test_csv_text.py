"""Tables as csv that people open: nothing is a formula, names come back, numbers are exact."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadaware.analysis.annotation.selection import read_image_list
from roadaware.io.csv import escape_formulas, format_csv, from_sheets

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "'=1"]
PLAIN = ["-5KQ66BBWC4", "a=b", "it's", "", "v/000001", "1e-3"]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum([*FORMULAS, *PLAIN])])
def test_text_that_a_sheet_would_compute_gets_an_apostrophe(dtype: pl.DataType) -> None:
    table = pl.DataFrame({"name": pl.Series([*FORMULAS, *PLAIN, None], dtype=dtype), "n": -1.5})
    held = list(csv.reader(io.StringIO(format_csv(table), newline="")))[1:]
    assert [row[0] for row in held] == [*(f"'{name}" for name in FORMULAS), *PLAIN, ""]
    assert {row[1] for row in held} == {"-1.5"}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_stay_exact(number: float) -> None:
    held = pl.read_csv(io.BytesIO(format_csv(pl.DataFrame({"n": [number]})).encode()))
    assert float(held["n"][0]) == number


@given(st.lists(st.text("'=+-@\ta1", max_size=5), min_size=1))
def test_names_come_back(names: list[str]) -> None:
    table = pl.DataFrame({"name": pl.Series(names, dtype=pl.String)})
    written = table.select(escape_formulas(pl.col("name")))
    assert written.select(from_sheets(pl.col("name")))["name"].to_list() == names


def test_a_list_of_pictures_gives_the_names_that_were_ranked(tmp_path: Path) -> None:
    names = ["=1+1/a", "-5KQ66BBWC4", "000076"]
    table = pl.DataFrame({"video": names, "frame": [0, 1, 2]})
    (tmp_path / "list.csv").write_text(format_csv(table))
    assert read_image_list(tmp_path / "list.csv") == list(zip(names, (0, 1, 2), strict=True))
