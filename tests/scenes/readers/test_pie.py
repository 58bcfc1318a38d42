"""PIE, value by value: what each native word becomes, which parts may be missing, what the real set holds."""

from __future__ import annotations

import os
import re
from pathlib import Path

import damage
import polars as pl
import pytest
from sets import SETS, copied, edit, maker, rows_add_up

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.readers.pie_terms import box_record, vehicle_record
from roadaware.scenes.tables import Scenes

PIE = SETS["pie"]
ANNOTATIONS, ATTRIBUTES, VEHICLE = maker("pie").PARTS
MAIN = maker("pie").MAIN
KNOWN, SENSED = maker("pie").OTHERS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return PIE.make(tmp_path / "PIE")


@pytest.fixture(scope="module")
def scenes(clean_scenes: dict[str, Scenes]) -> Scenes:
    return clean_scenes["pie"]


def tube(scenes: Scenes, name: str) -> dict[str, object]:
    return scenes.tubes.filter(name=name).to_dicts()[0]


def boxes(scenes: Scenes, name: str) -> pl.DataFrame:
    return scenes.boxes.join(scenes.tubes.filter(name=name).select("tube"), on="tube").sort("frame")


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
    assert scenes.meta.notes["left_out"] == {"boxes outside the picture (outside=1)": 3}


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


@pytest.mark.parametrize(
    ("old", "new", "column", "warned"),
    [
        (rb'age="adult"', b'age="ancient"', "age", "age: a value outside"),
        (rb'num_lanes="2"', b'num_lanes="two"', "num_lanes", "num_lanes: no whole number from 1"),
        (rb'intention_prob="0.8[^"]*"', b'intention_prob="1.01"', "intention_prob", "in \\[0, 1\\]"),
        (rb'intention_prob="0.8[^"]*"', b'intention_prob="nan"', "intention_prob", "in \\[0, 1\\]"),
        (rb'crossing_point="12"', b'crossing_point="22"', "crossing_point", "behind the end"),
        (rb'crossing_point="12"', b'crossing_point="-2"', "crossing_point", "no whole number from 0"),
        (
            rb'critical_point="9"',
            b'critical_point="9223372036854775808"',
            "critical_point",
            "no whole number",
        ),
        (rb'crossing="1"', b'crossing="2"', "crossing", "crossing: a value outside 0, 1, -1"),
    ],
)
def test_an_odd_attribute_is_null_and_told(
    root: Path, old: bytes, new: bytes, column: str, warned: str
) -> None:
    edit(root / KNOWN, lambda data: damage.swap(data, old, new))
    scenes = PIE.read(root)
    assert tube(scenes, "1_1_7")[column] is None
    (warning,) = scenes.meta.notes["warnings"]
    assert re.search(warned, warning["what"])
    assert (warning["count"], KNOWN in warning["example"]) == (1, True)
    rows_add_up(scenes)


def test_an_odd_sensor_value_is_null_and_told(root: Path) -> None:
    edit(root / SENSED, lambda data: damage.swap(data, rb'OBD_speed="[^"]*"', b'OBD_speed="inf"'))
    scenes = PIE.read(root)
    frames = scenes.frames.filter(video="set01/video_0001").sort("frame")
    assert frames["ego_speed_kmh"].is_null().arg_true().to_list() == [0]
    assert frames["gps_speed_kmh"].null_count() == 0
    assert [warning["count"] for warning in scenes.meta.notes["warnings"]] == [1]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (rb'<frame id="3"', b'<frame id="2"', "a second record"),
        (rb'<frame id="3"', b"<frame", "no frame number"),
        (rb'<frame id="3"', b'<frame id="22"', "outside the video of 22 frames"),
        (rb'<frame id="3"', b'<frame id="-3"', "outside the video"),
    ],
)
def test_a_bad_sensor_row_is_rejected(root: Path, old: bytes, new: bytes, reason: str) -> None:
    edit(root / SENSED, lambda data: damage.swap(data, old, new))
    scenes = PIE.read(root)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["file"]) == ("frames", SENSED)
    assert reason in row["reason"]
    rows_add_up(scenes)


@pytest.mark.parametrize(
    ("old", "new", "reasons"),
    [
        (rb'id="1_1_7"', b'id="1_1_12"', ["a second pedestrian"]),
        (rb'id="1_1_7"', b'id="1_1_70"', ["has no track"]),
        (rb'id="1_1_7"', b'id=""', ["no id"]),
        (rb'id="1_1_7" ', b"", ["no id"]),
        (rb'id="1_1_7"', b'id="1_1_40"', ["has no track"]),
    ],
)
def test_attributes_that_fit_nobody_are_rejected(
    root: Path, old: bytes, new: bytes, reasons: list[str]
) -> None:
    edit(root / KNOWN, lambda data: damage.swap(data, old, new))
    scenes = PIE.read(root)
    assert [row["table"] for row in scenes.rejected.to_dicts()] == ["tubes"] * len(reasons)
    for row, reason in zip(scenes.rejected["reason"], reasons, strict=True):
        assert reason in row
    assert tube(scenes, "1_1_7")["crossing"] is None
    assert any("without attributes" in warning["what"] for warning in scenes.meta.notes["warnings"])
    rows_add_up(scenes)


def test_a_box_with_the_id_of_another_is_rejected(root: Path) -> None:
    edit(root / MAIN, lambda data: damage.swap(data, rb'name="id">1_1_7<', b'name="id">1_1_8<', nth=2))
    scenes = PIE.read(root)
    assert scenes.rejected["reason"].to_list() == ["the id differs from '1_1_7', the first of its track"]
    assert len(boxes(scenes, "1_1_7")) == 10


def test_its_own_zips_equal_the_folders(root: Path, tmp_path: Path, scenes: Scenes) -> None:
    maker("pie").zipped(root, tmp_path / "zips")
    assert PIE.read(tmp_path / "zips") == scenes
    assert PIE.read(tmp_path / "zips", cache=True) == scenes


def test_zips_and_folders_mix(root: Path, tmp_path: Path, scenes: Scenes) -> None:
    maker("pie").zipped(root, tmp_path / "mixed")
    for part in (ANNOTATIONS, VEHICLE):
        (tmp_path / "mixed" / f"{part}.zip").unlink()
        copied(root / part, tmp_path / "mixed" / part)
    assert PIE.read(tmp_path / "mixed") == scenes


def test_zips_inside_the_folder_of_annotations(root: Path, tmp_path: Path, scenes: Scenes) -> None:
    clone = tmp_path / "clone"
    maker("pie").zipped(root, clone / ANNOTATIONS)
    (clone / ANNOTATIONS / "README.md").write_text("unzip me")
    assert PIE.read(clone) == scenes


def test_a_zip_of_sets_without_their_folder(root: Path, tmp_path: Path, scenes: Scenes) -> None:
    for part in maker("pie").PARTS:
        (tmp_path / "bare").mkdir(exist_ok=True)
        damage.packed(root / part, tmp_path / "bare" / f"{part}.zip")
    assert PIE.read(tmp_path / "bare") == scenes


def test_a_changed_zip_is_read_anew(root: Path, tmp_path: Path) -> None:
    zips = tmp_path / "zips"
    maker("pie").zipped(root, zips)
    before = PIE.read(zips, cache=True)
    edit(root / KNOWN, lambda data: data.replace(b"adult", b"child"))
    maker("pie").zipped(root, zips)
    assert PIE.read(zips, cache=True) != before


def test_two_processes_read_zips_too(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roadaware.scenes.readers.workers import Walkers

    edit(root / MAIN, lambda data: damage.swap(data, rb'<box frame="(\d+)"', b"<box frame='3'"))
    maker("pie").zipped(root, tmp_path / "zips")
    one = PIE.read(tmp_path / "zips")
    monkeypatch.setattr(Walkers.__init__, "__defaults__", (None, 0))
    assert PIE.read(tmp_path / "zips", processes=2) == one


def test_a_zip_without_sets_is_an_error(tmp_path: Path) -> None:
    damage.with_member(tmp_path / "annotations.zip", "readme.txt", b"hello")
    with pytest.raises(InputError, match=r"expected folders set01(.|\n)*fetch PIE's own annotations\.zip"):
        PIE.read(tmp_path)


def test_attributes_alone(root: Path, tmp_path: Path, scenes: Scenes) -> None:
    maker("pie").attributes_only(root, tmp_path / "alone")
    alone = PIE.read(tmp_path / "alone")
    pedestrians = scenes.tubes.filter(track_label="pedestrian")
    assert alone.tubes["name"].equals(pedestrians["name"])
    shared = [name for name in alone.tubes.columns if name not in ("tube", "start_frame", "end_frame")]
    assert alone.tubes.select(shared).equals(pedestrians.select(shared))
    assert alone.tubes["start_frame"].null_count() == alone.tubes["end_frame"].null_count() == 6
    assert alone.boxes.is_empty()
    assert alone.frames.is_empty()
    assert alone.videos.select("width_px", "n_frames").null_count().row(0) == (3, 3)
    assert alone.split_videos("default/val") == ["set05/video_0002"]
    rows_add_up(alone)


def test_the_vehicle_alone(root: Path, tmp_path: Path, scenes: Scenes) -> None:
    copied(root / VEHICLE, tmp_path / "alone" / VEHICLE)
    alone = PIE.read(tmp_path / "alone")
    assert alone.tubes.is_empty()
    sensors = ["video", "frame", "ego_speed_kmh", "latitude", "gyro_z"]
    assert alone.frames.select(sensors).equals(scenes.frames.select(sensors))
    assert (
        alone.frames["annotated"].null_count() == alone.frames["ped_sign"].null_count() == len(alone.frames)
    )
    rows_add_up(alone)


def test_boxes_alone(root: Path, tmp_path: Path, scenes: Scenes) -> None:
    copied(root / ANNOTATIONS, tmp_path / "alone" / ANNOTATIONS)
    alone = PIE.read(tmp_path / "alone")
    assert alone.boxes.equals(scenes.boxes)
    assert alone.tubes["crossing"].null_count() == len(alone.tubes)
    assert alone.frames["ego_speed_kmh"].null_count() == len(alone.frames)
    assert set(alone.tubes["event_source"]) == {"none"}
    assert alone.meta.notes["warnings"] == []


def test_a_video_that_lacks_a_file_is_told(root: Path) -> None:
    (root / MAIN).unlink()
    scenes = PIE.read(root)
    assert len(scenes.videos) == 3
    assert tube(scenes, "1_1_7")["start_frame"] is None
    (warning,) = scenes.meta.notes["warnings"]
    assert (warning["what"], warning["example"]) == (
        "videos without a file in annotations/",
        "set01/video_0001",
    )


def test_an_unknown_set_belongs_to_no_split(root: Path) -> None:
    for part in maker("pie").PARTS:
        (root / part / "set05").rename(root / part / "set17")
    scenes = PIE.read(root)
    assert scenes.videos["splits"].to_list() == [["default/train"], ["default/test"], []]


def test_nothing_to_read_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / ANNOTATIONS / "set01").mkdir(parents=True)
    with pytest.raises(InputError, match=r"_annt\.xml"):
        PIE.read(tmp_path)
    with pytest.raises(DatasetNotFoundError, match="PIE needs one of annotations"):
        PIE.read(tmp_path / ANNOTATIONS / "set01")


def test_the_order_of_attributes_is_taken_from_the_file() -> None:
    text = (
        '<track label="a">'
        '<box ybr="1" ytl="1" xbr="1" xtl="1" outside="0" occluded="0" keyframe="1" frame="3">'
        '<attribute name="cross">x</attribute><attribute name="id">y</attribute></box></track>'
    )
    record = box_record(text)
    assert record.attributes == ("ybr", "ytl", "xbr", "xtl", "outside", "occluded", "keyframe", "frame")
    assert record.children[0] == ("cross", "id")
    assert set(record.names) == set(box_record("").names)
    assert vehicle_record('<frame OBD_speed="1" id="3" />').attributes[0] == "id"
    assert box_record('<box a.*="1">').attributes == box_record("").attributes


@pytest.mark.parametrize("shuffle", [False, True])
def test_files_of_any_known_order_are_scanned(
    root: Path, scenes: Scenes, monkeypatch: pytest.MonkeyPatch, shuffle: bool
) -> None:
    from roadaware.scenes.readers import records

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a file of known form was read by lxml")

    if shuffle:
        for path in (root / ANNOTATIONS).rglob("*.xml"):
            reordered = re.sub(rb'<box (frame="\d+") ([^>]*)>', rb"<box \2 \1>", path.read_bytes())
            path.write_bytes(reordered)
        for path in (root / VEHICLE).rglob("*.xml"):
            path.write_bytes(re.sub(rb'<frame (id="\d+") ([^>]*) />', rb"<frame \2 \1 />", path.read_bytes()))
    monkeypatch.setattr(records, "walk", forbidden)
    read = PIE.read(root)
    for name, frame in read.tables().items():
        assert frame.equals(scenes.tables()[name]), name


REAL = Path(os.environ.get("ROADAWARE_DATA_DIR", "absent")) / "pie"


@pytest.mark.skipif(not REAL.is_dir(), reason="ROADAWARE_DATA_DIR does not hold pie/")
def test_the_published_attributes() -> None:
    scenes = PIE.read(REAL)
    assert len(scenes.videos) == 53
    assert scenes.rejected.is_empty()
    assert scenes.meta.notes["warnings"] == []
    splits = {name: len(scenes.split(f"default/{name}").tubes) for name in ("train", "val", "test")}
    assert splits == {"train": 880, "val": 243, "test": 719}
    crossing = dict(scenes.tubes.group_by(pl.col("crossing").cast(pl.String)).len().rows())
    assert crossing == {"crossing": 519, "not-crossing": 855, "irrelevant": 468}
    assert scenes.tubes["crossing_point"].null_count() == 0
    assert scenes.tubes.filter(
        pl.col("exp_start_point") >= pl.col("critical_point"),
    ).is_empty()
    rows_add_up(scenes)
