"""The composition of a set of corner cases: equal input gives equal tables."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.corner_tables import _tag


def test_values_that_are_as_frequent_come_by_name() -> None:
    values = ["snow", "rain", "overcast", "low-sun", "clear", "clear"]
    found = _tag(pl.DataFrame({"weather": values}), "weather")
    assert found["value"].to_list() == ["clear", "low-sun", "overcast", "rain", "snow"]
    assert found["scenes"].to_list() == [2, 1, 1, 1, 1]
