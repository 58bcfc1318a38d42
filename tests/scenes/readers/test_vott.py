"""VoTT's exports: frames by number or by time, tags by kind, tracks by name, and what is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sets import SETS, maker, rows_add_up

from roadaware.errors import InputError, UsageError
from roadaware.scenes.tables import Scenes

VOTT = SETS["vott"]
make = maker("vott")
Content = dict[str, Any]


def read_content(tmp_path: Path, content: Content, name: str = "drive.mp4.json", **options: Any) -> Scenes:
    folder = tmp_path / "set"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    scenes = VOTT.read(folder, **options)
    rows_add_up(scenes)
    return scenes


@pytest.fixture
def first() -> Content:
    """A file of version 1, of twelve frames."""
    content: Content = copy.deepcopy(make.version_1(12, (1280, 720)))
    return content


@pytest.fixture
def second() -> Content:
    """A project of version 2: four frames of a video in a second, and two images."""
    content: Content = copy.deepcopy(make.version_2(8))
    return content


def warnings(scenes: Scenes) -> list[str]:
    return [warning["what"] for warning in scenes.meta.notes["warnings"]]


def test_a_walker_by_hand(tmp_path: Path, first: Content) -> None:
    scenes = read_content(tmp_path, first)
    assert scenes.videos.select("video", "width_px", "height_px", "fps").rows() == [
        ("drive.mp4", 1280, 720, 12)
    ]
    assert scenes.tubes.select("name", "start_frame", "end_frame").rows() == [("12", 0, 11), ("7", 1, 12)]
    walker = scenes.boxes.filter(tube=scenes.tubes.filter(name="7")["tube"][0])
    assert walker["frame"].to_list() == list(range(1, 12))
    assert walker.select("x1_px", "y1_px", "x2_px", "y2_px").row(0) == (107.0, 300.25, 167.0, 450.25)
    assert scenes.meta.vocabularies == {"tag": tuple(make.TAGS)}
    assert scenes.labels.filter(box=walker["box"][0]).rows() == [(walker["box"][0], "tag", 1)]
    assert scenes.frames["annotated"].all()
    assert len(scenes.frames) == 12


def test_names_that_one_frame_alone_has_are_no_tracks(tmp_path: Path, first: Content) -> None:
    scenes = read_content(tmp_path, first)
    assert (
        scenes.boxes.filter(pl.col("tube").is_null()).height == 3
    )  # the light's, numbered anew in each frame


def test_another_field_may_name_the_tracks(tmp_path: Path, first: Content) -> None:
    scenes = read_content(tmp_path, first, track="name")
    assert sorted(scenes.tubes["name"]) == ["1", "2", "3"]
    assert scenes.boxes["tube"].null_count() == 0


def test_a_name_that_a_frame_has_twice_is_no_track(tmp_path: Path, first: Content) -> None:
    first["frames"]["5"].append(first["frames"]["5"][0] | {"x1": 1, "x2": 9})
    scenes = read_content(tmp_path, first)
    assert scenes.tubes["name"].to_list() == ["12"]
    assert scenes.rejected.is_empty()
    assert any("a frame has twice" in what for what in warnings(scenes))


def test_tags_go_to_the_kinds_that_are_asked(tmp_path: Path, first: Content) -> None:
    kinds = {"agent": ["Ped", "Car"], "action": ["MovAway", "Stop"]}
    scenes = read_content(tmp_path, first, kinds=kinds)
    assert scenes.meta.vocabularies == {
        "agent": ("Ped", "Car"),
        "action": ("MovAway", "Stop"),
        "tag": ("Jun",),
    }
    car = scenes.boxes.filter(tube=scenes.tubes.filter(name="12")["tube"][0])["box"]
    assert scenes.labels.filter(box=car[0]).select("kind", "label").rows() == [
        ("action", 0),
        ("agent", 1),
        ("tag", 0),
    ]
    whole = read_content(tmp_path, first, kinds=kinds | {"location": ["Jun"]})
    assert "tag" not in whole.meta.vocabularies


@pytest.mark.parametrize(
    "options",
    [{"kinds": {"a": ["x"], "b": ["x"]}}, {"track": "tags"}, {"first_frame": 2}, {"first_frame": "1"}],
)
def test_options_that_are_none(tmp_path: Path, first: Content, options: Content) -> None:
    with pytest.raises(UsageError):
        read_content(tmp_path, first, **options)


def test_tags_that_are_not_offered_come_last(tmp_path: Path, first: Content) -> None:
    first["frames"]["3"][0]["tags"] = ["Bus", "Bus"]
    scenes = read_content(tmp_path, first)
    assert scenes.meta.vocabularies["tag"] == (*make.TAGS, "Bus")
    assert warnings(scenes) == ["tags of boxes that their files do not offer"]


def test_frames_may_count_from_0(tmp_path: Path, first: Content) -> None:
    first["frames"]["0"] = []
    with_first = read_content(tmp_path, first)
    assert with_first.rejected.select("table", "item").rows() == [("frames", "drive.mp4, frame 0")]
    assert "first_frame" in with_first.rejected["reason"][0]
    scenes = read_content(tmp_path, first, first_frame=0)
    assert scenes.frames["frame"].to_list() == list(range(13))


def test_boxes_drawn_on_another_size_are_scaled(tmp_path: Path, first: Content) -> None:
    region = first["frames"]["2"][0]
    for name in ("x1", "y1", "x2", "y2", "width", "height"):
        region[name] /= 2
    assert read_content(tmp_path, first).boxes.filter(frame=1)["x1_px"][0] == pytest.approx(107)


def test_boxes_out_of_their_image_are_kept_and_told(tmp_path: Path, first: Content) -> None:
    first["frames"]["2"][0]["x1"] = -5
    scenes = read_content(tmp_path, first)
    assert scenes.boxes.filter(frame=1)["x1_px"][0] == -5
    assert warnings(scenes) == ["boxes that reach out of their image, kept as they are"]


REFUSED: dict[str, tuple[Content, str]] = {
    "upside down": ({"x2": 1}, "upside down"),
    "empty": ({"y2": 300.25}, "upside down or empty"),
    "missing": ({"x2": None}, "null"),
    "tags in one text": ({"tags": "Ped"}, "list of texts"),
    "tags that are numbers": ({"tags": [1]}, "list of texts"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_regions_are_refused(tmp_path: Path, first: Content, name: str) -> None:
    change, reason = REFUSED[name]
    first["frames"]["2"][0] |= change
    scenes = read_content(tmp_path, first)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("boxes", "drive.mp4, frame 2, region 1")
    assert reason in row["reason"]


def test_what_is_no_region_or_frame_is_refused(tmp_path: Path, first: Content) -> None:
    first["frames"]["2"][0] = []
    first["frames"]["3"] = {}
    scenes = read_content(tmp_path, first)
    assert sorted(scenes.rejected["table"]) == ["boxes", "frames"]
    assert all("should be" in reason for reason in scenes.rejected["reason"])


@pytest.mark.parametrize(
    ("rate", "fps"), [("29.97", 29.97), (15, 15.0), ("fast", None), (-1, None), ("1e999", None)]
)
def test_frame_rates(tmp_path: Path, first: Content, rate: Any, fps: float | None) -> None:
    first["framerate"] = rate
    scenes = read_content(tmp_path, first)
    assert scenes.videos["fps"][0] == (pytest.approx(fps) if fps else None)
    assert bool(warnings(scenes)) == (fps is None)


def test_images_of_version_1(tmp_path: Path, first: Content) -> None:
    first["frames"] = {f"image_{n}.png": regions for n, regions in enumerate(first["frames"].values())}
    first["frames"]["image_3.png"][0] |= {"width": 640, "height": 480}
    scenes = read_content(tmp_path, first, "images.json")
    assert scenes.videos.select("video", "width_px", "fps").rows() == [("images", None, None)]
    assert scenes.frames["image"].to_list() == list(first["frames"])
    assert scenes.tubes.is_empty()
    assert scenes.boxes.filter(frame=3)["x1_px"][0] == 114.0


def test_a_project_of_version_2(tmp_path: Path, second: Content) -> None:
    scenes = read_content(tmp_path, second, "drives-export.json")
    assert scenes.videos.select("video", "width_px", "fps").rows() == [
        ("drive.mp4", 1280, 4),
        ("drives-export", None, None),
    ]
    drive = scenes.frames.filter(video="drive.mp4")
    assert drive.select("frame", "t_s").rows() == [(n, n / 4) for n in range(8)]
    assert drive["annotated"].all()
    box = scenes.boxes.filter(video="drive.mp4").row(0, named=True)
    assert [box[name] for name in ("frame", "x1_px", "y1_px", "x2_px", "y2_px")] == [1, 11.5, 20, 111.5, 70.5]
    assert scenes.frames.filter(video="drives-export")["image"].to_list() == ["image_0.jpg", "image_1.jpg"]
    assert scenes.rejected.is_empty()
    assert warnings(scenes) == []


def test_times_without_a_rate_are_counted(tmp_path: Path) -> None:
    content = make.version_2(5, rate=None)
    scenes = read_content(tmp_path, content, "drives-export.json")
    assert scenes.frames.filter(video="drive.mp4")["frame"].to_list() == list(range(5))
    assert warnings(scenes) == [
        "videos whose frames are counted in the order of their times, for want of a rate"
    ]


def test_files_of_single_assets_stand_beside_no_project(tmp_path: Path, second: Content) -> None:
    (tmp_path / "whole").mkdir()
    whole = read_content(tmp_path / "whole", second, "drives-export.json")
    for name, asset in second["assets"].items():
        scenes = read_content(tmp_path, asset, f"{name}-asset.json")
    drive = scenes.frames.filter(video="drive.mp4")
    assert drive["frame"].to_list() == whole.frames.filter(video="drive.mp4")["frame"].to_list()
    assert len(scenes.boxes) == len(whole.boxes)
    (tmp_path / "set" / "drives-export.json").write_text(json.dumps(second))
    assert VOTT.read(tmp_path / "set").boxes.equals(whole.boxes)


BAD_ASSETS: dict[str, tuple[Any, str]] = {
    "no object": ([], "is a list"),
    "no asset": ({"regions": []}, "an 'asset'"),
    "no name": ({"asset": {"type": 1}}, "'name' should be a text and is null"),
    "regions in an object": (
        {"asset": {"type": 1, "name": "a.png"}, "regions": {}},
        "'regions' should be a list",
    ),
    "no time": ({"asset": {"type": 3, "name": "a.mp4#t=1"}}, "'timestamp' should be seconds and is null"),
    "a time before the start": ({"asset": {"type": 3, "name": "a", "timestamp": -1}}, "'timestamp'"),
}


@pytest.mark.parametrize("name", BAD_ASSETS)
def test_bad_assets_are_refused(tmp_path: Path, second: Content, name: str) -> None:
    asset, reason = BAD_ASSETS[name]
    second["assets"]["x"] = asset
    scenes = read_content(tmp_path, second, "drives-export.json")
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("frames", "assets/x")
    assert reason in row["reason"]


def test_a_region_without_a_box_is_refused(tmp_path: Path, second: Content) -> None:
    second["assets"]["f3"]["regions"][0]["boundingBox"] = None
    second["assets"]["f4"]["regions"][0]["boundingBox"]["width"] = "wide"
    scenes = read_content(tmp_path, second, "drives-export.json")
    assert scenes.rejected["item"].to_list() == ["drive.mp4#t=0.75, region 1", "drive.mp4#t=1.0, region 1"]


def test_a_frame_that_stands_twice_is_refused_the_second_time(tmp_path: Path, second: Content) -> None:
    second["assets"]["again"] = copy.deepcopy(second["assets"]["f3"])
    scenes = read_content(tmp_path, second, "drives-export.json")
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("frames", "drive.mp4, frame 3")
    assert "1 boxes left out" in row["reason"]


def test_what_is_no_export_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither 'frames' nor 'assets'"):
        read_content(tmp_path, {"images": []})
    with pytest.raises(InputError, match="'assets' should be an object and is a list"):
        read_content(tmp_path, {"assets": []})
    with pytest.raises(InputError, match="'inputTags' should be a list"):
        read_content(tmp_path, {"frames": {}, "inputTags": 3})
