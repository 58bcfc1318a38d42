"""Every command that the page of road events shows runs, in its order, on the set that the page makes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from small_files import Command

from roadaware.demo_data.road import write_road_demo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "road.md"


def shown() -> list[list[str]]:
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("$ roadaware ") for line in lines)
    return [shlex.split(line)[2:] for line in lines]


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_road_demo(Path("data/road"))
    commands = shown()
    assert {words[0] for words in commands} == {"stats", "link", "evaluate"}
    for words in commands:
        done = roadaware(*words)
        assert done.code == 0, f"roadaware {' '.join(words)}: {done.err}"
        assert done.out
    found = json.loads(Path("data/published.json").read_text())
    assert 0 < found["frame"]["0.5"]["agent"]["mean"] < 100
    assert 0 < found["video"]["stiou"]["0.2"]["event"]["mean"] < 100
