"""ROAD: boxes, rows, videos and files that do not hold are cut or refused, one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import damage
import polars as pl
import pytest
from road_files import ROAD, Content, head, make, read_from
from sets import edit

from roadaware.errors import InputError


@pytest.fixture
def content() -> Content:
    """One video of twelve frames."""
    found = head()
    found["db"]["v"] = make.video_entry(12, ["train_1", "val_2"], 0)
    return found


CUT = {
    "over the right edge": ([0.5, 0.5, 1.009, 0.9], [0.5, 0.5, 1.0, 0.9]),
    "over the left and upper edge": ([-0.004, -0.01, 0.2, 0.3], [0, 0, 0.2, 0.3]),
    "whole numbers": ([0, 0, 1, 1], [0, 0, 1, 1]),
}


@pytest.mark.parametrize("name", CUT)
def test_boxes_are_cut_at_the_edge(tmp_path: Path, content: Content, name: str) -> None:
    box, inside = CUT[name]
    content["db"]["v"]["frames"]["2"]["annos"]["b000002"]["box"] = box
    scenes = read_from(tmp_path, content)
    held = scenes.boxes.filter(frame=1).row(0, named=True)
    sides = (1280, 960, 1280, 960)
    found = [held[f"{c}_px"] / side for c, side in zip(("x1", "y1", "x2", "y2"), sides, strict=True)]
    assert found == pytest.approx(inside)
    assert scenes.meta.notes["boxes_cut_at_the_edge"] == int(box != inside)
    assert scenes.rejected.is_empty()


REFUSED = {
    "far outside": ([0.5, 0.5, 1.02, 0.9], "outside the image"),
    "far outside above": ([0.5, -0.5, 0.6, 0.9], "outside the image"),
    "upside down": ([0.5, 0.9, 0.6, 0.5], "upside down or empty"),
    "empty": ([0.5, 0.5, 0.5, 0.9], "upside down or empty"),
    "empty once cut": ([1.001, 0.5, 1.002, 0.9], "upside down or empty"),
    "three numbers": ([0.5, 0.5, 0.6], "four numbers and is 3"),
    "five numbers": ([0.5, 0.5, 0.6, 0.7, 0.8], "four numbers and is 5"),
    "no list": ("0.5 0.5 0.6 0.7", "four numbers"),
    "no box": (None, "four numbers and is null"),
    "a text in it": ([0.5, "0.5", 0.6, 0.7], '"0.5", which is no finite number'),
    "a boolean in it": ([0.5, True, 0.6, 0.7], "true, which is no finite number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_boxes_are_refused_and_leave_their_tubes(tmp_path: Path, content: Content, name: str) -> None:
    box, reason = REFUSED[name]
    content["db"]["v"]["frames"]["2"]["annos"]["b000002"]["box"] = box
    scenes = read_from(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("boxes", "v, frame 2, b000002")
    assert reason in row["reason"]
    (warning,) = [w for w in scenes.meta.notes["warnings"] if "frames of tubes" in w["what"]]
    assert warning["count"] == 4  # of the agent's, action's, location's and duplex's tubes
    tube = scenes.tubes.filter((pl.col("name") == "10284a58-002-01") & (pl.col("kind") == "agent"))
    assert tube["spans"].to_list() == [[[2, 12]]]


def test_boxes_with_labels_of_a_kind_without_tubes_are_wondered_at(tmp_path: Path, content: Content) -> None:
    content["db"]["v"]["loc_tube"] = content["db"]["v"].pop("loc_tubes")
    scenes = read_from(tmp_path, content)
    said = {"what": "videos without loc_tubes whose boxes have loc_ids", "count": 1, "example": "v"}
    assert said in scenes.meta.notes["warnings"]


def set_at(*path: str, value: Any) -> Callable[[Content], None]:
    def change(content: Content) -> None:
        inner = content["db"]["v"]
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value

    return change


ROWS = {
    "a frame beyond the end": (set_at("frames", "15", value={}), "frames", "outside the video"),
    "a frame with no number": (set_at("frames", "1.5", value={}), "frames", "outside the video"),
    "a frame with a zero before it": (set_at("frames", "01", value={}), "frames", "outside the video"),
    "a frame 2^63": (set_at("frames", str(1 << 63), value={}), "frames", "outside the video"),
    "a frame that is a list": (set_at("frames", "14", value=[]), "frames", "is a list"),
    "annos that are a list": (set_at("frames", "1", "annos", value=[]), "boxes", "is a list"),
    "a box that is a list": (set_at("frames", "1", "annos", "x", value=[]), "boxes", "is a list"),
    "a label out of range": (
        set_at("frames", "2", "annos", "b000002", "loc_ids", value=[4]),
        "labels",
        "4 is no loc",
    ),
    "a label below 0": (
        set_at("frames", "2", "annos", "b000002", "loc_ids", value=[-1]),
        "labels",
        "-1 is no loc",
    ),
    "a label in words": (
        set_at("frames", "2", "annos", "b000002", "agent_ids", value=["0"]),
        "labels",
        '"0" is no',
    ),
    "a label of 1.0": (
        set_at("frames", "2", "annos", "b000002", "agent_ids", value=[1.0]),
        "labels",
        "1.0 is no",
    ),
    "a label without list": (
        set_at("frames", "2", "annos", "b000002", "agent_ids", value={}),
        "labels",
        "an object",
    ),
    "a huge label": (
        set_at("frames", "2", "annos", "b000002", "agent_ids", value=[10**30]),
        "labels",
        "beyond 64",
    ),
    "an av action out of range": (
        set_at("frames", "2", "av_action_ids", value=[9]),
        "frame_labels",
        "9 is no",
    ),
    "a tube that is a list": (set_at("loc_tubes", "x", value=[]), "tubes", "is a list"),
    "a tube without frames": (set_at("loc_tubes", "x", value={"label_id": 0}), "tubes", "has no 'annos'"),
    "an empty tube": (
        set_at("loc_tubes", "x", value={"label_id": 0, "annos": {}}),
        "tubes",
        "no frame that can",
    ),
    "a tube with a strange label": (
        set_at("loc_tubes", "10284a58-002-01-3", "label_id", value=None),
        "tubes",
        "null is no loc",
    ),
    "an av tube beyond the end": (
        set_at("av_action_tubes", "x", value={"label_id": 0, "frames": ["15"]}),
        "tubes",
        "no number in 1 to 14",
    ),
    "an av tube of a boolean": (
        set_at("av_action_tubes", "x", value={"label_id": 0, "frames": [True]}),
        "tubes",
        "no number in 1 to 14",
    ),
    "tubes that are a list": (set_at("loc_tubes", value=[]), "tubes", "is a list"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_bad_rows_are_refused_one_by_one(tmp_path: Path, content: Content, name: str) -> None:
    change, table, reason = ROWS[name]
    change(content)
    scenes = read_from(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert row["table"] == table
    assert row["item"].startswith("v, ")
    assert reason in row["reason"]


VIDEOS = {
    "no frames": (set_at("frames", value=None), "'frames' should be an object and is null"),
    "no length": (set_at("numf", value=None), "'numf' should be the number of frames"),
    "a length of 0": (set_at("numf", value=0), "'numf' should be the number of frames"),
    "a length of 10^12": (set_at("numf", value=10**12), "'numf' should be the number of frames"),
    "a length in words": (set_at("numf", value="14"), '"14"'),
    "splits that are no names": (set_at("split_ids", value=[1]), "'split_ids' should hold texts"),
}


@pytest.mark.parametrize("name", VIDEOS)
def test_a_bad_video_is_refused_among_others(tmp_path: Path, content: Content, name: str) -> None:
    change, reason = VIDEOS[name]
    change(content)
    with pytest.raises(InputError, match=r"no video can be read(.|\n)*"):
        read_from(tmp_path, content)
    content["db"]["w"] = make.video_entry(12, ["train_1"], 1)
    scenes = read_from(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("videos", "v")
    assert reason in row["reason"]
    assert scenes.videos["video"].to_list() == ["w"]


TOPS: dict[str, tuple[Callable[[Content], Any], str]] = {
    "no kinds": (lambda c: c.pop("label_types"), "no 'label_types'"),
    "kinds in an object": (lambda c: c.update(label_types={}), "should be a list and is an object"),
    "no labels": (lambda c: [c.pop("loc_labels"), c.pop("all_loc_labels")], "neither 'all_loc_labels' nor"),
    "a used label twice": (lambda c: c["loc_labels"].append("Jun"), "'loc_labels' holds a label twice"),
    "labels that are numbers": (lambda c: c.update(loc_labels=[1, 2]), "'loc_labels' should hold texts"),
    "no videos": (lambda c: c.pop("db"), "'db' holds no video"),
    "videos in a list": (lambda c: c.update(db=[]), "'db' should be an object and is a list"),
    "too few children": (lambda c: c["duplex_childs"].pop(), "3 entries; there are 4 used labels and 5"),
    "children out of range": (lambda c: c["duplex_childs"].__setitem__(0, [9, 0]), "holds 9, 0"),
    "children of another number": (lambda c: c["triplet_childs"].__setitem__(0, [0, 0]), "holds 0, 0"),
}


@pytest.mark.parametrize("name", TOPS)
def test_a_file_whose_labels_cannot_be_told_is_an_error(tmp_path: Path, content: Content, name: str) -> None:
    change, reason = TOPS[name]
    change(content)
    with pytest.raises(InputError, match=reason) as caught:
        read_from(tmp_path, content)
    assert "road_trainval_v1.0.json" in str(caught.value)


def test_hostile_names_stay_printable_or_as_they_are(tmp_path: Path, content: Content) -> None:
    entry = content["db"].pop("v")
    content["db"]["v\u202e\n\ud800"] = entry
    entry["agent_tubes"]["<script>\ud800"] = entry["agent_tubes"].pop("e97b3e4c-001-01")
    content["loc_labels"].append("\ud800")
    scenes = read_from(tmp_path, content)
    assert scenes.videos["video"].to_list() == ["v\\u202e\\n\\ud800"]
    assert scenes.tubes.filter(name="<script>\\ud800").height == 1
    assert scenes.meta.vocabularies["location"][-1] == "\\ud800"


def test_what_is_cut_off_in_the_middle_of_a_tube_costs_the_file(tmp_path: Path) -> None:
    root = ROAD.make(tmp_path / "set")
    edit(root / make.MAIN, lambda data: damage.swap(data, rb'"loc_tubes": \{', b'"loc_tubes": {"x'))
    assert "at byte" in ROAD.refusal(root)
