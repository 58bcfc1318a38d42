"""Frame-level matches against plain loops, hand-worked cases and laws."""

from __future__ import annotations

import numpy as np
import pytest
from event_sets import KINDS, event_set
from plain_frame import frame_ap

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.frame import frame_matches
from roadaware.metrics.detection.matches import average_precision_table

CONFIGS = {
    "reference": DetectionConfig.reference(),
    "default": DetectionConfig.default(),
    "crowded": DetectionConfig(max_per_class=2, min_score=0.1, ap="interp101", empty_classes="zero"),
    "raw": DetectionConfig(ap="raw"),
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_fast_path_equals_plain_loops(name: str, tied: bool, seed: int) -> None:
    config = CONFIGS[name]
    scenes, predictions = event_set(seed, tied=tied, claimed_size=(682, 512))
    matches = frame_matches(predictions, scenes, config, (0.3, 0.5))
    assert matches.classes == tuple((kind, label) for kind, labels in KINDS.items() for label in labels)
    table = average_precision_table(matches, config)
    for c, (kind, label) in enumerate(matches.classes):
        for t, threshold in enumerate(matches.thresholds):
            expected = frame_ap(predictions, scenes, config, kind, label, threshold)
            assert table[c, t] == pytest.approx(expected, abs=1e-6, nan_ok=True), (kind, label, threshold)
    assert np.nanmax(table) > 0.2
