"""Conformal sets out of domain: the mean over cells, the intervals, and what is said of them."""

import json
from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

from roadaware.metrics.scores import SampleScores
from roadaware.protocols.cross_dataset.cells import (
    build_coverage_rows,
    compute_coverage,
    compute_resampled_means,
    encode_sets,
    fit_conformal,
    read_sets,
)
from roadaware.protocols.cross_dataset.config import COVERED, RESULTS, Cell, CrossResults
from roadaware.reports.cross_dataset_cells import Study
from roadaware.reports.cross_dataset_sections import build_coverage_table, collect_sets, describe_coverage
from roadaware.reports.page import Mark
from roadaware.statistics.conformal import Conformal
from roadaware.statistics.intervals import PercentileResamples

SETS = ("a", "b")
TRUTH = np.array([1, 1, 0, 0])
SAYS = {"a": [0.9, 0.2, 0.1, 0.3], "b": [0.9, 0.6, 0.4, 0.55]}
"""What is said of a domain's four samples by whoever learnt anywhere."""


def study_in(folder, thresholds):
    """A study of one model, whose cells keep a threshold by training set; None for none."""
    cells = [Cell("steady", trained, tested, 0) for trained in SETS for tested in SETS]
    for cell in cells:
        (folder / cell.place).mkdir(parents=True)
        pl.DataFrame({"probability": SAYS[cell.tested_on]}).write_parquet(
            folder / cell.place / "scores.parquet"
        )
        threshold = thresholds[cell.trained_on]
        if threshold is not None:
            (folder / cell.place / COVERED).write_bytes(encode_sets(Conformal("lac", 0.1, threshold), []))
    (folder / "tested").mkdir()
    for name in SETS:
        asked = {
            "truth": TRUTH,
            "pedestrian": ["p", "p", "q", "r"],
            "video": ["v"] * 4,
            "tte_frames": [30] * 4,
        }
        pl.DataFrame(asked).write_parquet(folder / "tested" / f"{name}.parquet")
    rows = [(*asdict(cell).values(), "auc", "", 0.5, None, None, None, 4, 2) for cell in cells]
    table = pl.DataFrame(rows, schema=RESULTS, orient="row")
    return Study(CrossResults(folder, table, {"domains": {name: {} for name in SETS}}))


def test_means_are_those_of_the_sets_at_home_and_away(tmp_path):
    home, away = collect_sets(study_in(tmp_path, {"a": 0.35, "b": 0.65}), resamples=50)
    # 0.35 on a: {1}, {0} wrong, {0}, {0}; 0.65 on b: {1}, both, both, both.
    assert home.values == pytest.approx(((3 / 4 + 1) / 2, (1 + 7 / 4) / 2, 0))
    # 0.65 on a is as sure as that of 0.35; 0.35 on b: {1}, and three without a label.
    assert away.values == pytest.approx(((3 / 4 + 1 / 4) / 2, (1 + 1 / 4) / 2, (0 + 3 / 4) / 2))
    assert all(low <= value <= high for value, (low, high) in zip(home.values, home.ends, strict=True))
    table = build_coverage_table([home, away])
    assert table.columns[:3] == ("model", "coverage, home", "coverage, away")
    assert table.rows[0][0] == "steady"
    low, high = away.ends[0]
    assert table.rows[0][2] == Mark("0.500", below=f"{low:.3f} to {high:.3f}")
    assert low < 0.5 < high
    assert list(describe_coverage([home, away])) == [
        "Sets that were promised to hold the true label in 90 % do so in 88 % at home and in 50 % away."
    ]


def test_a_folder_whose_cells_keep_no_sets_has_no_table(tmp_path):
    assert build_coverage_table(collect_sets(study_in(tmp_path, dict.fromkeys(SETS)))) is None


def test_the_promise_holds_where_samples_are_exchangeable():
    rng = np.random.default_rng(0)
    p, q = rng.random(4000), rng.random(20000)
    promise = fit_conformal(p, (rng.random(4000) < p).astype(int))
    state = SampleScores(q, (rng.random(20000) < q).astype(int), np.arange(20000).astype(str))
    coverage, size, empty = (row["value"] for row in build_coverage_rows(state, promise, 0))
    assert coverage == pytest.approx(0.9, abs=0.02)
    assert 1 < size < 2
    assert empty == 0


def test_too_few_samples_promise_every_label_and_are_read_back(tmp_path):
    promise, cell = fit_conformal(np.array([0.9, 0.8]), [1, 1]), Cell("steady", "a", "b", 0)
    (tmp_path / cell.place).mkdir(parents=True)
    (tmp_path / cell.place / COVERED).write_bytes(encode_sets(promise, []))
    assert json.loads((tmp_path / cell.place / COVERED).read_text())["threshold"] is None
    assert read_sets(tmp_path, cell) == promise
    state = SampleScores(np.array([0.01]), np.array([1]), np.array(["p"]))
    assert compute_coverage(state, promise).tolist() == [[1, 2, 0]]
    assert read_sets(tmp_path, Cell("steady", "a", "a", 0)) is None


def test_resamples_take_whole_pedestrians():
    values, who = np.array([[0.0], [0.0], [1.0]]), np.array(["p", "p", "q"])
    assert set(compute_resampled_means(values, who, PercentileResamples(100))[:, 0].round(6)) == {
        0,
        0.333333,
        1,
    }
    assert compute_resampled_means(values, who, 100)[:, 0].tolist() == [1.0, 0.0]
    assert compute_resampled_means(values, np.array(["p"] * 3), 100) is None
    assert compute_resampled_means(values, who, 0) is None
