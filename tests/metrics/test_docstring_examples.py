"""The examples in the docstrings of geometry, statistics, metrics and their analysis run as written."""

import doctest
import importlib

import pytest

MODULES = (
    "geometry.boxes",
    "geometry.regions",
    "statistics.average_precision",
    "statistics.rates",
    "statistics.ranking",
    "statistics.bootstrap",
    "statistics.calibration",
    "metrics.scores",
    "metrics.calibration",
    "metrics.pedestrian_core",
    "metrics.pedestrians",
    "metrics.detection.slices",
    "metrics.detection.thresholds",
    "metrics.grounding.decoding",
    "metrics.grounding.sampling",
    "metrics.sound.maps",
    "metrics.sound.overlaps",
    "analysis.compare",
    "analysis.agreement",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(importlib.import_module(f"roadaware.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
