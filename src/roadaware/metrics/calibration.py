"""Whether pedestrian scores mean what they say: calibration errors, NLL and Brier score, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.calibration_config import CalibrationConfig
from roadaware.metrics.calibration_core import METRIC_NAMES, SCALES, CalibrationCore
from roadaware.metrics.pedestrian_core import UNITS
from roadaware.metrics.result import SUMMARY, MetricResult, interval_columns
from roadaware.metrics.scores import SampleScores, group_labels

__all__ = ["BINS", "METRIC_NAMES", "CalibrationConfig", "CalibrationCore", "evaluate"]

BINS: dict[str, Any] = {
    "group": pl.String,
    "binning": pl.String,
    "n": pl.Int64,
    "pedestrians": pl.Int64,
    "confidence": pl.Float64,
    "accuracy": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "low_pedestrian": pl.Float64,
    "high_pedestrian": pl.Float64,
    "caution_pedestrian": pl.String,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "caution_video": pl.String,
}


def evaluate(
    state: SampleScores,
    config: CalibrationConfig,
    *,
    draws: int = 0,
    seed: int = 0,
    groupings: Sequence[npt.ArrayLike] = (),
) -> MetricResult:
    """How well confidence tells how often the model is right, as a whole and by group.

    The confidence of a sample is its largest probability, max(p, 1 - p) for one probability; it is right
    when the class decided for is the true one. `ece` and `mce` use adaptive bins, which are made anew in
    every resample; `uniform_ece` and `uniform_mce` bins of equal width.

    Args:
        state: the samples, in any order; several scores a sample sum to 1.
        config: how confidences are put into bins.
        draws: most weightings of whole pedestrians and of whole videos; 0 gives no intervals.
        seed: of the weightings; equal seeds give equal intervals.
        groupings: (n,) labels each, such as the scenario or the time to event of each sample, None where it
            is in no group; every label is judged as a set of its own.

    Returns:
        the summary, and instances by `bin`: `group`, `binning` (`adaptive` or `uniform`), `n`, `pedestrians`,
        mean `confidence` and `accuracy`, smallest (`low`) and largest (`high`) confidence, and the ends of
        the 95 % intervals of the accuracy over pedestrians and over videos, in these very bins.

    Raises:
        InputError: if several scores of a sample do not sum to 1, or there is not one label per sample.
        UsageError: if `draws` is negative.

    Source: Gesnouin et al., IV 2022, section II-C, equations 2-4.

    >>> state = SampleScores(np.array([0.9, 0.6, 0.2]), np.array([1, 0, 0]), ["a", "a", "b"])
    >>> result = evaluate(state, CalibrationConfig.default())
    >>> round(result.value("ece"), 3), round(result.value("brier"), 3)
    (0.1, 0.137)
    """
    if draws < 0:
        raise UsageError(f"draws should be 0 or more, not {draws}")
    _check_rows(state, config)
    order = np.argsort(state.places)
    whole = state.take(order)
    cores: list[tuple[str | None, CalibrationCore]] = [(None, CalibrationCore.of(whole, config))]
    for grouping in groupings:
        labels = group_labels(grouping, len(state))[order]
        for label in sorted({str(label) for label in labels if label is not None}):
            rows = np.array([given is not None and str(given) == label for given in labels])
            cores.append((label, CalibrationCore.of(whole.take(rows), config)))
    rows_of = [row for group, core in cores for row in _summary(group, core, draws, seed)]
    return MetricResult(
        summary=pl.DataFrame(rows_of, schema=SUMMARY),
        counts=pl.concat([_counts(group, core) for group, core in cores]),
        config=to_dict(config),
        notes=tuple(_notes(cores[0][1])),
        makers={"bin": partial(_bins, cores, draws, seed)},
    )


def _check_rows(state: SampleScores, config: CalibrationConfig) -> None:
    if state.scores.shape[1] == 1:
        return
    off = np.abs(state.scores.sum(axis=1) - 1) > config.row_sum_tolerance
    if off.any():
        row = int(np.flatnonzero(off)[0])
        raise InputError(
            f"the scores of a sample should sum to 1 within {config.row_sum_tolerance:g}; {int(off.sum())} "
            f"of {len(state)} rows do not, row {row + 1} first, with a sum of {state.scores[row].sum():g}",
            hint="calibration needs probabilities: apply a softmax, or divide each row by its sum",
        )


def _summary(group: str | None, core: CalibrationCore, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """The rows of the summary of one group, in the columns of SUMMARY."""
    point = core.once()
    drawn = {unit: core.drawn(unit, draws, seed) if draws else None for unit in UNITS}
    units = {unit: core.units(unit, draws, seed) for unit in UNITS}
    point["ece_if_calibrated"] = core.expected_if_calibrated(draws, seed)
    for metric in METRIC_NAMES:
        value = point[metric]
        valid = not np.isnan(value)
        row = {
            "group": group,
            "metric": metric,
            "value": value if valid else None,
            "valid": valid,
            "n": len(core.state),
            "reason": None if valid else core.why_undefined(metric),
        }
        for unit in UNITS:
            values, of = (drawn[unit] or {}).get(metric), units[unit]
            found = None
            if values is not None and of is not None and valid:
                found = of.interval(value, values, SCALES[metric])
            row |= interval_columns(found, unit)
        yield row


def _counts(group: str | None, core: CalibrationCore) -> pl.DataFrame:
    """Samples of each true class, and pedestrians with such a sample."""
    size, state = core.state.n_classes, core.state
    people = [len(np.unique(state.pedestrian[state.truth == k])) for k in range(size)]
    return pl.DataFrame(
        {
            "group": pl.Series([group] * size, dtype=pl.String),
            "class": np.arange(size),
            "samples": np.bincount(state.truth, minlength=size),
            "pedestrians": people,
        }
    )


def _bins(cores: Sequence[tuple[str | None, CalibrationCore]], draws: int, seed: int) -> pl.DataFrame:
    rows = [
        (group, binning, *row)
        for group, core in cores
        for binning in ("adaptive", "uniform")
        for row in core.bin_rows(binning, draws, seed)
    ]
    return pl.DataFrame(rows, schema=BINS, orient="row")


def _notes(core: CalibrationCore) -> Iterator[str]:
    """What a reader must know before the numbers."""
    held = np.unique(core.descending)
    if len(held) == 1 and len(core.state) > 1:
        yield f"all {len(core.state)} confidences are {held[0]:g}: there is one bin, and it ranks nothing"
    if core.unclosed:
        yield (
            "as published, a bin lends more samples than it holds, is never closed and counts its summed "
            "confidence as a mean: ece and mce are what the published code gives, and are no calibration "
            "errors; see the mended bins of `default`"
        )
    if core.impossible:
        yield (
            f"{core.impossible} samples give their true class a probability below "
            f"{core.config.least_probability:g}; nll counts it as that"
        )
