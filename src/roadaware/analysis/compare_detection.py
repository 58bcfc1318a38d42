"""Which of two models of road events is better on the same videos, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.verdicts import BY_VIDEO, Paired, check_draws, row_by_video
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import Matches
from roadaware.metrics.detection.summary import AV_ACTION, Asked, Measured, measured
from roadaware.metrics.detection.thresholds import RANGE, thresholds

_COLUMNS: dict[str, Any] = {
    "metric": pl.String,
    "level": pl.String,
    "overlap": pl.String,
    "threshold": pl.String,
    "kind": pl.String,
    "label": pl.String,
    **BY_VIDEO,
}
_KEPT_OF_RANGE = (0.5, 0.75)
"""Of the ten thresholds of the range, those that are looked at by themselves as well."""


@dataclass(frozen=True, eq=False)
class DetectionComparison(Paired):
    """The paired difference of two models in every metric of road events.

    Args:
        table: one row per metric: `metric`, `level`, `overlap`, `threshold`, `kind`, `label` (null for
            means), the values `a` and `b`, `difference` (a - b), the ends of its 95 % interval over videos,
            and what that says of A (`verdict`): `better`, `worse`, `not different` (0 is inside),
            `undefined` (a value is missing), `no interval`.
        names, draws, seed: see `Paired`.
        config: the configuration that A was judged with, as plain data; B was judged with the same but for
            `differs`.
        differs: field of the configuration to its values for A and B, where they differ.
    """

    differs: dict[str, tuple[Any, Any]] = field(default_factory=dict)


def compare(
    a: Mapping[str, Matches],
    b: Mapping[str, Matches],
    config: DetectionConfig,
    *,
    draws: int = 1000,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
    config_b: DetectionConfig | None = None,
) -> DetectionComparison:
    """The difference A - B in every metric that both have, with intervals from draws that they share.

    Each weighting of videos is applied to both models, so what is hard for both cancels. Intervals are not
    widened for the number of metrics that are looked at.

    Args:
        a: level (`frame`, `video:stiou`, `av_action`) to the matches of the first model.
        b: those of the second, on the same truth.
        config: how both are judged.
        draws: most weightings of videos, at least 1.
        seed: of the weightings.
        names: what A and B are called.
        config_b: how the second was judged, where that differs: in `composite_scores` alone, so that joint
            scores can be held against products.

    Raises:
        InputError: if the two were not judged on the same truth, or share no level and threshold.
        UsageError: if `draws` is below 1, or the configs differ in more than composite scores.
    """
    check_draws(draws)
    differs = _differing(config, config_b or config, names)
    rows = [
        row for level in a if level in b for row in _level(level, a[level], b[level], config, draws, seed)
    ]
    if not rows:
        raise InputError(
            f"{names[0]} was judged at {', '.join(a) or 'no level'}, {names[1]} at {', '.join(b) or 'none'}; "
            "they share no threshold",
            hint="evaluate both with the same thresholds and kinds",
        )
    table = pl.DataFrame(rows, schema=_COLUMNS)
    return DetectionComparison(table, names, to_dict(config), draws, seed, differs)


def _differing(a: DetectionConfig, b: DetectionConfig, names: tuple[str, str]) -> dict[str, tuple[Any, Any]]:
    """The fields in which two configs differ.

    Raises:
        UsageError: if one is another than `composite_scores`, which only tells which scores were claimed.
    """
    one, two = to_dict(a), to_dict(b)
    differs = {name: (one[name], two[name]) for name in one if one[name] != two[name]}
    others = [f"{name} ({x} and {y})" for name, (x, y) in differs.items() if name != "composite_scores"]
    if others:
        raise UsageError(
            f"{names[0]} and {names[1]} were judged by different configs, {', '.join(others)}; evaluate both "
            "with the same"
        )
    return differs


def _level(
    level: str, a: Matches, b: Matches, config: DetectionConfig, draws: int, seed: int
) -> Iterator[dict[str, Any]]:
    """The rows of one level."""
    _check_same_truth(level, a, b)
    name, _, overlap = level.partition(":")
    shared = [value for value in a.thresholds if value in b.thresholds]
    columns = {"": shared} if name == AV_ACTION else _columns(shared)
    pairs = zip(
        *(
            measured(held, _asked(held, name, overlap, columns), config, draws=draws, seed=seed)
            for held in (a, b)
        ),
        strict=True,
    )
    for one, two in pairs:
        yield {**_row(one, two), "level": name, "overlap": overlap or None}


def _asked(held: Matches, name: str, overlap: str, columns: Mapping[str, list[float]]) -> Asked:
    at = {column: tuple(map(held.thresholds.index, values)) for column, values in columns.items()}
    return Asked(name, at, overlap or None)


def _columns(shared: list[float]) -> dict[str, list[float]]:
    """Names of thresholds to those whose mean they are; the ten of the range stand together."""
    ten = thresholds([RANGE]).values
    if not set(ten) <= set(shared):
        return {f"{value:g}": [value] for value in shared}
    single = [value for value in shared if value not in ten or value in _KEPT_OF_RANGE]
    return {**{f"{value:g}": [value] for value in single}, RANGE: list(ten)}


def _check_same_truth(level: str, a: Matches, b: Matches) -> None:
    for what in ("videos", "classes"):
        if getattr(a, what) != getattr(b, what):
            differ = set(getattr(a, what)) ^ set(getattr(b, what))
            shown = ", ".join(sorted(map(str, differ))[:5]) or "their order"
            raise InputError(f"A and B were judged on different {what} at level {level}: {shown}")
    if not np.array_equal(a.n_truth, b.n_truth):
        raise InputError(
            f"A and B were judged on different truth at level {level}: {int(a.n_truth.sum()):,} and "
            f"{int(b.n_truth.sum()):,} true items",
            hint="evaluate both on the same annotations and split",
        )


def _row(one: Measured, two: Measured) -> dict[str, Any]:
    interval = None
    apart = one.value - two.value
    if one.drawn is not None and two.drawn is not None and one.units is not None and not np.isnan(apart):
        interval = one.units.interval(apart, one.drawn - two.drawn, "difference")
    return {
        "metric": one.metric,
        "threshold": one.threshold or None,
        "kind": one.kind,
        "label": one.label,
        **row_by_video(one.value, two.value, interval),
    }
