"""Every command that the page on the steps after the detector shows runs, on the page's own sets."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from small_files import Command

from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.scenes.store import save

PAGE = Path(__file__).resolve().parents[2] / "docs" / "road_after_detector.md"


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    truth = generate_road_scenes(videos=2, frames=120, seed=1)
    two = simulate_detections(truth, seed=2, detector=Detector(missed=0.2, jitter=0.04))
    for name, tables in {"truth": truth, "one": simulate_detections(truth, seed=1), "two": two}.items():
        save(tables, tmp_path / "sets" / name)
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]
    assert {words[1] for words in commands} == {"link", "evaluate"}
    for program, *words in commands:
        assert program == "roadaware"
        done = roadaware(*words)
        assert done.code == 0, f"roadaware {' '.join(words)}: {done.err}"
        assert done.out
