"""The released PedFormer predictions on real JAAD annotations give the printed numbers of IV 2024."""

import os
from pathlib import Path

import numpy as np
import pytest

import real_sets
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.scenes.tables import build_sample_predictions

DATA = os.environ.get("ROADAWARE_DATA_DIR")
pytestmark = pytest.mark.skipif(
    DATA is None, reason="ROADAWARE_DATA_DIR does not name a folder with JAAD and PIE"
)

# Obtained with the published evaluator on the released files; Tables III and VI print them rounded, with
# hard precision and hard F1 of Table III in each other's place.
ACTION = {
    "average_precision": 0.626,
    "balanced_accuracy": 0.775,
    "auc": 0.866,
    "accuracy": 0.855,
    "weighted_accuracy": 0.854,
    "precision": 0.583,
    "weighted_precision": 0.579,
    "f1": 0.615,
    "weighted_f1": 0.613,
    "soft_balanced_accuracy": 0.778,
    "hard_balanced_accuracy": 0.581,
    "soft_accuracy": 0.873,
    "hard_accuracy": 0.723,
    "soft_precision": 0.641,
    "hard_precision": 0.279,
    "soft_f1": 0.636,
    "hard_f1": 0.315,
    "confidence_delta_max": 0.154,
    "confidence_delta_mean": 0.070,
}
RISK = {
    "average_precision": 0.421,
    "balanced_accuracy": 0.399,
    "auc": 0.895,
    "accuracy": 0.533,
    "weighted_accuracy": 0.425,
    "precision": 0.429,
    "weighted_precision": 0.411,
    "f1": 0.406,
    "weighted_f1": 0.388,
    "soft_balanced_accuracy": 0.434,
    "hard_balanced_accuracy": 0.222,
    "soft_accuracy": 0.595,
    "hard_accuracy": 0.361,
    "soft_precision": 0.484,
    "hard_precision": 0.428,
    "soft_f1": 0.440,
    "hard_f1": 0.247,
    "confidence_delta_max": 0.225,
    "confidence_delta_mean": 0.021,
}
REGIONS = (0.882, 0.459, 0.420, 0.471, 0.313, 0.271, 0.390, 0.470, 0.227, 0.123, 0.253, 0.771)


@pytest.fixture(scope="module")
def jaad():
    return real_sets.jaad()


def judged(jaad, task):
    test = sample(jaad, get_protocol(f"jaad-{task}@iv2024"))
    rows = test.samples.filter(test.samples["split"].cast(str) == "test")
    scores = np.loadtxt(Path(DATA) / "pie" / f"pf_{task}_jaad.csv", delimiter=",")
    predicted = build_sample_predictions(rows, scores.reshape(len(rows), -1))
    return evaluate(predicted, test, PedestrianConfig.reference(task), split="test")


@pytest.mark.parametrize(("task", "expected"), [("action", ACTION), ("risk", RISK)])
def test_values_are_those_of_the_published_evaluator(jaad, task, expected):
    found = judged(jaad, task).values()
    off = {name: (found[name], value) for name, value in expected.items() if abs(found[name] - value) > 6e-4}
    assert off == {}


def test_average_precision_over_regions_is_that_of_figure_5(jaad):
    result = judged(jaad, "risk")
    found = [result.value(f"average_precision_region_{k}") for k in range(12)]
    assert found == pytest.approx(REGIONS, abs=6e-4)
    assert result.counts["samples"].to_list() == [732, 243, 230, 257, 190, 180, 296, 443, 308, 195, 230, 1013]
