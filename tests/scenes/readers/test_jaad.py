"""JAAD by hand: what its fixture holds, every kind of bad row and file, and the published annotations."""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sets import maker, rows_add_up

from roadaware.errors import DatasetNotFoundError, FindingsError, InputError
from roadaware.scenes.readers import jaad, read
from roadaware.scenes.readers.jaad_terms import VEHICLE_ACTION
from roadaware.scenes.tables import Scenes

REAL = os.environ.get("ROADAWARE_DATA_DIR")
needs_real = pytest.mark.skipif(not REAL, reason="needs ROADAWARE_DATA_DIR with the published annotations")
MAIN = "annotations/video_0001.xml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    maker("jaad").make(tmp_path / "jaad")
    return tmp_path / "jaad"


@pytest.fixture
def facts(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = maker("jaad").make(tmp_path / "again")
    return found


def scenes_of(root: Path, **options: Any) -> Scenes:
    scenes = read("jaad", root, cache=False, processes=1, **options)
    rows_add_up(scenes)
    return scenes


def change(root: Path, old: str, new: str, *, file: str = MAIN, count: int = 1) -> None:
    text = (root / file).read_text()
    changed = re.sub(old, new, text, count=count)
    assert changed != text
    (root / file).write_text(changed)


def reasons(scenes: Scenes, table: str) -> list[str]:
    return scenes.rejected.filter(pl.col("table") == table)["reason"].to_list()


def warnings(scenes: Scenes) -> dict[str, int]:
    return {each["what"]: each["count"] for each in scenes.meta.notes["warnings"]}


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


# Bad rows

BOX = r'<box frame="4"'
BAD_BOXES = [
    (BOX, "<box", "no frame number"),
    (BOX, '<box frame=""', "frame '' is no whole number"),
    (BOX, '<box frame="4.0"', "frame '4.0' is no whole number"),
    (BOX, '<box frame="-1"', "frame -1 is outside the video of 16 frames"),
    (BOX, '<box frame="16"', "frame 16 is outside the video of 16 frames"),
    (BOX, '<box frame="9223372036854775808"', "frame '9223372036854775808' is no whole number"),
    (BOX, '<box frame="3"', "a second box of this track in this frame"),
    (r'xtl="901.0"', "", "a coordinate is missing"),
    (r'xtl="901.0"', 'xtl="NaN"', "a coordinate is no finite number (xtl, ytl, xbr, ybr = NaN, "),
    (r'xtl="901.0"', 'xtl="-inf"', "a coordinate is no finite number"),
    (r'xtl="901.0"', 'xtl="1e400"', "a coordinate is no finite number"),
    (r'xtl="901.0"', 'xtl="1e39"', "a coordinate is no finite number"),
    (r'xtl="901.0"', 'xtl="1,5"', "a coordinate is no finite number"),
    (r'xtl="901.0"', 'xtl=""', "a coordinate is no finite number"),
    (r'xtl="901.0"', 'xtl="941.25"', "upside down (xtl, ytl, xbr, ybr = 941.25, 504.0, 941.0, 624.0)"),
    (r'ytl="504.0"', 'ytl="624.5"', "upside down"),
]


@pytest.mark.parametrize(("old", "new", "reason"), BAD_BOXES)
def test_a_bad_box_is_rejected_and_the_rest_is_read(root: Path, old: str, new: str, reason: str) -> None:
    clean = scenes_of(root)
    change(root, "><track", ">\n<track")
    change(root, old, new)
    scenes = scenes_of(root)
    assert len(scenes.boxes) == len(clean.boxes) - 1
    row = scenes.rejected.to_dicts()
    assert [(each["table"], each["file"], each["line"]) for each in row] == [("boxes", MAIN, 2)]
    assert row[0]["reason"].startswith(reason)
    assert row[0]["item"].startswith("track '0_1_3b', frame '")
    assert scenes.tubes.equals(clean.tubes)
    with pytest.raises(FindingsError, match=r"1 rejected rows[\s\S]*video_0001.xml:2: track '0_1_3b'"):
        scenes_of(root, strict=True)


def test_a_degenerate_box_and_one_outside_the_picture_are_boxes(root: Path) -> None:
    change(root, 'xtl="901.0"', 'xtl="941.0"')
    change(root, 'ytl="505.0"', 'ytl="-20.5"')
    scenes = scenes_of(root, strict=True)
    assert scenes.boxes["y1_px"].min() == -20.5


def test_boxes_that_left_the_picture_are_no_rows(root: Path) -> None:
    clean = scenes_of(root)
    change(root, 'outside="0"', 'outside="1"', count=2)
    scenes = scenes_of(root, strict=True)
    assert len(scenes.boxes) == len(clean.boxes) - 2
    assert scenes.meta.notes["left_out"] == {"boxes outside the picture (outside=1)": 2}


def test_a_box_outside_a_track_is_rejected(root: Path) -> None:
    change(root, "</meta>", '</meta><box frame="0" xtl="0" ytl="0" xbr="1" ybr="1"/>')
    assert reasons(scenes_of(root), "boxes") == ["<box> outside <track>"]


def test_a_box_of_another_id_is_not_the_tracks(root: Path) -> None:
    change(root, r'(<box frame="5".*?name="id">)0_1_3b', r"\g<1>0_1_7b")
    assert reasons(scenes_of(root), "boxes") == ["the id differs from '0_1_3b', the first of its track"]


def test_two_tracks_with_one_id_are_never_merged(root: Path) -> None:
    clean = scenes_of(root)
    change(root, "0_1_2b", "0_1_3b", count=99)
    scenes = scenes_of(root)
    assert reasons(scenes, "tubes") == [
        "a second track with an id that this video already has",
        "attributes of a pedestrian that has no track",
    ]
    assert (
        reasons(scenes, "boxes")
        == ["its track is refused: a second track with an id that this video already has"] * 6
    )
    assert scenes.tubes["name"].to_list() == [n for n in clean.tubes["name"].to_list() if n != "0_1_2b"]
    kept = scenes.boxes.join(scenes.tubes.filter(pl.col("name") == "0_1_3b"), on="tube", how="semi")
    assert kept["frame"].to_list() == list(range(2, 14))


def test_tracks_without_boxes_or_names_are_rejected(root: Path) -> None:
    change(root, "</meta>", '</meta><track label="ped"></track>')
    change(root, '<attribute name="id">0_1_4p</attribute>', "", count=99)
    change(root, r'(<track label="ped">)<box .*?</track>', r'\1<box frame="0"/></track>')
    scenes = scenes_of(root)
    assert reasons(scenes, "tubes") == [
        "no box of the track names its id",
        "no box of the track names its id",
        "no box of the track names its id",
    ]
    assert reasons(scenes, "boxes")[0] == "a coordinate is missing"
    assert set(reasons(scenes, "boxes")[1:]) == {"its track is refused: no box of the track names its id"}


def test_a_track_whose_boxes_are_all_bad_is_rejected(root: Path) -> None:
    change(root, 'xtl="150[^"]*', 'xtl="nan', count=99)
    scenes = scenes_of(root)
    assert reasons(scenes, "tubes") == ["none of its boxes could be taken"]
    assert len(reasons(scenes, "boxes")) == 6


def test_unknown_values_become_null_and_are_counted(root: Path) -> None:
    clean = scenes_of(root)
    change(root, ">looking<", ">staring<", count=3)
    change(root, 'label="ped"', 'label="robot"')
    change(root, ">part<", "><", count=2)
    change(
        root, 'signalized="S"', 'signalized="maybe"', file="annotations_attributes/video_0001_attributes.xml"
    )
    change(root, 'crossing="1"', 'crossing="2"', file="annotations_attributes/video_0001_attributes.xml")
    change(root, 'num_lanes="2"', 'num_lanes="two"', file="annotations_attributes/video_0001_attributes.xml")
    change(root, "<width>1920", "<width>wide")
    change(root, "moving_slow", "flying", file="annotations_vehicle/video_0001_vehicle.xml")
    change(root, 'stop_sign="1"', 'stop_sign="2"', file="annotations_traffic/video_0001_traffic.xml")
    change(root, ">street<", ">river<", file="annotations_traffic/video_0001_traffic.xml")
    scenes = scenes_of(root)
    assert scenes.rejected.is_empty()
    assert warnings(scenes) == {
        "look: a value outside not-looking, looking, kept as null": 3,
        "track_label: a value outside pedestrian, ped, people, kept as null": 1,
        "occlusion: a value outside none, part, full, kept as null": 2,
        "signalized: a value outside n/a, NS, S, kept as null": 1,
        "crossing: a value outside 0, 1, -1, kept as null": 1,
        "num_lanes: no whole number from 1, kept as null": 1,
        "image sizes that are no number of pixels, kept as null": 1,
        f"action: a value outside {', '.join(VEHICLE_ACTION)}, kept as null": 1,
        "stop_sign: a value outside 0, 1, kept as null": 1,
        "road_type: a value outside street, parking_lot, garage, kept as null": 1,
    }
    for table, column, lost in (
        ("boxes", "look", 3),
        ("boxes", "occlusion", 2),
        ("tubes", "track_label", 1),
        ("tubes", "signalized", 1),
        ("tubes", "crossing", 1),
        ("tubes", "num_lanes", 1),
        ("videos", "width_px", 1),
        ("videos", "road_type", 1),
        ("frames", "vehicle_action", 1),
        ("frames", "stop_sign", 1),
    ):
        now, before = scenes.tables()[table][column], clean.tables()[table][column]
        assert now.null_count() == before.null_count() + lost, column
    with pytest.raises(FindingsError, match="staring"):
        scenes_of(root, strict=True)


@pytest.mark.parametrize(
    ("value", "warned"),
    [("-1", None), ("-2", "no whole number from 0"), ("soon", "no whole number"), ("16", "behind the end")],
)
def test_points_that_are_no_frames_are_null(root: Path, value: str, warned: str | None) -> None:
    change(
        root,
        'crossing_point="12"',
        f'crossing_point="{value}"',
        file="annotations_attributes/video_0001_attributes.xml",
    )
    scenes = scenes_of(root)
    tube = scenes.tubes.row(by_predicate=pl.col("name") == "0_1_3b", named=True)
    assert (tube["crossing_point"], tube["event_frame"], tube["event_source"]) == (None, 11, "fallback")
    told = list(warnings(scenes))
    assert told == [] if warned is None else warned in told[0]


def test_attributes_that_fit_nobody_are_rejected(root: Path) -> None:
    name = "annotations_attributes/video_0002_attributes.xml"
    change(root, 'id="0_2_9b"', 'id="0_2_8b"', file=name)
    change(root, "(<pedestrian [^>]*0_2_10b[^>]*/>)", r"\1\1<pedestrian/>", file=name)
    scenes = scenes_of(root)
    assert sorted(reasons(scenes, "tubes")) == [
        "a second pedestrian with this id",
        "attributes of a pedestrian that has no track",
        "no id",
    ]
    assert scenes.rejected["file"].unique().to_list() == [name]
    assert warnings(scenes) == {"pedestrians with behaviour but without attributes": 1}


def test_frames_that_fit_nowhere_are_rejected(root: Path) -> None:
    name = "annotations_vehicle/video_0001_vehicle.xml"
    change(root, 'id="3"', 'id="2"', file=name)
    change(root, 'id="5"', 'id="16"', file=name)
    change(root, ' id="7"', "", file=name)
    scenes = scenes_of(root)
    assert reasons(scenes, "frames") == [
        "a second record for this frame",
        "frame 16 is outside the video of 16 frames",
        "no frame number",
    ]
    video = scenes.frames.filter(pl.col("video") == "video_0001")
    assert video["vehicle_action"].is_null().arg_true().to_list() == [3, 5, 7]
    assert len(video) == 16


# Bad files


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data.replace(b"><", b">\n<")[: len(data) // 2], "not well-formed XML"),
        (lambda data: b"", "the file is empty"),
        (lambda data: b"<!DOCTYPE a>" + data, "declares a DOCTYPE"),
        (
            lambda data: data.replace(b"annotations>", b"notes>").replace(b"<annotations", b"<notes"),
            "expected the root",
        ),
        (lambda data: data.replace(b"<size>16", b"<size>0"), "meta/task/size should be"),
        (lambda data: data.replace(b"<size>16", b"<size>100001"), "meta/task/size should be"),
        (lambda data: data.replace(b"<size>16", b"<size>" + b"9" * 400), "meta/task/size should be"),
        (lambda data: data.replace(b"<size>16</size>", b""), "and is missing"),
        (lambda data: data.replace(b"0_1_1", b"\xff\xfe"), "is not UTF-8"),
    ],
)
def test_a_damaged_file_among_many_is_rejected_whole(root: Path, damage: Any, reason: str) -> None:
    clean = scenes_of(root)
    path = root / MAIN
    path.write_bytes(damage(path.read_bytes()))
    scenes = scenes_of(root)
    row = scenes.rejected.row(0, named=True)
    assert len(scenes.rejected) == 1
    assert (row["table"], row["file"]) == ("files", MAIN)
    assert reason in row["reason"]
    told = re.search(r", line (\d+), column", row["reason"])
    assert (told is not None) == ("well-formed" in reason)
    assert row["line"] == (None if told is None else int(told[1]))
    assert row["line"] is None or row["line"] > 1
    rest = clean.only(scenes.videos["video"].to_list())
    assert "video_0001" not in scenes.videos["video"].to_list()
    assert scenes.frames.equals(rest.frames)
    assert scenes.boxes.drop("box", "tube").equals(rest.boxes.drop("box", "tube"))
    assert warnings(scenes) == {"videos of a split list that have no annotations": 1}
    with pytest.raises(FindingsError, match="video_0001"):
        scenes_of(root, strict=True)


def test_a_sole_damaged_file_is_an_error(root: Path) -> None:
    for path in (root / "annotations").iterdir():
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(
        InputError, match="none of 5 annotation files can be read; the first: not well-formed"
    ):
        read("jaad", root)
    for path in list((root / "annotations").iterdir())[1:]:
        path.unlink()
    with pytest.raises(InputError, match=r"annotations/video_000.\.xml, line 1, column \d+: not well-formed"):
        read("jaad", root)


def test_missing_side_files_are_told(root: Path) -> None:
    shutil.rmtree(root / "annotations_traffic")
    shutil.rmtree(root / "split_ids")
    (root / "annotations_vehicle" / "video_0002_vehicle.xml").unlink()
    scenes = scenes_of(root)
    assert warnings(scenes) == {
        "videos without a file in annotations_traffic/": 5,
        "videos without a file in annotations_vehicle/": 1,
        "split lists that are missing": 9,
    }
    assert scenes.frames["traffic_light"].null_count() == len(scenes.frames)
    assert scenes.frames["vehicle_action"].null_count() == 16
    assert scenes.rejected.is_empty()


def test_side_files_of_nobody_are_rejected(root: Path) -> None:
    (root / MAIN).unlink()
    scenes = scenes_of(root)
    assert reasons(scenes, "files") == ["no file in annotations/ belongs to it"] * 3


def test_odd_split_lists_are_told(root: Path) -> None:
    (root / "split_ids/default/train.txt").write_text("video_0001\nvideo_0001\nvideo_0009\n\nvideo_0005\n")
    (root / "split_ids/default/val.txt").write_text("")
    (root / "split_ids/high_visibility/val.txt").write_bytes(b"\xff")
    scenes = scenes_of(root)
    assert warnings(scenes) == {
        "split lists that are empty": 1,
        "videos of a split list that have no annotations": 1,
        "videos that stand in two splits of one subset": 1,
    }
    assert scenes.split_videos("default/train") == ["video_0001", "video_0005"]
    assert scenes.rejected.select("file", "reason").rows() == [
        ("split_ids/high_visibility/val.txt", "byte 0 is not UTF-8: invalid start byte")
    ]


def test_names_with_control_characters_are_kept_apart_and_printable(root: Path) -> None:
    odd = "video\n;🚶"
    for path in sorted(root.rglob("video_0004*")):
        path.rename(path.with_name(path.name.replace("video_0004", odd)))
    scenes = scenes_of(root)
    assert "video\\n;🚶" in scenes.videos["video"].to_list()
    assert len(scenes.tubes) == 10


# Fuzzing


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("small") / "jaad"
    maker("jaad").make(root, frames=2)
    for path in root.rglob("video_000[345]*"):
        path.unlink()
    return root


def _damage_a_file(small: Path, data: st.DataObject) -> None:
    """Cut, overwrite, delete and double bytes of any file."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(small, Path(folder) / "jaad"))
        names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
        for _ in range(data.draw(st.integers(1, 3))):
            path = root / data.draw(st.sampled_from(names))
            content = path.read_bytes()
            at = data.draw(st.integers(0, len(content)))
            end = at + data.draw(st.integers(0, 200))
            known = st.sampled_from([b"", b'"', b"<", b"-1", b"1e400", b"\0", b"<!--", b"</track>", b"\xe9"])
            new = data.draw(st.one_of(st.binary(max_size=8), known))
            kinds = {
                "cut": content[:at],
                "replace": content[:at] + new + content[end:],
                "double": content[:end] + content[at:],
            }
            path.write_bytes(kinds[data.draw(st.sampled_from(sorted(kinds)))])
        try:
            scenes_of(root, appearance=True)
        except InputError:
            event("nothing could be read")


def _damage_an_archive(small: Path, data: st.DataObject) -> None:
    """Overwrite bytes of an archive anywhere, its directory and its end above all, and cut it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in small.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(small.parent).as_posix())
    content = bytearray(packed.getvalue())
    for _ in range(data.draw(st.integers(1, 6))):
        low = data.draw(st.sampled_from([0, -2000, -22]))
        place = data.draw(st.integers(low, (len(content) if low == 0 else 0) - 1))
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([None, None, None, -5, -90, 4000]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.zip"
        path.write_bytes(bytes(content)[:cut])
        try:
            scenes_of(path)
        except InputError:
            event("nothing could be read")


LIMITS = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None, "derandomize": True}


@pytest.mark.parametrize(("damage", "count"), [(_damage_a_file, 25), (_damage_an_archive, 80)])
def test_whatever_the_bytes_tables_are_valid_or_the_error_is_ours(
    small: Path, damage: Any, count: int
) -> None:
    @settings(max_examples=count, **LIMITS)
    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        damage(small, data)

    law()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_damage_a_file, _damage_an_archive])
def test_the_same_two_thousand_times(small: Path, damage: Any) -> None:
    @settings(max_examples=2_000, **{**LIMITS, "derandomize": False})
    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        damage(small, data)

    law()


# The published annotations


@pytest.fixture(scope="module")
def published() -> Scenes:
    return read("jaad", Path(REAL or ""), cache=False, strict=True)


@needs_real
def test_published_counts(published: Scenes) -> None:
    sizes = {name: len(frame) for name, frame in published.filled().items()}
    assert sizes == {"videos": 346, "frames": 82_032, "boxes": 391_038, "tubes": 2_786}
    assert published.meta.rows_read == {**sizes, "files": 346 * 4 + 9}
    labels = dict(published.tubes.group_by("track_label").len().iter_rows())
    assert labels == {"pedestrian": 686, "ped": 2_017, "people": 83}
    assert published.tubes["behaviour"].sum() == 686
    crossing = dict(published.tubes.drop_nulls("crossing").group_by("crossing").len().iter_rows())
    assert crossing == {"irrelevant": 100, "not-crossing": 91, "crossing": 495}
    sizes_px = dict(published.videos.group_by("width_px").len().iter_rows())
    assert sizes_px == {1920: 336, 1280: 10}


@needs_real
def test_published_events(published: Scenes) -> None:
    tubes = published.tubes.drop_nulls("crossing")
    crossing = pl.col("crossing") == "crossing"
    point = pl.col("crossing_point").is_not_null()
    assert len(tubes.filter(crossing & ~point)) == 167
    assert len(tubes.filter(~crossing & point)) == 89
    sources = dict(tubes.group_by("event_source").len().iter_rows())
    assert sources == {"annotated": 328 + 89, "fallback": 167, "none": 102}
    assert tubes.filter(pl.col("event_source") == "none")["event_frame"].null_count() == 102
    inside = tubes.filter((pl.col("event_frame") >= 0) | pl.col("event_frame").is_null())
    assert len(inside) == 686


@needs_real
def test_published_frames_and_gaps(published: Scenes) -> None:
    actions = dict(published.frames.group_by("vehicle_action").len().iter_rows())
    assert actions == {
        "decelerating": 39_190,
        "accelerating": 26_390,
        "stopped": 11_193,
        "moving_fast": 2_834,
        "moving_slow": 2_425,
    }
    spans = published.boxes.group_by("tube").agg(pl.len(), pl.col("frame").max() - pl.col("frame").min() + 1)
    assert len(spans.filter(pl.col("len") != pl.col("frame"))) == 19
    without = set(published.videos["video"]) - set(published.tubes["video"])
    assert len(without) == 9


@needs_real
def test_published_splits(published: Scenes) -> None:
    sizes = {
        subset: tuple(len(published.split_videos(f"{subset}/{split}")) for split in ("train", "test", "val"))
        for subset in ("default", "all_videos", "high_visibility")
    }
    assert sizes == {
        "default": (177, 117, 29),
        "all_videos": (188, 126, 32),
        "high_visibility": (182, 121, 30),
    }
    default = [v for split in ("train", "val", "test") for v in published.split_videos(f"default/{split}")]
    tubes = published.only(default).tubes
    assert len(tubes.filter(pl.col("track_label") != "people")) == 2_580
    assert tubes["behaviour"].sum() == 648


@needs_real
@pytest.mark.slow
def test_published_appearance_fits_every_box_but_those_of_groups() -> None:
    with jaad.find(Path(REAL or "")) as source:
        if not source.has_folder("annotations_appearance"):
            pytest.skip("this copy of JAAD has no appearance tags")
        scenes = jaad.read(source, appearance=True)
    assert scenes.rejected.is_empty()
    assert scenes.meta.notes["warnings"] == []
    assert len(scenes.boxes) - scenes.boxes["pose_front"].null_count() == 378_643


def test_a_damaged_archive_in_the_folder_is_named(tmp_path):
    (tmp_path / "JAAD.zip").write_bytes(b"PK\x03\x04" + bytes(200))
    with pytest.raises(DatasetNotFoundError, match=r"saw: JAAD\.zip.*JAAD\.zip: .*zip"):
        read("jaad", tmp_path, cache=False)
