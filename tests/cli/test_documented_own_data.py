"""The commands of the pages on one's own data and on formats run as written, one page behind the other."""

import json
import re
import shlex
from pathlib import Path

import pytest
from small_files import Command

from roadaware.datasets import READERS
from roadaware.formats.boxes.forms import FORMS, PREDICTED
from roadaware.formats.truth_files import WRITERS

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


def test_the_matrix_is_that_of_readers_and_writers() -> None:
    """Green where there is a reader or a writer, which the laws of their tests go over; red with a reason."""
    text = (DOCS / "formats.md").read_text(encoding="utf-8").partition("## Which format goes which way")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.partition("\n**What")[0].splitlines()
            if line.startswith("| ") and not line.startswith("| format")]  # fmt: skip
    green: list[set[str]] = [set() for _ in range(4)]
    listed: list[str] = []
    for _, names, *cells in rows:
        own = re.findall(r"`(\w+)`", names)
        listed += own
        for held, cell in zip(green, cells, strict=True):
            assert cell.startswith("green") or len(cell.removeprefix("red: ")) > 6, cell
            if cell.startswith("green"):
                held.update(own)
    assert len(listed) == len(set(listed))
    assert set(listed) == {*READERS, "mmaction2"}
    truths = {form.reader for form in FORMS.values()} | set(WRITERS) | {"simulator"}
    asked = {name for name, each in READERS.items() if each.predicted}
    assert green[0] == set(READERS)
    assert green[1] == truths
    assert green[2] == asked | {"coco", "mot", "ava", "mmaction2", "label_studio", "road"}
    assert green[3] == {form.reader for form in PREDICTED.values()} | {"ava", "mmaction2", "label_studio"}
