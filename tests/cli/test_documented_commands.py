"""Every command that the documentation shows does what it says, in the order of the page."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App
from small_demo import Demo
from small_files import Command

from roadaware.analysis.scene_tasks import TASKS
from roadaware.datasets.loading import open_dataset
from roadaware.scenes.store import save
from simulated_answers import simulate_predictions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command_line.md"
EXIT_CODES = {0, 1, 2, 3, 4, 70, 130, 141, 143}


def shown() -> list[list[str]]:
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("$ roadaware ") for line in lines)
    return [shlex.split(line)[2:] for line in lines]


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    demo_run: Demo, roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    demo, *others = shown()
    assert tuple(demo) == demo_run.words
    shutil.copytree(demo_run.place / "runs", tmp_path / "runs")
    # A demo without torch asks no network about the crowd, and has nothing that could be judged.
    crowd = open_dataset("simulator", tmp_path / "runs" / "demo" / "synthetic" / "chaos")
    for task in TASKS:
        save(simulate_predictions(crowd, task), tmp_path / "runs" / "demo" / "chaos" / task)
    for words in others:
        done = roadaware(*words)
        assert done.code == 0, f"roadaware {' '.join(words)}: {done.err}"
        assert done.out
        if "pedestrians" in words and "doctor" in words:
            assert "nothing found that looks wrong" in done.out
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        *("demo", "tables", "audit.html", "audit.json", "risk", "mine", "difference.html", "report.html"),
        *("counts", "linked", "trimmed", "long", "test.json", "events", "published", "rounds", "checked"),
        *("actions.json", "relations", "grounding.html", "crowd-ava", "handed-in", "road.zip"),
    }


def test_the_page_lists_every_command_and_exit_code() -> None:
    from roadaware.cli import app

    text = PAGE.read_text(encoding="utf-8")
    for command in app.NAMES:
        assert f"\n## {command}\n" in text
        assert f"\n| [`{command}`](#{command}) | " in text
    rows = re.findall(r"^\| (\d+) \| ", text, re.MULTILINE)
    assert {int(row) for row in rows} == EXIT_CODES
    assert {app.USAGE, app.DISK, app.INTERNAL, app.PIPE, app.INTERRUPTED, app.TERMINATED} < EXIT_CODES


def with_options(app: App, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command that does something, with the names of its options."""
    under = [name for name in app if not name.startswith("-")]
    if not under:
        yield words, {name for argument in app.assemble_argument_collection() for name in argument.names}
    for name in under:
        yield from with_options(app[name], (*words, name))


@pytest.mark.slow
def test_commands_have_the_options_that_the_page_says_they_share() -> None:
    """A name such as `evaluate` stands for all of its subjects."""
    from roadaware.cli import app

    known = dict(with_options(app.build_app("*")))
    shared = PAGE.read_text(encoding="utf-8").split("### What many share")[1].split("\n\n")[1]
    rows = [
        [re.findall("`([^`]+)`", cell) for cell in row.split("|")[1:3]] for row in shared.splitlines()[2:]
    ]
    assert len(rows) == 10
    for options, commands in rows:
        for command in commands:
            meant = [words for words in known if words[: len(command.split())] == tuple(command.split())]
            assert meant, command
            assert [(words, options) for words in meant if not set(options) <= known[words]] == []
    assert all("--json" in options for options in known.values())
