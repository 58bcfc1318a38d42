"""JAAD: what does not hold is rejected, told or made unknown, and the rest is read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jaad_folders import MAIN, change, reasons, scenes_of, warnings
from sets import maker

from roadaware.datasets import read
from roadaware.datasets.jaad import VEHICLE_ACTION
from roadaware.errors import DatasetNotFoundError, FindingsError, InputError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    maker("jaad").make(tmp_path / "jaad")
    return tmp_path / "jaad"


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


@pytest.mark.slow
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
    assert scenes.meta.notes["left_out"] == {"boxes outside the image (outside=1)": 2}


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


@pytest.mark.slow
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


def test_a_damaged_archive_in_the_folder_is_named(tmp_path):
    (tmp_path / "JAAD.zip").write_bytes(b"PK\x03\x04" + bytes(200))
    with pytest.raises(DatasetNotFoundError, match=r"saw: JAAD\.zip.*JAAD\.zip: .*zip"):
        read("jaad", tmp_path, cache=False)
