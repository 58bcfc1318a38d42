"""Outputs never stand in the place of inputs, and nothing is written before that is known."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path
from typing import Annotated

import pytest
from event_files import Events
from small_files import Command, Files, write_files

from roadaware.cli import main, outputs
from roadaware.cli.outputs import check_paths
from roadaware.demo_data import DemoFacts
from roadaware.errors import DiskError, InputError, UsageError

SCORED: list[object] = ["--samples", "action_samples.csv", "--task", "action"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two runs."""
    base = tmp_path_factory.mktemp("base")
    files = write_files(base)
    words = ["evaluate", "pedestrians", "--scores", files.scores, "--samples", files.samples]
    assert main([str(word) for word in [*words, "--task", "action", "-o", base / "runs" / "run"]]) == 0
    shutil.copytree(base / "runs" / "run", base / "runs" / "other")
    return base / "runs"


@pytest.fixture
def place(
    files: Files, runs: Path, demo_set: tuple[Path, DemoFacts], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with scores, samples, two runs, a dataset as a folder and as a zip, and links."""
    folder = files.scores.parent
    monkeypatch.chdir(folder)
    shutil.copytree(runs, folder / "runs")
    with zipfile.ZipFile("data.zip", "w") as archive:
        archive.writestr("a", "b")
    (folder / "data").mkdir()
    (folder / "data" / "set").symlink_to(demo_set[0])
    (folder / "link.csv").symlink_to("action.csv")
    os.link("action.csv", "same.csv")
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


EVALUATE = ["evaluate", "pedestrians", "--scores", "action.csv", *SCORED]
CLASHES = {
    "zip": ["audit", "jaad", "data.zip", "--html", "data.zip"],
    "zip as json": ["read", "jaad", "data.zip", "--json", "data.zip"],
    "scores": [*EVALUATE, "--json", "action.csv"],
    "samples": [*EVALUATE, "--json", "./runs/../action_samples.csv"],
    "link": [*EVALUATE, "--json", "link.csv"],
    "hard link": [*EVALUATE, "--json", "same.csv"],
    "first of two": ["compare", "action.csv", "same.csv", *SCORED, "--json", "action.csv"],
    "a run's results": ["report", "runs/run", "-o", "runs/run/results.json"],
    "a run's rows": ["report", "runs/run", "-o", "p.html", "--json", "runs/run/per_sample.parquet"],
    "a member's results": ["report", "runs", "-o", "runs/other/results.json"],
    "of compared runs": ["compare", "runs/run", "runs/other", "--html", "runs/other/report.html"],
    "a file of the data": ["audit", "jaad", "data/set", "--html", "data/set/annotations/video_0001.xml"],
    "data itself": ["read", "jaad", "data/set", "-o", "data/set", "--overwrite"],
    "data of the doctor": ["doctor", "pedestrians", "--data", "jaad=data.zip", "--json", "data.zip"],
    "outputs alike": ["report", "runs/run", "-o", "p.html", "--json", "p.html"],
    "output in output": [*EVALUATE, "-o", "new", "--json", "new/results.json"],
}


@pytest.mark.parametrize("words", CLASHES.values(), ids=CLASHES)
def test_an_output_over_an_input_is_a_wrong_request(
    roadaware: Command, place: Path, words: list[object]
) -> None:
    before = everything(place)
    done = roadaware(*words)
    assert done.code == 2
    assert "name another place" in done.err or "name a place outside" in done.err
    assert everything(place) == before


def test_the_data_folder_of_the_environment_is_an_input(
    roadaware: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROADAWARE_DATA_DIR", str(place / "data" / "set"))
    done = roadaware("reproduce", "iv2024", "--html", "data/set/annotations/video_0001.xml")
    assert done.code == 2
    assert "written over the input" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["report", "runs/run", "-o", "runs/run/more.html"],
        ["report", "runs", "-o", "runs/all.html"],
        [*EVALUATE, "-o", "fresh", "--json", "o.json"],
        [*EVALUATE, "--json", "/dev/null"],
    ],
)
def test_outputs_beside_inputs_are_fine(roadaware: Command, place: Path, words: list[object]) -> None:
    assert roadaware(*words).code == 0


def checked(**arguments: object) -> None:
    """The check, of a command with these arguments; `out`, `folder` and `html` are outputs."""
    marks = {"out": outputs.FOLDER, "folder": outputs.FOLDER, "html": outputs.FILE}

    def command() -> None:
        """A command of no parameters but these."""

    command.__annotations__ = {
        name: Annotated[Path, marks[name]] if name in marks else Path for name in arguments
    }
    check_paths(command, arguments)


def test_a_new_page_may_lie_in_the_folder_of_the_data(tmp_path: Path) -> None:
    checked(path=tmp_path, html=tmp_path / "audit.html")
    (tmp_path / "audit.html").touch()
    checked(path=tmp_path, html=tmp_path / "audit.html")


def test_nothing_that_stands_in_a_folder_of_films_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").touch()
    with pytest.raises(UsageError, match="written over the input"):
        checked(videos=[tmp_path], html=tmp_path / "film.mp4")


@pytest.mark.parametrize("given", ["truth", "detections", "predictions"])
@pytest.mark.parametrize("output", ["out", "folder", "html"])
def test_nothing_new_may_lie_in_a_folder_of_truth_or_predictions(
    tmp_path: Path, given: str, output: str
) -> None:
    (tmp_path / "in").mkdir()
    value = [tmp_path / "in"] if given == "predictions" else tmp_path / "in"
    for place in (tmp_path / "in" / "new", tmp_path / "in" / "a" / "new.html"):
        with pytest.raises(UsageError, match="inside the input"):
            checked(**{given: value, output: place})
    checked(**{given: value, output: tmp_path / "into"})


@pytest.mark.parametrize("text", ["{}", "name={}", "one={},two=/nowhere"])
def test_inputs_that_are_named_in_words_are_inputs(tmp_path: Path, text: str) -> None:
    (tmp_path / "in").touch()
    said = text.format(tmp_path / "in")
    for name in ("source", "data", "semantics", "domains"):
        with pytest.raises(UsageError, match="written over the input"):
            checked(**{name: said, "html": tmp_path / "in"})
    checked(source="rtsp://camera/in", html=tmp_path / "in")


def test_an_output_that_is_replaced_may_not_hold_an_input(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    checked(videos=tmp_path / "out" / "film.mp4", out=tmp_path / "out")
    with pytest.raises(UsageError, match="holds the input"):
        checked(videos=tmp_path / "out" / "film.mp4", out=tmp_path / "out", overwrite=True)


def test_names_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("loop", "nul\0", "x" * 256, f"new/{'x' * 256}/y"):
        with pytest.raises(InputError):
            checked(path=tmp_path / name)
        with pytest.raises(DiskError):
            checked(html=tmp_path / name)


def test_commands_of_road_events_write_nothing_into_their_inputs(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    held = tmp_path / "events"
    shutil.copytree(events.folder, held / "detections")
    shutil.copy(events.truth, held / "road.json")
    before = everything(held)
    evaluate = ["evaluate", "road", "--truth", held, "--predictions", held / "detections"]
    for words in (
        ["link", held / "detections", "--out", held / "detections" / "linked"],
        ["link", held / "detections", "--out", tmp_path / "o", "--json", held / "detections" / "l.json"],
        ["link", held / "detections", "--truth", held, "-o", held / "linked"],
        [*evaluate, "-o", held / "run"],
        [*evaluate, "--json", held / "detections" / "found.json"],
    ):
        done = roadaware(*words)
        assert done.code == 2, words
        assert "name another place" in done.err
    assert everything(held) == before
    assert not (tmp_path / "o").exists()


LONG = "x" * 300


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["compare", LONG, "b"], 3),
        (["read", "jaad", LONG], 3),
        (["report", LONG], 3),
        (["doctor", "pedestrians", "--data", f"jaad={LONG}"], 3),
        (["doctor", "--json", LONG], 4),
        (["demo", "-o", f"new/{LONG}"], 4),
        (["audit", "jaad", "data/set", "--html", LONG], 4),
        (["watch", "x" * 5000], 3),
        (["watch", "short," * 800], 3),
        (["watch", f"{LONG}=short"], 3),
    ],
)
def test_a_name_that_is_too_long_is_nobodys_fault_but_its_own(
    roadaware: Command, place: Path, words: list[str], code: int
) -> None:
    done = roadaware(*words)
    assert done.code == code
    assert "too long" in done.err
