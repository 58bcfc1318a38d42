"""Every command that the page on checking annotations shows runs, its Python too, and its rules are ours."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from small_files import Command

from roadaware.analysis.quality import RULES
from roadaware.demo_data.annotations import generate_annotation_rounds

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "check.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        program, *words = shlex.split(line)[1:]
        assert program == "roadaware"
        done = roadaware(*words)
        assert done.code == 0, done.err
        assert done.out
    folder = tmp_path / "runs" / "quality"
    assert {path.name for path in folder.iterdir()} == {
        *("items.parquet", "items.csv", "agreement.csv", "label_agreement.csv", "report.html", "results.json")
    }
    assert f"{len(generate_annotation_rounds().planted)} known differences" in PAGE


@pytest.mark.slow
def test_the_python_of_the_page_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "'disputed': " in done.stdout


def test_the_page_lists_every_rule() -> None:
    section = PAGE.split("## The rules")[1].split("## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    assert dict(rows[1:]) == RULES
