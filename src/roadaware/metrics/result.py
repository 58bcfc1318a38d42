"""MetricResult: metrics with intervals, and the rows behind them on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from roadaware.errors import UsageError
from roadaware.statistics.intervals import Interval

SUMMARY: dict[str, Any] = {
    "group": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "valid": pl.Boolean,
    "n": pl.Int64,
    "reason": pl.String,
    "low_pedestrian": pl.Float64,
    "high_pedestrian": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "valid_draws_pedestrian": pl.Int64,
    "valid_draws_video": pl.Int64,
    "units_pedestrian": pl.Int64,
    "units_video": pl.Int64,
    "caution_pedestrian": pl.String,
    "caution_video": pl.String,
}


def build_interval_columns(found: Interval | None, unit: str) -> dict[str, Any]:
    """The columns of an interval over units of a kind: its ends, the number of units, and a caution.

    Args:
        found: None where nothing was drawn; all columns are null then.
        unit: `pedestrian`, `video`, ...
    """
    return {
        f"low_{unit}": found.low if found else None,
        f"high_{unit}": found.high if found else None,
        f"valid_draws_{unit}": found.n_valid if found else None,
        f"units_{unit}": found.n_units if found else None,
        f"caution_{unit}": found.caution if found else None,
    }


_SHOWN = 4


@dataclass(frozen=True, eq=False, repr=False)
class MetricResult:
    """The metrics of a set and of its groups.

    Args:
        summary: one row per group and metric: `group` (null for the whole set), `metric`, `value` (null
            where undefined), `valid`, `n` (samples or pedestrians it is made from), `reason` (why it is
            undefined), the ends of the 95 % intervals over pedestrians and over videos (null where none can
            be given), in how many draws the metric was defined, how many units there are, and why an
            interval is to be taken with caution (null where it is not).
        counts: one row per group and true class: `group`, `class`, `samples`, `pedestrians`.
        config: the configuration that the values were made with, as plain data.
        notes: what else happened, in words.
        makers: level of detail to what makes its rows.
    """

    summary: pl.DataFrame
    counts: pl.DataFrame
    config: dict[str, Any]
    notes: tuple[str, ...] = ()
    makers: dict[str, Callable[[], pl.DataFrame]] = field(default_factory=dict)

    def instances(self, level: str | None = None) -> pl.DataFrame:
        """The rows behind the summary, built on demand: predictions and scores of each item.

        Args:
            level: which rows, one of `levels` (default: the first of them).

        Raises:
            UsageError: if there is no such level.
        """
        if level is None and self.makers:
            level = self.levels[0]
        if level not in self.makers:
            raise UsageError(f"no instances of '{level}' here; there are {', '.join(self.levels) or 'none'}")
        return self.makers[level]()

    def __repr__(self) -> str:
        whole = self.summary.filter(pl.col("group").is_null())
        known = whole.filter("valid").select("metric", pl.col("value").round(4)).rows()
        shown = ", ".join(f"{metric} {value}" for metric, value in known[:_SHOWN])
        groups = f", {len(self.groups)} groups" if self.groups else ""
        return f"MetricResult({len(known)} of {len(whole)} metrics defined{groups}: {shown}, ...)"

    @property
    def levels(self) -> tuple[str, ...]:
        """The kinds of rows that `instances` makes."""
        return tuple(self.makers)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups with a summary of their own, in the order of the summary."""
        return tuple(self.summary["group"].drop_nulls().unique(maintain_order=True).to_list())

    def of_group(self, group: str | None = None) -> pl.DataFrame:
        """The summary of one group, None for the whole set.

        Raises:
            UsageError: if there is no such group.
        """
        rows = self.summary.filter(pl.col("group").eq_missing(pl.lit(group, dtype=pl.String)))
        if rows.is_empty():
            raise UsageError(f"no group '{group}'; there are {', '.join(self.groups) or 'none'}")
        return rows

    def row(self, metric: str, group: str | None = None) -> dict[str, Any]:
        """One row of the summary.

        Raises:
            UsageError: if the metric or the group is not there.
        """
        rows = self.of_group(group)
        found = rows.filter(pl.col("metric") == metric)
        if found.is_empty():
            raise UsageError(f"no metric '{metric}'; there are {', '.join(rows['metric'])}")
        return found.row(0, named=True)

    def value(self, metric: str, group: str | None = None) -> float | None:
        """The value of a metric, None where undefined.

        Raises:
            UsageError: if the metric or the group is not there.
        """
        value: float | None = self.row(metric, group)["value"]
        return value

    def values(self, group: str | None = None) -> dict[str, float | None]:
        """Every metric's value by name, None where undefined.

        Raises:
            UsageError: if there is no such group.
        """
        rows = self.of_group(group)
        return dict(zip(rows["metric"].to_list(), rows["value"].to_list(), strict=True))
