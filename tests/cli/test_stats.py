"""`stats`: the counts that the tables hold, as text, JSON and page."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from event_files import Events
from small_files import Command

from roadaware import Scenes
from roadaware.scenes.store import save


def test_counts_are_those_of_the_tables(roadaware: Command, events: Events) -> None:
    done = roadaware("stats", "road", events.truth, "--json")
    assert done.code == 0
    assert done.data["compared_with_print"] is False
    rows = {(row["kind"], row["label"], row["split"]): row for row in done.data["counts"]}
    names = events.scenes.meta.vocabularies["agent"]
    labels = events.scenes.labels.filter(pl.col("kind").cast(pl.String) == "agent")["label"].to_list()
    for place, name in enumerate(names):
        assert rows["agent", name, "all"]["boxes"] == labels.count(place)
    parts = sum(rows["agent", None, f"val_{k}"]["boxes"] for k in (1, 2, 3))
    assert parts + rows["agent", None, "test"]["boxes"] == rows["agent", None, "all"]["boxes"]


def test_the_text_is_in_the_form_of_print(roadaware: Command, events: Events) -> None:
    done = roadaware("stats", "road", events.truth, "--kinds", "agent", "av_action")
    assert done.code == 0
    assert "log scale" in done.out
    assert "AV-Stop" in done.out
    assert "Ped-Mov" not in done.out
    bars = {line.split()[0]: line.count("#") for line in done.out.splitlines() if "#" in line}
    assert max(bars.values()) == 24


def test_tables_made_in_python_have_no_name_and_are_counted(roadaware: Command, tmp_path: Path) -> None:
    boxes, frames = np.array([[1, 2, 30, 40], [2, 2, 31, 40], [5, 5, 9, 9]]), np.array([0, 1, 1])
    scenes = Scenes.from_numpy(
        boxes, frames, "v", classes=["person", "car"], labels=[0, 0, 1], tracks=[1, 1, 2]
    )
    save(scenes, tmp_path / "mine")
    done = roadaware("stats", "yolo", tmp_path / "mine", "--json")
    assert done.code == 0
    rows = {
        row["label"]: (row["boxes"], row["tubes"]) for row in done.data["counts"] if row["split"] == "all"
    }
    assert rows == {"person": (2, 1), "car": (1, 1), None: (3, 2)}


@pytest.mark.slow
def test_a_folder_holds_counts_and_a_page_with_bars(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    folder = tmp_path / "counts"
    assert roadaware("stats", "road", events.truth, "-o", folder).code == 0
    assert {path.name for path in folder.iterdir()} == {"results.json", "counts.parquet", "report.html"}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Classes of agent" in page
    assert "mathdefault" not in page
    assert roadaware("stats", "road", events.truth, "-o", folder).code == 2
    assert json.loads((folder / "results.json").read_text())["videos"] == 4
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    (other / "report.html").write_text("an older page")
    assert roadaware("stats", "road", events.truth, "-o", other, "--overwrite").code == 0
    for path in folder.iterdir():
        assert (other / path.name).read_bytes() == path.read_bytes(), "equal input gives equal bytes"


def test_pedestrian_sets_are_counted_too(roadaware: Command, demo_set: tuple[Path, object]) -> None:
    done = roadaware("stats", "jaad", demo_set[0], "--json")
    assert done.code == 0
    assert done.data["dataset"] == "JAAD"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["stats", "rod", "x.json"], 2, "did you mean road?"),
        (["stats", "road", "absent.json"], 3, "absent.json"),
        (["stats", "road", "TRUTH", "--kinds", "agents"], 2, "there are agentness, agent"),
        (["stats", "road", "TRUTH", "-o", "."], 2, "holds other things"),
    ],
)
def test_wrong_requests(
    roadaware: Command,
    events: Events,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter.txt").write_text("dear")
    done = roadaware(*(events.truth if word == "TRUTH" else word for word in words))
    assert done.code == code
    assert says in done.err
    assert done.out == ""


@pytest.mark.parametrize("content", ["", "[]", '{"db": 1}', '{"db": {}', "nul\x00"])
def test_a_damaged_file_is_one_message(roadaware: Command, tmp_path: Path, content: str) -> None:
    path = tmp_path / "road.json"
    path.write_text(content)
    done = roadaware("stats", "road", path, "--json", tmp_path / "out.json")
    assert done.code == 3
    assert "road.json" in done.err
    assert not (tmp_path / "out.json").exists()
