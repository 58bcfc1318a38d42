"""Several fits of one model on the same samples: the mean of each metric and its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError
from roadaware.metrics.pedestrians import UNITS, PedestrianConfig, build_core
from roadaware.metrics.scores import SampleScores
from roadaware.statistics.intervals import Units

AVERAGE = "mean"
FITS = {
    "run": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    **{f"{end}_{unit}": pl.Float64 for unit in UNITS for end in ("low", "high")},
    **{f"caution_{unit}": pl.String for unit in UNITS},
}


def evaluate_fits(
    fits: Mapping[str, SampleScores],
    config: PedestrianConfig,
    *,
    averaged: tuple[str, ...] = (),
    resamples: int = 0,
    seed: int = 0,
) -> pl.DataFrame:
    """Every metric of every fit, and the mean of each over some of them, with intervals.

    The mean over fits is what one more fit may be expected to reach; it is not the metric of mean
    probabilities. In each resample all fits see the same pedestrians, so its interval is of the mean of the
    metric over these fits, and says nothing of the chance in fitting.

    Args:
        fits: name to scores of the same samples.
        config: how they are judged.
        averaged: names of the fits that the row `mean` is taken over; no such row where empty.
        resamples: most weightings of pedestrians, and of videos; 0 gives no intervals.
        seed: of the weightings.

    Returns:
        One row for each fit, and the mean, and metric: `run`, `metric`, `value` (null where undefined), and
        the ends of the 95 % intervals, `low_pedestrian`, `high_pedestrian`, `low_video`, `high_video`, and
        `caution_pedestrian`, `caution_video`: why they are to be taken with caution, null where they are not.

    Raises:
        UsageError: if there are no fits, or one of `averaged` is none of them.
        InputError: if they are not of the same samples.
    """
    if not fits or not set(averaged) <= set(fits):
        raise UsageError(f"there are no fits {sorted(set(averaged) - set(fits))}; given are {list(fits)}")
    first = next(iter(fits.values()))
    if any(not np.array_equal(each.pedestrian, first.pedestrian) for each in fits.values()):
        raise InputError("the fits were not asked about the same samples in the same order")
    cores = {name: build_core(state, config) for name, state in fits.items()}
    points = {name: core.values(core.once()) for name, core in cores.items()}
    drawn = {
        unit: {name: core.drawn(unit, resamples, seed) if resamples else None for name, core in cores.items()}
        for unit in UNITS
    }
    if averaged:
        points[AVERAGE] = _mean([points[name] for name in averaged])
        for held in drawn.values():
            parts = [part for name in averaged if (part := held[name]) is not None]
            held[AVERAGE] = _mean(parts) if parts else None
    core = next(iter(cores.values()))
    units = {unit: core.units(unit, resamples, seed) if resamples else None for unit in UNITS}
    rows = []
    for name, values in points.items():
        judged = [cores[each] for each in (averaged if name == AVERAGE and averaged else (name,))]
        for metric, value in values.items():
            # A mean is no surer than the fit that is made of the fewest units.
            holding = {
                unit: min(
                    (n for core in judged if (n := core.count_holding(metric, of)) is not None), default=None
                )
                for unit, of in units.items()
            }
            row = _row(metric, float(value[0]), {u: drawn[u][name] for u in UNITS}, units, holding)
            rows.append(row | {"run": name})
    return pl.DataFrame(rows, schema=FITS)


def _mean(parts: list[dict[str, Floats]]) -> dict[str, Floats]:
    return {name: np.mean([part[name] for part in parts], axis=0) for name in parts[0]}


def _row(
    metric: str,
    value: float,
    drawn: Mapping[str, dict[str, Floats] | None],
    units: Mapping[str, Units | None],
    holding: Mapping[str, int | None],
) -> dict[str, Any]:
    """The value and its intervals, unit by unit."""
    row: dict[str, Any] = {"metric": metric, "value": None if np.isnan(value) else value}
    for unit, values in drawn.items():
        of = units[unit]
        found = None
        if of is not None and values:
            found = of.interval(value, values[metric], "share", holding=holding[unit])
        row |= {f"low_{unit}": found.low, f"high_{unit}": found.high} if found else {}
        row |= {f"caution_{unit}": found.caution} if found else {}
    return {**dict.fromkeys(FITS), **row}
