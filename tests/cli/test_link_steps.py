"""`link` of one or several sets: suppressed, fused and rid of short paths, as the library does it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from event_files import Events
from small_files import Command

from roadaware.demo_data.detector import simulate_detections
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.linking.postprocessing import (
    FusionConfig,
    InterpolationConfig,
    NmsConfig,
    fuse_detections,
    interpolate_tubes,
    suppress_overlaps,
)
from roadaware.scenes.store import open_predictions, save


@pytest.fixture
def other(events: Events, tmp_path: Path) -> Path:
    """The detections of another detector that errs in its own way."""
    save(simulate_detections(events.scenes, seed=2), tmp_path / "other")
    return tmp_path / "other"


def test_several_sets_are_fused_before_they_are_linked(
    roadaware: Command, events: Events, other: Path, tmp_path: Path
) -> None:
    words = ("--fuse-iou", "0.5", "--weights", "2", "1", "--out", tmp_path / "out", "--json")
    done = roadaware("link", events.saved, other, *words)
    assert done.code == 0, done.err
    both = fuse_detections(
        [events.predictions, open_predictions(other)], FusionConfig(weights=(2.0, 1.0), iou=0.5)
    )
    assert open_predictions(tmp_path / "out") == link(both, LinkerConfig.default("road"))
    (step,) = done.data["steps"]
    assert (step["step"], step["models"], step["fused"]) == ("fused", 2, len(both.boxes))
    assert open_predictions(tmp_path / "out").meta.notes["after_detector"] == [step]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["agentness", "class"])
def test_each_set_is_suppressed_by_itself(
    roadaware: Command, events: Events, other: Path, tmp_path: Path, by: str
) -> None:
    words = ("--nms", by, "--nms-iou", "0.3", "--out", tmp_path / "out", "--json")
    done = roadaware("link", events.saved, other, *words)
    config = NmsConfig(by=by, iou=0.3)
    sets = [suppress_overlaps(each, config) for each in (events.predictions, open_predictions(other))]
    both = link(fuse_detections(sets), LinkerConfig.default("road"))
    saved = open_predictions(tmp_path / "out")
    assert saved.boxes.equals(both.boxes)
    assert saved.tubes.equals(both.tubes)
    assert [step["step"] for step in done.data["steps"]] == ["suppressed", "suppressed", "fused"]
    counted = [step["boxes"] for step in done.data["steps"][:2]]
    assert counted == [len(events.predictions.boxes), len(open_predictions(other).boxes)]


def test_short_paths_are_left_out(roadaware: Command, events: Events, tmp_path: Path) -> None:
    done = roadaware("link", events.saved, "--min-length", "20", "--out", tmp_path / "out")
    whole = link(events.predictions, LinkerConfig.default("road"))
    assert open_predictions(tmp_path / "out") == interpolate_tubes(
        whole, InterpolationConfig(max_gap=0, min_length=20)
    )
    spans = pl.col("spans").list.eval(pl.element().list.get(1) - pl.element().list.get(0)).list.sum()
    tubes = open_predictions(tmp_path / "out").tubes.filter(pl.col("parent").is_not_null())
    assert 20 <= tubes.select(spans.min()).item() < 40
    assert f"of {len(whole.tubes):,} paths and tubes stay" in done.out


def test_what_was_done_is_printed(roadaware: Command, events: Events, other: Path, tmp_path: Path) -> None:
    done = roadaware("link", events.saved, other, "--nms", "class", "--out", tmp_path / "out")
    assert "linked predictions and other" in done.out
    assert done.out.count("suppressed by class at IoU 0.5") == 2
    assert "fused at IoU 0.55, weights 1 each" in done.out
    plain = roadaware("link", events.saved, "--out", tmp_path / "plain", "--json")
    assert plain.data["steps"] == []


def test_sets_that_do_not_fit_each_other_are_told_apart(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    predictions = events.predictions
    kinds = {**predictions.meta.vocabularies, "agent": tuple(f"other {n}" for n in range(10))}
    save(predictions.with_tables(meta=replace(predictions.meta, vocabularies=kinds)), tmp_path / "odd")
    done = roadaware("link", events.saved, tmp_path / "odd", "--out", tmp_path / "out")
    assert done.code == 3
    assert "do not score the same labels" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nms-iou", "0.5"], "--nms agentness"),
        (["--fuse-iou", "0.5"], "there is one"),
        (["--weights", "2"], "there is one"),
        (["OTHER", "--weights", "2"], "a number for each of the 2 sets"),
        (["OTHER", "--weights", "2", "-1"], "weights are positive numbers"),
        (["OTHER", "--fuse-iou", "2"], "iou and min_score lie in [0, 1]"),
        (["--nms", "agentness", "--nms-iou", "-1"], "lie in [0, 1]"),
        (["--min-length", "0"], "from 1 on"),
        (["--min-length", "6", "--config", "reference"], "use --config default"),
    ],
)
def test_wrong_requests(
    roadaware: Command, events: Events, other: Path, tmp_path: Path, words: list[str], says: str
) -> None:
    given = [str(other) if word == "OTHER" else word for word in words]
    done = roadaware("link", events.saved, *given, "--out", tmp_path / "out")
    assert done.code == 2
    assert says in done.err.replace("\n", " ")
    assert not (tmp_path / "out").exists()
