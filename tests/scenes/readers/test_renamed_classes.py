"""Classes of a set of one's own called otherwise: by an option, or by `dataset.toml`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roadaware.cli import main
from roadaware.datasets import read, read_predictions
from roadaware.errors import InputError, UsageError
from roadaware.scenes.tables import Predictions, Scenes

LINES = ["frame,id,x1,y1,x2,y2,label", "0,1,10,10,20,30,person", "0,2,40,10,80,30,car", "1,1,11,10,21,30,child",
         "1,2,41,10,81,30,van", "1,3,1,1,9,9,dog"]  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "drive.csv"
    path.write_text("\n".join(LINES) + "\n")
    return path


def list_classes(tables: Scenes | Predictions) -> list[str]:
    """The class of each box, in the order of boxes."""
    words = tables.meta.vocabularies["agent"]
    return [words[row["label"]] for row in tables.labels.sort("box").iter_rows(named=True)]


@pytest.mark.parametrize(
    "given",
    ["person=Ped, child=Ped,car=Car,van=Car", {"person": "Ped", "child": "Ped", "car": "Car", "van": "Car"}],
)
def test_several_classes_come_to_one(file: Path, given: Any) -> None:
    plain, renamed = read("csv", file), read("csv", file, rename=given)
    assert list_classes(plain) == ["person", "car", "child", "van", "dog"]
    assert list_classes(renamed) == ["Ped", "Car", "Ped", "Car", "dog"]
    assert renamed.meta.vocabularies == {"agent": ("Ped", "Car", "dog")}
    # Tracks whose boxes now have one class have it themselves.
    words = renamed.meta.vocabularies["agent"]
    assert plain.tube_labels.sort("tube").height == 1
    assert [words[row["label"]] for row in renamed.tube_labels.sort("tube").iter_rows(named=True)] == [
        "Ped",
        "Car",
        "dog",
    ]
    assert renamed.boxes.equals(plain.boxes)


def test_the_file_beside_the_annotations_says_it_too_and_what_fits_nothing_is_told(file: Path) -> None:
    facts = file.parent / "dataset.toml"
    facts.write_text('rename = {person = "Ped", truck = "LarVeh"}\n')
    told = {each["what"]: each["example"] for each in read("csv", file).meta.notes["warnings"]}
    assert told["names to rename of which there is no class"] == "truck"
    assert told["classes that are not renamed"] == "car, child, van, dog"
    assert "Ped" in list_classes(read("csv", file))
    facts.write_text('rename = {person = "Walker"}\n')
    assert "Walker" in list_classes(read("csv", file))
    assert "Mine" in list_classes(read("csv", file, rename="person=Mine"))
    facts.write_text("rename = 3\n")
    with pytest.raises(InputError, match="rename names classes otherwise"):
        read("csv", file)


def test_of_two_scores_of_a_box_the_better_one_stays(tmp_path: Path) -> None:
    from roadaware.scenes.tables import rename_labels

    (tmp_path / "drive.csv").write_text(
        "frame,id,x1,y1,x2,y2,label,score\n0,1,10,10,20,30,person,0.4\n0,2,1,1,9,9,car,0.8\n"
    )
    found = read_predictions("csv", tmp_path, rename="person=Ped")
    assert list_classes(found) == ["Ped", "car"]
    both = rename_labels(found, {"car": "Ped"})
    assert both.meta.vocabularies == {"agent": ("Ped",)}
    assert both.labels["score"].round(4).to_list() == [0.4, 0.8]
    # One box that is somebody by .4 and a car by .8.
    twice = found.with_tables(labels=found.labels.with_columns(box=found.labels["box"][0]))
    assert rename_labels(twice, {"car": "Ped"}).labels["score"].round(4).to_list() == [0.8]


@pytest.mark.parametrize(
    "given", ["person", "=Ped", "person=", 7, ["a"], {"person": 3}, {"person": "x" * 300}]
)
def test_what_is_no_list_of_names_is_refused(file: Path, given: Any) -> None:
    with pytest.raises(UsageError, match="rename names classes otherwise"):
        read("csv", file, rename=given)


def test_coco_is_renamed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["pedestrian", "automobile"]
    (tmp_path / "truth.json").write_text(json.dumps({
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 50}],
        "categories": [{"id": n, "name": name} for n, name in enumerate(names)],
        "annotations": [{"id": n, "image_id": 1, "category_id": n, "bbox": [10 * n, 5, 9, 20], "area": 180, "iscrowd": 0}
                        for n in range(2)],
    }))  # fmt: skip
    assert main(["read", "coco", str(tmp_path / "truth.json"), "--option", "rename=pedestrian=Ped,automobile=Car", "--output",
                 str(tmp_path / "tables"), "--strict", "--quiet"]) == 0  # fmt: skip
    assert main(["stats", "coco", str(tmp_path / "tables")]) == 0
    shown = capsys.readouterr().out
    assert "Ped" in shown
    assert "automobile" not in shown


def test_a_key_of_endless_parts_is_refused_before_it_is_parsed(file: Path) -> None:
    facts = file.parent / "dataset.toml"
    for text in (
        ".".join("a" * 30_000) + " = 1",
        "[" + '"a".' * 30_000 + '"a"]',
        'x = "' + "a" * (1 << 20) + '"',
    ):
        facts.write_text(text)
        with pytest.raises(InputError, match="up to 100 dots in a line outside of texts"):
            read("csv", file)
    facts.write_text('rename = {person = "' + "P." * 100 + '"}\n')
    assert "P." * 100 in list_classes(read("csv", file))
