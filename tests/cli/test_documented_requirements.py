"""Every command that the page on requirements shows runs, in its order, and enforcing does what the page says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from small_files import Command

from roadaware.demo_data.road import write_road_demo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "requirements.md"


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    write_road_demo(Path("data/road"))
    (made,) = re.findall(r'Path\("rules.txt"\).write_text\(.*?\n\)', text, re.DOTALL)
    Path("rules.txt").write_text("".join(map(json.loads, re.findall(r'^    (".*")$', made, re.MULTILINE))))
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    commands = [shlex.split(line)[2:] for block in blocks for line in block.splitlines()]
    assert {words[0] for words in commands} == {"audit", "link", "evaluate", "enforce"}
    for words in commands:
        done = roadaware(*words)
        assert done.code == 0, f"roadaware {' '.join(words)}: {done.err}"
        assert done.out
    shares = []
    for name in ("before", "after"):
        rows = json.loads(Path(f"{name}.json").read_text())["requirements"]["rows"]
        shares += [
            row["value"]
            for row in rows
            if (row["level"], row["threshold"], row["metric"]) == ("boxes", 0.5, "violating")
        ]
    assert shares[0] > 0
    assert shares[1] == 0
