"""The settings of the evaluator: what is refused, and that a copy is equal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roadaware.config import from_dict, to_dict
from roadaware.errors import UsageError
from roadaware.metrics.detection.config import DetectionConfig


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ap", "voc07"),
        ("empty_classes", "one"),
        ("frame_size_px", (682, 0)),
        ("frame_size_px", (682,)),
        ("frame_pixel_offset", -1.0),
        ("video_pixel_offset", float("nan")),
        ("max_per_class", 0),
        ("min_score", float("nan")),
        ("interpolated_boxes", 1),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(UsageError, match=field):
        DetectionConfig(**{field: value})


@pytest.mark.parametrize("config", [DetectionConfig.reference(), DetectionConfig.default()])
def test_a_config_comes_back_from_json(config: DetectionConfig) -> None:
    assert from_dict(DetectionConfig, json.loads(json.dumps(to_dict(config)))) == config


def test_the_reference_differs_from_the_default() -> None:
    assert DetectionConfig.default() == DetectionConfig()
    assert DetectionConfig.reference() != DetectionConfig.default()
