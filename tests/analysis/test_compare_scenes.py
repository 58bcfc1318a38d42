"""Two models on the same scenes: paired draws of videos, verdicts, and what cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.compare import compare_scenes
from roadaware.arrays import Bools, Ints32
from roadaware.errors import InputError, UsageError
from roadaware.metrics.metric_state import Judged, Measured, resample_metrics
from roadaware.statistics.intervals import Units


@dataclass(frozen=True)
class Rule:
    name: str = "mean"


@dataclass(frozen=True, eq=False)
class Means(Judged):
    """A mean over videos, and the same of a class that only one video has."""

    config_type: ClassVar[type] = Rule

    values: Any
    config: Rule

    def merge(self, other: Self) -> Self:
        return replace(self, items=pl.concat([self.items, other.items]))

    def only(self, kept: Bools) -> Self:
        return replace(self, items=self.items.filter(pl.Series(kept)), values=self.values[kept])

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        yield Measured("mean", weights @ self.values / weights.sum(axis=1), len(self.values))
        first = weights[:, 0] > 0
        yield Measured("mean", np.where(first, self.values[0], np.nan), 1, "first")


@dataclass(frozen=True, eq=False)
class Others(Means):
    pass


def means(values: list[float], names: str = "abcdefghij") -> Means:
    items = pl.DataFrame({"video": list(names[: len(values)])})
    return Means(items, np.array(values), Rule())


NOISE = [0.1, 0.9, 0.3, 0.7, 0.5, 0.2, 0.8, 0.4, 0.6, 0.5]


def test_what_is_hard_for_both_cancels() -> None:
    better = means([value + 0.01 for value in NOISE])
    found = compare_scenes(better, means(NOISE), {}, resamples=200, names=("mine", "theirs"))
    row = found.table.row(0, named=True)
    assert row["difference"] == pytest.approx(0.01)
    assert row["low_video"] == pytest.approx(0.01)
    assert found.verdict("mean") == "better"
    assert compare_scenes(means(NOISE), better, {}, resamples=200).verdict("mean") == "worse"
    assert compare_scenes(means(NOISE), means(NOISE), {}, resamples=200).verdict("mean") == "not different"


def test_draws_are_those_that_a_run_by_itself_makes() -> None:
    one, two = means(NOISE), means(NOISE[::-1])
    row = compare_scenes(one, two, {}, resamples=150, seed=3).table.row(0, named=True)
    apart = resample_metrics(one, 150, 3)["mean", None] - resample_metrics(two, 150, 3)["mean", None]
    interval = Units(len(NOISE), 150, 3).interval(row["difference"], apart, "difference")
    assert (row["low_video"], row["high_video"]) == (interval.low, interval.high)


def test_a_class_that_few_resamples_hold_has_no_interval() -> None:
    found = compare_scenes(means(NOISE), means(NOISE), {}, resamples=200)
    assert found.table.row(1, named=True)["label"] == "first"
    assert found.verdict("mean:first") == "no interval"


def test_videos_that_one_side_alone_names_are_drawn_with_the_others() -> None:
    longer = means([*NOISE, 0.0], "abcdefghijk")
    found = compare_scenes(means(NOISE), longer, {}, resamples=100)
    assert found.table.row(0, named=True)["difference"] == pytest.approx(0.5 - 5 / 11)
    assert found.table.row(0, named=True)["low_video"] is not None


def test_an_undefined_value_is_no_difference() -> None:
    found = compare_scenes(means([np.nan, 0.5]), means([0.5, 0.5]), {}, resamples=50)
    row = found.table.row(0, named=True)
    assert (row["a"], row["difference"], row["verdict"]) == (None, None, "undefined")


def test_one_video_gives_no_interval() -> None:
    assert compare_scenes(means([0.5]), means([0.25]), {}, resamples=50).verdict("mean") == "no interval"


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(InputError, match="none in both"):
        compare_scenes(means([0.5, 0.5]), means([0.5, 0.5], "xy"), {})
    with pytest.raises(UsageError, match="at least 1 resample"):
        compare_scenes(means([0.5]), means([0.5]), {}, resamples=0)
    with pytest.raises(UsageError, match="different tasks"):
        compare_scenes(means([0.5]), Others(pl.DataFrame({"video": ["a"]}), np.array([0.5]), Rule()), {})
    with pytest.raises(UsageError, match="no metric 'map'"):
        compare_scenes(means([0.5]), means([0.5]), {}).verdict("map")
