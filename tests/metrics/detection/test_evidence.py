"""Errors of whole sets: they start from the mAP of the metric itself, and every prediction has a fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.errors import MISSED, build_error_table, find_errors_by_kind
from roadaware.metrics.detection.matches import Matches, compute_average_precisions, match_frames, match_tubes
from roadaware.scenes.tables import Predictions, Scenes

CONFIGS = {"reference": DetectionConfig.reference(), "default": DetectionConfig.default()}


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    return generate_road_scenes(videos=3, frames=80, seed=3)


@pytest.fixture(scope="module")
def predictions(scenes: Scenes) -> Predictions:
    return link(simulate_detections(scenes, seed=3), LinkerConfig.default())


def means(matches: Matches, config: DetectionConfig) -> dict[str, float]:
    values = compute_average_precisions(matches, config)[:, 0]
    kinds = np.array([kind for kind, _ in matches.classes])
    return {kind: float(np.nanmean(values[kinds == kind])) for kind in matches.kinds}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("level", ["frame", "video"])
def test_errors_start_from_the_map_of_the_metric(
    scenes: Scenes, predictions: Predictions, name: str, level: str
) -> None:
    config = CONFIGS[name]
    matches = (
        match_frames(predictions, scenes, config, (0.5,))
        if level == "frame"
        else match_tubes(predictions, scenes, config, (0.5,), "stiou")
    )
    expected = means(matches, config)
    table = build_error_table(predictions, scenes, config, level=level)
    found = {kind: table.filter(kind=kind)["map"][0] for kind in expected}
    assert found == pytest.approx(expected, abs=1e-12)
    assert table["predictions"].sum() > 0


@pytest.mark.parametrize("level", ["frame", "video"])
def test_predictions_on_truth_to_ignore_have_no_fault(
    scenes: Scenes, predictions: Predictions, level: str
) -> None:
    """The mAP that errors start from is still that of the metric, where a third of the tracks rest."""
    resting = scenes.with_tables(boxes=scenes.boxes.with_columns(ignore=pl.col("tube") % 3 == 0))
    config = CONFIGS["default"]
    matches = (
        match_frames(predictions, resting, config, (0.5,))
        if level == "frame"
        else match_tubes(predictions, resting, config, (0.5,), "stiou")
    )
    assert matches.ignored is not None
    assert matches.ignored.any()
    expected = means(matches, config)
    table = build_error_table(predictions, resting, config, level=level)
    assert {kind: table.filter(kind=kind)["map"][0] for kind in expected} == pytest.approx(expected)


def test_every_prediction_has_a_fault_and_right_ones_are_the_hits(
    scenes: Scenes, predictions: Predictions
) -> None:
    config = DetectionConfig.reference()
    matches = match_frames(predictions, scenes, config, (0.5,))
    found = find_errors_by_kind(predictions, scenes, config, level="frame")
    assert sum(int((each.fault == 0).sum()) for each in found) == int(matches.hit.sum())
    assert sum(len(each.fault) for each in found) == len(matches)


def test_the_truth_predicted_as_it_is_has_no_faults(scenes: Scenes) -> None:
    truth = scenes.labels.with_columns(score=pl.lit(1.0))
    perfect = Predictions(
        videos=scenes.videos,
        boxes=scenes.boxes.with_columns(score=pl.lit(1.0)),
        labels=truth,
        tubes=scenes.tubes,
        meta=scenes.meta,
    )
    table = build_error_table(perfect, scenes, DetectionConfig.default(), level="frame")
    assert table.filter(pl.col("fault") == MISSED)["predictions"].sum() == 0
    assert table["map"].to_list() == pytest.approx([1.0] * len(table))


def test_nothing_predicted_is_all_missed(scenes: Scenes) -> None:
    nothing = Predictions(meta=replace(scenes.meta, notes={}))
    table = build_error_table(nothing, scenes, DetectionConfig.default(), level="frame", kinds=["agent"])
    missed = table.filter(pl.col("fault") == MISSED)
    assert missed["predictions"][0] == len(scenes.labels.filter(pl.col("kind").cast(pl.String) == "agent"))


def test_an_unknown_level_is_refused(scenes: Scenes, predictions: Predictions) -> None:
    with pytest.raises(UsageError, match="frame or video"):
        build_error_table(predictions, scenes, DetectionConfig.default(), level="clip")
