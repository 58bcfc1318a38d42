"""Means of pedestrians, where the last bit decides."""

import numpy as np
import pytest

from roadaware.metrics.pedestrians import (
    PedestrianConfig,
    SampleScores,
    compute_mean_scores,
    evaluate_samples,
)


@pytest.mark.parametrize("classes", [1, 3, 12])
def test_means_are_those_of_each_pedestrian_alone_to_the_last_bit(classes):
    rng = np.random.default_rng(classes)
    sizes = np.concatenate((np.arange(1, 40), rng.integers(1, 20, 300)))
    starts = np.cumsum(sizes) - sizes
    scores = np.round(rng.random((sizes.sum(), classes)), 1)
    alone = [scores[start : start + size].mean(axis=0) for start, size in zip(starts, sizes, strict=True)]
    np.testing.assert_array_equal(compute_mean_scores(scores, starts, sizes), alone)


def test_a_mean_of_exactly_one_half_decides_for_the_first_class():
    scores = np.array([[0.3], [0.8], [0.4], [0.9]])
    assert np.mean([0.3, 0.8, 0.4]) == 0.5
    state = SampleScores(scores, np.array([0, 0, 0, 1]), np.array(["a", "a", "a", "b"]))
    result = evaluate_samples(state, PedestrianConfig.reference("action"))
    assert result.value("soft_accuracy") == 1.0
