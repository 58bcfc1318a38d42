"""ROAD's JSON: every tube of the file with its frames and boxes, labels by name, and what is refused."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import damage
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sets import SETS, edit, maker, rows_add_up

from example_counts import tried
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.readers.source import FolderSource
from roadaware.scenes.tables import Scenes

ROAD = SETS["road"]
make = maker("road")
HOUSE = {"agent": "agent", "action": "action", "loc": "location", "duplex": "duplex", "triplet": "event"}
Content = dict[str, Any]


def read_content(folder: Path, content: Content, name: str = "road_trainval_v1.0.json") -> Scenes:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    scenes = ROAD.read(folder / name)
    rows_add_up(scenes)
    return scenes


def head() -> Content:
    """The labels of a file, for one test alone."""
    found: Content = copy.deepcopy(make.head())
    return found


@pytest.fixture
def content() -> Content:
    """One video of twelve frames."""
    found = head()
    found["db"]["v"] = make.video_entry(12, ["train_1", "val_2"], 0)
    return found


def read_from(tmp_path: Path, content: Content) -> Scenes:
    return read_content(tmp_path / "set", content)


def native_tubes(content: Content, native: str) -> list[tuple[str, str, list[tuple[int, tuple[float, ...]]]]]:
    """Each tube with a used label, as the file has it: name, label, and frame with box as shares."""
    every, used = content[f"all_{native}_labels"], content[f"{native}_labels"]
    found = []
    for entry in content["db"].values():
        for uid, tube in entry[f"{native}_tubes"].items():
            if every[tube["label_id"]] in used:
                members = [
                    (int(frame) - 1, tuple(entry["frames"][frame]["annos"][key]["box"]))
                    for frame, key in tube["annos"].items()
                ]
                found.append((uid, every[tube["label_id"]], sorted(members)))
    return found


def read_tubes(scenes: Scenes, kind: str) -> list[tuple[str, str, list[tuple[int, tuple[float, ...]]]]]:
    """Each derived tube as the tables have it, box by box from its parent."""
    labels = dict(scenes.tube_labels.filter(kind=kind).select("tube", "label").iter_rows())
    sizes = {
        v: (w, h, w, h) for v, w, h in scenes.videos.select("video", "width_px", "height_px").iter_rows()
    }
    of_track: dict[int, dict[int, tuple[float, ...]]] = {}
    for row in scenes.boxes.iter_rows(named=True):
        if row["tube"] is not None:
            corners = (row[f"{c}_px"] for c in ("x1", "y1", "x2", "y2"))
            shares = tuple(value / side for value, side in zip(corners, sizes[row["video"]], strict=True))
            frames = of_track.setdefault(row["tube"], {})
            assert row["frame"] not in frames, "a track is in one frame twice"
            frames[row["frame"]] = shares
    found = []
    for tube in scenes.tubes.filter(kind=kind).iter_rows(named=True):
        frames = [frame for low, high in tube["spans"] for frame in range(low, high)]
        assert (tube["start_frame"], tube["end_frame"]) == (frames[0], frames[-1] + 1)
        members = [(frame, of_track[tube["parent"]][frame]) for frame in frames]
        found.append((tube["name"], scenes.meta.vocabularies[kind][labels[tube["tube"]]], members))
    return found


def agree(found: list[Any], wanted: list[Any]) -> None:
    """The same tubes in the same order, boxes to single precision."""
    assert [(name, label) for name, label, _ in found] == [(name, label) for name, label, _ in wanted]
    for (_, _, mine), (_, _, theirs) in zip(found, wanted, strict=True):
        assert [frame for frame, _ in mine] == [frame for frame, _ in theirs]
        np.testing.assert_allclose([box for _, box in mine], [box for _, box in theirs], atol=1e-6)


@pytest.mark.parametrize("native", HOUSE)
def test_every_tube_is_that_of_the_file(tmp_path: Path, content: Content, native: str) -> None:
    scenes = read_from(tmp_path, content)
    wanted = native_tubes(content, native)
    assert wanted
    agree(read_tubes(scenes, HOUSE[native]), wanted)


def test_a_walker_by_hand(tmp_path: Path, content: Content) -> None:
    scenes = read_from(tmp_path, content)
    walker = scenes.tubes.filter((pl.col("name") == "10284a58-002-01") & pl.col("parent").is_null())
    assert walker.select("video", "start_frame", "end_frame", "kind").rows() == [("v", 1, 12, None)]
    boxes = scenes.boxes.filter(tube=walker["tube"][0])
    assert boxes["frame"].to_list() == list(range(1, 12))
    first = boxes.row(0, named=True)
    assert [first[f"{c}_px"] for c in ("x1", "y1", "x2", "y2")] == pytest.approx([384, 384, 448, 528])
    said = {
        kind: [scenes.meta.vocabularies[kind][label] for label in group["label"]]
        for (kind,), group in scenes.labels.filter(box=boxes["box"][-1]).group_by("kind")
    }
    assert said == {
        "agent": ["Ped"],
        "action": ["Xing"],
        "location": ["LftPav", "Jun"],
        "duplex": ["Ped-Xing"],
        "event": ["Ped-Xing-Jun"],
    }


def test_holes_stay_holes(tmp_path: Path, content: Content) -> None:
    scenes = read_from(tmp_path, content)
    parked = scenes.tubes.filter((pl.col("name") == "a074d1bf-001-01") & (pl.col("kind") == "agent"))
    assert parked["spans"].to_list() == [[[0, 5], [6, 12]]]


def test_what_is_said_of_the_set(tmp_path: Path, content: Content) -> None:
    meta = read_from(tmp_path, content).meta
    assert meta.dataset == "ROAD"
    assert meta.vocabularies["agentness"] == ("agent_ness",)
    assert {kind: meta.vocabularies[HOUSE[kind]] for kind in HOUSE} == {k: tuple(make.USED[k]) for k in HOUSE}
    assert meta.notes["native_kinds"]["event"] == "triplet"
    assert meta.composites == {"duplex": ("agent", "action"), "event": ("agent", "action", "location")}
    for kind, parts in meta.composites.items():
        spelled = [
            "-".join(meta.vocabularies[part][n] for part, n in zip(parts, entry, strict=True))
            for entry in meta.notes["children"][kind]
        ]
        assert tuple(spelled) == meta.vocabularies[kind]


def test_unused_labels_are_left_out_and_counted(tmp_path: Path, content: Content) -> None:
    scenes = read_from(tmp_path, content)
    left_out = scenes.meta.notes["left_out"]
    assert left_out["labels: agent SmalVeh, which is not used"] == 2
    assert left_out["labels: loc RhtParking, which is not used"] == 11
    assert left_out["tubes: action Rev, which is not used"] == 1
    assert left_out["frame_labels: av_action AV-Rev, which is not used"] == 1
    hidden = scenes.tubes.filter((pl.col("name") == "edb6d66a-005-01") & pl.col("parent").is_null())
    assert len(scenes.boxes.filter(tube=hidden["tube"][0])) == 2


def test_the_vehicles_actions_keep_the_files_order(tmp_path: Path, content: Content) -> None:
    scenes = read_from(tmp_path, content)
    words = scenes.meta.vocabularies["av_action"]
    said = {
        frame: [words[n] for n in group["label"]]
        for (frame,), group in scenes.frame_labels.group_by("frame", maintain_order=True)
    }
    assert said[0] == ["AV-Stop"]
    assert said[2] == ["AV-Stop"]
    assert said[11] == ["AV-TurRht", "AV-Mov"]
    tubes = scenes.tubes.filter(kind="av_action")
    assert tubes["parent"].null_count() == 2
    assert tubes["spans"].to_list() == [[[0, 5]], [[5, 12]]]
    assert scenes.tube_labels.filter(kind="av_action")["label"].to_list() == [1, 0]


def test_frames_say_what_the_file_says(tmp_path: Path, content: Content) -> None:
    del content["db"]["v"]["frames"]["7"]
    for key in ("agent", "action", "loc", "duplex", "triplet"):
        for tube in content["db"]["v"][f"{key}_tubes"].values():
            tube["annos"].pop("7", None)
    scenes = read_from(tmp_path, content)
    assert scenes.videos.select("n_frames", "splits").rows() == [(14, ["train_1", "val_2"])]
    assert scenes.frames["frame"].to_list() == [n for n in range(13) if n != 6]
    assert scenes.frames.filter(pl.col("annotated").not_())["frame"].to_list() == [0]
    assert scenes.split_videos("val_2") == ["v"]
    assert scenes.rejected.is_empty()
    agree(read_tubes(scenes, "agent"), native_tubes(content, "agent"))


def test_frames_in_another_order_are_sorted(tmp_path: Path, content: Content) -> None:
    before = read_from(tmp_path, content)
    entry = content["db"]["v"]
    entry["frames"] = dict(reversed(entry["frames"].items()))
    for tube in entry["agent_tubes"].values():
        tube["annos"] = dict(reversed(tube["annos"].items()))
    after = read_from(tmp_path, content)
    assert after.with_tables(meta=before.meta) == before


def test_boxes_are_scaled_to_the_size_of_most_frames(tmp_path: Path, content: Content) -> None:
    frames = content["db"]["v"]["frames"]
    for key, frame in frames.items():
        frame |= {"width": 1920, "height": 1280} if key != "3" else {"width": 640, "height": 480}
    scenes = read_from(tmp_path, content)
    assert scenes.videos.select("width_px", "height_px").rows() == [(1920, 1280)]
    assert [w["what"] for w in scenes.meta.notes["warnings"]] == [
        "frames of another size than most of their video"
    ]
    agree(read_tubes(scenes, "agent"), native_tubes(content, "agent"))


def test_without_a_size_it_is_that_of_road(tmp_path: Path, content: Content) -> None:
    for frame in content["db"]["v"]["frames"].values():
        del frame["width"]
    scenes = read_from(tmp_path, content)
    assert scenes.videos.select("width_px", "height_px").rows() == [(1280, 960)]
    assert any("taken as 1280 x 960" in w["what"] for w in scenes.meta.notes["warnings"])


CUT = {
    "over the right edge": ([0.5, 0.5, 1.009, 0.9], [0.5, 0.5, 1.0, 0.9]),
    "over the left and upper edge": ([-0.004, -0.01, 0.2, 0.3], [0, 0, 0.2, 0.3]),
    "whole numbers": ([0, 0, 1, 1], [0, 0, 1, 1]),
}


@pytest.mark.parametrize("name", CUT)
def test_boxes_are_cut_at_the_edge(tmp_path: Path, content: Content, name: str) -> None:
    box, inside = CUT[name]
    content["db"]["v"]["frames"]["2"]["annos"]["b000002"]["box"] = box
    scenes = read_from(tmp_path, content)
    held = scenes.boxes.filter(frame=1).row(0, named=True)
    sides = (1280, 960, 1280, 960)
    found = [held[f"{c}_px"] / side for c, side in zip(("x1", "y1", "x2", "y2"), sides, strict=True)]
    assert found == pytest.approx(inside)
    assert scenes.meta.notes["boxes_cut_at_the_edge"] == int(box != inside)
    assert scenes.rejected.is_empty()


REFUSED = {
    "far outside": ([0.5, 0.5, 1.02, 0.9], "outside the image"),
    "far outside above": ([0.5, -0.5, 0.6, 0.9], "outside the image"),
    "upside down": ([0.5, 0.9, 0.6, 0.5], "upside down or empty"),
    "empty": ([0.5, 0.5, 0.5, 0.9], "upside down or empty"),
    "empty once cut": ([1.001, 0.5, 1.002, 0.9], "upside down or empty"),
    "three numbers": ([0.5, 0.5, 0.6], "four numbers and is 3"),
    "five numbers": ([0.5, 0.5, 0.6, 0.7, 0.8], "four numbers and is 5"),
    "no list": ("0.5 0.5 0.6 0.7", "four numbers"),
    "no box": (None, "four numbers and is null"),
    "a text in it": ([0.5, "0.5", 0.6, 0.7], '"0.5", which is no finite number'),
    "a boolean in it": ([0.5, True, 0.6, 0.7], "true, which is no finite number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_boxes_are_refused_and_leave_their_tubes(tmp_path: Path, content: Content, name: str) -> None:
    box, reason = REFUSED[name]
    content["db"]["v"]["frames"]["2"]["annos"]["b000002"]["box"] = box
    scenes = read_from(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("boxes", "v, frame 2, b000002")
    assert reason in row["reason"]
    (warning,) = [w for w in scenes.meta.notes["warnings"] if "frames of tubes" in w["what"]]
    assert warning["count"] == 4  # of the agent's, action's, location's and duplex's tubes
    tube = scenes.tubes.filter((pl.col("name") == "10284a58-002-01") & (pl.col("kind") == "agent"))
    assert tube["spans"].to_list() == [[[2, 12]]]


def set_at(*path: str, value: Any) -> Callable[[Content], None]:
    def change(content: Content) -> None:
        inner = content["db"]["v"]
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value

    return change


ROWS = {
    "a frame beyond the end": (set_at("frames", "15", value={}), "frames", "outside the video"),
    "a frame with no number": (set_at("frames", "1.5", value={}), "frames", "outside the video"),
    "a frame with a zero before it": (set_at("frames", "01", value={}), "frames", "outside the video"),
    "a frame 2^63": (set_at("frames", str(1 << 63), value={}), "frames", "outside the video"),
    "a frame that is a list": (set_at("frames", "14", value=[]), "frames", "is a list"),
    "annos that are a list": (set_at("frames", "1", "annos", value=[]), "boxes", "is a list"),
    "a box that is a list": (set_at("frames", "1", "annos", "x", value=[]), "boxes", "is a list"),
    "a label out of range": (
        set_at("frames", "2", "annos", "b000002", "loc_ids", value=[4]),
        "labels",
        "4 is no loc",
    ),
    "a label below 0": (
        set_at("frames", "2", "annos", "b000002", "loc_ids", value=[-1]),
        "labels",
        "-1 is no loc",
    ),
    "a label in words": (
        set_at("frames", "2", "annos", "b000002", "agent_ids", value=["0"]),
        "labels",
        '"0" is no',
    ),
    "a label of 1.0": (
        set_at("frames", "2", "annos", "b000002", "agent_ids", value=[1.0]),
        "labels",
        "1.0 is no",
    ),
    "a label without list": (
        set_at("frames", "2", "annos", "b000002", "agent_ids", value={}),
        "labels",
        "an object",
    ),
    "a huge label": (
        set_at("frames", "2", "annos", "b000002", "agent_ids", value=[10**30]),
        "labels",
        "beyond 64",
    ),
    "an av action out of range": (
        set_at("frames", "2", "av_action_ids", value=[9]),
        "frame_labels",
        "9 is no",
    ),
    "a tube that is a list": (set_at("loc_tubes", "x", value=[]), "tubes", "is a list"),
    "a tube without frames": (set_at("loc_tubes", "x", value={"label_id": 0}), "tubes", "has no 'annos'"),
    "an empty tube": (
        set_at("loc_tubes", "x", value={"label_id": 0, "annos": {}}),
        "tubes",
        "no frame that can",
    ),
    "a tube with a strange label": (
        set_at("loc_tubes", "10284a58-002-01-3", "label_id", value=None),
        "tubes",
        "null is no loc",
    ),
    "an av tube beyond the end": (
        set_at("av_action_tubes", "x", value={"label_id": 0, "frames": ["15"]}),
        "tubes",
        "no number in 1 to 14",
    ),
    "an av tube of a boolean": (
        set_at("av_action_tubes", "x", value={"label_id": 0, "frames": [True]}),
        "tubes",
        "no number in 1 to 14",
    ),
    "tubes that are a list": (set_at("loc_tubes", value=[]), "tubes", "is a list"),
}


@pytest.mark.parametrize("name", ROWS)
def test_bad_rows_are_refused_one_by_one(tmp_path: Path, content: Content, name: str) -> None:
    change, table, reason = ROWS[name]
    change(content)
    scenes = read_from(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert row["table"] == table
    assert row["item"].startswith("v, ")
    assert reason in row["reason"]


VIDEOS = {
    "no frames": (set_at("frames", value=None), "'frames' should be an object and is null"),
    "no length": (set_at("numf", value=None), "'numf' should be the number of frames"),
    "a length of 0": (set_at("numf", value=0), "'numf' should be the number of frames"),
    "a length of 10^12": (set_at("numf", value=10**12), "'numf' should be the number of frames"),
    "a length in words": (set_at("numf", value="14"), '"14"'),
    "splits that are no names": (set_at("split_ids", value=[1]), "'split_ids' should hold texts"),
}


@pytest.mark.parametrize("name", VIDEOS)
def test_a_bad_video_is_refused_among_others(tmp_path: Path, content: Content, name: str) -> None:
    change, reason = VIDEOS[name]
    change(content)
    with pytest.raises(InputError, match=r"no video can be read(.|\n)*"):
        read_from(tmp_path, content)
    content["db"]["w"] = make.video_entry(12, ["train_1"], 1)
    scenes = read_from(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("videos", "v")
    assert reason in row["reason"]
    assert scenes.videos["video"].to_list() == ["w"]


TOPS: dict[str, tuple[Callable[[Content], Any], str]] = {
    "no kinds": (lambda c: c.pop("label_types"), "no 'label_types'"),
    "kinds in an object": (lambda c: c.update(label_types={}), "should be a list and is an object"),
    "no labels": (lambda c: [c.pop("loc_labels"), c.pop("all_loc_labels")], "neither 'all_loc_labels' nor"),
    "a used label twice": (lambda c: c["loc_labels"].append("Jun"), "'loc_labels' holds a label twice"),
    "labels that are numbers": (lambda c: c.update(loc_labels=[1, 2]), "'loc_labels' should hold texts"),
    "no videos": (lambda c: c.pop("db"), "'db' holds no video"),
    "videos in a list": (lambda c: c.update(db=[]), "'db' should be an object and is a list"),
    "too few children": (lambda c: c["duplex_childs"].pop(), "3 entries; there are 4 used labels and 5"),
    "children out of range": (lambda c: c["duplex_childs"].__setitem__(0, [9, 0]), "holds 9, 0"),
    "children of another number": (lambda c: c["triplet_childs"].__setitem__(0, [0, 0]), "holds 0, 0"),
}


@pytest.mark.parametrize("name", TOPS)
def test_a_file_whose_labels_cannot_be_told_is_an_error(tmp_path: Path, content: Content, name: str) -> None:
    change, reason = TOPS[name]
    change(content)
    with pytest.raises(InputError, match=reason) as caught:
        read_from(tmp_path, content)
    assert "road_trainval_v1.0.json" in str(caught.value)


def test_one_list_of_labels_stands_for_both(tmp_path: Path, content: Content) -> None:
    del content["all_agent_labels"], content["agent_labels"]
    content["all_agent_labels"] = make.EVERY["agent"]
    content["duplex_childs"] = [
        [make.EVERY["agent"].index(make.USED["agent"][a]), b] for a, b in content["duplex_childs"]
    ]
    content["triplet_childs"] = [
        [make.EVERY["agent"].index(make.USED["agent"][a]), b, c] for a, b, c in content["triplet_childs"]
    ]
    scenes = read_from(tmp_path, content)
    assert scenes.meta.vocabularies["agent"] == tuple(make.EVERY["agent"])
    assert any("one list" in w["what"] for w in scenes.meta.notes["warnings"])


def test_children_may_count_all_labels(tmp_path: Path, content: Content) -> None:
    """One entry for each label there is, or numbers that count all labels: the names say which."""
    wanted = read_from(tmp_path, content).meta.notes["children"]
    parts = {"duplex": ("agent", "action"), "triplet": ("agent", "action", "loc")}
    for lists in (make.EVERY, make.USED):
        for kind, kinds in parts.items():
            content[f"{kind}_childs"] = [
                [make.EVERY[part].index(word) for part, word in zip(kinds, label.split("-"), strict=True)]
                for label in lists[kind]
            ]
        assert read_from(tmp_path, content).meta.notes["children"] == wanted


def test_the_name_and_the_splits_tell_the_dataset(tmp_path: Path, content: Content) -> None:
    def dataset(name: str) -> str:
        return read_content(tmp_path / "set", content, name).meta.dataset

    assert dataset("road_trainval_v1.0.json") == dataset("mine.json") == "ROAD"
    assert dataset("road_waymo_trainval_v1.0.json") == dataset("ROAD_plus_plus.json") == "ROAD-Waymo"
    content["db"]["v"]["split_ids"] = ["train", "all"]
    assert dataset("mine.json") == "ROAD-Waymo"


def test_two_datasets_in_one_folder_are_told_apart(tmp_path: Path, content: Content) -> None:
    read_content(tmp_path / "set", content)
    read_content(tmp_path / "set", content, "road_waymo_trainval_v1.0.json")
    with pytest.raises(DatasetNotFoundError, match="ROAD and ROAD-Waymo"):
        ROAD.read(tmp_path / "set")


def test_a_second_file_with_other_labels_is_refused(tmp_path: Path) -> None:
    root = ROAD.make(tmp_path / "set")
    edit(root / "road_trainval_v1.0.json", lambda data: data.replace(b"LftPav", b"LeftPav"))
    scenes = ROAD.read(root)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["file"]) == ("files", "road_trainval_v1.0.json")
    assert "not those of road_test_v1.0.json" in row["reason"]


def test_a_video_in_two_files_is_refused_the_second_time(tmp_path: Path) -> None:
    root = ROAD.make(tmp_path / "set")
    (root / "road_zz.json").write_bytes((root / make.MAIN).read_bytes())
    scenes = ROAD.read(root)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("videos", make.VIDEO)
    assert "twice" in row["reason"]


def test_a_file_larger_than_the_usual_bound_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = ROAD.make(tmp_path / "set")
    monkeypatch.setattr(FolderSource, "most_bytes", 1000)
    assert len(ROAD.read(root).videos) == 3


def test_weather_is_kept_where_it_is_told(tmp_path: Path, content: Content) -> None:
    content["db"]["v"] |= {"weather": "rain", "lighting": ["night", "lit"]}
    scenes = read_from(tmp_path, content)
    assert scenes.videos.select("weather", "time_of_day").rows() == [("rain", "night, lit")]


def test_hostile_names_stay_printable_or_as_they_are(tmp_path: Path, content: Content) -> None:
    entry = content["db"].pop("v")
    content["db"]["v\u202e\n\ud800"] = entry
    entry["agent_tubes"]["<script>\ud800"] = entry["agent_tubes"].pop("e97b3e4c-001-01")
    content["loc_labels"].append("\ud800")
    scenes = read_from(tmp_path, content)
    assert scenes.videos["video"].to_list() == ["v\\u202e\\n\\ud800"]
    assert scenes.tubes.filter(name="<script>\\ud800").height == 1
    assert scenes.meta.vocabularies["location"][-1] == "\\ud800"


def test_two_tubes_of_one_agent_and_one_uid_are_one_track(tmp_path: Path, content: Content) -> None:
    """An agent that goes away and comes back is one track where its boxes say so."""
    agent = content["db"]["v"]["agent_tubes"].pop("544e13cc-001-01")
    early = {frame: key for frame, key in agent["annos"].items() if int(frame) < 6}
    late = {frame: key for frame, key in agent["annos"].items() if int(frame) >= 6}
    content["db"]["v"]["agent_tubes"] |= {
        "first": {"label_id": 2, "annos": early},
        "second": {"label_id": 2, "annos": late},
    }
    scenes = read_from(tmp_path, content)
    agree(read_tubes(scenes, "agent"), native_tubes(content, "agent"))
    halves = (pl.col("name").is_in(["first", "second"])) & (pl.col("kind") == "agent")
    assert scenes.tubes.filter(halves)["parent"].n_unique() == 1
    for frame in content["db"]["v"]["frames"].values():
        for anno in frame.get("annos", {}).values():
            del anno["tube_uid"]
    assert read_from(tmp_path, content).tubes.filter(halves)["parent"].n_unique() == 2


def test_without_names_tubes_make_the_tracks(tmp_path: Path, content: Content) -> None:
    named = read_from(tmp_path, content)
    for frame in content["db"]["v"]["frames"].values():
        for anno in frame.get("annos", {}).values():
            del anno["tube_uid"]
    scenes = read_from(tmp_path, content)
    for kind in HOUSE:
        agree(read_tubes(scenes, HOUSE[kind]), native_tubes(content, kind))
    assert scenes.boxes.equals(named.boxes)
    assert scenes.tubes.equals(named.tubes)


def test_boxes_that_nothing_joins_have_no_track(tmp_path: Path, content: Content) -> None:
    entry = content["db"]["v"]
    entry["frames"]["5"]["annos"]["lone"] = {"box": [0.1, 0.1, 0.2, 0.2]}
    entry["frames"]["6"]["annos"]["named"] = {"box": [0.1, 0.1, 0.2, 0.2], "tube_uid": "once"}
    scenes = read_from(tmp_path, content)
    assert scenes.boxes["tube"].null_count() == 1
    once = scenes.tubes.filter(name="once")
    assert once.select("start_frame", "end_frame", "parent").rows() == [(5, 6, None)]


def test_a_tube_over_two_agents_of_one_frame_is_refused(tmp_path: Path, content: Content) -> None:
    """Its boxes are of two tracks that no track can hold, so that no parent can stand for it."""
    entry = content["db"]["v"]
    car = entry["agent_tubes"]["544e13cc-001-01"]["annos"]
    walker = entry["agent_tubes"]["10284a58-002-01"]["annos"]
    entry["duplex_tubes"]["mixed"] = {"label_id": 0, "annos": {"3": car["3"], "4": walker["4"]}}
    scenes = read_from(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("tubes", "v, duplex_tubes, mixed")
    assert "seen in one frame" in row["reason"]
    del entry["duplex_tubes"]["mixed"]
    for kind in HOUSE:
        agree(read_tubes(scenes, HOUSE[kind]), native_tubes(content, kind))


def test_one_name_for_all_joins_what_it_can(tmp_path: Path, content: Content) -> None:
    for frame in content["db"]["v"]["frames"].values():
        for anno in frame.get("annos", {}).values():
            anno["tube_uid"] = "same"
    scenes = read_from(tmp_path, content)
    for kind in HOUSE:
        agree(read_tubes(scenes, HOUSE[kind]), native_tubes(content, kind))
    assert any("boxes of one frame share" in w["what"] for w in scenes.meta.notes["warnings"])


@given(st.randoms(use_true_random=False))
@tried(120)
def test_tubes_are_exact_however_names_and_tubes_disagree(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> None:
    """Random tubes over random boxes: each is as the file has it, or refused because no track can hold it."""
    content = random_content(rng)
    scenes = read_content(tmp_path_factory.mktemp("random"), content)
    refused = {row["item"] for row in scenes.rejected.iter_rows(named=True)}
    for kind in HOUSE:
        wanted = [t for t in native_tubes(content, kind) if f"v, {kind}_tubes, {t[0]}" not in refused]
        agree(read_tubes(scenes, HOUSE[kind]), wanted)
    assert set(scenes.rejected["table"]) <= {"tubes"}
    assert doubled_agents(content) or not any("agent_tubes" in item for item in refused)


def random_content(rng: random.Random) -> Content:
    """Six frames with up to four boxes each, tubes that take any of them, names at random."""
    content = head()
    frames: dict[str, Any] = {}
    for frame in range(1, 7):
        annos = {
            f"b{frame}{n}": {"box": [0.1 * n, 0.1, 0.1 * n + 0.05, 0.1 + 0.01 * frame]}
            for n in range(rng.randrange(5))
        }
        for anno in annos.values():
            if rng.random() < 0.7:
                anno["tube_uid"] = rng.choice("xyz")
        frames[str(frame)] = {
            "annotated": 1,
            "width": 1280,
            "height": 960,
            "av_action_ids": [],
            "annos": annos,
        }
    entry: Content = {"split_ids": [], "numf": 6, "frames": frames, "av_action_tubes": {}}
    loose = rng.random() < 0.5
    for kind in HOUSE:
        tubes = entry[f"{kind}_tubes"] = {}
        for n in range(rng.randrange(4)):
            annos = {
                frame: rng.choice(list(held["annos"])) if loose else f"b{frame}{n}"
                for frame, held in frames.items()
                if rng.random() < 0.6 and (loose or f"b{frame}{n}" in held["annos"]) and held["annos"]
            }
            if annos:
                tubes[f"t{n}"] = {"label_id": make.EVERY[kind].index(make.USED[kind][n % 3]), "annos": annos}
    content["db"]["v"] = entry
    return content


def doubled_agents(content: Content) -> bool:
    """Whether agents' tubes alone join boxes of one frame."""
    groups = [set(tube["annos"].values()) for tube in content["db"]["v"]["agent_tubes"].values()]
    merged = True
    while merged:
        merged = False
        for a in range(len(groups)):
            for b in range(a):
                if groups[a] & groups[b]:
                    groups[b] |= groups.pop(a)
                    merged = True
                    break
            if merged:
                break
    return any(len({key[1] for key in group}) < len(group) for group in groups)


def test_agents_tubes_come_first(tmp_path: Path, content: Content) -> None:
    """A wrong tube of another kind costs itself, never an agent's tube, wherever the file has it."""
    entry = content["db"]["v"]
    agents = entry.pop("agent_tubes")
    car, walker = agents["544e13cc-001-01"]["annos"], agents["10284a58-002-01"]["annos"]
    entry["action_tubes"]["mixed"] = {"label_id": 0, "annos": {"3": car["3"], "4": walker["4"]}}
    entry["agent_tubes"] = agents
    scenes = read_from(tmp_path, content)
    assert scenes.rejected["item"].to_list() == ["v, action_tubes, mixed"]


def test_what_is_cut_off_in_the_middle_of_a_tube_costs_the_file(tmp_path: Path) -> None:
    root = ROAD.make(tmp_path / "set")
    edit(root / make.MAIN, lambda data: damage.swap(data, rb'"loc_tubes": \{', b'"loc_tubes": {"x'))
    assert "at byte" in ROAD.refusal(root)
