"""Every command that the page on labelling corner cases shows runs, and its tables of words are ours."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from small_files import Command

from roadaware.analysis.annotation.agreement import MEASURES
from roadaware.analysis.annotation.cost import FATES, Labour

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "corner_annotation.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 7
    for line in lines:
        program, *words = shlex.split(line)[1:]
        assert program == "roadaware"
        done = roadaware(*words)
        assert done.code == 0, done.err
        assert done.out
    for name in ("list/list.csv", "tasks/labelling.xml", "labels/fates.csv", "consensus/disputes.csv"):
        assert (tmp_path / "runs" / name).is_file()


def test_the_page_names_every_fate_measure_and_second() -> None:
    for fate in FATES:
        assert f"| {fate} |" in PAGE
    for measure in MEASURES:
        assert measure.replace("_", " ").removeprefix("found ") in PAGE
    for name, field in Labour.__dataclass_fields__.items():
        assert f"| `--set {name}=` | {field.default:g} |" in PAGE
