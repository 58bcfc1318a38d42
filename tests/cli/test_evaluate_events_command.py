"""`evaluate road` and `ucf24`: predictions in every form, the JSON that others read, a message for bad input."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from event_files import Events
from small_files import Command

from roadaware.datasets import read
from roadaware.formats.road_tubes import write_tubes
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import as_json, evaluate
from roadaware.reports.event_pages import load_event_run
from roadaware.scenes.composites import product_of_marginals
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions, Scenes

AT = (0.2, 0.5, 0.75, "0.5:0.95")


def road(roadaware: Command, events: Events, *more: object, predictions: Path | None = None) -> Any:
    words = ["evaluate", "road", "--truth", events.truth, "--predictions", predictions or events.saved]
    return roadaware(*words, *more)


def expected(scenes: Scenes, boxes: Predictions, tubes: Predictions, config: DetectionConfig) -> Any:
    """The JSON, from the library."""
    native = scenes.meta.notes["native_kinds"]
    at = {"frame_thresholds": (), "video_thresholds": ()}
    found = [
        as_json(evaluate(predictions, scenes, config, **{**at, level: AT}), native)
        for level, predictions in (("frame_thresholds", boxes), ("video_thresholds", tubes))
    ]
    return {"frame": found[0]["frame"], "video": found[1]["video"], "av_action": found[0]["av_action"]}


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_find_what_one_process_does(
    roadaware: Command, events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    if on != "local":
        pytest.importorskip("ray")
    # Of such a small set no resample takes seconds.
    monkeypatch.setattr("roadaware.metrics.detection.matches._PART_STEPS", 1000)
    words = ("--resamples", "percentile:40", "--by", "split")
    alone = road(roadaware, events, *words, "--output", tmp_path / "one")
    shared = road(roadaware, events, *words, "--output", tmp_path / "two", "--processes", "2", "--on", on)
    assert alone.code == shared.code == 0, shared.err
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.*")} for name in ("one", "two")
    )
    assert one == two
    assert "report.html" in one


@pytest.mark.parametrize("config", ["reference", "default"])
def test_detections_alone_are_linked_and_both_levels_judged(
    roadaware: Command, events: Events, config: str
) -> None:
    done = road(roadaware, events, "--config", config, "--json")
    assert done.code == 0
    scenes = read("road", events.truth)
    named = config == "reference"
    linker = LinkerConfig.reference("road") if named else LinkerConfig.default("road")
    metric = DetectionConfig.reference() if named else DetectionConfig.default()
    wanted = expected(scenes, events.predictions, link(events.predictions, linker), metric)
    assert {key: done.data[key] for key in wanted} == wanted
    assert "tubes were built from the detections by the linker" in done.data["run"]["notes"][0]


def test_the_json_has_the_published_form(roadaware: Command, events: Events, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = road(roadaware, events, "--config", "reference", "--json", out, predictions=events.folder)
    assert done.code == 0
    assert "mean AP, %" in done.out
    found = json.loads(out.read_text())
    assert list(found) == ["frame", "video", "av_action", "run"]
    assert list(found["frame"]) == ["0.2", "0.5", "0.75", "0.5:0.95"]
    assert list(found["video"]) == ["stiou"]
    kinds = found["frame"]["0.5"]
    assert kinds["agent_ness"] == kinds["agentness"]
    assert kinds["triplet"] == kinds["event"]
    agent = kinds["agent"]
    assert agent["mean"] == pytest.approx(np.mean(list(agent["per_class"].values())))
    assert 0 < agent["mean"] < 100
    assert found["run"]["config"]["type"] == "DetectionConfig"


@pytest.mark.slow
def test_every_form_of_the_same_predictions_gives_the_same_numbers(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    words = ("--config", "reference")
    assert roadaware("link", events.saved, *words, "--out", tmp_path / "linked").code == 0
    tubes = link(events.predictions, LinkerConfig.reference("road"))
    write_tubes(tubes, tmp_path / "tubes.pkl", agentness=True)
    forms = {
        "saved detections": [events.saved],
        "pickles": [events.folder],
        "linked": [tmp_path / "linked"],
        "pickles and tubes": [events.folder, tmp_path / "tubes.pkl"],
    }
    found = {}
    for name, paths in forms.items():
        done = roadaware(
            "evaluate", "road", "--truth", events.truth, "--predictions", *paths, *words, "--json"
        )
        assert done.code == 0, done.err
        found[name] = {key: done.data[key] for key in ("frame", "video", "av_action")}
    first = found.pop("saved detections")
    for name, numbers in found.items():
        assert numbers["frame"] == first["frame"], name
        assert numbers["av_action"] == first["av_action"], name
        for kind, held in first["video"]["stiou"]["0.2"].items():
            assert numbers["video"]["stiou"]["0.2"][kind]["mean"] == pytest.approx(held["mean"]), (name, kind)


def test_tubes_alone_are_judged_as_tubes_alone(roadaware: Command, events: Events, tmp_path: Path) -> None:
    write_tubes(link(events.predictions, LinkerConfig.default("road")), tmp_path / "tubes.pkl")
    done = road(roadaware, events, "--json", predictions=tmp_path / "tubes.pkl")
    assert done.code == 0
    assert done.data["frame"] == {}
    assert done.data["video"]["stiou"]
    assert any("boxes of frames are not judged" in note for note in done.data["run"]["notes"])
    assert road(roadaware, events, "--only", "frame", predictions=tmp_path / "tubes.pkl").code == 2


def test_truth_against_itself_is_100(roadaware: Command, events: Events, tmp_path: Path) -> None:
    """Every true box predicted with its own labels, every derived tube with its own."""
    save(of_truth(read("road", events.truth)), tmp_path / "perfect")
    done = road(roadaware, events, "--json", predictions=tmp_path / "perfect")
    assert done.code == 0, done.err
    means = [kind["mean"] for kind in done.data["frame"]["0.5:0.95"].values()]
    means += [kind["mean"] for kind in done.data["video"]["stiou"]["0.5:0.95"].values()]
    assert means == pytest.approx([100.0] * len(means))


def test_a_split_is_judged_alone_and_the_rest_is_counted(roadaware: Command, events: Events) -> None:
    done = road(roadaware, events, "--split", "val_3", "--json")
    assert done.code == 0
    held = events.scenes.split("val_3")
    assert done.data["run"]["truth"]["videos"] == len(held.videos) < 4
    inside = events.predictions.boxes["video"].cast(pl.String).is_in(held.videos["video"].to_list()).sum()
    dropped = done.data["run"]["dropped"]
    what = "predicted boxes in videos outside the split"
    assert dropped[what] == len(events.predictions.boxes) - inside
    assert what not in done.data["run"]["findings"]
    strict = road(roadaware, events, "--split", "val_3", "--strict", "--kinds", "agent")
    assert what in strict.out
    assert what not in strict.err


def test_unknown_videos_are_counted(roadaware: Command, events: Events, tmp_path: Path) -> None:
    boxes = events.predictions.boxes.with_columns(pl.col("video").cast(pl.String))
    first = str(boxes["video"][0])
    renamed = {"video": pl.when(pl.col("video") == first).then(pl.lit("elsewhere")).otherwise("video")}
    videos = events.predictions.videos.with_columns(pl.col("video").cast(pl.String)).with_columns(**renamed)
    frames = events.predictions.frames.with_columns(pl.col("video").cast(pl.String)).with_columns(**renamed)
    moved = events.predictions.with_tables(boxes=boxes.with_columns(**renamed), videos=videos, frames=frames)
    save(moved, tmp_path / "moved")
    done = road(roadaware, events, "--json", predictions=tmp_path / "moved")
    assert done.code == 0
    count = int((boxes["video"] == first).sum())
    counts = {
        "predicted boxes in videos that the truth lacks": count,
        f"judged videos without any detection, first {first}": 1,
    }
    assert done.data["run"]["dropped"] == done.data["run"]["findings"]
    assert counts.items() <= done.data["run"]["findings"].items()
    strict = road(roadaware, events, "--strict", "--kinds", "agent", predictions=tmp_path / "moved")
    assert strict.code == 1
    assert all(f"{n:,} {what}" in strict.err for what, n in counts.items())


@pytest.mark.slow
def test_groups_are_sets_of_their_own(roadaware: Command, events: Events, tmp_path: Path) -> None:
    sliced = ("--by", "split", "weather", "night", "height", "-o", tmp_path / "run")
    done = road(roadaware, events, *sliced, "--only", "frame", "--json")
    assert done.code == 0
    assert load_event_run(tmp_path / "run").facts["calibration"]
    groups = done.data["run"]["groups"]
    assert {name.partition("=")[0] for name in groups} == {"split", "weather", "night", "height"}
    alone = road(roadaware, events, "--split", "val_2", "--only", "frame", "--json")
    assert groups["split=val_2"]["frame"]["0.5"] == alone.data["frame"]["0.5"]
    assert groups["night=yes"]["frame"] == groups["weather=night"]["frame"]


def test_kinds_thresholds_and_overlaps_can_be_chosen(roadaware: Command, events: Events) -> None:
    words = ("--kinds", "agent", "--frame-thresholds", "0.3", "--video-thresholds", "0.1", "0.5")
    done = road(roadaware, events, *words, "--overlap", "stiou", "tiou", "--json")
    assert done.code == 0
    assert list(done.data["frame"]) == ["0.3"]
    assert list(done.data["frame"]["0.3"]) == ["agent"]
    assert list(done.data["video"]) == ["stiou", "tiou"]
    assert list(done.data["video"]["tiou"]) == ["0.1", "0.5"]


@pytest.mark.slow
def test_products_of_marginals_change_composites_alone(roadaware: Command, events: Events) -> None:
    joint, product = (
        road(roadaware, events, "--composites", how, "--json").data for how in ("joint", "product")
    )
    assert joint["frame"]["0.5"]["agent"] == product["frame"]["0.5"]["agent"]
    assert joint["frame"]["0.5"]["event"] != product["frame"]["0.5"]["event"]
    tubes = link(product_of_marginals(events.predictions), LinkerConfig.default("road"))
    config = DetectionConfig(composite_scores="product")
    wanted = expected(read("road", events.truth), events.predictions, tubes, config)
    assert {key: product[key] for key in wanted} == wanted


@pytest.mark.slow
def test_paths_can_be_judged_as_tracks(roadaware: Command, events: Events, tmp_path: Path) -> None:
    save(of_truth(read("road", events.truth)), tmp_path / "perfect")
    words = ("--tracking", "--kinds", "agent", "--resamples", "10")
    done = road(roadaware, events, *words, "--json", "-o", tmp_path / "run", predictions=tmp_path / "perfect")
    assert done.code == 0, done.err
    found = done.data["tracking"]
    assert found["hota"]["value"] == found["idf1"]["value"] == found["mota"]["value"] == 100
    assert found["switches"]["value"] == 0
    assert "Paths as tracks" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    text = road(roadaware, events, *words).out
    assert "paths as tracks, %" in text
    assert "tracking" not in road(roadaware, events, "--json").data


def test_intervals_stand_in_the_text(roadaware: Command, events: Events) -> None:
    first, second = (road(roadaware, events, "--resamples", "20", "--kinds", "agent").out for _ in range(2))
    assert first == second
    assert "[" in first
    default = road(roadaware, events, "--kinds", "agent").out
    assert "[" in default
    assert "95 % intervals over 4 videos" in default
    assert "[" not in road(roadaware, events, "--kinds", "agent", "--resamples", "0").out


@pytest.mark.parametrize(
    ("bars", "code", "says"),
    [
        (["frame_map@0.5:agent=1"], 0, ""),
        (["frame_map@0.5:agent=99.9"], 1, "frame_map@0.5:agent is "),
        (["video_map@0.5:0.95:agent=99"], 1, "99 % was asked for"),
        (["frame_ap@0.5:agent:EmVeh=50"], 1, "undefined"),
        (["frame_map@0.5:agents=1"], 2, "Did you mean frame_map@0.5:agent"),
        (["frame_map@0.5:agent=0.4"], 2, "in per cent; write 40"),
        (["frame_map@0.5:agent=high"], 2, "not a number"),
        (["frame_map@0.5:agent=101"], 2, "from 0 to 100"),
        (["frame_map"], 2, "METRIC=VALUE"),
    ],
)
def test_fail_under(roadaware: Command, events: Events, bars: list[str], code: int, says: str) -> None:
    done = road(roadaware, events, "--fail-under", *bars)
    assert done.code == code
    assert says in done.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--split", "val_9"], 2, "no video is in split 'val_9'"),
        (["--split", "val_9"], 2, "val_3"),
        (["--kinds", "agents"], 2, "agents"),
        (["--by", "mood"], 2, "there are split, height"),
        (["--frame-thresholds", "0.5:0.9"], 2, "0.5:0.95"),
        (["--video-thresholds", "nan"], 2, "threshold"),
        (["--overlap", "iou"], 2, "stiou"),
        (["--resamples", "-1"], 2, "0 or more"),
        (["--size", "682"], 2, "WIDTHxHEIGHT"),
        (["--predictions", "absent"], 3, "absent"),
        (["--predictions", "PREDICTIONS", "PREDICTIONS"], 2, "both hold boxes"),
        (["--truth", "absent.json"], 3, "absent.json"),
        (["-o", "."], 2, "holds other things"),
    ],
)
def test_wrong_requests(
    roadaware: Command,
    events: Events,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter.txt").write_text("dear")
    given = {"--truth": [events.truth], "--predictions": [events.saved]}
    given[words[0]] = [events.saved if word == "PREDICTIONS" else word for word in words[1:]]
    flat = [part for name, values in given.items() for part in (name, *values)]
    done = roadaware("evaluate", "road", *flat)
    assert done.code == code
    assert says in done.err
    assert done.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[1, 2", b'{"db": {"v": 3}}', b"\x80\x04N."])
def test_damaged_truth_is_one_message(
    roadaware: Command, events: Events, tmp_path: Path, content: bytes
) -> None:
    truth, out = tmp_path / "truth.json", tmp_path / "out.json"
    truth.write_bytes(content)
    words = ["evaluate", "road", "--truth", truth, "--predictions", events.saved, "--json", out]
    done = roadaware(*words)
    assert done.code == 3
    assert "truth.json" in done.err
    assert not out.exists()


def test_a_set_without_any_truth_is_not_scored(roadaware: Command, events: Events, tmp_path: Path) -> None:
    content = json.loads(events.truth.read_text())
    for video in content["db"].values():
        for frame in video["frames"].values():
            frame.pop("annos", None)
            frame["av_action_ids"] = []
        for name in [name for name in video if name.endswith("_tubes")]:
            video[name] = {}
    (tmp_path / "empty.json").write_text(json.dumps(content))
    done = roadaware(*("evaluate", "road", "--truth", tmp_path / "empty.json", "--predictions", events.saved))
    assert done.code == 3
    assert "nothing to judge against" in done.err


def test_a_pickle_that_would_act_is_refused(roadaware: Command, events: Events, tmp_path: Path) -> None:
    path = tmp_path / "tubes.pkl"
    path.write_bytes(pickle.dumps({"agent": {"v": [Path("x")]}}))
    done = road(roadaware, events, predictions=path)
    assert done.code == 3
    assert "tubes.pkl" in done.err


def test_labels_that_the_truth_does_not_know_are_an_error(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    out = tmp_path / "linked"
    assert roadaware("link", events.folder, "--out", out).code == 0
    same = road(roadaware, events, "--json", predictions=out)
    assert same.code == 0, same.err
    assert same.data["frame"]["0.5"]["agent"]["mean"] > 0


@pytest.mark.slow
def test_ucf24_takes_its_pickle_and_its_test_split(roadaware: Command, tmp_path: Path) -> None:
    truth = write_ucf24(tmp_path / "annotations.pkl")
    words = ["evaluate", "ucf24", "--truth", truth, "--predictions", tmp_path / "detections", "--json"]
    done = roadaware(*words, "--config", "reference")
    assert done.code == 0, done.err
    assert done.data["run"]["split"] == "test"
    assert done.data["run"]["truth"]["videos"] == 1
    assert done.data["frame"]["0.5"]["action"]["per_class"]["Biking"] == pytest.approx(100)
    assert done.data["frame"]["0.5"]["action_ness"]["mean"] == pytest.approx(100)
    assert done.data["run"]["dropped"] == {}
    other = roadaware(*words, "--split", "train")
    assert other.code == 3
    assert "none of its 1 videos is among the 1 that are judged" in other.err
    assert "Biking/v_two" in other.err


def of_truth(scenes: Scenes) -> Predictions:
    """The truth as predictions: labels and tubes with a score of 1."""
    one = pl.lit(1.0)
    return Predictions(
        videos=scenes.videos.select("video", "width_px", "height_px"),
        boxes=scenes.boxes.select(
            "box", "video", "frame", "tube", "x1_px", "y1_px", "x2_px", "y2_px", score=one
        ),
        labels=scenes.labels.with_columns(score=one),
        tubes=scenes.tubes.filter(pl.col("kind").cast(pl.String).ne_missing("av_action"))
        .select("tube", "video", "start_frame", "end_frame", "parent", "kind", "spans")
        .with_columns(score=one),
        tube_labels=scenes.tube_labels.filter(pl.col("kind").cast(pl.String) != "av_action").with_columns(
            score=one
        ),
        meta=scenes.meta,
    )


def write_ucf24(path: Path) -> Path:
    """Two videos of one man each who bikes; detections of the test video that are right."""
    boxes = np.tile(np.array([[41, 31, 100, 120]], dtype=np.uint16), (12, 1))
    names = [f"class {k}" for k in range(24)]
    names[3] = "Biking"
    videos = {}
    for name in ("Biking/v_one", "Biking/v_two"):
        tube = {"label": 3, "sf": np.uint8(2), "ef": np.uint8(14), "boxes": boxes}
        videos[name] = {"annotations": [tube], "numf": np.uint8(20), "label": 3}
    content = {"db": videos, "trainvideos": ["Biking/v_one"], "classes": names}
    path.write_bytes(pickle.dumps(content, protocol=4))
    place = path.parent / "detections" / "Biking" / "v_two"
    place.mkdir(parents=True)
    for frame in range(20):
        main = np.zeros((int(2 <= frame < 14), 29), dtype=np.float32)
        main[:, :4] = np.array([40 * 682 / 320, 30 * 512 / 240, 140 * 682 / 320, 150 * 512 / 240])
        main[:, 4], main[:, 5 + 3] = 0.9, 0.8
        ego = np.full(25, 0.1, dtype=np.float32)
        (place / f"{frame + 1:05d}.pkl").write_bytes(pickle.dumps({"ego": ego, "main": main}, protocol=4))
    return path
