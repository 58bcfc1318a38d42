"""Which predictions are ranked, and by which scores: none that scores 0, composites as they were linked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from random_events import event_set
from random_tubes import tube_set
from worked_cases import HERE, ONE, SIZE, Prediction, predictions, shifted, truth

from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.linking.postprocessing import NmsConfig, suppress_overlaps
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import DetectionResult, Slice, evaluate
from roadaware.metrics.detection.matches import add_product_scores
from roadaware.scenes.tables import Predictions, Scenes

DEFAULT, REFERENCE = DetectionConfig.default(), DetectionConfig.reference()
PRODUCT = replace(DEFAULT, composite_scores="product")


@pytest.mark.parametrize("level", ["frame", "av_action"])
def test_a_score_of_nothing_is_no_prediction_of_a_frame(level: str) -> None:
    scenes, predictions = event_set(3, tied=True)
    whole = evaluate(predictions, scenes, replace(DEFAULT, min_score=None, min_av_score=None)).matches[level]
    assert (whole.score == 0).any()
    found = evaluate(predictions, scenes, DEFAULT).matches[level]
    kept = whole.ranked().score > 0
    np.testing.assert_array_equal(found.ranked().score, whole.ranked().score[kept])
    np.testing.assert_array_equal(found.ranked().hit, whole.ranked().hit[kept])
    np.testing.assert_array_equal(found.n_truth, whole.n_truth)


def test_a_score_of_nothing_is_no_prediction_of_a_tube() -> None:
    scenes, predictions = tube_set(3)
    half = {name: pl.col(name) * (pl.col("tube") % 2) for name in ("score",)}
    predictions = predictions.with_tables(
        tubes=predictions.tubes.with_columns(**half), tube_labels=predictions.tube_labels.with_columns(**half)
    )
    for config, zeros in ((DEFAULT, False), (REFERENCE, True)):
        found = evaluate(predictions, scenes, config, frame_thresholds=()).matches["video:stiou"]
        assert (found.score == 0).any() == zeros
        assert (found.score > 0).any()


def test_suppression_by_class_takes_effect() -> None:
    scenes = truth([(0, HERE), (0, shifted(3))], 1)
    found = predictions([Prediction(HERE, 0.9, (0.9, 0, 0, 0)), Prediction(shifted(3), 0.8, (0.8, 0, 0, 0))])
    loose = found.with_tables(tubes=found.tubes.clear(), boxes=found.boxes.drop("tube"))
    fewer = suppress_overlaps(loose, NmsConfig(by="class", iou=0.5))
    values = [
        evaluate(each, scenes, DEFAULT, kinds=["agent"]).value("frame_ap@0.5:agent:Ped")
        for each in (loose, fewer)
    ]
    assert values == [1.0, 0.5]


def moving() -> tuple[Scenes, Predictions]:
    """Pedestrians that move in eight frames, and detections whose duplex scores are no products."""
    frames = range(8)
    labels = [(k, kind, 0) for k in frames for kind in ("agent", "action", "duplex")]
    tubes = {"tube": [0, 1], "video": "v", "start_frame": 0, "end_frame": 8}
    scenes = truth([(frame, HERE) for frame in frames], 8).with_tables(
        labels=pl.DataFrame(labels, schema=["box", "kind", "label"], orient="row"),
        tubes=pl.DataFrame(tubes).with_columns(
            parent=pl.Series([None, 0], dtype=pl.Int64), kind=pl.Series([None, "duplex"])
        ),
        tube_labels=pl.DataFrame({"tube": [1], "kind": ["duplex"], "label": [0]}),
    )
    found = predictions([Prediction(HERE, 0.9, (0.5, 0.1, 0.4, 0.9), frame) for frame in frames])
    return scenes, found.with_tables(tubes=found.tubes.clear(), boxes=found.boxes.drop("tube"))


def how(predictions: Predictions, scenes: Scenes, config: DetectionConfig, **more: Any) -> DetectionResult:
    return evaluate(predictions, scenes, config, kinds=["duplex"], video_thresholds=(0.5,), **more)


def test_tubes_that_were_labelled_jointly_are_not_said_to_be_products() -> None:
    scenes, found = moving()
    joint = link(found, LinkerConfig.default())
    result = how(joint, scenes, PRODUCT)
    assert result.composite_scores == {"frame": "product", "video": "joint"}
    assert [note for note in result.notes if note.startswith("video: duplex")]
    assert result.config["composite_scores"] == "product"  # as asked: the levels differ
    tubes = how(joint, scenes, PRODUCT, frame_thresholds=())
    assert tubes.config["composite_scores"] == "joint"
    assert tubes.matches["video:stiou"].score.tolist() == pytest.approx([0.9])


def test_tubes_that_were_linked_from_products_are_said_to_be() -> None:
    scenes, found = moving()
    linked = link(add_product_scores(found, scenes), LinkerConfig.default())
    result = how(linked, scenes, PRODUCT)
    assert result.composite_scores == {"frame": "product", "video": "product"}
    assert not [note for note in result.notes if "duplex" in note]
    assert result.matches["video:stiou"].score.tolist() == pytest.approx([0.2])
    told = how(linked, scenes, DEFAULT)
    assert told.composite_scores == {"frame": "product", "video": "product"}
    assert told.config["composite_scores"] == "product"
    assert sum("products of marginals, which the predictions hold" in note for note in told.notes) == 2
    plain = how(link(found, LinkerConfig.default()), scenes, DEFAULT)
    assert plain.composite_scores == {"frame": "joint", "video": "joint"}
    assert not plain.notes


def test_a_slice_has_no_name_of_a_group() -> None:
    few = Slice(size=pl.col("height_px") < SIZE[1])
    found = predictions([Prediction(HERE, 0.9)])
    with pytest.raises(UsageError, match="'night' names a group and a slice"):
        evaluate(found, ONE, DEFAULT, groups={"v": "night"}, slices={"night": few})
    evaluate(found, ONE, DEFAULT, groups={"v": "night"}, slices={"small": few})
