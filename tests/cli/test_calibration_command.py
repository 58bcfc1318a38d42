"""`calibration`: strict JSON, the published and the mended bins, slices, a report, and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from small_files import Command, Files, write_files

from roadaware.analysis.evaluation.pedestrians import group_by_time
from roadaware.metrics.metric_state import Judged
from roadaware.metrics.scores import SampleScores
from roadaware.statistics.calibration import AdaptiveBins, reliability


def calibrate(roadaware: Command, files: Files, *more: object) -> Any:
    return roadaware("calibration", files.scores, "--samples", files.samples, *more)


@pytest.mark.slow
@pytest.mark.parametrize("config", ["reference", "default"])
@pytest.mark.parametrize("task", ["action", "intention", "risk"])
def test_errors_and_bins_are_those_of_the_confidences(
    roadaware: Command, tmp_path: Path, task: str, config: str
) -> None:
    files = write_files(tmp_path, task, people=100)
    done = calibrate(
        roadaware, files, "--config", config, "--resamples", "20", "--json", tmp_path / "out.json"
    )
    assert done.code == 0, done.err
    assert "adaptive bin" in done.out
    found = json.loads((tmp_path / "out.json").read_text())
    p = files.values if task != "action" else np.hstack([1 - files.values, files.values])
    right = p.argmax(axis=1) == files.truth
    expected = reliability(p.max(axis=1), right, getattr(AdaptiveBins, config)())
    assert found["ece"] == pytest.approx(expected.expected_error)
    assert found["mce"] == pytest.approx(expected.maximum_error)
    assert [one["n"] for one in found["bins"]] == expected.count.tolist()
    for name in ("confidence", "accuracy", "low", "high"):
        assert [one[name] for one in found["bins"]] == pytest.approx(getattr(expected, name).tolist())
    assert all(one["interval"][0] <= one["accuracy"] <= one["interval"][1] for one in found["bins"])
    assert {"nll", "brier", "uniform_ece", "ece_if_calibrated"} <= set(found)
    assert found["task"] == task
    assert found["samples"] == 700
    assert set(found["groups"]) == {"tte=15-30", "tte=30-45", "tte=45-60", "tte=60-75", "tte=75-90"}


def test_a_run_folder_gives_what_its_files_give(roadaware: Command, files: Files, tmp_path: Path) -> None:
    run = tmp_path / "run"
    at = ("--scores", files.scores, "--samples", files.samples)
    roadaware("evaluate", "pedestrians", *at, "--task", "action", "--resamples", "0", "-o", run)
    quick = ("--resamples", "0", "--json")
    of_files = json.loads(calibrate(roadaware, files, "--task", "action", *quick).out)
    assert json.loads(roadaware("calibration", run, *quick).out) == of_files
    refused = roadaware("calibration", run, "--samples", files.samples)
    assert refused.code == 2
    assert "brings its samples" in refused.err


@pytest.mark.slow
def test_a_column_of_the_samples_makes_slices_and_a_folder_holds_a_report(
    roadaware: Command, files: Files, tmp_path: Path
) -> None:
    lines = files.samples.read_text().splitlines()
    rain = [("rain" if k % 2 else "<b>dry</b>") for k in range(len(lines) - 1)]
    pairs = zip(lines, ["weather", *rain], strict=True)
    files.samples.write_text("\n".join(f"{line},{more}" for line, more in pairs))
    folder = tmp_path / "run"
    done = calibrate(roadaware, files, "--by", "weather", "--resamples", "20", "-o", folder, "--json")
    assert done.code == 0, done.err
    assert done.data["groups"]["weather=rain"]["samples"] == 105
    assert {path.name for path in folder.iterdir()} == {"results.json", "bins.csv", "report.html"}
    page = (folder / "report.html").read_text()
    assert page.count("<svg") == 3
    assert "<b>dry" not in page
    assert "Calibration error against time to event" in page
    assert calibrate(roadaware, files, "--resamples", "0", "-o", folder).code == 2
    assert calibrate(roadaware, files, "--resamples", "0", "-o", folder, "--overwrite").code == 0


def test_equal_runs_give_equal_bytes_whatever_the_number_of_classes(roadaware: Command, files: Files) -> None:
    np.savetxt(files.scores, np.hstack([1 - files.values, files.values]), delimiter=",")
    first, second = (calibrate(roadaware, files, "--resamples", "10", "--json").out for _ in range(2))
    assert first == second
    assert json.loads(first)["task"] is None


def test_constant_scores_are_said_to_be_constant(roadaware: Command, files: Files) -> None:
    files.scores.write_text("0.25\n" * 210)
    done = calibrate(roadaware, files, "--resamples", "0")
    assert done.code == 0
    assert "note: all 210 confidences are 0.75" in done.out


def test_sets_that_promise_a_coverage_say_what_they_kept(roadaware: Command, tmp_path: Path) -> None:
    files = write_files(tmp_path, "risk", people=60)
    done = calibrate(roadaware, files, "--conformal", "0.8", "--resamples", "0", "--json")
    assert done.code == 0, done.err
    found = done.data["conformal"]
    assert (found["level"], set(found["rules"])) == (0.8, {"lac", "aps"})
    assert found["rules"]["lac"]["coverage"] == pytest.approx(0.8, abs=0.05)
    assert found["rules"]["lac"]["empty"] > 0  # these scores know more than 0.8 of the labels
    assert "conformal sets that promise 0.8" in calibrate(roadaware, files, "--conformal", "0.8").out
    assert calibrate(roadaware, files, "--resamples", "0", "--json").data["conformal"] is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scores", "samples"])
def test_parquet_says_what_csv_says(roadaware: Command, files: Files, name: str) -> None:
    asked = ("--resamples", "5", "--by", "video", "--json")
    plain = calibrate(roadaware, files, *asked).data
    path = getattr(files, name)
    made = path.with_suffix(".parquet")
    pl.read_csv(path, has_header=name == "samples").write_parquet(made)
    found = calibrate(roadaware, replace(files, **{name: made}), *asked).data
    assert found == plain


def test_labels_that_are_all_equal_and_rows_that_repeat_are_judged(roadaware: Command, files: Files) -> None:
    lines = files.samples.read_text().splitlines()
    cells = [line.split(",", 1)[1] for line in lines[1:]]
    files.samples.write_text("\n".join([lines[0], *(f"1,{rest}" for rest in cells)]))
    done = calibrate(roadaware, files, "--resamples", "5", "--json")
    assert done.code == 0
    right = (files.values[:, 0] >= 0.5).mean()
    assert done.data["accuracy"] == pytest.approx(right)
    for path in (files.scores, files.samples):
        head = [lines[0]] if path == files.samples else []
        rows = path.read_text().splitlines()[len(head) :]
        path.write_text("\n".join([*head, *rows, *rows]) + "\n")
    twice = calibrate(roadaware, files, "--resamples", "5", "--json")
    assert twice.code == 0
    for metric in ("uniform_ece", "brier", "nll", "confidence"):
        assert twice.data[metric] == pytest.approx(done.data[metric])
    assert sum(one["n"] for one in twice.data["bins"]) == 420


def test_what_the_published_code_cannot_bin_is_null_and_said(roadaware: Command, files: Files) -> None:
    values = np.concatenate([np.linspace(1, 0.6, 5), np.full(205, 0.5)])
    files.scores.write_text("".join(f"{value}\n" for value in values))
    done = calibrate(roadaware, files, "--config", "reference", "--resamples", "5", "--json")
    assert done.code == 0
    assert (done.data["ece"], done.data["bins"]) == (None, [])
    assert "stops there" in done.data["undefined"]["mce"]
    assert done.data["uniform_ece"] > 0
    assert "undefined:" in calibrate(roadaware, files, "--config", "reference", "--resamples", "0").out


@pytest.mark.parametrize(
    ("scores", "more", "code", "message"),
    [
        ("0.5\n" * 209, (), 3, "expected 210 rows"),
        ("1.5\n" * 210, (), 3, "expected scores in [0, 1]"),
        ("nan\n" * 210, (), 3, "expected a finite number"),
        ("0.5,0.2,0.1\n" * 210, (), 3, "action.csv: the scores of a sample should sum to 1"),
        ("0.2,0.5,0.3\n0.5,0.2,0.1\n" * 105, (), 3, "105 of 210 rows do not, row 2 first"),
        ("0.5;0.5\n" * 210, (), 3, "separated by semicolons"),
        ("0,5\n" * 210, ("--task", "action"), 3, "write them with points"),
        ("name\n" + "0.5\n" * 209, (), 3, "no header and no names"),
        ("1_0\n" * 210, (), 3, "decimals take a point"),
        ("PAR1\n" * 210, (), 3, "Let its name end in .parquet"),
        ("0.5,0.3,0.2\n" * 210, ("--task", "action"), 3, "expected 1 number in a row"),
        ("", (), 3, "found an empty file"),
        ("0.5\n" * 210, ("--by", "weather"), 3, "expected a column 'weather'"),
        ("0.5\n" * 210, ("--by", "pedestrian"), 3, "expected at most 24 values"),
        ("0.5\n" * 210, ("--protocol", "jaad-action@iv2024"), 2, "name the samples: either"),
        ("0.5\n" * 210, ("--uniform-bins", "0"), 2, "1 or more"),
        ("0.5\n" * 210, ("--conformal", "90"), 2, "a share between 0 and 1"),
    ],
)
def test_bad_input_is_one_clear_message(
    roadaware: Command, files: Files, scores: str, more: tuple[str, ...], code: int, message: str
) -> None:
    files.scores.write_text(scores)
    done = calibrate(roadaware, files, *more)
    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_truth_in_words_is_told_what_numbers_are_meant(roadaware: Command, files: Files) -> None:
    head, first, *rest = files.samples.read_text().splitlines()
    files.samples.write_text("\n".join([head, "True" + first[first.index(",") :], *rest]))
    done = calibrate(roadaware, files)
    assert done.code == 3
    assert "Write 1 for true and 0 for false" in done.err


def test_two_bands_of_time_to_event_are_slices_and_one_is_none() -> None:
    def times(*frames: int) -> tuple[list[Any], dict[str, float]]:
        state = SampleScores(
            np.full(len(frames), 0.5),
            np.zeros(len(frames), dtype=int),
            np.array([str(at) for at in range(len(frames))]),
            tte_frames=np.array(frames),
        )
        return group_by_time(cast(Judged, SimpleNamespace(state=state)))

    labels, means = times(30, 30, 90)
    assert len(labels) == 1
    assert sorted(means.values()) == [1.0, 3.0]
    assert times(30, 30) == ([], {})
    assert times() == ([], {})
