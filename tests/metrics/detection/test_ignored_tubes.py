"""True tubes whose boxes are all to ignore: not asked for, and predictions on them neither right nor wrong."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from plain_video import tube_overlap, tubes_of
from random_tubes import tube_set

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import compute_average_precisions, match_tubes
from roadaware.metrics.detection.rows import extract_labelled_tubes
from roadaware.scenes.tables import Predictions, Scenes

CONFIGS = {"reference": DetectionConfig.reference(), "default": DetectionConfig.default()}
both = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
THRESHOLDS = (0.1, 0.5)


def resting(scenes: Scenes, tracks: list[int]) -> Scenes:
    """The scenes with the boxes of some tracks to ignore."""
    return scenes.with_tables(boxes=scenes.boxes.with_columns(ignore=pl.col("tube").is_in(tracks)))


def without(scenes: Scenes, tracks: list[int]) -> Scenes:
    """The scenes without some tracks, and what is cut from them."""
    owner = pl.coalesce("parent", "tube")
    tubes = scenes.tubes.filter(~owner.is_in(tracks))
    labels = scenes.tube_labels.filter(pl.col("tube").is_in(tubes["tube"].implode()))
    boxes = scenes.boxes.filter(~pl.col("tube").is_in(tracks))
    boxed = scenes.labels.filter(pl.col("box").is_in(boxes["box"].implode()))
    return scenes.with_tables(boxes=boxes, labels=boxed, tubes=tubes, tube_labels=labels)


@pytest.mark.slow
@both
@pytest.mark.parametrize("kinds", [None, ("agent",)])
def test_what_rests_is_not_asked_for_and_absorbs_predictions(
    config: DetectionConfig, kinds: tuple[str, ...] | None
) -> None:
    absorbed = 0
    for seed in range(6):
        scenes, predictions = tube_set(seed, videos=2)
        tracks = scenes.tubes.filter(pl.col("parent").is_null())["tube"].to_list()[::2]
        found = match_tubes(predictions, resting(scenes, tracks), config, THRESHOLDS, kinds=kinds)
        asked = match_tubes(predictions, without(scenes, tracks), config, THRESHOLDS, kinds=kinds)
        np.testing.assert_array_equal(found.n_truth, asked.n_truth)
        np.testing.assert_array_equal(found.hit, asked.hit)
        order = extract_labelled_tubes(
            predictions, found.classes, found.videos, np.ones((len(found.videos), 4))
        )
        on_them = _on(scenes, predictions, tracks, config, kinds)
        met = np.array([on_them.get(tube, 0.0) for tube in order.tube])[:, None] >= np.array(THRESHOLDS)
        expected = met & ~found.hit
        got = np.zeros_like(expected) if found.ignored is None else found.ignored
        np.testing.assert_array_equal(got, expected)
        absorbed += int(got.sum())
    assert absorbed > 5


def _on(
    scenes: Scenes,
    predictions: Predictions,
    tracks: list[int],
    config: DetectionConfig,
    kinds: tuple[str, ...] | None,
) -> dict[int, float]:
    """How much each predicted tube overlaps a true one of these tracks, whatever its label."""
    own = scenes.tubes.filter(pl.coalesce("parent", "tube").is_in(tracks))
    names = [("agentness", "agent")]
    names += [(k, label) for k in kinds or ("agent", "action") for label in scenes.meta.vocabularies[k]]
    size = config.frame_size_px
    true = [tube for name in names for tube in tubes_of(scenes, scenes, size, *name)]
    rested = [tube for tube in true if tube[1] in own["tube"].to_list() and tube[3]]
    predicted = [
        tube
        for kind, labels in predictions.meta.vocabularies.items()
        for label in labels
        for tube in tubes_of(predictions, scenes, size, kind, label)
    ]
    return {
        number: max(
            (tube_overlap(tube, other[3], "stiou", config) for other in rested if other[0] == video),
            default=0.0,
        )
        for video, number, _, tube in predicted
    }


@both
def test_a_tube_with_one_box_to_look_at_is_asked_for(config: DetectionConfig) -> None:
    scenes, predictions = tube_set(2)
    whole = match_tubes(predictions, scenes, config, THRESHOLDS)
    last = pl.col("box") != pl.col("box").last().over("tube", order_by="frame")
    mostly = scenes.with_tables(boxes=scenes.boxes.with_columns(ignore=last))
    # Pieces that hold none of the last boxes rest; tracks do not.
    found = match_tubes(predictions, mostly, config, THRESHOLDS, kinds=("agentness",))
    np.testing.assert_array_equal(found.n_truth[:, 0], whole.n_truth[:, 0])
    assert found.ignored is None


@both
def test_predictions_on_what_rests_change_no_number(config: DetectionConfig) -> None:
    scenes, predictions = tube_set(4, videos=2)
    tracks = scenes.tubes.filter(pl.col("parent").is_null())["tube"].to_list()[:3]
    rested = resting(scenes, tracks)
    found = match_tubes(predictions, rested, config, (0.2,))
    assert found.ignored is not None
    kept = found.take(np.flatnonzero(~found.ignored[:, 0]))
    assert len(kept) < len(found)
    np.testing.assert_array_equal(
        compute_average_precisions(found, config), compute_average_precisions(kept, config)
    )
