"""JAAD by hand: what its fixture holds, and where it is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jaad_folders import change, reasons, scenes_of, warnings
from sets import maker

from roadaware.datasets import read
from roadaware.errors import DatasetNotFoundError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    maker("jaad").make(tmp_path / "jaad")
    return tmp_path / "jaad"


@pytest.fixture
def facts(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = maker("jaad").make(tmp_path / "again")
    return found


# What is there


def test_every_video_frame_track_and_box_is_there(root: Path, facts: dict[str, Any]) -> None:
    scenes = scenes_of(root)
    assert scenes.videos["video"].to_list() == facts["videos"]
    assert len(scenes.frames) == len(facts["videos"]) * facts["n_frames"]
    assert len(scenes.boxes) == facts["boxes"]
    named = {
        video: scenes.tubes.filter(pl.col("video") == video)["name"].to_list() for video in facts["videos"]
    }
    assert named == facts["tubes"]
    assert scenes.tubes["tube"].to_list() == list(range(len(scenes.tubes)))
    assert scenes.boxes["box"].to_list() == list(range(len(scenes.boxes)))
    assert scenes.boxes.select("tube", "frame").rows() == sorted(scenes.boxes.select("tube", "frame").rows())
    for name, track in facts["tracks"].items():
        tube = scenes.tubes.row(by_predicate=pl.col("name") == name, named=True)
        boxes = scenes.boxes.filter(pl.col("tube") == tube["tube"])
        assert boxes["frame"].to_list() == list(track.frames)
        assert (tube["start_frame"], tube["end_frame"]) == (track.frames[0], track.frames[-1] + 1)
        assert (str(tube["track_label"]), tube["old_id"]) == (track.label, track.old_id)
        assert boxes["video"].unique().to_list() == [tube["video"]]
    assert scenes.tubes.filter("behaviour")["name"].sort().to_list() == facts["behaviour"]


def test_a_box_by_hand(root: Path) -> None:
    scenes = scenes_of(root)
    tube = scenes.tubes.row(by_predicate=pl.col("name") == "0_1_3b", named=True)["tube"]
    box = scenes.boxes.filter((pl.col("tube") == tube) & (pl.col("frame") == 7)).drop("box", "tube")
    assert box.to_dicts() == [
        {
            "video": "video_0001",
            "frame": 7,
            "x1_px": 901.75,
            "y1_px": 507.0,
            "x2_px": 941.75,
            "y2_px": 627.0,
            "occlusion": "part",
            "action": "walking",
            "look": "looking",
            "cross": "crossing",
            "hand_gesture": "yield",
            "reaction": "slow_down",
            "nod": "nodding",
        }
    ]
    other = scenes.boxes.filter(pl.col("tube") != tube).join(
        scenes.tubes.filter(~pl.col("behaviour")).select("tube"), on="tube", how="semi"
    )
    for tag in ("action", "look", "cross", "hand_gesture", "reaction", "nod"):
        assert other[tag].null_count() == len(other)
    assert other["occlusion"].null_count() == 0


def test_the_vocabularies_are_in_code_order(root: Path) -> None:
    scenes = scenes_of(root)
    categories = {
        name: column.dtype.categories.to_list()  # type: ignore[attr-defined]
        for table in (scenes.videos, scenes.frames, scenes.boxes, scenes.tubes)
        for name, column in table.to_dict().items()
        if isinstance(column.dtype, pl.Enum)
    }
    assert categories["vehicle_action"] == [
        "stopped",
        "moving_slow",
        "moving_fast",
        "decelerating",
        "accelerating",
    ]
    assert categories["reaction"] == ["__undefined__", "clear_path", "speed_up", "slow_down"]
    assert categories["hand_gesture"] == ["__undefined__", "greet", "yield", "rightofway", "other"]
    assert categories["traffic_light"] == ["n/a", "red", "green"]
    assert categories["crossing"] == ["not-crossing", "crossing", "irrelevant"]
    assert categories["signalized"] == ["n/a", "NS", "S"]
    assert categories.pop("event_source") == ["annotated", "fallback", "none"]
    told = {name: list(labels) for name, labels in scenes.meta.vocabularies.items()}
    assert told.pop("pedestrian_action") == categories.pop("action")
    assert told == categories


def test_attributes_and_events_by_hand(root: Path) -> None:
    scenes = scenes_of(root)
    columns = ["crossing", "crossing_point", "decision_point", "event_frame", "event_source"]
    seen = {row["name"]: tuple(row[c] for c in columns) for row in scenes.tubes.to_dicts()}
    assert seen["0_1_3b"] == ("crossing", 12, 3, 12, "annotated")
    assert seen["0_1_2b"] == ("irrelevant", None, 1, None, "none")
    assert seen["0_2_9b"] == ("crossing", None, None, 11, "fallback")
    assert seen["0_2_10b"] == ("not-crossing", 12, 2, 12, "annotated")
    assert seen["0_4_11b"] == ("crossing", None, 4, 4, "fallback")
    assert seen["0_4_12"] == (None, None, None, None, "none")
    traits = scenes.tubes.row(by_predicate=pl.col("name") == "0_2_9b", named=True)
    assert (traits["age"], traits["gender"], traits["group_size"], traits["num_lanes"]) == (
        "child",
        "female",
        2,
        2,
    )
    assert (traits["signalized"], traits["designated"], traits["intersection"]) == ("NS", "D", "yes")


def test_the_fallback_event_counts_positions_not_frames(root: Path) -> None:
    for n, expected in ((5, 4), (4, 3), (3, 4), (2, 3), (1, 2)):
        text = (root / "annotations/video_0004.xml").read_text()
        made = maker("jaad")
        track = made.tracks(12)["video_0004"][0]
        frames = tuple(range(2, 2 + n))
        short = made.Track(**{**vars(track), "frames": frames})
        (root / "annotations/video_0004.xml").write_text(made.annotations("video_0004", 16, [short]))
        tube = scenes_of(root).tubes.filter(pl.col("name") == "0_4_11b")
        assert tube["event_frame"].to_list() == [expected], n
        (root / "annotations/video_0004.xml").write_text(text)


def test_frames_and_videos_by_hand(root: Path) -> None:
    scenes = scenes_of(root)
    frame = scenes.frames.row(
        by_predicate=(pl.col("video") == "video_0004") & (pl.col("frame") == 7), named=True
    )
    assert frame == {
        "video": "video_0004",
        "frame": 7,
        "annotated": True,
        "vehicle_action": "stopped",
        "ped_crossing": True,
        "ped_sign": False,
        "stop_sign": True,
        "traffic_light": "red",
    }
    video = scenes.videos.row(by_predicate=pl.col("video") == "video_0005", named=True)
    assert video == {
        "video": "video_0005",
        "scene": "video_0005",
        "width_px": 1280,
        "height_px": 720,
        "fps": None,
        "n_frames": 16,
        "path": "JAAD_clips/video_0005.mp4",
        "weather": None,
        "time_of_day": "daytime",
        "location": "street",
        "road_type": "street",
        "splits": ["all_videos/test", "default/test", "high_visibility/test"],
    }
    assert scenes.split_videos("default/train") == ["video_0001", "video_0002"]
    assert scenes.split_videos("all_videos/train") == ["video_0001", "video_0002", "video_0003"]


def test_appearance_is_read_when_asked_for_and_matched_by_old_id(root: Path) -> None:
    assert "pose_front" not in scenes_of(root).boxes.columns
    scenes = scenes_of(root, appearance=True, strict=True)
    boxes = scenes.boxes.join(scenes.tubes.select("tube", "track_label"), on="tube")
    people = boxes.filter(pl.col("track_label") == "people")
    others = boxes.filter(pl.col("track_label") != "people")
    for flag in maker("jaad").FLAGS.split():
        assert boxes[flag].dtype == pl.Boolean
        assert people[flag].null_count() == len(people)
        assert others[flag].null_count() == 0
    assert (others["pose_front"] == (others["frame"] % 2 == 1)).all()
    assert not others["umbrella"].any()


def test_appearance_without_old_ids_is_matched_by_id(root: Path) -> None:
    name = "annotations_appearance/video_0001_appearance.xml"
    change(root, r' old_id="[^"]*"', "", file=name, count=9)
    scenes = scenes_of(root, appearance=True)
    tube = scenes.tubes.filter(pl.col("name") == "0_1_3b")["tube"][0]
    assert scenes.boxes.filter(pl.col("tube") == tube)["pose_front"].null_count() == 0
    assert reasons(scenes, "appearance") == ["appearance of a pedestrian that has no box in this frame"] * 6


def test_bad_appearance_rows_are_rejected(root: Path) -> None:
    name = "annotations_appearance/video_0005_appearance.xml"
    change(root, 'frame="2"', 'frame="3"', file=name)
    change(root, 'frame="4"', 'frame="99"', file=name)
    change(root, 'hood="0"', 'hood="7"', file=name)
    scenes = scenes_of(root, appearance=True)
    assert reasons(scenes, "appearance") == [
        "a second appearance of this box",
        "frame 99 is outside the video of 16 frames",
    ]
    assert warnings(scenes) == {"hood: a value outside 0, 1, kept as null": 1}


# Where it is found


def test_what_is_no_jaad_is_told_with_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    with pytest.raises(DatasetNotFoundError) as caught:
        read("jaad", tmp_path)
    assert str(caught.value) == (
        f"JAAD needs 'annotations/' and found none in {tmp_path} (saw: clips/). "
        "Point at the unpacked repository or its zip."
    )


def test_the_parent_of_the_repository_will_do(root: Path) -> None:
    (root.parent / "again").mkdir()
    assert len(read("jaad", root.parent, cache=False).videos) == 5
