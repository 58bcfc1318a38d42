"""Metrics by scenario are those of the scenario's samples alone."""

from __future__ import annotations

from pathlib import Path
from sys import path

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.scenarios import FactorConfig, by_scenario, scenario_labels
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate
from roadaware.scenes.predictions import Predictions, of_samples
from roadaware.scenes.sampling import Iv2024, sample

path.insert(0, str(Path(__file__).parents[1] / "scenes" / "sampling"))
from made import Pedestrian, Place, scenes

CONFIG = PedestrianConfig.default("action")


@pytest.fixture
def answered():
    """Twelve pedestrians of two sizes and two roads, with random scores."""
    answers = ["crossing", "not-crossing"]
    tracks = [Pedestrian(f"0_{i:02}b", range(130), answers[i % 2], event=120) for i in range(12)]
    made = scenes(tracks, [Place(splits=("default/train", "default/val", "default/test"))])
    tall = pl.when(pl.col("tube") >= 6).then(pl.col("y1_px") + 250).otherwise(pl.col("y2_px"))
    roads = pl.Series("traffic_direction", ["OW", "TW", "OW"] * 4)
    boxes, tubes = made.boxes.with_columns(tall.alias("y2_px")), made.tubes.with_columns(roads)
    made = sample(made.with_tables(boxes=boxes, tubes=tubes), Iv2024.reference("action"))
    test = made.samples.filter(pl.col("split") == "test")
    return made, of_samples(test, np.random.default_rng(1).random((len(test), 1)))


def test_each_scenario_is_a_set_of_its_own(answered):
    made, predictions = answered
    result = by_scenario(predictions, made, ["scale", "road"], CONFIG, FactorConfig.reference())
    test = made.samples.filter(pl.col("split") == "test")
    labels = scenario_labels(made, ["scale", "road"], FactorConfig.reference(), test)
    assert set(result.groups) == set(labels)
    assert len(result.groups) == 4
    for group in result.groups:
        held = test.filter(pl.Series(labels == group))
        alone = evaluate(
            Predictions(samples=predictions.samples.join(held.select("sample"), on="sample", how="semi")),
            made.with_tables(samples=held),
            CONFIG,
        )
        for metric in ("accuracy", "average_precision", "soft_f1", "confidence_delta_mean"):
            assert result.value(metric, group) == pytest.approx(alone.value(metric), nan_ok=True)


def test_the_whole_stands_beside_its_scenarios(answered):
    made, predictions = answered
    result = by_scenario(predictions, made, ["road"], CONFIG)
    held = made.samples.filter(pl.col("split") == "test")
    whole = evaluate(predictions, made.with_tables(samples=held), CONFIG)
    assert result.values() == whole.values()
    rows = result.counts.filter(pl.col("group").is_not_null())
    assert rows["samples"].sum() == len(held)
