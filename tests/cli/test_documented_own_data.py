"""The commands of the pages on one's own data and on formats run as written, one page behind the other."""

import json
import re
import shlex
from pathlib import Path

import pytest
from small_files import Command

from roadaware.formats.boxes.forms import FORMS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def list_commands(page: str) -> list[list[str]]:
    blocks = re.findall(r"```console\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    return [shlex.split(line)[2:] for block in blocks for line in block.splitlines()]


@pytest.mark.slow
def test_the_commands_of_the_pages_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine, forms = list_commands("own_data.md"), list_commands("formats.md")
    assert (len(mine), len(forms)) == (9, 3)
    for words in (*mine, *forms):
        done = roadaware(*words)
        assert done.code == 0, f"roadaware {' '.join(words)}: {done.err}"
    result = json.loads((tmp_path / "runs" / "mine-run" / "results.json").read_text())
    assert result["task"] == "events"
    assert "agent" in json.dumps(result)
    assert (tmp_path / "runs" / "mine" / "videos" / "road-0000.mp4").is_file()
    assert "report.html" in {each.name for each in (tmp_path / "runs" / "mine-net-run").iterdir()}
    log = (tmp_path / "runs" / "mine-net" / "log.jsonl").read_text().splitlines()
    assert any(json.loads(line).get("step") == 2 for line in log)


def test_every_form_has_its_row() -> None:
    text = (DOCS / "formats.md").read_text(encoding="utf-8")
    table = text.partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)`(?: \(read by `\w+`\))? \|", table, re.MULTILINE)) == set(FORMS)
    assert [
        word for form in FORMS.values() for word in form.layout.split(", ") if word.split("/")[0] not in text
    ] == []
