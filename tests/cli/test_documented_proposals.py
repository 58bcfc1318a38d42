"""The commands of the page on proposals run as written, and the page names every parameter."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

import pytest
from small_files import Command

from roadaware.corner_cases.config import CopgConfig

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "corner_cases.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_commands_for_proposals_run_as_written(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 7
    for line in lines:
        done = roadaware(*shlex.split(line)[2:])
        assert done.code == 0, done.err
    assert len(list((tmp_path / "runs" / "proposals" / "steps").glob("*.png"))) == 1
    tracked = tmp_path / "runs" / "tracked"
    assert (tracked / "tracks").is_dir()
    assert (tracked / "cuboids" / "nuscenes.json").is_file()
    assert list((tracked / "cuboids" / "kitti").glob("*/*.txt"))
    assert list((tracked / "cuboids" / "xtreme1").glob("*/result/*.json"))
    edits = (tmp_path / "runs" / "edited" / "cuboids.csv").read_text().splitlines()
    assert len(edits) > 1
    assert all(",kept," in line for line in edits[1:])


def test_every_knob_of_proposals_is_named() -> None:
    names = {each.name for each in dataclasses.fields(CopgConfig)}
    assert {name for name in names if f"`{name}`" not in PAGE and not name.startswith("ground_")} == set()
    assert "`ground_*`" in PAGE
