"""Flickr-SoundNet: boxes with their annotators, what the published evaluator takes, strict XML."""

from __future__ import annotations

from pathlib import Path

import damage
import pytest
from lxml import etree
from sets import SETS, maker, rows_add_up

from roadaware.errors import InputError
from roadaware.scenes.tables import Scenes

FLICKR = SETS["flickr_soundnet"]
make = maker("flickr_soundnet")
CORNERS = ("x1_px", "y1_px", "x2_px", "y2_px")


def read_text(tmp_path: Path, text: str, name: str = "7.xml") -> Scenes:
    (tmp_path / name).write_text(text)
    scenes = FLICKR.read(tmp_path / name)
    rows_add_up(scenes)
    return scenes


def published_boxes(path: Path) -> list[tuple[float, ...]]:
    """Plain walk: of each block each `bbox`, all children but the first as whole numbers."""
    return [
        tuple(float(int(child.text or "")) for child in list(element)[1:])
        for block in etree.parse(path).getroot()
        for element in block
        if element.tag == "bbox"
    ]


def test_a_set_by_hand(tmp_path: Path) -> None:
    scenes = FLICKR.read(make.make(tmp_path / "set"))
    assert scenes.videos.rows()[0] == ("10000130166", 256, 256, 1)
    assert scenes.sounds.rows()[0] == (0, "10000130166", "10000130166", 0)
    first = scenes.boxes.filter(sound=0)
    assert first["annotator"].to_list() == ["1", "2", "2", "3"]
    assert first.select(CORNERS).row(0) == (20, 30, 180, 200)
    for place, path in enumerate(sorted((tmp_path / "set").iterdir())):
        assert scenes.boxes.filter(sound=place).select(CORNERS).rows() == published_boxes(path)


def test_annotators_may_be_named_in_many_ways(tmp_path: Path) -> None:
    box = "<bbox><i>1</i><x1>1</x1><y1>2</y1><x2>3</x2><y2>4</y2></bbox>"
    text = (
        f"<annotations><annotator7>{box}</annotator7><annotation id='Kim'>{box}</annotation>"
        f"<annotation><name>Lee</name>{box}</annotation><annotation>{box}</annotation></annotations>"
    )
    assert read_text(tmp_path, text).boxes["annotator"].to_list() == ["annotator7", "Kim", "Lee", "4"]


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        (("9", "2", "3", "4"), "upside down"),
        (("x", "2", "3", "4"), 'no finite number: "x"'),
        (("1_0", "2", "30", "4"), "no finite number"),
        (("nan", "2", "3", "4"), "no finite number"),
        (("1e400", "2", "3", "4"), "no finite number"),
        (("1", "2", "3"), "four numbers and has 3"),
    ],
)
def test_bad_boxes_are_refused(tmp_path: Path, corners: tuple[str, ...], reason: str) -> None:
    good = "<bbox><i>1</i><a>1</a><b>2</b><c>3</c><d>4</d></bbox>"
    bad = "<bbox><i>1</i>" + "".join(f"<c>{corner}</c>" for corner in corners) + "</bbox>"
    scenes = read_text(tmp_path, f"<annotations><annotation>{bad}{good}</annotation></annotations>")
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("boxes", "7, frame 0, annotator 1")
    assert reason in row["reason"]
    assert len(scenes.boxes) == 1


def test_pictures_without_boxes_are_kept_and_counted(tmp_path: Path) -> None:
    scenes = read_text(tmp_path, "<annotations><annotation/></annotations>")
    assert len(scenes.sounds) == 1
    assert [each["what"] for each in scenes.meta.notes["warnings"]] == ["images without a box, kept"]


def test_boxes_beyond_the_grid_are_kept_and_counted(tmp_path: Path) -> None:
    text = make.picture([[(200, 10, 300, 20)]])
    scenes = read_text(tmp_path, text)
    assert scenes.boxes["x2_px"].to_list() == [300]
    assert "out of the grid" in scenes.meta.notes["warnings"][0]["what"]


def test_foreign_and_hostile_xml_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no <bbox> in a block"):
        read_text(tmp_path, "<html><body/></html>")
    for attack in (damage.laughs, damage.quadratic, damage.deep):
        (tmp_path / "8.xml").write_bytes(attack(make.picture([[(1, 2, 3, 4)]]).encode()[39:]))
        with pytest.raises(InputError):
            FLICKR.read(tmp_path / "8.xml")
