"""Means over items: weighted by their videos, over what is defined, as a whole and by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError
from roadaware.metrics.metric_state import ItemScores

NAN = float("nan")


@dataclass(frozen=True)
class Config:
    """How things were scored."""

    strict: bool = True


@dataclass(frozen=True, eq=False)
class Things(ItemScores):
    """Things of a colour with two scores each."""

    config_type: ClassVar[type] = Config
    class_column: ClassVar[str] = "colour"

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("size", "weight")


def things(
    videos: str = "babba", colours: tuple[str | None, ...] = ("red", "blue", "red", None, "red")
) -> Things:
    """Five things in two videos, b before a; a red one has no weight."""
    values = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, NAN], [4.0, 40.0], [5.0, 50.0]])
    return Things(pl.DataFrame({"video": list(videos), "colour": colours}), values, Config())


def test_the_mean_is_over_defined_items_each_as_often_as_its_video() -> None:
    weights = np.array([[1, 1], [2, 1], [0, 1]], dtype=np.int32)  # of b, of a
    found = list(things().measured(weights))
    assert [(each.label, each.metric, each.n) for each in found] == [
        (None, "size", 5),
        (None, "weight", 4),
        ("blue", "size", 1),
        ("blue", "weight", 1),
        ("red", "size", 3),
        ("red", "weight", 2),
    ]
    expected = [
        [15 / 5, 23 / 8, 7 / 2],
        [120 / 4, 170 / 6, 70 / 2],
        [2, 2, 2],
        [20, 20, 20],
        [9 / 3, 13 / 5, 5],
        [60 / 2, 70 / 3, 50],
    ]
    np.testing.assert_allclose([each.values for each in found], expected)


def test_a_class_of_a_video_that_does_not_count_has_no_mean() -> None:
    found = {(e.label, e.metric): e for e in things().measured(np.array([[3, 0]], dtype=np.int32))}
    assert np.isnan(found["blue", "size"].values).tolist() == [True]
    assert found["red", "weight"].values.tolist() == [10.0]
    assert found["blue", "size"].reason == "no item defines it"


def test_some_of_the_items_are_a_set_of_their_own() -> None:
    part = things().only(np.array([False, True, True, False, True]))
    assert part.videos == ("a", "b")
    assert part.values[:, 0].tolist() == [2, 3, 5]
    (size, *_) = part.measured(np.array([[1, 0]], dtype=np.int32))
    assert size.values.tolist() == [3.5]


def test_parts_merge_and_keep_their_order() -> None:
    merged = things().merge(things("cdccd"))
    assert merged.videos == ("b", "a", "c", "d")
    assert merged.items["video"].to_list() == list("babbacdccd")
    np.testing.assert_array_equal(merged.values, np.tile(things().values, (2, 1)))


def test_parts_that_share_videos_or_were_judged_otherwise_do_not_merge() -> None:
    with pytest.raises(InputError, match=r"both parts hold the videos \['a'\]"):
        things().merge(things("acacc"))
    other = Things(things("ccccc").items, things().values, Config(strict=False))
    with pytest.raises(InputError, match="different configurations"):
        things().merge(other)


def test_the_videos_that_hold_a_class_are_counted_where_its_score_is_defined() -> None:
    found = {(e.label, e.metric): e.holding for e in things().measured(np.ones((1, 2), dtype=np.int32))}
    # Items in b a b b a; the red ones are in both, that of video b in the middle without a weight.
    assert found == {
        (None, "size"): 2,
        (None, "weight"): 2,
        ("blue", "size"): 1,
        ("blue", "weight"): 1,
        ("red", "size"): 2,
        ("red", "weight"): 2,
    }
    alone = {
        (e.label, e.metric): e.holding for e in things("bbabb").measured(np.ones((1, 2), dtype=np.int32))
    }
    assert (alone["red", "size"], alone["red", "weight"]) == (2, 1)
