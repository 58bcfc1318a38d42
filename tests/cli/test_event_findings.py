"""What is wrong with truth and predictions of road events is said, counted, and made exit code 1 by --strict."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from event_files import Events
from small_files import Command

from roadaware.analysis.evaluation.event_inputs import convert_kinds, parse_size
from roadaware.analysis.event_findings import LeftOut, check_image_size, select_known_videos
from roadaware.errors import UsageError
from roadaware.scenes.store import save
from roadaware.scenes.tables import Scenes

QUICK = ("--kinds", "agent", "--only", "frame")


@pytest.fixture
def mended(events: Events, tmp_path: Path) -> Callable[[Callable[[Any], None]], Path]:
    """The annotations after a change."""

    def write(change: Callable[[Any], None]) -> Path:
        content = json.loads(events.truth.read_text())
        change(content)
        path = tmp_path / "road.json"
        path.write_text(json.dumps(content))
        return path

    return write


def judge(roadaware: Command, truth: Path, predictions: Path, *more: object) -> Any:
    return roadaware("evaluate", "road", "--truth", truth, "--predictions", predictions, *QUICK, *more)


def boxes_of(content: Any) -> list[Any]:
    return [
        box
        for video in content["db"].values()
        for frame in video["frames"].values()
        for box in frame.get("annos", {}).values()
    ]


def break_first(content: Any) -> None:
    boxes_of(content)[0]["box"] = [0.9, 0.1, 0.2, 0.3]


@pytest.mark.slow
def test_refused_rows_of_the_truth_are_told_by_every_command(
    roadaware: Command, events: Events, mended: Callable[..., Path], tmp_path: Path
) -> None:
    truth = mended(break_first)
    told = "1 rows or files of the truth refused, first: road.json"
    done = judge(roadaware, truth, events.saved, "-o", tmp_path / "run", "--json", tmp_path / "o.json")
    assert done.code == 0, done.err
    assert told in done.out
    run = json.loads((tmp_path / "o.json").read_text())["run"]
    assert [n for what, n in run["findings"].items() if what.startswith(told[2:])] == [1]
    assert run["dropped"] == run["findings"]
    assert "of the truth refused" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert judge(roadaware, truth, events.saved, "--strict").code == 1
    done = roadaware("stats", "road", truth, "--kinds", "agent")
    assert (done.code, told in done.out) == (0, True)
    strict = roadaware("stats", "road", truth, "--kinds", "agent", "--strict")
    assert (strict.code, told in strict.err) == (1, True)
    assert roadaware("stats", "road", events.truth, "--kinds", "agent", "--strict").code == 0
    done = roadaware("link", events.saved, "--truth", truth, "--out", tmp_path / "linked")
    assert told in done.out


def test_a_truth_without_one_box_is_not_scored(
    roadaware: Command, events: Events, mended: Callable[..., Path]
) -> None:
    def turn(content: Any) -> None:
        for box in boxes_of(content):
            box["box"] = [0.9, 0.1, 0.2, 0.3]

    done = judge(roadaware, mended(turn), events.saved)
    assert done.code == 3
    assert "no box in any frame that is judged" in done.err
    assert "rows were refused, first: road.json" in done.err
    assert done.out == ""


def test_a_label_list_that_the_truth_lacks_is_laid_at_its_door(
    roadaware: Command, events: Events, mended: Callable[..., Path]
) -> None:
    def shorten(content: Any) -> None:
        content["all_agent_labels"] = [*content["all_agent_labels"], "Another"]
        del content["agent_labels"]

    done = judge(roadaware, mended(shorten), events.folder)
    assert done.code == 3
    assert "It may be the truth: " in done.err
    assert "all_agent_labels" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("how", ["joint", "product"])
def test_linked_tubes_are_never_judged_as_what_they_are_not(
    roadaware: Command, events: Events, tmp_path: Path, how: str
) -> None:
    other = {"joint": "product", "product": "joint"}[how]
    linked = tmp_path / "linked"
    assert (
        roadaware("link", events.folder, "--truth", events.truth, "--composites", how, "-o", linked).code == 0
    )
    words = ["evaluate", "road", "--truth", events.truth, "--predictions", linked, "--kinds", "duplex"]
    done = roadaware(*words, "--composites", other)
    assert done.code == 2
    assert f"link the detections again with --composites {other}" in done.err
    done = roadaware(*words, "--json")
    assert done.data["run"]["config"]["composite_scores"] == how
    assert roadaware(*words, "--composites", how, "--json").data["video"] == done.data["video"]


def test_kinds_may_be_named_as_the_files_name_them(roadaware: Command, events: Events) -> None:
    words = ["evaluate", "road", "--truth", events.truth, "--predictions", events.saved, "--only", "frame"]
    done = roadaware(*words, "--json", "--kinds", "loc", "triplet", "agent_ness")
    assert done.code == 0, done.err
    assert {"location", "event", "agentness"} <= set(done.data["frame"]["0.5"])
    assert "agent" not in done.data["frame"]["0.5"]
    assert convert_kinds(["loc", "location", "duplex"], events.scenes) == ("location", "duplex")


def test_predictions_elsewhere_are_findings_only_where_the_truth_lacks_them(events: Events) -> None:
    names = [str(video) for video in events.scenes.videos["video"].to_list()]
    left = LeftOut()
    held = select_known_videos(events.predictions, names[:1], names[:2], left)
    counts = events.predictions.boxes["video"].cast(pl.String)
    assert set(held.boxes["video"].cast(pl.String)) == {names[0]}
    assert left.elsewhere == {"predicted boxes in videos outside the split": int((counts == names[1]).sum())}
    strange = int(counts.is_in(names[2:]).sum())
    assert left.findings == {"predicted boxes in videos that the truth lacks": strange}


def test_predictions_in_frames_that_nobody_annotated_are_findings(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    boxes = events.predictions.boxes
    frames = events.predictions.frames.head(0)
    annotated = (pl.col("frame") > 9).alias("annotated")
    scenes = events.scenes.with_tables(frames=events.scenes.frames.with_columns(annotated))
    save(scenes, tmp_path / "truth")
    save(events.predictions.with_tables(boxes=boxes, frames=frames), tmp_path / "predictions")
    done = judge(roadaware, tmp_path / "truth", tmp_path / "predictions", "--json")
    assert done.code == 0, done.err
    assert (boxes["frame"] <= 9).sum() in done.data["run"]["findings"].values()
    assert done.data["run"]["findings"] == done.data["run"]["dropped"]
    assert judge(roadaware, tmp_path / "truth", tmp_path / "predictions", "--strict").code == 1


@pytest.mark.parametrize("size", ["64x48", "6000x5000", "1600x900"])
def test_a_size_that_cannot_be_right_is_doubted(roadaware: Command, events: Events, size: str) -> None:
    done = judge(roadaware, events.truth, events.folder, "--size", size)
    assert done.code == 0
    assert "is --size right?" in done.out
    assert size in done.out


def test_the_right_size_is_not_doubted(events: Events) -> None:
    assert check_image_size(events.predictions, events.scenes) == ()


@pytest.mark.parametrize("text", ["9" * 5000 + "x1", "0x5", "10x10x10", "-1x5", "100001x5", "x", "1e3x5"])
def test_absurd_sizes_name_the_option(text: str) -> None:
    with pytest.raises(UsageError, match="--size"):
        parse_size(text)


def test_a_link_without_truth_says_what_it_needs(roadaware: Command, events: Events, tmp_path: Path) -> None:
    (tmp_path / "detections" / "v").mkdir(parents=True)
    content = {"ego": np.zeros(3, np.float32), "main": np.full((1, 11), 0.5, np.float32)}
    (tmp_path / "detections" / "v" / "00001.pkl").write_bytes(pickle.dumps(content))
    done = roadaware("link", tmp_path / "detections", "--out", tmp_path / "o")
    assert done.code == 3
    assert "--truth TRUTH" in done.err
    done = roadaware("link", events.folder, "--iou", "5", "--out", tmp_path / "o")
    assert (done.code, "--iou" in done.err) == (2, True)


def test_scores_in_per_cent_are_recognised(roadaware: Command, events: Events, tmp_path: Path) -> None:
    video = str(events.scenes.videos["video"][0])
    (tmp_path / "detections" / video).mkdir(parents=True)
    main = np.full((1, 153), 50, np.float32)
    main[0, :4] = 1, 1, 9, 9
    content = pickle.dumps({"ego": np.full(7, 0.5, np.float32), "main": main})
    (tmp_path / "detections" / video / "00001.pkl").write_bytes(content)
    done = judge(roadaware, events.truth, tmp_path / "detections")
    assert done.code == 3
    assert "per cent, divide them by 100" in done.err


@pytest.mark.slow
def test_one_damaged_pickle_among_many_is_counted(roadaware: Command, events: Events, tmp_path: Path) -> None:
    shutil.copytree(events.folder, tmp_path / "detections")
    sorted((tmp_path / "detections").glob("*/*.pkl"))[3].write_bytes(b"cut off")
    done = judge(roadaware, events.truth, tmp_path / "detections", "--json")
    assert done.code == 0, done.err
    refused = "rows or files of detections refused, first: "
    assert [n for what, n in done.data["run"]["findings"].items() if what.startswith(refused)] == [1]
    strict = judge(roadaware, events.truth, tmp_path / "detections", "--strict")
    assert (strict.code, refused in strict.err) == (1, True)
    for path in (tmp_path / "detections").glob("*/*.pkl"):
        path.write_bytes(b"cut off")
    assert judge(roadaware, events.truth, tmp_path / "detections").code == 3


def test_nothing_out_of_data_steers_the_terminal(roadaware: Command, events: Events, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07new"
    meta = events.scenes.meta
    names = {**meta.vocabularies, "agent": (*meta.vocabularies["agent"], evil)}
    noted = {**meta.notes, "warnings": [{"what": evil, "count": 2, "example": evil}]}
    odd = replace(meta, vocabularies=names, notes=noted, dataset="ROAD" + evil)
    save(events.scenes.with_tables(meta=odd), tmp_path / "odd")
    done = judge(roadaware, tmp_path / "odd", events.saved)
    assert done.code == 0, done.err
    assert "\x1b" not in done.out + done.err
    assert "\\x1b]0;owned" in done.out


def test_saved_tables_of_any_reader_are_truth(roadaware: Command, events: Events, tmp_path: Path) -> None:
    scenes: Scenes = events.scenes
    save(scenes.with_tables(meta=replace(scenes.meta, dataset="VoTT")), tmp_path / "saved")
    done = judge(roadaware, tmp_path / "saved", events.saved, "--json")
    assert done.code == 0, done.err
    assert done.data["run"]["truth"]["dataset"] == "VoTT"


def test_every_dataset_is_named_by_the_help(roadaware: Command) -> None:
    assert "jaad, pie, road, vott, ucf24" in " ".join(roadaware("read", "--help").out.split())
