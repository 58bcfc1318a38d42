"""Label Studio's exports: keyframes to boxes, spans, sounds, texts and arrows, annotator by annotator."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sets import SETS, maker, rows_add_up
from test_fuzz import FAST

from roadaware.datasets.label_studio_tasks import interpolate_keyframes
from roadaware.errors import InputError, UsageError
from roadaware.scenes.tables import Scenes

STUDIO = SETS["label_studio"]
make = maker("label_studio")
Content = dict[str, Any]
CORNERS = ("x1_px", "y1_px", "x2_px", "y2_px")


@pytest.fixture
def task() -> Content:
    """A video task of twelve frames."""
    made: Content = copy.deepcopy(make.video_task(1, "clip.mp4"))
    return made


def result(task: Content) -> list[Any]:
    found: list[Any] = task["annotations"][0]["result"]
    return found


def read_tasks(folder: Path, *tasks: Any, **options: Any) -> Scenes:
    (folder / "export.json").write_text(json.dumps(tasks))
    scenes = STUDIO.read(folder / "export.json", **options)
    rows_add_up(scenes)
    return scenes


def tube(scenes: Scenes, name: str) -> pl.DataFrame:
    return scenes.boxes.filter(tube=scenes.tubes.filter(name=name)["tube"][0])


def warnings(scenes: Scenes) -> str:
    return "; ".join(warning["what"] for warning in scenes.meta.notes["warnings"])


def test_a_task_by_hand(tmp_path: Path, task: Content) -> None:
    scenes = read_tasks(tmp_path, task)
    video = scenes.videos.row(0, named=True)
    assert (video["video"], video["width_px"], video["height_px"], video["fps"], video["n_frames"]) == (
        "clip.mp4",
        640,
        360,
        5.0,
        12,
    )
    assert (video["category"], video["choices"], video["task"]) == ("flood", ["event=flood"], "1")
    ann = tube(scenes, "ann")
    assert ann["frame"].to_list() == list(range(11))
    assert ann.select(CORNERS).row(0) == pytest.approx((67.2, 108, 131.2, 252))
    assert ann.select(CORNERS).row(2) == pytest.approx((92.8, 111.6, 156.8, 255.6))
    assert tube(scenes, "light")["frame"].to_list() == [1]
    assert tube(scenes, "bob")["frame"].to_list() == [2, 3, 4, 5, 7, 8, 9, 10, 11]
    assert scenes.boxes["annotator"].unique().to_list() == ["7"]
    assert scenes.frames["annotated"].to_list() == [True] * 12
    words = scenes.meta.vocabularies
    names = dict(scenes.tubes.select("tube", "name").iter_rows())
    assert {(names[t], kind, words[kind][label]) for t, kind, label in scenes.tube_labels.rows()} == {
        ("light", "label", "lamp"),
        ("ann", "label", "person"),
        ("ann", "agent", "woman"),
        ("bob", "label", "person"),
        ("run", "action", "running"),
    }
    run = scenes.tubes.filter(name="run").row(0, named=True)
    assert (run["kind"], run["spans"], run["start_frame"], run["end_frame"]) == ("action", [[1, 4]], 1, 4)
    assert scenes.queries.select("name", "text", "start_frame", "end_frame").rows() == [
        ("ann", "a woman in red runs away", 0, 11),
        ("scene", "two people in a street", None, None),
    ]
    arrow = scenes.relations.row(0, named=True)
    assert (names[arrow["subject"]], names[arrow["object"]]) == ("ann", "bob")
    assert (arrow["start_frame"], arrow["end_frame"]) == (2, 11)
    sound = scenes.sounds.row(0, named=True)
    assert (sound["name"], sound["frame"], words["sound"][sound["label"]]) == ("cry", 2, "shouting")
    assert tube(scenes, "bob")["sound"].unique().to_list() == [0]
    assert tube(scenes, "ann")["sound"].null_count() == 11


def test_kinds_can_be_named(tmp_path: Path, task: Content) -> None:
    scenes = read_tasks(tmp_path, task, kinds={"label": "category", "agent": "category"})
    assert scenes.meta.vocabularies["category"] == ("lamp", "person", "woman")
    assert scenes.tube_labels.filter(kind="category").height == 4


@st.composite
def sequences(draw: st.DrawFn) -> tuple[list[int], list[bool], list[list[float]], int]:
    """Keyframes of a video with a last frame."""
    frames = sorted(draw(st.sets(st.integers(0, 30), min_size=1, max_size=8)))
    enabled = [draw(st.booleans()) for _ in frames]
    values = [[draw(st.integers(0, 100)) / 4 for _ in range(2)] for _ in frames]
    return frames, enabled, values, max(frames[-1], draw(st.integers(0, 40)))


@FAST
@given(sequences())
def test_a_frame_shows_what_the_keyframes_around_it_say(
    drawn: tuple[list[int], list[bool], list[list[float]], int],
) -> None:
    """Frame by frame: a keyframe is seen; another frame is if the last keyframe before it is enabled."""
    frames, enabled, values, last = drawn
    expected: dict[int, list[float]] = {}
    for frame in range(last + 1):
        before = [k for k, at in enumerate(frames) if at <= frame]
        if not before or not (frames[before[-1]] == frame or enabled[before[-1]]):
            continue
        a = before[-1]
        b = a + 1 if a + 1 < len(frames) else None
        share = 0.0 if b is None else (frame - frames[a]) / (frames[b] - frames[a])
        expected[frame] = [
            x if b is None else x + share * (values[b][n] - x) for n, x in enumerate(values[a])
        ]
    seen, found = interpolate_keyframes(np.array(frames), np.array(enabled), np.array(values), last)
    assert seen.tolist() == list(expected)
    assert found == pytest.approx(np.array(list(expected.values())))


def test_pictures_are_videos_of_one_frame(tmp_path: Path) -> None:
    scenes = read_tasks(tmp_path, make.image_task(1, "a.jpg"), make.image_task(2, "b%20c.jpg"))
    assert scenes.videos.select("video", "width_px", "height_px", "n_frames", "media").rows() == [
        ("a.jpg", 200, 100, 1, "image"),
        ("b c.jpg", 200, 100, 1, "image"),
    ]
    first = scenes.boxes.filter(video="a.jpg")
    assert first.select(CORNERS).rows()[0] == (100.0, 10.0, 140.0, 40.0)
    # Turned by a right angle about its upper left corner: 40 x 30 px lie to the left of it, 30 wide, 40 high.
    assert first.select(CORNERS).row(1) == pytest.approx((70, 11, 100, 51))
    assert "turned" in warnings(scenes)
    assert scenes.labels.select("box", "kind", "label").rows() == [(n, "agent", 0) for n in range(4)]


def test_work_of_several_stands_side_by_side(tmp_path: Path, task: Content) -> None:
    other = copy.deepcopy(task["annotations"][0]) | {"completed_by": 9}
    other["result"][1]["value"]["sequence"][0]["x"] = 20
    task["annotations"] += [other, copy.deepcopy(other) | {"was_cancelled": True}]
    task["predictions"] = [{"result": []}]
    scenes = read_tasks(tmp_path, task)
    assert scenes.tubes.filter(name="ann")["annotator"].to_list() == ["7", "9"]
    starts = [scenes.boxes.filter(tube=t)["x1_px"][0] for t in scenes.tubes.filter(name="ann")["tube"]]
    assert starts == pytest.approx([67.2, 128])
    assert scenes.meta.notes["left_out"] == {"annotations that were cancelled": 1, "predictions": 1}


def test_two_tasks_about_one_video_are_one_video(tmp_path: Path, task: Content) -> None:
    again = copy.deepcopy(task) | {"id": 2}
    elsewhere = copy.deepcopy(task) | {"id": 3}
    elsewhere["data"]["video"] = "/data/local-files/?d=other/clip.mp4"
    third = copy.deepcopy(elsewhere)
    third["data"]["video"] = "https://example.org/clip.mp4?x=1"
    scenes = read_tasks(tmp_path, task, again, elsewhere, third)
    assert scenes.videos["video"].to_list() == [
        "clip.mp4",
        "(task 3, export.json) clip.mp4",
        "(2) (task 3, export.json) clip.mp4",
    ]
    assert scenes.tubes.filter(video="clip.mp4", name="ann").height == 2


def test_without_a_size_corners_are_shares(tmp_path: Path, task: Content) -> None:
    del task["data"]["width"]
    scenes = read_tasks(tmp_path, task)
    assert scenes.meta.notes["unit_pictures"] is True
    assert scenes.videos.select("width_px", "height_px").rows() == [(1, 1)]
    assert tube(scenes, "ann").select(CORNERS).row(0) == pytest.approx((0.105, 0.3, 0.205, 0.7))
    sized = read_tasks(tmp_path, task, size=(640, 360), fps=10)
    assert "unit_pictures" not in sized.meta.notes
    assert tube(sized, "ann")["x1_px"][0] == pytest.approx(67.2)
    assert sized.videos["fps"].to_list() == [10]
    result(task)[1] |= {"original_width": 1280, "original_height": 720}
    assert read_tasks(tmp_path, task, size=(640, 360)).videos["width_px"].to_list() == [1280]


@pytest.mark.parametrize("size", ["640x360", "640X360", [640, 360], (640, 360)])
def test_the_size_is_said_as_to_other_readers(tmp_path: Path, task: Content, size: Any) -> None:
    del task["data"]["width"]
    assert read_tasks(tmp_path, task, size=size, fps=10).videos["width_px"].to_list() == [640]
    with pytest.raises(UsageError, match="such as 1280x720"):
        read_tasks(tmp_path, task, size="640 by 360")


@pytest.mark.parametrize(
    ("shift", "rate", "digits", "found"),
    [(0, 24, 15, 24.0), (1, 25, 15, 25.0), (0, 30, 1, 4.8)],
    ids=["by the frame", "by its beginning", "rounded: length over duration"],
)
def test_the_frame_rate_is_that_of_the_times(
    tmp_path: Path, task: Content, shift: int, rate: int, digits: int, found: float
) -> None:
    for each in result(task):
        value = each.get("value", {})
        if "sequence" in value:
            value["duration"] = 2.5
            for keyframe in value["sequence"]:
                keyframe["time"] = round((keyframe["frame"] - shift) / rate, digits)
    task["annotations"][0]["result"] = result(task)[1:]
    assert read_tasks(tmp_path, task).videos["fps"].to_list() == pytest.approx([found])


ARROWS = {"right": [("ann", "bob")], "left": [("bob", "ann")], "bi": [("ann", "bob"), ("bob", "ann")]}


@pytest.mark.parametrize("direction", ARROWS)
def test_arrows_have_a_direction(tmp_path: Path, task: Content, direction: str) -> None:
    result(task)[-2] |= {"direction": direction, "labels": ["pulling"]}
    scenes = read_tasks(tmp_path, task)
    names = dict(scenes.tubes.select("tube", "name").iter_rows())
    assert [(names[a], names[b]) for a, b in scenes.relations.select("subject", "object").rows()] == ARROWS[
        direction
    ]


BAD: dict[str, tuple[int, dict[str, Any], str, str]] = {
    "arrow to oneself": (-2, {"to_id": "ann"}, "relations", "its own object"),
    "arrow to nobody": (-2, {"to_id": "eve"}, "relations", "none of the annotation's regions"),
    "arrow of two who never meet": (-2, {"from_id": "light"}, "relations", "never seen together"),
    "arrow without a label": (-2, {"labels": []}, "relations", "no label"),
    "arrow that points nowhere": (-2, {"direction": "up"}, "relations", "right, left or bi"),
    "no keyframes": (2, {"value": {"sequence": []}}, "tubes", "list of keyframes"),
    "a range backwards": (
        5,
        {"value": {"ranges": [{"start": 5, "end": 4}], "timelinelabels": ["x"]}},
        "tubes",
        "forward",
    ),
    "a range from frame 0": (
        5,
        {"value": {"ranges": [{"start": 0, "end": 4}], "timelinelabels": ["x"]}},
        "tubes",
        "from frame 1",
    ),
    "a track without a value": (2, {"value": None}, "tubes", "should be an object and is null"),
    "a span without ranges": (5, {"value": {"timelinelabels": ["x"]}}, "tubes", "has no 'ranges'"),
    "a recording without an end": (6, {"type": "audio", "value": {"start": 1}}, "sounds", "has no 'end'"),
    "a sound backwards": (6, {"value": {"start": 2, "end": 1, "labels": ["x"]}}, "sounds", "forward"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_taken_says_why(tmp_path: Path, task: Content, name: str) -> None:
    place, change, table, reason = BAD[name]
    result(task)[place] |= change
    scenes = read_tasks(tmp_path, task)
    refused = scenes.rejected.filter(table=table)
    assert len(refused) == 1
    assert reason in refused["reason"][0]


KEYFRAMES: dict[str, tuple[Any, str]] = {
    "frame 0": ({"frame": 0}, "from 1 to"),
    "a frame twice": ({"frame": 5}, "second keyframe"),
    "behind the end": ({"frame": 13}, "behind the end of the video, which has 12"),
    "upside down": ({"height": -1}, "upside down"),
    "no number": ({"x": "3"}, "no finite number"),
    "half enabled": ({"enabled": 0.5}, "true or false"),
}


@pytest.mark.parametrize("name", KEYFRAMES)
def test_keyframes_that_cannot_be_are_refused_alone(tmp_path: Path, task: Content, name: str) -> None:
    change, reason = KEYFRAMES[name]
    sequence = result(task)[1]["value"]["sequence"]
    sequence.append(sequence[-1] | {"frame": 12} | change)
    scenes = read_tasks(tmp_path, task)
    (row,) = scenes.rejected.to_dicts()
    assert row["table"] == "boxes"
    assert "keyframe 3" in row["item"]
    assert reason in row["reason"]
    assert tube(scenes, "ann")["frame"].to_list() == list(range(11))


def test_spans_in_seconds_need_a_rate(tmp_path: Path, task: Content) -> None:
    span = {
        "id": "s",
        "from_name": "phase",
        "to_name": "ts",
        "type": "timeserieslabels",
        "value": {"start": 0.4, "end": 1.6, "instant": False, "timeserieslabels": ["panic"]},
    }
    task["annotations"][0]["result"] = [span]
    scenes = read_tasks(tmp_path, task, fps=5)
    assert scenes.tubes.select("kind", "start_frame", "end_frame").rows() == [("phase", 2, 8)]
    refused = read_tasks(tmp_path, task)
    assert "'fps'" in refused.rejected["reason"][0]


def test_what_is_said_of_a_whole_task_stays_beside_a_result_that_is_refused(
    tmp_path: Path, task: Content
) -> None:
    for each in result(task):
        if each["type"] == "choices":
            each.pop("id", None)
    result(task).insert(0, 5)
    scenes = read_tasks(tmp_path, task)
    assert "should be an object" in scenes.rejected["reason"][0]
    assert scenes.videos["choices"].to_list() == [["event=flood"]]


def test_results_of_other_types_are_counted(tmp_path: Path, task: Content) -> None:
    result(task).append({"id": "p", "type": "polygonlabels", "value": {"points": [], "polygonlabels": ["x"]}})
    result(task).append(
        {"id": "t", "type": "labels", "value": {"start": 1, "end": 2, "text": "x", "labels": []}}
    )
    scenes = read_tasks(tmp_path, task)
    assert scenes.meta.notes["left_out"] == {
        "results of the type labels": 1,
        "results of the type polygonlabels": 1,
    }


def test_other_exports_and_options_are_refused(tmp_path: Path, task: Content) -> None:
    for content, reason in (
        ([], "the list holds no task"),
        ([{"video": "a.mp4"}], "without 'data'"),
        ([[]], "is a list"),
    ):
        with pytest.raises(InputError, match=reason):
            read_tasks(tmp_path, *content)
    for option in ({"fps": 0}, {"fps": "5"}, {"size": (640,)}, {"size": (0, 360)}, {"size": 640}):
        with pytest.raises(UsageError, match=next(iter(option))):
            read_tasks(tmp_path, task, **option)


def test_a_length_that_stands_for_too_many_boxes_is_refused(
    tmp_path: Path, task: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadaware.datasets.label_studio.MOST_BOXES", 20)
    with pytest.raises(InputError, match="more than 20 boxes: region bob"):
        read_tasks(tmp_path, task)
