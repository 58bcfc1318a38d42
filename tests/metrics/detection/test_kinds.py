"""Which kinds are judged: what both sides know, of boxes as of tubes; the rest is said and counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from random_events import event_set
from random_tubes import tube_set

from roadaware.formats.coco import read_index, read_results
from roadaware.formats.road_tubes import read_tubes, write_tubes
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.config import (
    DetectionConfig,
    is_agentness_scored,
    list_box_kinds,
    list_tube_kinds,
)
from roadaware.metrics.detection.evaluate import DetectionResult, evaluate
from roadaware.scenes.tables import Meta, Predictions, Scenes

DEFAULT = DetectionConfig.default()
CONFIGS = {"reference": DetectionConfig.reference(), "default": DEFAULT}
_NEVER = {"start_frame": 700, "end_frame": 701}
both = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def judged_kinds(result: DetectionResult, level: str) -> list[str]:
    """The kinds of a level, in order."""
    return result.summary.filter(level=level)["kind"].unique(maintain_order=True).to_list()


def unlinked(seed: int = 1) -> tuple[Scenes, Predictions]:
    """A truth with tubes of agents and actions, and detections with dense scores of them."""
    scenes, predictions = event_set(seed, frames=8)
    boxes = scenes.boxes.with_columns(tube=pl.col("box"))
    tubes = boxes.select("tube", "video", start_frame="frame", end_frame=pl.col("frame") + 1)
    derived = scenes.labels.join(tubes, left_on="box", right_on="tube").with_row_index("at")
    derived = derived.with_columns(tube=pl.col("at").cast(pl.Int64) + 100_000, parent="box")
    parts = derived.select("tube", "video", "start_frame", "end_frame", "parent", "kind")
    scenes = scenes.with_tables(
        boxes=boxes,
        tubes=pl.concat([tubes, parts], how="diagonal"),
        tube_labels=derived.select("tube", "kind", "label"),
    )
    return scenes, predictions


@both
def test_a_file_of_tubes_predicts_no_agentness(config: DetectionConfig, tmp_path: Path) -> None:
    scenes, predictions = tube_set(3)
    predictions = predictions.with_tables(tubes=predictions.tubes.drop("consecutive", strict=False))
    for agentness in (False, True):
        write_tubes(predictions, tmp_path / "tubes.pkl", agentness=agentness)
        held = read_tubes(tmp_path / "tubes.pkl", scenes, size=(682, 512))
        result = evaluate(held, scenes, config, frame_thresholds=())
        expected = ["agentness"] if agentness else []
        assert judged_kinds(result, "video") == [*expected, "agent", "action"]
        said = "tubes are not judged for agentness: nothing is predicted of that"
        assert (said in result.notes) != agentness
        # Nor are the boxes of its tubes: their scores are those of labels.
        assert not is_agentness_scored(held)
        assert "agentness" not in list_box_kinds(held, scenes)


@both
def test_the_scores_of_coco_results_are_those_of_labels(config: DetectionConfig, tmp_path: Path) -> None:
    scenes, results = _coco(tmp_path)
    result = evaluate(results, scenes, config, video_thresholds=())
    assert judged_kinds(result, "frame") == ["agent"]
    assert result.value("frame_ap@0.5:agent:Ped") == pytest.approx(1.0)
    assert "boxes are not judged for agentness: nothing is predicted of that" in result.notes
    named = results.with_tables(meta=replace(results.meta, vocabularies=scenes.meta.vocabularies))
    assert judged_kinds(evaluate(named, scenes, config), "frame") == ["agentness", "agent"]
    asked = evaluate(results, scenes, config, kinds=["agentness"], video_thresholds=())
    assert judged_kinds(asked, "frame") == ["agentness"]  # told to, it takes the scores for what they are not


def _coco(folder: Path) -> tuple[Scenes, Predictions]:
    """Two pedestrians, each detected as one and, less surely, as a car."""
    categories = [{"id": 1, "name": "Ped"}, {"id": 2, "name": "Car"}]
    image = {"id": 1, "file_name": "v/00001.jpg", "width": 100, "height": 100}
    (folder / "images.json").write_text(
        json.dumps({"images": [image], "categories": categories, "annotations": []}), encoding="utf-8"
    )
    found = [(1, 0, 0.9), (2, 0, 0.8), (1, 50, 0.7), (2, 50, 0.6)]
    rows = [
        {"image_id": 1, "category_id": c, "bbox": [at, at, 10, 10], "score": score} for c, at, score in found
    ]
    (folder / "results.json").write_text(json.dumps(rows), encoding="utf-8")
    results = read_results(folder / "results.json", read_index(folder / "images.json", by="folders"))
    edges = {name: [at, at + 50.0] for name, at in zip(("x1_px", "y1_px"), (0.0, 0.0), strict=True)}
    edges |= {name: [10.0, 60.0] for name in ("x2_px", "y2_px")}
    scenes = Scenes(
        videos=results.videos,
        frames=results.frames.with_columns(annotated=True),
        boxes=pl.DataFrame({"box": [0, 1], "video": "v", "frame": [0, 0], **edges}),
        labels=pl.DataFrame({"box": [0, 1], "kind": "agent", "label": [0, 0]}),
        meta=Meta(vocabularies={"agentness": ("agent",), "agent": ("Ped", "Car")}),
    )
    return scenes, results


def test_tubes_linked_from_scores_of_labels_predict_no_agentness(tmp_path: Path) -> None:
    scenes, results = _coco(tmp_path)
    scenes = scenes.with_tables(
        boxes=scenes.boxes.with_columns(tube=pl.col("box")),
        tubes=pl.DataFrame({"tube": [0, 1], "video": "v", "start_frame": 0, "end_frame": 1}),
    )
    linked = link(results, replace(LinkerConfig.default(), drop_weak=False))
    assert len(linked.tubes)
    assert list_tube_kinds(linked, scenes) == ()
    assert list_tube_kinds(linked.with_tables(labels=linked.labels.clear()), scenes) == ("agentness",)


@both
def test_boxes_and_tubes_are_judged_for_the_kinds_that_are_predicted(config: DetectionConfig) -> None:
    scenes, predictions = unlinked()
    linked = link(predictions, replace(LinkerConfig.default(), drop_weak=False, min_tube_len=0))
    whole = evaluate(linked, scenes, config, video_thresholds=(0.5,))
    for level in ("frame", "video"):
        assert judged_kinds(whole, level) == ["agentness", "agent", "action"]
    alone = linked.with_tables(
        boxes=linked.boxes.drop("scores"),
        labels=pl.DataFrame(
            {"box": linked.boxes["box"], "kind": "agent", "label": 0, "score": 0.5},
            schema_overrides={"label": pl.Int64},
        ),
        tube_labels=linked.tube_labels.filter(kind="agent"),
        frames=linked.frames.drop("scores"),
        meta=Meta(vocabularies={kind: linked.meta.vocabularies[kind] for kind in ("agentness", "agent")}),
    )
    result = evaluate(alone, scenes, config, video_thresholds=(0.5,))
    for level, what in (("frame", "boxes"), ("video", "tubes")):
        assert judged_kinds(result, level) == ["agentness", "agent"]
        assert f"{what} are not judged for action: nothing is predicted of that" in result.notes
    assert "frames are not judged for av_action: nothing is predicted of that" in result.notes
    assert "av_action" not in result.summary["level"].to_list()


def test_a_linker_that_finds_nothing_misses_everything() -> None:
    scenes, predictions = unlinked()
    weak = predictions.with_tables(boxes=predictions.boxes.with_columns(score=pl.lit(0.0)))
    linked = link(weak, LinkerConfig.default())
    assert linked.tubes.is_empty()
    result = evaluate(linked, scenes, DEFAULT, video_thresholds=(0.5,))
    assert judged_kinds(result, "video") == ["agentness", "agent", "action"]
    assert set(result.summary.filter(level="video").filter("valid")["value"]) == {0.0}
    again = evaluate(weak, scenes, DEFAULT, video_thresholds=(0.5,))
    assert judged_kinds(again, "video") == []
    assert "tubes are not judged, because the predicted boxes are not linked" in again.notes


def test_a_detector_that_finds_nothing_misses_what_it_has_names_for() -> None:
    scenes, predictions = unlinked()
    nothing = predictions.with_tables(boxes=predictions.boxes.clear())
    assert list_box_kinds(nothing, scenes) == ("agentness", "agent", "action")
    assert list_box_kinds(Predictions(), scenes) == ("agentness", "agent", "action")
    assert list_tube_kinds(Predictions(), scenes) == ("agentness", "agent", "action")
    agents = Predictions(meta=Meta(vocabularies={"agent": ("Ped",)}))
    assert list_box_kinds(agents, scenes) == list_tube_kinds(agents, scenes) == ("agent",)


def test_predictions_of_a_kind_that_the_truth_lacks_are_named() -> None:
    scenes, predictions = unlinked()
    known = {kind: names for kind, names in scenes.meta.vocabularies.items() if kind != "action"}
    scenes = scenes.with_tables(
        labels=scenes.labels.filter(kind="agent"),
        tubes=scenes.tubes.filter(pl.col("kind").ne_missing("action")),
        tube_labels=scenes.tube_labels.filter(kind="agent"),
        meta=replace(scenes.meta, vocabularies=known),
    )
    linked = link(predictions, replace(LinkerConfig.default(), drop_weak=False, min_tube_len=0))
    result = evaluate(linked, scenes, DEFAULT, video_thresholds=(0.5,))
    for what in ("boxes", "tubes"):
        assert f"{what} are not judged for action: the truth has no such labels" in result.notes


def test_every_prediction_that_is_left_out_is_counted_by_reason() -> None:
    scenes, predictions = unlinked()
    linked = link(predictions, replace(LinkerConfig.default(), drop_weak=False, min_tube_len=0, gaps="keep"))
    boxes = linked.boxes.with_columns(frame=pl.when(pl.col("box") < 3).then(900).otherwise("frame"))
    truth = scenes.only(["v0", "v1"])
    first = pl.col("tube") == truth.tube_labels["tube"][0]
    never = [pl.when(first).then(edge).otherwise(name).alias(name) for name, edge in _NEVER.items()]
    truth = truth.with_tables(tubes=truth.tubes.with_columns(never))
    result = evaluate(linked.with_tables(boxes=boxes), truth, DEFAULT, overlaps=("stiou", "tiou"))
    annotated = {(v, f) for v, f, a in scenes.frames.select("video", "frame", "annotated").rows() if a}
    places = boxes.select("video", "frame").rows()
    held = [place for place in places if place[0] != "v2" and place[1] != 900]
    tubes = linked.tubes.filter(pl.col("video") == "v2")
    paths = len(tubes.filter(pl.col("parent").is_null()))
    expected: dict[str, Any] = {
        "predicted boxes in videos that the truth does not have": sum(v == "v2" for v, _ in places),
        "predicted boxes in frames that the truth does not have": sum(
            v != "v2" and f == 900 for v, f in places
        ),
        "predicted boxes in frames that were not annotated": sum(place not in annotated for place in held),
        "labels of predicted tubes in videos that the truth does not have": paths
        + len(linked.tube_labels.filter(pl.col("tube").is_in(tubes["tube"].implode()))),
        "labels of true tubes without a box": 1,
        "scores of frames in videos that the truth does not have": 8,
        "scores of frames that were not annotated": sum(
            place not in annotated
            for place in linked.frames.select("video", "frame").rows()
            if place[0] != "v2"
        ),
    }
    assert result.left_out == {what: n for what, n in expected.items() if n}
    assert all(f"{n:,} {what} were left out" in result.notes for what, n in result.left_out.items())


def test_a_kind_that_is_asked_for_and_labels_no_tube_is_noted() -> None:
    scenes, predictions = tube_set(3)
    bare = predictions.with_tables(
        tubes=predictions.tubes.filter(pl.col("parent").is_null()),
        tube_labels=predictions.tube_labels.clear(),
    )
    said = "no tubes are labelled with agent in the predictions: their numbers are 0"
    asked = {"kinds": ["agent"], "frame_thresholds": (), "video_thresholds": (0.5,)}
    result = evaluate(bare, scenes, DEFAULT, **asked)
    assert said in result.notes
    assert set(result.summary.filter(level="video").filter("valid")["value"]) == {0.0}
    assert said not in evaluate(predictions, scenes, DEFAULT, **asked).notes
