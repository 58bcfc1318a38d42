"""The demo: every planted defect is found, and the report is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_files import Command

from roadaware.scenes.demo import DemoFacts, write_demo
from roadaware.scenes.readers import read


def test_the_demo_finds_what_it_planted(roadaware: Command, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = roadaware("demo", "-o", folder, "--draws", "20", "--json", tmp_path / "demo.json")
    assert done.code == 0
    assert "MISSED" not in done.out
    assert f"The report: {folder / 'report.html'}" in done.out
    assert (folder / "report.html").stat().st_size > 50_000
    for command in ("read", "audit", "baseline", "evaluate"):
        assert f"$ roadaware {command}" in done.out
    words = ["evaluate", "pedestrians", "--scores", folder / "scores.csv"]
    words += ["--samples", folder / "samples.csv", "--task", "action", "--config", "reference", "--json"]
    assert roadaware(*words).data["metrics"]["auc"] > 0.75


def test_the_demo_does_not_write_into_other_folders(roadaware: Command, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    done = roadaware("demo", "-o", tmp_path)
    assert done.code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


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
