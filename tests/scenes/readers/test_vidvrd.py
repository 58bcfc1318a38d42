"""VidVRD's and VidOR's relations: by hand, in every form of file, and what is refused."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import damage
import polars as pl
import pytest
from hypothesis import given
from mutants import Change, mutated
from sets import SETS, maker, rows_add_up, same_rows
from test_fuzz import CHANGES_OF, FAST

from roadaware.datasets import read
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.tables import Scenes

VIDVRD = SETS["vidvrd"]
make = maker("vidvrd")
Content = dict[str, Any]


@pytest.fixture
def content() -> Content:
    """One video of twelve frames."""
    made: Content = copy.deepcopy(make.annotation("clip"))
    return made


def read_content(folder: Path, content: Any) -> Scenes:
    (folder / "clip.json").write_text(json.dumps(content))
    scenes = VIDVRD.read(folder / "clip.json")
    rows_add_up(scenes)
    return scenes


def warnings(scenes: Scenes) -> list[str]:
    return [warning["what"] for warning in scenes.meta.notes["warnings"]]


def test_a_video_by_hand(tmp_path: Path, content: Content) -> None:
    scenes = read_content(tmp_path, content)
    assert scenes.videos.select("video", "width_px", "height_px", "fps", "n_frames").rows() == [
        ("clip", 1280, 720, 30, 12)
    ]
    assert scenes.meta.vocabularies == {
        "category": ("ball", "dog", "person"),
        "predicate": ("chase", "walk_next_to", "watch"),
    }
    assert scenes.tubes.select("name", "start_frame", "end_frame").rows() == [
        ("0", 0, 12),
        ("1", 0, 12),
        ("2", 1, 12),
        ("7", 0, 11),
    ]
    assert scenes.tube_labels["label"].to_list() == [2, 2, 1, 0]
    corners = scenes.boxes.filter(tube=2, frame=3).select("x1_px", "y1_px", "x2_px", "y2_px", "generated")
    assert corners.rows() == [(143.5, 32.0, 183.5, 82.0, False)]
    assert scenes.boxes.schema["x1_px"] == pl.Float64
    names = scenes.meta.vocabularies["predicate"]
    columns = ("subject", "predicate", "object", "start_frame", "end_frame")
    assert [(s, names[p], o, a, b) for s, p, o, a, b in scenes.relations.select(columns).rows()] == [
        (0, "walk_next_to", 1, 0, 12),
        (1, "walk_next_to", 0, 0, 6),
        (2, "chase", 3, 1, 11),
        (0, "watch", 2, 6, 12),
    ]
    assert scenes.frames["annotated"].all()
    assert len(scenes.frames) == 12


def test_one_file_of_annotations_equals_a_file_for_each_video(tmp_path: Path) -> None:
    make.make(tmp_path / "set")
    files = sorted((tmp_path / "set").glob("*.json"))
    (tmp_path / "all.json").write_text(json.dumps({p.stem: json.loads(p.read_bytes()) for p in files}))
    one, many = VIDVRD.read(tmp_path / "all.json"), VIDVRD.read(tmp_path / "set")
    same_rows(one, many, but=())
    assert one.meta.vocabularies == many.meta.vocabularies


def test_relations_with_numbers_of_tracks_are_cut_out_of_those_tracks(
    tmp_path: Path, content: Content
) -> None:
    whole = read_content(tmp_path, content)
    cut = read_content(tmp_path, {"clip": make.instances(content)})
    same = ("video", "start_frame", "end_frame", "predicate")
    assert cut.relations.select(same).equals(whole.relations.select(same))
    held = [
        scenes.boxes.join(scenes.tubes.select("tube", "name"), on="tube").select(
            "name", "frame", "x1_px", "y2_px"
        )
        for scenes in (cut, whole)
    ]
    assert len(cut.tubes) == 4
    assert held[0].join(held[1], on=held[0].columns, how="anti").is_empty()
    assert len(held[0]) == len(held[1]) - 1  # the ball's first frame is in no relation


def test_relations_without_them_share_what_is_equal(tmp_path: Path, content: Content) -> None:
    content["relation_instances"].append(make.relation(0, "touch", 1, 0, 12))
    scenes = read_content(tmp_path, {"clip": make.instances(content, tids=False)})
    assert len(scenes.relations) == 5
    assert scenes.relations.select("subject", "object").row(0) == scenes.relations.select(
        "subject", "object"
    ).row(4)
    assert len(scenes.tubes) == 8
    assert scenes.tubes["name"].null_count() == 8
    lengths = scenes.boxes.group_by("tube").len().sort("tube")["len"]
    spans = scenes.tubes["end_frame"] - scenes.tubes["start_frame"]
    assert lengths.to_list() == spans.to_list()


def test_numbers_of_tracks_that_contradict_each_other_make_no_track(tmp_path: Path, content: Content) -> None:
    listed = json.loads(json.dumps(make.instances(content)))
    listed[1]["obj_traj"][0][0] -= 1
    scenes = read_content(tmp_path, {"clip": listed})
    assert len(scenes.tubes) == 8
    assert any("contradict" in what for what in warnings(scenes))


def test_an_empty_list_beside_others_is_a_video_without_relations(tmp_path: Path, content: Content) -> None:
    scenes = read_content(tmp_path, {"clip": make.instances(content), "calm": [], "odd": {"a": 1}})
    assert scenes.videos["video"].to_list() == ["clip", "calm"]
    assert scenes.rejected.select("table", "item").rows() == [("videos", "odd")]


@pytest.mark.parametrize("inner", ["", "1025/"])
def test_folders_are_splits(tmp_path: Path, inner: str) -> None:
    for split, video in (("training", "a"), ("validation", "b")):
        path = tmp_path / "annotation" / split / f"{inner}{video}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(make.annotation(video) | {"video_path": f"1025/{video}.mp4"}))
    expected = [("a", ["training"], "1025/a.mp4"), ("b", ["validation"], "1025/b.mp4")]
    archive = damage.packed(tmp_path / "annotation", tmp_path / "x.zip", prefix="vidor/")
    for place in (tmp_path / "annotation", archive):
        scenes = read("vidvrd", place, cache=False)
        assert scenes.videos.select("video", "splits", "path").rows() == expected
    assert scenes.split_videos("training") == ["a"]
    one = read("vidvrd", tmp_path / "annotation" / "validation", cache=False)
    assert one.videos.select("video", "splits", "path").rows() == expected[1:]


def test_a_video_that_two_files_have_is_taken_once(tmp_path: Path) -> None:
    make.make(tmp_path)
    content = json.loads((tmp_path / make.MAIN).read_bytes())
    content["trajectories"][0][0]["tid"] = 99
    (tmp_path / "twin.json").write_text(json.dumps(content))
    scenes = VIDVRD.read(tmp_path)
    rows_add_up(scenes)
    assert len(scenes.videos) == 3
    assert scenes.rejected.filter(table="videos")["reason"][0] == f"stands in {make.MAIN} too"


def test_a_box_of_one_pixel_is_a_box(tmp_path: Path, content: Content) -> None:
    content["trajectories"][0][0]["bbox"] = {"xmin": 5, "ymin": 6, "xmax": 5, "ymax": 6}
    scenes = read_content(tmp_path, content)
    assert scenes.rejected.is_empty()
    assert scenes.boxes.filter(tube=0, frame=0).select("x1_px", "x2_px").rows() == [(5.0, 5.0)]


RELATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "himself": ({"object_tid": 0}, "its own object"),
    "a stranger": ({"object_tid": 99}, "none of the listed objects"),
    "end before begin": ({"begin_fid": 5, "end_fid": 3}, "ends before"),
    "no frame": ({"begin_fid": 5, "end_fid": 5}, "ends before"),
    "before the first frame": ({"begin_fid": -1}, "frames from 0 on"),
    "behind the last frame": ({"end_fid": 13}, "no box in 1 of the frames"),
    "before its object comes": ({"object_tid": 2}, "'tid' 2 has no box in 1 of"),
    "no predicate": ({"predicate": 3}, "should be a text"),
    "half a frame": ({"end_fid": 3.5}, "frames from 0 on"),
}


@pytest.mark.parametrize("name", RELATIONS)
def test_relations_that_cannot_be(tmp_path: Path, content: Content, name: str) -> None:
    change, reason = RELATIONS[name]
    content["relation_instances"][0] |= change
    scenes = read_content(tmp_path, content)
    assert len(scenes.relations) == 3
    assert scenes.rejected["item"].to_list() == ["clip, relation 0"]
    assert reason in scenes.rejected["reason"][0]


def _lost(content: Content) -> None:
    content["trajectories"][3][0]["tid"] = 99


def _twice(content: Content) -> None:
    content["trajectories"][3].append(content["trajectories"][3][0])


def _behind(content: Content) -> None:
    content["frame_count"] = 11


def _upside_down(content: Content) -> None:
    content["trajectories"][3][0]["bbox"]["ymin"] = 700


BOXES: dict[str, tuple[Callable[[Content], None], int, str]] = {
    "of nobody": (_lost, 1, "none of the listed objects"),
    "twice in a frame": (_twice, 1, "second box of 'tid' 0"),
    "behind the last frame": (_behind, 3, "behind the end"),
    "upside down": (_upside_down, 1, "upside down"),
}


@pytest.mark.parametrize("name", BOXES)
def test_boxes_that_cannot_be(tmp_path: Path, content: Content, name: str) -> None:
    change, count, reason = BOXES[name]
    change(content)
    scenes = read_content(tmp_path, content)
    refused = scenes.rejected.filter(table="boxes")
    assert len(refused) == count
    assert reason in refused["reason"][0]
    frames = dict(scenes.boxes.group_by("tube").agg("frame").iter_rows())
    for who, whom, start, end in scenes.relations.select(
        "subject", "object", "start_frame", "end_frame"
    ).rows():
        assert set(range(start, end)) <= set(frames[who]) & set(frames[whom])


def test_oddities_are_told(tmp_path: Path, content: Content) -> None:
    del content["relation_instances"], content["video_id"], content["fps"]
    content["frame_count"], content["width"] = 14, "wide"
    content["subject/objects"].append({"tid": 50, "category": "cat"})
    told = warnings(read_content(tmp_path, content))
    assert len(told) == 6
    for word in (
        "relation_instances",
        "named after",
        "frame rates",
        "fewer frames",
        "sizes",
        "without a box",
    ):
        assert any(word in what for what in told), word


def test_an_empty_truth_is_said_to_be_one(tmp_path: Path) -> None:
    for nothing in ({"a": [], "b": []}, {}, {"results": {}}):
        with pytest.raises(InputError, match="there is no video with relations"):
            read_content(tmp_path, nothing)
    with pytest.raises(DatasetNotFoundError, match="there is nothing at"):
        VIDVRD.read(tmp_path.parent / "absent")


@pytest.mark.slow
@pytest.mark.parametrize("tids", [True, False])
def test_mutants_of_the_truth_of_the_published_script(tmp_path: Path, tids: bool) -> None:
    content = make.annotation("clip", frames=4)
    original = json.dumps({"clip": make.instances(content, tids=tids), "other": []}).encode()
    path = tmp_path / "truth.json"
    ended: Counter[str] = Counter()

    @FAST
    @given(CHANGES_OF["json"])
    def run(changes: list[Change]) -> None:
        path.write_bytes(mutated(original, changes))
        try:
            scenes = VIDVRD.read(path)
        except InputError as error:
            ended["refused" if error.where else "refused without a place"] += 1
        else:
            rows_add_up(scenes)
            ended["read"] += 1

    run()
    assert min(ended["refused"], ended["read"]) > 5
    assert "refused without a place" not in ended
