"""The critical difference diagram says which methods stand where, and which are joined."""

from __future__ import annotations

import numpy as np

from roadaware.reports.cross_dataset_figures import _levels, plot_critical_difference
from roadaware.statistics.comparison import Comparison, compare


def test_every_method_stands_with_its_rank_and_the_caption_tells_the_tests() -> None:
    rng = np.random.default_rng(0)
    found = compare(rng.normal(size=(12, 5)) + np.arange(5), ["a", "b", "c", "d", "e"])
    picture = plot_critical_difference(found, "AUC")
    drawn = picture.svg()
    assert all(f"{rank:.2f}" in drawn for rank in found.ranks.values())
    assert "12 datasets" in picture.caption
    assert f"{sum(pair.differ for pair in found.pairs)} of 10 pairs" in picture.caption
    alike = compare(rng.normal(size=(3, 3)), ["a", "b", "c"])
    assert "no two methods are called different" in plot_critical_difference(alike, "AUC").caption


def test_bars_that_would_touch_stand_below_each_other_and_others_side_by_side() -> None:
    ranks = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0}
    cliques = (("a", "b"), ("b", "c"), ("d", "e"))
    assert _levels(Comparison(ranks, 9, 0.1, 9.0, 0.01, (), cliques)) == [0, 1, 0]
