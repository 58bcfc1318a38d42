"""Whether a model is right about two questions at once: joint correctness by combination of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.metrics.scores import SampleScores, decisions
from roadaware.statistics.bootstrap import percentile_interval, resamples

OUTCOMES = ("both", "only_first", "only_second", "none")

_COLUMNS: dict[str, Any] = {
    "first": pl.String,
    "second": pl.String,
    "outcome": pl.String,
    "count": pl.Int64,
    "n": pl.Int64,
    "percent": pl.Float64,
    "low_pedestrian": pl.Float64,
    "high_pedestrian": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
}


@dataclass(frozen=True, eq=False)
class Agreement:
    """Joint correctness of two tasks on the same samples.

    Args:
        table: one row per combination of true classes and outcome, and the rows over all samples with
            null in `first` and `second`. `outcome` is `both`, `only_first`, `only_second` or `none`;
            `count` of the `n` samples of the combination end so, `percent` of them (null where n is 0),
            with the ends of the 95 % bootstrap intervals over pedestrians and over videos.
    """

    table: pl.DataFrame

    def wide(self) -> pl.DataFrame:
        """One row per combination: `first`, `second`, `n`, and the percentage of each outcome."""
        return self.table.pivot("outcome", index=["first", "second", "n"], values="percent")

    def percent(self, outcome: str, first: str | None = None, second: str | None = None) -> float | None:
        """One percentage, over all samples unless a combination is named; None where it has no samples.

        Raises:
            UsageError: if there is no such combination or outcome.
        """
        held = (
            pl.col("first").eq_missing(pl.lit(first, dtype=pl.String))
            & pl.col("second").eq_missing(pl.lit(second, dtype=pl.String))
            & (pl.col("outcome") == outcome)
        )
        found = self.table.filter(held)
        if found.is_empty():
            raise UsageError(
                f"no outcome '{outcome}' of {first} and {second}; outcomes are {', '.join(OUTCOMES)}"
            )
        value: float | None = found["percent"][0]
        return value


def agreement(
    first: SampleScores,
    second: SampleScores,
    *,
    labels: tuple[Sequence[str], Sequence[str]] | None = None,
    draws: int = 0,
    seed: int = 0,
) -> Agreement:
    """How often two tasks are decided rightly together, alone, or not at all.

    Args:
        first: scores and truth of one task, such as intention.
        second: scores and truth of the other for the same samples, such as action.
        labels: names of the classes of both; their numbers where not given.
        draws: bootstrap resamples of pedestrians and of videos; 0 gives no intervals.
        seed: of the resamples.

    Raises:
        InputError: if the two are not about the same samples, or names are too few.

    Source: Rasouli and Kotseruba, IV 2024, section IV.D and Table V.

    >>> intention = SampleScores(np.eye(3), np.array([0, 1, 1]), ["a", "b", "c"])
    >>> action = SampleScores(np.array([0.1, 0.2, 0.3]), np.array([0, 1, 0]), ["a", "b", "c"])
    >>> found = agreement(intention, action)
    >>> [round(found.percent(outcome)) for outcome in ("both", "only_first", "only_second", "none")]
    [33, 33, 33, 0]
    """
    one, two = first.take(np.argsort(first.places)), second.take(np.argsort(second.places))
    _check_same_samples(one, two)
    names = [_names(state, given) for state, given in zip((one, two), labels or (None, None), strict=True)]
    counts, video = _counts(one, two)
    total = counts.sum(axis=0)
    drawn = [_drawn(counts, units, draws, seed) for units in (np.arange(len(counts)), video)]
    rows: list[tuple[Any, ...]] = []
    keys: list[tuple[str | None, str | None]] = [(a, b) for a in names[0] for b in names[1]]
    for k, key in enumerate([*keys, (None, None)]):
        n = int(total[k].sum())
        for o, outcome in enumerate(OUTCOMES):
            percent = 100.0 * float(total[k, o]) / n if n else None
            ends: list[float | None] = []
            for values in drawn:
                found = percentile_interval(values[:, k, o]) if values is not None and n else None
                ends += [found.low, found.high] if found else [None, None]
            rows.append((*key, outcome, int(total[k, o]), n, percent, *ends))
    return Agreement(pl.DataFrame(rows, schema=_COLUMNS, orient="row"))


def _check_same_samples(one: SampleScores, two: SampleScores) -> None:
    same = len(one) == len(two) and bool((one.places == two.places).all())
    if not same or (one.pedestrian != two.pedestrian).any():
        raise InputError(
            f"agreement needs both tasks on the same samples; got {len(one)} and {len(two)} samples "
            "that differ in number, order or pedestrian",
            hint="predict both tasks for one set of samples, in the same order of extraction",
        )


def _names(state: SampleScores, given: Sequence[str] | None) -> Sequence[str]:
    if given is None:
        return [str(k) for k in range(state.n_classes)]
    if len(given) != state.n_classes:
        raise InputError(f"{state.n_classes} classes need {state.n_classes} names; got {list(given)}")
    return given


def _counts(
    one: SampleScores, two: SampleScores
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.str_] | None]:
    """Samples of each pedestrian by combination and outcome, and each pedestrian's video.

    Returns:
        (p, combinations + 1, 4) counts, the last combination being all; (p,) video, or None.
    """
    names, start, person = np.unique(one.pedestrian, return_index=True, return_inverse=True)
    right_one, right_two = decisions(one.scores) == one.truth, decisions(two.scores) == two.truth
    outcome = 2 * (~right_one).astype(np.int64) + ~right_two
    combination = one.truth * two.n_classes + two.truth
    size = one.n_classes * two.n_classes
    counts = np.zeros((len(names), size + 1, len(OUTCOMES)))
    np.add.at(counts, (person, combination, outcome), 1.0)
    counts[:, size] = counts[:, :size].sum(axis=1)
    return counts, None if one.video is None else one.video[start]


def _drawn(
    counts: npt.NDArray[np.float64], units: npt.NDArray[Any] | None, draws: int, seed: int
) -> npt.NDArray[np.float64] | None:
    """(draws, combinations + 1, 4) percentages in each resample, NaN where a combination is absent."""
    blocks = resamples(units, draws, seed) if draws and units is not None else None
    return None if blocks is None else np.concatenate([_percents(counts, times) for times in blocks])


def _percents(counts: npt.NDArray[np.float64], times: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """(draws, combinations + 1, 4) percentages where each pedestrian occurs so many times."""
    sums = (times.astype(np.float64) @ counts.reshape(len(counts), -1)).reshape(-1, *counts.shape[1:])
    whole = sums.sum(axis=2, keepdims=True)
    percents: npt.NDArray[np.float64] = np.divide(
        100.0 * sums, whole, out=np.full(sums.shape, np.nan), where=whole > 0
    )
    return percents
