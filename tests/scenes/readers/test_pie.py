"""PIE, value by value: what each native word becomes."""

from __future__ import annotations

import re
from pathlib import Path

import damage
import polars as pl
import pytest
from pie_tables import ATTRIBUTES, MAIN, PIE, boxes, tube
from sets import edit

from roadaware.scenes.tables import Scenes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return PIE.make(tmp_path / "PIE")


@pytest.fixture(scope="module")
def scenes(clean_scenes: dict[str, Scenes]) -> Scenes:
    return clean_scenes["pie"]


def test_videos(scenes: Scenes) -> None:
    assert scenes.meta.dataset == "PIE"
    assert scenes.videos.to_dicts()[0] == {
        "video": "set01/video_0001",
        "scene": "set01",
        "width_px": 1920,
        "height_px": 1080,
        "fps": None,
        "n_frames": 22,
        "path": "PIE_clips/set01/video_0001.mp4",
        "splits": ["default/train"],
    }
    assert scenes.videos["video"].to_list() == ["set01/video_0001", "set03/video_0001", "set05/video_0002"]
    assert scenes.split_videos("default/test") == ["set03/video_0001"]
    assert scenes.split_videos("default/val") == ["set05/video_0002"]


def test_a_crossing_pedestrian(scenes: Scenes) -> None:
    held = tube(scenes, "1_1_7")
    held["intention_prob"] = round(float(str(held["intention_prob"])), 6)
    held.pop("tube")
    assert held == {
        "video": "set01/video_0001",
        "name": "1_1_7",
        "track_label": "pedestrian",
        "object_type": None,
        "start_frame": 3,
        "end_frame": 15,
        "age": "adult",
        "gender": "female",
        "intersection": "four-way",
        "signalized": "CS",
        "traffic_direction": "TW",
        "num_lanes": 2,
        "crossing": "crossing",
        "crossing_point": 12,
        "critical_point": 9,
        "exp_start_point": 4,
        "intention_prob": 0.866667,
        "event_frame": 12,
        "event_source": "annotated",
    }


def test_boxes_outside_the_picture_leave_a_gap(scenes: Scenes) -> None:
    held = boxes(scenes, "1_1_7")
    assert held["frame"].to_list() == [f for f in range(3, 15) if f != 9]
    assert scenes.meta.notes["left_out"] == {"boxes outside the image (outside=1)": 3}


def test_the_second_box_of_a_pedestrian(scenes: Scenes) -> None:
    held = boxes(scenes, "1_1_12").drop("box", "tube").to_dicts()[1]
    assert held == {
        "video": "set01/video_0001",
        "frame": 1,
        "x1_px": 603.0,
        "y1_px": 500.5,
        "x2_px": 643.0,
        "y2_px": 610.5,
        "occlusion": "part",
        "occluded": True,
        "action": "walking",
        "look": "looking",
        "gesture": "hand_ack",
        "state": None,
        "cross": "irrelevant",
    }


def test_crossing_in_words(scenes: Scenes) -> None:
    pedestrians = scenes.tubes.filter(track_label="pedestrian")
    words = dict(pedestrians.select("name", pl.col("crossing").cast(pl.String)).rows())
    assert words == {
        "1_1_12": "irrelevant",
        "1_1_7": "crossing",
        "3_1_100": "crossing",
        "3_1_21": "not-crossing",
        "3_1_9": "not-crossing",
        "5_2_2": "crossing",
    }


def test_tubes_stand_by_video_and_name_as_text(scenes: Scenes) -> None:
    keys = scenes.tubes.select("video", "name").rows()
    assert keys == sorted(keys)
    assert scenes.tubes["tube"].to_list() == list(range(len(keys)))
    order = scenes.boxes.select("tube", "frame").rows()
    assert order == sorted(order)
    assert scenes.boxes["box"].to_list() == list(range(len(order)))


def test_other_objects_are_tubes_too(scenes: Scenes) -> None:
    kinds = scenes.tubes.filter(pl.col("track_label") != "pedestrian")
    listed = kinds.select("name", pl.col("track_label", "object_type").cast(pl.String)).rows()
    assert listed == [
        ("1_1_3tl", "traffic_light", "regular"),
        ("1_1_40", "vehicle", "car"),
        ("1_1_5s", "sign", "ped_blue"),
        ("1_1_6c", "crosswalk", None),
        ("1_1_8ts", "transit_station", None),
    ]
    assert kinds["crossing"].null_count() == kinds["age"].null_count() == len(kinds)
    assert set(kinds["event_source"]) == {"none"}


def test_of_objects_it_is_known_only_whether_they_are_hidden(scenes: Scenes) -> None:
    light = boxes(scenes, "1_1_3tl").head(4)
    assert light["occluded"].to_list() == [False, True, False, True]
    assert light["occlusion"].to_list() == ["none", None, "none", None]
    assert light["state"].to_list() == ["__undefined__", "red", "yellow", "green"]


def test_traffic_of_a_frame_follows_from_its_boxes(scenes: Scenes) -> None:
    frames = scenes.frames.filter(video="set01/video_0001").sort("frame")
    assert len(frames) == 22
    assert frames["traffic_light"].to_list()[:6] == ["n/a", "red", "yellow", "green", "n/a", "red"]
    assert frames["ped_crossing"].arg_true().to_list() == [0, 1, 2, 3]
    assert frames["ped_sign"].arg_true().to_list() == [2, 3, 4, 5]
    assert not frames["stop_sign"].any()
    others = scenes.frames.filter(pl.col("video") != "set01/video_0001")
    assert set(others["traffic_light"]) == {"n/a"}
    assert not others["ped_crossing"].any()


def test_of_several_lights_the_last_track_counts(root: Path) -> None:
    text = (root / MAIN).read_bytes()
    light = re.search(rb'<track label="traffic_light">.*?</track>', text)
    assert light is not None
    second = light[0].replace(b"1_1_3tl", b"1_1_9tl").replace(b"green", b"RED").replace(b"red", b"green")
    second = second.replace(b"RED", b"red").replace(b"regular", b"pedestrian")
    (root / MAIN).write_bytes(damage.inside_root(text, second))
    behind = PIE.read(root).frames.filter(video="set01/video_0001")["traffic_light"].to_list()[:4]
    (root / MAIN).write_bytes(damage.swap(text, rb'(?=<track label="traffic_light">)', second))
    before = PIE.read(root).frames.filter(video="set01/video_0001")["traffic_light"].to_list()[:4]
    assert behind == ["n/a", "green", "yellow", "red"]
    assert before == ["n/a", "red", "yellow", "green"]


def test_a_stop_sign(root: Path) -> None:
    edit(root / MAIN, lambda data: data.replace(b"ped_blue", b"stop_sign"))
    frames = PIE.read(root).frames.filter(video="set01/video_0001").sort("frame")
    assert frames["stop_sign"].arg_true().to_list() == [2, 3, 4, 5]
    assert not frames["ped_sign"].any()


def test_sensors_of_the_vehicle(scenes: Scenes) -> None:
    row = scenes.frames.filter(video="set01/video_0001", frame=3).to_dicts()[0]
    expected = {
        "ego_speed_kmh": 20.7,
        "gps_speed_kmh": 20.3,
        "heading_deg": 342.99,
        "latitude": 43.6556265,
        "longitude": -79.402457,
        "yaw": 6.28,
        "pitch": 0.257,
        "roll": 6.2,
        "acc_x": -0.03,
        "acc_y": 0.94,
        "acc_z": 0.16,
        "gyro_x": 0.1,
        "gyro_y": -0.2,
        "gyro_z": 0.3,
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert row["latitude"] == 43.6556265


def test_a_frame_without_box_is_not_called_unannotated(scenes: Scenes) -> None:
    annotated = scenes.frames.filter(video="set05/video_0002").sort("frame")["annotated"].to_list()
    hidden = 6
    assert annotated == [True if f < 12 and f != hidden else None for f in range(22)]


def test_a_crosser_without_point_gets_the_third_last_box(root: Path) -> None:
    for name in ("set05/video_0002", "set01/video_0001"):
        path = root / ATTRIBUTES / f"{name}_attributes.xml"
        path.write_bytes(re.sub(rb'crossing_point="(9|12)"', b'crossing_point="-1"', path.read_bytes()))
    scenes = PIE.read(root)
    for name, frame in (("5_2_2", 9), ("1_1_7", 12)):
        held = tube(scenes, name)
        assert (held["crossing_point"], held["event_source"]) == (None, "fallback")
        assert held["event_frame"] == boxes(scenes, name)["frame"][-3] == frame
    assert scenes.meta.notes["warnings"] == []
