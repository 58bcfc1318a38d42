"""Every command: help that teaches, typos that are understood, and one run on the demo's dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App
from small_files import Command, write_files

from roadaware import __version__
from roadaware.cli.app import build_app
from roadaware.demo_data import DemoFacts
from roadaware.scenes.store import open_scenes

COMMANDS = (
    *("demo", "read", "stats", "audit", "doctor", "baseline", "link", "evaluate", "compare", "reproduce"),
    *("report",),
)
SUBJECTS = ("pedestrians", "road", "ucf24")
Demo = tuple[Path, DemoFacts]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_names_the_command(roadaware: Command, command: str) -> None:
    done = roadaware(command, "--help")
    assert done.code == 0
    assert "For example:" in done.out
    assert f"roadaware {command}" in done.out.split("For example:")[1]
    assert "--json" in done.out


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_subject_of_evaluate_is_taught(roadaware: Command, subject: str) -> None:
    assert f"roadaware evaluate {subject}" in roadaware("evaluate", "--help").out
    done = roadaware("evaluate", subject, "--help")
    assert f"roadaware evaluate {subject}" in done.out.split("For example:")[1]
    for option in ("--config", "--resamples", "--fail-under", "--json", "--output"):
        assert option in done.out


def test_help_and_version(roadaware: Command) -> None:
    done = roadaware("--help")
    assert done.code == 0
    assert all(command in done.out for command in COMMANDS)
    assert "130 interrupted" in " ".join(done.out.split())
    assert roadaware("--version").out.strip() == __version__


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["adit"], 'Did you mean "audit"'),
        (["read", "jad", "x"], "did you mean jaad?"),
        (["read", "jaad", "x", "--verfy"], "--verify"),
        (["doctor", "pedestrian"], "Did you mean pedestrians?"),
        (["evaluate", "rod"], 'Did you mean "road"'),
        (["evaluate", "road"], "--truth"),
        (["link", "detections"], "--out"),
        (["doctor", "jaad"], "needs a path"),
        (["doctor", "pedestrians"], "needs --scores"),
        (["reproduce", "iv2023"], "iv2024"),
        (["reproduce", "iv2024"], "ROADAWARE_DATA_DIR"),
        (["reproduce", "continual", "--domains", "x"], "NAME=FOLDER"),
        (["reproduce", "countries", "--domains", "one="], "NAME=FOLDER"),
        (["baseline", "jaad", "x", "--resamples", "-3"], "0 or more"),
        (["demo", "--resamples", "-3"], "0 or more"),
        (["reproduce", "iv2024", "--resamples", "100001"], "at most 100,000"),
        (["compare", "a", "b", "--resamples", "100000000000"], "at most 100,000"),
        (["baseline", "jaad", "x", "--seed", "-1"], "0 or more"),
        (["compare", "a", "b", "--seed", "-1"], "0 or more"),
        (["demo", "--seed", "-1"], "0 or more"),
        (["demo", "--seed", str(2**32)], "at most 4,294,967,295"),
        (["baseline", "jaad", "x", "--json", "."], "is a folder"),
    ],
)
def test_wrong_requests(
    roadaware: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROADAWARE_DATA_DIR", raising=False)
    done = roadaware(*words)
    assert done.code == 2
    assert says in done.err
    assert done.out == ""


@pytest.mark.parametrize("command", ["read", "audit", "baseline", "doctor"])
def test_a_wrong_path_says_what_is_there(roadaware: Command, tmp_path: Path, command: str) -> None:
    (tmp_path / "clips").mkdir()
    done = roadaware(command, "jaad", tmp_path)
    assert done.code == 3
    assert "clips" in done.err
    assert "annotations/" in done.err
    assert roadaware(command, "jaad", tmp_path / "absent").code == 3


@pytest.mark.slow
def test_read_counts_and_names_what_it_refused(roadaware: Command, demo_set: Demo, tmp_path: Path) -> None:
    root, facts = demo_set
    done = roadaware("read", "jaad", root, "-o", tmp_path / "tables")
    assert done.code == 0
    for words in ("3 refused", "second box", "upside down", "annotations/video_0031.xml"):
        assert words in done.out
    scenes = open_scenes(tmp_path / "tables")
    assert len(scenes.boxes) == facts.boxes
    again = roadaware("read", "jaad", tmp_path / "tables", "--json").data
    assert again["rows"]["boxes"] == facts.boxes
    assert again["splits"]["default/test"] == 9
    assert len(again["rejected"]) == 3


def test_strict_turns_what_was_refused_into_1(roadaware: Command, demo_set: Demo) -> None:
    done = roadaware("read", "jaad", demo_set[0], "--strict")
    assert done.code == 1
    assert "3 rows or files were refused" in done.err


def test_saved_tables_of_another_dataset_are_refused(
    roadaware: Command, demo_set: tuple[Path, DemoFacts], tmp_path: Path
) -> None:
    assert roadaware("read", "jaad", demo_set[0], "-o", tmp_path / "tables").code == 0
    done = roadaware("read", "pie", tmp_path / "tables")
    assert done.code == 3
    assert "expected tables of PIE, found those of JAAD" in done.err


def test_saved_tables_are_not_replaced_unless_asked(
    roadaware: Command, demo_set: Demo, tmp_path: Path
) -> None:
    words = ["read", "jaad", demo_set[0], "-o", tmp_path / "tables"]
    assert roadaware(*words).code == 0
    assert roadaware(*words).code == 2
    assert roadaware(*words, "--overwrite").code == 0


def test_audit_as_text_json_and_page(roadaware: Command, demo_set: Demo, tmp_path: Path) -> None:
    root, facts = demo_set
    page = tmp_path / "audit.html"
    done = roadaware("audit", "jaad", root, "--html", page, "--strict")
    assert done.code == 1
    assert "crossing-without-event" in done.out
    assert "identifier" in page.read_text()
    found = {item["name"]: item for item in roadaware("audit", "jaad", root, "--json").data["findings"]}
    planted = facts.counts()
    assert found["crosser-without-event"]["count"] == planted["crossing_without_event"]
    assert found["track-gaps"]["count"] == planted["track_gap"]


@pytest.mark.slow
def test_baseline_for_risk(roadaware: Command, demo_set: Demo, tmp_path: Path) -> None:
    words = ["baseline", "jaad", demo_set[0], "--task", "risk", "--model", "constant-velocity"]
    done = roadaware(*words, "--resamples", "20", "-o", tmp_path / "run", "--json", tmp_path / "found.json")
    assert done.code == 0
    assert "constant-velocity" in done.out
    found = json.loads((tmp_path / "found.json").read_text())["models"]["constant-velocity"]
    assert found["metrics"]["accuracy"] > 0.2
    assert (tmp_path / "run" / "constant-velocity" / "per_sample.parquet").is_file()
    assert roadaware("report", tmp_path / "run", "-o", tmp_path / "page.html").code == 0


def test_doctor_looks_at_the_machine(roadaware: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_DATA_DIR", "/nowhere")
    done = roadaware("doctor")
    assert done.code == 0
    assert "polars" in done.out
    assert "there is no such folder" in done.out
    assert roadaware("doctor", "--json").data["roadaware"] == __version__


def test_doctor_finds_nothing_wrong_with_the_demo(roadaware: Command, demo_set: Demo) -> None:
    done = roadaware("doctor", "jaad", demo_set[0], "--json")
    assert [item["code"] for item in done.data["diagnoses"]] == ["rejected"]


def test_doctor_explains_scores(roadaware: Command, demo_set: Demo, tmp_path: Path) -> None:
    files = write_files(tmp_path)
    files.scores.write_text("".join(f"{100 * (1 - value)}\n" for value in files.values[:, 0]))
    words = ["doctor", "pedestrians", "--scores", files.scores, "--samples", files.samples]
    done = roadaware(*words, "--data", f"jaad={demo_set[0]}", "--strict")
    assert done.code == 1
    for says in ("percent", "reversed", "are not in JAAD"):
        assert says in done.out or says in done.err or "not crossing" in done.out
    assert roadaware(*words, "--data", "jad=x").code == 2


def test_reproduce_without_data_says_what_is_needed(roadaware: Command, tmp_path: Path) -> None:
    done = roadaware("reproduce", "iv2024", "--data", tmp_path)
    assert done.code == 3
    assert "jaad/" in done.err


def test_the_help_of_an_option_says_one_default() -> None:
    """Where the words of an option say what holds by default, nothing is added to them."""

    def list_arguments(app: App) -> Iterator[Any]:
        under = [name for name in app if not name.startswith("-")]
        for name in under:
            yield from list_arguments(app[name])
        if not under:
            yield from app.assemble_argument_collection()

    said = [
        # Of nothing at all nothing is shown, unless a function does it.
        (
            argument.name,
            argument.show_default
            and (argument.show_default is not True or argument.field_info.default is not None),
        )
        for argument in list_arguments(build_app("*"))
        if "[default: " in (argument.parameter.help or "")
    ]
    assert len(said) > 50
    assert [name for name, shown in said if shown] == []
