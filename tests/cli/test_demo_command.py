"""The demo: every planted defect is found, and the report is there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_demo import Demo
from small_files import Command

from roadaware.cli import main
from roadaware.datasets import read
from roadaware.demo import command
from roadaware.demo import scenes as synthetic
from roadaware.demo_data import DemoFacts, write_demo
from roadaware.errors import DiskError

pytestmark = pytest.mark.slow


REAL = os.environ.get("ROADAWARE_DATA_DIR")


def test_the_demo_finds_what_it_planted_and_needs_no_torch(demo_run: Demo, roadaware: Command) -> None:
    folder, done = demo_run.place / "runs" / "demo", demo_run.done
    assert done.code == 0, done.err
    assert "MISSED" not in done.out
    assert "The report: runs/demo/report.html" in done.out
    assert (folder / "report.html").stat().st_size > 50_000
    assert "too little was simulated for that" in done.out
    assert "left out: torch is not installed: pip install 'roadaware[models]'" in done.out
    for verb in ("simulate", "watch", "read", "audit", "baseline", "link", "evaluate"):
        assert f"$ roadaware {verb}" in done.out
    words = ["evaluate", "pedestrians", "--scores", folder / "scores.csv"]
    words += ["--samples", folder / "samples.csv", "--task", "action", "--config", "reference", "--json"]
    assert roadaware(*words).data["metrics"]["auc"] > 0.75


def test_the_demo_does_not_write_into_other_folders(roadaware: Command, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    done = roadaware("demo", "-o", tmp_path)
    assert done.code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("name", ["report.html", "data/annotations/video_0001.xml", "demo.json"])
def test_a_folder_with_files_named_like_the_demos_is_not_its_own(
    roadaware: Command, tmp_path: Path, name: str
) -> None:
    theirs = tmp_path / "m"
    for path in (theirs / name, theirs / "samples.csv"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("dear")
    before = sorted(theirs.rglob("*"))
    for more in ([], ["--overwrite"]):
        done = roadaware("demo", "-o", theirs, *more)
        assert done.code == 2
        assert "name a new or empty folder" in done.err
    assert sorted(theirs.rglob("*")) == before
    assert (theirs / name).read_text() == (theirs / "samples.csv").read_text() == "dear"


def test_what_an_earlier_demo_did_not_write_is_not_replaced(roadaware: Command, tmp_path: Path) -> None:
    command.Demo(tmp_path, 0, 0).write_marker(["report.html"])
    (tmp_path / "samples.csv").write_text("dear")
    done = roadaware("demo", "--all", "-o", tmp_path)
    assert done.code == 2
    assert "samples.csv was not written by a demo" in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"demo.json", "samples.csv"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_demo_starts_over(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "demo"
    process = subprocess.Popen(
        [sys.executable, "-m", "roadaware", "demo", "--all", "-o", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (folder / "synthetic" / "road" / "scenes").is_dir() and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(number)
    assert process.wait(20) in (128 + number, -number)
    assert not (folder / "report.html").exists()
    (folder / "notes.txt").write_text("dear")
    (folder / ".roadaware-999999999-0123abcd.tmp").write_text("half")
    monkeypatch.setattr(synthetic, "make_up", lambda *_: ended())
    assert main(["demo", "--all", "-o", str(folder)]) == 4
    assert (folder / "notes.txt").read_text() == "dear"
    assert {path.name for path in folder.iterdir()} == {"demo.json", "notes.txt"}


def ended() -> None:
    """As far as this test goes: the disk is full."""
    raise DiskError("full")


def test_a_killed_marker_leaves_a_vacant_folder(tmp_path: Path) -> None:
    (tmp_path / ".roadaware-999999999-0123abcd.tmp").write_text("half")
    command.Demo(tmp_path, 0, 0).write_marker(["report.html"])
    assert [path.name for path in tmp_path.iterdir()] == ["demo.json"]


@pytest.mark.parametrize("folder", ["/proc/demo", "/dev/null/demo"])
def test_a_demo_that_cannot_be_written_ends_with_4(roadaware: Command, folder: str) -> None:
    done = roadaware("demo", "-o", folder)
    assert done.code == 4
    assert "demo" in done.err


def test_a_data_set_that_cannot_be_written_is_an_error_of_the_disk() -> None:
    with pytest.raises(DiskError, match="/proc/demo/annotations could not be made"):
        write_demo(Path("/proc/demo"))


def test_equal_seeds_write_equal_bytes(demo_set: tuple[Path, DemoFacts], tmp_path: Path) -> None:
    root, facts = demo_set
    assert write_demo(tmp_path) == facts
    paths = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    assert paths == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    for path in paths:
        assert (root / path).read_bytes() == (tmp_path / path).read_bytes(), path


@pytest.mark.parametrize("seed", [1, 2])
def test_any_seed_reads_as_it_was_written(tmp_path: Path, seed: int) -> None:
    facts = write_demo(tmp_path, seed=seed)
    scenes = read("jaad", tmp_path, cache=False)
    assert len(scenes.videos) == facts.videos
    assert len(scenes.tubes) == facts.pedestrians
    assert len(scenes.boxes) == facts.boxes
    assert len(scenes.rejected) == 3
    assert (scenes.tubes["crossing"].cast(str) == "crossing").sum() == facts.crossing
    assert facts.pedestrians >= 150
    assert 0.2 < facts.crossing / facts.pedestrians < 0.35


@pytest.mark.slow
@pytest.mark.skipif(REAL is None, reason="ROADAWARE_DATA_DIR is unset: no real annotations")
def test_the_demo_on_real_annotations_ends_with_the_tables(roadaware: Command, tmp_path: Path) -> None:
    done = roadaware("demo", "--data", REAL, "-o", tmp_path / "demo", "--resamples", "20")
    assert done.code == 0
    last = re.split(r"(?m)^\d+\. ", done.out)[-1]
    assert last.startswith("Reproduce the published tables")
    assert re.search(r"\d+ cells: \d+ match", last)
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"demo.json", "report.html"}
