"""VidSTG, processed and raw: sentences share the tubes of their targets, and what is refused or counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sets import SETS, maker, rows_add_up

from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.errors import InputError
from roadaware.scenes.tables import Scenes

VIDSTG = SETS["vidstg"]
make = maker("vidstg")


@pytest.fixture
def content() -> dict[str, Any]:
    """One processed video of twelve frames with three sentences about two targets."""
    held: dict[str, Any] = make.processed([(make.annotation(make.VIDEO, 12), make.vidor(make.VIDEO, 12))])
    return held


def read_content(tmp_path: Path, content: Any, name: str = "test.json") -> Scenes:
    make.write(tmp_path / name, content)
    scenes = VIDSTG.read(tmp_path / name)
    rows_add_up(scenes)
    return scenes


def warnings(scenes: Scenes) -> dict[str, int]:
    return {warning["what"]: warning["count"] for warning in scenes.meta.notes["warnings"]}


def test_sentences_by_hand(tmp_path: Path, content: dict[str, Any]) -> None:
    scenes = read_content(tmp_path, content)
    columns = ("name", "sentence_kind", "tube", "start_frame", "end_frame", "target")
    assert scenes.queries.select(columns).rows() == [
        ("0", "interrogative", 0, 2, 11, "adult"),
        ("1", "declarative", 0, 2, 11, "adult"),
        ("2", "declarative", 1, 2, 11, "bicycle"),
    ]
    segment = scenes.queries.select("segment_start_frame", "segment_end_frame").unique().rows()
    assert segment == [(0, 11)]
    assert scenes.tubes.select("name", "start_frame", "end_frame").rows() == [("1", 0, 12), ("0", 1, 12)]
    assert scenes.boxes.filter(tube=1).select("frame", "x1_px", "x2_px", "y2_px").row(0) == (
        1,
        184.5,
        274.5,
        480,
    )
    assert scenes.videos.select("video", "fps", "n_frames", "splits").rows() == [
        (make.VIDEO, 25, 12, ["test"])
    ]


def test_raw_annotations_tell_the_same(tmp_path: Path, content: dict[str, Any]) -> None:
    processed = read_content(tmp_path, content)
    root = make.make_raw(tmp_path / "raw")
    for path in (root, root / "test_annotations.json"):
        assert detect_dataset_format(path) == detect_dataset_format(tmp_path / "test.json") == "vidstg"
        raw = VIDSTG.read(path)
        rows_add_up(raw)
        assert raw.queries.equals(processed.queries)
        assert raw.boxes.equals(processed.boxes)
        assert raw.tubes.equals(processed.tubes)
        assert raw.meta.vocabularies == {"category": ("adult", "bicycle")}
        assert raw.tube_labels["label"].to_list() == [0, 1]
        assert raw.rejected.is_empty()
    assert VIDSTG.read(root / "test_annotations.json", cache=True) == raw


def test_a_changed_file_of_vidor_is_read_anew(tmp_path: Path) -> None:
    root = make.make_raw(tmp_path / "raw")
    before = VIDSTG.read(root / "test_annotations.json", cache=True)
    make.write(root / "validation" / "0001" / f"{make.VIDEO}.json", make.vidor(make.VIDEO, 11))
    assert len(VIDSTG.read(root / "test_annotations.json", cache=True).boxes) < len(before.boxes)


def test_annotations_may_lie_in_their_own_folder(tmp_path: Path) -> None:
    root = make.make_raw(tmp_path / "raw")
    (root / "annotations").mkdir()
    (root / "test_annotations.json").rename(root / "annotations" / "test_annotations.json")
    (root / "validation").rename(root / "vidor")
    assert len(VIDSTG.read(root).queries) == 3


def test_raw_sentences_keep_their_numbers_behind_refused_ones(tmp_path: Path) -> None:
    root = make.make_raw(tmp_path / "raw")
    odd = make.annotation("77", 12)
    first = make.annotation(make.VIDEO, 12)
    first["captions"].insert(0, {"description": "x", "target_id": 9, "type": "dog"})
    make.write(root / "test_annotations.json", [odd, first])
    scenes = VIDSTG.read(root)
    rows_add_up(scenes)
    assert scenes.queries["name"].to_list() == ["3", "5", "6"]
    reasons = scenes.rejected["reason"].to_list()
    assert sum("'77.json' does not lie in a folder beside" in reason for reason in reasons) == 3
    assert sum("the unknown target 9; the video has 1, 0" in reason for reason in reasons) == 1


def test_raw_annotations_alone_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not lie in a folder beside the annotations"):
        read_content(tmp_path, [make.annotation("77", 12)], "test_annotations.json")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "end before start": ({"tube_end_frame": 1}, "the end 1 lies before the start 2"),
    "segment that ends before": ({"start_frame": 12}, "the end 11 of the segment lies before its start 12"),
    "unknown target": ({"target_id": 7}, "the unknown target 7; the video has 0, 1"),
    "unknown video": ({"original_video_id": "x"}, "the unknown target 1; the video has none"),
    "no start": ({"tube_start_frame": "2"}, "'tube_start_frame' should be the number of a frame"),
    "a number twice": ({"video_id": 1}, "a second reading of sentence 1"),
    "another rate": ({"fps": 30}, "fps 30.0 where another sentence has 25.0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_sentences_are_refused(tmp_path: Path, content: dict[str, Any], name: str) -> None:
    change, reason = REFUSED[name]
    content["videos"].append(content["videos"][0] | {"video_id": 3} | change)
    scenes = read_content(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert row["table"] == "queries"
    assert row["item"].endswith(", sentence 3")
    assert reason in row["reason"]
    assert len(scenes.queries) == 3


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "fps 0": ({"fps": 0}, "fps: no number of frames per second above 0, kept as unknown"),
    "no words": ({"caption": ""}, "sentences without words, kept"),
    "no kind": ({"qtype": "question"}, "sentences that are neither declarative nor interrogative"),
    "a span that lasts nothing": ({"tube_end_frame": 2}, "sentences that last no frame, kept"),
    "out of the segment": ({"end_frame": 5}, "spans that reach out of their segment, kept"),
    "behind the end": ({"tube_end_frame": 14}, "spans that reach behind the end of their video, kept"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_sentences_are_kept_and_counted(tmp_path: Path, content: dict[str, Any], name: str) -> None:
    change, what = ODD[name]
    content["videos"] = [content["videos"][0] | change]
    scenes = read_content(tmp_path, content)
    assert what in warnings(scenes)
    assert len(scenes.queries) == 1
    assert scenes.meta.notes["left_out"] == {"boxes of targets that no sentence taken speaks of": 11}


def test_bad_boxes_are_refused(tmp_path: Path, content: dict[str, Any]) -> None:
    boxes = content["trajectories"][make.VIDEO]["1"]
    boxes["4"]["bbox"] = [1, 2, -3, 4]
    boxes["5"] = {}
    boxes["x"] = boxes["6"]
    boxes["12"] = boxes["6"]
    scenes = read_content(tmp_path, content)
    assert sorted(scenes.rejected["item"].to_list()) == [
        make.VIDEO,
        f"{make.VIDEO}, frame 12",
        f"{make.VIDEO}, frame 4",
        f"{make.VIDEO}, frame 5",
    ]
    assert (
        warnings(scenes)["frames in the span of a sentence without a box"] == 4
    )  # two sentences, two frames
