"""Baselines on the real annotations of JAAD against the released predictions of PedFormer."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from real_sets import jaad
from roadaware.analysis.compare import Comparison, compare
from roadaware.metrics.pedestrians import PedestrianConfig, Task, collect_sample_scores, evaluate
from roadaware.scenes.sampling import Iv2024, sample
from roadaware.scenes.tables import build_sample_predictions, sample_scores
from roadaware.tasks.pedestrians import Baseline, evaluate_baselines

ROOT = os.environ.get("ROADAWARE_DATA_DIR")
pytestmark = pytest.mark.skipif(ROOT is None, reason="ROADAWARE_DATA_DIR is unset: no real annotations")


@cache
def reference(task: Task) -> dict[str, Baseline]:
    return evaluate_baselines(
        sample(jaad(), Iv2024.reference(task)), task, config=PedestrianConfig.reference(task)
    )


def against_pedformer(task: Task, name: str) -> Comparison:
    done = reference(task)[name]
    released = np.loadtxt(Path(str(ROOT)) / "pie" / f"pf_{task}_jaad.csv", delimiter=",", ndmin=2)
    theirs = build_sample_predictions(done.scenes.samples, released.reshape(len(done.scenes.samples), -1))
    ours, _ = collect_sample_scores(done.predictions, done.scenes, task)
    other, _ = collect_sample_scores(theirs, done.scenes, task)
    return compare(ours, other, PedestrianConfig.reference(task), resamples=300, names=(name, "PedFormer"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "at_least"), [("logistic", 0.90), ("boosting", 0.91)])
def test_boxes_alone_rank_crossings_better_than_the_published_model(name: str, at_least: float) -> None:
    auc = reference("action")[name].metrics.value("auc")
    assert auc is not None
    assert auc >= at_least
    row = against_pedformer("action", name).table.filter(metric="auc").row(0, named=True)
    assert row["b"] == pytest.approx(0.866, abs=0.001)
    assert row["low_pedestrian"] > 0
    assert row["low_video"] > 0
    assert row["verdict"] == "better"


@pytest.mark.slow
def test_constant_velocity_places_pedestrians_better_than_the_published_model() -> None:
    found = reference("risk")["constant-velocity"].metrics.value("balanced_accuracy")
    assert found is not None
    assert found >= 0.47
    row = against_pedformer("risk", "constant-velocity").table.filter(metric="balanced_accuracy")
    assert row["b"][0] == pytest.approx(0.399, abs=0.001)
    assert row["verdict"][0] == "better"


@pytest.mark.slow
def test_on_annotated_events_alone_boxes_stay_better() -> None:
    done = reference("action")["logistic"]
    rows = done.scenes.samples
    invented = (rows["event_source"].cast(pl.String) == "fallback") & (rows["label"] == 1)
    kept = ~invented.to_numpy()
    assert invented.sum() == 399
    released = np.loadtxt(Path(str(ROOT)) / "pie" / "pf_action_jaad.csv", delimiter=",")
    auc = {
        name: roc_auc_score(rows["label"].to_numpy()[kept], scores[kept])
        for name, scores in {
            "PedFormer": released,
            **{
                name: sample_scores(one.predictions, one.scenes)[:, 0]
                for name, one in reference("action").items()
            },
        }.items()
    }
    assert auc["PedFormer"] == pytest.approx(0.794, abs=0.0006)
    assert auc["logistic"] == pytest.approx(0.876, abs=0.005)
    assert auc["boosting"] == pytest.approx(0.865, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "metric", "documented"),
    [
        ("action", "auc", {"logistic": 0.894, "boosting": 0.899}),
        ("risk", "balanced_accuracy", {"constant-velocity": 0.500, "boosting": 0.501}),
    ],
)
def test_baselines_under_the_recommended_labels(
    task: Task, metric: str, documented: dict[str, float]
) -> None:
    scenes = sample(jaad(), Iv2024.default(task))
    trained = evaluate_baselines(scenes, task, resamples=50)
    for name, value in documented.items():
        done = trained[name]
        found = done.metrics.row(metric)
        assert found["value"] == pytest.approx(value, abs=0.01), name
        assert found["low_video"] < found["value"] < found["high_video"]
        again = evaluate(done.predictions, done.scenes, PedestrianConfig.default(task))
        assert again.value(metric) == found["value"]
