"""ROAD's JSON: every tube of the file with its frames and boxes, labels by name."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from road_files import (
    HOUSE,
    ROAD,
    Content,
    agree,
    head,
    make,
    native_tubes,
    read_content,
    read_from,
    read_tubes,
)
from sets import edit

from roadaware.errors import DatasetNotFoundError
from roadaware.io.sources import FolderSource


@pytest.fixture
def content() -> Content:
    """One video of twelve frames."""
    found = head()
    found["db"]["v"] = make.video_entry(12, ["train_1", "val_2"], 0)
    return found


@pytest.mark.parametrize("native", HOUSE)
def test_every_tube_is_that_of_the_file(tmp_path: Path, content: Content, native: str) -> None:
    scenes = read_from(tmp_path, content)
    wanted = native_tubes(content, native)
    assert wanted
    agree(read_tubes(scenes, HOUSE[native]), wanted)


def test_a_walker_by_hand(tmp_path: Path, content: Content) -> None:
    scenes = read_from(tmp_path, content)
    walker = scenes.tubes.filter((pl.col("name") == "10284a58-002-01") & pl.col("parent").is_null())
    assert walker.select("video", "start_frame", "end_frame", "kind").rows() == [("v", 1, 12, None)]
    boxes = scenes.boxes.filter(tube=walker["tube"][0])
    assert boxes["frame"].to_list() == list(range(1, 12))
    first = boxes.row(0, named=True)
    assert [first[f"{c}_px"] for c in ("x1", "y1", "x2", "y2")] == pytest.approx([384, 384, 448, 528])
    said = {
        kind: [scenes.meta.vocabularies[kind][label] for label in group["label"]]
        for (kind,), group in scenes.labels.filter(box=boxes["box"][-1]).group_by("kind")
    }
    assert said == {
        "agent": ["Ped"],
        "action": ["Xing"],
        "location": ["LftPav", "Jun"],
        "duplex": ["Ped-Xing"],
        "event": ["Ped-Xing-Jun"],
    }


def test_holes_stay_holes(tmp_path: Path, content: Content) -> None:
    scenes = read_from(tmp_path, content)
    parked = scenes.tubes.filter((pl.col("name") == "a074d1bf-001-01") & (pl.col("kind") == "agent"))
    assert parked["spans"].to_list() == [[[0, 5], [6, 12]]]


def test_what_is_said_of_the_set(tmp_path: Path, content: Content) -> None:
    meta = read_from(tmp_path, content).meta
    assert meta.dataset == "ROAD"
    assert meta.vocabularies["agentness"] == ("agent_ness",)
    assert {kind: meta.vocabularies[HOUSE[kind]] for kind in HOUSE} == {k: tuple(make.USED[k]) for k in HOUSE}
    assert meta.notes["native_kinds"]["event"] == "triplet"
    assert meta.composites == {"duplex": ("agent", "action"), "event": ("agent", "action", "location")}
    for kind, parts in meta.composites.items():
        spelled = [
            "-".join(meta.vocabularies[part][n] for part, n in zip(parts, entry, strict=True))
            for entry in meta.notes["children"][kind]
        ]
        assert tuple(spelled) == meta.vocabularies[kind]


def test_unused_labels_are_left_out_and_counted(tmp_path: Path, content: Content) -> None:
    scenes = read_from(tmp_path, content)
    left_out = scenes.meta.notes["left_out"]
    assert left_out["labels: agent SmalVeh, which is not used"] == 2
    assert left_out["labels: loc RhtParking, which is not used"] == 11
    assert left_out["tubes: action Rev, which is not used"] == 1
    assert left_out["frame_labels: av_action AV-Rev, which is not used"] == 1
    hidden = scenes.tubes.filter((pl.col("name") == "edb6d66a-005-01") & pl.col("parent").is_null())
    assert len(scenes.boxes.filter(tube=hidden["tube"][0])) == 2


def test_the_vehicles_actions_keep_the_files_order(tmp_path: Path, content: Content) -> None:
    scenes = read_from(tmp_path, content)
    words = scenes.meta.vocabularies["av_action"]
    said = {
        frame: [words[n] for n in group["label"]]
        for (frame,), group in scenes.frame_labels.group_by("frame", maintain_order=True)
    }
    assert said[0] == ["AV-Stop"]
    assert said[2] == ["AV-Stop"]
    assert said[11] == ["AV-TurRht", "AV-Mov"]
    tubes = scenes.tubes.filter(kind="av_action")
    assert tubes["parent"].null_count() == 2
    assert tubes["spans"].to_list() == [[[0, 5]], [[5, 12]]]
    assert scenes.tube_labels.filter(kind="av_action")["label"].to_list() == [1, 0]


def test_frames_say_what_the_file_says(tmp_path: Path, content: Content) -> None:
    del content["db"]["v"]["frames"]["7"]
    for key in ("agent", "action", "loc", "duplex", "triplet"):
        for tube in content["db"]["v"][f"{key}_tubes"].values():
            tube["annos"].pop("7", None)
    scenes = read_from(tmp_path, content)
    assert scenes.videos.select("n_frames", "splits").rows() == [(14, ["train_1", "val_2"])]
    assert scenes.frames["frame"].to_list() == [n for n in range(13) if n != 6]
    assert scenes.frames.filter(pl.col("annotated").not_())["frame"].to_list() == [0]
    assert scenes.split_videos("val_2") == ["v"]
    assert scenes.rejected.is_empty()
    agree(read_tubes(scenes, "agent"), native_tubes(content, "agent"))


def test_frames_in_another_order_are_sorted(tmp_path: Path, content: Content) -> None:
    before = read_from(tmp_path, content)
    entry = content["db"]["v"]
    entry["frames"] = dict(reversed(entry["frames"].items()))
    for tube in entry["agent_tubes"].values():
        tube["annos"] = dict(reversed(tube["annos"].items()))
    after = read_from(tmp_path, content)
    assert after.with_tables(meta=before.meta) == before


def test_boxes_are_scaled_to_the_size_of_most_frames(tmp_path: Path, content: Content) -> None:
    frames = content["db"]["v"]["frames"]
    for key, frame in frames.items():
        frame |= {"width": 1920, "height": 1280} if key != "3" else {"width": 640, "height": 480}
    scenes = read_from(tmp_path, content)
    assert scenes.videos.select("width_px", "height_px").rows() == [(1920, 1280)]
    assert [w["what"] for w in scenes.meta.notes["warnings"]] == [
        "frames of another size than most of their video"
    ]
    agree(read_tubes(scenes, "agent"), native_tubes(content, "agent"))


def test_without_a_size_it_is_that_of_road(tmp_path: Path, content: Content) -> None:
    for frame in content["db"]["v"]["frames"].values():
        del frame["width"]
    scenes = read_from(tmp_path, content)
    assert scenes.videos.select("width_px", "height_px").rows() == [(1280, 960)]
    assert any("taken as 1280 x 960" in w["what"] for w in scenes.meta.notes["warnings"])


def test_one_list_of_labels_stands_for_both(tmp_path: Path, content: Content) -> None:
    del content["all_agent_labels"], content["agent_labels"]
    content["all_agent_labels"] = make.EVERY["agent"]
    content["duplex_childs"] = [
        [make.EVERY["agent"].index(make.USED["agent"][a]), b] for a, b in content["duplex_childs"]
    ]
    content["triplet_childs"] = [
        [make.EVERY["agent"].index(make.USED["agent"][a]), b, c] for a, b, c in content["triplet_childs"]
    ]
    scenes = read_from(tmp_path, content)
    assert scenes.meta.vocabularies["agent"] == tuple(make.EVERY["agent"])
    assert any("one list" in w["what"] for w in scenes.meta.notes["warnings"])


def test_children_may_count_all_labels(tmp_path: Path, content: Content) -> None:
    """One entry for each label there is, or numbers that count all labels: the names say which."""
    wanted = read_from(tmp_path, content).meta.notes["children"]
    parts = {"duplex": ("agent", "action"), "triplet": ("agent", "action", "loc")}
    for lists in (make.EVERY, make.USED):
        for kind, kinds in parts.items():
            content[f"{kind}_childs"] = [
                [make.EVERY[part].index(word) for part, word in zip(kinds, label.split("-"), strict=True)]
                for label in lists[kind]
            ]
        assert read_from(tmp_path, content).meta.notes["children"] == wanted


def test_the_name_and_the_splits_tell_the_dataset(tmp_path: Path, content: Content) -> None:
    def dataset(name: str) -> str:
        return read_content(tmp_path / "set", content, name).meta.dataset

    assert dataset("road_trainval_v1.0.json") == dataset("mine.json") == "ROAD"
    assert dataset("road_waymo_trainval_v1.0.json") == dataset("ROAD_plus_plus.json") == "ROAD-Waymo"
    content["db"]["v"]["split_ids"] = ["train", "all"]
    assert dataset("mine.json") == "ROAD-Waymo"


def test_two_datasets_in_one_folder_are_told_apart(tmp_path: Path, content: Content) -> None:
    read_content(tmp_path / "set", content)
    read_content(tmp_path / "set", content, "road_waymo_trainval_v1.0.json")
    with pytest.raises(DatasetNotFoundError, match="ROAD and ROAD-Waymo"):
        ROAD.read(tmp_path / "set")


def test_a_second_file_with_other_labels_is_refused(tmp_path: Path) -> None:
    root = ROAD.make(tmp_path / "set")
    edit(root / "road_trainval_v1.0.json", lambda data: data.replace(b"LftPav", b"LeftPav"))
    scenes = ROAD.read(root)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["file"]) == ("files", "road_trainval_v1.0.json")
    assert "not those of road_test_v1.0.json" in row["reason"]


def test_a_video_in_two_files_is_refused_the_second_time(tmp_path: Path) -> None:
    root = ROAD.make(tmp_path / "set")
    (root / "road_zz.json").write_bytes((root / make.MAIN).read_bytes())
    scenes = ROAD.read(root)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("videos", make.VIDEO)
    assert "twice" in row["reason"]


def test_a_file_larger_than_the_usual_bound_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = ROAD.make(tmp_path / "set")
    monkeypatch.setattr(FolderSource, "most_bytes", 1000)
    assert len(ROAD.read(root).videos) == 3


def test_weather_is_kept_where_it_is_told(tmp_path: Path, content: Content) -> None:
    content["db"]["v"] |= {"weather": "rain", "lighting": ["night", "lit"]}
    scenes = read_from(tmp_path, content)
    assert scenes.videos.select("weather", "time_of_day").rows() == [("rain", "night, lit")]
