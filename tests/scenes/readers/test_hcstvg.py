"""HC-STVG in its four forms: the same sentences and boxes, frames from 0, and what is refused or counted."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from sets import SETS, maker, rows_add_up

from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.errors import InputError, UsageError
from roadaware.scenes.tables import Scenes

HCSTVG = SETS["hcstvg"]
make = maker("hcstvg")


def read_content(tmp_path: Path, content: Any, name: str = "test.json", **options: Any) -> Scenes:
    make.write(tmp_path / name, content)
    scenes = HCSTVG.read(tmp_path / name, **options)
    rows_add_up(scenes)
    return scenes


def warnings(scenes: Scenes) -> dict[str, int]:
    return {warning["what"]: warning["count"] for warning in scenes.meta.notes["warnings"]}


@pytest.fixture
def files() -> dict[str, Any]:
    """Raw annotations of two videos: frames 4..11 of 12 and 2..13 of 14, counted from 1."""
    return {"a_b.mp4": make.raw(12), "c.mp4": make.raw(14, start=2)}


def test_a_raw_sentence_by_hand(tmp_path: Path, files: dict[str, Any]) -> None:
    scenes = read_content(tmp_path, files)
    columns = ("video", "name", "number", "sentence_kind", "tube", "start_frame", "end_frame")
    assert scenes.queries.select(columns).rows() == [
        ("a_b", "a_b.mp4", 0, "declarative", 0, 3, 11),
        ("c", "c.mp4", 1, "declarative", 1, 1, 13),
    ]
    assert scenes.queries["text"][0] == "The man in the red coat walks to the door."
    assert scenes.videos.select("video", "width_px", "height_px", "n_frames", "splits").row(0) == (
        "a_b",
        640,
        360,
        12,
        ["test"],
    )
    first = scenes.boxes.filter(tube=0)
    assert first["frame"].to_list() == list(range(3, 11))
    assert first.select("x1_px", "y1_px", "x2_px", "y2_px").row(1) == (103.5, 40.25, 163.5, 190.75)
    assert scenes.meta.notes["first_frame"] == 1


def test_the_four_forms_tell_the_same(tmp_path: Path, files: dict[str, Any]) -> None:
    raw = read_content(tmp_path, files)
    second = read_content(tmp_path, {"a_b.mp4": make.raw_2(12), "c.mp4": make.raw_2(14, start=2)})
    processed = read_content(tmp_path, make.processed(files), "test_proc.json")
    official = read_content(tmp_path, make.official(files), "hcvg_test.json")
    assert second == raw.with_tables(meta=second.meta)
    for scenes in (processed, official):
        assert scenes.boxes.equals(raw.boxes)
        columns = ("video", "tube", "start_frame", "end_frame", "number")
        assert scenes.queries.select(columns).equals(raw.queries.select(columns))
        assert scenes.meta.notes["first_frame"] == 1
        assert not warnings(scenes)
    assert processed.queries["name"].to_list() == ["0", "1"]
    assert processed.videos["path"].to_list() == ["0/a_b.mp4", "0/c.mp4"]
    assert official.queries["text"].to_list() == [None, None]
    assert official.videos["n_frames"].to_list() == [None, None]


def test_all_forms_are_recognised(tmp_path: Path, files: dict[str, Any]) -> None:
    second = {name: make.raw_2(12) for name in files}
    for content in (files, second, make.processed(files), make.official(files)):
        make.write(tmp_path / "a.json", content)
        assert detect_dataset_format(tmp_path / "a.json") == "hcstvg"


def test_corners_are_sums_in_double_precision(tmp_path: Path, files: dict[str, Any]) -> None:
    files["c.mp4"]["bbox"][0] = [0.1, 0.7, 0.2, 0.1]
    box = read_content(tmp_path, files).boxes.filter(tube=1).row(0, named=True)
    assert (box["x1_px"], box["x2_px"], box["y2_px"]) == (0.1, 0.1 + 0.2, 0.7 + 0.1)


def test_a_file_that_names_frame_0_counts_from_0(tmp_path: Path, files: dict[str, Any]) -> None:
    files["c.mp4"]["st_frame"] = 0
    scenes = read_content(tmp_path, files)
    assert scenes.meta.notes["first_frame"] == 0
    assert scenes.queries["start_frame"].to_list() == [4, 0]
    told = read_content(tmp_path, {"a_b.mp4": files["a_b.mp4"]}, first_frame=0)
    assert told.queries["start_frame"].to_list() == [4]
    with pytest.raises(UsageError, match="0 or 1"):
        read_content(tmp_path, files, first_frame=2)


def test_frames_before_the_first_are_refused_if_it_is_told(tmp_path: Path, files: dict[str, Any]) -> None:
    files["c.mp4"]["st_frame"] = 0
    scenes = read_content(tmp_path, files, first_frame=1)
    assert scenes.rejected.select("table", "item").rows() == [("boxes", "c, frame 0")]
    assert "1..14" in scenes.rejected["reason"][0]


def test_frames_behind_the_end_are_refused_and_the_sentence_kept(
    tmp_path: Path, files: dict[str, Any]
) -> None:
    files["a_b.mp4"]["img_num"] = 10
    scenes = read_content(tmp_path, files)
    assert scenes.rejected["item"].to_list() == ["a_b, frame 11"]
    assert scenes.queries["end_frame"][0] == 11
    assert scenes.boxes.filter(tube=0)["frame"].max() == 9


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "end before start": ({"tube_end_frame": 3}, "the end 3 lies before the start 4"),
    "no start": ({"tube_start_frame": None}, "'tube_start_frame' should be the number of a frame"),
    "a start that is a float": ({"tube_start_frame": 4.0}, "'tube_start_frame' should be the number"),
    "no trajectory": ({"trajectory": {}}, "'trajectory' should be a list and is an object"),
    "no number": ({"video_id": None}, "'video_id' should be a number or a text"),
    "a second reading": ({"video_id": 1, "original_video_id": "c"}, "a second reading of this sentence"),
    "another length": ({"original_video_id": "c", "frame_count": 13}, "n_frames 14 where another"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_sentences_are_refused(tmp_path: Path, files: dict[str, Any], name: str) -> None:
    change, reason = REFUSED[name]
    first, second = make.processed(files)
    content = [first, second, {**first, "video_id": 2, **change}]
    if name == "another length":
        content = [first, {**second}, {**first, "video_id": 2, **change}]
        reason = "n_frames 13 where another sentence has 14"
    scenes = read_content(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["file"], row["item"]) == ("queries", "test.json", "place 2")
    assert reason in row["reason"]
    assert len(scenes.queries) == 2


ODD: dict[str, tuple[dict[str, Any], str, int]] = {
    "a longer trajectory": ({"tube_end_frame": 10}, "boxes outside the span of their sentence, kept", 2),
    "a shorter trajectory": ({"tube_end_frame": 13}, "frames in the span of a sentence without a box", 1),
    "no words": ({"caption": "  "}, "sentences without words, kept", 1),
    "no size": ({"width": 0}, "width: no whole number from 1, kept as unknown", 1),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_sentences_are_kept_and_counted(tmp_path: Path, files: dict[str, Any], name: str) -> None:
    change, what, count = ODD[name]
    first, second = make.processed(files)
    scenes = read_content(tmp_path, [first | change, second])
    assert len(scenes.queries) == 2
    assert warnings(scenes)[what] == count
    if "trajectory" in name:
        assert warnings(scenes)["trajectories of another length than their span, counted from its start"] == 1


def test_boxes_without_area_are_kept_and_others_refused(tmp_path: Path, files: dict[str, Any]) -> None:
    files["a_b.mp4"]["bbox"][0][2] = 0
    files["a_b.mp4"]["bbox"][1][3] = -1
    files["a_b.mp4"]["bbox"][2] = [1, 2, 3]
    scenes = read_content(tmp_path, files)
    assert warnings(scenes)["boxes without area, kept"] == 1
    assert scenes.rejected["item"].to_list() == ["a_b, frame 5", "a_b, frame 6"]
    assert [("upside down" in each, "has 3" in each) for each in scenes.rejected["reason"]] == [
        (True, False),
        (False, True),
    ]


def test_seconds_that_contradict_each_other_are_counted(tmp_path: Path, files: dict[str, Any]) -> None:
    files["c.mp4"]["ed_time"] = 0
    assert "times that end before they start; frames were taken" in warnings(read_content(tmp_path, files))


def test_a_processed_file_gives_way_to_the_raw_one_beside_it(tmp_path: Path, files: dict[str, Any]) -> None:
    make.write(tmp_path / "test.json", files)
    make.write(tmp_path / "test_proc.json", make.processed(files))
    scenes = HCSTVG.read(tmp_path)
    assert scenes.queries["name"].to_list() == ["a_b.mp4", "c.mp4"]
    assert scenes.rejected.is_empty()


def test_official_frames_that_are_no_numbers_are_counted(tmp_path: Path, files: dict[str, Any]) -> None:
    content = make.official(files)
    content["c.mp4"]["bbox"]["012"] = content["c.mp4"]["bbox"].pop("12")
    scenes = read_content(tmp_path, content)
    assert warnings(scenes)["boxes of frames whose key is no plain number, left aside"] == 1
    assert 11 not in scenes.boxes.filter(tube=1)["frame"].to_list()
    content["c.mp4"] = content["a_b.mp4"] | {"ed_frame": 3}
    (row,) = read_content(tmp_path, content).rejected.to_dicts()
    assert row["reason"] == "the end 3 lies before the start 4"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "a list, but expected an object"),
        ([{"id": 3}], "a list, but expected an object"),
        ({}, "has neither"),
        ({"a.mp4": {"boxes": []}}, "has neither"),
        ("x", "expected an object or a list"),
        ({"a.mp4": {"bbox": [], "st_frame": -1}}, "none of 1 sentences.*a.mp4: 'st_frame'"),
    ],
)
def test_what_is_no_annotation_is_an_error(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_content(tmp_path, content)


def test_one_bad_entry_costs_no_other(tmp_path: Path, files: dict[str, Any]) -> None:
    content = copy.deepcopy(files) | {"d.mp4": [], "e.mp4": {"bbox": 3, "st_frame": 1}}
    scenes = read_content(tmp_path, content)
    assert scenes.rejected["item"].to_list() == ["d.mp4", "e.mp4"]
    assert len(scenes.queries) == 2
