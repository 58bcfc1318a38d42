"""AVA: rows as boxes with actions, persons as tubes, moments, label maps, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest
from sets import SETS, rows_add_up

from roadaware.datasets import read
from roadaware.datasets.ava import read_labels
from roadaware.datasets.issues import Findings
from roadaware.errors import DatasetNotFoundError, FindingsError, InputError
from roadaware.scenes.tables import Scenes

MAP = 'item {\n  name: "sit"\n  id: 1\n}\nitem {\n  name: "stand"\n  id: 2\n}\n'


def written(folder: Path, *rows: str, labels: str = MAP, excluded: str = "", name: str = "truth.csv") -> Path:
    (folder / name).write_text("".join(f"{row}\n" for row in rows))
    if labels:
        (folder / "action_list.pbtxt").write_text(labels)
    if excluded:
        (folder / "excluded.csv").write_text(excluded)
    return folder


def scenes_of(folder: Path, *rows: str, **parts: str) -> Scenes:
    scenes = read("ava", written(folder, *rows, **parts), cache=False)
    rows_add_up(scenes)
    return scenes


def warned(scenes: Scenes) -> dict[str, int]:
    return {warning["what"]: warning["count"] for warning in scenes.meta.notes["warnings"]}


def test_rows_with_equal_corners_are_one_box_with_its_actions_in_the_order_of_the_file(
    tmp_path: Path,
) -> None:
    scenes = scenes_of(
        tmp_path,
        "a,0902,0.1,0.2,0.3,0.4,2,7",
        "a,0902,0.5,0.5,0.75,0.75,1,8",
        "a,0902,0.1,0.2,0.3,0.4,1,7",
        "b,0902,0.1,0.2,0.3,0.4,1,7",
        "a,0903,0.1,0.2,0.3,0.4,1,7",
    )
    assert scenes.labels.rows() == [
        (0, "action", 1),
        (1, "action", 0),
        (0, "action", 0),
        (2, "action", 0),
        (3, "action", 0),
    ]
    assert scenes.boxes.select("box", "video", "frame", "tube", "x1_px", "y2_px").rows() == [
        (0, "a", 902, 0, 0.1, 0.4),
        (1, "a", 902, 1, 0.5, 0.75),
        (2, "b", 902, 2, 0.1, 0.4),
        (3, "a", 903, 0, 0.1, 0.4),
    ]
    assert scenes.boxes.schema["x1_px"] == pl.Float64
    assert scenes.tubes.rows() == [(0, "a", "7", 902, 904), (1, "a", "8", 902, 903), (2, "b", "7", 902, 903)]
    assert scenes.videos.select("video", "width_px", "height_px", "fps").rows() == [
        ("a", 1, 1, 1.0),
        ("b", 1, 1, 1.0),
    ]
    assert scenes.meta.notes["unit_pictures"] is True
    assert scenes.meta.notes["label_ids"] == {"action": [1, 2]}


def test_an_action_twice_and_a_person_twice_are_kept_and_told(tmp_path: Path) -> None:
    scenes = scenes_of(
        tmp_path,
        "a,902,0.1,0.2,0.3,0.4,1,7",
        "a,902,0.1,0.2,0.3,0.4,1,7",
        "a,902,0.1,0.2,0.3,0.4,2,7",
        "a,902,0.1,0.2,0.3,0.4,1,8",
    )
    assert scenes.labels.rows() == [(0, "action", 0), (1, "action", 0), (0, "action", 1), (2, "action", 0)]
    assert scenes.boxes["tube"].to_list() == [0, None, 1]
    assert set(warned(scenes).values()) == {1}
    assert len(warned(scenes)) == 2


def test_seven_columns_and_nobody_have_no_tube(tmp_path: Path) -> None:
    scenes = scenes_of(tmp_path, "a,902,0.1,0.2,0.3,0.4,1", "a,902,0.5,0.2,0.6,0.4,1,-1", "a,902,0,0,1,1,2,")
    assert scenes.boxes["tube"].to_list() == [None] * 3
    assert scenes.tubes.is_empty()


def test_moments_without_boxes_and_boxes_without_actions_are_annotated(tmp_path: Path) -> None:
    scenes = scenes_of(
        tmp_path,
        "a,902,,,,,,",
        "a,0903,0.1,0.2,0.3,0.4,,7",
        "a,0905,0.1,0.2,0.3,0.4,1,7",
        excluded="a,0905\na,0904\nb,0902\n",
    )
    assert scenes.frames.select("video", "frame", "t_s", "annotated").rows() == [
        ("a", 902, 902.0, True),
        ("a", 903, 903.0, True),
        ("a", 904, 904.0, False),
        ("a", 905, 905.0, False),
        ("b", 902, 902.0, False),
    ]
    assert scenes.boxes["frame"].to_list() == [903, 905]
    assert scenes.labels.rows() == [(1, "action", 0)]
    assert scenes.rejected.is_empty()


def test_actions_outside_the_map_are_counted_and_a_shift_is_named(tmp_path: Path) -> None:
    scenes = scenes_of(tmp_path, "a,902,0.1,0.2,0.3,0.4,0,1", "a,903,0.1,0.2,0.3,0.4,1,1")
    assert scenes.rejected.select("table", "line", "reason").rows() == [
        ("labels", 1, "the action 0 is not in the label map")
    ]
    assert len(scenes.boxes) == 1
    assert list(warned(scenes)) == ["actions run from 0 to 1 where the label map has 1 to 2: shifted by one?"]
    assert len(scenes.frames) == 2


def test_without_a_map_actions_are_called_by_their_numbers(tmp_path: Path) -> None:
    scenes = scenes_of(tmp_path, "a,902,0.1,0.2,0.3,0.4,80", "a,902,0.1,0.2,0.3,0.4,9", labels="")
    assert scenes.meta.vocabularies["action"] == ("9", "80")
    assert scenes.meta.notes["label_ids"] == {"action": [9, 80]}


def test_scores_in_the_place_of_persons_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"truth\.csv:1: the eighth column holds scores such as 0\.9"):
        scenes_of(tmp_path, "a,902,0.1,0.2,0.3,0.4,1,0.9", "a,902,0.1,0.2,0.3,0.4,2,0.25")
    scenes = scenes_of(
        tmp_path, "a,902,0.1,0.2,0.3,0.4,1,4", "a,903,0,0,1,1,1,5", "a,902,0.1,0.2,0.3,0.4,2,0.25"
    )
    assert scenes.rejected.select("table", "line").rows() == [("boxes", 3)]


def test_a_header_is_named(tmp_path: Path) -> None:
    head = "video_id,middle_frame_timestamp,x1,y1,x2,y2,action_id,person_id"
    scenes = scenes_of(tmp_path, head, "a,902,0.1,0.2,0.3,0.4,1,4")
    assert scenes.rejected.select("line", "reason").rows() == [(1, "a header where none is due")]


def test_boxes_that_reach_out_a_little_are_kept_and_told(tmp_path: Path) -> None:
    scenes = scenes_of(tmp_path, "a,902,-0.01,0.2,0.3,1.002,1,4", "a,902,0,0,1,1,1,5")
    assert len(scenes.boxes) == 2
    assert list(warned(scenes).values()) == [1]


def test_files_of_a_folder_are_splits_and_detections_among_them_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "a,902,0.1,0.2,0.3,0.4,1,4", name="ava_train_v2.2.csv")
    written(tmp_path, "b,902,0.1,0.2,0.3,0.4,1,4", name="ava_val_v2.2.csv")
    written(tmp_path, "b,902,0.1,0.2,0.3,0.4,,0.97", name="ava_val_predicted_boxes.csv")
    written(tmp_path, "a,907,0.1,0.2,0.3,0.4,1,4", name="other.csv")
    scenes = read("ava", tmp_path, cache=False)
    assert scenes.videos.select("video", "splits").rows() == [
        ("a", ["default/train"]),
        ("b", ["default/val"]),
    ]
    refused = dict(scenes.rejected.select("file", "reason").rows())
    assert "scores" in refused["ava_val_predicted_boxes.csv"]
    assert "it has the video 'a'" in refused["other.csv"]
    rows_add_up(scenes)


def test_options_name_files_elsewhere_and_the_cache_sees_them_change(tmp_path: Path) -> None:
    folder, aside = tmp_path / "set", tmp_path / "aside"
    folder.mkdir()
    aside.mkdir()
    path = written(folder, "a,902,0.1,0.2,0.3,0.4,1,4", labels="") / "truth.csv"
    (aside / "map.txt").write_text(MAP)
    (aside / "left.csv").write_text("a,0902\n")
    options = {"labels": aside / "map.txt", "excluded": str(aside / "left.csv")}
    for _ in range(2):
        scenes = read("ava", path, **options)
        assert scenes.meta.vocabularies["action"] == ("sit", "stand")
        assert scenes.frames["annotated"].to_list() == [False]
    (aside / "map.txt").write_text(MAP.replace("sit", "lie down"))
    os.utime(aside / "map.txt", ns=(1, 1))
    assert read("ava", path, **options).meta.vocabularies["action"] == ("lie down", "stand")
    with pytest.raises(InputError, match="no such file"):
        read("ava", path, labels=aside / "absent.pbtxt")


def test_two_label_maps_are_not_chosen_from(tmp_path: Path) -> None:
    written(tmp_path, "a,902,0.1,0.2,0.3,0.4,1,4")
    (tmp_path / "ava_action_list_v2.1_for_activitynet_2018.pbtxt.txt").write_text(MAP)
    with pytest.raises(InputError, match=r"(?s)several label maps.*'labels'"):
        read("ava", tmp_path, cache=False)
    assert len(read("ava", tmp_path, cache=False, labels=tmp_path / "action_list.pbtxt").boxes) == 1


LABELS = {
    "official": ('item {\n  name: "a b"\n  id: 3\n}\n', (3,), ("a b",)),
    "label_id": ('label {\n  name: "a"\n  label_id: 3\n  label_type: PERSON_MOVEMENT\n}\n', (3,), ("a",)),
    "one line": ("item { name: 'a' id: 3 } item {id:1,name:\"b\"}", (3, 1), ("a", "1")),
    "tabs and no blanks": ('item{\n\tname:"a"\n\tid:3\n}\n', (3,), ("a",)),
    "id in a name": ('item {\n  name: "id: 9"\n  id: 3\n}\n', (3,), ("id: 9",)),
    "windows": ('item {\r\n  name: "a"\r\n  id: 3\r\n}\r\n', (3,), ("a",)),
    "twice": (
        "".join(f'item {{\n  name: "a"\n  id: {n}\n}}\n' for n in (3, 4, 5)),
        (3, 4, 5),
        ("a", "a (4)", "a (5)"),
    ),
    "csv": (
        '1,bend/bow (at the waist)\n3,"crouch, kneel"\n',
        (1, 3),
        ("bend/bow (at the waist)", "crouch, kneel"),
    ),
    "csv with header": ("label_id,label_name,label_type\n2,b,POSE\n1,a,POSE\n", (2, 1), ("b", "a")),
    "csv, name first": ("name,id\nb,2\n", (2,), ("b",)),
    "a number and a colon": ("1: a\n12: b (c, d: e)\n", (1, 12), ("a", "b (c, d: e)")),
    "display names": ('item {\n  display_name: "x"\n  name: "a"\n  id: 3\n}\n', (3,), ("a",)),
}


@pytest.mark.parametrize("case", LABELS)
def test_label_maps(case: str) -> None:
    text, ids, names = LABELS[case]
    found = read_labels(text.encode(), "map", Findings())
    assert (found.ids, found.names) == (ids, names)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('item {\n  name: "a"\n  id: 3.5\n}', r"map:3: an id should be a whole number"),
        ('item {\n  name: "a"\n  id: -3\n}', r"map:3: an id should be a whole number"),
        ("id: 1\nid: 1", r"map:2: the id 1 stands twice"),
        ("<html></html>", "no action"),
        ("label,kind\na,b\n", "no action in the label map: it begins with 'label,kind'"),
        ("1,a\nx,b\n", r"map:2: an id should be a whole number"),
        ("", "empty"),
        ("x" * (1 << 21), "at most"),
    ],
)
def test_bad_label_maps(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_labels(text.encode(), "map", Findings())


def test_strict_reading_tells_of_rows_outside_the_map(tmp_path: Path) -> None:
    written(tmp_path, "a,902,0.1,0.2,0.3,0.4,1,4", "a,902,0.1,0.2,0.3,0.4,9,4")
    with pytest.raises(FindingsError, match=r"labels: truth\.csv:2: a, 902: the action 9"):
        read("ava", tmp_path, cache=False, strict=True)


def test_a_folder_without_annotations_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "ava_val_excluded_timestamps_v2.2.csv").write_text("a,0902\n")
    with pytest.raises(DatasetNotFoundError, match="ava_val_excluded"):
        read("ava", tmp_path)


def test_a_set_of_the_maker_reads_as_it_was_written(tmp_path: Path) -> None:
    scenes = SETS["ava"].read(SETS["ava"].make(tmp_path / "set", frames=6))
    rows = (tmp_path / "set" / SETS["ava"].main).read_text().splitlines()
    assert len(scenes.labels) == sum(row.split(",")[6] != "" for row in rows)
    assert len(scenes.frames) == len({tuple(row.split(",")[:2]) for row in rows})
    assert scenes.frames.filter(~pl.col("annotated")).select("video", "frame").rows() == [
        ("-5KQ66BBWC4", 904),
        ("video_0002", 903),
    ]


@pytest.fixture
def real() -> Path:
    folder = os.environ.get("ROADAWARE_DATA_DIR")
    if not folder or not (Path(folder) / "ava").is_dir():
        pytest.skip("ROADAWARE_DATA_DIR names no folder with ava/")
    return Path(folder) / "ava"


def test_the_real_sample(real: Path) -> None:
    scenes = read("ava", real, cache=False)
    rows_add_up(scenes)
    assert scenes.boxes.select("video", "frame", "x1_px", "y2_px").rows() == [
        ("0f39OWEqJ24", 902, 0.031, 0.995),
        ("0f39OWEqJ24", 903, 0.034, 0.98),
        ("_-Z6wFjXtGQ", 902, 0.063, 0.996),
    ]
    assert scenes.meta.vocabularies["action"] == ("action1", "action2", "action3", "action3 (80)")
    assert scenes.labels["label"].to_list() == [0, 1, 2, 0, 1, 0, 3]
    assert scenes.rejected["reason"].to_list() == ["the action 74 is not in the label map"]
    assert scenes.frames["annotated"].to_list() == [True, False, False]


def test_the_real_pair_of_truth_and_detections(real: Path) -> None:
    scenes = read("ava", real / "eval_detection", cache=False)
    assert (len(scenes.boxes), len(scenes.labels), len(scenes.videos)) == (12, 12, 3)
    assert scenes.meta.vocabularies["action"] == ("action1", "action2", "action3")
    assert scenes.rejected["file"].to_list() == ["pred.csv"]
