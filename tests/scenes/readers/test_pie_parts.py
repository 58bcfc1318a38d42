"""PIE: odd values, its own zips, parts of it alone, files of any order, and what the real set holds."""

from __future__ import annotations

import os
import re
from pathlib import Path

import damage
import polars as pl
import pytest
from pie_tables import ANNOTATIONS, MAIN, PIE, VEHICLE, boxes, tube
from sets import copied, edit, maker, rows_add_up

from roadaware.datasets.pie import get_box_record, get_vehicle_record
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.tables import Scenes

KNOWN, SENSED = maker("pie").OTHERS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return PIE.make(tmp_path / "PIE")


@pytest.fixture(scope="module")
def scenes(clean_scenes: dict[str, Scenes]) -> Scenes:
    return clean_scenes["pie"]


@pytest.mark.slow
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


@pytest.mark.slow
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
    from roadaware.io.xml import Walkers

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
    record = get_box_record(text)
    assert record.attributes == ("ybr", "ytl", "xbr", "xtl", "outside", "occluded", "keyframe", "frame")
    assert record.children[0] == ("cross", "id")
    assert set(record.names) == set(get_box_record("").names)
    assert get_vehicle_record('<frame OBD_speed="1" id="3" />').attributes[0] == "id"
    assert get_box_record('<box a.*="1">').attributes == get_box_record("").attributes


@pytest.mark.parametrize("shuffle", [False, True])
def test_files_of_any_known_order_are_scanned(
    root: Path, scenes: Scenes, monkeypatch: pytest.MonkeyPatch, shuffle: bool
) -> None:
    from roadaware.io import xml

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a file of known form was read by lxml")

    if shuffle:
        for path in (root / ANNOTATIONS).rglob("*.xml"):
            reordered = re.sub(rb'<box (frame="\d+") ([^>]*)>', rb"<box \2 \1>", path.read_bytes())
            path.write_bytes(reordered)
        for path in (root / VEHICLE).rglob("*.xml"):
            path.write_bytes(re.sub(rb'<frame (id="\d+") ([^>]*) />', rb"<frame \2 \1 />", path.read_bytes()))
    monkeypatch.setattr(xml, "walk", forbidden)
    read = PIE.read(root)
    for name, frame in read.tables().items():
        assert frame.equals(scenes.tables()[name]), name


REAL = Path(os.environ.get("ROADAWARE_DATA_DIR", "absent")) / "pie"


@pytest.mark.slow
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
