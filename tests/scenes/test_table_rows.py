"""Scores and samples from Parquet files say what the csv files say."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.errors import DamagedError, InputError
from roadaware.formats.score_tables import format_scores, read_labels, read_samples, read_scores
from roadaware.io.csv import read_cells

VALUES = np.random.default_rng(0).dirichlet(np.ones(3), 8)


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame(VALUES, schema=["NC", "C", "CI"], orient="row"),
        pl.DataFrame({"probability": VALUES.tolist()}),
        pl.DataFrame({"probability": list(VALUES)}, schema={"probability": pl.Array(pl.Float64, 3)}),
    ],
)
def test_scores_are_those_of_the_csv_file_exactly(tmp_path: Path, table: pl.DataFrame) -> None:
    (tmp_path / "s.csv").write_text(format_scores(VALUES))
    table.write_parquet(tmp_path / "s.parquet")
    found = read_scores(tmp_path / "s.parquet", 3)
    assert found.values.tolist() == read_scores(tmp_path / "s.csv", 3).values.tolist() == VALUES.tolist()


def test_samples_are_those_of_the_csv_file_and_lines_count_the_header(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "pedestrian": ["a", "a", "b"],
            "truth": [0, 1, 1],
            "tte_frames": [30.0, 20.0, 45.0],
            "video": ["v", "v", "w"],
            "rain": [True, False, True],
        }
    )
    table.write_csv(tmp_path / "t.csv")
    more = {"when": [datetime(2024, 1, 1)] * 3, "boxes": [[1.0, 2.0]] * 3}  # of no concern
    table.with_columns(**{name: pl.Series(values) for name, values in more.items()}).write_parquet(
        tmp_path / "t.PARQUET"
    )
    found, other = (read_samples(tmp_path / name, 2) for name in ("t.PARQUET", "t.csv"))
    assert found.pedestrian == other.pedestrian
    assert (found.truth == other.truth).all()
    assert (found.tte_frames == other.tte_frames).all()
    assert found.video == other.video
    for name in ("t.PARQUET", "t.csv"):
        assert read_labels(tmp_path / name, "rain", 2) == ("true", "false", "true")
    table.with_columns(truth=pl.Series([0, 2, 1])).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet:3"):
        read_samples(tmp_path / "t.parquet", 2)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([0.5, float("nan")], r"s\.parquet:2: expected a finite number, found 'nan'"),
        ([0.5, None], r"s\.parquet:2: expected a number, found an empty cell"),
        (["0.5", "half"], r"s\.parquet:2: expected a finite number, found 'half'"),
        ([[0.5, 0.5], [1.0]], r"s\.parquet:2: expected 2 numbers"),
        ([datetime(2024, 1, 1), None], r"expected numbers or words in column 'x', found Datetime"),
        ([{"a": 1}, None], r"expected numbers or words in column 'x', found Struct"),
    ],
)
def test_what_is_no_row_of_numbers_is_named(tmp_path: Path, column: list[object], message: str) -> None:
    pl.DataFrame({"x": column}).write_parquet(tmp_path / "s.parquet")
    with pytest.raises(InputError, match=message):
        read_scores(tmp_path / "s.parquet", None)


def test_other_files_are_no_parquet_and_empty_tables_hold_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    path.write_text("0.5\n")
    with pytest.raises(DamagedError, match="expected a Parquet table"):
        list(read_cells(path, header=False))
    with pytest.raises(InputError, match="no such file"):
        list(read_cells(tmp_path / "absent.parquet", header=False))
    pl.DataFrame({"x": []}, schema={"x": pl.Float64}).write_parquet(path)
    with pytest.raises(InputError, match="the file holds no row"):
        read_scores(path, 1)
