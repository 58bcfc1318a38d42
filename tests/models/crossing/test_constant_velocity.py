"""The rule, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from walkers import standing, walkers

from roadaware.models import create


def fitted(**config: object):
    train = walkers(40, 12, 0)
    return create("constant-velocity", **config).fit(train, walkers(200, 12, 1))


@pytest.mark.parametrize(
    ("centres", "region"),
    [
        ([100.0, 100.0], 0),
        ([100.0, 101.0], 1),  # 101 + 90 = 191
        ([799.0, 800.0], 5),  # 890
        ([160.0, 160.0], 1),  # an edge belongs to the region on its right
        ([1760.0, 1760.0], 11),
        ([30.0, 20.0], 0),  # leaves on the left
        ([1900.0, 1910.0], 11),  # leaves on the right
    ],
)
def test_the_largest_probability_is_that_of_the_region_ahead(centres: list[float], region: int) -> None:
    assert fitted().predict(standing([centres])).argmax() == region


def test_regions_are_as_wide_as_those_of_the_answers() -> None:
    # Regions of 1280 pixels are 106 wide as published: 1060 begins region 10, twelfths would do at 1066.7.
    scores = fitted().predict(standing([[1060.0, 1060.0], [1059.0, 1059.0]], 1280.0))
    assert scores.argmax(axis=1).tolist() == [10, 9]


def test_probability_falls_off_with_distance() -> None:
    model = fitted(spreads=(1.0,))
    scores = model.predict(standing([[80.0, 80.0]]))[0]
    weights = np.exp(-np.arange(12.0))
    np.testing.assert_allclose(scores, weights / weights.sum(), rtol=1e-6)


def test_the_spread_follows_how_far_the_rule_can_be_trusted() -> None:
    train, sure = walkers(40, 12, 0), walkers(300, 12, 1)
    rng = np.random.default_rng(0)
    wrong = np.where(rng.random(300) < 0.7, rng.integers(0, 12, 300), sure.truth)
    model = create("constant-velocity")
    trusting = model.fit(train, sure).fitted.chosen["spread"]
    doubting = model.fit(train, replace(sure, truth=wrong)).fitted.chosen["spread"]
    assert trusting < 1 < doubting


def test_jitter_at_the_ends_speaks_for_least_squares() -> None:
    train, held = walkers(40, 12, 0), walkers(400, 12, 1)
    held.boxes[:, 0, [0, 2]] += np.random.default_rng(0).normal(0, 40, (400, 1))
    assert create("constant-velocity").fit(train, held).fitted.chosen["slope"] == "least-squares"
