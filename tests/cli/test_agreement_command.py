"""`evaluate agreement` prints Table V of one's own two tasks, and writes it with a page."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from small_files import write_files

from roadaware.analysis.compare import compute_agreement
from roadaware.analysis.evaluation.pedestrians import match_file
from roadaware.cli import main


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for task in ("intention", "action"):
        write_files(tmp_path, task, people=12)
    return tmp_path


def ask(folder: Path, *more: object) -> int:
    scores = [folder / "intention.csv", folder / "action.csv"]
    samples = [folder / "intention_samples.csv", folder / "action_samples.csv"]
    words = [
        "evaluate",
        "agreement",
        "--scores",
        *scores,
        "--samples",
        *samples,
        "--tasks",
        "intention",
        "action",
    ]
    return main([str(word) for word in [*words, "--resamples", 20, *more]])


def test_both_tasks_are_counted(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(files, "-o", files / "out", "--json", files / "a.json") == 0
    told = json.loads((files / "a.json").read_text())
    table = pl.read_parquet(files / "out" / "agreement.parquet")
    states = [
        match_file(files / f"{t}.csv", files / f"{t}_samples.csv", t).state for t in ("intention", "action")
    ]
    plain = compute_agreement(*states).table
    assert table["count"].to_list() == plain["count"].to_list() == [row["count"] for row in told["agreement"]]
    assert "Both are decided rightly" in (files / "out" / "report.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert ask(files) == 0
    printed = capsys.readouterr().out
    assert "both right" in printed
    assert printed.count("\n") >= 5


def test_two_of_each_are_asked_for(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "evaluate",
        "agreement",
        "--scores",
        files / "action.csv",
        "--samples",
        files / "action_samples.csv",
    ]
    assert main([str(word) for word in [*words, "--tasks", "action"]]) == 2
    assert "--scores takes two" in capsys.readouterr().err
    (files / "action_samples.csv").write_text(
        (files / "action_samples.csv").read_text().replace("0_0_1b", "0_0_9b")
    )
    assert ask(files) == 3
    assert "same samples" in capsys.readouterr().err


def test_an_event_before_the_end_of_the_observation_is_taken(files: Path) -> None:
    path = files / "action_samples.csv"
    path.write_text(path.read_text().replace(",90,", ",-3,"))
    words = [
        "evaluate",
        "pedestrians",
        "--scores",
        files / "action.csv",
        "--samples",
        path,
        "--task",
        "action",
    ]
    assert main([str(word) for word in [*words, "--resamples", 0]]) == 0
    assert main([str(word) for word in [*words, "--resamples", 0, "--sampling", "default"]]) == 2
