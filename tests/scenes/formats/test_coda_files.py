"""COCO files about corner cases: flags, tags and super-classes; the two files of 2022 merged by id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roadaware.errors import InputError
from roadaware.formats.coco import read_results
from roadaware.formats.coda import build_predictions_index, read_corner_cases

IMAGES = [
    {"id": 9, "file_name": "once_1.jpg", "width": 100, "height": 80, "period": "Night", "weather": "Rainy"},
    {"id": 4, "file_name": "x/kitti_2.png", "width": 60, "height": 40, "period": "Daytime"},
    {"id": 5, "file_name": "other.png", "width": 60, "height": 40, "weather": ""},
]
CATEGORIES = [
    {"id": 1, "name": "pedestrian", "supercategory": "pedestrian"},
    {"id": 17, "name": "dog", "supercategory": "animal"},
    {"id": 20, "name": "bollard"},
]


def box(number: int, image: int = 9, category: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": number, "image_id": image, "category_id": category, "bbox": [1, 2, 30, 20.5], **more}


def written(folder: Path, name: str, annotations: list[dict[str, Any]], **more: Any) -> Path:
    path = folder / name
    path.write_text(
        json.dumps({"images": IMAGES, "categories": CATEGORIES, "annotations": annotations, **more})
    )
    return path


def test_one_file(tmp_path: Path) -> None:
    listed = [
        box(0, corner_case=True, area=300),
        box(7, 4, 17, corner_case=False, iscrowd=1),
        box(3, 5, 20, ignore=1),
    ]
    scenes = read_corner_cases(written(tmp_path, "a.json", listed))
    assert scenes.videos.rows() == [
        ("once_1.jpg", 100, 80, "Night", "Rainy", "once"),
        ("x/kitti_2.png", 60, 40, "Daytime", None, "kitti"),
        ("other.png", 60, 40, None, None, None),
    ]
    assert scenes.frames["image_id"].to_list() == [9, 4, 5]
    assert scenes.frames["annotated"].all()
    flags = scenes.boxes.select("area_px2", "sides_px2", "ignore", "crowd", "corner_case")
    assert flags.rows() == [
        (300, 615, False, False, True),
        (615, 615, True, True, False),
        (615, 615, True, False, None),
    ]
    words = scenes.meta.vocabularies
    assert words == {"corner": ("pedestrian", "dog", "bollard"), "corner_super": ("pedestrian", "animal")}
    assert scenes.labels.select("box", "kind", "label").rows() == [
        (0, "corner", 0),
        (1, "corner", 1),
        (2, "corner", 2),
        (0, "corner_super", 0),
        (1, "corner_super", 1),
    ]
    assert scenes.meta.notes["category_ids"] == {"pedestrian": 1, "dog": 17, "bollard": 20}


def test_a_file_without_flags_says_nothing_of_corner_cases(tmp_path: Path) -> None:
    scenes = read_corner_cases(written(tmp_path, "a.json", [box(1)]))
    assert "corner_case" not in scenes.boxes.columns


def test_what_is_odd_is_counted(tmp_path: Path) -> None:
    listed = [box(1, corner_case="yes", area=-1), box(2, bbox=[90, 0, 20, 5]), box(3, 77), box(4, 9, 99)]
    scenes = read_corner_cases(written(tmp_path, "a.json", listed))
    assert {w["what"].split(";")[0]: w["count"] for w in scenes.meta.notes["warnings"]} == {
        "a box reaches out of its image": 1,
        "an area that is no number from 0 on": 1,
        "a corner_case that is not true or false": 1,
    }
    assert scenes.rejected["reason"].to_list() == [
        "image_id 77 is none of the images",
        "category_id 99 is none of the categories",
    ]
    again = read_corner_cases(written(tmp_path, "b.json", [box(1), box(1)]))
    assert again.rejected["reason"].to_list() == ["id 1 of annotation 1 stands twice"]
    twice = [IMAGES[0], {**IMAGES[0], "id": 10}]
    with pytest.raises(InputError, match=r"file once_1.jpg stands twice"):
        read_corner_cases(written(tmp_path, "c.json", [], images=twice))


def test_two_files_by_id(tmp_path: Path) -> None:
    common = written(tmp_path, "common.json", [box(1), box(2)], categories=CATEGORIES[:1])
    agnostic = [{"id": 1, "name": "agnostic"}]
    corner = written(tmp_path, "corner.json", [box(2), box(5, 4)], categories=agnostic)
    scenes = read_corner_cases(common, corner)
    assert scenes.boxes.select("video", "corner_case").rows() == [
        ("once_1.jpg", False),
        ("once_1.jpg", True),
        ("x/kitti_2.png", True),
    ]
    assert scenes.labels.select("box", "kind", "label").rows() == [
        (0, "corner", 0),
        (1, "corner", 0),
        (0, "corner_super", 0),
        (1, "corner_super", 0),
    ], "what stands in the corner file alone has no class"
    told = written(tmp_path, "told.json", [box(2), box(5, 4, 17)])
    scenes = read_corner_cases(common, told)
    assert scenes.meta.vocabularies["corner"] == ("pedestrian", "dog", "bollard")
    assert scenes.labels.select("box", "label").rows()[2] == (2, 1)


def test_two_files_that_do_not_belong_together(tmp_path: Path) -> None:
    common = written(tmp_path, "common.json", [box(1), box(2)])
    moved = written(tmp_path, "moved.json", [box(1), box(2, 4)])
    with pytest.raises(InputError, match=r"1 annotations have the same id .* first \[2\]"):
        read_corner_cases(common, moved)
    with pytest.raises(InputError, match="annotations 1 stands twice"):
        read_corner_cases(common, written(tmp_path, "twice.json", [box(7), box(7)]))
    other = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    with pytest.raises(InputError, match="category 1 is 'cat' here and 'pedestrian'"):
        read_corner_cases(common, written(tmp_path, "other.json", [box(9)], categories=other))
    renamed = [{**IMAGES[0], "file_name": "once_8.jpg"}, *IMAGES[1:]]
    with pytest.raises(InputError, match=r"1 images have the same id .* another file name, first \[9\]"):
        read_corner_cases(common, written(tmp_path, "renamed.json", [box(9)], images=renamed))


def test_results_find_their_pictures(tmp_path: Path) -> None:
    scenes = read_corner_cases(written(tmp_path, "a.json", [box(1)]))
    rows = [
        {"image_id": 4, "category_id": 17, "bbox": [0, 0, 5, 5], "score": 0.5},
        {"image_id": 9, "category_id": 400, "bbox": [0, 0, 5, 5], "score": 0.25},
        {"image_id": 9, "bbox": [0, 0, 6, 5], "score": 0.75},
    ]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(rows))
    named = read_results(path, build_predictions_index(scenes, {17: "dog"}))
    assert named.boxes["video"].to_list() == ["x/kitti_2.png"]
    assert len(named.rejected) == 2
    whatever = read_results(path, build_predictions_index(scenes, {}), agnostic=True)
    assert whatever.boxes["score"].to_list() == [0.25, 0.75, 0.5]
    assert whatever.labels.is_empty()
    bare = scenes.with_tables(frames=scenes.frames.drop("image_id"))
    with pytest.raises(InputError, match="no image_id"):
        build_predictions_index(bare, {})


@pytest.mark.parametrize("category", [{"name": "cat"}, {"id": [2], "name": "cat"}, {"id": "2"}, 2])
def test_a_corner_file_of_odd_categories_is_refused(tmp_path: Path, category: Any) -> None:
    common = written(tmp_path, "common.json", [box(1)])
    odd = written(tmp_path, "odd.json", [box(9)], categories=[CATEGORIES[0], category])
    with pytest.raises(InputError, match=r"odd\.json: .*categories 1"):
        read_corner_cases(common, odd)


def test_annotations_of_odd_categories_are_refused_in_the_second_file_too(tmp_path: Path) -> None:
    common = written(tmp_path, "common.json", [box(1)])
    listed = [box(9, category=17), box(10, category=[1]), box(11, category=99)]  # type: ignore[arg-type]
    scenes = read_corner_cases(common, written(tmp_path, "told.json", listed))
    assert scenes.boxes["corner_case"].to_list() == [False, True]
    assert len(scenes.rejected) == 2
    agnostic = written(tmp_path, "agnostic.json", listed, categories=CATEGORIES[:1])
    assert len(read_corner_cases(common, agnostic).boxes) == 4, "its category says nothing"


def test_two_files_of_videos_keep_them(tmp_path: Path) -> None:
    images = [{"id": n, "video_id": 3, "frame_id": n} for n in (0, 1)]
    held = {"images": images, "videos": [{"id": 3, "name": "drive"}]}
    common = written(tmp_path, "common.json", [box(1, 0)], **held)
    scenes = read_corner_cases(common, written(tmp_path, "corner.json", [box(2, 1)], **held))
    assert scenes.boxes.select("video", "frame").rows() == [("drive", 0), ("drive", 1)]


def test_files_of_videos_keep_them(tmp_path: Path) -> None:
    images = [
        {"id": 1, "video_id": 3, "frame_id": 0, "weather": "Clear"},
        {"id": 2, "video_id": 3, "frame_id": 4},
    ]
    path = written(tmp_path, "v.json", [box(1, 2)], images=images, videos=[{"id": 3, "name": "drive"}])
    scenes = read_corner_cases(path)
    assert scenes.frames.select("video", "frame", "image_id", "weather").rows() == [
        ("drive", 0, 1, "Clear"),
        ("drive", 4, 2, None),
    ]
