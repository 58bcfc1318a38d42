"""Whose annotations a file holds is told from its content, never from its name."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import damage
import pytest
from sets import SETS

from roadaware.datasets.detect_format import detect_dataset_format, match_reader
from roadaware.errors import DatasetNotFoundError, InputError

BOX = [0.1, 0.2, 0.3, 0.4]
RELATED = {"video_id": "v", "trajectories": [], "subject/objects": [], "relation_instances": []}
INSTANCE = {"triplet": ["a", "b", "c"], "duration": [0, 1], "sub_traj": [BOX], "obj_traj": [BOX]}
GROUNDED = [{"video_id": 1, "trajectory": [BOX], "tube_start_frame": 0, "tube_end_frame": 1, "caption": "a"}]
RAW = {"1.mp4": {"bbox": [BOX], "st_time": 1, "ed_time": 2, "img_num": 9, "caption": "a"}}
OFFICIAL = {"1.mp4": {"st_frame": 1, "ed_frame": 2, "bbox": {}}}
SEGMENT = [{"vid": "1", "used_segment": {}, "temporal_gt": {}, "captions": [], "questions": []}]
PREPARED = {"videos": [{"video_id": 1, "qtype": "declarative", "tube_start_frame": 0}], "trajectories": {}}
HEARD = [{"file": "a", "class": "b", "bbox": [BOX]}]
TASK = [{"id": 1, "data": {"video": "a"}, "annotations": [{"result": [{"from_name": "box"}]}]}]
KNOWN = {
    "ava": [
        "v,0902,0.1,0.2,0.3,0.4,12,1\n",
        "v,902.0,0.1,0.2,0.3,0.4,12\n",
        "\ufeffv,1,0,0,1,1,2,3\r\n",
        '"v,1",0902,0,0,1,1,2\n',
        "v,1,0,0,1,1,2,3\rv,2,0,0,1,1,2,3\r",
    ],
    "chaotic_world": ["video_uid,frame,x1,y1,x2,y2,action_id,person_id\nA,1,0,0,1,1,2,3\n"],
    "vidvrd": [json.dumps(each) for each in (RELATED, {"v": [INSTANCE]}, {"u": [], "v": [INSTANCE]})],
    "hcstvg": [json.dumps(GROUNDED), json.dumps(RAW), json.dumps(OFFICIAL)],
    "vidstg": [json.dumps(SEGMENT), json.dumps(PREPARED)],
    "vggss": [json.dumps(HEARD), json.dumps(HEARD, indent=2)],
    "label_studio": [json.dumps(TASK)],
    "coco": [json.dumps({"images": [], "categories": [], "annotations": []})],
    "csv": [
        "frame,id,x,y,w,h\n0,1,2,3,4,5\n",
        '"Frame","track_id","xmin","ymin","xmax","ymax","class"\n0,1,2,3,4,5,car\n',
        "time,cx,cy,width,height\n",
    ],
    "bdd100k": [
        json.dumps([{"name": "a.jpg", "labels": [{"category": "car", "box2d": {"x1": 1}}]}]),
        json.dumps([{"name": "a-0000001.jpg", "videoName": "a", "frameIndex": 0, "labels": []}]),
    ],
    "openlabel": [json.dumps({"openlabel": {"metadata": {"schema_version": "1.0.0"}, "objects": {}}})],
    "activitynet": [
        json.dumps(
            {"version": "1.3", "database": {"v": {"annotations": [{"segment": [0, 1], "label": "a"}]}}}
        )
    ],
    "via": [
        json.dumps({"_via_settings": {}, "_via_img_metadata": {}}),
        json.dumps({"a.jpg7": {"regions": [{"shape_attributes": {}, "region_attributes": {}}]}}),
        "#filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes\na,1,{},0,0,{},{}\n",
    ],
    "road": [json.dumps({"label_types": [], "all_agent_labels": ["Ped"], "agent_labels": ["Ped"], "db": {}})],
    "jaad": [
        "<annotations><version>1.1</version><meta><task><labels><label><name>pedestrian</name><attributes>"
        "<attribute>@text=old_id:</attribute></attributes></label></labels></task></meta></annotations>"
    ],
    "fiftyone": [
        json.dumps({"name": "a", "media_type": "video", "default_classes": []}),
        json.dumps({"samples": [{"filepath": "a.mp4"}]}),
    ],
    "vott": [json.dumps({"frames": {"1": []}, "inputTags": "a,b"}), json.dumps({"asset": {}, "regions": []})],
    "nuscenes": [json.dumps([{"token": "a", "sensor_token": "b", "camera_intrinsic": []}])],
    "cvat": ["<?xml version='1.0'?>\n<annotations><version>1.1</version><meta/></annotations>"],
    "voc": [
        "<annotation><object><name>a</name><bndbox><xmin>1</xmin></bndbox></object></annotation>",
        "<annotation><filename>a.jpg</filename><size><width>1</width></size></annotation>",
    ],
    "flickr_soundnet": ["<?xml version='1.0'?>\n<annotation><bbox/></annotation>"],
}


@pytest.mark.parametrize(("reader", "text"), [(name, text) for name, held in KNOWN.items() for text in held])
def test_formats_are_known_by_what_is_in_them(reader: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "truth.unknown"
    path.write_text(text, encoding="utf-8")
    assert detect_dataset_format(path) == reader


@pytest.mark.parametrize(
    "text", ["", " \n", "{}", "[]", "[1, 2]", "a", "1,2,3,4,5,6,7,8,9", "<html></html>", "item {\n  id: 1\n}"]
)
def test_what_is_none_of_them_is_told_apart(text: str, tmp_path: Path) -> None:
    assert match_reader(text.encode()) is None
    path = tmp_path / "truth.json"
    path.write_text(text)
    with pytest.raises(InputError, match="expected annotations of a known format"):
        detect_dataset_format(path)


@pytest.mark.parametrize(
    ("predictions", "words"),
    [
        ({"predictions": {}, "video_predictions": {"1": {"sted": [0, 1]}}}, "predicted spans"),
        ({"results": {"v": [{"triplet": ["a", "b", "c"], "score": 0.5}]}}, "predicted relations"),
        ({"v": [{**INSTANCE, "score": 0.5}]}, "predicted relations"),
    ],
)
def test_predictions_are_not_taken_for_annotations(predictions: object, words: str, tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(predictions))
    with pytest.raises(InputError, match=f"looks like {words}"):
        detect_dataset_format(path)


def test_what_tells_may_stand_at_the_end_of_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text('{"numbers": [' + "1, " * (2 << 20) + '1], "relation_instances": []}')
    assert path.stat().st_size > (5 << 20)
    assert detect_dataset_format(path) == "vidvrd"


@pytest.mark.parametrize("first", ["images", "annotations"])
def test_a_large_coco_is_known_by_the_rows_at_its_ends(first: str, tmp_path: Path) -> None:
    lists = {
        "images": '{"id": 1, "file_name": "a.jpg", "width": 9, "height": 9}',
        "annotations": '{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]}',
    }
    order = [first, *(name for name in lists if name != first)]
    parts = [f'"{name}": [{",".join([lists[name]] * (5_000_000 // len(lists[name])))}]' for name in order]
    kinds = '"categories": [{"id": 1, "name": "car"}]'
    ordered = [*parts, kinds] if first == "images" else [kinds, *parts]
    (tmp_path / "large.json").write_text("{" + ", ".join(ordered) + "}")
    assert detect_dataset_format(tmp_path / "large.json") == "coco"


def test_folders_and_archives_are_looked_into(tmp_path: Path) -> None:
    inner = tmp_path / "release" / "test"
    inner.mkdir(parents=True)
    (tmp_path / "release" / "readme.txt").write_text("hello")
    (tmp_path / "release" / "notes.json").write_text("{}")
    (inner / "v.json").write_text(json.dumps(RELATED))
    assert detect_dataset_format(tmp_path / "release") == "vidvrd"
    with zipfile.ZipFile(tmp_path / "release.zip", "w") as archive:
        archive.write(inner / "v.json", "test/v.json")
    assert detect_dataset_format(tmp_path / "release.zip") == "vidvrd"
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"found no \.json, \.csv or \.xml file"):
        detect_dataset_format(tmp_path / "empty")
    with pytest.raises(DatasetNotFoundError, match="there is nothing at"):
        detect_dataset_format(tmp_path / "absent")


def test_kitti_is_known_by_its_folders_and_its_lines(tmp_path: Path) -> None:
    label = "Car 0 0 -1.6 1 1 9 9 -1 -1 -1 -1000 -1000 -1000 -10\n"
    for name, text, reader in (
        ("label_2/000001.txt", label, "kitti"),
        ("label_02/0001.txt", f"0 1 {label}", "kitti_tracking"),
    ):
        path = tmp_path / reader / "training" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        assert detect_dataset_format(tmp_path / reader) == reader
    # Files of YOLO that are called as those of KITTI's drives.
    (tmp_path / "yolo" / "labels").mkdir(parents=True)
    (tmp_path / "yolo" / "labels" / "0001.txt").write_text("0 .5 .5 .2 .2\n")
    (tmp_path / "yolo" / "classes.txt").write_text("car\n")
    assert detect_dataset_format(tmp_path / "yolo") == "yolo"


def test_a_json_that_breaks_off_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"images": [{"id": 1},')
    with pytest.raises(InputError, match="breaks off") as caught:
        detect_dataset_format(tmp_path / "a.json")
    assert "--reader" not in str(caught.value)
    assert "roadaware read NAME PATH" in str(caught.value)


@pytest.mark.parametrize("name", [name for name in SETS if name != "simulator"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_native_set_is_known_as_a_folder_and_as_a_zip(name: str, packed: bool, tmp_path: Path) -> None:
    root = SETS[name].make(tmp_path / "set")
    assert detect_dataset_format(damage.packed(root, tmp_path / "set.zip") if packed else root) == name
