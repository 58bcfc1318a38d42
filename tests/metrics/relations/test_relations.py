from __future__ import annotations

from dataclasses import replace

import pytest
from plain_relations import plain_metrics
from random_relations import predictions_of, random_videos, scenes_of

from roadaware.metrics.judged import as_json
from roadaware.metrics.relations.config import CONFIGS, RelationConfig
from roadaware.metrics.relations.evaluate import evaluate

SMALL = {"recall_at": (1, 3, 8), "precision_at": (1, 3), "top_returns": 12, "frame_top": 6}


def _configs() -> list[RelationConfig]:
    published = [make() for make in CONFIGS.values()]
    small = [replace(config, **SMALL) for config in published]
    odd = replace(RelationConfig(), repeated_truth="each", averaging="pooled", predicates_per_pair=2)
    return [*published, *small, odd, replace(odd, several_truths=True, empty_frames="zero")]


@pytest.mark.parametrize("seed", range(12))
def test_every_config_equals_the_plain_loops(seed: int) -> None:
    videos = random_videos(seed)
    scenes, predictions = scenes_of(videos), predictions_of(videos)
    for config in _configs():
        plain = plain_metrics(videos, config)
        found = as_json(evaluate(predictions, scenes, config))
        assert set(found["summary"]) == set(plain.values)
        for name, value in plain.values.items():
            assert found["summary"][name] == pytest.approx(value, abs=1e-12), name
        assert {k: pytest.approx(v, abs=1e-12) for k, v in plain.by_class.items()} == found["per_class"]
