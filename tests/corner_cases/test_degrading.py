"""Truth with faults: as many as the model says, the same for the same image, none for a model without."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.corner_cases.captures import CommonObjects, SemanticMap
from roadaware.corner_cases.sources import ErrorModel, apply_detection_noise, apply_segmentation_noise
from roadaware.errors import UsageError

NAMES = tuple(f"class {n}" for n in range(30))


def crowd():
    """A hundred squares of class 7 on class 1, one object each."""
    classes, instances = np.ones((200, 200), np.uint8), np.zeros((200, 200), np.int32)
    for n in range(100):
        down, across = 20 * (n // 10) + 5, 20 * (n % 10) + 5
        square = (slice(down, down + 10), slice(across, across + 10))
        classes[square], instances[square] = 7, n + 1
    return SemanticMap(classes, NAMES), instances


def test_a_model_without_faults_changes_nothing():
    truth, instances = crowd()
    model = ErrorModel(edge_px=0, missed=0, wrong=0)
    found = apply_segmentation_noise(truth, instances, model, model.rng("v", 3, 0))
    np.testing.assert_array_equal(found.classes, truth.classes)
    common = CommonObjects(np.array([[1.0, 2, 3, 4]]), np.ones(1))
    objects = apply_detection_noise(common, np.array([[5.0, 5, 9, 9]]), model, model.rng("v", 3, 1))
    np.testing.assert_array_equal(objects.boxes, common.boxes)


def test_objects_are_missed_and_mistaken_as_often_as_the_model_says():
    truth, instances = crowd()
    shares = []
    model = ErrorModel(edge_px=0)
    for frame in range(20):
        found = apply_segmentation_noise(truth, instances, model, model.rng("v", frame, 0)).classes
        middles = found[10::20, 10::20]
        shares.append([(middles == 1).mean(), ((middles != 1) & (middles != 7)).mean()])
    np.testing.assert_allclose(np.mean(shares, axis=0), [0.1, 0.1], atol=0.03)


def test_edges_move_by_about_the_spread():
    truth = SemanticMap(np.repeat([[1, 7]], 400, 0).repeat(200, 1).astype(np.uint8), NAMES)
    model = ErrorModel(edge_px=5, missed=0, wrong=0)
    found = apply_segmentation_noise(truth, np.zeros((400, 400), int), model, model.rng("v", 0, 0)).classes
    moved = (found == 1).sum(1) - 200
    assert 2 < moved.std() < 8
    assert abs(moved.mean()) < 3


def test_boxes_move_are_lost_and_others_are_taken_for_common():
    common = CommonObjects(np.tile([[100.0, 100, 200, 200]], (4000, 1)), np.ones(4000))
    others = np.tile([[500.0, 500, 600, 600]], (1000, 1))
    model = ErrorModel()
    found = apply_detection_noise(common, others, model, model.rng("v", 0, 1))
    near = found.boxes[:, 0] < 300
    assert near.sum() == pytest.approx(3200, abs=120)
    assert (~near).sum() == pytest.approx(100, abs=30)
    assert found.boxes[near, 0].std() == pytest.approx(5, abs=0.3)
    assert (found.boxes[:, :2] <= found.boxes[:, 2:]).all()


def test_a_picture_always_has_the_same_faults():
    truth, instances = crowd()
    model = ErrorModel()
    one, same, other = (
        apply_segmentation_noise(truth, instances, model, model.rng(video, 1, 0)).classes
        for video in ("v", "v", "w")
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize("wrong", [{"edge_px": -1}, {"missed": -0.1}, {"missed": 0.6, "wrong": 0.6}])
def test_models_that_are_none_are_refused(wrong):
    with pytest.raises(UsageError, match="edges move"):
        ErrorModel(**wrong)
