"""UCF101-24: frames, boxes, tubes and actions as the published loader has them, and bad entries refused."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sets import SETS, rows_add_up

from roadaware.datasets import read
from roadaware.errors import DatasetNotFoundError, FindingsError, InputError
from roadaware.scenes.tables import Scenes

UCF24 = SETS["ucf24"]
VIDEO = UCF24.maker.VIDEO


@pytest.fixture
def real() -> Path:
    root = os.environ.get("ROADAWARE_DATA_DIR")
    if not root or not (Path(root) / "ucf24").is_dir():
        pytest.skip("ROADAWARE_DATA_DIR names no folder with ucf24/")
    return Path(root) / "ucf24"


def made(folder: Path, change: Callable[[dict[str, Any]], None] = lambda held: None) -> Path:
    """The tiny set, its content changed."""
    held = UCF24.maker.content()
    change(held)
    folder.mkdir(exist_ok=True)
    (folder / UCF24.main).write_bytes(UCF24.maker.written(held))
    return folder


def first_tube(held: dict[str, Any]) -> dict[str, Any]:
    tube: dict[str, Any] = held["db"][VIDEO]["annotations"][0]
    return tube


def changed(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda held: first_tube(held).update(values)


def test_boxes_lose_one_pixel_in_all_four_numbers(tmp_path: Path) -> None:
    scenes = read("ucf24", made(tmp_path / "set"), cache=False)
    boxes = scenes.boxes.filter(pl.col("video") == VIDEO, pl.col("frame") == 3).sort("tube")
    corners = boxes.select("x1_px", "y1_px", "x2_px", "y2_px").rows()
    assert corners == [(26, 30, 65, 92), (205, 30, 244, 92)]
    assert scenes.videos.filter(video=VIDEO).select("width_px", "height_px", "n_frames").row(0) == (
        320,
        240,
        12,
    )


def test_corners_are_cut_at_the_edge_of_the_image(tmp_path: Path) -> None:
    boxes = np.array([[0, 1, 40, 60], [280, 180, 44, 63]] * 6, dtype=np.uint16)
    scenes = read("ucf24", made(tmp_path / "set", changed(boxes=boxes)), cache=False)
    held = scenes.boxes.filter(pl.col("video") == VIDEO, pl.col("tube") == pl.col("tube").min().over("video"))
    assert held.select("x1_px", "y1_px", "x2_px", "y2_px").rows()[:2] == [
        (0, 0, 38, 59),
        (279, 179, 320, 240),
    ]
    assert scenes.rejected.is_empty()


def test_frames_of_a_tube_run_from_sf_to_the_one_before_ef(tmp_path: Path) -> None:
    scenes = read("ucf24", made(tmp_path / "set"), cache=False)
    tubes = scenes.tubes.filter(pl.col("video") == VIDEO)
    tracks = tubes.filter(pl.col("parent").is_null())
    assert tracks.select("start_frame", "end_frame").rows() == [(0, 12), (1, 11)]
    actions = tubes.filter(pl.col("kind") == "action")
    assert actions["parent"].to_list() == tracks["tube"].to_list()
    assert actions["spans"].to_list() == [[[0, 12]], [[1, 11]]]
    labels = scenes.tube_labels.join(actions, on="tube", how="semi")
    assert labels.select("kind", "label").rows() == [("action", 2), ("action", 2)]
    owned = scenes.boxes.filter(pl.col("tube") == tracks["tube"][1])
    assert owned["frame"].to_list() == list(range(1, 11))


def test_every_box_has_the_action_of_its_tube_and_nothing_else(tmp_path: Path) -> None:
    scenes = read("ucf24", made(tmp_path / "set"), cache=False)
    assert len(scenes.labels) == len(scenes.boxes)
    of_tube = scenes.tube_labels.join(scenes.tubes, on="tube").select(tube="parent", expected="label")
    joined = scenes.boxes.join(scenes.labels, on="box").join(of_tube, on="tube")
    assert (joined["label"] == joined["expected"]).all()
    assert set(joined["kind"]) == {"action"}


def test_every_frame_counts_and_has_one_action_background_included(tmp_path: Path) -> None:
    scenes = read("ucf24", made(tmp_path / "set"), cache=False)
    assert len(scenes.frames) == 5 * 12
    assert scenes.frames["annotated"].all()
    labels = scenes.frame_labels.filter(pl.col("video") == "Basketball/v_Basketball_g01_c01")
    assert labels["kind"].unique().to_list() == ["av_action"]
    assert labels["label"].to_list() == [0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    nothing = scenes.frame_labels.filter(pl.col("video") == "Biking/v_Biking_g02_c01")
    assert nothing["label"].to_list() == [0] * 12


def test_kinds_and_vocabularies_are_those_of_the_file(tmp_path: Path) -> None:
    meta = read("ucf24", made(tmp_path / "set"), cache=False).meta
    assert meta.vocabularies == {
        "agentness": ("action_ness",),
        "action": ("Basketball", "Biking", "Diving"),
        "av_action": ("Non_action", "Basketball", "Biking", "Diving"),
    }
    assert meta.notes["native_kinds"]["agentness"] == "action_ness"


def test_the_list_of_training_videos_makes_the_splits(tmp_path: Path) -> None:
    scenes = read("ucf24", made(tmp_path / "set"), cache=False)
    assert scenes.split_videos("train") == sorted(UCF24.maker.TRAIN)
    assert len(scenes.split_videos("test")) == 3


def test_a_listed_video_without_annotations_is_told_of(tmp_path: Path) -> None:
    root = made(tmp_path / "set", lambda held: held["trainvideos"].append("Biking/v_Biking_g25_c09"))
    (warning,) = read("ucf24", root, cache=False).meta.notes["warnings"]
    assert (warning["count"], warning["example"]) == (1, "Biking/v_Biking_g25_c09")


def test_lengths_in_small_integers_do_not_wrap(tmp_path: Path) -> None:
    """Three lengths of 200 in eight bits sum to 88; as whole numbers to 600."""

    def long(held: dict[str, Any]) -> None:
        for entry in held["db"].values():
            entry["numf"] = np.uint8(200)

    scenes = read("ucf24", made(tmp_path / "set", long), cache=False)
    assert len(scenes.frames) == 5 * 200
    assert scenes.videos["n_frames"].sum() == 1000


def test_the_file_itself_is_as_good_as_its_folder(tmp_path: Path) -> None:
    root = made(tmp_path / "set")
    named = root / UCF24.main
    assert read("ucf24", named, cache=False) == read("ucf24", root, cache=False)
    other = named.rename(root / "mine.pkl")
    assert len(read("ucf24", other, cache=False).videos) == 5
    with pytest.raises(DatasetNotFoundError, match=r"pyannot_with_class_names\.pkl"):
        read("ucf24", root, cache=False)


def test_two_files_of_annotations_are_one_too_many(tmp_path: Path) -> None:
    root = made(tmp_path / "set")
    (root / UCF24.main).rename(root / "pyannot_a.pkl")
    assert len(read("ucf24", root, cache=False).videos) == 5
    (root / "pyannot_b.pkl").write_bytes(b"N.")
    with pytest.raises(DatasetNotFoundError, match=r"several.*pyannot_a\.pkl, pyannot_b\.pkl"):
        read("ucf24", root, cache=False)


def boxes(*rows: list[float], dtype: Any = np.int64) -> dict[str, Any]:
    """The first tube's boxes, its first ones replaced."""
    held = UCF24.maker.tube(2, 0, 12)["boxes"].astype(dtype)
    held[: len(rows)] = rows
    return {"boxes": held}


ROWS: dict[str, tuple[dict[str, Any], str, int]] = {
    "upside_down": (boxes([50, 50, -20, 30]), "upside down or empty", 1),
    "no_width": (boxes([50, 50, 0, 30]), "upside down or empty", 1),
    "beyond": (boxes([300, 50, 40, 30], [50, 230, 40, 30]), "outside the image", 2),
    "before": (boxes([-5, 50, 40, 30]), "outside the image", 1),
    "not_finite": (boxes([np.nan, 1, 2, 3], [1, np.inf, 2, 3], dtype=np.float64), "outside the image", 2),
    "huge": (boxes([2**62, 1, 2, 3]), "outside the image", 1),
    "too_large_for_single": (boxes([1e300, 1, 2, 3], dtype=np.float64), "outside the image", 1),
}
TUBES: dict[str, tuple[dict[str, Any], str]] = {
    "behind_the_end": ({"sf": 1, "ef": 13}, "frames 1..13 of a video that has 12"),
    "before_the_start": ({"sf": -1, "ef": 11}, "frames -1..11"),
    "no_frames": ({"sf": 3, "ef": 3}, "frames 3..3"),
    "frames_2_63": ({"sf": 0, "ef": 1 << 63}, "frames 0..9223372036854775808"),
    "frames_as_text": ({"sf": "0"}, "frames '0'"),
    "more_boxes_than_frames": ({"ef": 11}, "12 boxes for the 11 frames 0..10"),
    "unknown_label": ({"label": 3}, "label 3; there are 3 classes"),
    "label_before_the_first": ({"label": -1}, "label -1"),
    "label_as_text": ({"label": "Diving"}, "label 'Diving'"),
    "boxes_of_five": ({"boxes": np.zeros((12, 5), np.uint8)}, "rows of 4 numbers"),
    "boxes_as_list": ({"boxes": [[1, 2, 3, 4]] * 12}, "rows of 4 numbers, not list"),
    "boxes_of_text": ({"boxes": np.full((12, 4), "1")}, "rows of 4 numbers"),
    "not_one_good_box": ({"boxes": np.zeros((12, 4), np.uint8)}, "not one box that can be taken"),
}
VIDEOS: dict[str, tuple[Any, str]] = {
    "no_dict": ([], "should be a dict"),
    "no_length": ({"annotations": []}, "'annotations' and 'numf'"),
    "length_0": ({"annotations": [], "numf": 0}, "'numf'"),
    "length_absurd": ({"annotations": [], "numf": 10**9}, "'numf'"),
    "length_1_5": ({"annotations": [], "numf": 1.5}, "'numf'"),
    "no_list": ({"annotations": {}, "numf": 5}, "'annotations' should be a list"),
}


def _refused(root: Path, table: str, count: int, reason: str) -> Scenes:
    scenes = read("ucf24", root, cache=False)
    rejected = scenes.rejected.filter(table=table)
    assert len(rejected) == count
    assert set(rejected["file"]) == {UCF24.main}
    assert rejected["reason"].str.contains(reason, literal=True).all(), rejected["reason"][0]
    rows_add_up(scenes)
    with pytest.raises(FindingsError, match=rf"ucf24: {len(scenes.rejected)} rejected"):
        read("ucf24", root, cache=False, strict=True)
    return scenes


@pytest.mark.parametrize("name", ROWS)
def test_bad_boxes_cost_themselves(name: str, tmp_path: Path) -> None:
    values, reason, count = ROWS[name]
    clean = read("ucf24", made(tmp_path / "clean"), cache=False)
    scenes = _refused(made(tmp_path / "set", changed(**values)), "boxes", count, reason)
    assert len(scenes.boxes) == len(clean.boxes) - count
    spans = scenes.tubes.filter(pl.col("video") == VIDEO, pl.col("kind") == "action")["spans"]
    assert spans.to_list() == [[[count, 12]], [[1, 11]]]


def test_a_bad_box_in_the_middle_leaves_a_hole_in_the_spans(tmp_path: Path) -> None:
    held = UCF24.maker.tube(2, 0, 12)["boxes"].astype(np.int64)
    held[5] = [51, 51, -9, 5]

    def holed(content: dict[str, Any]) -> None:
        content["db"][VIDEO]["annotations"][0]["boxes"] = held
        content["db"][VIDEO]["annotations"].pop()

    scenes = _refused(made(tmp_path / "set", holed), "boxes", 1, "upside down")
    spans = scenes.tubes.filter(pl.col("video") == VIDEO, pl.col("kind") == "action")["spans"][0]
    assert spans.to_list() == [[0, 5], [6, 12]]
    hole = scenes.frame_labels.filter(pl.col("video") == VIDEO, pl.col("frame") == 5)
    assert hole["label"].to_list() == [3]


@pytest.mark.slow
@pytest.mark.parametrize("name", TUBES)
def test_bad_tubes_cost_themselves(name: str, tmp_path: Path) -> None:
    values, reason = TUBES[name]
    scenes = _refused(made(tmp_path / "set", changed(**values)), "tubes", 1, reason)
    tubes = scenes.tubes.filter(pl.col("video") == VIDEO)
    assert tubes.filter(pl.col("parent").is_null())["name"].to_list() == ["1"]
    assert len(tubes) == 2


@pytest.mark.parametrize("name", VIDEOS)
def test_bad_videos_cost_themselves(name: str, tmp_path: Path) -> None:
    entry, reason = VIDEOS[name]
    root = made(tmp_path / "set", lambda held: held["db"].update({VIDEO: entry}))
    scenes = _refused(root, "videos", 1, reason)
    assert len(scenes.videos) == 4


def test_videos_without_one_tube_are_background(tmp_path: Path) -> None:
    def emptied(held: dict[str, Any]) -> None:
        for entry in held["db"].values():
            entry["annotations"] = []

    scenes = read("ucf24", made(tmp_path / "set", emptied), cache=False)
    assert scenes.boxes.is_empty()
    assert scenes.tubes.is_empty()
    assert scenes.frame_labels["label"].to_list() == [0] * 60
    assert scenes.rejected.is_empty()


def test_only_bad_videos_are_an_error(tmp_path: Path) -> None:
    root = made(tmp_path / "set", lambda held: held.update(db={"a": [], "b": {}}))
    with pytest.raises(InputError, match=r"none of 2 videos can be read; the first, a: should be a dict"):
        read("ucf24", root, cache=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda held: held.pop("db"),
        lambda held: held.update(db=[]),
        lambda held: held.update(db={}),
        lambda held: held.update(classes=[]),
        lambda held: held.update(classes=["a", "a", "b"]),
        lambda held: held.update(classes=[1, 2, 3]),
        lambda held: held.update(classes=["Non_action", "a", "b"]),
        lambda held: held.update(trainvideos="all"),
        lambda held: held.update(trainvideos=[1]),
    ],
)
def test_a_file_without_its_parts_is_an_error(change: Callable[[Any], Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'(db|classes|trainvideos)'"):
        read("ucf24", made(tmp_path / "set", change), cache=False)


@pytest.mark.parametrize("value", [None, [], 3, "text", np.zeros(3), {"a": 1}])
def test_a_pickle_of_something_else_is_an_error(value: Any, tmp_path: Path) -> None:
    (tmp_path / UCF24.main).write_bytes(pickle.dumps(value, protocol=4))
    with pytest.raises(InputError, match="expected a dict with 'db', 'trainvideos' and 'classes'"):
        read("ucf24", tmp_path, cache=False)


def test_a_tube_of_another_action_than_its_video_is_told_of(tmp_path: Path) -> None:
    scenes = read("ucf24", made(tmp_path / "set", changed(label=0)), cache=False)
    (warning,) = scenes.meta.notes["warnings"]
    assert warning["count"] == 1
    assert VIDEO in warning["example"]


def test_lists_may_be_arrays(tmp_path: Path) -> None:
    def arrays(held: dict[str, Any]) -> None:
        held.update(classes=np.array(held["classes"]), trainvideos=np.array(held["trainvideos"]))
        first_tube(held).update(sf=np.array(0), ef=np.int32(12), label=np.array([2]))

    assert read("ucf24", made(tmp_path / "arrays", arrays), cache=False).boxes.equals(
        read("ucf24", made(tmp_path / "set"), cache=False).boxes
    )


@pytest.mark.slow
def test_the_published_counts(real: Path) -> None:
    scenes = read("ucf24", real, cache=False)
    assert len(scenes.videos) == 3194
    assert scenes.rejected.is_empty()
    (lost,) = scenes.meta.notes["warnings"]
    assert len(scenes.split_videos("train")) + lost["count"] == 2290
    assert scenes.tubes["parent"].null_count() == 4458
    assert len(scenes.meta.vocabularies["action"]) == 24
    test = scenes.split("test")
    assert (len(test.videos), len(test.frames), len(test.boxes)) == (910, 159_289, 170_580)
    assert test.tubes["parent"].null_count() == len(test.tube_labels) == 1315
    assert len(test.frame_labels) == 159_289
    assert test.frame_labels["label"].is_between(0, 24).all()


@pytest.mark.slow
def test_real_boxes_are_those_of_a_plain_loop(real: Path) -> None:
    from roadaware.io.pickles import load

    held = load((real / UCF24.main).read_bytes(), UCF24.main)
    scenes = read("ucf24", real, cache=False)
    names = sorted(held["db"])[::97]
    found = scenes.boxes.filter(pl.col("video").is_in(names)).partition_by("video", as_dict=True)
    for name in names:
        expected = []
        for place, each in enumerate(held["db"][name]["annotations"]):
            for frame, (x, y, w, h) in zip(
                range(each["sf"], each["ef"]), each["boxes"].tolist(), strict=True
            ):
                expected.append((frame, place, x - 1, y - 1, x + w - 2, y + h - 2))
        rows = found.get((name,), scenes.boxes.head(0))
        seen = rows.select("frame", "x1_px", "y1_px", "x2_px", "y2_px").rows()
        assert seen == [(row[0], *row[2:]) for row in sorted(expected)]
