"""Scores of boxes and tubes against how often they are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from roadaware.errors import UsageError
from roadaware.metrics.detection.calibration import build_calibration_table, score_reliability
from roadaware.metrics.detection.matches import Matches
from roadaware.statistics.calibration import UniformBins


def matches(ignored: bool = False) -> Matches:
    """Two classes in two videos; at 0.5 the predictions of Car are right half of the time."""
    score = np.array([0.9, 0.9, 0.9, 0.9, 0.2, 0.01])
    hit = np.array([1, 0, 1, 0, 1, 0], dtype=np.bool_)
    return Matches(
        (0.5,),
        (("agent", "Car"), ("agent", "Ped"), ("action", "Stop")),
        ("day", "night"),
        np.array([0, 0, 0, 0, 1, 1], dtype=np.int32),
        score,
        np.array([0, 0, 1, 1, 0, 0], dtype=np.int32),
        np.arange(6),
        hit[:, None],
        np.ones((2, 3), dtype=np.int64),
        np.array([[False], [True], *[[False]] * 4]) if ignored else None,
    )


def row(table: pl.DataFrame, **at: str | None) -> dict[str, object]:
    rows = [r for r in table.iter_rows(named=True) if all(r[k] == v for k, v in at.items())]
    assert len(rows) == 1
    return dict(rows[0])


def test_the_gap_between_score_and_precision_is_the_error() -> None:
    table = build_calibration_table(matches(), 0.5)
    car = row(table, group=None, label="Car")
    assert (car["predictions"], car["precision"]) == (4, 0.5)
    assert car["ece"] == pytest.approx(0.4)
    ped = row(table, group=None, label="Ped")
    assert ped["predictions"] == 1  # the prediction of 0.01 is below the floor
    assert ped["ece"] == pytest.approx(0.8)
    whole = row(table, group=None, kind="agent", label=None)
    assert whole["ece"] == pytest.approx((4 * 0.4 + 0.8) / 5)
    stop = row(table, group=None, label="Stop")
    assert (stop["ece"], stop["valid"]) == (None, False)


def test_groups_of_videos_have_rows_of_their_own() -> None:
    table = build_calibration_table(matches(), 0.5, groups={"night": "night"})
    assert row(table, group="night", label="Car")["predictions"] == 2
    assert set(table["group"]) == {None, "night"}


def test_ignored_predictions_do_not_count() -> None:
    car = row(build_calibration_table(matches(ignored=True), 0.5), group=None, label="Car")
    assert car["predictions"] == 3
    assert car["ece"] == pytest.approx(0.9 - 2 / 3)


def test_the_diagram_shows_the_same_points() -> None:
    points = score_reliability(matches(), 0.5, "agent")
    assert points is not None
    assert points.count.tolist() == [1, 4]
    assert score_reliability(matches(), 0.5, "action", "Stop") is None


def test_predictions_of_a_twentieth_count_and_weaker_ones_do_not() -> None:
    held = replace(matches(), score=np.array([0.9, 0.05, 0.0499, 0.9, 0.05, 0.0499]))
    table = build_calibration_table(held, 0.5)
    assert [row(table, group=None, label=label)["predictions"] for label in ("Car", "Ped")] == [3, 1]
    assert row(table, group=None, label="Car")["mean_score"] == pytest.approx((0.9 + 0.05 + 0.9) / 3)
    points = score_reliability(held, 0.5, "agent")
    assert points is not None
    assert points.count.tolist() == [2, 2]
    assert build_calibration_table(held, 0.5, min_score=0.05).equals(table)


def test_a_class_and_its_bins_may_be_chosen() -> None:
    points = score_reliability(matches(), 0.5, "agent", "Car", bins=UniformBins(1))
    assert points is not None
    assert (points.count.tolist(), points.accuracy.tolist()) == ([4], [0.5])
    both = score_reliability(matches(), 0.5, "agent", bins=UniformBins(1))
    assert both is not None
    assert both.count.tolist() == [5]
    table = build_calibration_table(matches(), 0.5, bins=UniformBins(1))
    whole = row(table, group=None, kind="agent", label=None)
    assert (whole["predictions"], whole["precision"]) == (5, pytest.approx(3 / 5))
    assert whole["mean_score"] == pytest.approx(3.8 / 5)
    assert whole["ece"] == pytest.approx(0.8 / 5)


def test_the_groups_stand_in_the_order_of_their_names() -> None:
    table = build_calibration_table(matches(), 0.5, groups={"day": "sun", "night": "moon"})
    assert list(dict.fromkeys(table["group"])) == [None, "moon", "sun"]
    assert row(table, group="sun", kind="agent", label=None)["predictions"] == 3


def test_unknown_requests_say_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"0\.5, not at 0\.7"):
        build_calibration_table(matches(), 0.7)
    with pytest.raises(UsageError, match="agent, action"):
        score_reliability(matches(), 0.5, "event")
    with pytest.raises(UsageError, match="agent, action"):
        score_reliability(matches(), 0.5, "agent", "Stop")
