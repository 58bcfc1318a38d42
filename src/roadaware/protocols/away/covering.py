"""Covering: what split conformal sets that were promised at home still hold on a test set."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.away.results import COVERED, SETS, Cell, kept_json
from roadaware.protocols.away.scoring import Row
from roadaware.statistics.conformal import Conformal, conformal
from roadaware.statistics.intervals import Scale, Units

LEVEL = 0.9
"""Share of samples whose set is to hold the true label."""


def promised(probability: Floats, truth: npt.ArrayLike) -> Conformal:
    """The sets of rule `lac` that keep the promise on samples exchangeable with those of validation.

    Args:
        probability: (n,) of crossing, on the validation split of the training set.
        truth: (n,) labels.

    Raises:
        ValueError: if there are no samples, or a probability leaves [0, 1].

    Source: Papadopoulos et al., ECML 2002; Sadinle et al., JASA 2019.
    """
    return conformal(probability[:, None], truth, 1 - LEVEL)


def in_sets(state: SampleScores, promise: Conformal) -> Floats:
    """(n, metrics) of each sample: whether its set holds the truth, its labels, whether it is empty.

    Args:
        state: scores beside their truth.
        promise: that was made at home.
    """
    sets = promise.sets(state.scores)
    size = sets.sum(axis=1)
    return np.stack([sets[np.arange(len(state)), state.truth], size, size == 0], axis=1).astype(np.float64)


def rows_of(state: SampleScores, promise: Conformal, draws: int) -> list[Row]:
    """`coverage_90`, `set_size_90` and `empty_90` with 95 % intervals over pedestrians.

    The threshold is held: pedestrians of the test set are drawn anew, those of validation are not.

    Args:
        state: scores beside their truth.
        promise: that was made at home.
        draws: most weightings of pedestrians; 0 for no intervals.
    """
    found = in_sets(state, promise)
    drawn = means_drawn(found, state.pedestrian, draws)
    rows = []
    for place, name in enumerate(SETS):
        value = float(found[:, place].mean())
        units = None if drawn is None else Units.of(state.pedestrian, draws, 0)
        scale: Scale = "positive" if name == "set_size_90" else "share"
        ends = None if drawn is None or units is None else units.interval(value, drawn[:, place], scale)
        low, high, why = (None, None, None) if ends is None else (ends.low, ends.high, ends.caution)
        rows.append({"metric": name, "config": "", "value": value, "low": low, "high": high, "caution": why})
    return rows


def means_drawn(values: Floats, unit: npt.NDArray[np.generic], draws: int, seed: int = 0) -> Floats | None:
    """(draws, metrics) means over samples when whole units are drawn; None without draws or below two units.

    Args:
        values: (n, metrics) of samples.
        unit: (n,) the pedestrian of each; equal units give equal draws.
        draws: most weightings of units; `PercentileDraws` where several sets are put together.
        seed: of the weightings; test sets that are drawn by themselves take different ones.
    """
    names, owner = np.unique(unit, return_inverse=True)
    units = Units.of(names, draws, seed) if draws else None
    if units is None:
        return None
    sums = np.zeros((len(names), values.shape[1] + 1))
    np.add.at(sums, owner, np.column_stack([values, np.ones(len(values))]))
    found = np.concatenate([block @ sums for block in units.weights()])
    return np.asarray(found[:, :-1] / found[:, -1:])


def written(promise: Conformal, rows: list[Row]) -> bytes:
    """What a cell keeps of its sets.

    Args:
        promise: whose threshold is kept; an infinite one as null.
        rows: of the results.
    """
    threshold = promise.threshold if math.isfinite(promise.threshold) else None
    return (json.dumps({"threshold": threshold, "rows": rows}) + "\n").encode()


def kept(folder: Path, cell: Cell) -> Conformal | None:
    """The sets that a cell was judged by; None where it keeps none.

    Args:
        folder: of the study.
        cell: of it.
    """
    path = folder / cell.place / COVERED
    if not path.is_file():
        return None
    threshold = kept_json(path)["threshold"]
    return Conformal("lac", 1 - LEVEL, math.inf if threshold is None else float(threshold))
