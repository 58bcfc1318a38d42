"""The commands of the page on the simulator run as written, and its table names every preset and domain."""

import re
import shlex
from pathlib import Path

import pytest
from small_files import Command

from roadaware.simulator.config import DOMAINS, PRESETS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "simulator.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        line for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
    ]
    assert len(lines) == 3
    for line in lines:
        done = roadaware(*shlex.split(line)[2:])
        assert done.code == 0, done.err
    assert (tmp_path / "runs" / "synthetic" / "drawn" / "road-0000.png").is_file()


def test_every_preset_and_domain_is_named() -> None:
    assert [name for name in (*PRESETS, *DOMAINS) if f"`{name}`" not in PAGE] == []
