"""Every command that the page on linking shows runs, in its order, on the synthetic road."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from small_files import Command

from roadaware.demo_data.road import write_road_demo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "linking.md"


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_road_demo(Path("data/road"))
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]
    assert len(commands) == 2
    for program, *words in commands:
        assert program == "roadaware"
        done = roadaware(*words)
        assert done.code == 0, done.err
        assert "paths" in done.out
