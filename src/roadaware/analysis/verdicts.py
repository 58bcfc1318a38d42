"""What the paired difference of two models says: a row for each metric, and in words who is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.errors import UsageError
from roadaware.statistics.intervals import Interval

Verdict = Literal["better", "worse", "not different", "undefined", "no interval"]
BY_VIDEO: dict[str, Any] = {
    "a": pl.Float64,
    "b": pl.Float64,
    "difference": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "verdict": pl.String,
    "caution_video": pl.String,
}
"""The columns that `row_by_video` fills."""
_NAMED = 20


@dataclass(frozen=True, eq=False)
class Paired:
    """The paired difference of two models in every metric.

    Args:
        table: one row per metric, among its columns `metric` and `verdict`.
        names: what A and B are called.
        config: the configuration that both were judged with, as plain data.
        draws: resamples made.
        seed: of the resamples.
    """

    table: pl.DataFrame
    names: tuple[str, str]
    config: dict[str, Any]
    draws: int
    seed: int

    def verdict(self, metric: str) -> Verdict:
        """What all intervals together say of A in this metric.

        Raises:
            UsageError: if there is no such metric.
        """
        found = self.table.filter(pl.col("metric") == metric)
        if found.is_empty():
            known = [*self.table["metric"].head(_NAMED), *(["..."] if len(self.table) > _NAMED else [])]
            raise UsageError(f"no metric '{metric}'; there are {', '.join(known)}")
        verdict: Verdict = found["verdict"][0]
        return verdict


def check_draws(draws: int) -> None:
    """Refuse to compare without resamples.

    Raises:
        UsageError: if there are none.
    """
    if draws < 1:
        raise UsageError(f"a comparison needs at least 1 draw, not {draws}")


def row_by_video(a: float, b: float, interval: Interval | None) -> dict[str, Any]:
    """The columns of `BY_VIDEO` for a metric in which higher is better.

    Args:
        a: the metric of the first model, NaN where it is undefined.
        b: that of the second.
        interval: of a - b over videos; unused where a value is undefined.
    """
    difference = a - b
    defined = not np.isnan(difference)
    held = interval if defined else None
    return {
        "a": None if np.isnan(a) else a,
        "b": None if np.isnan(b) else b,
        "difference": difference if defined else None,
        "low_video": held.low if held else None,
        "high_video": held.high if held else None,
        "verdict": verdict_of(held) if defined else "undefined",
        "caution_video": held.caution if held else None,
    }


def verdict_of(interval: Interval | None, *, lower_is_better: bool = False) -> Verdict:
    """What one interval of A - B says of A.

    Args:
        interval: None, or one without ends, where there was nothing to resample.
        lower_is_better: whether less of the metric is better.
    """
    if interval is None or interval.low is None:
        return "no interval"
    if not interval.excludes_zero:
        return "not different"
    return "better" if (interval.low > 0) != lower_is_better else "worse"
