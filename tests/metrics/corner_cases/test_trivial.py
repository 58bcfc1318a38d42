"""Trivial answers: the whole of each image, and boxes between two random points of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from roadaware.metrics.corner_cases.evaluate import propose_whole_images, sample_random_boxes
from roadaware.metrics.corner_cases.matching import NONE, Objects, extract_objects
from roadaware.scenes.tables import Scenes


def truth() -> Objects:
    """Three images, the size of the second of which is not known."""
    names = ["a", "b", "c"]
    edges = {"x1_px": [0.0], "y1_px": [0.0], "x2_px": [9.0], "y2_px": [9.0]}
    held = extract_objects(
        Scenes(
            videos=pl.DataFrame({"video": names}),
            frames=pl.DataFrame({"video": names, "frame": 0, "annotated": True}),
            boxes=pl.DataFrame({"box": [0], "video": ["a"], "frame": [0], **edges}),
        ),
        area="annotated",
    )
    return replace(held, sizes=np.array([[200.0, 100.0], [np.nan, np.nan], [40.0, 30.0]]))


def test_the_whole_of_each_picture_of_known_size_is_predicted_once() -> None:
    found = propose_whole_images(truth())
    assert found.item.tolist() == [0, 2]
    assert found.corners.tolist() == [[0, 0, 200, 100], [0, 0, 40, 30]]
    assert found.sides.tolist() == [20000, 1200]
    assert found.score.tolist() == [1, 1]
    assert found.novel.tolist() == [True, True]
    assert found.common.tolist() == found.label.tolist() == [NONE, NONE]


def test_random_boxes_lie_within_their_pictures_and_rank_in_their_order() -> None:
    found = sample_random_boxes(truth(), 400)
    assert found.item.tolist() == [0] * 400 + [2] * 400
    assert found.score.tolist() == (1 - np.arange(400) / 400).tolist() * 2
    x1, y1, x2, y2 = found.corners.T
    width, height = np.repeat([[200, 100], [40, 30]], 400, axis=0).T
    assert ((x1 >= 0) & (x1 < x2) & (x2 <= width) & (y1 >= 0) & (y1 < y2) & (y2 <= height)).all()
    np.testing.assert_allclose(found.sides, (x2 - x1) * (y2 - y1))
    # The smaller and the larger of two even numbers are 1/3 and 2/3 on average.
    for low, high, side in ((x1, x2, width), (y1, y2, height)):
        assert ((low / side).mean(), (high / side).mean()) == pytest.approx((1 / 3, 2 / 3), abs=0.03)


def test_equal_seeds_give_equal_boxes() -> None:
    one, same, other = (
        sample_random_boxes(truth(), 3, **seed).corners for seed in ({}, {"seed": 0}, {"seed": 1})
    )
    assert (one == same).all()
    assert (one != other).all()
