"""Summaries cut into tables: nothing is lost, nothing is confused, and what is undefined stays so."""

from __future__ import annotations

import polars as pl

from roadaware.analysis import event_results as events
from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate

SCENES = generate_road_scenes(videos=3, frames=30, boxes_per_frame=3, seed=5)
RESULT = evaluate(
    simulate_detections(SCENES),
    SCENES,
    DetectionConfig.default(),
    frame_thresholds=(0.5, "0.5:0.95"),
    resamples=10,
    groups={str(video): "x" for video in SCENES.videos["video"].head(2)},
)


def test_means_are_those_of_the_summary() -> None:
    grid = events.select_means(RESULT.summary)
    assert [column.words for column in grid.columns] == ["boxes at 0.5", "boxes at 0.5:0.95"]
    for (kind, column), value in grid.cells.items():
        row = RESULT.row(f"frame_map@{column.threshold}:{kind}")
        assert (value.value, value.low, value.high) == (row["value"], row["low_video"], row["high_video"])
    assert grid.rows == tuple(kind for kind in events.list_kinds(RESULT.summary) if kind != "av_action")


def test_groups_and_the_whole_are_kept_apart() -> None:
    column = events.Column("frame", "", "0.5")
    whole, part = (events.select_means(RESULT.summary, group).cells["agent", column] for group in (None, "x"))
    assert whole.value == RESULT.value("frame_map@0.5:agent")
    assert part.value == RESULT.value("frame_map@0.5:agent", "x")
    assert whole.value != part.value


def test_classes_come_in_the_order_of_the_vocabulary_with_what_is_undefined() -> None:
    grid = events.select_classes(RESULT.summary, "agent")
    assert grid.rows == SCENES.meta.vocabularies["agent"]
    undefined = [row for row in grid.rows if next(grid.row(row)).value is None]
    boxes = SCENES.labels.filter(pl.col("kind").cast(pl.String) == "agent")["label"].to_list()
    names = SCENES.meta.vocabularies["agent"]
    assert undefined == [name for k, name in enumerate(names) if k not in boxes]
    assert all(next(grid.row(row)).reason for row in undefined)


def test_headlines_are_the_usual_thresholds_or_the_first_of_their_level() -> None:
    column = events.Column
    held = (column("frame", "", "0.2"), column("frame", "", "0.5"), column("video", "stiou", "0.1"))
    assert events.select_headline(held) == (held[1], held[2])
    assert events.select_headline(()) == ()
