"""A split without videos costs nothing but the work that needs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small_files import Command

from roadaware.demo_data import DemoFacts


@pytest.fixture
def data(demo_set: tuple[Path, DemoFacts], tmp_path: Path) -> Path:
    """The demo's dataset, its validation list empty."""
    shutil.copytree(demo_set[0], tmp_path / "data")
    (tmp_path / "data" / "split_ids" / "default" / "val.txt").write_text("")
    return tmp_path / "data"


@pytest.mark.slow
def test_test_is_scored_without_validation_and_not_the_other_way_round(
    roadaware: Command, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "scores.csv").write_text("0.5\n" * 455)
    words = ("evaluate", "pedestrians", "--protocol", "jaad-action@iv2024", "--data", data)
    words += ("--scores", tmp_path / "scores.csv", "--config", "reference")
    done = roadaware(*words, "--split", "test")
    assert done.code == 0, done.err
    assert "455 samples" in done.out
    done = roadaware(*words, "--split", "val")
    assert done.code == 3
    assert "split_ids/default/val.txt" in done.err


@pytest.mark.slow
def test_the_audit_goes_on_and_baselines_say_what_is_empty(roadaware: Command, data: Path) -> None:
    done = roadaware("audit", "jaad", data)
    assert done.code == 0, done.err
    assert "[serious] empty-split" in done.out
    done = roadaware("baseline", "jaad", data)
    assert done.code == 3
    assert "no video is in split 'default/val'" in done.err


@pytest.mark.slow
def test_without_split_lists_it_is_said_where_they_should_be(roadaware: Command, data: Path) -> None:
    shutil.rmtree(data / "split_ids")
    for command in ("audit", "baseline"):
        done = roadaware(command, "jaad", data)
        assert done.code == 3
        assert "the release's folder split_ids/ stands beside annotations/" in done.err


@pytest.mark.slow
def test_the_doctor_names_the_empty_split(roadaware: Command, data: Path) -> None:
    done = roadaware("doctor", "jaad", data)
    assert "Splits without a single video: default/val." in done.out


@pytest.mark.slow
def test_the_doctor_compares_with_the_splits_that_are_there(
    roadaware: Command, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "scores.csv").write_text("0.5\n" * 2)
    (tmp_path / "samples.csv").write_text("truth,pedestrian,tte_frames\n0,0_1_1,40\n1,0_1_1,30\n")
    done = roadaware(
        "doctor",
        "pedestrians",
        *("--scores", tmp_path / "scores.csv", "--samples", tmp_path / "samples.csv"),
        *("--data", f"jaad={data}"),
    )
    assert done.code == 0, done.err
