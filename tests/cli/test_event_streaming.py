"""`evaluate road --latency` and calibration by slice: the numbers of the library beside the offline ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from event_files import Events
from small_files import Command

from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.calibration import build_calibration_table
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import as_json, evaluate
from roadaware.metrics.streaming import StreamingConfig, apply_latency, select_processed_frames
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions, Scenes


@pytest.fixture
def truth(events: Events, tmp_path: Path) -> Path:
    """The truth as tables, which know the frame rate; ROAD's own file does not."""
    save(events.scenes, tmp_path / "truth")
    return tmp_path / "truth"


def road(roadaware: Command, truth: Path, predictions: Path, *more: object) -> Any:
    words = ("--kinds", "agent", "action")
    return roadaware("evaluate", "road", "--truth", truth, "--predictions", predictions, *words, *more)


def expected(
    predictions: Predictions, scenes: Scenes, linker: LinkerConfig, clock: StreamingConfig, latency_s: float
) -> Any:
    """The streaming JSON, from the library."""
    seen, then = (
        select_processed_frames(predictions, scenes, clock, latency_s),
        replace(clock, scheduler="recorded"),
    )
    sides = (apply_latency(seen, scenes, then), apply_latency(link(seen, linker), scenes, then))
    at: Any = {"frame_thresholds": (), "video_thresholds": (), "kinds": ["agent", "action"]}
    found = [
        as_json(evaluate(side, scenes, DetectionConfig.default(), **{**at, name: (0.2, 0.5)}))
        for side, name in zip(sides, ("frame_thresholds", "video_thresholds"), strict=True)
    ]
    return found[0]["frame"], found[1]["video"]


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["latest", "every", "queue"])
def test_streaming_numbers_are_those_of_the_library(
    roadaware: Command, events: Events, truth: Path, scheduler: Any
) -> None:
    at = ("--frame-thresholds", "0.2", "0.5", "--video-thresholds", "0.2", "0.5")
    words = ("--latency", "0.15", "--scheduler", scheduler, *at, "--json")
    done = road(roadaware, truth, events.saved, *words)
    assert done.code == 0, done.err
    clock, found = StreamingConfig(scheduler), done.data["streaming"]
    frame, video = expected(events.predictions, events.scenes, LinkerConfig.default("road"), clock, 0.15)
    assert found["frame"] == frame
    assert found["video"] == video
    told = found["clock"]
    assert (told["latency_s"], told["scheduler"], told["times"]) == (0.15, scheduler, "fps")
    assert found["frame"]["0.5"]["agent"]["mean"] < done.data["frame"]["0.5"]["agent"]["mean"]


@pytest.mark.slow
def test_without_latency_streaming_is_offline(roadaware: Command, events: Events, truth: Path) -> None:
    found = road(roadaware, truth, events.saved, "--latency", "0", "--only", "frame", "--json").data
    assert found["streaming"]["frame"] == found["frame"]
    assert found["streaming"]["video"] == {}
    assert "streaming" not in road(roadaware, truth, events.saved, "--only", "frame", "--json").data


def test_linked_predictions_are_linked_again_as_they_were(
    roadaware: Command, events: Events, truth: Path, tmp_path: Path
) -> None:
    save(events.predictions, tmp_path / "predictions")
    words = ("--iou", "0.3", "--out", tmp_path / "linked")
    assert roadaware("link", tmp_path / "predictions", *words).code == 0
    at = ("--frame-thresholds", "0.2", "0.5", "--video-thresholds", "0.2", "0.5")
    done = road(roadaware, truth, tmp_path / "linked", "--latency", "0.1", *at, "--json")
    linker = replace(LinkerConfig.default("road"), min_iou=0.3)
    wanted = expected(events.predictions, events.scenes, linker, StreamingConfig("latest"), 0.1)
    assert (done.data["streaming"]["frame"], done.data["streaming"]["video"]) == wanted


def test_the_published_builder_keeps_its_gaps_on_the_clock(
    roadaware: Command, events: Events, truth: Path
) -> None:
    done = road(roadaware, truth, events.saved, "--config", "reference", "--latency", "0.1", "--json")
    assert done.code == 0, done.err
    assert done.data["streaming"]["clock"]["linker"]["gaps"] == "keep"
    assert done.data["run"]["linker"]["gaps"] == "squeeze"


def test_the_rate_is_asked_for_where_the_truth_has_none(roadaware: Command, events: Events) -> None:
    assert events.scenes.videos["fps"].to_list() == [12.0] * 4
    bare = road(roadaware, events.truth, events.saved, "--latency", "0.1")
    assert (bare.code, "give --fps" in bare.err) == (2, True)
    told = road(roadaware, events.truth, events.saved, "--latency", "0.1", "--fps", "12", "--json")
    assert told.code == 0, told.err


def test_the_times_of_frames_will_do(roadaware: Command, events: Events, tmp_path: Path) -> None:
    scenes = events.scenes
    times = scenes.frames.with_columns(t_s=(pl.col("frame") / 12).cast(pl.Float64))
    rateless = scenes.videos.with_columns(fps=pl.lit(None, pl.Float32))
    save(scenes.with_tables(videos=rateless, frames=times), tmp_path / "timed")
    done = road(roadaware, tmp_path / "timed", events.saved, "--latency", "0.1", "--json")
    assert done.code == 0, done.err
    assert done.data["streaming"]["clock"]["times"] == "t_s"


@pytest.mark.slow
def test_text_and_report_show_both(roadaware: Command, events: Events, truth: Path, tmp_path: Path) -> None:
    words = ("--latency", "0.1", "--tracking", "-o", tmp_path / "run")
    done = road(roadaware, truth, events.saved, *words)
    assert "offline, and streaming at 0.1 s a frame (latest)" in done.out
    for page in (tmp_path / "run" / "report.html", tmp_path / "again.html"):
        if not page.exists():
            assert roadaware("report", tmp_path / "run", "-o", page).code == 0
        text = page.read_text(encoding="utf-8")
        assert "Streaming accuracy" in text
        assert "Paths as tracks" in text


@pytest.mark.slow
def test_scores_are_judged_by_slice(roadaware: Command, events: Events, truth: Path, tmp_path: Path) -> None:
    words = ("--by", "weather", "height", "--json", "-o", tmp_path / "run")
    done = road(roadaware, truth, events.saved, *words)
    assert done.code == 0, done.err
    rows = [row for row in done.data["calibration"] if row["of"] == "boxes" and row["kind"] == "agent"]
    names = {name for name in done.data["run"]["groups"] if name.startswith("weather=")}
    assert {row["group"] for row in rows} == names
    videos = events.scenes.videos.select(pl.col("video").cast(pl.String), pl.col("weather").cast(pl.String))
    groups = {video: f"weather={weather}" for video, weather in videos.iter_rows()}
    judged = evaluate(events.predictions, events.scenes, DetectionConfig.default(), kinds=["agent", "action"])
    table = build_calibration_table(judged.matches["frame"], 0.5, groups=groups)
    wanted = table.filter(pl.col("group").is_not_null(), pl.col("label").is_null(), pl.col("kind") == "agent")
    assert {row["group"]: (row["predictions"], row["ece"]) for row in rows} == {
        row["group"]: (row["predictions"], row["ece"]) for row in wanted.iter_rows(named=True)
    }
    assert "Scores of boxes by slice" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scheduler", "latest"], "give --latency"),
        (["--fps", "12"], "give --latency"),
        (["--latency", "-1"], "from 0 on"),
        (["--latency", "nan"], "from 0 on"),
        (["--latency", "inf"], "a finite number"),
        (["--latency", "0.1", "--fps", "0"], "above 0"),
        (["--latency", "0.1", "--scheduler", "recorded"], "latest"),
    ],
)
def test_wrong_requests(roadaware: Command, events: Events, truth: Path, words: list[str], says: str) -> None:
    done = road(roadaware, truth, events.saved, *words)
    assert done.code == 2
    assert says in done.err


def test_who_answers_too_late_knows_nothing(roadaware: Command, events: Events, truth: Path) -> None:
    found = road(roadaware, truth, events.saved, "--latency", "1000", "--json").data["streaming"]
    assert {held["mean"] for held in found["frame"]["0.5"].values()} == {0}
    assert {held["mean"] for held in found["video"]["stiou"]["0.2"].values()} == {0}
