"""Which of two models is better on the same scenes, metric by metric, for any of the four tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.verdicts import BY_VIDEO, Paired, check_draws, row_by_video
from roadaware.errors import InputError, UsageError
from roadaware.metrics.judged import Judged, Measured, drawn_over
from roadaware.statistics.intervals import Interval, Units, difference_scale

_BESIDE = ("per_frame_capacity",)
_COLUMNS: dict[str, Any] = {
    "metric": pl.String,
    "label": pl.String,
    **BY_VIDEO,
}


@dataclass(frozen=True, eq=False)
class SceneComparison(Paired):
    """The paired difference of two models in every metric of a task.

    Args:
        table: one row per metric: `metric` (`metric:label` for those of a class), `label` (null for the
            whole), the values `a` and `b`, `difference` (a - b), the ends of its 95 % interval over videos,
            and what that says of A (`verdict`): `better`, `worse`, `not different` (0 is inside),
            `undefined` (a value is missing), `no interval`.
        names, config, draws, seed: see `Paired`.
        baselines: name of a trivial answer to its metrics; the same for both, whose truth is one.
    """

    baselines: dict[str, dict[str, float | None]] = field(default_factory=dict)

    @property
    def beside(self) -> dict[str, Any]:
        """What of the configuration belongs beside every number: the capacity of a frame."""
        return {name: self.config[name] for name in _BESIDE if name in self.config}


def compare(
    a: Judged,
    b: Judged,
    config: dict[str, Any],
    *,
    draws: int = 1000,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
    baselines: Mapping[str, Mapping[str, float | None]] | None = None,
) -> SceneComparison:
    """The difference A - B in every metric that both have, with intervals from draws that they share.

    Each weighting of videos is applied to both models, so what is hard for both cancels. Intervals are not
    widened for the number of metrics that are looked at.

    Args:
        a: what was judged of the first model.
        b: the same of the second, on the same truth.
        config: how both were judged, as plain data.
        draws: most weightings of videos, at least 1.
        seed: of the weightings.
        names: what A and B are called.
        baselines: name of a trivial answer to its metrics.

    Raises:
        InputError: if the two were judged on different videos.
        UsageError: if `draws` is below 1, or the two are of different tasks.
    """
    check_draws(draws)
    if type(a) is not type(b):
        raise UsageError(f"{names[0]} and {names[1]} are runs of different tasks; compare two of a kind")
    videos = _together(a, b, names)
    table = pl.DataFrame(list(_rows(a, b, videos, draws, seed)), schema=_COLUMNS)
    trivial = {name: dict(values) for name, values in (baselines or {}).items()}
    return SceneComparison(table, names, dict(config), draws, seed, trivial)


def _together(a: Judged, b: Judged, names: tuple[str, str]) -> tuple[str, ...]:
    """The videos of either; one that only claims name is in the state of who claimed there.

    Raises:
        InputError: if they share none.
    """
    shared = set(a.videos) & set(b.videos)
    if not shared:
        raise InputError(
            f"{names[0]} and {names[1]} were judged on different videos: {len(a.videos):,} and "
            f"{len(b.videos):,}, none in both",
            hint="evaluate both on the same truth",
        )
    return tuple(dict.fromkeys((*a.videos, *b.videos)))


def _rows(a: Judged, b: Judged, videos: tuple[str, ...], draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """One row per metric that both have, in the order of the first."""
    theirs = {
        (each.metric, each.label): each for each in b.measured(np.ones((1, len(b.videos)), dtype=np.int32))
    }
    units = Units(len(videos), draws, seed)
    drawn_a, drawn_b = (drawn_over(state, videos, units) if units.n > 1 else {} for state in (a, b))
    for one in a.measured(np.ones((1, len(a.videos)), dtype=np.int32)):
        key = (one.metric, one.label)
        if key not in theirs:
            continue
        interval = None
        if key in drawn_a and key in drawn_b:
            apart = float(one.values[0] - theirs[key].values[0])
            scale = difference_scale(one.scale)
            interval = units.interval(apart, drawn_a[key] - drawn_b[key], scale)
        yield _row(one, theirs[key], interval)


def _row(one: Measured, two: Measured, interval: Interval | None) -> dict[str, Any]:
    return {
        "metric": one.metric if one.label is None else f"{one.metric}:{one.label}",
        "label": one.label,
        **row_by_video(float(one.values[0]), float(two.values[0]), interval),
    }
