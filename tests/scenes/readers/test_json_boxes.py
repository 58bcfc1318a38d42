"""What BDD100K, OpenLABEL and COCO say in ways of their own: last pixels, images by themselves, cameras, bad images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roadaware.datasets import read
from roadaware.errors import UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

BOX = {"x1": 10, "y1": 20, "x2": 39, "y2": 59.5}


def read_json(folder: Path, reader: str, content: Any, **options: Any) -> Scenes:
    """What a reader makes of a file `drive.json`."""
    (folder / "drive.json").write_text(json.dumps(content))
    return read(reader, folder, cache=False, **options)


def corners(scenes: Scenes) -> list[tuple[float, ...]]:
    return scenes.boxes.select(pl.col(*CORNERS).cast(pl.Float64)).rows()


def test_the_last_pixel_of_bdd100k_is_inside(tmp_path: Path) -> None:
    content = [{"name": "a.jpg", "labels": [{"id": 3, "category": "car", "box2d": BOX}]}]
    assert corners(read_json(tmp_path, "bdd100k", content)) == [(10, 20, 40, 60.5)]
    assert corners(read_json(tmp_path, "bdd100k", content, pixels="edges")) == [(10, 20, 39, 59.5)]
    with pytest.raises(UsageError, match="inside or edges"):
        read_json(tmp_path, "bdd100k", content, pixels="7")


def test_images_are_videos_of_their_own_and_their_ids_no_tracks(tmp_path: Path) -> None:
    label = {"id": "3", "category": "car", "box2d": BOX, "attributes": {"occluded": True, "crowd": True}}
    outline = {"id": "4", "category": "lane", "poly2d": [{"vertices": [[1, 2]]}]}
    content = {
        "frames": [
            {"name": "a.jpg", "labels": [label, outline]},
            {"name": "b.jpg", "labels": None},
            {"name": "c.jpg"},
        ],
        "config": {
            "imageSize": {"width": 1280, "height": 720},
            "categories": [{"name": "lane"}, {"name": "car"}],
        },
    }
    scenes = read_json(tmp_path, "bdd100k", content)
    assert scenes.videos.select("video", "width_px", "n_frames").rows() == [
        ("a", 1280, 1),
        ("b", 1280, 1),
        ("c", 1280, 1),
    ]
    assert scenes.tubes.is_empty()
    assert scenes.boxes.select("occlusion", "ignore").rows() == [("part", True)]
    assert scenes.meta.notes["left_out"] == {"shapes that are no box (poly2d)": 1}
    assert scenes.meta.vocabularies == {"agent": ("lane", "car")}


def test_splits_of_bdd100k_are_folders_or_in_names(tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    frame = {"videoName": "v", "frameIndex": 2, "name": "v-3.jpg", "labels": []}
    (tmp_path / "val" / "v.json").write_text(json.dumps([frame]))
    (tmp_path / "det_train.json").write_text(json.dumps([{"name": "a.jpg", "labels": []}]))
    scenes = read("bdd100k", tmp_path, cache=False)
    assert dict(scenes.videos.select("video", "splits").iter_rows()) == {
        "a": ["default/train"],
        "v": ["default/val"],
    }
    assert scenes.frames.select("video", "frame").rows() == [("a", 0), ("v", 2)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"box2d": {**BOX, "x2": "39"}}, "no box of finite numbers"),
        ({"box2d": {**BOX, "x2": 1}}, "upside down"),
        ({"box2d": 7}, "no box of finite numbers: 7"),
        ({"id": [1]}, "the id should be"),
        ({"category": 7}, "the category should be"),
        (None, "should be an object"),
    ],
)
def test_bad_labels_of_bdd100k_are_named(tmp_path: Path, change: dict[str, Any] | None, reason: str) -> None:
    label = None if change is None else {"id": "3", "category": "car", "box2d": BOX, **change}
    frame = {
        "videoName": "v",
        "frameIndex": 0,
        "labels": [{"id": "1", "category": "car", "box2d": BOX}, label],
    }
    scenes = read_json(tmp_path, "bdd100k", [frame])
    assert len(scenes.boxes) == 1
    assert reason in scenes.rejected["reason"][0]
    assert "v frame 0, label 1" in scenes.rejected["item"][0]


def test_a_bad_image_of_coco_costs_itself_and_its_boxes(tmp_path: Path) -> None:
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 90, "height": 80} for n in (1, 2)]
    bad = [{"id": 1, "file_name": "3.jpg"}, {"id": "4"}, 7, {"id": 5, "file_name": "../5.jpg"}]
    boxes = [
        {"id": n, "image_id": image, "category_id": 1, "bbox": [1, 2, 3, 4]}
        for n, image in enumerate((1, 2, 5))
    ]
    content = {"images": [*images, *bad], "categories": [{"id": 1, "name": "car"}], "annotations": boxes}
    scenes = read_json(tmp_path, "coco", content)
    assert len(scenes.boxes) == 2
    refused = scenes.rejected.select("table", "file", "item").rows()
    assert refused == [("frames", "drive.json", f"image {n}") for n in (2, 3, 4, 5)] + [
        ("boxes", "drive.json", "entry 2")
    ]
    assert scenes.meta.rows_read == {"boxes": 3, "files": 1, "frames": 6}
    assert len(read_json(tmp_path, "coco", {**content, "annotations": boxes[:2]}).rejected) == 4


def openlabel(frames: dict[str, Any] | None, objects: dict[str, Any], **more: Any) -> dict[str, Any]:
    held = {} if frames is None else {"frames": frames}
    return {"openlabel": {"metadata": {"schema_version": "1.0.0"}, "objects": objects, **held, **more}}


def shown(*values: float, **box: Any) -> dict[str, Any]:
    """An object's data with a box."""
    return {"object_data": {"bbox": [{"name": "shape", "val": list(values), **box}]}}


def test_cameras_of_openlabel_are_videos(tmp_path: Path) -> None:
    lens = {"intrinsics_pinhole": {"width_px": 640, "height_px": 480}}
    streams = {
        "front": {"type": "camera", "stream_properties": lens},
        "rear": {"type": "camera"},
        "top": {"type": "lidar"},
    }
    said = {"attributes": {"text": [{"name": "stream", "val": "rear"}]}}
    frames = {
        "0": {"objects": {"a": shown(5, 6, 4, 2, stream="front"), "b": shown(5, 6, 4, 2, **said)}},
        "3": {"objects": {"a": shown(5, 6, 4, 2)}},
    }
    objects = {"a": {"name": "A", "type": "car"}, "b": {"name": "B", "type": "car"}}
    scenes = read_json(tmp_path, "openlabel", openlabel(frames, objects, streams=streams))
    assert scenes.videos.select("video", "width_px", "n_frames").rows() == [
        ("drive/front", 640, 4),
        ("drive/rear", None, 4),
    ]
    assert scenes.boxes.select("video", "frame").rows() == [("drive/front", 0), ("drive/rear", 0)]
    assert corners(scenes) == [(3, 5, 7, 7)] * 2
    assert "several cameras, and null is none" in scenes.rejected["reason"][0]
    assert scenes.frames.filter(video="drive/rear")["frame"].to_list() == [0, 3]


def test_objects_of_openlabel_without_frames_are_an_image(tmp_path: Path) -> None:
    objects = {
        "7": {"name": "x", "type": "car", **shown(5, 6, 4, 2)},
        "8": {"name": "x", "type": "bus", **shown(1, 1, 2, 2)},
    }
    scenes = read_json(tmp_path, "openlabel", openlabel(None, objects))
    assert scenes.videos["n_frames"].to_list() == [1]
    assert scenes.tubes["name"].to_list() == ["7", "8"], "two names are the same: keys instead"
    beside = read_json(tmp_path, "openlabel", openlabel({"0": {}}, objects))
    assert beside.boxes.is_empty()
    assert beside.meta.notes["left_out"]["boxes of objects that name no frame"] == 2


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (shown(5, 6, -4, 2), "upside down"),
        (shown(5, 6, 4), "not four finite numbers"),
        (shown(5, 6, 4, True), "not four finite numbers"),
        ({"object_data": {"bbox": [7]}}, "not four finite numbers"),
    ],
)
def test_bad_boxes_of_openlabel_are_named(tmp_path: Path, given: dict[str, Any], reason: str) -> None:
    objects = {"1": {"name": "A", "type": "car"}, "2": {"name": "B", "type": "car"}}
    frames = {"0": {"objects": {"1": shown(5, 6, 4, 2), "2": given, "3": shown(5, 6, 4, 2)}}}
    scenes = read_json(tmp_path, "openlabel", openlabel(frames, objects))
    assert len(scenes.boxes) == 1
    assert reason in scenes.rejected["reason"][0]
    assert scenes.rejected["reason"][1] == "its object is none of 'objects'"


def test_shapes_and_actions_of_openlabel_are_counted(tmp_path: Path) -> None:
    data = {
        "object_data": {
            "bbox": [],
            "cuboid": [{"val": [1]}],
            "poly2d": [{"val": [1]}, {"val": [2]}],
            "text": [{"name": "a"}],
        }
    }
    content = openlabel(
        {"0": {"objects": {"1": data}}}, {"1": {"name": "A", "type": "car"}}, actions={"0": {"type": "x"}}
    )
    assert read_json(tmp_path, "openlabel", content).meta.notes["left_out"] == {
        "actions, which are no boxes": 1,
        "shapes that are no box (cuboid)": 1,
        "shapes that are no box (poly2d)": 2,
    }
